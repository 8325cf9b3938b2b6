/* Calls of matrix products, convolutions and pools. See check.h. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })

/* ---- matrix products ---- */

/*
 * Sizes of a product: small ones, skinny ones, and one dimension at a time beyond
 * what a cache-blocked kernel takes at once.
 */
static void product_sizes(struct ck_gen *g, int64_t *m, int64_t *n, int64_t *k)
{
	switch (ck_between(g, 0, 9)) {
	case 0:
	case 1:
		*m = ck_some(g, 16);
		*n = ck_size(g, 300);
		*k = ck_size(g, 300);
		break;
	case 2:
		*m = ck_size(g, 300);
		*n = ck_some(g, 16);
		*k = ck_size(g, 300);
		break;
	case 3:
		*m = ck_some(g, 24);
		*n = ck_some(g, 24);
		*k = ck_some(g, 1100);
		break;
	case 4:
		*m = ck_some(g, 600);
		*n = ck_some(g, 50);
		*k = ck_some(g, 20);
		break;
	case 5:
		*m = ck_some(g, 20);
		*n = ck_some(g, 2100);
		*k = ck_some(g, 20);
		break;
	case 6:
		*m = ck_some(g, 150);
		*n = ck_some(g, 150);
		*k = ck_some(g, 400);
		break;
	default:
		*m = ck_size(g, 50);
		*n = ck_size(g, 50);
		*k = ck_size(g, 50);
	}
}

static const float factors[] = { 1, 1, 1, 0.5f, -2, 0, 0.3f };
enum { FACTOR_0 = 5 };

static void gemm(struct nn_case *t, struct ck_gen *g)
{
	enum nn_fill fill = ck_fill(g);
	int ta = ck_chance(g, 30), tb = ck_chance(g, 50);
	int64_t m, n, k;

	product_sizes(g, &m, &n, &k);
	nn_int(t, "transA", ta);
	nn_int(t, "transB", tb);
	if (ck_chance(g, 40)) {
		int i = (int)ck_between(g, 0, 6);

		/* BLAS does not read A and B when alpha is 0; arithmetic says NaN where they hold it */
		nn_float(t, "alpha", i == FACTOR_0 && (fill == NN_NAN || fill == NN_INF || fill == NN_HUGE) ? 1 : factors[i]);
	}
	if (ck_chance(g, 40))
		nn_float(t, "beta", CK_PICK(g, factors));
	nn_input(t, fill, 2, ta ? DIMS(k, m) : DIMS(m, k));
	nn_input(t, ck_chance(g, 50) ? fill : fill == NN_WHOLE ? NN_WHOLE : NN_UNIFORM, 2, tb ? DIMS(n, k) : DIMS(k, n));
	t->weights = ck_chance(g, 80) ? 6 : 2;
	fill = fill == NN_WHOLE || fill == NN_TINY ? fill : NN_UNIFORM;
	switch (ck_between(g, 0, 6)) {
	case 0: nn_input(t, fill, 0, NULL); break;
	case 1: nn_input(t, fill, 1, DIMS(n)); break;
	case 2: nn_input(t, fill, 2, DIMS(m, n)); break;
	case 3: nn_input(t, fill, 2, DIMS(m, 1)); break;
	case 4: nn_input(t, fill, 2, DIMS(1, n)); break;
	case 5: nn_input(t, fill, 1, DIMS(1)); break;
	default: break;
	}
	for (int a = 0; a < t->node.n_attrs; a++)
		if (t->attrs[a].type == RG_ATTR_FLOAT && t->attrs[a].f == 0.3f)
			t->whole = false; /* no whole number */
}

static double gemm_terms(const struct nn_case *t)
{
	return (double)t->in[0].shape.dim[rg_node_int(&t->node, "transA", 0) ? 0 : 1];
}

static const int64_t products[][3] = { { 1, 4096, 4096 }, { 8, 3072, 768 }, { 64, 64, 64 }, { 256, 256, 256 },
				       { 128, 3072, 768 } };
