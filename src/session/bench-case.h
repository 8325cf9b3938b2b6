/*
 * Single operators to measure: a text that says a shape, and the graph of one
 * node that it means. Constants come from base/rng.h, stream (1, the value's
 * name), uniform in [-1, 1), so any process makes the same ones.
 *
 * gemm: "m=128,k=768,n=3072" or "128x768x3072" (MxKxN), then optionally
 *   b=var|const   B is an input, or a weight that may be packed beforehand
 *   ta=1, tb=1    A is stored k x m, B is stored n x k
 *   bias=1        a vector of n is added
 *   batch=12      so many products, each with its own A and B
 *   The operator is MatMul; with ta, tb or bias it is Gemm, which has no batch.
 *
 * conv: "c=64,h=56,w=56,m=64,k=3": channels and size of the input, channels of
 *   the output, kernel; then optionally
 *   stride=2  dilation=2  k=3x5   one number, or height x width
 *   pad=1         one number, height x width, or top x left x bottom x right;
 *                 default: dilation * (k - 1) / 2, which keeps the size at stride 1
 *   group=64      depthwise where it equals c and m
 *   n=1           batch
 *   bias=1        a vector of m is added
 */
#ifndef RG_SESSION_BENCH_CASE_H
#define RG_SESSION_BENCH_CASE_H

#include <stddef.h>

#include "session/session.h"

enum rg_bench_kind { RG_BENCH_GEMM, RG_BENCH_CONV };
/* "gemm", "conv". RG_EUSAGE for another word. */
int rg_bench_kind_parse(const char *word, enum rg_bench_kind *out, struct rg_error *err);

struct rg_bench_case {
	char *name;             /* a text as above, which means this case */
	struct rg_graph *graph; /* one node, finished and bound; output "y" */
	int times;              /* how many nodes of the model are of this shape; 1 without a model */
};

/* Zero-initialise. */
struct rg_bench_set {
	struct rg_bench_case *v;
	size_t n, cap;
};

/*
 * Adds the case that `text` says; gemm without b= adds one with b=var and one
 * with b=const. What is there already is not added again. RG_EUSAGE: the text
 * cannot be read, or the shape is impossible or too large.
 */
int rg_bench_add(struct rg_bench_set *s, enum rg_bench_kind kind, const char *text, struct rg_error *err);
/*
 * Adds each shape among the nodes of o->model once, in order of appearance:
 * MatMul and Gemm, or Conv of two spatial dimensions, of float32. o->bindings
 * close its dimensions. What no text can say (a batch that is broadcast) is left
 * out and counted in *left_out.
 */
int rg_bench_add_model(struct rg_bench_set *s, enum rg_bench_kind kind, const struct rg_session_options *o,
		       int *left_out, struct rg_error *err);
/* gemm: 64^3, 128^3, 256^3, 512^3, 1024^3 and 128x768x3072, both kinds of B.
 * conv: the shapes of builtin:resnet50 and builtin:mobilenet-v2. */
int rg_bench_add_default(struct rg_bench_set *s, enum rg_bench_kind kind, struct rg_error *err);
void rg_bench_set_free(struct rg_bench_set *s);

#endif
