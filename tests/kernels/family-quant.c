/*
 * Calls of what makes bytes of float32 and back, and of ONNX Runtime's elementwise operators on bytes: the
 * same bits as the reference, whatever is in them. See check.h.
 */
#include "check.h"

#include <math.h>
#include <string.h>

#include "graph/own.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* Everything that a number can be, quotients between two integers, and usual ones. */
static float number(struct ck_gen *g, float scale)
{
	static const float special[] = {0,     -0.0f,  NAN,    INFINITY, -INFINITY,
					3e38f, -3e38f, 1e-42f, 1e20f,    -1e20f};
	int64_t kind = ck_between(g, 0, 9);

	if (kind == 0)
		return CK_PICK(g, special);
	if (kind < 4)
		return ((float)ck_between(g, -300, 300) + 0.5f) * scale;
	return (float)ck_between(g, -100000, 100000) / 256 * scale;
}

/* Scales of a tensor or of its parts: some so small or large that every quotient leaves the range. */
static void scales(struct nn_case *t, struct ck_gen *g, int rank, const int64_t *dims, float *one)
{
	static const float some[] = {1, 0.5f, 0.0123f, 3.7e-3f, 0.1f, 17}, odd[] = {1e-40f, 1e38f, 0};
	float *s = nn_input_typed(t, RG_F32, rank, dims);

	for (int64_t i = 0; i < rg_shape_count(&t->in[t->node.n_in - 1].shape); i++)
		s[i] = ck_chance(g, 4) ? CK_PICK(g, odd) : CK_PICK(g, some) * (float)ck_between(g, 1, 40) / 8;
	*one = rg_shape_count(&t->in[t->node.n_in - 1].shape) ? s[0] : 1;
}

/* The shape of x and how its scales lie: one, one a position of an axis, or blocks along it. */
struct layout {
	int rank, scale_rank;
	int64_t dims[4], scale[4];
};

static struct layout layout(struct nn_case *t, struct ck_gen *g)
{
	struct layout l = {.rank = (int)ck_between(g, 1, 4)};
	int axis = (int)ck_between(g, 0, l.rank - 1);

	for (int d = 0; d < l.rank; d++)
		l.dims[d] = d == l.rank - 1 && ck_chance(g, 40) ? ck_length(g) : ck_size(g, 12);
	t->node.version = 21;
	if (ck_chance(g, 40))
		return l;
	nn_int(t, "axis", ck_chance(g, 50) ? axis : axis - l.rank);
	if (ck_chance(g, 50)) {
		l.scale_rank = 1;
		l.scale[0] = l.dims[axis];
		return l;
	}
	l.scale_rank = l.rank;
	memcpy(l.scale, l.dims, sizeof(l.scale));
	int64_t block = ck_between(g, 1, l.dims[axis] ? l.dims[axis] : 1);
	nn_int(t, "block_size", block);
	l.scale[axis] = (l.dims[axis] + block - 1) / block;
	return l;
}

static void quantize(struct nn_case *t, struct ck_gen *g)
{
	static const enum rg_dtype types[] = {RG_U8, RG_I8};
	struct layout l = layout(t, g);
	float *x = nn_input_typed(t, RG_F32, l.rank, l.dims), scale;

	scales(t, g, l.scale_rank, l.scale, &scale);
	for (int64_t i = 0; i < rg_shape_count(&t->in[0].shape); i++)
		x[i] = number(g, scale);
	if (ck_chance(g, 80))
		nn_input_bytes(t, CK_PICK(g, types), l.scale_rank, l.scale);
	t->weights = 6;
}

static void dequantize(struct nn_case *t, struct ck_gen *g)
{
	static const enum rg_dtype types[] = {RG_U8, RG_I8, RG_I32};
	enum rg_dtype type = CK_PICK(g, types);
	struct layout l = layout(t, g);
	float one;

	nn_input_bytes(t, type, l.rank, l.dims);
	scales(t, g, l.scale_rank, l.scale, &one);
	if (ck_chance(g, 80))
		nn_input_bytes(t, type, l.scale_rank, l.scale);
	t->weights = 6;
}

