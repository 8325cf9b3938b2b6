/*
 * SkipLayerNormalization and its like of ONNX Runtime, a row at a time in double.
 */
#include <math.h>
#include <string.h>

#include "graph/op-norm.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static const struct rg_tensor *optional_in(const struct rg_call *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED ? &c->in[i] : NULL;
}

static const struct rg_tensor *wanted(const struct rg_call *c, int i)
{
	return i < c->node->n_out && c->out[i].dtype != RG_UNDEFINED && c->out[i].data ? &c->out[i] : NULL;
}

/* x[i] += elements of t from `first` on. */
static void add(const struct rg_tensor *t, int64_t first, double *x, int64_t n)
{
	double buf[RG_REF_CHUNK];

	for (int64_t i = 0, m; i < n; i += m) {
		m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;
		rg_ref_load(t, first + i, 1, m, buf);
		for (int64_t j = 0; j < m; j++)
			x[i + j] += buf[j];
	}
}

/* Normalises x in place; gives what it was multiplied by. beta may be NULL. */
static double normalise(double *x, int64_t n, double eps, bool simplified, const struct rg_tensor *gamma,
			const struct rg_tensor *beta)
{
	double mean = simplified ? 0 : rg_ref_sum(x, n) / (double)n, squares = 0, inv;

	for (int64_t i = 0; i < n; i++) {
		x[i] -= mean;
		squares += x[i] * x[i];
	}
	inv = 1 / sqrt(squares / (double)n + eps);
	for (int64_t i = 0; i < n; i++) {
		x[i] *= inv * rg_ref_get(gamma, i);
		if (beta)
			x[i] += rg_ref_get(beta, i);
	}
	return inv;
}

static int run_skip(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool simplified = strstr(c->node->op_type, "Simplified") != NULL;
	const struct rg_tensor *bias = optional_in(c, simplified ? 3 : 4), *sum = wanted(c, 3);
	const struct rg_tensor *beta = simplified ? NULL : optional_in(c, 3);
	double eps = (double)rg_node_float(c->node, "epsilon", 1e-12f), *x = c->scratch;
	const struct rg_shape *s = &c->in[0].shape;
	int64_t n = s->dim[s->rank - 1], rows = rg_shape_count_range(s, 0, s->rank - 1);
	int64_t skips = rg_shape_count_range(&c->in[1].shape, 0, c->in[1].shape.rank - 1);

	for (int64_t r = 0; r < rows; r++) {
		rg_ref_load(&c->in[0], r * n, 1, n, x);
		add(&c->in[1], r % skips * n, x, n);
		if (bias)
			add(bias, 0, x, n);
		if (sum)
			rg_ref_store(sum, r * n, 1, n, x);
		normalise(x, n, eps, simplified, &c->in[2], beta);
		rg_ref_store(&c->out[0], r * n, 1, n, x);
	}
	return 0;
}

static size_t skip_scratch(const struct rg_call *c, int lanes)
{
	return (size_t)c->in[0].shape.dim[c->in[0].shape.rank - 1] * sizeof(double);
}

/* ---- EmbedLayerNormalization ---- */

/* x[i] += row `id` of a table. */
static int add_row(const struct rg_tensor *table, int64_t id, const char *what, double *x, int64_t n,
		   struct rg_error *err)
{
	if (id < 0 || id >= table->shape.dim[0])
		return rg_error_set(err, -EINVAL, "%s %lld is outside of an embedding of %lld rows", what, (long long)id,
				    (long long)table->shape.dim[0]);
	add(table, id * n, x, n);
	return 0;
}

static int embed_token(const struct rg_call *c, int64_t token, double *x, int64_t n, struct rg_error *err)
{
	const struct rg_tensor *segments = optional_in(c, 1), *positions = optional_in(c, 8);
	int64_t seq = c->in[0].shape.dim[1], position = token % seq;
	int rc;

	if (positions)
		position = ((const int32_t *)positions->data)[positions->shape.dim[0] == 1 ? token % seq : token];
	memset(x, 0, (size_t)n * sizeof(*x));
	rc = add_row(&c->in[2], ((const int32_t *)c->in[0].data)[token], "word", x, n, err);
	if (!rc)
		rc = add_row(&c->in[3], position, "position", x, n, err);
	if (!rc && segments)
		rc = add_row(&c->in[4], ((const int32_t *)segments->data)[token], "segment", x, n, err);
	return rc;
}

/* How many tokens of each sequence the mask keeps; 0 without a mask. */
static void count_mask(const struct rg_call *c, const struct rg_tensor *out)
{
	const struct rg_tensor *mask = optional_in(c, 7);
	int64_t seq = c->in[0].shape.dim[1];

	for (int64_t b = 0; b < c->in[0].shape.dim[0]; b++) {
		int32_t count = 0;

		for (int64_t i = 0; mask && i < seq; i++)
			count += ((const int32_t *)mask->data)[b * seq + i] == 1;
		((int32_t *)out->data)[b] = count;
	}
}

static int run_embed(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	double eps = (double)rg_node_float(c->node, "epsilon", 1e-12f), *x = c->scratch;
	const struct rg_tensor *sum = wanted(c, 2);
	int64_t n = c->in[2].shape.dim[1];
	int rc;

	for (int64_t t = 0; t < rg_shape_count(&c->in[0].shape); t++) {
		rc = embed_token(c, t, x, n, err);
		if (rc)
			return rc;
		if (sum)
			rg_ref_store(sum, t * n, 1, n, x);
		normalise(x, n, eps, false, &c->in[5], &c->in[6]);
		rg_ref_store(&c->out[0], t * n, 1, n, x);
	}
	if (wanted(c, 1))
		count_mask(c, &c->out[1]);
	return 0;
}

static size_t embed_scratch(const struct rg_call *c, int lanes)
{
	return (size_t)c->in[2].shape.dim[1] * sizeof(double);
}

/* ---- SimplifiedLayerNormalization ---- */

static int run_simplified(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	double eps = (double)rg_node_float(c->node, "epsilon", 1e-5f), *x = c->scratch, inv;
	struct rg_rows rows;
	int axis;

	if (!rg_layernorm_rows(c->node, &c->in[0].shape, &rows, &axis))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	for (int64_t r = 0; r < rows.outer; r++) {
		rg_ref_load(&c->in[0], r * rows.n, 1, rows.n, x);
		inv = normalise(x, rows.n, eps, true, &c->in[1], NULL);
		rg_ref_store(&c->out[0], r * rows.n, 1, rows.n, x);
		if (wanted(c, 1))
			rg_ref_set(&c->out[1], r, inv);
	}
	return 0;
}

static size_t simplified_scratch(const struct rg_call *c, int lanes)
{
	return (size_t)rg_shape_count(&c->in[1].shape) * sizeof(double);
}

#define K(DOMAIN, OP, SCRATCH, RUN) \
	{ .op_type = OP, .domain = DOMAIN, .name = "ref", .scratch_bytes = SCRATCH, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("", "SimplifiedLayerNormalization", simplified_scratch, run_simplified),
	K("com.microsoft", "EmbedLayerNormalization", embed_scratch, run_embed),
	K("com.microsoft", "SkipLayerNormalization", skip_scratch, run_skip),
	K("com.microsoft", "SkipSimplifiedLayerNormalization", skip_scratch, run_skip),
};
RG_KERNEL_TABLE(rg_kernels_ref_skip_norm, kernels);