#define N_PRODUCTS ((int)(sizeof(products) / sizeof(products[0])))

static bool bench_gemm(struct nn_case *t, int i)
{
	if (i >= 2 * N_PRODUCTS)
		return false;
	nn_int(t, "transB", i >= N_PRODUCTS);
	nn_input(t, NN_UNIFORM, 2, DIMS(products[i % N_PRODUCTS][0], products[i % N_PRODUCTS][2]));
	nn_input(t, NN_UNIFORM, 2,
		 i >= N_PRODUCTS ? DIMS(products[i % N_PRODUCTS][1], products[i % N_PRODUCTS][2]) :
				   DIMS(products[i % N_PRODUCTS][2], products[i % N_PRODUCTS][1]));
	t->weights = 2;
	return true;
}

static void matmul(struct nn_case *t, struct ck_gen *g)
{
	enum nn_fill fill = ck_fill(g);
	int batch = ck_chance(g, 50) ? 0 : (int)ck_between(g, 1, 2), skip = 0;
	int64_t m, n, k, a[4], b[4];

	product_sizes(g, &m, &n, &k);
	for (int d = 0; d < batch; d++) {
		a[d] = b[d] = m * n * k > 100000 ? 2 : ck_chance(g, 5) ? 0 : ck_between(g, 1, 5);
		if (ck_chance(g, 25))
			a[d] = 1;
		else if (ck_chance(g, 40))
			b[d] = 1;
	}
	a[batch] = m;
	a[batch + 1] = b[batch] = k;
	b[batch + 1] = n;
	if (ck_chance(g, 10))
		nn_input(t, fill, 1, DIMS(k)); /* a row that stands for itself */
	else
		nn_input(t, fill, batch + 2, a);
	if (ck_chance(g, 35))
		skip = batch; /* one B for all */
	fill = ck_chance(g, 50) ? fill : fill == NN_WHOLE ? NN_WHOLE : NN_UNIFORM;
	if (ck_chance(g, 10))
		nn_input(t, fill, 1, DIMS(k));
	else
		nn_input(t, fill, batch + 2 - skip, b + skip);
	t->weights = 2;
}

static double matmul_terms(const struct nn_case *t)
{
	const struct rg_shape *a = &t->in[0].shape;

	return (double)a->dim[a->rank - 1];
}

static bool bench_matmul(struct nn_case *t, int i)
{
	if (i == N_PRODUCTS) { /* attention: one product a head */
		nn_input(t, NN_UNIFORM, 4, DIMS(1, 12, 128, 64));
		nn_input(t, NN_UNIFORM, 4, DIMS(1, 12, 64, 128));
	} else if (i < N_PRODUCTS) {
		nn_input(t, NN_UNIFORM, 2, DIMS(products[i][0], products[i][2]));
		nn_input(t, NN_UNIFORM, 2, DIMS(products[i][2], products[i][1]));
		t->weights = 2;
	}
	return i <= N_PRODUCTS;
}

/* ---- convolutions ---- */

struct conv {
	int n;
	int64_t batch, c_in, c_out, group;
	int64_t in[3], kernel[3], stride[3], dilation[3], pads[6];
};

/* To what the scalar reference does in some milliseconds. */
static void shrink(struct conv *v)
{
	for (int round = 0; round < 100; round++) {
		int64_t work = v->batch * v->c_in / v->group * v->c_out;
		bool smaller = false;

		for (int d = 0; d < v->n; d++)
			work *= v->in[d] * v->kernel[d];
		if (work < 4000000)
			return;
		for (int d = 0; d < v->n; d++) {
			if (v->in[d] < 4 * (v->kernel[d] - 1) * v->dilation[d] + 8)
				continue;
			v->in[d] -= v->in[d] / 4;
			smaller = true;
		}
		if (smaller)
			continue;
		if (v->group == 1) {
			v->c_in = (v->c_in + 1) / 2;
			v->c_out = (v->c_out + 1) / 2;
		} else {
			v->batch = v->batch > 1 ? 1 : v->batch;
			v->c_out = v->group;
		}
	}
}

