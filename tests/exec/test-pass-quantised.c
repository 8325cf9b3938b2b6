/*
 * Quantised models to operators on bytes: every kind of product and of what stands between
 * DequantizeLinear and QuantizeLinear, in all variants, against the graph as it is, within one
 * step of what it is quantised to; and what has to be left alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "graph/own.h"
#include "make-pattern.h"

#define STEP 0.05f /* of results */

/* ---- parts of graphs ---- */

static void make_constant(struct rg_graph *g, const char *name, enum rg_dtype t, int rank,
			  const int64_t *dims, const void *data)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape s = rg_shape_of(rank, dims);
	size_t bytes = (size_t)rg_tensor_bytes(t, &s);
	void *copy = rg_alloc_aligned(64, bytes ? bytes : 64);
	int v = rg_graph_value(g, name, &err);

	assert_non_null(copy);
	memcpy(copy, data, bytes);
	assert_int_equal(rg_graph_add_const(g, v, RG_CONST_INITIALIZER, t, &s, copy, &err), 0);
}

static void make_zero(struct rg_graph *g, const char *name, enum rg_dtype t, int zero)
{
	int8_t byte = (int8_t)zero;

	make_constant(g, name, t, 0, NULL, &byte);
}

/* "y:q" = QuantizeLinear(x), y = DequantizeLinear("y:q"). */
static void make_pair_of(struct rg_graph *g, const char *x, const char *y, float scale, enum rg_dtype t,
			 int zero)
{
	char s[40], z[40], q[40], in[140];

	snprintf(s, sizeof(s), "%s:s", y);
	snprintf(z, sizeof(z), "%s:z", y);
	snprintf(q, sizeof(q), "%s:q", y);
	make_floats(g, s, "", &scale);
	make_zero(g, z, t, zero);
	snprintf(in, sizeof(in), "%s,%s,%s", x, s, z);
	make_node(g, "QuantizeLinear", in, q);
	snprintf(in, sizeof(in), "%s,%s,%s", q, s, z);
	make_node(g, "DequantizeLinear", in, y);
}

/* Weights of bytes, one scale or one a channel along `axis` (-1: one), dequantised as `name`. */
static void make_weights(struct rg_graph *g, const char *name, int rank, const int64_t *dims, int axis,
			 bool zero, enum rg_dtype t, uint64_t seed)
{
	int64_t n = axis < 0 ? 1 : dims[axis], count = 1;
	uint64_t stream = rg_rng_stream(seed, name);
	char s[40], z[40], q[40], in[140];
	struct rg_attr a = int_attr("axis", axis);
	int8_t bytes[4096], zeros[64] = {0};
	float scales[64];

	for (int d = 0; d < rank; d++)
		count *= dims[d];
	assert_true(count <= 4096 && n <= 64);
	for (int64_t i = 0; i < count; i++)
		bytes[i] = (int8_t)rg_rng_integer(stream, (uint64_t)i, -127, 127);
	for (int64_t i = 0; i < n; i++) {
		scales[i] = 0.002f + 0.001f * (float)i;
		zeros[i] = t == RG_U8 ? (int8_t)(127 + i) : (int8_t)(i - 2);
	}
	snprintf(s, sizeof(s), "%s:s", name);
	snprintf(z, sizeof(z), "%s:z", name);
	snprintf(q, sizeof(q), "%s:q", name);
	make_constant(g, q, t, rank, dims, bytes);
	make_constant(g, s, RG_F32, axis < 0 ? 0 : 1, &n, scales);
	if (zero)
		make_constant(g, z, t, axis < 0 ? 0 : 1, &n, zeros);
	snprintf(in, sizeof(in), zero ? "%s,%s,%s" : "%s,%s", q, s, z);
	make_node_attrs(g, "DequantizeLinear", in, name, axis < 0 ? 0 : 1, &a);
}

/* A bias of n: float32, or int32 in steps of x's scale times the weights'. */
static void make_bias(struct rg_graph *g, const char *name, int64_t n, bool integers, bool by_channel,
		      float x_scale)
{
	char s[40], q[40], in[100];
	struct rg_attr a = int_attr("axis", 0);
	int32_t whole[64];
	float scales[64], f[64];
	int64_t n_scales = by_channel ? n : 1;

	for (int64_t i = 0; i < n; i++) {
		scales[i] = x_scale * (0.002f + 0.001f * (float)i);
		whole[i] = (int32_t)(i * 731 % 2000 - 1000);
		f[i] = (float)(i % 5) * 0.21f - 0.4f;
	}
	if (!integers) {
		make_constant(g, name, RG_F32, 1, &n, f);
		return;
	}
	snprintf(s, sizeof(s), "%s:s", name);
	snprintf(q, sizeof(q), "%s:q", name);
	make_constant(g, q, RG_I32, 1, &n, whole);
	make_constant(g, s, RG_F32, by_channel ? 1 : 0, &n_scales, scales);
	snprintf(in, sizeof(in), "%s,%s", q, s);
	make_node_attrs(g, "DequantizeLinear", in, name, by_channel ? 1 : 0, &a);
}

