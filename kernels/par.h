/*
 * How a kernel splits its work, without knowing about threads. The executor's
 * pool implements it; tests use rg_par_serial.
 */
#ifndef RG_KERNELS_PAR_H
#define RG_KERNELS_PAR_H

#include <stddef.h>
#include <stdint.h>

/* Works on items [begin, end). `lane` is in [0, lanes) and is held by one
 * thread at a time, so it can index per-lane scratch. */
typedef void rg_par_fn(void *arg, int64_t begin, int64_t end, int lane);

struct rg_par {
	int lanes; /* >= 1 */
	/*
	 * Splits items [0, n) into chunks of at least `grain` items and runs them
	 * on the lanes; returns when all are done. A lane begins with its own part
	 * of the items, in order, the same for every loop of this length, and ends
	 * with what is left of the others'. With n <= grain everything runs on the
	 * caller. A kernel
	 * picks `grain` so that a chunk is worth waking a lane (about 20 us).
	 * Not re-entrant: fn must not call run again.
	 */
	void (*run)(const struct rg_par *par, int64_t n, int64_t grain, rg_par_fn *fn, void *arg);
	void *ctx;
};

/* One lane, the caller's. */
extern const struct rg_par rg_par_serial;

#endif
