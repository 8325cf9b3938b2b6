/*
 * Small reads from procfs and sysfs: resident size, load, steal time, limits.
 */
#ifndef RG_SYS_PROCFS_H
#define RG_SYS_PROCFS_H

#include <stdint.h>
#include <stddef.h>
#include <stdbool.h>

/* Reads a small text file into buf, strips the final newline. false: unreadable. */
bool rg_read_small(const char *path, char *buf, size_t cap);
/* VmRSS and VmHWM of this process, bytes; -1 unknown. */
int64_t rg_proc_rss_bytes(void);
int64_t rg_proc_peak_rss_bytes(void);
/* Starts VmHWM anew from the current size (proc(5), clear_refs); false: not allowed. */
bool rg_proc_reset_peak_rss(void);
/* 1-minute load average; NAN unknown. */
double rg_proc_load1(const char *root);
/* Steal time of all CPUs since boot, in clock ticks, and total ticks. false: unknown. */
bool rg_proc_steal_ticks(const char *root, uint64_t *steal, uint64_t *total);
/* A process's start time in ticks since boot (field 22 of stat); 0: no such process. */
uint64_t rg_proc_start_ticks(int pid);
/* The boot id, 36 characters; "" unknown. out has at least 40 bytes. */
void rg_proc_boot_id(char *out);

#endif