static void conv_sizes(struct ck_gen *g, struct conv *v)
{
	static const int64_t kernels[] = { 1, 1, 1, 2, 3, 3, 3, 3, 4, 5, 7 };
	int64_t kernel = CK_PICK(g, kernels), stride = ck_chance(g, 65) ? 1 : ck_between(g, 2, 3);
	bool square = ck_chance(g, 70), dense = ck_chance(g, 70);

	v->n = ck_chance(g, 80) ? 2 : ck_chance(g, 60) ? 1 : 3;
	v->batch = ck_chance(g, 75) ? 1 : ck_size(g, 3);
	switch (ck_between(g, 0, 5)) {
	case 0: /* depthwise, with one output channel each or a few */
		v->group = v->c_in = ck_some(g, 40);
		v->c_out = v->group * (ck_chance(g, 75) ? 1 : ck_between(g, 2, 3));
		break;
	case 1:
		v->group = ck_between(g, 2, 4);
		v->c_in = v->group * ck_some(g, 10);
		v->c_out = v->group * ck_some(g, 20);
		break;
	default:
		v->group = 1;
		v->c_in = ck_chance(g, 20) ? 3 : ck_some(g, 100);
		v->c_out = ck_some(g, 100);
	}
	for (int d = 0; d < v->n; d++) {
		v->kernel[d] = square ? kernel : CK_PICK(g, kernels);
		v->stride[d] = square ? stride : ck_between(g, 1, 3);
		v->dilation[d] = dense ? 1 : ck_between(g, 1, 3);
		v->in[d] = ck_some(g, v->n == 3 ? 9 : v->n == 2 ? 40 : 200);
		v->pads[d] = ck_chance(g, 60) ? v->kernel[d] / 2 : ck_between(g, 0, v->kernel[d] - 1);
		v->pads[d + v->n] = ck_chance(g, 60) ? v->kernel[d] / 2 : ck_between(g, 0, v->kernel[d] - 1);
		while (v->in[d] + v->pads[d] + v->pads[d + v->n] < (v->kernel[d] - 1) * v->dilation[d] + 1)
			v->in[d]++;
	}
	shrink(v);
}

static void conv_call(struct nn_case *t, struct ck_gen *g, const struct conv *v, bool transpose)
{
	static const char *const autos[] = { "SAME_UPPER", "SAME_LOWER", "VALID" };
	int64_t x[5] = { v->batch, v->c_in }, w[5];
	enum nn_fill fill = ck_fill(g), others = fill == NN_WHOLE ? NN_WHOLE : NN_UNIFORM;
	bool room = true;

	w[0] = transpose ? v->c_in : v->c_out;
	w[1] = (transpose ? v->c_out : v->c_in) / v->group;
	memcpy(x + 2, v->in, sizeof(v->in));
	memcpy(w + 2, v->kernel, sizeof(v->kernel));
	for (int d = 0; d < v->n; d++)
		room = room && v->in[d] >= (v->kernel[d] - 1) * v->dilation[d] + 1;
	nn_ints(t, "kernel_shape", v->n, v->kernel);
	nn_ints(t, "strides", v->n, v->stride);
	nn_ints(t, "dilations", v->n, v->dilation);
	nn_int(t, "group", v->group);
	if (!transpose && room && ck_chance(g, 10))
		nn_string(t, "auto_pad", CK_PICK(g, autos));
	else
		nn_ints(t, "pads", 2 * v->n, v->pads);
	/* Weights stay finite: whether padding times infinity is NaN is left open. */
	nn_input(t, fill, v->n + 2, x);
	nn_input(t, others, v->n + 2, w);
	if (ck_chance(g, 60))
		nn_input(t, others, 1, &v->c_out);
	t->weights = 6;
}