static void dynamic(struct nn_case *t, struct ck_gen *g)
{
	int64_t n = ck_chance(g, 20) ? ck_between(g, 4000, 9000) : ck_length(g);
	bool hostile = ck_chance(g, 30);
	float *x = nn_input_typed(t, RG_F32, 2, DIMS(ck_size(g, 4), n)), low = ck_chance(g, 50) ? -1 : 0.25f;

	for (int64_t i = 0; i < rg_shape_count(&t->in[0].shape); i++)
		x[i] = hostile ? number(g, 1) : low + (float)ck_between(g, 0, 1 << 20) / (1 << 19);
	t->n_out = 3;
}

static void params(struct nn_case *t, struct ck_gen *g, enum rg_dtype type)
{
	float one;

	scales(t, g, 0, NULL, &one);
	if (ck_chance(g, 15))
		nn_absent(t);
	else
		nn_input_bytes(t, type, 0, NULL);
}

static enum rg_dtype byte_type(struct ck_gen *g)
{
	return ck_chance(g, 50) ? RG_U8 : RG_I8;
}

static void pair(struct nn_case *t, struct ck_gen *g)
{
	int rank = (int)ck_between(g, 0, 4), skip = ck_chance(g, 20) ? (int)ck_between(g, 0, rank) : 0;
	enum rg_dtype type = byte_type(g);
	int64_t a[4], b[4];
	bool swap = ck_chance(g, 50);

	for (int d = 0; d < rank; d++) {
		a[d] = d == rank - 1 && ck_chance(g, 40) ? ck_length(g) : ck_size(g, 12);
		b[d] = ck_chance(g, 25) ? 1 : a[d];
		if (d >= skip && ck_chance(g, 8))
			a[d] = 1;
	}
	nn_input_bytes(t, type, swap ? rank - skip : rank, swap ? b + skip : a);
	params(t, g, type);
	nn_input_bytes(t, type, swap ? rank : rank - skip, swap ? a : b + skip);
	params(t, g, type);
	params(t, g, type);
	t->weights = 0xd6;
}

static void unary(struct nn_case *t, struct ck_gen *g)
{
	enum rg_dtype type = byte_type(g);

	nn_input_bytes(t, type, 2, DIMS(ck_size(g, 20), ck_length(g)));
	params(t, g, type);
	params(t, g, type);
	if (!strcmp(t->node.op_type, "QLinearLeakyRelu") && ck_chance(g, 70))
		nn_float(t, "alpha", 0.3f);
	t->weights = 0x1e;
}

static void look_up(struct nn_case *t, struct ck_gen *g)
{
	nn_input_bytes(t, byte_type(g), 2, DIMS(ck_size(g, 20), ck_length(g)));
	nn_input_bytes(t, byte_type(g), 1, DIMS(256));
	t->weights = 2;
}

static void concat(struct nn_case *t, struct ck_gen *g)
{
	int rank = (int)ck_between(g, 1, 4), parts = (int)ck_between(g, 1, 4),
	    axis = (int)ck_between(g, 0, rank - 1);
	enum rg_dtype type = byte_type(g);
	int64_t dims[4];

	for (int d = 0; d < rank; d++)
		dims[d] = ck_some(g, 10);
	nn_int(t, "axis", ck_chance(g, 50) ? axis : axis - rank);
	params(t, g, type);
	if (t->in[1].dtype == RG_UNDEFINED) { /* its type is the result's: it must be there */
		t->node.n_in = 1;
		nn_input_bytes(t, type, 0, NULL);
	}
	for (int p = 0; p < parts; p++) {
		dims[axis] = ck_size(g, 40);
		nn_input_bytes(t, type, rank, dims);
		if (ck_chance(g, 30)) {
			*(float *)nn_input_typed(t, RG_F32, 0, NULL) = *(const float *)t->in[0].data;
			*(uint8_t *)nn_input_typed(t, type, 0, NULL) = *(const uint8_t *)t->in[1].data;
		} else {
			params(t, g, type);
		}
	}
}

static void global_pool(struct nn_case *t, struct ck_gen *g)
{
	enum rg_dtype type = byte_type(g);

	if (ck_chance(g, 10))
		nn_int(t, "channels_last", 0);
	nn_input_bytes(t, type, 4, DIMS(ck_between(g, 1, 2), ck_some(g, 12), ck_some(g, 12), ck_length(g)));
	params(t, g, type);
	params(t, g, type);
	t->weights = 0x1e;
}

