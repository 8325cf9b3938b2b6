/* Where a rung's cache misses come from: counters, the simulator, or nowhere and why. */
#ifndef RG_SESSION_LADDER_MISSES_H
#define RG_SESSION_LADDER_MISSES_H

#include "session/ladder-run.h"
#include "session/ladder.h"

#define RG_LADDER_REASON 256

struct rg_ladder_misses;
/* isa: of the CPU, whatever --isa says. */
int rg_ladder_misses_new(const struct rg_topology *t, uint32_t isa, const struct rg_ladder_options *o,
			 struct rg_ladder_misses **out, struct rg_error *err);
void rg_ladder_misses_free(struct rg_ladder_misses *m);
/*
 * Fills misses and their provenance in row, or says in reason why they are unknown, which is
 * no error. `kernel` with the bits `isa` is what was timed.
 */
int rg_ladder_misses_count(struct rg_ladder_misses *m, const struct rg_ladder_name *name, const char *kernel,
			   uint32_t isa, const struct rg_ladder_data *d, struct rg_ladder_row *row,
			   char reason[RG_LADDER_REASON], struct rg_error *err);
/* The geometry, where something was simulated; "". */
const char *rg_ladder_misses_simulator(const struct rg_ladder_misses *m);

#endif
