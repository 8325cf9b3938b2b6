/*
 * ridge quantize from a model to the file: samples of several sizes and inputs, what is measured of them, what
 * stays float32, and that an allocation that fails is an error and leaves nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "models/npy.h"
#include "models/onnx-write.h"
#include "session/quantize.h"
#include "tests/compile/make-graph.h"
#include "tests/models/folder.h"

static struct rg_error err;

/* conv(x), normalised, times an open matrix: two inputs, both with an open size. */
static const char *model(void)
{
	struct rg_dim x[] = { { -1, "n" }, { 2, NULL }, { 5, NULL }, { -1, "w" } }, s[] = { { 3, NULL }, { 4, NULL } };
	struct rg_graph *g = make_graph();
	const char *path = folder_path("model.onnx");
	float w[4 * 2 * 3 * 3], v[4];
	int value;

	err = (struct rg_error)RG_ERROR_INIT;
	value = rg_graph_value(g, "x", &err);
	assert_int_equal(rg_graph_declare(g, value, RG_F32, 4, x, &err), 0);
	assert_int_equal(rg_graph_add_input(g, value, &err), 0);
	value = rg_graph_value(g, "in/s", &err);
	assert_int_equal(rg_graph_declare(g, value, RG_F32, 2, s, &err), 0);
	assert_int_equal(rg_graph_add_input(g, value, &err), 0);
	rg_rng_fill_f32(1, -1, 1, w, 72);
	make_floats(g, "w", "4x2x3x3", w);
	rg_rng_fill_f32(2, 0.5f, 2, v, 4);
	make_floats(g, "scale", "4", v);
	rg_rng_fill_f32(3, -1, 1, v, 4);
	make_floats(g, "shift", "4", v);
	make_floats(g, "mean", "4", v);
	rg_rng_fill_f32(4, 0.5f, 2, v, 4);
	make_floats(g, "var", "4", v);
	make_node(g, "Conv", "x,w", "c");
	make_node(g, "BatchNormalization", "c,scale,shift,mean,var", "b");
	make_node(g, "Relu", "b", "r");
	make_node(g, "GlobalAveragePool", "r", "p");
	make_node(g, "Flatten", "p", "f");
	make_node(g, "Transpose", "in/s", "t");
	make_node(g, "MatMul", "f,t", "y");
	make_output(g, "y");
	value = rg_graph_find_value(g, "y");
	assert_int_equal(rg_graph_declare(g, value, RG_F32, -1, NULL, &err), 0);
	if (rg_graph_finish(g, &err) || rg_onnx_write(g, path, &err))
		fail_msg("%s: %s", err.where, err.message);
	rg_graph_free(g);
	return path;
}

static void write_input(const char *path, struct rg_shape shape, uint64_t seed, float scale)
{
	struct rg_tensor t = { RG_F32, shape, NULL };
	size_t n = (size_t)rg_shape_count(&shape);

	t.data = rg_alloc_aligned(64, n * sizeof(float));
	assert_non_null(t.data);
	rg_rng_fill_f32(seed, -scale, scale, t.data, n);
	assert_int_equal(rg_npy_write(path, &t, &err), 0);
	rg_free(t.data);
}

/* Samples of different sizes, "10" behind "9". */
static char *data_set(const char *name, float scale)
{
	static const char *const samples[] = { "9", "10", "11" };
	char *folder = rg_strdup(folder_path(name)), path[600];

	assert_non_null(folder);
	assert_int_equal(mkdir(folder, 0777), 0);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, samples[i]);
		assert_int_equal(mkdir(path, 0777), 0);
		snprintf(path, sizeof(path), "%s/%s/x.npy", folder, samples[i]);
		write_input(path, rg_shape_of(4, (int64_t[]){ 2 + i, 2, 5, 6 + i }), 10 + (uint64_t)i, scale);
		snprintf(path, sizeof(path), "%s/%s/in_s.npy", folder, samples[i]);
		write_input(path, rg_shape_of(2, (int64_t[]){ 3, 4 }), 20 + (uint64_t)i, 1);
	}
	return folder;
}

static struct rg_quantize_run options(const char *path)
{
	struct rg_quantize_run o = { .percent = 99.9, .min_sqnr_db = 10 };

	rg_session_defaults(&o.session);
	o.session.model = path;
	o.session.threads = 1;
	return o;
}

static struct rg_quantized *quantize(const struct rg_quantize_run *o, const char *out)
{
	struct rg_quantized *r = NULL;

	if (rg_session_quantize(o, out, &r, &err))
		fail_msg("%s: %s (%s)", err.where, err.message, err.hint);
	return r;
}

