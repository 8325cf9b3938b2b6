/*
 * Gemm and MatMul on OpenBLAS. Work is split over rows or columns of the
 * result, whichever is longer, or over the matrices of a batch.
 */
#include "kernels/kernel.h"

#include <string.h>

#include "kernels/blas/blas.h"
#include "kernels/tables.h"

/* One result matrix or a batch of them, and how its inputs lie. */
struct job {
	bool trans_a, trans_b, by_columns;
	int64_t batch, m, n, k, tile, tiles;
	float alpha, beta;
	const float *a, *b, *bias;
	float *c;
	int64_t lda, ldb;
	int64_t bias_row, bias_column; /* steps of Gemm's C */
	/* offsets of matrix i of the batch; rank 0: one matrix */
	int rank;
	int64_t dim[RG_MAX_RANK], a_step[RG_MAX_RANK], b_step[RG_MAX_RANK];
};

enum { TILE = 16 };

/* Rows or columns [at, at + count) of one matrix. */
static void part(const struct job *j, int64_t matrix, int64_t at, int64_t count)
{
	int64_t m = j->by_columns ? j->m : count, n = j->by_columns ? count : j->n, rest = matrix;
	int64_t row = j->by_columns ? 0 : at, column = j->by_columns ? at : 0;
	const float *a = j->a, *b = j->b;
	float *c = j->c + matrix * j->m * j->n + row * j->n + column;
	float beta = 0;

	for (int d = j->rank - 1; d >= 0; d--) {
		a += rest % j->dim[d] * j->a_step[d];
		b += rest % j->dim[d] * j->b_step[d];
		rest /= j->dim[d];
	}
	a += j->trans_a ? row : row * j->lda;
	b += j->trans_b ? column * j->ldb : column;
	if (j->bias) {
		const float *from = j->bias + row * j->bias_row + column * j->bias_column;

		for (int64_t y = 0; y < m; y++)
			for (int64_t x = 0; x < n; x++)
				c[y * j->n + x] = j->beta * from[y * j->bias_row + x * j->bias_column];
		beta = 1;
	}
	rg_blas_sgemm(j->trans_a, j->trans_b, m, n, j->k, j->alpha, a, j->lda, b, j->ldb, beta, c, j->n);
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t extent = j->by_columns ? j->n : j->m;

	while (begin < end) {
		int64_t matrix = begin / j->tiles, first = begin % j->tiles;
		int64_t last = first + (end - begin) < j->tiles ? first + (end - begin) : j->tiles;
		int64_t at = first * j->tile, to = last * j->tile < extent ? last * j->tile : extent;

		part(j, matrix, at, to - at);
		begin += last - first;
	}
}

static void run_job(struct job *j, const struct rg_par *par)
{
	int64_t extent, units;

	if (j->m == 0 || j->n == 0 || j->batch == 0)
		return;
	j->by_columns = j->n > j->m;
	extent = j->by_columns ? j->n : j->m;
	j->tile = TILE;
	j->tiles = (extent + TILE - 1) / TILE;
	units = j->batch * j->tiles;
	par->run(par, units, rg_blas_grain(units, 2.0 * (double)(j->m * j->n * j->k) / (double)j->tiles, par->lanes),
		 work, j);
}

static bool three_fit(int64_t m, int64_t n, int64_t k)
{
	return rg_blas_fits(m) && rg_blas_fits(n) && rg_blas_fits(k) && k > 0;
}

/* ---- Gemm ---- */

static bool gemm_setup(const struct rg_call *c, struct job *j)
{
	const struct rg_shape *a = &c->in[0].shape, *b = &c->in[1].shape;

	memset(j, 0, sizeof(*j));
	if (a->rank != 2 || b->rank != 2)
		return false;
	j->trans_a = rg_node_int(c->node, "transA", 0) != 0;
	j->trans_b = rg_node_int(c->node, "transB", 0) != 0;
	j->alpha = rg_node_float(c->node, "alpha", 1);
	j->beta = rg_node_float(c->node, "beta", 1);
	j->m = a->dim[j->trans_a ? 1 : 0];
	j->k = a->dim[j->trans_a ? 0 : 1];
	j->n = b->dim[j->trans_b ? 0 : 1];
	j->lda = a->dim[1];
	j->ldb = b->dim[1];
	j->batch = 1;
	return three_fit(j->m, j->n, j->k);
}

