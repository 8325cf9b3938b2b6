/*
 * Time. One clock for the whole project: CLOCK_MONOTONIC_RAW through the vDSO,
 * nanoseconds since an arbitrary start, never adjusted.
 */
#ifndef RG_BASE_CLOCK_H
#define RG_BASE_CLOCK_H

#include <stdint.h>

uint64_t rg_clock_now_ns(void);
/* Wall time, for people and file names only. Nanoseconds since 1970. */
uint64_t rg_clock_wall_ns(void);
/* Median cost of one rg_clock_now_ns call, measured now over many calls. */
double rg_clock_cost_ns(void);

#endif
