/*
 * MatMulInteger and QLinearMatMul: sums of integers, exact modulo 2^32 as ONNX
 * has it, and for the second one scaled back to bytes.
 */
#include <math.h>

#include "kernels/ref/byte-product.h"
#include "kernels/tables.h"

static void keep(const struct rg_byte_matmul *m, int64_t at, int64_t i, int64_t j, int64_t w, const int32_t *sum)
{
	int32_t *y = m->c->out[0].data;

	for (int64_t k = 0; k < w; k++)
		y[at + k] = sum[k];
}

static int run_matmul_integer(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_byte_matmul m = { .c = c, .a = &c->in[0], .b = &c->in[1], .a_zero_input = 2,
					  .b_zero_input = 3, .strip = keep };

	return rg_byte_matmul_run(&m, err);
}

/* A scale for index i: one value serves all. */
static float scale(const struct rg_tensor *t, int64_t i)
{
	return (float)rg_ref_get(t, rg_shape_count(&t->shape) == 1 ? 0 : i);
}

static void requantize(const struct rg_byte_matmul *m, int64_t at, int64_t i, int64_t j, int64_t w,
		       const int32_t *sum)
{
	const struct rg_tensor *in = m->c->in, *out = &m->c->out[0];
	float row = scale(&in[1], i), y = scale(&in[6], 0);
	int32_t zero = rg_byte_zero(m->c, 7, 0);

	/* scales are multiplied first, in float32, as ONNX Runtime does */
	for (int64_t k = 0; k < w; k++)
		rg_byte_set(out, at + k, rintf((float)sum[k] * (row * scale(&in[4], j + k) / y)) + (float)zero);
}

static int run_qlinear(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_byte_matmul m = { .c = c, .a = &c->in[0], .b = &c->in[3], .a_zero_input = 2,
					  .b_zero_input = 5, .strip = requantize };

	return rg_byte_matmul_run(&m, err);
}

static bool takes_bytes(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_INT8) && rg_in_set(c->in[1].dtype, RG_SET_INT8);
}

static bool takes_qlinear(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_INT8) && rg_in_set(c->in[3].dtype, RG_SET_INT8) &&
	       rg_in_set(c->out[0].dtype, RG_SET_INT8);
}

#define K(OP, SUPPORTS, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = SUPPORTS, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("MatMulInteger", takes_bytes, run_matmul_integer),
	K("QLinearMatMul", takes_qlinear, run_qlinear),
};
RG_KERNEL_TABLE(rg_kernels_ref_matmul_integer, kernels);
