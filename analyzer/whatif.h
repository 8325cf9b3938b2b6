/*
 * What if an operator were faster? The recorded schedule is replayed with the
 * step's spans divided by the speedup (gaps kept, data edges and lane order
 * kept), beside Amdahl's bound (AFIPS 1967): 1 / ((1 - p) + p / s), with p the
 * share of wall time.
 */
#ifndef RG_ANALYZER_WHATIF_H
#define RG_ANALYZER_WHATIF_H

#include "analyzer/ops.h"

struct rg_whatif {
	int n_steps;             /* how many steps matched */
	double share;            /* p, of the wall time */
	double speedup;          /* s; INFINITY: the operator removed */
	double before_ns;        /* median wall time of the replayed iterations */
	double after_ns;         /* replayed */
	double after_low_ns, after_high_ns; /* 95 % over the iterations */
	double gain;             /* before / after */
	double amdahl_gain;      /* before over the median of what Amdahl's law leaves of each
	                            iteration: gain is never above it for a speedup over 1 */
	double limit_gain;       /* the same with s infinite */
	int n_iterations;        /* replayed */
	bool cold;               /* none of the timing pass: the run was stopped early */
};

/* `op`: a node name, or an operator type (then all of that type), case as in
 * the model. -ENOENT lists close names. */
int rg_whatif_speedup(const struct rg_analysis *a, const char *op, double speedup,
		      struct rg_whatif *out, struct rg_error *err);

#endif