/* ---- against the graph as it is ---- */

/* Outputs within `step` and what sums of float32 differ by, EXACT: the same; the plan that was made of it,
 * for what it holds. */
#define EXACT -1
static struct rg_plan *within(make_fn *make, uint64_t how, float step, struct rg_graph **g)
{
	struct rg_graph *plain = make(how);
	struct rg_plan *before = plan_at(plain, 0, 0, NULL), *after;
	float *want, *got;
	int n, n_after;

	*g = make(how);
	after = plan_at(*g, 3, 0, NULL);
	want = outputs_of(before, &n);
	got = outputs_of(after, &n_after);
	assert_int_equal(n, n_after);
	for (int i = 0; i < n; i++)
		if (!(fabsf(got[i] - want[i]) <= (step == EXACT ? 0 : step * 1.001f + 2e-4f)))
			fail_msg("order %d: output %d is %.9g, not %.9g", (int)how, i, (double)got[i],
				 (double)want[i]);
	check_accounted(after);
	free(want);
	free(got);
	rg_plan_free(before);
	rg_graph_free(plain);
	return after;
}

static void end(struct rg_plan *p, struct rg_graph *g)
{
	rg_plan_free(p);
	rg_graph_free(g);
}

/* ---- products ---- */

enum { CONV, MATMUL, BATCH, GEMM, GEMM_TURNED, N_PRODUCTS };
enum { NO_BIAS, FLOATS, INTEGERS, N_BIASES };
enum { NO_CLIP, RELU, CLIP, N_CLIPS };

struct product {
	int kind, bias, clip;
	bool by_channel, has_zero, to_bytes, from_zero; /* from_zero: bytes begin at 0 */
	enum rg_dtype x, w;
};

static struct product product_of(uint64_t how)
{
	struct product p = {
	    .kind = choose(&how, N_PRODUCTS), .bias = choose(&how, N_BIASES), .clip = choose(&how, N_CLIPS)};

	p.by_channel = choose(&how, 2);
	p.has_zero = choose(&how, 2);
	p.to_bytes = choose(&how, 2);
	p.x = choose(&how, 2) ? RG_U8 : RG_I8;
	p.w = choose(&how, 2) && p.has_zero ? RG_U8 : RG_I8;
	p.from_zero = choose(&how, 2);
	return p;
}
enum { N_PRODUCT_ORDERS = N_PRODUCTS * N_BIASES * N_CLIPS * 64 };

static struct rg_graph *make_product(uint64_t how)
{
	static const int64_t pads[] = {1, 1, 1, 1};
	struct product p = product_of(how);
	struct rg_graph *g = make_graph();
	int64_t dims[4] = {6, 5, 3, 3};
	bool conv = p.kind == CONV, gemm = p.kind >= GEMM, turned = p.kind == GEMM_TURNED;
	struct rg_attr conv_attr = ints_attr("pads", 4, pads), gemm_attrs[2] = {int_attr("transB", 1)};
	const char *last = "y";

	if (!conv) {
		dims[0] = turned ? 6 : 20;
		dims[1] = turned ? 20 : 6;
	}
	make_input(g, "x", RG_F32, conv ? "1x5x7x9" : p.kind == BATCH ? "2x3x20" : "3x20");
	make_pair_of(g, "x", "a", 0.0081f, p.x, p.x == RG_U8 ? 120 : -3);
	make_weights(g, "w", conv ? 4 : 2, dims,
		     !p.by_channel    ? -1
		     : conv || turned ? 0
				      : 1,
		     p.has_zero, p.w, how);
	if (p.bias)
		make_bias(g, "b", 6, p.bias == INTEGERS, p.by_channel, 0.0081f);
	if (conv)
		make_node_attrs(g, "Conv", p.bias ? "a,w,b" : "a,w", "y", 1, &conv_attr);
	else if (gemm)
		make_node_attrs(g, "Gemm", p.bias ? "a,w,b" : "a,w", "y", turned, gemm_attrs);
	else
		make_node(g, "MatMul", "a,w", "y");
	if (!conv && !gemm && p.bias) {
		make_node(g, "Add", how & 1 ? "y,b" : "b,y", "s");
		last = "s";
	}
	if (p.clip) {
		make_number(g, "low", -0.3f);
		make_number(g, "high", 0.7f);
		make_node(g, p.clip == RELU ? "Relu" : "Clip",
			  p.clip == RELU      ? last
			  : strcmp(last, "s") ? "y,low,high"
					      : "s,low,high",
			  "c");
		last = "c";
	}
	if (p.to_bytes) {
		make_pair_of(g, last, "z", STEP, p.x, (p.x == RG_U8 ? 0 : -128) + (p.from_zero ? 0 : 40));
		last = "z";
	}
	make_output(g, last);
	make_finish(g);
	return g;
}

