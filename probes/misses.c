/* See misses.h. */
#include "probes/misses.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_one(uint64_t cache, uint64_t op)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_HW_CACHE;
	attr.config = cache | op << 8 | (uint64_t)PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
	attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int rg_misses_open(struct rg_misses *m, struct rg_error *err)
{
	int e;

	m->ll = -1;
	m->l1 = open_one(PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_OP_READ);
	if (m->l1 >= 0)
		m->ll = open_one(PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_OP_READ);
	if (m->l1 >= 0 && m->ll >= 0)
		return 0;
	e = errno;
	rg_misses_close(m);
	rg_error_set(err, -e, "hardware counters of cache misses do not open: %s", strerror(e));
	return rg_error_hint(err, "ridge doctor says what would open them");
}

void rg_misses_close(struct rg_misses *m)
{
	if (m->l1 >= 0)
		close(m->l1);
	if (m->ll >= 0)
		close(m->ll);
	m->l1 = m->ll = -1;
}

void rg_misses_start(struct rg_misses *m)
{
	ioctl(m->l1, PERF_EVENT_IOC_RESET, 0);
	ioctl(m->ll, PERF_EVENT_IOC_RESET, 0);
	ioctl(m->l1, PERF_EVENT_IOC_ENABLE, 0);
	ioctl(m->ll, PERF_EVENT_IOC_ENABLE, 0);
}

static double count_of(int fd)
{
	struct { uint64_t value, enabled, running; } v;

	if (read(fd, &v, sizeof(v)) != (ssize_t)sizeof(v) || v.enabled != v.running || !v.running)
		return NAN;
	return (double)v.value;
}

void rg_misses_stop(struct rg_misses *m, double *l1, double *ll)
{
	ioctl(m->l1, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(m->ll, PERF_EVENT_IOC_DISABLE, 0);
	*l1 = count_of(m->l1);
	*ll = count_of(m->ll);
}
