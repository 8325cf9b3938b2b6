/* Calls of ONNX Runtime's fused operators and of ridge's own. See check.h. */
#include "check.h"

#include <string.h>

#include "graph/own.h"

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })

static double deep(const struct nn_case *t)
{
	const struct rg_shape *a = &t->in[0].shape;
	int64_t k = 1;

	/* whichever way it lies: the dimension that the output lacks is one of the two */
	for (int d = a->rank - 1; d >= 0 && d >= a->rank - 2; d--)
		k = a->dim[d] > k ? a->dim[d] : k;
	return (double)(a->rank > 2 && a->dim[0] > k ? a->dim[0] : k);
}

static enum nn_fill fill(struct ck_gen *g)
{
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_UNIFORM, NN_WHOLE, NN_BIG, NN_TINY, NN_NAN, NN_INF };

	return CK_PICK(g, fills);
}

static bool is_own(const struct nn_case *t)
{
	return strcmp(t->node.domain, RG_OWN_DOMAIN) == 0;
}

/* One of ridge's own activations, and what may follow it. */
static const char *own_activation(struct nn_case *t, struct ck_gen *g)
{
	static const char *const activations[] = { "", "Relu", "Clip", "HardSwish", "HardSwish", "HardSigmoid", "LeakyRelu",
						   "Sigmoid", "Silu", "Swish", "Tanh", "Gelu", "GeluTanh" };
	static const float bounds[] = { -1, 6 }, sixth[] = { 1.0f / 6, 0.5f }, some[] = { 0.25f };
	const char *activation = CK_PICK(g, activations);

	nn_string(t, "activation", activation);
	if (!strcmp(activation, "Clip"))
		nn_floats(t, "activation_params", 2, bounds);
	if (!strcmp(activation, "HardSigmoid"))
		nn_floats(t, "activation_params", 2, sixth);
	if (!strcmp(activation, "LeakyRelu") || !strcmp(activation, "Swish"))
		nn_floats(t, "activation_params", 1, some);
	if (ck_chance(g, 40))
		nn_float(t, "scale", 0.75f);
	if (ck_chance(g, 40))
		nn_float(t, "shift", -1.5f);
	return activation;
}

static void fused_gemm(struct nn_case *t, struct ck_gen *g)
{
	static const char *const activations[] = { "Relu", "Relu", "Relu", "LeakyRelu", "Tanh", "Sigmoid", "HardSigmoid" };
	int64_t m = ck_some(g, 60), n = ck_some(g, 60), k = ck_some(g, 200);
	int ta = ck_chance(g, 30), tb = ck_chance(g, 50);
	enum nn_fill f = fill(g), others = f == NN_WHOLE ? f : NN_UNIFORM;
	bool bias = ck_chance(g, 60), sum = is_own(t) && ck_chance(g, 40);
	const char *activation;

	nn_int(t, "transA", ta);
	nn_int(t, "transB", tb);
	if (is_own(t))
		activation = own_activation(t, g);
	else
		nn_string(t, "activation", activation = CK_PICK(g, activations));
	nn_input(t, f, 2, ta ? DIMS(k, m) : DIMS(m, k));
	nn_input(t, others, 2, tb ? DIMS(n, k) : DIMS(k, n));
	if (bias)
		nn_input(t, others, 1, ck_chance(g, 50) ? &n : DIMS(1));
	else if (sum)
		nn_absent(t);
	if (sum)
		nn_input(t, others, 2, DIMS(m, n));
	t->whole = t->whole && !strcmp(activation, "Relu") && !is_own(t);
	t->weights = 6;
}

