/* Texts of shapes, both ways: what bench-case.c makes graphs from. */
#ifndef RG_SESSION_BENCH_TEXT_H
#define RG_SESSION_BENCH_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

struct rg_bench_gemm {
	int64_t m, k, n, batch;  /* batch 0: none, rank 2 */
	bool trans_a, trans_b, bias;
	int b_const;             /* -1: not said */
};

struct rg_bench_conv {
	int64_t n, c, h, w, m, group;
	int64_t kernel[2], stride[2], dilation[2];
	int64_t pad[4];          /* top, left, bottom, right */
	bool bias;
};

int rg_bench_gemm_parse(const char *text, struct rg_bench_gemm *out, struct rg_error *err);
int rg_bench_conv_parse(const char *text, struct rg_bench_conv *out, struct rg_error *err);
/* The text that means it, without what is the default. */
void rg_bench_gemm_text(struct rg_str *s, const struct rg_bench_gemm *g);
void rg_bench_conv_text(struct rg_str *s, const struct rg_bench_conv *c);

#endif