static void conv(struct nn_case *t, struct ck_gen *g)
{
	struct conv v = { 0 };

	t->node.version = 11;
	conv_sizes(g, &v);
	conv_call(t, g, &v, false);
}

/* Here pads cut the output. */
static void conv_transpose(struct nn_case *t, struct ck_gen *g)
{
	struct conv v = { 0 };

	t->node.version = 11;
	conv_sizes(g, &v);
	for (int d = 0; d < v.n; d++)
		while ((v.in[d] - 1) * v.stride[d] + (v.kernel[d] - 1) * v.dilation[d] + 1 < v.pads[d] + v.pads[d + v.n] + 1)
			v.in[d]++;
	conv_call(t, g, &v, true);
}

static double conv_terms(const struct nn_case *t)
{
	const struct rg_shape *w = &t->in[1].shape;

	return (double)rg_shape_count_range(w, 1, w->rank);
}

static double conv_transpose_terms(const struct nn_case *t)
{
	const struct rg_shape *w = &t->in[1].shape;

	return (double)w->dim[0] / (double)rg_node_int(&t->node, "group", 1) *
	       (double)rg_shape_count_range(w, 2, w->rank);
}

static bool bench_conv(struct nn_case *t, int i)
{
	/* c_in, c_out, group, in, kernel, stride: of resnet50 and mobilenet-v2 */
	static const int64_t v[][6] = { { 3, 64, 1, 224, 7, 2 },  { 64, 64, 1, 56, 1, 1 },  { 64, 64, 1, 56, 3, 1 },
					{ 128, 128, 1, 28, 3, 1 }, { 512, 512, 1, 7, 3, 1 }, { 3, 32, 1, 224, 3, 2 },
					{ 96, 96, 96, 112, 3, 2 }, { 144, 144, 144, 56, 3, 1 }, { 960, 320, 1, 7, 1, 1 } };

	if (i >= (int)(sizeof(v) / sizeof(v[0])))
		return false;
	nn_ints(t, "kernel_shape", 2, DIMS(v[i][4], v[i][4]));
	nn_ints(t, "strides", 2, DIMS(v[i][5], v[i][5]));
	nn_ints(t, "pads", 4, DIMS(v[i][4] / 2, v[i][4] / 2, v[i][4] / 2, v[i][4] / 2));
	nn_int(t, "group", v[i][2]);
	nn_input(t, NN_UNIFORM, 4, DIMS(1, v[i][0], v[i][3], v[i][3]));
	nn_input(t, NN_UNIFORM, 4, DIMS(v[i][1], v[i][0] / v[i][2], v[i][4], v[i][4]));
	nn_input(t, NN_UNIFORM, 1, v[i] + 1);
	t->weights = 6;
	return true;
}

static bool bench_conv_transpose(struct nn_case *t, int i)
{
	nn_ints(t, "strides", 2, DIMS(2, 2));
	nn_input(t, NN_UNIFORM, 4, DIMS(1, 64, 32, 32));
	nn_input(t, NN_UNIFORM, 4, DIMS(64, 32, 2, 2));
	t->weights = 6;
	return i < 1;
}

/* ---- pools ---- */

