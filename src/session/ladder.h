/*
 * Measures the ladder (ridge bench ladder): every rung at every shape.
 *
 * A round is one batch of calls between two readings of the clock. Rounds of all rungs of a
 * shape take turns, forwards and backwards, so that drift falls on all of them. The first
 * calls are thrown away, and their result is what the errors are of. A rung that takes long
 * gets fewer rounds, down to one, which for calls above 1.2 s is the first. Roofs are
 * measured at the start and after each shape, and the best of the run counts.
 *
 * Misses come from a pass of their own, on one thread: hardware counters where they open;
 * else, when asked for, by simulation (ladder-sim.h).
 */
#ifndef RG_SESSION_LADDER_H
#define RG_SESSION_LADDER_H

#include "reports/ladder.h"
#include "session/ladder-data.h"

struct rg_ladder_options {
	const struct rg_session_options *session; /* threads, isa, seed, without, progress count */
	int n_shapes;                             /* 0: 64^3 to 1024^3, 128x768x3072 */
	const struct rg_ladder_shape *shapes;
	int n_rungs;                              /* 0: all */
	const char *const *rungs;
	enum rg_ladder_weights weights;
	int rounds;                               /* 0: 15, with quick 7; fewer where a call is long */
	bool quick;
	bool simulate;                            /* misses, where no counter opens */
	const char *program;                      /* that the simulator runs; NULL: this one */
};

/* RG_EUSAGE: no such rung. RG_EINTERRUPTED: nothing is reported. */
int rg_ladder_measure(const struct rg_ladder_options *o, struct rg_ladder_report **out, struct rg_error *err);
void rg_ladder_report_free(struct rg_ladder_report *r);

#endif
