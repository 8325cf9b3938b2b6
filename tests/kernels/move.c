/*
 * Reference kernels of the movement operators. Graphs of constants are folded
 * through the kernels, so inference and kernel are tested together: random
 * strided copies against index arithmetic done the plain way, the interfaces of
 * old versions, empty tensors, and indices that point outside.
 */
#include "base/rng.h"
#include "kernels/kernel.h"
#include "tests/graph/build.h"

static int eval(void *ctx, const struct rg_graph *g, const struct rg_node *node, const struct rg_tensor *in,
		struct rg_tensor *out, struct rg_error *err)
{
	const struct rg_call planned = { .node = node, .in = in, .out = out };
	const struct rg_kernel *k = rg_kernel_find("", node->op_type, "ref");
	struct rg_call c = planned;
	void *scratch = NULL;
	int rc;

	assert_non_null(k);
	if (k->supports && !k->supports(&c))
		return -ENOSYS;
	if (k->scratch_bytes && k->scratch_bytes(&c, 1))
		assert_non_null(scratch = rg_alloc_aligned(64, k->scratch_bytes(&c, 1)));
	c.scratch = scratch;
	rc = k->run(&c, &rg_par_serial, err);
	rg_free(scratch);
	return rc;
}

/* Finishes and folds. 0 when the first output became a constant. */
static int fold(struct build *b)
{
	const struct rg_infer_options opt = { .eval = eval, .fold_limit_bytes = 1 << 20 };
	int rc = rg_graph_finish(b->g, &b->err);

	return rc ? rc : rg_graph_infer(b->g, &opt, NULL, &b->err);
}

static void expect(struct build *b, const char *name, const char *shape, int n, const int64_t *want)
{
	const struct rg_value *v;

	if (fold(b))
		fail_msg("%s: %s", b->err.where, b->err.message);
	v = build_get(b, name);
	assert_shape(b, name, shape);
	assert_int_equal(v->origin, RG_CONST_FOLDED);
	assert_int_equal(rg_shape_count(&v->shape), n);
	assert_int_equal(v->dtype, RG_I64);
	if (n)
		assert_memory_equal(v->data, want, (size_t)n * sizeof(*want));
	rg_graph_free(b->g);
}

/* x = 0, 1, 2, ... of the given shape. */
static struct build numbers(int64_t opset, int rank, const int64_t *dims)
{
	struct build b = build_new(opset);
	struct rg_shape s = rg_shape_of(rank, dims);
	int64_t v[4096], n = rg_shape_count(&s);

	assert_true(n <= 4096);
	for (int64_t i = 0; i < n; i++)
		v[i] = i;
	build_const(&b, "x", RG_I64, rank, dims, v);
	return b;
}

/* Version 1 of each says as an attribute what later ones take as an input. */
static void test_old_versions(void **state)
{
	struct build b = numbers(1, LIST(2, 3));

	build_node(&b, "Slice", "x", "y", 3, (struct rg_attr[]){ attr_ints("axes", LIST(1)),
		   attr_ints("starts", LIST(-2)), attr_ints("ends", LIST(1000)) });
	expect(&b, "y", "2x2", LIST(1, 2, 4, 5));
	b = numbers(1, LIST(2, 3));
	build_node(&b, "Pad", "x", "y", 2, (struct rg_attr[]){ attr_ints("paddings", LIST(0, 1, 0, -1)),
		   { .name = "value", .type = RG_ATTR_FLOAT, .f = 9 } });
	expect(&b, "y", "2x3", LIST(9, 0, 1, 9, 3, 4));
	b = numbers(2, LIST(4));
	build_node(&b, "Split", "x", "y z", 1, (struct rg_attr[]){ attr_ints("split", LIST(1, 3)) });
	expect(&b, "z", "3", LIST(1, 2, 3));
	b = numbers(11, LIST(1, 2, 1));
	build_node(&b, "Squeeze", "x", "y", 1, (struct rg_attr[]){ attr_ints("axes", LIST(-1)) });
	expect(&b, "y", "1x2", LIST(0, 1));
	b = numbers(1, LIST(2));
	build_node(&b, "Unsqueeze", "x", "y", 1, (struct rg_attr[]){ attr_ints("axes", LIST(0, 2)) });
	expect(&b, "y", "1x2x1", LIST(0, 1));
	b = numbers(1, LIST(2));
	build_ints(&b, "times", LIST(2));
	build_ints(&b, "axis", LIST(0));
	build_node(&b, "Tile", "x times axis", "y", 0, NULL);
	expect(&b, "y", "4", LIST(0, 1, 0, 1));
	b = numbers(1, LIST(2, 3));
	build_node(&b, "TopK", "x", "v y", 1, (struct rg_attr[]){ attr_int("k", 2) });
	expect(&b, "y", "2x2", LIST(2, 1, 2, 1));
	b = numbers(1, LIST(2));
	build_node(&b, "Cast", "x", "f", 1, (struct rg_attr[]){ attr_string("to", "FLOAT") });
	build_node(&b, "Cast", "f", "y", 1, (struct rg_attr[]){ attr_string("to", "INT64") });
	expect(&b, "y", "2", LIST(0, 1));
	b = numbers(1, LIST(2, 2));
	build_node(&b, "Concat", "x x", "y", 0, NULL); /* the axis was 1 by default */
	expect(&b, "y", "2x4", LIST(0, 1, 0, 1, 2, 3, 2, 3));
}