static void average_pool(struct nn_case *t, struct ck_gen *g)
{
	int n = ck_chance(g, 80) ? 2 : 1;
	int64_t dim[4] = {ck_between(g, 1, 2), ck_some(g, 8)}, kernel[2], stride[2], pads[4];
	enum rg_dtype type = byte_type(g);

	for (int d = 0; d < n; d++) {
		kernel[d] = ck_between(g, 1, 5);
		stride[d] = ck_between(g, 1, 3);
		pads[d] = ck_between(g, 0, kernel[d] - 1);
		pads[d + n] = ck_between(g, 0, kernel[d] - 1);
		dim[2 + d] = kernel[d] - 1 + ck_some(g, n == 1 ? 200 : 40);
	}
	nn_ints(t, "kernel_shape", n, kernel);
	nn_ints(t, "strides", n, stride);
	nn_ints(t, "pads", 2 * n, pads);
	nn_int(t, "ceil_mode", ck_between(g, 0, 1));
	nn_int(t, "count_include_pad", ck_between(g, 0, 1));
	nn_input_bytes(t, type, n + 2, dim);
	params(t, g, type);
	params(t, g, type);
	t->weights = 0x1e;
}

static bool bench_floats(struct nn_case *t, int i)
{
	static const int64_t sizes[] = {4096, 131072, 1 << 20};

	if (i >= 3)
		return false;
	nn_input(t, NN_UNIFORM, 1, &sizes[i]);
	if (!strcmp(t->node.op_type, "QuantizeLinear")) {
		*(float *)nn_input_typed(t, RG_F32, 0, NULL) = 0.01f;
		nn_input_bytes(t, RG_U8, 0, NULL);
	} else {
		t->n_out = 3;
	}
	return true;
}

static bool bench_bytes(struct nn_case *t, int i)
{
	static const int64_t sizes[] = {4096, 131072, 1 << 20};
	int n = !strcmp(t->node.op_type, "LookUp") ? 0 : !strcmp(t->node.op_type, "DequantizeLinear") ? 1 : 2;

	if (i >= 3)
		return false;
	nn_input_bytes(t, RG_U8, 1, &sizes[i]);
	if (n == 0)
		nn_input_bytes(t, RG_U8, 1, DIMS(256));
	for (int k = 0; k < n; k++) {
		*(float *)nn_input_typed(t, RG_F32, 0, NULL) = 0.01f;
		nn_input_bytes(t, RG_U8, 0, NULL);
	}
	return true;
}

static bool bench_pair(struct nn_case *t, int i)
{
	static const int64_t sizes[] = {4096, 131072, 1 << 20};

	if (i >= 3)
		return false;
	for (int k = 0; k < 3; k++) {
		if (k < 2)
			nn_input_bytes(t, RG_U8, 1, &sizes[i]);
		*(float *)nn_input_typed(t, RG_F32, 0, NULL) = 0.01f;
		nn_input_bytes(t, RG_U8, 0, NULL);
	}
	return true;
}

#define STANDARD(OP, MAKE, BENCH)                                                                            \
	{                                                                                                    \
		.domain = "", .op_type = OP, .make = MAKE, .measure = CK_EXACT, .bench = BENCH               \
	}
#define CONTRIB(OP, MAKE, BENCH)                                                                             \
	{                                                                                                    \
		.domain = RG_CONTRIB_DOMAIN, .op_type = OP, .make = MAKE, .measure = CK_EXACT,               \
		.bench = BENCH                                                                               \
	}

static const struct ck_family families[] = {
    STANDARD("DequantizeLinear", dequantize, bench_bytes),
    STANDARD("DynamicQuantizeLinear", dynamic, bench_floats),
    STANDARD("QuantizeLinear", quantize, bench_floats),
    CONTRIB("QLinearAdd", pair, bench_pair),
    CONTRIB("QLinearAveragePool", average_pool, NULL),
    CONTRIB("QLinearConcat", concat, NULL),
    CONTRIB("QLinearGlobalAveragePool", global_pool, NULL),
    CONTRIB("QLinearLeakyRelu", unary, bench_bytes),
    CONTRIB("QLinearMul", pair, bench_pair),
    CONTRIB("QLinearSigmoid", unary, bench_bytes),
    {.domain = RG_OWN_DOMAIN,
     .op_type = "LookUp",
     .make = look_up,
     .measure = CK_EXACT,
     .bench = bench_bytes},
};
CK_FAMILY_TABLE(ck_families_quant, families);