static bool all_f32(const struct rg_call *c)
{
	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_UNDEFINED)
			return false;
	return true;
}

static bool supports_gemm(const struct rg_call *c)
{
	struct job j;

	return all_f32(c) && gemm_setup(c, &j) && rg_blas_available();
}

static int run_gemm(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_shape out;
	int64_t strides[RG_MAX_RANK];
	struct job j;

	gemm_setup(c, &j);
	j.a = c->in[0].data;
	j.b = c->in[1].data;
	j.c = c->out[0].data;
	/* beta 0 means that C is not there, even where it holds NaN */
	if (c->node->n_in > 2 && c->in[2].data && j.beta != 0) {
		out = c->out[0].shape;
		rg_shape_broadcast_strides(&c->in[2].shape, &out, strides);
		j.bias = c->in[2].data;
		j.bias_row = strides[0];
		j.bias_column = strides[1];
	}
	run_job(&j, par);
	return 0;
}

/* ---- MatMul ---- */

static bool matmul_setup(const struct rg_call *c, struct job *j)
{
	struct rg_shape a = c->in[0].shape, b = c->in[1].shape, batch_a, batch_b, batch;
	int64_t sa[RG_MAX_RANK], sb[RG_MAX_RANK];

	memset(j, 0, sizeof(*j));
	if (a.rank < 1 || b.rank < 1)
		return false;
	if (a.rank == 1)
		a = rg_shape_of(2, (const int64_t[]){ 1, c->in[0].shape.dim[0] });
	if (b.rank == 1)
		b = rg_shape_of(2, (const int64_t[]){ c->in[1].shape.dim[0], 1 });
	j->alpha = 1;
	j->m = a.dim[a.rank - 2];
	j->k = a.dim[a.rank - 1];
	j->n = b.dim[b.rank - 1];
	j->lda = j->k;
	j->ldb = j->n;
	batch_a = rg_shape_of(a.rank - 2, a.dim);
	batch_b = rg_shape_of(b.rank - 2, b.dim);
	if (!rg_shape_broadcast(&batch_a, &batch_b, &batch))
		return false;
	j->batch = rg_shape_count(&batch);
	if (rg_shape_count(&batch_b) == 1) { /* one B for all: rows of all A in one product */
		j->m *= rg_shape_count(&batch_a);
		j->batch = 1;
		return three_fit(j->m, j->n, j->k);
	}
	rg_shape_broadcast_strides(&batch_a, &batch, sa);
	rg_shape_broadcast_strides(&batch_b, &batch, sb);
	j->rank = batch.rank;
	for (int d = 0; d < batch.rank; d++) {
		j->dim[d] = batch.dim[d];
		j->a_step[d] = sa[d] * j->m * j->k;
		j->b_step[d] = sb[d] * j->k * j->n;
	}
	return three_fit(j->m, j->n, j->k);
}

static bool supports_matmul(const struct rg_call *c)
{
	struct job j;

	return all_f32(c) && matmul_setup(c, &j) && rg_blas_available();
}

static int run_matmul(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;

	matmul_setup(c, &j);
	j.a = c->in[0].data;
	j.b = c->in[1].data;
	j.c = c->out[0].data;
	run_job(&j, par);
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Gemm", .domain = "", .name = "openblas", .rank = 50, .supports = supports_gemm, .run = run_gemm },
	{ .op_type = "MatMul", .domain = "", .name = "openblas", .rank = 50, .supports = supports_matmul,
	  .run = run_matmul },
};
RG_KERNEL_TABLE(rg_kernels_blas_gemm, kernels);
