/*
 * ONNX Runtime's products of bytes with numbers around them. The sums are of
 * integers and exact; scales are multiplied together in float32 first, as its
 * kernels do.
 */
#include <math.h>

#include "graph/contrib.h"
#include "kernels/ref/byte-product.h"
#include "kernels/ref/standard.h"
#include "kernels/tables.h"

/* What becomes of a sum: number i of the list of scales times it, and a bias. */
struct after {
	int a_scale, b_scale, bias; /* inputs; a_scale -1: `scale` stands for it */
	float scale;
};

static float scale_at(const struct rg_call *c, const struct after *f, int64_t j)
{
	return (f->a_scale < 0 ? f->scale : rg_byte_scale(c, f->a_scale, j)) * rg_byte_scale(c, f->b_scale, j);
}

/* y = sum * scale + bias, in float32. */
static void to_float(const struct rg_byte_matmul *m, int64_t at, int64_t i, int64_t j, int64_t w,
		     const int32_t *sum)
{
	const struct after *f = m->ctx;
	const float *bias = rg_byte_given(m->c, f->bias) ? m->c->in[f->bias].data : NULL;
	float *y = m->c->out[0].data;

	for (int64_t k = 0; k < w; k++)
		y[at + k] = (float)sum[k] * scale_at(m->c, f, j + k) + (bias ? bias[j + k] : 0);
}

static int run_to_float(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct after f = { .a_scale = 2, .b_scale = 3, .bias = 6 };
	const struct rg_byte_matmul m = { .c = c, .a = &c->in[0], .b = &c->in[1], .a_zero_input = 4,
					  .b_zero_input = 5, .strip = to_float, .ctx = &f };

	return rg_byte_matmul_run(&m, err);
}

/* ---- DynamicQuantizeMatMul ---- */

static size_t dynamic_scratch(const struct rg_call *c, int lanes)
{
	return (size_t)rg_shape_count(&c->in[0].shape);
}

static int run_dynamic(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_tensor a = { RG_U8, c->in[0].shape, c->scratch };
	struct after f = { .a_scale = -1, .b_scale = 2, .bias = 4 };
	struct rg_byte_matmul m = { .c = c, .a = &a, .b = &c->in[1], .a_zero_input = -1, .b_zero_input = 3,
				    .strip = to_float, .ctx = &f };

	m.a_zero = rg_byte_quantize(c->in[0].data, rg_shape_count(&a.shape), c->scratch, &f.scale);
	return rg_byte_matmul_run(&m, err);
}

/* ---- QGemm: A a_scale a_zero B b_scale b_zero C y_scale y_zero ---- */

static int run_gemm(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool ta = rg_node_int(c->node, "transA", 0) != 0, tb = rg_node_int(c->node, "transB", 0) != 0;
	const int32_t *more = rg_byte_given(c, 6) ? c->in[6].data : NULL;
	bool bytes = rg_byte_given(c, 8);
	float alpha = rg_node_float(c->node, "alpha", 1);
	struct rg_byte_product p = { .a = &c->in[0], .b = &c->in[3] };
	int32_t sum[RG_BYTE_STRIP], b_zero[RG_BYTE_STRIP];
	int64_t m, c_at[RG_MAX_RANK] = { 0 };

	if (!rg_gemm_shape(c->node, &c->in[0].shape, &c->in[3].shape, &m, &p.n, &p.k))
		return rg_error_set(err, -EINVAL, "the matrices do not multiply");
	p.a_row = ta ? 1 : p.k, p.a_col = ta ? m : 1;
	p.b_row = tb ? 1 : p.n, p.b_col = tb ? p.k : 1;
	if (more)
		rg_shape_broadcast_strides(&c->in[6].shape, &c->out[0].shape, c_at);
	for (int64_t i = 0; i < m; i++)
		for (int64_t j0 = 0; j0 < p.n; j0 += RG_BYTE_STRIP) {
			int64_t n = p.n - j0 < RG_BYTE_STRIP ? p.n - j0 : RG_BYTE_STRIP;

			for (int64_t j = 0; j < n; j++)
				b_zero[j] = rg_byte_zero(c, 5, j0 + j);
			rg_byte_product_strip(&p, i * p.a_row, rg_byte_zero(c, 2, 0), j0 * p.b_col, b_zero, n,
					      sum);
			for (int64_t j = 0; j < n; j++) {
				int64_t to = i * p.n + j0 + j;
				float scale = alpha * rg_byte_scale(c, 1, 0) * rg_byte_scale(c, 4, j0 + j);

				if (more)
					sum[j] = (int32_t)((uint32_t)sum[j] +
							   (uint32_t)more[i * c_at[0] + (j0 + j) * c_at[1]]);
				if (bytes)
					rg_byte_set(&c->out[0], to,
						    rintf((float)sum[j] * (scale / rg_byte_scale(c, 7, 0))) +
							    (float)rg_byte_zero(c, 8, 0));
				else
					((float *)c->out[0].data)[to] = (float)sum[j] * scale;
			}
		}
	return 0;
}

/* ---- the same as a standard operator ---- */

static int run_conv(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return rg_ref_run_as(&rg_kernels_ref_conv_integer, "QLinearConv", 10, c, par, err);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "DynamicQuantizeMatMul", .domain = RG_CONTRIB_DOMAIN, .name = "ref",
	  .scratch_bytes = dynamic_scratch, .run = run_dynamic },
	{ .op_type = "MatMulIntegerToFloat", .domain = RG_CONTRIB_DOMAIN, .name = "ref", .run = run_to_float },
	{ .op_type = "QGemm", .domain = RG_CONTRIB_DOMAIN, .name = "ref", .run = run_gemm },
	{ .op_type = "QLinearConv", .domain = RG_CONTRIB_DOMAIN, .name = "ref", .run = run_conv },
};
RG_KERNEL_TABLE(rg_kernels_ref_contrib_qgemm, kernels);
