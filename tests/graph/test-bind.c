/* Binding open dimensions: what closes them, and the words when something does not. */
#include <stdio.h>

#include "tests/graph/build.h"

/* The elements of the two lists of rg_bindings, whose types have no name. */
#define shape_binding typeof(*((struct rg_bindings *)0)->shapes)
#define dim_binding typeof(*((struct rg_bindings *)0)->dims)

/* image: [batch, 3, H, 2*W+1]; mask: [batch, 8]. */
static struct build model(void)
{
	struct build b = build_new(13);
	struct rg_dim image[4] = { { -1, "batch" }, { 3, NULL }, { -1, "H" }, { -1, "2*W+1" } };
	struct rg_dim mask[2] = { { -1, "batch" }, { 8, NULL } };
	int v = build_value(&b, "image"), m = build_value(&b, "mask");

	assert_int_equal(rg_graph_declare(b.g, v, RG_F32, 4, image, &b.err), 0);
	assert_int_equal(rg_graph_declare(b.g, m, RG_I64, 2, mask, &b.err), 0);
	assert_int_equal(rg_graph_add_input(b.g, v, &b.err), 0);
	assert_int_equal(rg_graph_add_input(b.g, m, &b.err), 0);
	assert_int_equal(rg_graph_add_output(b.g, v, &b.err), 0);
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	return b;
}

static int bind(struct build *b, int n_shapes, shape_binding *shapes, int n_dims, dim_binding *dims)
{
	struct rg_bindings x = { .n_shapes = n_shapes, .shapes = shapes, .n_dims = n_dims,
				 .dims = dims };

	rg_error_clear(&b->err);
	return rg_graph_bind(b->g, &x, &b->err);
}

static shape_binding shape_of(const char *input, const char *text)
{
	shape_binding s = { .input = input };
	struct rg_error err;

	assert_int_equal(rg_shape_parse(text, &s.shape, &err), 0);
	return s;
}

static void test_dims(void **state)
{
	struct build b = model();
	dim_binding d[] = { { "batch", 2 }, { "H", 16 }, { "2*W+1", 33 } };

	/* A symbol need not be an identifier. */
	assert_int_equal(bind(&b, 0, NULL, 3, d), 0);
	assert_shape(&b, "image", "2x3x16x33");
	assert_shape(&b, "mask", "2x8");
	assert_int_equal(build_get(&b, "mask")->dtype, RG_I64);
	rg_graph_free(b.g);
}

/* A sequence has no shape before it runs, and an option for one is not ignored. */
static void test_sequence(void **state)
{
	struct build b = build_new(13);
	int v = build_value(&b, "list");
	shape_binding s = shape_of("list", "3");

	assert_int_equal(rg_graph_declare(b.g, v, RG_F32, -1, NULL, &b.err), 0);
	assert_int_equal(rg_graph_declare_kind(b.g, v, RG_VALUE_SEQUENCE, &b.err), 0);
	assert_int_equal(rg_graph_add_input(b.g, v, &b.err), 0);
	assert_int_equal(rg_graph_add_output(b.g, v, &b.err), 0);
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(bind(&b, 0, NULL, 0, NULL), 0);
	assert_int_equal(bind(&b, 1, &s, 0, NULL), RG_EUSAGE);
	assert_non_null(strstr(b.err.message, "a sequence"));
	rg_graph_free(b.g);
}

static void test_open(void **state)
{
	struct build b = model();
	dim_binding d[] = { { "batch", 2 } };

	assert_int_equal(bind(&b, 0, NULL, 0, NULL), -EINVAL);
	assert_string_equal(b.err.message, "input 'image': dimension 0 ('batch') is open");
	assert_contains(b.err.hint, "--shape image=1x3x224x224");
	assert_contains(b.err.hint, "--dim batch=1");
	assert_int_equal(bind(&b, 0, NULL, 1, d), -EINVAL);
	assert_string_equal(b.err.message, "input 'image': dimension 2 ('H') is open");
	assert_contains(b.err.hint, "--dim H=224");
	assert_int_equal(rg_graph_bind(b.g, NULL, &b.err), -EINVAL);
	rg_graph_free(b.g);
}

static void test_unnamed(void **state)
{
	struct build b = build_new(13);
	struct rg_dim d[2] = { { -1, NULL }, { -1, "" } };
	shape_binding s[] = { shape_of("x", "4x5") };

	assert_int_equal(rg_graph_declare(b.g, build_value(&b, "x"), RG_F32, 2, d, &b.err), 0);
	assert_int_equal(rg_graph_add_input(b.g, 0, &b.err), 0);
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(bind(&b, 0, NULL, 0, NULL), -EINVAL);
	assert_string_equal(b.err.message, "input 'x': dimension 0 is open and has no name");
	assert_contains(b.err.hint, "--shape x=");
	assert_null(strstr(b.err.hint, "--dim"));
	assert_int_equal(bind(&b, 1, s, 0, NULL), 0);
	assert_shape(&b, "x", "4x5");
	rg_graph_free(b.g);
}

static void test_shape_wins(void **state)
{
	struct build b = model();
	shape_binding s[] = { shape_of("image", "4x3x5x6") };
	dim_binding d[] = { { "batch", 2 } };

	assert_int_equal(bind(&b, 1, s, 1, d), 0);
	assert_shape(&b, "image", "4x3x5x6");
	assert_shape(&b, "mask", "2x8");
	/* Without --dim, the symbol of the shape closes the other input too. */
	assert_int_equal(bind(&b, 1, s, 0, NULL), 0);
	assert_shape(&b, "mask", "4x8");
	rg_graph_free(b.g);
}

