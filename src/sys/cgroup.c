/*
 * Control group limits. A limit on any ancestor binds, so every folder from
 * our own group up to the mount point is read and the tightest one wins.
 * Inside a container the group's path often does not exist under the mount
 * point; the walk upward then ends at the mount point, which is the
 * container's own group.
 */
#include "sys/cgroup.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/procfs.h"

#define PATH_CAP 4096

/* Is `word` an entry of a comma-separated list of n bytes? */
static bool list_has(const char *list, size_t n, const char *word)
{
	size_t len = strlen(word);
	const char *end = list + n;

	while (list < end) {
		size_t span = strcspn(list, ",: \n");

		if (span > (size_t)(end - list))
			span = (size_t)(end - list);
		if (span == len && memcmp(list, word, len) == 0)
			return true;
		list += span + 1;
	}
	return false;
}

/*
 * Our group's path for a version 1 controller, or for version 2 with NULL.
 * /proc/self/cgroup has lines "id:controllers:path"; version 2 is "0::path".
 */
static bool group_path(const char *root, const char *controller, char *out, size_t cap)
{
	char path[PATH_CAP], text[8192], *line, *next;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	if (!rg_read_small(path, text, sizeof(text)))
		return false;
	for (line = text; line && *line; line = next) {
		char *list = strchr(line, ':'), *where;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		where = list ? strchr(list + 1, ':') : NULL;
		if (!where || where[1] != '/' || strstr(where, "/../"))
			continue;
		if (controller ? !list_has(list + 1, (size_t)(where - list - 1), controller)
			       : where != list + 1)
			continue;
		if (snprintf(out, cap, "%s", where + 1) >= (int)cap)
			return false;
		return true;
	}
	return false;
}

/* Where the hierarchy is mounted; /proc/mounts has "device point type options". */
static bool mount_point(const char *root, const char *controller, char *out, size_t cap)
{
	char path[PATH_CAP], line[PATH_CAP], point[1024], type[64], options[1024];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/mounts", root);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %1023s %63s %1023s", point, type, options) != 3)
			continue;
		if (controller)
			found = strcmp(type, "cgroup") == 0 && list_has(options, strlen(options), controller);
		else
			found = strcmp(type, "cgroup2") == 0;
		found = found && snprintf(out, cap, "%s", point) < (int)cap;
	}
	fclose(f);
	return found;
}

static void tighten(double *limit, double v)
{
	if (!isnan(v) && v > 0 && (isnan(*limit) || v < *limit))
		*limit = v;
}

static double read_number(const char *folder, const char *file)
{
	char path[PATH_CAP + 64], text[64], *end;
	double v;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (!rg_read_small(path, text, sizeof(text)))
		return NAN;
	v = strtod(text, &end);
	return end == text ? (double)NAN : v; /* "max" is no number: no limit */
}

static double quota_v1(const char *folder)
{
	double quota = read_number(folder, "cpu.cfs_quota_us");
	double period = read_number(folder, "cpu.cfs_period_us");

	return quota > 0 && period > 0 ? quota / period : (double)NAN; /* -1: no limit */
}

static double quota_v2(const char *folder)
{
	char path[PATH_CAP + 64], text[64];
	double quota, period;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	if (!rg_read_small(path, text, sizeof(text)) || sscanf(text, "%lf %lf", &quota, &period) != 2)
		return NAN;
	return quota > 0 && period > 0 ? quota / period : (double)NAN;
}

static double memory_v1(const char *folder)
{
	double v = read_number(folder, "memory.limit_in_bytes");

	/* "Unlimited" is LONG_MAX rounded down to a page. */
	return v < 9.2e18 ? v : (double)NAN;
}

static double memory_v2(const char *folder)
{
	return read_number(folder, "memory.max");
}

/* Calls `read` on our group and every ancestor up to the mount point. */
static void walk(const char *root, const char *controller, double (*read_limit)(const char *), double *limit)
{
	char point[1024], group[1024], folder[PATH_CAP], *cut;
	size_t base;

	if (!mount_point(root, controller, point, sizeof(point)))
		return;
	if (!group_path(root, controller, group, sizeof(group)))
		group[0] = '\0';
	base = strlen(root) + strlen(point);
	if (snprintf(folder, sizeof(folder), "%s%s%s", root, point, group) >= (int)sizeof(folder))
		return;
	for (;;) {
		tighten(limit, read_limit(folder));
		if (strlen(folder) <= base)
			break;
		cut = strrchr(folder + base, '/');
		if (!cut)
			break;
		*cut = '\0';
	}
}

double rg_cgroup_quota_cpus(const char *root)
{
	double limit = NAN;

	walk(root, NULL, quota_v2, &limit);
	walk(root, "cpu", quota_v1, &limit);
	return limit;
}

int64_t rg_cgroup_memory_bytes(const char *root)
{
	double limit = NAN;

	walk(root, NULL, memory_v2, &limit);
	walk(root, "memory", memory_v1, &limit);
	return isnan(limit) || limit >= 9.2e18 ? 0 : (int64_t)limit;
}
