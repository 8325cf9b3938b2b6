/*
 * Rewrites a graph so that its products and convolutions work on eight bits.
 *
 * Static: QuantizeLinear and DequantizeLinear around them, which every runtime can run as
 * they stand, in float32, and which those that know the pattern turn into integer operators.
 * Dynamic: DynamicQuantizeLinear, MatMulInteger, Cast and Mul.
 *
 *   rg_quantize_find       which operators can be quantised, and which values each reads
 *   rg_quantize_static     rewrites those that are switched on, given the range of each value
 *   rg_quantize_dynamic    the same without ranges
 *
 * Weights are int8 with zero point 0 and -127 to 127, one scale a channel of the output. Activations are
 * uint8, or int8 with zero point 0. A constant bias is int32 in steps of the two scales' product, as the
 * accumulator of an integer kernel is.
 */
#ifndef RG_COMPILE_QUANTIZE_H
#define RG_COMPILE_QUANTIZE_H

#include "base/error.h"
#include "base/quantize.h"
#include "base/range.h"
#include "graph/graph.h"

struct rg_quantize_options {
	bool dynamic;
	bool per_tensor;            /* one scale a weight */
	bool symmetric;             /* activations int8 with zero point 0, else uint8 */
	int n_also;                 /* types beyond Conv, Gemm and MatMul: those of rg_quantize_may */
	const char *const *also;
};

enum { RG_QUANTIZE_ACTS = 2 };

/* One operator that can be quantised. Values and nodes are indices of the graph. */
struct rg_quantize_site {
	int node;
	int n_act;
	int slot[RG_QUANTIZE_ACTS]; /* inputs of the node that are activations */
	int act[RG_QUANTIZE_ACTS];  /* and their values */
	int weight;                 /* constant, input 1; -1: there is none */
	int axis;                   /* of its channels; -1: one scale for all */
	int bias;                   /* constant, input 2, one number a channel; -1: none, or it stays as it is */
	int output;                 /* value that is quantised behind it: its own, or that of a Relu or Clip
	                               that alone reads it; -1: the operator hands float32 on */
	int last;                   /* the node that makes `output` */
};

/* An operator of a type that is quantised, and why it is not. */
struct rg_quantize_left { int node; const char *why; };

struct rg_quantize_sites {
	int n;
	struct rg_quantize_site *v; /* in the order of the graph */
	int n_left;
	struct rg_quantize_left *left;
};

/* Types that `also` may name: those that have an integer kernel somewhere. */
bool rg_quantize_may(const char *op_type);
const char *rg_quantize_may_list(void); /* "Add, Mul, ..." */

/* The graph is finished and inferred. -ENOMEM. */
int rg_quantize_find(const struct rg_graph *g, const struct rg_quantize_options *o, struct rg_quantize_sites *out,
		     struct rg_error *err);
void rg_quantize_sites_free(struct rg_quantize_sites *s);

/*
 * What `value` is quantised with when the sites with on[i] set are: its own range's, or, behind operators that
 * only move values (MaxPool, Reshape, Slice, ...) below a value that is quantised, that one's, so
 * that nothing is rounded twice.
 */
struct rg_qparams rg_quantize_params(const struct rg_graph *g, const struct rg_quantize_options *o,
				     const struct rg_quantize_sites *s, const bool *on,
				     const struct rg_range *ranges, int value);
/*
 * Rewrites a finished graph of opset 13 or later. on: s->n. ranges: by value, those of `act` and `output` known.
 * The graph is finished again; types and shapes have to be inferred again.
 */
int rg_quantize_static(struct rg_graph *g, const struct rg_quantize_options *o, const struct rg_quantize_sites *s,
		       const bool *on, const struct rg_range *ranges, struct rg_error *err);
/* The same, of opset 11 or later. */
int rg_quantize_dynamic(struct rg_graph *g, const struct rg_quantize_options *o, const struct rg_quantize_sites *s,
			const bool *on, struct rg_error *err);

/* ---- what both share: quantize-weights.c ---- */

/* A weight in integers, as constants of the graph. */
struct rg_quantize_weight {
	int q, scale, zero;         /* values */
	int bias, bias_scale;       /* int32 and its scales; -1: it stays float */
	int64_t channels;           /* 1: per tensor */
};
/*
 * Quantises the weight of a site. act_scale: of the activation, for the bias; 0: the bias is not asked for. A
 * channel's scale is widened where its bias would not fit 32 bits beside the sum. transpose: a matrix is
 * stored the other way around. same: the same weight with the same axis, made before, or NULL: where the scales
 * come out equal its constants are taken.
 */
int rg_quantize_make_weight(struct rg_graph *g, const struct rg_quantize_site *s, float act_scale, bool transpose,
			    const struct rg_quantize_weight *same, struct rg_quantize_weight *out,
			    struct rg_error *err);
/* A node with that name and attributes none or `axis`; negative: errno. */
int rg_quantize_add_node(struct rg_graph *g, const char *op_type, const char *name, int n_in, const int *in, int out,
			 int64_t axis, struct rg_error *err);
/* A scalar constant. */
int rg_quantize_scalar(struct rg_graph *g, const char *base, const char *what, enum rg_dtype dtype, double value,
		       struct rg_error *err);
/* A value that a new node makes. */
int rg_quantize_value(struct rg_graph *g, const char *base, const char *what, struct rg_error *err);

#endif