static void check_product(const struct rg_plan *p, const struct product *t)
{
	int floats = count_op(p, "Conv") + count_op(p, "FusedConv") + count_op(p, "MatMul") +
		     count_op(p, "Gemm") + count_op(p, "FusedGemm");

	if (t->kind == CONV && !t->to_bytes) { /* no operator of bytes makes floats of it */
		assert_int_equal(floats, 1);
		return;
	}
	assert_int_equal(floats, 0);
	if (t->kind == CONV)
		assert_int_equal(count_op(p, "QLinearConv"), 1);
	else if (t->kind >= GEMM)
		assert_int_equal(count_op(p, "QGemm"), 1);
	else if (!t->to_bytes || (t->bias && t->kind == BATCH))
		assert_int_equal(count_op(p, "MatMulIntegerToFloat"), 1);
	else if (t->bias)
		assert_int_equal(count_op(p, "QGemm"), 1);
	else
		assert_int_equal(count_op(p, "QLinearMatMul"), 1);
	if (t->to_bytes && !(t->bias && t->kind == BATCH)) {
		assert_int_equal(count_op(p, "QuantizeLinear"), 1);   /* of the input */
		assert_int_equal(count_op(p, "DequantizeLinear"), 1); /* of the output */
		assert_int_equal(count_op(p, "Relu") + count_op(p, "Clip"), 0);
		/* where bytes begin at 0, that is Relu; a Clip to 0.7 is less than they hold */
		assert_int_equal(count_op(p, "LookUp"),
				 t->clip == CLIP || (t->clip == RELU && !t->from_zero));
	}
}

static void test_products(void **state)
{
	for (uint64_t how = 0; how < N_PRODUCT_ORDERS; how++) {
		struct product t = product_of(how);
		struct rg_graph *g;
		struct rg_plan *p = within(make_product, how, t.to_bytes ? STEP : 0, &g);

		check_product(p, &t);
		end(p, g);
	}
	for (uint64_t how = 0; how < N_PRODUCT_ORDERS; how += 37)
		check_settles(make_product, how);
}

/* ---- what else stands between ---- */

enum { N_BETWEEN = 20 };

static struct rg_graph *make_between(uint64_t how)
{
	static const int64_t kernel[] = {3, 2}, pads[] = {1, 0, 1, 1};
	int kind = choose(&how, N_BETWEEN), t = choose(&how, 2) ? RG_U8 : RG_I8,
	    zero = choose(&how, 2) ? 7 : 100;
	struct rg_attr pool[3] = {ints_attr("kernel_shape", 2, kernel), ints_attr("pads", 4, pads),
				  int_attr("count_include_pad", choose(&how, 2))};
	struct rg_attr axis = int_attr("axis", 1),
		       alpha = {.name = "alpha", .type = RG_ATTR_FLOAT, .f = 0.3f};
	struct rg_graph *g = make_graph();
	float scale = choose(&how, 2) ? 0.0081f : STEP;
	const char *last = "y";

