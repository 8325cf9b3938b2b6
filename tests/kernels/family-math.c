/* Calls of elementwise operators of one operand. See check.h. */
#include "check.h"

#include <math.h>
#include <string.h>

#include "graph/contrib.h"

/* One input: a vector of every interesting length, or a few dimensions. */
static void one(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[3];
	float *x;
	int64_t n;

	if (ck_chance(g, 80)) {
		dim[0] = ck_length(g);
		x = nn_input(t, ck_fill_elements(g), 1, dim);
	} else {
		for (int d = 0; d < 3; d++)
			dim[d] = ck_size(g, 20);
		x = nn_input(t, ck_fill_elements(g), (int)ck_between(g, 0, 3), dim);
	}
	/* where exponentials leave the range */
	n = rg_shape_count(&t->in[0].shape);
	for (int64_t i = 0; i < n && ck_chance(g, 20); i += 5)
		x[i] *= 90;
}

static void hard_sigmoid(struct nn_case *t, struct ck_gen *g)
{
	if (ck_chance(g, 60))
		nn_float(t, "alpha", (float)ck_between(g, 1, 50) / 64);
	if (ck_chance(g, 60))
		nn_float(t, "beta", (float)ck_between(g, 0, 64) / 64);
	one(t, g);
}

static void with_alpha(struct nn_case *t, struct ck_gen *g)
{
	if (ck_chance(g, 60))
		nn_float(t, "alpha", (float)ck_between(g, 1, 200) / 64);
	one(t, g);
}

static void clip(struct nn_case *t, struct ck_gen *g)
{
	if (ck_chance(g, 30)) {
		t->node.version = 6;
		if (ck_chance(g, 70))
			nn_float(t, "min", -0.25f);
		if (ck_chance(g, 70))
			nn_float(t, "max", 0.5f);
		one(t, g);
		return;
	}
	one(t, g);
	if (ck_chance(g, 80))
		*nn_input(t, NN_UNIFORM, 0, NULL) -= 0.75f;
	else
		nn_absent(t);
	if (ck_chance(g, 80))
		*nn_input(t, NN_UNIFORM, 0, NULL) += 0.75f;
	t->weights = 6;
}

static bool bench_one(struct nn_case *t, int i)
{
	static const int64_t n[] = { 1000, 100352, 3000000 };

	if (i == 3)
		return false;
	nn_input(t, NN_UNIFORM, 1, &n[i]);
	return true;
}

static double four(const struct nn_case *t)
{
	return 4;
}

static void selu(struct nn_case *t, struct ck_gen *g)
{
	if (ck_chance(g, 60))
		nn_float(t, "gamma", (float)ck_between(g, 1, 200) / 64);
	with_alpha(t, g);
}

static void shrink(struct nn_case *t, struct ck_gen *g)
{
	if (ck_chance(g, 60))
		nn_float(t, "lambd", (float)ck_between(g, 0, 64) / 64);
	if (ck_chance(g, 60))
		nn_float(t, "bias", (float)ck_between(g, -64, 64) / 64);
	one(t, g);
}

static void is_inf(struct nn_case *t, struct ck_gen *g)
{
	if (ck_chance(g, 60))
		nn_int(t, "detect_negative", ck_between(g, 0, 1));
	if (ck_chance(g, 60))
		nn_int(t, "detect_positive", ck_between(g, 0, 1));
	one(t, g);
}

static void not(struct nn_case *t, struct ck_gen *g)
{
	int64_t n = ck_length(g);

	nn_input_bytes(t, RG_BOOL, 1, &n);
}

static void gelu(struct nn_case *t, struct ck_gen *g)
{
	if (t->node.domain[0] == '\0' && ck_chance(g, 50))
		nn_string(t, "approximate", ck_chance(g, 50) ? "tanh" : "none");
	one(t, g);
}

/* With a bias along the last dimension. */
static void bias_gelu(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[] = { ck_some(g, 3), ck_size(g, 9), ck_some(g, 900) };
	enum nn_fill fill = ck_chance(g, 50) ? NN_UNIFORM : NN_WIDE;

	nn_input(t, fill, 3, dim);
	if (!strcmp(t->node.op_type, "BiasGelu") || ck_chance(g, 60))
		nn_input(t, NN_UNIFORM, 1, dim + 2);
	t->weights = 2;
}

/*
 * gelu with tanh is off by up to 2^-21 of |x| (vmath.h), the other by 8 units; its
 * slope is below 1.2, and the sum with a bias is rounded before.
 */