static void samples_of_all_sizes_are_measured(void **state)
{
	char *folder = data_set("data", 1), *other = data_set("other", 3);
	struct rg_quantize_run o = options(model());
	struct rg_quantized *r;

	o.calibrate = folder;
	o.validate = other;
	for (int rule = 0; rule < 4; rule++) {
		o.rule = (enum rg_range_rule)rule;
		r = quantize(&o, folder_path("out.onnx"));
		assert_int_equal(r->n_samples, 3);
		assert_int_equal(r->n_valid, 3);
		assert_false(r->synthetic);
		assert_int_equal(r->n_ops, 2); /* the normalisation is in the weights */
		assert_string_equal(r->ops[0].op_type, "Conv");
		assert_int_equal(r->n_quantized, 2);
		for (int i = 0; i < 2; i++) {
			assert_true(r->ops[i].outputs_db > 15 && r->ops[i].own_db > 15);
			if (rule == RG_RANGE_MINMAX)
				assert_true(r->ops[i].outputs_db > 35 && r->ops[i].own_db > 35 && r->ops[i].clipped == 0);
		}
		/* inputs three times as large leave the range of most of them */
		assert_true(r->ops[0].drifted > 0.5);
		assert_true(r->valid_db < r->all_db - 3);
		assert_true(r->file_db > 15);
		assert_int_equal(r->ops[0].channels, 4);
		assert_true(r->ops[0].per_channel_db >= r->ops[0].per_tensor_db);
		assert_true(r->ops[1].channels == 0 && isnan(r->ops[1].weight_db)); /* it has no weight */
		rg_quantized_free(r);
	}
	rg_free(folder);
	rg_free(other);
}

static void what_is_worse_than_the_limit_stays(void **state)
{
	struct rg_quantize_run o = options(model());
	const char *keep[] = { "Conv" }, *none[] = { "Nothing" };
	struct rg_quantized *r, *all;

	all = quantize(&o, folder_path("out.onnx"));
	assert_true(all->synthetic && all->n_quantized == 2);
	/* between the two: the worse one stays */
	o.min_sqnr_db = (all->ops[0].outputs_db + all->ops[1].outputs_db) / 2;
	r = quantize(&o, folder_path("out.onnx"));
	assert_int_equal(r->n_quantized, 1);
	for (int i = 0; i < 2; i++)
		if (!r->ops[i].quantized)
			assert_string_equal(r->ops[i].why, "its error alone is too large");
	assert_true(r->all_db > all->all_db);
	rg_quantized_free(r);
	o.min_sqnr_db = 10;
	o.keep = keep;
	o.n_keep = 1;
	r = quantize(&o, folder_path("out.onnx"));
	assert_true(!r->ops[0].quantized && r->ops[1].quantized);
	assert_string_equal(r->ops[0].why, "it is kept, as asked");
	rg_quantized_free(r);
	rg_quantized_free(all);
	o.keep = none;
	assert_int_equal(rg_session_quantize(&o, folder_path("none.onnx"), &r, &err), RG_EUSAGE);
	o.n_keep = 0;
	o.min_sqnr_db = 200;
	err = (struct rg_error)RG_ERROR_INIT;
	assert_int_equal(rg_session_quantize(&o, folder_path("none.onnx"), &r, &err), -ENODATA);
	assert_int_not_equal(access(folder_path("none.onnx"), F_OK), 0);
}

static void an_allocation_may_fail(void **state)
{
	char *folder = data_set("data", 1), *out = rg_strdup(folder_path("out.onnx")), *part = rg_asprintf("%s.part", out),
	     *floats = rg_asprintf("%s.float.part", out);
	struct rg_quantize_run o = options(model());
	int failed = 0;

	o.calibrate = folder;
	o.quick = true;
	o.rule = RG_RANGE_MSE;
	for (uint64_t n = 1;; n += 1 + n / 24) { /* steps that grow, since most are those of reading the same file */
		struct rg_quantized *r = NULL;
		int rc;

		err = (struct rg_error)RG_ERROR_INIT;
		rg_alloc_fail_at(n);
		rc = rg_session_quantize(&o, out, &r, &err);
		if (!rg_alloc_did_fail()) {
			rg_alloc_fail_at(0);
			assert_int_equal(rc, 0);
			rg_quantized_free(r);
			break;
		}
		rg_alloc_fail_at(0);
		/* a suggestion or a hint may be lost without an error */
		if (rc) {
			failed++;
			assert_int_not_equal(access(out, F_OK), 0);
		} else {
			rg_quantized_free(r);
			unlink(out);
		}
		assert_int_not_equal(access(part, F_OK), 0);
		assert_int_not_equal(access(floats, F_OK), 0);
	}
	assert_true(failed > 20);
	rg_free(folder);
	rg_free(out);
	rg_free(part);
	rg_free(floats);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_of_all_sizes_are_measured),
		TEST(what_is_worse_than_the_limit_stays),
		TEST(an_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