	make_input(g, "x", RG_F32, "2x3x8x9");
	make_input(g, "u", RG_F32, "2x3x8x9");
	make_input(g, "v", RG_F32, "3x1x1");
	make_pair_of(g, "x", "a", 0.0081f, (enum rg_dtype)t, zero);
	make_pair_of(g, "u", "b", how & 1 ? 0.0123f : STEP, (enum rg_dtype)t, how & 1 ? zero - 5 : zero);
	make_pair_of(g, "v", "d", 0.0123f, (enum rg_dtype)t, zero);
	make_number(g, "half", 0.55f);
	make_number(g, "low", -0.5f);
	make_number(g, "three", 3);
	make_number(g, "six", 6);
	switch (kind) {
	case 0:
		make_node(g, "HardSwish", "a", "y");
		break;
	case 1:
		make_node(g, "Sigmoid", "a", "y");
		break;
	case 2:
		make_node_attrs(g, "LeakyRelu", "a", "y", 1, &alpha);
		break;
	case 3:
		make_node(g, "Relu", "a", "y");
		break;
	case 4:
		make_node(g, "Clip", "a,low,half", "y");
		break;
	case 5:
		make_node(g, "Mul", "half,a", "y");
		break;
	case 6: /* x Relu6(x + 3) / 6, taken apart, which other passes put together */
		make_node(g, "Add", "a,three", "i");
		make_node(g, "Relu", "i", "j");
		make_node(g, "Min", "j,six", "k");
		make_node(g, "Mul", "k,a", "l");
		make_node(g, "Div", "l,six", "y");
		break;
	case 7:
		make_node(g, "Identity", "a", "y");
		break; /* from one scale to another */
	case 8:
		make_node(g, "Add", "a,b", "y");
		break;
	case 9:
		make_node(g, "Add", "d,a", "y");
		break;
	case 10:
		make_node(g, "Mul", "a,d", "y");
		break;
	case 11:
		make_node_attrs(g, "Concat", "a,b", "y", 1, &axis);
		break;
	case 12:
		make_node_attrs(g, "Concat", "a,a", "y", 1, &axis);
		break;
	case 13:
		make_node(g, "GlobalAveragePool", "a", "y");
		break;
	case 14:
		make_node_attrs(g, "AveragePool", "a", "y", 3, pool);
		break;
	case 15: /* what only moves, and what picks the largest */
		make_node_attrs(g, "MaxPool", "a", "p", 2, pool);
		make_node(g, "Transpose", "p", "y");
		break;
	case 16:
		make_ints(g, "shape", 2, (const int64_t[]){6, 72});
		make_node(g, "Reshape", "a,shape", "y");
		break;
	case 17: /* a Relu that ends where bytes do */
		make_node(g, "Add", "a,b", "i");
		make_node(g, "Relu", "i", "y");
		break;
	case 18: /* tables one behind the other */
		make_node(g, "Tanh", "a", "i");
		make_pair_of(g, "i", "j", 0.0079f, (enum rg_dtype)t, 0);
		make_node(g, "Sigmoid", "j", "y");
		break;
	default:
		make_node(g, "Sub", "half,a", "y");
		break;
	}
	make_pair_of(g, last, "z", scale, (enum rg_dtype)t, kind == 17 ? (t == RG_U8 ? 0 : -128) : zero);
	make_output(g, "z");
	make_finish(g);
	return g;
}

static void test_between(void **state)
{
	static const char *const left[N_BETWEEN] = {
	    [8] = "QLinearAdd",          [9] = "QLinearAdd",
	    [10] = "QLinearMul",         [13] = "QLinearGlobalAveragePool",
	    [14] = "QLinearAveragePool", [17] = "QLinearAdd"};

	for (uint64_t how = 0; how < N_BETWEEN * 32; how++) {
		int kind = (int)(how % N_BETWEEN);
		struct rg_graph *g;
		struct rg_plan *p = within(make_between, how, STEP, &g);

		assert_int_equal(count_op(p, "DequantizeLinear"), 1);
		if (left[kind])
			assert_int_equal(count_op(p, left[kind]), 1);
		else if (kind == 11 || kind == 12)
			assert_int_equal(count_op(p, "Concat") + count_op(p, "QLinearConcat"), 1);
		else
			assert_true(count_op(p, "LookUp") <= 1); /* none where the scales are the same */
		for (int i = 0; i < p->n_steps; i++)             /* nothing of floats but at the ends */
			if (strcmp(g->nodes[p->steps[i].node].op_type, "QuantizeLinear") != 0 &&
			    g->values[g->nodes[p->steps[i].node].in[0]].dtype == RG_F32 &&
			    strncmp(g->nodes[p->steps[i].node].op_type, "QLinearConcat", 13) != 0)
				fail_msg("order %d: %s is left", (int)how,
					 g->nodes[p->steps[i].node].op_type);
		end(p, g);
	}
	for (uint64_t how = 0; how < N_BETWEEN; how++)
		check_settles(make_between, how);
}

/* ---- scales known at run time ---- */

