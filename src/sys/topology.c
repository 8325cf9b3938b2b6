/*
 * Cores, caches and memory from sysfs and procfs. CPU lists and sizes come
 * from files that a container or a test may have replaced, so every number is
 * checked before it is used as an index.
 */
#include "sys/topology.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "sys/cgroup.h"
#include "sys/procfs.h"

struct cpu_set {
	bool has[RG_MAX_CPUS];
	int count;
};

static void set_add(struct cpu_set *s, long cpu)
{
	if (cpu < 0 || cpu >= RG_MAX_CPUS || s->has[cpu])
		return;
	s->has[cpu] = true;
	s->count++;
}

/* "0-3,8,10-11"; false when the text is not such a list. */
static bool set_parse_list(struct cpu_set *s, const char *text)
{
	memset(s, 0, sizeof(*s));
	while (*text) {
		char *end;
		long from, to;

		if (!isdigit((unsigned char)*text))
			return false;
		from = to = strtol(text, &end, 10);
		if (*end == '-') {
			text = end + 1;
			to = strtol(text, &end, 10);
			if (end == text)
				return false;
		}
		if (to < from || to > 1000000)
			return false;
		if (to >= RG_MAX_CPUS)
			to = RG_MAX_CPUS - 1;
		for (; from <= to; from++)
			set_add(s, from);
		text = end;
		if (*text == ',')
			text++;
		else if (*text && *text != '\n' && *text != ' ')
			return false;
		else
			break;
	}
	return s->count > 0;
}

/* "00000000,0000000f": words of 32 bits, most significant first. */
static bool set_parse_mask(struct cpu_set *s, const char *text)
{
	size_t len = strcspn(text, "\n"), i;
	int shift = 0;

	memset(s, 0, sizeof(*s));
	for (i = len; i-- > 0;) {
		int c = tolower((unsigned char)text[i]), v, k;

		if (c == ',')
			continue;
		if (!isxdigit(c))
			return false;
		v = isdigit(c) ? c - '0' : c - 'a' + 10;
		for (k = 0; k < 4; k++)
			if (v >> k & 1)
				set_add(s, shift + k);
		shift += 4;
	}
	return s->count > 0;
}

static bool read_cpu(const char *root, int cpu, const char *file, char *buf, size_t cap)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%d/%s", root, cpu, file);
	return rg_read_small(path, buf, cap);
}

/* A list file, or the mask file that older kernels have instead. */
static bool read_cpu_set(const char *root, int cpu, const char *list, const char *mask, struct cpu_set *s)
{
	char buf[4096];

	if (list && read_cpu(root, cpu, list, buf, sizeof(buf)) && set_parse_list(s, buf))
		return true;
	return mask && read_cpu(root, cpu, mask, buf, sizeof(buf)) && set_parse_mask(s, buf);
}

static bool read_online(const char *root, struct cpu_set *s)
{
	char path[4096], buf[4096];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/online", root);
	if (rg_read_small(path, buf, sizeof(buf)) && set_parse_list(s, buf))
		return true;
	/* Kernels before 2.6.30 have no such list: count the folders that are not switched off. */
	memset(s, 0, sizeof(*s));
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu", root);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		int cpu, used = 0;

		if (sscanf(entry->d_name, "cpu%d%n", &cpu, &used) != 1 || entry->d_name[used] != '\0')
			continue;
		if (read_cpu(root, cpu, "online", buf, sizeof(buf)) && strcmp(buf, "0") == 0)
			continue;
		set_add(s, cpu);
	}
	closedir(dir);
	return s->count > 0;
}

