/*
 * The operator table: one entry an operator, with every published version,
 * what the version needs, shape inference and cost.
 *
 * Published versions are facts of the ONNX operator changelog (opset 28). An
 * entry lists all of them in `versions`, and says in `supported` which of them
 * the kernels implement: a model whose opset selects another one is refused by
 * name rather than run with the wrong meaning.
 *
 * Entries live in op-<family>.c, one file a family, and are joined in op.c.
 */
#ifndef RG_GRAPH_OP_H
#define RG_GRAPH_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

#define RG_ONNX_OPSET_NEWEST 28
#define RG_OP_MAX_VERSIONS 16

enum rg_op_kind { /* for "which kind of operator holds the FLOPs" */
	RG_KIND_GEMM,
	RG_KIND_CONV,
	RG_KIND_ATTENTION,
	RG_KIND_ELEMENTWISE,
	RG_KIND_NORM,      /* normalisation and softmax */
	RG_KIND_REDUCE,
	RG_KIND_POOL,
	RG_KIND_RNN,
	RG_KIND_MOVE,      /* moves data, computes nothing */
	RG_KIND_QUANT,
	RG_KIND_CONTROL,
	RG_KIND_OTHER,
	RG_KIND_COUNT
};
const char *rg_op_kind_name(enum rg_op_kind k); /* "gemm", "conv", ... */

enum rg_op_flags {
	/* output 0 is input 0 with another shape: the planner may alias them, when
	 * output 0 is the only one that is wanted (Dropout has a mask beside it) */
	RG_OP_VIEW = 1u << 0,
	/* output depends on more than its inputs (RandomNormal): never folded */
	RG_OP_IMPURE = 1u << 1,
	/* outputs depend on the shapes of the inputs alone (Shape, Size): folded
	 * although the inputs are not known; kernels do not touch in[].data */
	RG_OP_SHAPE_ONLY = 1u << 2,
	/* the executor runs it itself, no kernel does: control flow, and what works
	 * on sequences and optionals. It and all that reads it run on the dynamic path */
	RG_OP_EXEC = 1u << 3,
};

/*
 * What shape inference of one node sees. Inputs that are absent are NULL.
 * Every present input is shaped. in[i]->data is set when its value is known
 * (rg_infer_known).
 */
struct rg_infer {
	const struct rg_graph *graph;
	const struct rg_node *node;
	const struct rg_value *const *in;
	struct rg_tensor *out;  /* dtype and shape to fill; data stays NULL */
	int need_value;         /* set with RG_ENEED_VALUE: index of the input */
};

/*
 * Costs from shapes alone. A count that no formula gives is -1, never 0.
 * flops counts useful floating-point operations, a multiply-add is 2; iops the
 * same for integers; sfu counts exp, tanh, erf, div, sqrt and their like, kept
 * apart from flops. read and write are compulsory bytes: each distinct byte
 * once (a gather counts the rows it touches).
 */
struct rg_cost {
	int64_t flops, iops, sfu;
	int64_t read_bytes, write_bytes;
};

/* Inputs and outputs of one node, typed and shaped; absent: dtype RG_UNDEFINED. */
struct rg_cost_in {
	const struct rg_node *node;
	const struct rg_tensor *in;  /* n_in; data set where the value is constant */
	const struct rg_tensor *out; /* n_out */
};

struct rg_op {
	const char *domain;  /* "" is the standard one */
	const char *name;
	enum rg_op_kind kind;
	unsigned flags;
	short min_in, max_in;   /* max -1: variadic */
	short min_out, max_out;
	short versions[RG_OP_MAX_VERSIONS];  /* all published since_versions, ascending, 0 ends */
	short supported_from, supported_to;  /* since_versions implemented, inclusive */
	/* Fills c->out. RG_ENEED_VALUE with c->need_value set when the shape
	 * depends on the value of an input that is not known. */
	int (*infer)(struct rg_infer *c, struct rg_error *err);
	/* NULL: the default (elementwise: one operation an output element for
	 * float outputs; MOVE: none; others unknown). Bytes default to all inputs
	 * and outputs once and need not be set: they arrive filled in. */
	void (*cost)(const struct rg_cost_in *c, struct rg_cost *out);
};

/* Whether inference may read the value of an input. A known one with no
 * elements has NULL data. */
static inline bool rg_infer_known(const struct rg_infer *c, int input)
{
	return input < c->node->n_in && c->in[input] && c->in[input]->origin != RG_CONST_NONE;
}

/* Stands for what cannot run (rg_node.unsupported): outputs as the file declares
 * them, costs unknown. Not in the table. */
extern const struct rg_op rg_op_unsupported;

/* The entry, or NULL. "ai.onnx" and "" are the same domain. */
const struct rg_op *rg_op_find(const char *domain, const char *name);
/* The since_version that a model of this opset uses; 0: the operator is newer. */
int rg_op_version(const struct rg_op *op, int64_t opset);
/* Iterates over the table. */
int rg_op_count(void);
const struct rg_op *rg_op_at(int i);
/* Cost of a node with the defaults applied. */
void rg_op_cost(const struct rg_op *op, const struct rg_cost_in *c, struct rg_cost *out);

/* ---- helpers for inference functions ---- */
int rg_infer_fail(struct rg_infer *c, struct rg_error *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* out[i] = dtype and shape; an output that is not wanted is skipped. */
void rg_infer_out(struct rg_infer *c, int i, enum rg_dtype t, const struct rg_shape *s);
/* Reads a constant int32 or int64 input of at most `cap` elements into vals.
 * Returns the count, or RG_ENEED_VALUE (with need_value set), or an error. */
int rg_infer_ints(struct rg_infer *c, int input, int64_t *vals, int cap, struct rg_error *err);
/* Normalises an axis in [-rank, rank); error otherwise. Where the axis one past the
 * end is allowed, pass rank + 1. */
int rg_infer_axis(struct rg_infer *c, int64_t axis, int rank, struct rg_error *err);
/* The two commonest: output 0 like input 0; numpy broadcast of all inputs. */
int rg_infer_same(struct rg_infer *c, struct rg_error *err);
int rg_infer_broadcast(struct rg_infer *c, struct rg_error *err);

#endif
