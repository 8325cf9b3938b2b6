/*
 * ONNX Runtime's elementwise operators on bytes. They take part in float32, and
 * round to the nearest even. Where its kernels round at another place than the
 * definition (after adding the zero point, once for a product and a sum), this
 * follows them, since that is what such models were quantised for.
 */
#include <math.h>

#include "graph/contrib.h"
#include "kernels/ref/byte.h"
#include "kernels/ref/ref.h"
#include "kernels/ref/standard.h"
#include "kernels/tables.h"

/* x * y + z, rounded once: the product is exact in double. */
static float multiply_add(float x, float y, float z)
{
	return (float)((double)x * (double)y + (double)z);
}

/* ---- two operands ---- */

struct binary {
	float a_ratio, b_ratio; /* of an operand's scale to the output's; a_ratio of Mul: of their product */
	int32_t a_zero, b_zero, zero;
	float fixed;            /* Add: what the zero points make */
};

static struct binary read_binary(const struct rg_call *c, bool product)
{
	float a = rg_byte_scale(c, 1, 0), b = rg_byte_scale(c, 4, 0), y = rg_byte_scale(c, 6, 0);
	struct binary k = { product ? a * b / y : a / y, b / y, rg_byte_zero(c, 2, 0), rg_byte_zero(c, 5, 0),
			    rg_byte_zero(c, 7, 0), 0 };

	k.fixed = (float)k.zero - (k.a_ratio * (float)k.a_zero + k.b_ratio * (float)k.b_zero);
	return k;
}

static float add(const struct binary *k, int32_t a, int32_t b)
{
	return rintf(multiply_add((float)a, k->a_ratio, multiply_add((float)b, k->b_ratio, k->fixed)));
}

static float multiply(const struct binary *k, int32_t a, int32_t b)
{
	return rintf((float)((a - k->a_zero) * (b - k->b_zero)) * k->a_ratio + (float)k->zero);
}

static void run_binary(const struct rg_call *c, const struct binary *k,
		       float (*f)(const struct binary *, int32_t, int32_t))
{
	const struct rg_shape *shapes[2] = { &c->in[0].shape, &c->in[3].shape };
	struct rg_walk w;

	rg_walk_start(&w, &c->out[0].shape, 2, shapes);
	while (rg_walk_next(&w))
		for (int64_t i = 0; i < w.inner; i++)
			rg_byte_set(&c->out[0], w.out + i,
				    f(k, rg_byte_at(&c->in[0], w.at[0] + i * w.step[0]),
				      rg_byte_at(&c->in[3], w.at[1] + i * w.step[1])));
}

static int run_add(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct binary k = read_binary(c, false);

	run_binary(c, &k, add);
	return 0;
}

static int run_mul(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct binary k = read_binary(c, true);

	run_binary(c, &k, multiply);
	return 0;
}

/* ---- one operand ---- */

/* From the byte x of one scale and zero point to another's, through f. */
struct again {
	float scale, y_scale;
	int32_t zero, y_zero;
};

static float requantize(const struct again *k, int32_t x, float (*f)(float, float), float arg)
{
	float v = k->scale * (float)(x - k->zero);

	return rintf((f ? f(v, arg) : v) / k->y_scale) + (float)k->y_zero;
}

static void run_unary(const struct rg_call *c, float (*f)(float, float), float arg)
{
	struct again k = { rg_byte_scale(c, 1, 0), rg_byte_scale(c, 3, 0), rg_byte_zero(c, 2, 0),
			   rg_byte_zero(c, 4, 0) };
	int64_t n = rg_shape_count(&c->in[0].shape);

	for (int64_t i = 0; i < n; i++)
		rg_byte_set(&c->out[0], i, requantize(&k, rg_byte_at(&c->in[0], i), f, arg));
}

static float leaky_relu(float v, float alpha)
{
	return v >= 0 ? v : alpha * v;
}

static float sigmoid(float v, float unused)
{
	return (float)(1 / (1 + exp(-(double)v)));
}

static int run_leaky_relu(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	run_unary(c, leaky_relu, rg_node_float(c->node, "alpha", 0.01f));
	return 0;
}

static int run_sigmoid(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	run_unary(c, sigmoid, 0);
	return 0;
}

