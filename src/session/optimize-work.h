/*
 * What the files of rg_session_optimize share: the work in hand, one rewriting of the model, and what
 * each file offers the others. Nothing else includes it. Functions that give an int
 * give 0, or the error that err holds.
 */
#ifndef RG_SESSION_OPTIMIZE_WORK_H
#define RG_SESSION_OPTIMIZE_WORK_H

#include "compile/plan.h"
#include "session/optimize-prove.h"
#include "session/optimize-sizes.h"
#include "session/optimize.h"

/* A pass that is left out, and why: for its sizes, its opset. */
struct left_out {
	const struct rg_pass *pass;
	const char *why;
};

/* From reading the model to the file. */
struct work {
	const struct rg_optimize_options *o;
	struct rg_optimized *r;
	struct rg_open_sizes sizes;
	struct rg_bindings given;   /* by the person, shapes of input files among them; shapes are ours */
	struct rg_shape *bound;     /* of every input, at the first sizes */
	bool keep_branches;
	int n_out;
	struct left_out *out;       /* room for every pass */
	const char **disabled;      /* by the person, then those left out */
	int64_t opset; /* that the passes need: the model is carried to it before they begin, so that
			  they see what that leaves */
	int64_t most_opset;
	size_t cap_pinned;          /* of r->pinned */
};

/* What one rewriting of the model left behind. */
struct stage {
	const struct rg_pass *pass; /* NULL: before the first */
	char digest[65];
	int n_rewritten;            /* so far */
	struct rg_optimize_cost cost;
};

/* Zeroed but for w and what is asked of it: check_opset, proof, limit, stop_stage. */
struct rewriting {
	struct work *w;
	struct rg_graph *g;
	struct rg_pass_log log;
	int n_stages;
	size_t cap_stages;
	struct stage *stages;       /* one each time that a pass has done something */
	bool check_opset;           /* whether what a pass leaves can be written */
	struct rg_proof *proof;     /* NULL: nothing is run */
	int limit;                  /* of rewrites; 0: none */
	int stop_stage;             /* the graph is left as it is then; 0: never */
	bool stopped;
	const struct rg_pass *bad;  /* the pass behind which something was wrong */
	int n_before_bad;           /* rewrites before it */
	struct rg_difference difference;
	char opset_reason[528];     /* why what `bad` left cannot be written; "" it can */
	double worst;
};

/* optimize-bind.c: how a graph is planned here, filled into *po, which is given back. */
const struct rg_plan_options *rg_optimize_plan_options(const struct work *w, struct rg_plan_options *po);
/* Reads the model once more, bound to its first sizes or its second. *out is NULL before; the caller frees
 * it, also on failure. */
int rg_optimize_open(const struct work *w, bool second, struct rg_graph **out, struct rg_error *err);
/* rg_proof_new of a graph at its first sizes or its second. */
int rg_optimize_proof_new(const struct work *w, const struct rg_graph *g, bool seeded_only, struct rg_proof **out,
			  struct rg_error *err);
/* Whether the model takes these sizes: shapes fit, and where not all are known before, it runs. Sets err only
 * where memory is out or a person has had enough. */
bool rg_optimize_can_take(const struct work *w, bool second, struct rg_error *err);
/* Gives the inputs of the model their first sizes. */
int rg_optimize_find_sizes(struct work *w, struct rg_error *err);
/* Another value for every open size that can have one. The others are fixed. */
int rg_optimize_vary_sizes(struct work *w, struct rg_error *err);
/* Whether any size has a second value. */
bool rg_optimize_varies(const struct work *w);

/* optimize-cost.c: what the graph takes as it is. */
int rg_optimize_measure(const struct rg_graph *g, struct rg_optimize_cost *c, struct rg_error *err);

/* optimize-rewrite.c: runs the passes on the model at its first sizes or at its second. 0 also when one of
 * them left something wrong: t->bad. The caller frees, also on failure. */
int rg_optimize_rewrite(struct rewriting *t, bool second, struct rg_error *err);
void rg_optimize_rewriting_free(struct rewriting *t);
/* Which values are written, one byte each: those that are read, or given out. The caller frees *out, also on
 * failure. */
int rg_optimize_needed_values(const struct rg_graph *g, unsigned char **out, struct rg_error *err);
/* Whether the person or settling has left the pass out. */
bool rg_optimize_is_disabled(const struct work *w, const struct rg_pass *pass);

/* optimize-pin.c: pins the nodes that made the two rewritings part at that stage. *found: how many. */
int rg_optimize_pin_dependent(struct work *w, int stage, int *found, struct rg_error *err);

/* optimize-settle.c: leaves out what cannot be written or does not hold at every size, until all that is
 * left does. *a is the rewriting at the first sizes, without having been run; the caller frees it, also on
 * failure. */
int rg_optimize_settle(struct work *w, struct rewriting *a, struct rg_error *err);

/* optimize-verify.c: runs the model before and after every pass. -EDOM: one changes what it computes. */
int rg_optimize_prove_passes(struct work *w, struct rg_error *err);
/* Reads what was written, and runs that. -EDOM: it computes something else. */
int rg_optimize_prove_file(struct work *w, const char *path, bool second, struct rg_error *err);

/* optimize-report.c: fills w->r with the inputs that became constants, of the graph as it was read. */
int rg_optimize_report_defaults(struct work *w, const struct rg_graph *g, struct rg_error *err);
/* Fills w->r with what each pass did and which sizes are fixed. */
int rg_optimize_report(struct work *w, struct rewriting *a, struct rg_error *err);

#endif