/* Two products of one DynamicQuantizeLinear, as quantize_dynamic of ONNX Runtime writes them. */
static struct rg_graph *make_run_time(uint64_t how)
{
	bool swap = choose(&how, 2), bias = choose(&how, 2), by_channel = choose(&how, 2),
	     zero = choose(&how, 2);
	bool two = choose(&how, 2); /* scales, else the weights' is 1 and nobody multiplied by it */
	struct rg_attr to = int_attr("to", RG_F32);
	struct rg_graph *g = make_graph();

	make_input(g, "x", RG_F32, "2x3x20");
	make_node(g, "DynamicQuantizeLinear", "x", "q,s,z");
	for (int k = 0; k < 2; k++) {
		static const char *const names[2][8] = {{"w0", "i0", "f0", "m0", "o0", "b0", "y0", "w0:s"},
							{"w1", "i1", "f1", "m1", "o1", "b1", "y1", "w1:s"}};
		const char *const *n = names[k];
		char in[100];

		make_weights(g, n[0], 2, (const int64_t[]){20, 6}, by_channel ? 1 : -1, zero, RG_I8,
			     how + (uint64_t)k);
		snprintf(in, sizeof(in), zero ? "q,%s:q,z,%s:z" : "q,%s:q,z", n[0], n[0]);
		make_node(g, "MatMulInteger", in, n[1]);
		make_node_attrs(g, "Cast", n[1], n[2], 1, &to);
		make_pair(g, "Mul", "s", n[7], n[3], swap);
		make_pair(g, "Mul", n[2], two ? n[3] : "s", n[4], swap);
		if (bias) {
			make_bias(g, n[5], 6, false, false, 1);
			make_pair(g, "Add", n[4], n[5], n[6], swap);
		}
		make_output(g, bias ? n[6] : n[4]);
	}
	make_finish(g);
	return g;
}

static void test_run_time(void **state)
{
	for (uint64_t how = 0; how < 32; how++) {
		struct rg_graph *g;
		struct rg_plan *p = within(make_run_time, how, 0, &g);

		assert_int_equal(count_op(p, "MatMulIntegerToFloat"), 2);
		assert_int_equal(count_op(p, "DynamicQuantizeLinear"), 1);
		assert_int_equal(p->n_steps, 3);
		end(p, g);
		check_settles(make_run_time, how);
	}
}

/* ---- whole networks ---- */

enum { NODES = 12 };

/* Weights of -1, 0 and 1: n of them, as bytes with the scale 1. */
static void make_whole_weights(struct rg_graph *g, const char *name, int rank, const int64_t *dims,
			       uint64_t stream)
{
	char q[40], z[40], in[140];
	int64_t count = 1;
	int8_t bytes[256];

	for (int d = 0; d < rank; d++)
		count *= dims[d];
	assert_true(count <= 256);
	for (int64_t i = 0; i < count; i++) /* most are 0, so that results stay in range */
		bytes[i] = (int8_t)(rg_rng_integer(stream, (uint64_t)i, -4, 4) / 4);
	snprintf(q, sizeof(q), "%s:q", name);
	snprintf(z, sizeof(z), "%s:z", name);
	make_constant(g, q, RG_I8, rank, dims, bytes);
	make_zero(g, z, RG_I8, 0);
	make_number(g, "one", 1);
	snprintf(in, sizeof(in), "%s,one,%s", q, z);
	make_node(g, "DequantizeLinear", in, name);
}

/* One operator on `a` (and `b`), all of shape 1x4x8x8, that makes whole numbers of whole numbers but for
 * HardSwish, which makes no halves. */
