/*
 * RotaryEmbedding of the standard domain and of ONNX Runtime, float32: a token an item,
 * each of its heads turned by the same angles. Where halves of a head are turned against
 * each other, both are read and written in order.
 */
#include <string.h>

#include "graph/contrib.h"
#include "graph/op-attention.h"
#include "graph/op-types.h"
#include "kernels/generic/generic.h"
#include "kernels/tables.h"

struct job {
	struct rg_rotary r;
	const float *x, *cosines, *sines;
	float *y;
	const int64_t *ids;  /* NULL: the caches have a row for each token */
	bool one;            /* ids is the position of the first token */
	bool interleaved;
};

static void turn_halves(const float *restrict x, const float *restrict c, const float *restrict s, int64_t half,
			float *restrict y)
{
	for (int64_t j = 0; j < half; j++) {
		float re = x[j], im = x[j + half];

		y[j] = re * c[j] - im * s[j];
		y[j + half] = re * s[j] + im * c[j];
	}
}

static void turn_pairs(const float *restrict x, const float *restrict c, const float *restrict s, int64_t half,
		       float *restrict y)
{
	for (int64_t j = 0; j < half; j++) {
		float re = x[2 * j], im = x[2 * j + 1];

		y[2 * j] = re * c[j] - im * s[j];
		y[2 * j + 1] = re * s[j] + im * c[j];
	}
}

static int64_t row_of(const struct job *j, int64_t b, int64_t s)
{
	int64_t row;

	if (!j->ids)
		return b * j->r.seq + s;
	if (!j->one)
		return j->ids[b * j->r.seq + s];
	return __builtin_add_overflow(j->ids[0], s, &row) ? -1 : row;
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	const struct rg_rotary *r = &j->r;
	int64_t half = r->dim / 2;

	(void)lane;
	for (int64_t i = begin; i < end; i++) {
		int64_t b = i / r->seq, s = i % r->seq, row = row_of(j, b, s) * half;

		for (int64_t h = 0; h < r->heads; h++) {
			int64_t at = r->heads_first ? ((b * r->heads + h) * r->seq + s) * r->head :
						      (i * r->heads + h) * r->head;

			(j->interleaved ? turn_pairs : turn_halves)(j->x + at, j->cosines + row, j->sines + row, half,
								    j->y + at);
			memcpy(j->y + at + r->dim, j->x + at + r->dim, (size_t)(r->head - r->dim) * sizeof(float));
		}
	}
}

static bool resolve(const struct rg_call *c, struct rg_rotary *r)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_in_shapes in;

	rg_shapes_of_tensors(c->node, c->in, &in);
	return rg_rotary_resolve(c->node, &in, r, &err) == 0;
}

static bool supports(const struct rg_call *c)
{
	int cosines = c->node->domain[0] ? 2 : 1;
	struct rg_rotary r;

	return c->in[0].dtype == RG_F32 && c->in[cosines].dtype == RG_F32 && c->in[cosines + 1].dtype == RG_F32 &&
	       resolve(c, &r);
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int cosines = c->node->domain[0] ? 2 : 1, ids = c->node->domain[0] ? 1 : 3;
	bool has_ids = ids < c->node->n_in && c->in[ids].dtype != RG_UNDEFINED;
	struct job j = {
		.x = c->in[0].data, .cosines = c->in[cosines].data, .sines = c->in[cosines + 1].data,
		.y = c->out[0].data,
		.ids = has_ids ? c->in[ids].data : NULL, .one = has_ids && c->in[ids].shape.rank != 2,
		.interleaved = rg_node_int(c->node, "interleaved", 0) != 0,
	};

	if (!resolve(c, &j.r))
		return rg_error_set(err, -EINVAL, "the inputs do not go together");
	for (int64_t i = 0; i < j.r.batch * j.r.seq && j.ids; i++) {
		int64_t row = row_of(&j, i / j.r.seq, i % j.r.seq);

		if (row < 0 || row >= j.r.cache)
			return rg_error_set(err, -EINVAL, "the position of token %lld of sequence %lld is %lld; the caches have "
					    "%lld rows", (long long)(i % j.r.seq), (long long)(i / j.r.seq), (long long)row,
					    (long long)j.r.cache);
	}
	if (rg_shape_count(&c->in[0].shape) > 0)
		par->run(par, j.r.batch * j.r.seq, rg_grain(2 * j.r.heads * j.r.head), work, &j);
	return 0;
}

#define K(DOMAIN) \
	{ .op_type = "RotaryEmbedding", .domain = DOMAIN, .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .run = run }
static const struct rg_kernel kernels[] = {
	K(""),
	K(RG_CONTRIB_DOMAIN),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(rotary), kernels);