/* The affinity mask: the kernel's for this machine, the recorded one under a root. */
static bool read_allowed(const char *root, const struct cpu_set *online, struct cpu_set *s)
{
	char path[4096], buf[8192];
	const char *at;
	cpu_set_t mask;
	int i;

	if (!root[0] && sched_getaffinity(0, sizeof(mask), &mask) == 0) {
		memset(s, 0, sizeof(*s));
		for (i = 0; i < RG_MAX_CPUS && i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &mask))
				set_add(s, i);
		return s->count > 0;
	}
	snprintf(path, sizeof(path), "%s/proc/self/status", root);
	if (root[0] && rg_read_small(path, buf, sizeof(buf)) && (at = strstr(buf, "Cpus_allowed_list:\t")) &&
	    set_parse_list(s, at + strlen("Cpus_allowed_list:\t")))
		return true;
	*s = *online;
	return s->count > 0;
}

/* The lowest CPU of the same core names the core. */
static int core_of(const char *root, int cpu)
{
	struct cpu_set s;
	int i;

	if (!read_cpu_set(root, cpu, "topology/core_cpus_list", "topology/core_cpus", &s) &&
	    !read_cpu_set(root, cpu, "topology/thread_siblings_list", "topology/thread_siblings", &s))
		return cpu;
	for (i = 0; i < RG_MAX_CPUS; i++)
		if (s.has[i])
			return i;
	return cpu;
}

static int64_t parse_size(const char *text)
{
	char *end;
	long long v = strtoll(text, &end, 10);
	int64_t unit = *end == 'K' ? 1024 : *end == 'M' ? 1024 * 1024 : 1, out;

	if (end == text || v < 0 || __builtin_mul_overflow((int64_t)v, unit, &out))
		return 0;
	return out;
}

static int64_t read_cache_number(const char *root, int cpu, int index, const char *name)
{
	char file[64], buf[64];

	snprintf(file, sizeof(file), "cache/index%d/%s", index, name);
	return read_cpu(root, cpu, file, buf, sizeof(buf)) ? parse_size(buf) : 0;
}

static void read_caches(const char *root, int cpu, struct rg_topology *out)
{
	int index;

	for (index = 0; index < 16; index++) {
		char file[64], mask[64], buf[64];
		struct cpu_set shared;
		struct rg_cache c = { 0 };
		int64_t level;
		int at;

		snprintf(file, sizeof(file), "cache/index%d/type", index);
		if (!read_cpu(root, cpu, file, buf, sizeof(buf)))
			break;
		level = read_cache_number(root, cpu, index, "level");
		c.size_bytes = read_cache_number(root, cpu, index, "size");
		if (strcmp(buf, "Instruction") == 0 || level < 1 || level > RG_MAX_CACHES ||
		    c.size_bytes <= 0)
			continue;
		c.level = (int)level;
		c.line_bytes = read_cache_number(root, cpu, index, "coherency_line_size");
		c.ways = (int)(read_cache_number(root, cpu, index, "ways_of_associativity") & 0xffff);
		snprintf(file, sizeof(file), "cache/index%d/shared_cpu_list", index);
		snprintf(mask, sizeof(mask), "cache/index%d/shared_cpu_map", index);
		if (read_cpu_set(root, cpu, file, mask, &shared))
			c.shared_by_cpus = shared.count;
		if (out->n_caches == RG_MAX_CACHES)
			break;
		for (at = out->n_caches++; at > 0 && out->caches[at - 1].level > c.level; at--)
			out->caches[at] = out->caches[at - 1];
		out->caches[at] = c;
	}
}

static int64_t read_memory(const char *root)
{
	char path[4096], buf[4096];
	int64_t limit = rg_cgroup_memory_bytes(root), total = 0;
	long long kib;
	const char *at;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	if (rg_read_small(path, buf, sizeof(buf)) && (at = strstr(buf, "MemTotal:")) &&
	    sscanf(at, "MemTotal: %lld", &kib) == 1 && kib > 0 && kib <= INT64_MAX / 1024)
		total = (int64_t)kib * 1024;
	return limit > 0 && (total == 0 || limit < total) ? limit : total;
}