static void make_whole(struct rg_graph *g, int kind, const char *a, const char *b, const char *y,
		       uint64_t stream)
{
	static const int64_t pads[] = {1, 1, 1, 1}, kernel[] = {3, 3}, perm[] = {0, 1, 3, 2};
	struct rg_attr window[2] = {ints_attr("pads", 4, pads), ints_attr("kernel_shape", 2, kernel)},
		       turn = ints_attr("perm", 4, perm), axis = int_attr("axis", 1);
	char w[40], in[140], inner[40];

	snprintf(w, sizeof(w), "%s-w", y);
	snprintf(inner, sizeof(inner), "%s-i", y);
	switch (kind) {
	case 0:
	case 1:
	case 2:
		make_whole_weights(g, w, 4, INTS(4, 4, 3, 3), stream);
		snprintf(in, sizeof(in), "%s,%s", a, w);
		make_node_attrs(g, "Conv", in, y, 1, window);
		break;
	case 3:
		make_whole_weights(g, w, 2, INTS(8, 8), stream);
		snprintf(in, sizeof(in), "%s,%s", a, w);
		make_node(g, "MatMul", in, y);
		break;
	case 4:
	case 5:
		make_pair(g, "Add", a, b, y, false);
		break;
	case 6:
		make_pair(g, "Mul", a, b, y, false);
		break;
	case 7:
		make_node(g, "Relu", a, y);
		break;
	case 8:
		make_number(g, "low", -3);
		make_number(g, "high", 40);
		snprintf(in, sizeof(in), "%s,low,high", a);
		make_node(g, "Clip", in, y);
		break;
	case 9:
		make_node_attrs(g, "MaxPool", a, y, 2, window);
		break;
	case 10:
		make_node_attrs(g, "Transpose", a, y, 1, &turn);
		break;
	case 11:
		make_node(g, "HardSwish", a, y);
		break;
	default: /* twice as many channels, and the middle of them */
		if (rg_graph_find_value(g, "two") < 0) {
			make_ints(g, "two", 1, INTS(2));
			make_ints(g, "six", 1, INTS(6));
			make_ints(g, "first", 1, INTS(1));
		}
		snprintf(in, sizeof(in), "%s,%s", a, b);
		make_node_attrs(g, "Concat", in, inner, 1, &axis);
		snprintf(in, sizeof(in), "%s,two,six,first", inner);
		make_node(g, "Slice", in, y);
	}
}

/*
 * Scales are 1 and 2, zero points even: all that is computed is whole or ends in a half, in float32 and in
 * integers alike, so the bytes are the same ones, however deep the network is.
 */
static struct rg_graph *make_network(uint64_t seed)
{
	uint64_t stream = rg_rng_stream(seed, "network");
	enum rg_dtype type = seed & 1 ? RG_U8 : RG_I8;
	struct rg_graph *g = make_graph();
	char names[NODES + 1][16], exact[24];

	make_input(g, "x", RG_F32, "1x4x8x8");
	make_number(g, "ten", 10);
	make_node(g, "Mul", "x,ten", "scaled");
	make_pair_of(g, "scaled", "n0", 1, type, type == RG_U8 ? 128 : 0);
	strcpy(names[0], "n0");
	for (int i = 1; i <= NODES; i++) {
		uint64_t at = 10 * (uint64_t)i;
		int kind = (int)rg_rng_integer(stream, at, 0, 12);
		int last = (int)rg_rng_integer(stream, at + 1, i > 3 ? i - 3 : 0, i - 1);
		bool pair = kind < 7 || kind == 11 || rg_rng_integer(stream, at + 3, 0, 1);
		bool doubled = kind != 11 && rg_rng_integer(stream, at + 4, 0, 3) == 0;
		enum rg_dtype own = rg_rng_integer(stream, at + 6, 0, 7) ? type : RG_U8;

		snprintf(names[i], sizeof(names[i]), "n%d", i);
		snprintf(exact, sizeof(exact), "%s%s", names[i], pair ? ":exact" : "");
		make_whole(g, kind, names[i - 1], names[last], exact, rg_rng_stream(seed, names[i]));
		if (pair)
			make_pair_of(g, exact, names[i], doubled ? 2 : 1, own,
				     2 * (int)rg_rng_integer(stream, at + 5, own == RG_U8 ? 0 : -64,
							     own == RG_U8 ? 127 : 0));
		if (rg_rng_integer(stream, at + 7, 0, 9) == 0)
			make_output(g, pair ? exact : names[i]);
	}
	make_node(g, "Identity", names[NODES], "end");
	make_output(g, "end");
	make_finish(g);
	return g;
}

static void test_networks(void **state)
{
	int products = 0, tables = 0, sums = 0;

	for (uint64_t seed = 0; seed < 300; seed++) {
		struct rg_graph *g;
		struct rg_plan *p = within(make_network, seed, EXACT, &g);

		products += count_op(p, "QLinearConv") + count_op(p, "QLinearMatMul");
		tables += count_op(p, "LookUp");
		sums += count_op(p, "QLinearAdd") + count_op(p, "QLinearMul") + count_op(p, "QLinearConcat");
		end(p, g);
		if (seed % 10 == 0)
			check_settles(make_network, seed);
	}
	assert_true(products > 300 && tables > 100 && sums > 200);
}

/* ---- what has to be left alone ---- */

static const char *planted_pass(int i)
{
	return i < 7 || i > 12 ? "qdq-product"
	       : i < 10        ? "qdq-ewise"
	       : i < 11        ? "qdq-move"
			       : "dynamic-product";
}