static void gelu_bound(const struct nn_case *t, const float *want, double *out)
{
	bool tanh = !strcmp(t->node.op_type, "FastGelu") ||
		    !strcmp(rg_node_string(&t->node, "approximate", "none"), "tanh");
	const float *x = t->in[0].data, *bias = t->node.n_in > 1 ? t->in[1].data : NULL;
	int64_t last = t->in[0].shape.rank ? t->in[0].shape.dim[t->in[0].shape.rank - 1] : 1;

	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++) {
		double size = fabs((double)x[i]) + (bias ? fabs((double)bias[i % last]) : 0);

		out[i] = (bias ? 2 * 0x1p-24 * size : 0) + (tanh ? 0x1p-21 * fmin(size, 1e6) : 0) +
			 16 * 0x1p-24 * fabs((double)want[i]) + 0x1p-146;
	}
}

/* x sigmoid(a x): a rounding of a x is |a x| units of the exponential; 0 where that
 * overflows, below -88. */
static void swish_bound(const struct nn_case *t, const float *want, double *out)
{
	double alpha = (double)rg_node_float(&t->node, "alpha", t->node.domain[0] ? 1.702f : 1);
	const float *x = t->in[0].data;

	for (int64_t i = 0; i < rg_shape_count(&t->out[0].shape); i++)
		out[i] = (8 + fmin(fabs(alpha * (double)x[i]), 110)) * 0x1p-24 * fabs((double)want[i]) + 1e-36;
}

/* x + bias + skip */
static void bias_add(struct nn_case *t, struct ck_gen *g)
{
	int64_t dim[] = { ck_some(g, 3), ck_size(g, 9), ck_some(g, 300) };

	nn_input(t, NN_UNIFORM, 3, dim);
	nn_input(t, NN_UNIFORM, 1, dim + 2);
	nn_input(t, NN_UNIFORM, 3, dim);
	t->weights = 2;
}

#define UNARY(OP, MAKE, ULPS, FLOOR) \
	{ .op_type = OP, .make = MAKE, .measure = CK_ULPS, .ulps = ULPS, .floor = FLOOR, .bench = bench_one }
/* Straight lines with a bend: errors are those of the sums before it is cut. */
#define LINES(OP, MAKE) { .op_type = OP, .make = MAKE, .measure = CK_SUM, .terms = four, .bench = bench_one }

#define GELU(DOMAIN, OP, MAKE) \
	{ .domain = DOMAIN, .op_type = OP, .make = MAKE, .measure = CK_OWN, .tolerance = gelu_bound, .bench = bench_one }

/* The bounds of functions are those that kernels/generic/vmath.h states, and 1 for the
 * rounding of the reference and what is done before or behind the function. */
static const struct ck_family families[] = {
	UNARY("Abs", one, 0, 0),
	{ .domain = RG_CONTRIB_DOMAIN, .op_type = "BiasAdd", .make = bias_add, .measure = CK_SUM, .terms = four },
	GELU(RG_CONTRIB_DOMAIN, "BiasGelu", bias_gelu),
	UNARY("Ceil", one, 0, 0),
	UNARY("Celu", with_alpha, 4, 0x1p-149),
	UNARY("Clip", clip, 0, 0),
	UNARY("Cos", one, 3, 1e-7),
	UNARY("Elu", with_alpha, 4, 0x1p-149),
	UNARY("Erf", one, 4, 0x1p-149),
	UNARY("Exp", one, 2, 0x1p-149),
	GELU(RG_CONTRIB_DOMAIN, "FastGelu", bias_gelu),
	UNARY("Floor", one, 0, 0),
	GELU("", "Gelu", gelu),
	GELU(RG_CONTRIB_DOMAIN, "Gelu", gelu),
	LINES("HardSigmoid", hard_sigmoid),
	LINES("HardSwish", one),
	UNARY("IsInf", is_inf, 0, 0),
	UNARY("IsNaN", one, 0, 0),
	UNARY("LeakyRelu", with_alpha, 0, 0),
	UNARY("Log", one, 3, 0),
	UNARY("Mish", one, 7, 0x1p-126),
	UNARY("Neg", one, 0, 0),
	{ .op_type = "Not", .make = not, .measure = CK_EXACT },
	{ .domain = RG_CONTRIB_DOMAIN, .op_type = "QuickGelu", .make = with_alpha, .measure = CK_OWN, .tolerance = swish_bound },
	UNARY("Reciprocal", one, 1, 0),
	UNARY("Relu", one, 0, 0),
	UNARY("Round", one, 0, 0),
	UNARY("Selu", selu, 4, 0x1p-147),
	UNARY("Shrink", shrink, 1, 0),
	UNARY("Sigmoid", one, 4, 2e-38),
	UNARY("Sign", one, 0, 0),
	UNARY("Sin", one, 3, 1e-7),
	UNARY("Softplus", one, 4, 0x1p-149),
	UNARY("Softsign", one, 2, 0),
	UNARY("Sqrt", one, 1, 0),
	{ .op_type = "Swish", .make = with_alpha, .measure = CK_OWN, .tolerance = swish_bound, .bench = bench_one },
	UNARY("Tanh", one, 5, 0x1p-149),
	UNARY("ThresholdedRelu", with_alpha, 0, 0),
};
CK_FAMILY_TABLE(ck_families_math, families);
