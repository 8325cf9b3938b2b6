/* Calls of products and convolutions of bytes. See check.h. */
#include "check.h"

#include "graph/contrib.h"

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })

/* The next input: bytes of any value, of the ends of the type alone, or all the same end. */
static void bytes(struct nn_case *t, struct ck_gen *g, enum rg_dtype type, int rank, const int64_t *dim)
{
	uint8_t *x = nn_input_bytes(t, type, rank, dim);
	int64_t n = rg_shape_count(&t->in[t->node.n_in - 1].shape);
	uint8_t low = type == RG_I8 ? 0x80 : 0, high = type == RG_I8 ? 0x7f : 0xff;
	int how = (int)ck_between(g, 0, 5);
	uint8_t all = ck_chance(g, 50) ? low : high;

	for (int64_t i = 0; i < n; i++) {
		if (how == 1)
			x[i] = ck_chance(g, 50) ? low : high;
		else if (how == 2)
			x[i] = all;
		else if (how == 3) /* small, with a large one now and then */
			x[i] = ck_chance(g, 3) ? x[i] : (uint8_t)(x[i] % 32 - (type == RG_I8 ? 16 : -112));
	}
}

static enum rg_dtype a_type(struct ck_gen *g)
{
	return ck_chance(g, 50) ? RG_U8 : RG_I8;
}

/* A zero point: absent, one, or one each of n. */
static void zero_point(struct nn_case *t, struct ck_gen *g, enum rg_dtype type, int64_t n)
{
	int how = (int)ck_between(g, 0, 3);

	if (how == 0)
		nn_absent(t);
	else if (how == 1)
		nn_input_typed(t, type, 0, NULL);
	else
		nn_input_bytes(t, type, how == 2 ? 0 : 1, &n);
}

/* 2^-9 and so: scales that keep sums of products within a byte, or nearly. */
static void scale(struct nn_case *t, struct ck_gen *g, int rank, int64_t n, int exponent)
{
	float *s = nn_input_typed(t, RG_F32, rank, &n);

	for (int64_t i = 0; i < (rank ? n : 1); i++)
		s[i] = (float)ck_between(g, 100, 300) / (float)(1 << exponent);
}

static void sizes(struct ck_gen *g, int64_t *m, int64_t *n, int64_t *k)
{
	*m = ck_size(g, 40);
	*n = ck_size(g, 100);
	*k = ck_size(g, ck_chance(g, 10) ? 2000 : 150);
}

/* A, one or a batch, and the sizes of the product. */
static enum rg_dtype factors(struct nn_case *t, struct ck_gen *g, int64_t *m, int64_t *n, int64_t *k, bool *batched)
{
	int batch = ck_chance(g, 60) ? 0 : (int)ck_between(g, 1, 2);
	int64_t a[4];

	sizes(g, m, n, k);
	*batched = batch != 0;
	for (int d = 0; d < batch; d++)
		a[d] = *m * *n * *k > 100000 ? 2 : ck_between(g, 0, 4);
	a[batch] = *m;
	a[batch + 1] = *k;
	bytes(t, g, a_type(g), batch + 2, a);
	return t->in[0].dtype;
}

/* B, one for all or of a batch that goes with A's. */
static enum rg_dtype second(struct nn_case *t, struct ck_gen *g, int64_t n, int64_t k, bool batched)
{
	int64_t b[4] = { 1, 1, k, n };
	int rank = t->in[0].shape.rank, skip = rank - 2;

	if (batched && ck_chance(g, 60)) {
		for (int d = 0; d < rank - 2; d++)
			b[d + 4 - rank] = ck_chance(g, 70) ? t->in[0].shape.dim[d] : 1;
		skip = 0;
	}
	bytes(t, g, a_type(g), rank - skip, b + 4 - rank + skip);
	return t->in[t->node.n_in - 1].dtype;
}

static void matmul_integer(struct nn_case *t, struct ck_gen *g)
{
	int64_t m, n, k;
	bool batched;
	enum rg_dtype a = factors(t, g, &m, &n, &k, &batched), b = second(t, g, n, k, batched);

	zero_point(t, g, a, m);
	zero_point(t, g, b, n);
	t->weights = 2 | (ck_chance(g, 50) ? 8 : 0);
}