static void test_corners(void **state)
{
	struct build b = numbers(18, LIST(7));

	build_node(&b, "Split", "x", "p q r", 1, (struct rg_attr[]){ attr_int("num_outputs", 3) });
	expect(&b, "r", "1", LIST(6));
	b = numbers(13, LIST(0, 3));
	build_ints(&b, "s", LIST(-1, 0));
	build_node(&b, "Reshape", "x s", "y", 0, NULL); /* 0 copies the 3 */
	expect(&b, "y", "0x3", 0, NULL);
	b = numbers(13, LIST(0, 3));
	build_ints(&b, "pads", LIST(1, 0, 0, 0));
	build_node(&b, "Pad", "x pads", "y", 0, NULL);
	expect(&b, "y", "1x3", LIST(0, 0, 0));
	b = numbers(13, LIST(3));
	build_ints(&b, "from", LIST(INT64_MAX));
	build_ints(&b, "to", LIST(INT64_MIN));
	build_ints(&b, "axes", LIST(0));
	build_ints(&b, "step", LIST(INT64_MIN));
	build_node(&b, "Slice", "x from to axes step", "y", 0, NULL);
	expect(&b, "y", "1", LIST(2));
	b = numbers(13, LIST(0, 2));
	build_ints(&b, "i", 0, (int64_t[]){ 0 });
	build_node(&b, "Gather", "x i", "y", 0, NULL);
	expect(&b, "y", "0x2", 0, NULL);
	b = numbers(15, LIST(2, 3, 4));
	build_node(&b, "Shape", "x", "y", 2, (struct rg_attr[]){ attr_int("start", -2), attr_int("end", 9) });
	expect(&b, "y", "2", LIST(3, 4));
	b = build_new(14);
	build_const(&b, "a", RG_I64, 0, NULL, (int64_t[]){ INT64_MAX - 1 });
	build_const(&b, "l", RG_I64, 0, NULL, (int64_t[]){ INT64_MIN });
	build_const(&b, "d", RG_I64, 0, NULL, (int64_t[]){ INT64_MIN });
	build_node(&b, "Range", "a l d", "y", 0, NULL);
	expect(&b, "y", "2", LIST(INT64_MAX - 1, -2));
}

static void fails(struct build *b, const char *part)
{
	assert_true(fold(b) < 0);
	assert_contains(b->err.message, part);
	rg_graph_free(b->g);
}

static void test_outside(void **state)
{
	static const char *const gathers[] = { "Gather", "GatherElements", "GatherND" };
	static const int64_t bad[] = { 3, -4, INT64_MAX, INT64_MIN };

	for (size_t i = 0; i < 4; i++) {
		for (size_t g = 0; g < 3; g++) {
			struct build b = numbers(13, LIST(3));

			build_ints(&b, "i", 1, &bad[i]);
			build_node(&b, gathers[g], "x i", "y", 0, NULL);
			fails(&b, "outside of a dimension of 3");
		}
		for (size_t g = 0; g < 2; g++) {
			struct build b = numbers(13, LIST(3));

			if (g)
				build_const(&b, "i", RG_I64, LIST(1, 1), &bad[i]);
			else
				build_ints(&b, "i", 1, &bad[i]);
			build_ints(&b, "u", LIST(7));
			build_node(&b, g ? "ScatterND" : "ScatterElements", "x i u", "y", 0, NULL);
			fails(&b, "outside of a dimension of 3");
		}
	}
	{
		struct build b = numbers(13, LIST(3, 2));

		build_ints(&b, "l", LIST(4, 1));
		build_node(&b, "ReverseSequence", "x l", "y", 0, NULL);
		fails(&b, "has length 4");
	}
}