static void fused_matmul(struct nn_case *t, struct ck_gen *g)
{
	bool fused = !strcmp(t->node.op_type, "FusedMatMul");
	int64_t m = ck_some(g, 40), n = ck_some(g, 40), k = ck_some(g, 100), batch = ck_between(g, 1, 4), a[4], b[4];
	int ta = fused && ck_chance(g, 40), tb = fused && ck_chance(g, 40), rank = (int)ck_between(g, 2, 3);
	int batch_a = fused && rank == 3 && ck_chance(g, 20), batch_b = fused && rank == 3 && ck_chance(g, 20);
	enum nn_fill f = fill(g);

	if (fused) {
		nn_int(t, "transA", ta);
		nn_int(t, "transB", tb);
		nn_int(t, "transBatchA", batch_a);
		nn_int(t, "transBatchB", batch_b);
		if (ck_chance(g, 40))
			nn_float(t, "alpha", 0.125f);
	}
	a[0] = b[0] = batch;
	a[rank - 2] = ta ? k : m;
	a[rank - 1] = ta ? m : k;
	b[rank - 2] = tb ? n : k;
	b[rank - 1] = tb ? k : n;
	/* the batch lies between the two */
	if (batch_a) {
		a[0] = a[1];
		a[1] = batch;
	}
	if (batch_b) {
		b[0] = b[1];
		b[1] = batch;
	}
	nn_input(t, f, rank, a);
	nn_input(t, f == NN_WHOLE ? f : NN_UNIFORM, rank, b);
	t->weights = 2;
}

static double taps(const struct nn_case *t)
{
	const struct rg_shape *w = &t->in[1].shape;

	return (double)rg_shape_count_range(w, 1, w->rank);
}

static void fused_conv(struct nn_case *t, struct ck_gen *g)
{
	static const char *const activations[] = { "Relu", "Relu", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip" };
	static const float leak[] = { 0.25f }, bounds[] = { -1, 6 };
	bool depthwise = ck_chance(g, 30);
	int64_t kernel = ck_between(g, 0, 3) * 2 + 1;
	int64_t group = depthwise ? ck_between(g, 2, 40) : ck_chance(g, 75) ? 1 : ck_between(g, 2, 3);
	int64_t c_in = depthwise ? group : group * ck_some(g, 40 / group);
	int64_t c_out = group * (depthwise ? ck_between(g, 1, 2) : ck_some(g, 70 / group));
	int64_t stride = ck_chance(g, 70) ? 1 : 2, size[2] = { ck_some(g, 24), ck_some(g, 40) };
	int64_t pads[4] = { kernel / 2, kernel / 2, kernel / 2, kernel / 2 };
	const char *activation;
	bool bias = ck_chance(g, 70), sum = ck_chance(g, depthwise ? 15 : 40);
	enum nn_fill f = fill(g), others = f == NN_WHOLE ? f : NN_UNIFORM;

	nn_ints(t, "kernel_shape", 2, DIMS(kernel, kernel));
	nn_ints(t, "strides", 2, DIMS(stride, stride));
	nn_ints(t, "pads", 4, pads);
	nn_int(t, "group", group);
	if (is_own(t)) {
		activation = own_activation(t, g);
	} else {
		nn_string(t, "activation", activation = CK_PICK(g, activations));
		if (activation[0] == 'L')
			nn_floats(t, "activation_params", 1, leak);
		if (activation[0] == 'C')
			nn_floats(t, "activation_params", 2, bounds);
	}
	nn_input(t, f, 4, DIMS(ck_chance(g, 80) ? 1 : 2, c_in, size[0], size[1]));
	nn_input(t, others, 4, DIMS(c_out, c_in / group, kernel, kernel));
	if (bias)
		nn_input(t, others, 1, &c_out);
	else if (sum)
		nn_absent(t);
	if (sum)
		nn_input(t, others, 4, DIMS(t->in[0].shape.dim[0], c_out, (size[0] - 1) / stride + 1,
					    (size[1] - 1) / stride + 1));
	t->whole = t->whole && (activation[0] == 'R' || activation[0] == 'C') && !is_own(t);
	t->weights = 6;
}

#define SUM(OP, MAKE, TERMS) \
	{ .domain = RG_CONTRIB_DOMAIN, .op_type = OP, .make = MAKE, .measure = CK_SUM, .terms = TERMS, .ulps = 8, \
	  .whole_is_exact = true }

#define OWN(OP, MAKE, TERMS) \
	{ .domain = RG_OWN_DOMAIN, .op_type = OP, .make = MAKE, .measure = CK_SUM, .terms = TERMS, .ulps = 12 }

static const struct ck_family families[] = {
	OWN("FusedConv", fused_conv, taps),
	OWN("FusedGemm", fused_gemm, deep),
	SUM("FusedConv", fused_conv, taps),
	SUM("FusedGemm", fused_gemm, deep),
	SUM("FusedMatMul", fused_matmul, deep),
	SUM("TransposeMatMul", fused_matmul, deep),
};
CK_FAMILY_TABLE(ck_families_fused, families);