static void qlinear_matmul(struct nn_case *t, struct ck_gen *g)
{
	int64_t m, n, k;
	bool batched;
	enum rg_dtype a = factors(t, g, &m, &n, &k, &batched), b, y = a_type(g);
	bool columns = ck_chance(g, 50);

	scale(t, g, 0, 0, 12);
	nn_input_bytes(t, a, 0, NULL);
	b = second(t, g, n, k, batched);
	scale(t, g, columns, n, 12);
	nn_input_bytes(t, b, columns, &n);
	scale(t, g, 0, 0, 8);
	nn_input_bytes(t, y, 0, NULL);
	t->weights = 8 | (ck_chance(g, 50) ? 0x30 : 0);
}

static void to_float(struct nn_case *t, struct ck_gen *g)
{
	int64_t m, n, k;
	bool batched, columns = ck_chance(g, 50);
	enum rg_dtype a = factors(t, g, &m, &n, &k, &batched), b = second(t, g, n, k, batched);

	scale(t, g, 0, 0, 12);
	scale(t, g, columns, n, 12);
	if (ck_chance(g, 50))
		nn_input_bytes(t, a, 0, NULL);
	else
		nn_absent(t);
	if (ck_chance(g, 50))
		nn_input_bytes(t, b, columns, &n);
	else
		nn_absent(t);
	if (ck_chance(g, 50))
		nn_input(t, NN_UNIFORM, 1, &n);
	t->weights = 2;
}

static void dynamic(struct nn_case *t, struct ck_gen *g)
{
	bool columns = ck_chance(g, 50);
	enum rg_dtype b = a_type(g);
	int64_t m, n, k;

	sizes(g, &m, &n, &k);
	nn_input(t, ck_chance(g, 20) ? NN_WHOLE : NN_UNIFORM, 2, DIMS(m, k));
	bytes(t, g, b, 2, DIMS(k, n));
	scale(t, g, columns, n, 12);
	if (ck_chance(g, 50))
		nn_input_bytes(t, b, columns, &n);
	else
		nn_absent(t);
	if (ck_chance(g, 50))
		nn_input(t, NN_UNIFORM, 1, &n);
	t->weights = 2;
}

static void gemm(struct nn_case *t, struct ck_gen *g)
{
	bool ta = ck_chance(g, 30), tb = ck_chance(g, 50), columns = ck_chance(g, 50);
	enum rg_dtype a = a_type(g), b = a_type(g), y = a_type(g);
	int64_t m, n, k;

	sizes(g, &m, &n, &k);
	nn_int(t, "transA", ta);
	nn_int(t, "transB", tb);
	if (ck_chance(g, 30))
		nn_float(t, "alpha", 0.75f);
	bytes(t, g, a, 2, ta ? DIMS(k, m) : DIMS(m, k));
	scale(t, g, 0, 0, 12);
	nn_input_bytes(t, a, 0, NULL);
	bytes(t, g, b, 2, tb ? DIMS(n, k) : DIMS(k, n));
	scale(t, g, columns, n, 12);
	nn_input_bytes(t, b, columns, &n);
	if (ck_chance(g, 60))
		nn_input_bytes(t, RG_I32, 1, &n);
	else
		nn_absent(t);
	if (ck_chance(g, 70)) {
		scale(t, g, 0, 0, 8);
		nn_input_bytes(t, y, 0, NULL);
	}
	t->weights = 8;
}

/* X and W of a convolution in one or two dimensions, with attributes; returns the output channels. */
static int64_t window(struct nn_case *t, struct ck_gen *g, int64_t *x, int64_t *w, int *rank)
{
	int n = ck_chance(g, 25) ? 1 : 2;
	int64_t group = ck_chance(g, 70) ? 1 : ck_between(g, 2, 4), list[4], m = group * ck_between(g, 1, ck_chance(g, 30) ? 70 : 12);
	int64_t in[2], kernel[2];

	*rank = n + 2;
	x[0] = ck_chance(g, 20) ? 2 : 1;
	w[0] = m;
	w[1] = ck_chance(g, 30) ? 1 : ck_between(g, 1, 21);
	x[1] = w[1] * group;
	for (int d = 0; d < n; d++) {
		kernel[d] = ck_chance(g, 30) ? 1 : ck_between(g, 1, 5);
		in[d] = kernel[d] * 2 + ck_between(g, 0, d == n - 1 && ck_chance(g, 20) ? 250 : 30);
		x[2 + d] = in[d];
		w[2 + d] = kernel[d];
	}
	nn_int(t, "group", group);
	for (int d = 0; d < n; d++)
		list[d] = ck_chance(g, 60) ? 1 : ck_between(g, 1, 3);
	nn_ints(t, "strides", n, list);
	for (int d = 0; d < n; d++)
		list[d] = ck_chance(g, 80) ? 1 : 2;
	nn_ints(t, "dilations", n, list);
	for (int d = 0; d < 2 * n; d++)
		list[d] = ck_chance(g, 50) ? 0 : ck_between(g, 0, 3);
	nn_ints(t, "pads", 2 * n, list);
	return m;
}