/* Transpose and Slice by the definition: each output position is followed back. */
static void test_random_copies(void **state)
{
	for (uint64_t round = 0; round < 500; round++) {
		uint64_t stream = rg_rng_stream(round, "copies"), at = 0;
		int64_t dims[4], perm[4], from[4], to[4], step[4], axes[4] = { 0, 1, 2, 3 }, pos[4] = { 0 };
		int rank = (int)rg_rng_integer(stream, at++, 1, 4);
		struct build b;
		const struct rg_value *v;

		for (int d = 0; d < rank; d++) {
			dims[d] = rg_rng_integer(stream, at++, 1, 5);
			perm[d] = d;
			from[d] = rg_rng_integer(stream, at++, 0, dims[d] - 1);
			to[d] = rg_rng_integer(stream, at++, 0, dims[d] - 1);
			step[d] = rg_rng_integer(stream, at++, 1, 3) * (to[d] >= from[d] ? 1 : -1);
		}
		for (int d = rank - 1; d > 0; d--) {
			int64_t k = rg_rng_integer(stream, at++, 0, d), t = perm[d];

			perm[d] = perm[k];
			perm[k] = t;
		}
		b = numbers(13, rank, dims);
		build_ints(&b, "from", rank, from);
		build_ints(&b, "to", rank, to);
		build_ints(&b, "axes", rank, axes);
		build_ints(&b, "step", rank, step);
		build_node(&b, "Slice", "x from to axes step", "s", 0, NULL);
		build_node(&b, "Transpose", "s", "y", 1, (struct rg_attr[]){ attr_ints("perm", rank, perm) });
		assert_int_equal(fold(&b), 0);
		v = build_get(&b, "y");
		for (int64_t i = 0; i < rg_shape_count(&v->shape); i++) {
			int64_t want = 0;

			for (int d = 0; d < rank; d++) { /* dimension d of x is where perm says d */
				int p = 0;

				while (perm[p] != d)
					p++;
				want = want * dims[d] + from[d] + pos[p] * step[d];
			}
			assert_int_equal(((const int64_t *)v->data)[i], want);
			for (int d = rank - 1; d >= 0 && ++pos[d] == v->shape.dim[d]; d--)
				pos[d] = 0;
		}
		rg_graph_free(b.g);
	}
}

/* Float to integer beyond the ends is defined here; halves round once. */
static void test_cast_ends(void **state)
{
	struct build b = build_new(13);
	/* 1 + 2^-11 is a tie in float16; the bit far below decides, and must survive
	 * the way through float. */
	double v[] = { 1e30, -1e30, 0.0 / 0.0, -1.9, 300 }, half[] = { 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 };
	const struct rg_value *u8, *i64, *f16;

	build_const(&b, "v", RG_F64, LIST(5), v);
	build_const(&b, "h", RG_F64, LIST(2), half);
	build_node(&b, "Cast", "v", "u8", 1, (struct rg_attr[]){ attr_int("to", RG_U8) });
	build_node(&b, "Cast", "v", "i64", 1, (struct rg_attr[]){ attr_int("to", RG_I64) });
	build_node(&b, "Cast", "h", "f16", 1, (struct rg_attr[]){ attr_int("to", RG_F16) });
	assert_int_equal(fold(&b), 0);
	u8 = build_get(&b, "u8");
	i64 = build_get(&b, "i64");
	f16 = build_get(&b, "f16");
	assert_memory_equal(u8->data, ((uint8_t[]){ 255, 0, 0, 0, 255 }), 5);
	assert_memory_equal(i64->data, ((int64_t[]){ INT64_MAX, INT64_MIN, 0, -1, 300 }), 40);
	assert_memory_equal(f16->data, ((uint16_t[]){ 0x3c01, 0x3c00 }), 4);
	rg_graph_free(b.g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_old_versions), cmocka_unit_test(test_corners),
		cmocka_unit_test(test_outside), cmocka_unit_test(test_random_copies),
		cmocka_unit_test(test_cast_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
