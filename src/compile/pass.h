/*
 * Graph passes: rewrites that leave every output the same up to rounding and make the
 * model take fewer steps. They run on a finished graph whose types and shapes are
 * known, before kernels are chosen (plan.c).
 *
 * Each pass is legal on its own, lives in a file of its own (pass-NAME.c), and says
 * what it did and what it declined and why: both are data (struct rg_pass_note).
 *
 *	level 1   standard operators only
 *	level 2   the same, where rounding may differ more than by the order of a sum
 *	level 3   ONNX Runtime's fused operators (domain com.microsoft) too
 *
 * A second round changes nothing (tests/compile/test-pass.c).
 */
#ifndef RG_COMPILE_PASS_H
#define RG_COMPILE_PASS_H

#include "base/error.h"
#include "graph/graph.h"

enum { RG_PASS_LEVELS = 3 };

/* Why a pattern that was nearly there was left alone. */
enum rg_decline {
	RG_DECLINE_NONE,            /* it was rewritten */
	RG_DECLINE_SECOND_CONSUMER, /* somebody else reads what lies between */
	RG_DECLINE_GRAPH_OUTPUT,    /* what lies between is an output of the graph */
	RG_DECLINE_NOT_CONSTANT,    /* a parameter is computed or given at run time */
	RG_DECLINE_TYPE,            /* not float32 */
	RG_DECLINE_BROADCASTING,    /* shapes that are not those of the producer's output */
	RG_DECLINE_DYNAMIC,         /* shapes are known only while it runs */
	RG_DECLINE_ATTRIBUTE,       /* a variant of the operator that the pass does not rewrite */
	RG_DECLINE_RANGE,           /* numbers so large or small that rounding would differ much */
	RG_DECLINE_KERNEL,          /* no kernel runs the fused operator as fast as its parts */
	RG_DECLINE_NO_PATTERN,      /* no pass knows the two; noted by the plan, of pass "" */
	RG_DECLINE_COUNT,
};
/* "second consumer"; "" for none. */
const char *rg_decline_name(enum rg_decline d);

struct rg_pass_note {
	const char *pass;           /* name of the pass; "": none looks at the pair */
	const char *node, *op_type; /* what it is about: the node that went, or would have gone */
	const char *into;           /* name of the node that it became part of, or would have */
	enum rg_decline decline;
	bool settled;               /* a decline beside a rewrite of `into`, which is not looked at again */
};

/* What passes did to one graph. Names are the graph's: they live as long as it does. */
struct rg_pass_log {
	int level;                  /* of the passes that ran; 0: none */
	int n_notes, room;
	struct rg_pass_note *notes;
	int n_rewritten;            /* notes without a decline */
	int n_dead;                 /* nodes that no output needed, dropped since they read what went */
	int limit;                  /* of n_rewritten (struct rg_pass_options); 0: none */
	int n_pinned;               /* struct rg_pass_options */
	const char *const *pinned;
};
void rg_pass_log_free(struct rg_pass_log *log);
int rg_pass_note(struct rg_pass_log *log, const struct rg_pass_note *note, struct rg_error *err);

struct rg_pass {
	const char *name;           /* "conv-affine" */
	const char *what;           /* one line: what it rewrites and what that saves */
	int level;
	/* Looks at the whole graph once. Returns the number of rewrites, or a negative errno. */
	int (*run)(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err);
	/* Why it is not for a model that is written for others: it makes ridge's own operators (graph/own.h), or
	 * does not pay there, with what was measured. NULL: it is */
	const char *own_only;
	/* Pays in other runtimes only: it runs for a portable model and never for ridge's executor. */
	bool foreign;
};

/* All passes, in the order in which they run. */
int rg_pass_count(void);
const struct rg_pass *rg_pass_at(int i);
/* For tests: one more pass, which runs last; NULL takes it away. Not thread safe. */
void rg_pass_inject(const struct rg_pass *pass);

struct rg_pass_options {
	int level;                  /* 0: none runs */
	int n_disabled;
	const char *const *disabled; /* names of passes that do not run */
	/* Types or names of nodes that stay as they are: kernels were asked for by them */
	int n_pinned;
	const char *const *pinned;
	bool portable;              /* for other runtimes: passes that are own_only do not run, foreign ones do */
	/* Once so many rewrites are noted, patterns are no longer found (one of several nodes is
	 * taken whole): to find the one that went wrong. 0: no limit */
	int limit;
	/* Called behind each pass that has rewritten something, on a graph that is fit to be
	 * inferred and planned. What it returns when not 0 ends the passes. NULL: nobody looks */
	int (*after)(void *ctx, const struct rg_pass *pass, struct rg_graph *g, const struct rg_pass_log *log,
		     struct rg_error *err);
	void *after_ctx;
};
/*
 * Runs the passes. The graph stays finished; types and shapes of new values are known,
 * those of new nodes have to be inferred again (rg_fold_graph). -EINVAL: a disabled pass that does
 * not exist. The log is the caller's, zeroed before, to be freed also on failure.
 */
int rg_passes_run(struct rg_graph *g, const struct rg_pass_options *o, struct rg_pass_log *log, struct rg_error *err);

#endif
