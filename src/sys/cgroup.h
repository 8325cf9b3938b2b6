/*
 * Limits that the control groups of this process set, version 1 and 2.
 */
#ifndef RG_SYS_CGROUP_H
#define RG_SYS_CGROUP_H

#include <stdint.h>

/*
 * The tightest CPU quota of the group and all its ancestors, in CPUs (1.5 is
 * 150 ms of each 100 ms); NAN: no limit, or unknown.
 */
double rg_cgroup_quota_cpus(const char *root);
/* The tightest memory limit on the way up, bytes; 0: none, or unknown. */
int64_t rg_cgroup_memory_bytes(const char *root);

#endif
