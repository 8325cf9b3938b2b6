/*
 * Fused convolutions and products of ONNX Runtime and of ridge: the standard operator's
 * reference kernel, then Z and the activation over its output. The output is
 * rounded to its type before the activation, as it is without the fusion.
 */
#include "graph/own.h"
#include "kernels/ref/activation.h"
#include "kernels/ref/odometer.h"
#include "kernels/ref/product.h"
#include "kernels/ref/ref.h"
#include "kernels/ref/standard.h"
#include "kernels/tables.h"

/* y = scale * act(y + z) + shift, z absent or of y's shape. */
static void finish(const struct rg_tensor *y, const struct rg_tensor *z, const struct rg_finish *f)
{
	int64_t n = rg_shape_count(&y->shape);
	double v[RG_REF_CHUNK], more[RG_REF_CHUNK];

	if (!z && f->act.kind == RG_ACT_NONE && f->scale == 1 && f->shift == 0)
		return;
	for (int64_t i = 0; i < n; i += RG_REF_CHUNK) {
		int64_t m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;

		rg_ref_load(y, i, 1, m, v);
		if (z)
			rg_ref_load(z, i, 1, m, more);
		for (int64_t j = 0; j < m; j++)
			v[j] = (double)f->scale * rg_ref_activate(&f->act, z ? v[j] + more[j] : v[j]) + (double)f->shift;
		rg_ref_store(y, i, 1, m, v);
	}
}

static const struct rg_tensor *residual(const struct rg_call *c)
{
	return c->node->n_in > 3 && c->in[3].dtype != RG_UNDEFINED ? &c->in[3] : NULL;
}

static bool is_own(const struct rg_call *c)
{
	return strcmp(c->node->domain, RG_OWN_DOMAIN) == 0;
}

static int run_conv(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_finish f = { .scale = 1 };
	int rc = rg_ref_run_as(&rg_kernels_ref_conv, "Conv", 11, c, par, err);

	if (rc)
		return rc;
	if (is_own(c))
		rg_own_finish(c->node, &f);
	else
		rg_conv_activation(c->node, &f.act);
	finish(&c->out[0], residual(c), &f);
	return 0;
}

static int run_gemm(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_finish f = { .scale = 1 };
	int rc = rg_ref_run_as(&rg_kernels_ref_matmul, "Gemm", 13, c, par, err);

	if (rc)
		return rc;
	if (is_own(c))
		rg_own_finish(c->node, &f);
	else
		rg_gemm_activation(c->node, &f.act);
	finish(&c->out[0], residual(c), &f);
	return 0;
}

static int run_matmul(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t size = (int64_t)rg_dtype_bytes(c->in[0].dtype), index[RG_MAX_RANK] = { 0 };
	struct rg_ref_product p = { .alpha = rg_node_float(c->node, "alpha", 1) };
	struct rg_fused_matmul m;
	int64_t batches;

	if (!rg_fused_matmul_shape(c->node, &c->in[0].shape, &c->in[1].shape, &m))
		return rg_error_set(err, -EINVAL, "the matrices do not multiply");
	p.m = m.p.m, p.n = m.p.n, p.k = m.p.k;
	p.a_row = m.a_row, p.a_col = m.a_col, p.b_row = m.b_row, p.b_col = m.b_col;
	batches = rg_shape_count(&m.p.batch);
	for (int64_t i = 0; i < batches; i++) {
		int64_t a = 0, b = 0;

		for (int d = 0; d < m.p.batch.rank; d++) {
			a += index[d] * m.a_batch[d];
			b += index[d] * m.b_batch[d];
		}
		rg_ref_product_run(c->in[0].dtype, &p, (const char *)c->in[0].data + a * size,
				   (const char *)c->in[1].data + b * size, NULL,
				   (char *)c->out[0].data + i * p.m * p.n * size);
		rg_odometer_next(m.p.batch.rank, m.p.batch.dim, index);
	}
	return 0;
}

/* ---- the same as a standard operator ---- */

static int run_gather_nd(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return rg_ref_run_as(&rg_kernels_ref_gather, "GatherND", 11, c, par, err);
}

/* ---- Inverse: Gauss-Jordan with the largest pivot of each column ---- */

enum { MAX_INVERSE = 64 };

static int invert(double *a, int n, double *y, struct rg_error *err)
{
	for (int i = 0; i < n * n; i++)
		y[i] = i % (n + 1) == 0;
	for (int k = 0; k < n; k++) {
		int pivot = k;

		for (int i = k + 1; i < n; i++)
			if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
				pivot = i;
		if (a[pivot * n + k] == 0)
			return rg_error_set(err, -EDOM, "a matrix has no inverse");
		for (int j = 0; j < n && pivot != k; j++) {
			double t = a[k * n + j], u = y[k * n + j];

			a[k * n + j] = a[pivot * n + j], a[pivot * n + j] = t;
			y[k * n + j] = y[pivot * n + j], y[pivot * n + j] = u;
		}
		for (int i = 0; i < n; i++) {
			double f = a[i * n + k] / a[k * n + k];

			for (int j = 0; j < n && i != k; j++) {
				a[i * n + j] -= f * a[k * n + j];
				y[i * n + j] -= f * y[k * n + j];
			}
		}
	}
	for (int i = 0; i < n * n; i++)
		y[i] /= a[i / n * n + i / n];
	return 0;
}

static size_t inverse_scratch(const struct rg_call *c, int lanes)
{
	size_t n = (size_t)c->in[0].shape.dim[c->in[0].shape.rank - 1];

	return 2 * n * n * sizeof(double);
}

static int run_inverse(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t n = s->dim[s->rank - 1], batch = rg_shape_count_range(s, 0, s->rank - 2);
	double *a = c->scratch, *y = a + n * n;

	if (n < 1 || n > MAX_INVERSE)
		return 0;
	for (int64_t i = 0; i < batch; i++) {
		int rc;

		rg_ref_load(&c->in[0], i * n * n, 1, n * n, a);
		rc = invert(a, (int)n, y, err);
		if (rc)
			return rc;
		rg_ref_store(&c->out[0], i * n * n, 1, n * n, y);
	}
	return 0;
}

#define K(OP, RUN) { .op_type = OP, .domain = RG_CONTRIB_DOMAIN, .name = "ref", .run = RUN }
#define OWN(OP, RUN) { .op_type = OP, .domain = RG_OWN_DOMAIN, .name = "ref", .run = RUN }
static const struct rg_kernel kernels[] = {
	K("FusedConv", run_conv),
	K("FusedGemm", run_gemm),
	K("FusedMatMul", run_matmul),
	K("GatherND", run_gather_nd),
	{ .op_type = "Inverse", .domain = RG_CONTRIB_DOMAIN, .name = "ref", .scratch_bytes = inverse_scratch,
	  .run = run_inverse },
	K("TransposeMatMul", run_matmul),
	OWN("FusedConv", run_conv),
	OWN("FusedGemm", run_gemm),
};
RG_KERNEL_TABLE(rg_kernels_ref_contrib_fused, kernels);