static void test_contradictions(void **state)
{
	struct build b = model();
	shape_binding fixed[] = { shape_of("image", "4x4x5x6") };
	shape_binding rank[] = { shape_of("image", "4x3x5") };
	shape_binding unknown[] = { shape_of("picture", "1") };
	shape_binding twice[] = { shape_of("image", "1x3x5x6"), shape_of("image", "2x3x5x6") };
	dim_binding nothing[] = { { "seq", 2 } };
	dim_binding again[] = { { "batch", 2 }, { "batch", 3 } };
	dim_binding negative[] = { { "batch", -1 } };

	assert_int_equal(bind(&b, 1, fixed, 0, NULL), -EINVAL);
	assert_contains(b.err.message, "dimension 1 is fixed to 3");
	assert_int_equal(bind(&b, 1, rank, 0, NULL), -EINVAL);
	assert_contains(b.err.message, "has 3 dimensions, the model declares 4");
	assert_int_equal(bind(&b, 1, unknown, 0, NULL), RG_EUSAGE);
	assert_contains(b.err.hint, "'image', 'mask'");
	assert_int_equal(bind(&b, 2, twice, 0, NULL), -EINVAL);
	assert_contains(b.err.message, "given twice");
	assert_int_equal(bind(&b, 0, NULL, 1, nothing), RG_EUSAGE);
	assert_contains(b.err.message, "--dim seq");
	assert_contains(b.err.hint, "'batch', 'H', '2*W+1'");
	assert_int_equal(bind(&b, 0, NULL, 2, again), -EINVAL);
	assert_contains(b.err.message, "given twice");
	assert_int_equal(bind(&b, 0, NULL, 1, negative), -EINVAL);
	assert_contains(b.err.message, "cannot be negative");
	rg_graph_free(b.g);
}

static void test_impossible(void **state)
{
	struct build b = model();
	dim_binding huge[] = { { "batch", INT64_MAX }, { "H", 2 }, { "2*W+1", 2 } };

	assert_int_equal(bind(&b, 0, NULL, 3, huge), -EINVAL);
	assert_contains(b.err.message, "overflows");
	rg_graph_free(b.g);

	b = build_new(13);
	assert_int_equal(rg_graph_add_input(b.g, build_value(&b, "x"), &b.err), 0);
	assert_int_equal(rg_graph_finish(b.g, &b.err), 0);
	assert_int_equal(bind(&b, 0, NULL, 0, NULL), RG_ENOTSUP_MODEL);
	assert_int_equal(rg_graph_declare(b.g, 0, RG_F32, -1, NULL, &b.err), 0);
	assert_int_equal(bind(&b, 0, NULL, 0, NULL), -EINVAL);
	assert_contains(b.err.message, "no declared shape");
	assert_int_equal(rg_graph_declare(b.g, 0, RG_F32, RG_MAX_RANK + 1, NULL, &b.err), RG_ENOTSUP_MODEL);
	rg_graph_free(b.g);
}

/* An example closes what is open, and nothing else, and binds. */
static void test_example(void **state)
{
	const struct rg_example_sizes sizes = { 3, 48, 320, 576, 7 };
	struct build b = model();
	shape_binding given[] = { shape_of("mask", "4x8") }, out[3];
	dim_binding d[] = { { "H", 16 } };
	struct rg_bindings none = { 0 }, some = { .n_shapes = 1, .shapes = given, .n_dims = 1, .dims = d };
	struct rg_bindings example = { .shapes = out };

	/* The first shape closes the batch of the second input too. */
	assert_int_equal(rg_graph_example(b.g, &none, &sizes, &example), 1);
	assert_string_equal(out[0].input, "image");
	assert_int_equal(rg_graph_bind(b.g, &example, &b.err), 0);
	assert_shape(&b, "image", "1x3x48x320");
	assert_shape(&b, "mask", "1x8");
	assert_int_equal(rg_graph_example(b.g, &some, &sizes, &example), 1);
	assert_int_equal(example.n_shapes, 2);
	assert_int_equal(rg_graph_bind(b.g, &example, &b.err), 0);
	assert_shape(&b, "image", "4x3x16x320");
	assert_int_equal(rg_graph_example(b.g, &example, &sizes, &example), 0);
	rg_graph_free(b.g);

	b = build_new(13);
	assert_int_equal(rg_graph_declare(b.g, build_value(&b, "x"), RG_F32, 3,
					  (struct rg_dim[]){ { 2, NULL }, { -1, NULL }, { 128, NULL } }, &b.err), 0);
	assert_int_equal(rg_graph_add_input(b.g, 0, &b.err), 0);
	assert_int_equal(rg_graph_example(b.g, &none, &sizes, &example), 1);
	assert_int_equal(rg_graph_bind(b.g, &example, &b.err), 0);
	assert_shape(&b, "x", "2x7x128");
	rg_graph_free(b.g);

	b = build_new(13);
	assert_int_equal(rg_graph_declare(b.g, build_value(&b, "x"), RG_F32, -1, NULL, &b.err), 0);
	assert_int_equal(rg_graph_add_input(b.g, 0, &b.err), 0);
	assert_int_equal(rg_graph_example(b.g, &none, &sizes, &example), -1);
	rg_graph_free(b.g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dims), cmocka_unit_test(test_sequence), cmocka_unit_test(test_open), cmocka_unit_test(test_unnamed),
		cmocka_unit_test(test_shape_wins), cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_impossible), cmocka_unit_test(test_example),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
