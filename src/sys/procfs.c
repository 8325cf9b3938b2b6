/*
 * Small reads from procfs and sysfs. Nothing here allocates, so it may be
 * called between two timed runs.
 */
#include "sys/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool rg_read_small(const char *path, char *buf, size_t cap)
{
	size_t len = 0;
	ssize_t got;
	int fd;

	if (cap == 0)
		return false;
	buf[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (len < cap - 1) {
		got = read(fd, buf + len, cap - 1 - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			close(fd);
			buf[0] = '\0';
			return false;
		}
		if (got == 0)
			break;
		len += (size_t)got;
	}
	close(fd);
	if (len && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return true;
}

/* "VmRSS:     1234 kB" of our own status file, in bytes. */
static int64_t status_kib(const char *field)
{
	char buf[8192];
	const char *at;
	long long kib;

	if (!rg_read_small("/proc/self/status", buf, sizeof(buf)))
		return -1;
	at = strstr(buf, field);
	if (!at || sscanf(at + strlen(field), "%lld", &kib) != 1 || kib < 0 || kib > INT64_MAX / 1024)
		return -1;
	return (int64_t)kib * 1024;
}

int64_t rg_proc_rss_bytes(void)
{
	return status_kib("\nVmRSS:");
}

int64_t rg_proc_peak_rss_bytes(void)
{
	return status_kib("\nVmHWM:");
}

bool rg_proc_reset_peak_rss(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, "5", 1) == 1;
	close(fd);
	return done;
}

double rg_proc_load1(const char *root)
{
	char path[4096], buf[128], *end;
	double v;

	snprintf(path, sizeof(path), "%s/proc/loadavg", root);
	if (!rg_read_small(path, buf, sizeof(buf)))
		return NAN;
	v = strtod(buf, &end);
	return end == buf || !(v >= 0) ? (double)NAN : v;
}

bool rg_proc_steal_ticks(const char *root, uint64_t *steal, uint64_t *total)
{
	char path[4096], buf[512];
	unsigned long long v[8];
	int i;

	snprintf(path, sizeof(path), "%s/proc/stat", root);
	if (!rg_read_small(path, buf, sizeof(buf)))
		return false;
	/* user nice system idle iowait irq softirq steal; guest time is in user already */
	if (sscanf(buf, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4],
		   &v[5], &v[6], &v[7]) != 8)
		return false;
	*steal = v[7];
	*total = 0;
	for (i = 0; i < 8; i++)
		*total += v[i];
	return true;
}

uint64_t rg_proc_start_ticks(int pid)
{
	char path[64], buf[2048], *at;
	int field;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!rg_read_small(path, buf, sizeof(buf)))
		return 0;
	/* The name stands in parentheses and may hold anything, so count from the last one. */
	at = strrchr(buf, ')');
	if (!at)
		return 0;
	for (field = 2; field < 22; field++) {
		at = strchr(at + 1, ' ');
		if (!at)
			return 0;
	}
	return strtoull(at + 1, NULL, 10);
}

void rg_proc_boot_id(char *out)
{
	char buf[64];

	out[0] = '\0';
	if (rg_read_small("/proc/sys/kernel/random/boot_id", buf, sizeof(buf)) && strlen(buf) == 36)
		memcpy(out, buf, 37);
}
