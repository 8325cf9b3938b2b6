/*
 * MatMul and Gemm, by the definition: every element of
 * the result is one sum over k in order. Floats add up in double and round
 * once; integers wrap. A strip of columns is kept in sums on the stack, so that
 * the inner loop is contiguous and vectorises where B's rows are.
 */
#include <math.h>

#include "graph/op-gemm.h"
#include "kernels/ref/product.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

#define STRIP 64

/* LOAD and KEEP turn elements into the sum's type and back. */
#define PRODUCT(NAME, CTYPE, SUM, LOAD, KEEP) \
	static void product_##NAME(const struct rg_ref_product *p, const void *va, const void *vb, const void *vc, \
				   void *vy) \
	{ \
		const CTYPE *a = va, *b = vb, *c = vc; \
		CTYPE *y = vy; \
		const SUM alpha = (SUM)p->alpha, beta = (SUM)p->beta; \
		SUM sum[STRIP]; \
		for (int64_t i = 0; i < p->m; i++) { \
			for (int64_t j0 = 0; j0 < p->n; j0 += STRIP) { \
				int64_t w = p->n - j0 < STRIP ? p->n - j0 : STRIP; \
				for (int64_t j = 0; j < w; j++) \
					sum[j] = 0; \
				for (int64_t k = 0; k < p->k; k++) { \
					const SUM x = (SUM)LOAD(a[i * p->a_row + k * p->a_col]); \
					const CTYPE *z = b + k * p->b_row + j0 * p->b_col; \
					if (p->b_col == 1) { \
						for (int64_t j = 0; j < w; j++) \
							sum[j] += x * (SUM)LOAD(z[j]); \
					} else { \
						for (int64_t j = 0; j < w; j++) \
							sum[j] += x * (SUM)LOAD(z[j * p->b_col]); \
					} \
				} \
				for (int64_t j = 0; j < w; j++) { \
					SUM v = alpha * sum[j]; \
					if (p->has_c) \
						v += beta * (SUM)LOAD(c[i * p->c_row + (j0 + j) * p->c_col]); \
					y[i * p->n + j0 + j] = (CTYPE)KEEP(v); \
				} \
			} \
		} \
	}

#define AS_IT_IS(V) (V)
#define KEEP_F16(V) rg_f32_to_f16((float)(V))
#define KEEP_BF16(V) rg_f32_to_bf16((float)(V))
PRODUCT(f32, float, double, AS_IT_IS, AS_IT_IS)
PRODUCT(f64, double, double, AS_IT_IS, AS_IT_IS)
PRODUCT(f16, uint16_t, double, rg_f16_to_f32, KEEP_F16)
PRODUCT(bf16, uint16_t, double, rg_bf16_to_f32, KEEP_BF16)
/* Unsigned sums have defined overflow and the same low bits as signed ones. */
PRODUCT(i32, uint32_t, uint32_t, AS_IT_IS, AS_IT_IS)
PRODUCT(i64, uint64_t, uint64_t, AS_IT_IS, AS_IT_IS)

void rg_ref_product_run(enum rg_dtype t, const struct rg_ref_product *p, const void *a, const void *b, const void *c,
			void *y)
{
	switch (t) {
	case RG_F32:
		product_f32(p, a, b, c, y);
		break;
	case RG_F64:
		product_f64(p, a, b, c, y);
		break;
	case RG_F16:
		product_f16(p, a, b, c, y);
		break;
	case RG_BF16:
		product_bf16(p, a, b, c, y);
		break;
	case RG_I32:
	case RG_U32:
		product_i32(p, a, b, c, y);
		break;
	default:
		product_i64(p, a, b, c, y);
		break;
	}
}

static int run_gemm(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool ta = rg_node_int(c->node, "transA", 0), tb = rg_node_int(c->node, "transB", 0);
	struct rg_ref_product p = { .alpha = rg_node_float(c->node, "alpha", 1),
				    .beta = rg_node_float(c->node, "beta", 1) };
	int64_t strides[RG_MAX_RANK];

	if (!rg_gemm_shape(c->node, &c->in[0].shape, &c->in[1].shape, &p.m, &p.n, &p.k))
		return rg_error_set(err, -EINVAL, "the matrices do not multiply");
	p.a_row = ta ? 1 : p.k;
	p.a_col = ta ? p.m : 1;
	p.b_row = tb ? 1 : p.n;
	p.b_col = tb ? p.k : 1;
	/* beta 0 means that C is not read: it may hold NaN */
	p.has_c = c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED && p.beta != 0;
	if (p.has_c) {
		rg_shape_broadcast_strides(&c->in[2].shape, &c->out[0].shape, strides);
		p.c_row = strides[0];
		p.c_col = strides[1];
	}
	rg_ref_product_run(c->in[0].dtype, &p, c->in[0].data, c->in[1].data, p.has_c ? c->in[2].data : NULL,
			   c->out[0].data);
	return 0;
}

static int run_matmul(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t size = (int64_t)rg_dtype_bytes(c->in[0].dtype);
	struct rg_ref_product p = { .alpha = 1, .a_col = 1, .b_col = 1 };
	const struct rg_shape *shapes[2];
	struct rg_matmul s;
	struct rg_walk w;

	if (!rg_matmul_shape(&c->in[0].shape, &c->in[1].shape, &s))
		return rg_error_set(err, -EINVAL, "the matrices do not multiply");
	p.m = s.m, p.n = s.n, p.k = s.k;
	p.a_row = s.k, p.b_row = s.n;
	shapes[0] = &s.batch_a, shapes[1] = &s.batch_b;
	rg_walk_start(&w, &s.batch, 2, shapes);
	while (rg_walk_next(&w))
		for (int64_t i = 0; i < w.inner; i++)
			rg_ref_product_run(c->in[0].dtype, &p,
					   (const char *)c->in[0].data +
						   (w.at[0] + i * w.step[0]) * s.m * s.k * size,
					   (const char *)c->in[1].data +
						   (w.at[1] + i * w.step[1]) * s.k * s.n * size,
					   NULL, (char *)c->out[0].data + (w.out + i) * s.m * s.n * size);
	return 0;
}

static bool takes_matmul(const struct rg_call *c)
{
	return c->in[0].dtype == c->in[1].dtype &&
	       rg_in_set(c->in[0].dtype, RG_SET_FLOAT | RG_BIT(RG_I32) | RG_BIT(RG_U32) | RG_BIT(RG_I64) |
						 RG_BIT(RG_U64));
}

/* Integers with factors that are not whole numbers of either sign have no exact result. */
static bool takes_gemm(const struct rg_call *c)
{
	float alpha = rg_node_float(c->node, "alpha", 1), beta = rg_node_float(c->node, "beta", 1);

	if (!takes_matmul(c))
		return false;
	return rg_dtype_is_float(c->in[0].dtype) ||
	       (alpha >= 0 && beta >= 0 && alpha < 0x1p31f && beta < 0x1p31f && alpha == floorf(alpha) &&
		beta == floorf(beta));
}

#define K(OP, SUPPORTS, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = SUPPORTS, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("Gemm", takes_gemm, run_gemm),
	K("MatMul", takes_matmul, run_matmul),
};
RG_KERNEL_TABLE(rg_kernels_ref_matmul, kernels);
