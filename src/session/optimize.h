/*
 * Rewrites a model for whoever runs it, and writes it as ONNX.
 *
 * The passes of src/compile run on the graph at some size of its open dimensions, and
 * once more at another. Where both end in the same model it holds for every size, and the
 * dimensions stay open. Nodes that become something else at the other size are left as they
 * are, or, where a person has given the sizes, those that matter are fixed in the file.
 */
#ifndef RG_SESSION_OPTIMIZE_H
#define RG_SESSION_OPTIMIZE_H

#include "compile/pass.h"
#include "models/model.h"
#include "session/session.h"

struct rg_optimize_options {
	struct rg_session_options session; /* model, bindings, seed, inputs, threads */
	int level;                  /* 0: written as it was read; 1, 2: standard operators; 3: ONNX Runtime's too */
	int n_disabled;
	const char *const *disabled; /* names of passes */
	int64_t opset;              /* that FILE may need at most; 0: the model's own, or 17 */
	bool verify;                /* run it before and after every pass, and as it was written */
};

/* What the graph takes at the sizes that it was rewritten at. */
struct rg_optimize_cost {
	int steps;                  /* nodes that run, those of subgraphs too: no views, nothing that is folded */
	int64_t bytes;              /* that they read and write, each distinct byte once; -1: not known for all */
};

struct rg_optimized_pass {
	const struct rg_pass *pass;
	int n_rewritten;            /* nodes that became part of others */
	int steps_saved;            /* by it; what it leaves to others is theirs */
	int64_t bytes_saved;        /* that steps read and wrote */
	bool bytes_known;
	const char *left_out;       /* why it did not run, though the level takes it; NULL: it ran */
};

/* A size of the model that is fixed in the file. */
struct rg_optimized_size { const char *name; int64_t value; const char *why; };

struct rg_optimized {
	int level;
	int64_t opset_before, opset_after;
	int n_nodes_before, n_nodes_after;
	int n_dead;                 /* nodes that no output needs, left out */
	int64_t weight_bytes_before, weight_bytes_after; /* of constants that are read; -1 unknown */
	bool planned;               /* what follows is known: level 1 and above */
	struct rg_optimize_cost before, after;
	const char *sizes;          /* "x=1x3x640x640": where it was rewritten; "" no inputs */
	bool sizes_given;           /* by a person, all of them */
	int n_passes;
	struct rg_optimized_pass *passes;
	struct rg_pass_log log;     /* what was done and declined */
	int n_fixed;
	struct rg_optimized_size *fixed;
	int n_defaults; /* inputs that have a value in the file they were read from: constants, and no */
	const char **defaults;      /* inputs of what is written */
	int n_pinned;               /* nodes left as they are: what they become depends on open sizes */
	const char **pinned;
	bool verified;
	double worst;               /* largest difference that verifying found, of the largest number of an output,
	                               large inputs not counted */
	struct rg_model *model;     /* as written: owns the names above */
	struct rg_arena *arena;
};

/*
 * Reads o->session.model, rewrites it and writes it to `path`, which is replaced only
 * when all went well; of a link, the file that it leads to. RG_EUSAGE: bindings that fit
 * nothing, a pass that does not exist, or a path that is a folder, a device or a pipe.
 * -EDOM: a pass changed what the model computes; the message names it, the node and
 * the output, and nothing is written. RG_ENOTSUP_MODEL: what cannot be written.
 */
int rg_session_optimize(const struct rg_optimize_options *o, const char *path, struct rg_optimized **out,
			struct rg_error *err);
void rg_optimized_free(struct rg_optimized *r);

#endif