static void pool(struct nn_case *t, struct ck_gen *g)
{
	bool max = !strcmp(t->node.op_type, "MaxPool");
	int n = ck_chance(g, 85) ? 2 : 1;
	int64_t dim[4], kernel[2], stride[2], dilation[2], pads[4];

	t->node.version = max ? 12 : 19;
	dim[0] = ck_chance(g, 80) ? 1 : ck_size(g, 3);
	dim[1] = ck_some(g, 20);
	for (int d = 0; d < n; d++) {
		kernel[d] = ck_between(g, 1, 5);
		stride[d] = ck_between(g, 1, 3);
		dilation[d] = ck_chance(g, 75) ? 1 : ck_between(g, 2, 3);
		pads[d] = ck_between(g, 0, kernel[d] - 1);
		pads[d + n] = ck_between(g, 0, kernel[d] - 1);
		dim[2 + d] = (kernel[d] - 1) * dilation[d] + ck_some(g, n == 1 ? 200 : 50);
	}
	nn_ints(t, "kernel_shape", n, kernel);
	nn_ints(t, "strides", n, stride);
	nn_ints(t, "dilations", n, dilation);
	nn_ints(t, "pads", 2 * n, pads);
	nn_int(t, "ceil_mode", ck_between(g, 0, 1));
	if (max && ck_chance(g, 10))
		t->n_out = 2; /* the places too */
	if (!max)
		nn_int(t, "count_include_pad", ck_between(g, 0, 1));
	if (max && ck_chance(g, 40)) /* the larger of two is the same of bytes */
		nn_input_bytes(t, ck_chance(g, 50) ? RG_U8 : RG_I8, n + 2, dim);
	else
		nn_input(t, max ? ck_fill_elements(g) : ck_fill(g), n + 2, dim);
}

static double pool_terms(const struct nn_case *t)
{
	const int64_t *kernel;
	double n = 1;

	for (int d = rg_node_ints(&t->node, "kernel_shape", &kernel) - 1; d >= 0; d--)
		n *= (double)kernel[d];
	return n;
}

static bool bench_pool(struct nn_case *t, int i)
{
	nn_ints(t, "kernel_shape", 2, DIMS(3, 3));
	nn_ints(t, "strides", 2, DIMS(2, 2));
	nn_ints(t, "pads", 4, DIMS(1, 1, 1, 1));
	nn_input(t, NN_UNIFORM, 4, DIMS(1, 64, 112, 112));
	return i < 1;
}

static void global_pool(struct nn_case *t, struct ck_gen *g)
{
	int n = (int)ck_between(g, 1, 3);
	int64_t dim[5] = { ck_between(g, 1, 2), ck_some(g, 40) };

	for (int d = 0; d < n; d++)
		dim[2 + d] = ck_some(g, n == 1 ? 1000 : n == 2 ? 40 : 9);
	nn_input(t, ck_fill(g), n + 2, dim);
}

static double plane(const struct nn_case *t)
{
	return (double)rg_shape_count_range(&t->in[0].shape, 2, t->in[0].shape.rank);
}

static bool bench_global_pool(struct nn_case *t, int i)
{
	nn_input(t, NN_UNIFORM, 4, DIMS(1, 2048, 7, 7));
	return i < 1;
}

#define SUM(OP, MAKE, TERMS, ULPS, BENCH) \
	{ .op_type = OP, .make = MAKE, .measure = CK_SUM, .terms = TERMS, .ulps = ULPS, .whole_is_exact = true, \
	  .bench = BENCH }
#define MEAN(OP, MAKE, TERMS, BENCH) \
	{ .op_type = OP, .make = MAKE, .measure = CK_SUM, .terms = TERMS, .ulps = 2, .mean = true, .bench = BENCH }

static const struct ck_family families[] = {
	MEAN("AveragePool", pool, pool_terms, bench_pool),
	SUM("Conv", conv, conv_terms, 2, bench_conv),
	SUM("ConvTranspose", conv_transpose, conv_transpose_terms, 2, bench_conv_transpose),
	SUM("Gemm", gemm, gemm_terms, 6, bench_gemm),
	MEAN("GlobalAveragePool", global_pool, plane, bench_global_pool),
	SUM("MatMul", matmul, matmul_terms, 2, bench_matmul),
	{ .op_type = "GlobalMaxPool", .make = global_pool, .measure = CK_ULPS, .bench = bench_global_pool },
	{ .op_type = "MaxPool", .make = pool, .measure = CK_ULPS, .bench = bench_pool },
};
CK_FAMILY_TABLE(ck_families_nn, families);