static struct planted plant(int i)
{
	struct planted t = {.g = make_graph(), .pass = planted_pass(i)};
	struct rg_graph *g = t.g;
	struct rg_attr beta = {.name = "beta", .type = RG_ATTR_FLOAT, .f = 2}, to = int_attr("to", RG_F32),
		       ceiling = int_attr("ceil_mode", 1),
		       pool[2] = {ints_attr("kernel_shape", 2, INTS(2, 2)), ceiling};
	const float large[6] = {1e9f};

	make_input(g, "x", RG_F32, i == 1 || i == 9 ? "1x5x7x9" : i == 13 ? "1x5x2x7x9" : "3x20");
	make_pair_of(g, "x", "a", 0.0081f, RG_U8, 120);
	switch (i) {
	case 0: /* somebody else reads what would be quantised */
	case 3: /* it is an output */
		make_weights(g, "w", 2, INTS(20, 6), -1, true, RG_I8, 1);
		make_node(g, "MatMul", "a,w", "y");
		make_pair_of(g, "y", "z", STEP, RG_U8, 100);
		make_node(g, "Softmax", "y", "other");
		make_output(g, i == 0 ? "other" : "y");
		make_output(g, "z");
		t.node = "z:q";
		t.why = i == 0 ? RG_DECLINE_SECOND_CONSUMER : RG_DECLINE_GRAPH_OUTPUT;
		break;
	case 1: /* a convolution to floats */
		make_weights(g, "w", 4, INTS(6, 5, 3, 3), -1, true, RG_I8, 1);
		make_node(g, "Conv", "a,w", "y");
		make_output(g, "y");
		t.node = "a";
		t.why = RG_DECLINE_KERNEL;
		break;
	case 2: /* scales by row */
		make_weights(g, "w", 2, INTS(20, 6), 0, true, RG_I8, 1);
		make_node(g, "MatMul", "a,w", "y");
		make_output(g, "y");
		t.node = "a";
		t.why = RG_DECLINE_ATTRIBUTE;
		break;
	case 4: /* a factor of the bias */
		make_weights(g, "w", 2, INTS(20, 6), -1, true, RG_I8, 1);
		make_bias(g, "b", 6, false, false, 1);
		make_node_attrs(g, "Gemm", "a,w,b", "y", 1, &beta);
		make_output(g, "y");
		t.node = "a";
		t.why = RG_DECLINE_ATTRIBUTE;
		break;
	case 5: /* a bias beyond 32 bits */
		make_weights(g, "w", 2, INTS(20, 6), -1, true, RG_I8, 1);
		make_floats(g, "b", "6", large);
		make_node(g, "Gemm", "a,w,b", "y");
		make_output(g, "y");
		t.node = "a";
		t.why = RG_DECLINE_RANGE;
		break;
	case 6: /* a bias given at run time */
		make_weights(g, "w", 2, INTS(20, 6), -1, true, RG_I8, 1);
		make_input(g, "b", RG_F32, "6");
		make_node(g, "Gemm", "a,w,b", "y");
		make_output(g, "y");
		t.node = "a";
		t.why = RG_DECLINE_NOT_CONSTANT;
		break;
	case 7: /* int8 and uint8 are added */
		make_pair_of(g, "x", "b", 0.01f, RG_I8, 3);
		make_node(g, "Add", "a,b", "y");
		make_pair_of(g, "y", "z", STEP, RG_U8, 100);
		make_output(g, "z");
		t.node = "z:q";
		t.why = RG_DECLINE_TYPE;
		break;
	case 8: /* a sum that others read */
		make_pair_of(g, "x", "b", 0.01f, RG_U8, 3);
		make_node(g, "Add", "a,b", "y");
		make_node(g, "Softmax", "y", "other");
		make_pair_of(g, "y", "z", STEP, RG_U8, 100);
		make_output(g, "other");
		make_output(g, "z");
		t.node = "z:q";
		t.why = RG_DECLINE_SECOND_CONSUMER;
		break;
	case 9: /* a pool that counts otherwise */
		make_node_attrs(g, "AveragePool", "a", "y", 2, pool);
		make_pair_of(g, "y", "z", STEP, RG_U8, 100);
		make_output(g, "z");
		t.node = "z:q";
		t.why = RG_DECLINE_ATTRIBUTE;
		break;
	case 10: /* floats that others read, too */
		make_node(g, "Transpose", "a", "y");
		make_node(g, "Softmax", "y", "other");
		make_node(g, "Softmax", "a", "more");
		make_output(g, "other");
		make_output(g, "more");
		t.node = "a";
		t.why = RG_DECLINE_SECOND_CONSUMER;
		break;
	case 13: /* a convolution of more dimensions than kernels of bytes have */
		make_weights(g, "w", 5, INTS(6, 5, 1, 3, 3), -1, true, RG_I8, 1);
		make_node(g, "Conv", "a,w", "y");
		make_pair_of(g, "y", "z", STEP, RG_U8, 100);
		make_output(g, "z");
		t.node = "a";
		t.why = RG_DECLINE_KERNEL;
		break;
	case 11: /* a scale by which the result gets another shape */
	default: /* sums that somebody else reads */
		make_node(g, "DynamicQuantizeLinear", "x", "q,s,zero");
		make_weights(g, "w", 2, INTS(20, 6), -1, true, RG_I8, 1);
		make_node(g, "MatMulInteger", "q,w:q,zero,w:z", "i");
		make_node_attrs(g, "Cast", "i", "f", 1, &to);
		make_node(g, "Mul", "s,w:s", "m");
		make_floats(g, "cube", "1x1x1", NULL);
		make_node(g, "Mul", i == 11 ? "f,cube" : "f,m", "y");
		make_output(g, "y");
		make_node(g, "Softmax", "f", "j");
		if (i > 11)
			make_output(g, "j");
		t.node = i == 11 ? "y" : "f";
		t.why = i == 11 ? RG_DECLINE_BROADCASTING : RG_DECLINE_SECOND_CONSUMER;
	}
	make_finish(g);
	return t;
}