static int run_softmax(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	double scale = (double)rg_byte_scale(c, 1, 0); /* the zero point cancels out */
	float y_scale = rg_byte_scale(c, 3, 0), zero = (float)rg_byte_zero(c, 4, 0);
	struct rg_rows rows;

	if (!rg_byte_softmax_rows(c->node, &c->in[0].shape, &rows))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	for (int64_t o = 0; o < rows.outer; o++)
		for (int64_t j = 0; j < rows.inner; j++) {
			int64_t at = o * rows.n * rows.inner + j;
			int32_t top = INT32_MIN;
			double sum = 0;

			for (int64_t i = 0; i < rows.n; i++) {
				int32_t x = rg_byte_at(&c->in[0], at + i * rows.inner);

				top = x > top ? x : top;
			}
			for (int64_t i = 0; i < rows.n; i++)
				sum += exp(scale * (rg_byte_at(&c->in[0], at + i * rows.inner) - top));
			for (int64_t i = 0; i < rows.n; i++) {
				int32_t x = rg_byte_at(&c->in[0], at + i * rows.inner);
				float p = (float)(exp(scale * (x - top)) / sum);

				rg_byte_set(&c->out[0], at + i * rows.inner, rintf(p / y_scale) + zero);
			}
		}
	return 0;
}

/* ---- Where, Concat ---- */

/* One of the same scale and zero point is copied, as it is by the definition but
 * for rounding errors. */
static float carried(const struct rg_call *c, const struct again *k, int input, int64_t at)
{
	int32_t x = rg_byte_at(&c->in[input], at);

	if (k->scale == k->y_scale && k->zero == k->y_zero)
		return (float)x;
	return requantize(k, x, NULL, 0);
}

static int run_where(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *shapes[3] = { &c->in[0].shape, &c->in[1].shape, &c->in[4].shape };
	struct again x = { rg_byte_scale(c, 2, 0), rg_byte_scale(c, 7, 0), rg_byte_zero(c, 3, 0),
			   rg_byte_zero(c, 8, 0) };
	struct again y = { rg_byte_scale(c, 5, 0), x.y_scale, rg_byte_zero(c, 6, 0), x.y_zero };
	const uint8_t *condition = c->in[0].data;
	struct rg_walk w;

	rg_walk_start(&w, &c->out[0].shape, 3, shapes);
	while (rg_walk_next(&w))
		for (int64_t i = 0; i < w.inner; i++)
			rg_byte_set(&c->out[0], w.out + i,
				    condition[w.at[0] + i * w.step[0]] ?
					    carried(c, &x, 1, w.at[1] + i * w.step[1]) :
					    carried(c, &y, 4, w.at[2] + i * w.step[2]));
	return 0;
}

static int run_concat(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->out[0].shape;
	int64_t axis = rg_node_int(c->node, "axis", 0), outer, inner, first = 0;

	axis += axis < 0 ? s->rank : 0;
	outer = rg_shape_count_range(s, 0, (int)axis);
	inner = rg_shape_count_range(s, (int)axis + 1, s->rank);
	for (int p = 2; p < c->node->n_in; p += 3) {
		struct again k = { rg_byte_scale(c, p + 1, 0), rg_byte_scale(c, 0, 0), rg_byte_zero(c, p + 2, 0),
				   rg_byte_zero(c, 1, 0) };
		int64_t n = c->in[p].shape.dim[axis] * inner;

		for (int64_t o = 0; o < outer; o++)
			for (int64_t i = 0; i < n; i++)
				rg_byte_set(&c->out[0], (o * s->dim[axis] + first) * inner + i,
					    carried(c, &k, p, o * n + i));
		first += c->in[p].shape.dim[axis];
	}
	return 0;
}

/* ---- the same as a standard operator ---- */

static int run_quantize(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return rg_ref_run_as(&rg_kernels_ref_quant, "QuantizeLinear", 21, c, par, err);
}

static int run_dequantize(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return rg_ref_run_as(&rg_kernels_ref_quant, "DequantizeLinear", 21, c, par, err);
}

#define K(OP, RUN) { .op_type = OP, .domain = RG_CONTRIB_DOMAIN, .name = "ref", .run = RUN }
static const struct rg_kernel kernels[] = {
	K("DequantizeLinear", run_dequantize),
	K("QLinearAdd", run_add),
	K("QLinearConcat", run_concat),
	K("QLinearLeakyRelu", run_leaky_relu),
	K("QLinearMul", run_mul),
	K("QLinearSigmoid", run_sigmoid),
	K("QLinearSoftmax", run_softmax),
	K("QLinearWhere", run_where),
	K("QuantizeLinear", run_quantize),
};
RG_KERNEL_TABLE(rg_kernels_ref_contrib_qlinear, kernels);