/* "always [madvise] never": the one in brackets. */
static void read_thp(const char *root, char *out, size_t cap)
{
	char path[4096], buf[128], *from, *to;

	snprintf(path, sizeof(path), "%s/sys/kernel/mm/transparent_hugepage/enabled", root);
	if (!rg_read_small(path, buf, sizeof(buf)))
		return;
	from = strchr(buf, '[');
	to = from ? strchr(from, ']') : NULL;
	if (to)
		snprintf(out, cap, "%.*s", (int)(to - from - 1), from + 1);
}

static void read_kernel(const char *root, char *out, size_t cap)
{
	char path[4096], buf[256];
	struct utsname u;

	if (!root[0]) {
		if (uname(&u) == 0)
			snprintf(out, cap, "%.*s", (int)cap - 1, u.release);
		return;
	}
	snprintf(path, sizeof(path), "%s/proc/sys/kernel/osrelease", root);
	if (rg_read_small(path, buf, sizeof(buf)))
		snprintf(out, cap, "%.*s", (int)cap - 1, buf);
}

void rg_topology_read(const char *root, struct rg_topology *out)
{
	struct cpu_set online, allowed;
	char buf[64];
	int i, k;

	memset(out, 0, sizeof(*out));
	out->online_cpus = out->cores = -1;
	out->quota_cpus = rg_cgroup_quota_cpus(root);
	out->memory_bytes = read_memory(root);
	read_thp(root, out->thp, sizeof(out->thp));
	read_kernel(root, out->kernel, sizeof(out->kernel));
	if (read_online(root, &online))
		out->online_cpus = online.count;
	else
		memset(&online, 0, sizeof(online));
	if (!read_allowed(root, &online, &allowed))
		return;
	out->cores = 0;
	for (i = 0; i < RG_MAX_CPUS; i++) {
		if (!allowed.has[i])
			continue;
		out->allowed[out->n_allowed] = i;
		out->core_of[out->n_allowed] = core_of(root, i);
		for (k = 0; k < out->n_allowed; k++)
			if (out->core_of[k] == out->core_of[out->n_allowed])
				break;
		if (k < out->n_allowed)
			out->smt = true;
		else
			out->cores++;
		out->n_allowed++;
	}
	read_caches(root, out->allowed[0], out);
	if (read_cpu(root, out->allowed[0], "cpufreq/scaling_governor", buf, sizeof(buf)))
		snprintf(out->governor, sizeof(out->governor), "%.31s", buf);
}

int rg_topology_default_threads(const struct rg_topology *t)
{
	int n = t->cores > 0 ? t->cores : 1;

	/* More threads than the quota would all be stopped for the rest of each period. */
	if (!isnan(t->quota_cpus) && t->quota_cpus < n)
		n = (int)t->quota_cpus;
	return n < 1 ? 1 : n;
}

void rg_topology_pin_order(const struct rg_topology *t, int *cpus)
{
	int n = 0;

	for (int round = 0; n < t->n_allowed && round < t->n_allowed; round++) {
		for (int i = 0; i < t->n_allowed; i++) {
			int before = 0; /* CPUs of the same core that come earlier */

			for (int k = 0; k < i; k++)
				before += t->core_of[k] == t->core_of[i];
			if (before == round)
				cpus[n++] = t->allowed[i];
		}
	}
}

int rg_thread_pin(int cpu, struct rg_error *err)
{
	cpu_set_t mask;
	int rc;

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return rg_error_set(err, -EINVAL, "cannot pin a thread to CPU %d: no such CPU", cpu);
	CPU_ZERO(&mask);
	CPU_SET(cpu, &mask);
	rc = pthread_setaffinity_np(pthread_self(), sizeof(mask), &mask);
	if (rc) {
		rg_error_set(err, -rc, "cannot pin a thread to CPU %d: %s", cpu, strerror(rc));
		return rg_error_hint(err, "choose CPUs that  taskset -cp $$  lists");
	}
	return 0;
}
