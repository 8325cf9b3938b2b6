/*
 * What the rungs of the ladder multiply at one shape, and what they must give.
 *
 * float32: A and B uniform in [-1, 1). int8: A uniform in 0..255, and B (signed) by one of
 *   normal       normally distributed, each column scaled so that its largest is 127, as
 *                weights of networks are after quantisation a channel
 *   adversarial  uniform in -128..127, and each fourth -128 or 127
 * All from base/rng.h, streams ("a", "b", "int8 a", "int8 b") of the seed; B of float32 from
 * the graph of `ridge bench gemm`.
 */
#ifndef RG_SESSION_LADDER_DATA_H
#define RG_SESSION_LADDER_DATA_H

#include "kernels/roof/roof.h"
#include "session/bench-case.h"

enum rg_ladder_weights { RG_LADDER_NORMAL, RG_LADDER_ADVERSARIAL };
/* "normal", "adversarial"; RG_EUSAGE. */
int rg_ladder_weights_parse(const char *word, enum rg_ladder_weights *out, struct rg_error *err);
const char *rg_ladder_weights_name(enum rg_ladder_weights w);
/* Fills a k x n matrix of weights. */
int rg_ladder_weights_fill(enum rg_ladder_weights w, uint64_t seed, int64_t k, int64_t n, int8_t *b,
			   struct rg_error *err);
/* How many of the groups of `of` (2 or 4) neighbours of a column, from row 0 on, have weights
 * of one sign that sum to at most 128: 0 to 1. */
double rg_ladder_weights_share(const int8_t *b, int64_t k, int64_t n, int of);
/* The form whose roof counts: nine in ten groups fulfil it, so that few need a correction. */
enum rg_roof_weights rg_ladder_weights_form(double pairs_share, double quads_share);

struct rg_ladder_shape { int64_t m, k, n; };
/* "128x768x3072" (MxKxN). RG_EUSAGE. */
int rg_ladder_shape_parse(const char *text, struct rg_ladder_shape *out, struct rg_error *err);

struct rg_ladder_data {
	struct rg_ladder_shape shape;
	struct rg_bench_set set;     /* of one case: MatMul with a constant B */
	struct rg_bench_case int8;   /* MatMulInteger with a constant B */
	float *a;
	const float *b;              /* of the graph, as is the next */
	const int8_t *b8;
	uint8_t *a8;
	double *want;                /* oracles; NULL without */
	int64_t *want8;
	double pairs_share, quads_share;
};
/* oracle false: want and want8 stay NULL. Frees nothing on success; on failure *d is empty. */
int rg_ladder_data_new(const struct rg_ladder_shape *s, enum rg_ladder_weights w, uint64_t seed, bool oracle,
		       struct rg_ladder_data *d, struct rg_error *err);
void rg_ladder_data_free(struct rg_ladder_data *d);

/* The largest difference of a result from the oracle, over the largest of the oracle, and for int8 the count. */
struct rg_ladder_errors { double max, relative; int64_t wrong; /* -1 for float32 */ };
struct rg_ladder_errors rg_ladder_errors_of(const struct rg_ladder_data *d, bool int8, const void *c);

#endif