/* The one note of that pass that is a decline. */
static void test_declines(void **state)
{
	for (int i = 0; i < 14; i++) {
		struct planted t = plant(i);
		struct rg_plan *p = plan_at(t.g, 3, 0, NULL);
		int found = 0;
		char name[32];

		snprintf(name, sizeof(name), "n:%s", t.node);
		for (int k = 0; k < p->passes.n_notes; k++) {
			const struct rg_pass_note *n = &p->passes.notes[k];

			if (strcmp(n->pass, t.pass) || !n->decline)
				continue;
			found++;
			if (strcmp(n->node, name) || n->decline != t.why)
				fail_msg("graph %d: %s %s, not %s %s", i, n->node,
					 rg_decline_name(n->decline), name, rg_decline_name(t.why));
		}
		if (found != 1)
			fail_msg("graph %d: %d declines of pass %s", i, found, t.pass);
		end(p, t.g);
	}
}

/* A file for another runtime keeps its pairs. */
static void test_not_for_files(void **state)
{
	static const struct rg_plan_options po = {.lanes = 1};
	struct rg_pass_options o = {.level = 3, .portable = true};
	struct rg_error err = RG_ERROR_INIT;
	struct rg_pass_log log = {0};
	struct rg_graph *g = make_product(0);

	assert_int_equal(rg_fold_graph(g, &po, &err), 0);
	assert_int_equal(rg_passes_run(g, &o, &log, &err), 0);
	for (int i = 0; i < g->n_nodes; i++)
		assert_string_not_equal(g->nodes[i].domain, RG_OWN_DOMAIN);
	for (int i = 0; i < log.n_notes; i++)
		assert_int_not_equal(strncmp(log.notes[i].pass, "qdq", 3), 0);
	rg_pass_log_free(&log);
	rg_graph_free(g);
}

static void test_allocation_failures(void **state)
{
	/* a convolution with a bias, Clip and QuantizeLinear; a Gemm; a sum; tables; moves; run time */
	check_allocations(make_product,
			  CONV + N_PRODUCTS * (FLOATS + N_BIASES * (CLIP + N_CLIPS * (uint64_t)5)));
	check_allocations(make_product,
			  GEMM + N_PRODUCTS * (FLOATS + N_BIASES * (RELU + N_CLIPS * (uint64_t)5)));
	check_allocations(make_between, 8);
	check_allocations(make_between, 11);
	check_allocations(make_between, 15);
	check_allocations(make_between, 18);
	check_allocations(make_run_time, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_products),
	    cmocka_unit_test(test_between),
	    cmocka_unit_test(test_run_time),
	    cmocka_unit_test(test_networks),
	    cmocka_unit_test(test_declines),
	    cmocka_unit_test(test_not_for_files),
	    cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("pass-quantised", tests, NULL, NULL);
}
