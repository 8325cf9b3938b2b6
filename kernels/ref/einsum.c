/*
 * Einsum and Det, by the definition.
 */
#include <math.h>

#include "graph/op-gemm.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* Strides of each operand along each label; a label on two dimensions of one
 * operand walks its diagonal, so the strides add up. */
struct walk {
	struct rg_einsum e;
	int64_t stride[RG_EINSUM_MAX_IN][RG_EINSUM_MAX_LABELS];
	int n_summed;
	int summed[RG_EINSUM_MAX_LABELS]; /* labels that the output lacks */
};

static void prepare(struct walk *w, const struct rg_call *c)
{
	int64_t strides[RG_MAX_RANK];

	for (int k = 0; k < w->e.n_in; k++) {
		for (int l = 0; l < w->e.n_labels; l++)
			w->stride[k][l] = 0;
		rg_shape_strides(&c->in[k].shape, strides);
		for (int d = 0; d < w->e.rank[k]; d++)
			if (c->in[k].shape.dim[d] == w->e.dim[w->e.label[k][d]])
				w->stride[k][w->e.label[k][d]] += strides[d];
	}
	w->n_summed = 0;
	for (int l = 0; l < w->e.n_labels; l++) {
		bool kept = false;

		for (int d = 0; d < w->e.n_out; d++)
			kept |= w->e.out[d] == l;
		if (!kept)
			w->summed[w->n_summed++] = l;
	}
}

static uint64_t get_bits(const struct rg_tensor *t, int64_t i)
{
	switch (t->dtype) {
	case RG_I8:
		return (uint64_t)((const int8_t *)t->data)[i];
	case RG_I16:
		return (uint64_t)((const int16_t *)t->data)[i];
	case RG_I32:
		return (uint64_t)((const int32_t *)t->data)[i];
	case RG_U8:
		return ((const uint8_t *)t->data)[i];
	case RG_U16:
		return ((const uint16_t *)t->data)[i];
	case RG_U32:
		return ((const uint32_t *)t->data)[i];
	default:
		return ((const uint64_t *)t->data)[i];
	}
}

static void set_bits(const struct rg_tensor *t, int64_t i, uint64_t v)
{
	switch (rg_dtype_bytes(t->dtype)) {
	case 1:
		((uint8_t *)t->data)[i] = (uint8_t)v;
		break;
	case 2:
		((uint16_t *)t->data)[i] = (uint16_t)v;
		break;
	case 4:
		((uint32_t *)t->data)[i] = (uint32_t)v;
		break;
	default:
		((uint64_t *)t->data)[i] = v;
		break;
	}
}

/* The sum behind one output element; `base` is where each operand starts. */
static void sum_terms(const struct walk *w, const struct rg_call *c, const int64_t *base, int64_t out)
{
	bool is_float = rg_dtype_is_float(c->out[0].dtype);
	int64_t index[RG_EINSUM_MAX_LABELS] = { 0 }, at[RG_EINSUM_MAX_IN], terms = 1;
	uint64_t bits = 0;
	double sum = 0;

	for (int s = 0; s < w->n_summed; s++)
		terms *= w->e.dim[w->summed[s]];
	for (int k = 0; k < w->e.n_in; k++)
		at[k] = base[k];
	for (int64_t i = 0; i < terms; i++) {
		uint64_t b = 1;
		double v = 1;

		for (int k = 0; k < w->e.n_in; k++) {
			if (is_float)
				v *= rg_ref_get(&c->in[k], at[k]);
			else
				b *= get_bits(&c->in[k], at[k]);
		}
		sum += v;
		bits += b;
		for (int s = w->n_summed - 1; s >= 0; s--) {
			int l = w->summed[s];

			for (int k = 0; k < w->e.n_in; k++)
				at[k] += w->stride[k][l];
			if (++index[s] < w->e.dim[l])
				break;
			for (int k = 0; k < w->e.n_in; k++)
				at[k] -= w->stride[k][l] * w->e.dim[l];
			index[s] = 0;
		}
	}
	if (is_float)
		rg_ref_set(&c->out[0], out, sum);
	else
		set_bits(&c->out[0], out, bits);
}

static int run_einsum(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *shapes[RG_EINSUM_MAX_IN];
	int64_t base[RG_EINSUM_MAX_IN], total = rg_shape_count(&c->out[0].shape), rest, i;
	const char *bad = "too many operands";
	struct walk w;

	for (int k = 0; k < c->node->n_in && k < RG_EINSUM_MAX_IN; k++)
		shapes[k] = &c->in[k].shape;
	if (c->node->n_in <= RG_EINSUM_MAX_IN)
		bad = rg_einsum_parse(rg_node_string(c->node, "equation", ""), c->node->n_in, shapes, &w.e);
	if (bad)
		return rg_error_set(err, -EINVAL, "%s", bad);
	prepare(&w, c);
	for (int64_t out = 0; out < total; out++) {
		for (int k = 0; k < w.e.n_in; k++)
			base[k] = 0;
		rest = out;
		for (int d = w.e.n_out - 1; d >= 0; d--) {
			int l = w.e.out[d];

			i = rest % w.e.dim[l];
			rest /= w.e.dim[l];
			for (int k = 0; k < w.e.n_in; k++)
				base[k] += i * w.stride[k][l];
		}
		sum_terms(&w, c, base, out);
	}
	return 0;
}

/* ---- Det: Gaussian elimination with the largest pivot of each column ---- */

static double eliminate(double *m, int64_t n)
{
	double det = 1, t;

	for (int64_t k = 0; k < n; k++) {
		int64_t p = k;

		for (int64_t i = k + 1; i < n; i++)
			if (fabs(m[i * n + k]) > fabs(m[p * n + k]))
				p = i;
		if (m[p * n + k] == 0)
			return 0;
		for (int64_t j = k; j < n && p != k; j++) {
			t = m[k * n + j];
			m[k * n + j] = m[p * n + j];
			m[p * n + j] = t;
		}
		det *= p != k ? -m[k * n + k] : m[k * n + k];
		for (int64_t i = k + 1; i < n; i++) {
			t = m[i * n + k] / m[k * n + k];
			for (int64_t j = k + 1; j < n; j++)
				m[i * n + j] -= t * m[k * n + j];
		}
	}
	return det;
}

static size_t det_scratch(const struct rg_call *c, int lanes)
{
	size_t n = (size_t)c->in[0].shape.dim[c->in[0].shape.rank - 1];

	return n * n * sizeof(double); /* inference bounds n */
}

static int run_det(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n = c->in[0].shape.dim[c->in[0].shape.rank - 1], batch = rg_shape_count(&c->out[0].shape);

	for (int64_t b = 0; b < batch; b++) {
		rg_ref_load(&c->in[0], b * n * n, 1, n * n, c->scratch);
		rg_ref_set(&c->out[0], b, eliminate(c->scratch, n));
	}
	return 0;
}

static bool takes_num(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_NUM);
}

static bool takes_float(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Det", .domain = "", .name = "ref", .supports = takes_float, .scratch_bytes = det_scratch,
	  .run = run_det },
	{ .op_type = "Einsum", .domain = "", .name = "ref", .supports = takes_num, .run = run_einsum },
};
RG_KERNEL_TABLE(rg_kernels_ref_einsum, kernels);
