/*
 * The ladder (ridge bench ladder): rows of figures, and what is made of them. The session
 * fills the rows; everything here is a function of them alone.
 */
#ifndef RG_REPORTS_LADDER_H
#define RG_REPORTS_LADDER_H

#include "reports/plot.h"
#include "reports/report.h"

/* One rung at one shape. Rates and times are NAN and counts -1 where unknown. */
struct rg_ladder_row {
	int64_t m, k, n;
	const char *rung;        /* "naive", ..., "ridge", "openblas", "int8-scalar", ..., "int8-ridge" */
	bool int8;
	const char *kernel;      /* of the registry, or the level of instructions: "avx2" */
	int threads;
	int rounds;              /* 0: not run, see reason */
	int64_t calls;           /* in a round */
	double ns, ns_low, ns_high; /* of a call: median, fastest and slowest round (NAN: of one round) */
	double gops;             /* 10^9 operations a second at the median, 2 a multiply-add */
	const char *roof;        /* the ceiling's level: "peak", "int8 pairs"; NULL unknown */
	double roof_fraction;
	double memory_ns;        /* modelled: compulsory bytes over the bandwidth of the level that holds them */
	double max_error;        /* largest |difference| from the oracle */
	double relative_error;   /* that over the largest |result| of the oracle */
	int64_t wrong;           /* int8: how many results differ from the int64 sum */
	double pairs_share, quads_share; /* of groups of 2 and 4 int8 weights that cannot saturate in 16 bits */
	double l1_misses, ll_misses; /* data, of one product on one thread; simulated: reads and writes, measured: reads */
	enum rg_provenance misses_provenance;
	const char *misses_reason; /* why there are none; "" */
	const char *reason;      /* why it was not run; "" */
};

struct rg_ladder_report {
	int threads;
	bool pinned;
	const char *isa;
	const char *weights;     /* "normal", "adversarial" */
	const char *simulator;   /* the geometry that was simulated; "" nothing was */
	int n_rows;
	struct rg_ladder_row *rows; /* shape after shape, each from the first rung to the last */
	int n_ceilings;
	struct rg_ceiling_row *ceilings;
};

/* What the rows say, in sentences, one a line: which step bought what, where int8 pays and
 * where it does not and why, how near the roof, how exact. */
void rg_ladder_say(struct rg_str *out, const struct rg_ladder_row *rows, int n);
/* Table with those sentences, JSON, CSV, Markdown. 0, -ENOMEM, -EINVAL. */
int rg_report_ladder(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_style *st);
/* The gnuplot script. -ENODATA: no row has a rate. */
int rg_plot_ladder_script(struct rg_str *out, const struct rg_ladder_report *r, const struct rg_plot_options *o,
			  struct rg_error *err);

#endif