static void conv_integer(struct nn_case *t, struct ck_gen *g)
{
	enum rg_dtype a = a_type(g), b = a_type(g);
	int64_t x[4], w[4], m;
	int rank;

	m = window(t, g, x, w, &rank);
	bytes(t, g, a, rank, x);
	bytes(t, g, b, rank, w);
	if (ck_chance(g, 60))
		nn_input_bytes(t, a, 0, NULL);
	else
		nn_absent(t);
	zero_point(t, g, b, m);
	t->weights = 2;
}

static void qlinear_conv(struct nn_case *t, struct ck_gen *g)
{
	enum rg_dtype a = a_type(g), b = a_type(g), y = a_type(g);
	bool channels = ck_chance(g, 50);
	int64_t x[4], w[4], m;
	int rank;

	m = window(t, g, x, w, &rank);
	bytes(t, g, a, rank, x);
	scale(t, g, 0, 0, 12);
	nn_input_bytes(t, a, 0, NULL);
	bytes(t, g, b, rank, w);
	scale(t, g, channels, m, 12);
	if (ck_chance(g, 50))
		nn_input_bytes(t, b, channels, &m);
	else
		nn_input_typed(t, b, channels, &m);
	scale(t, g, 0, 0, 8);
	nn_input_bytes(t, y, 0, NULL);
	if (ck_chance(g, 60))
		nn_input_bytes(t, RG_I32, 1, &m);
	t->weights = 8;
}

static bool bench_conv(struct nn_case *t, int i)
{
	static const int64_t shapes[][4] = { { 64, 56, 64, 3 }, { 256, 14, 256, 3 }, { 512, 7, 512, 3 }, { 256, 56, 64, 1 } };
	int64_t m, pad;
	float *s;

	if (i == 4)
		return false;
	m = shapes[i][2];
	pad = shapes[i][3] / 2;
	nn_ints(t, "pads", 4, DIMS(pad, pad, pad, pad));
	nn_input_bytes(t, RG_U8, 4, DIMS(1, shapes[i][0], shapes[i][1], shapes[i][1]));
	s = nn_input_typed(t, RG_F32, 0, NULL);
	*s = 0.01f;
	nn_input_bytes(t, RG_U8, 0, NULL);
	nn_input_bytes(t, RG_I8, 4, DIMS(m, shapes[i][0], shapes[i][3], shapes[i][3]));
	s = nn_input_typed(t, RG_F32, 1, &m);
	for (int64_t k = 0; k < m; k++)
		s[k] = 0.001f;
	nn_input_typed(t, RG_I8, 1, &m);
	s = nn_input_typed(t, RG_F32, 0, NULL);
	*s = 0.02f;
	nn_input_bytes(t, RG_U8, 0, NULL);
	t->weights = 8;
	return true;
}

static bool bench_matmul(struct nn_case *t, int i)
{
	static const int64_t mnk[][3] = { { 1, 3072, 768 }, { 128, 3072, 768 }, { 128, 768, 3072 }, { 49, 512, 4608 } };

	if (i == 4)
		return false;
	nn_input_bytes(t, RG_U8, 2, DIMS(mnk[i][0], mnk[i][2]));
	nn_input_bytes(t, RG_I8, 2, DIMS(mnk[i][2], mnk[i][1]));
	t->weights = 2;
	return true;
}

static const struct ck_family families[] = {
	{ "", "MatMulInteger", matmul_integer, CK_EXACT, .bench = bench_matmul },
	{ "", "QLinearMatMul", qlinear_matmul, CK_EXACT },
	{ "", "ConvInteger", conv_integer, CK_EXACT },
	{ "", "QLinearConv", qlinear_conv, CK_EXACT, .bench = bench_conv },
	{ RG_CONTRIB_DOMAIN, "QLinearConv", qlinear_conv, CK_EXACT },
	{ RG_CONTRIB_DOMAIN, "MatMulIntegerToFloat", to_float, CK_EXACT },
	{ RG_CONTRIB_DOMAIN, "DynamicQuantizeMatMul", dynamic, CK_EXACT },
	{ RG_CONTRIB_DOMAIN, "QGemm", gemm, CK_EXACT },
};
CK_FAMILY_TABLE(ck_families_bytes, families);
