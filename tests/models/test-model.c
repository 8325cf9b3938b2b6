/* Opening a model by name: files and built-in ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "folder.h"
#include "models/model.h"
#include "wire.h"

static void a_file(void **state)
{
	struct wire m = wire_small_model();
	const char *path = folder_write("m.onnx", m.p, m.len);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_sha256 *h = rg_sha256_new();
	struct rg_model *model;
	char hex[65];

	rg_sha256_add(h, m.p, m.len);
	rg_sha256_finish(h, hex);
	if (rg_model_open(path, NULL, &model, &err))
		fail_msg("%s: %s", err.where, err.message);
	assert_string_equal(model->source, path);
	assert_string_equal(model->sha256, hex);
	assert_int_equal(model->file_bytes, m.len);
	assert_true(model->read_ns > 0);
	assert_int_equal(model->graph->n_nodes, 1);
	rg_model_free(model);
	wire_free(&m);
}

static void names_of_models(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_model *model;

	assert_true(rg_model_looks_like("builtin:anything"));
	assert_true(rg_model_looks_like(folder_write("x", "", 0)));
	assert_false(rg_model_looks_like(folder_path("missing")));
	assert_false(rg_model_looks_like("12"));
	assert_int_equal(rg_model_open(folder_path("missing"), NULL, &model, &err), -ENOENT);
	assert_null(model);
	assert_int_equal(rg_model_open("builtin:resnet51", NULL, &model, &err), -ENOENT);
	assert_non_null(strstr(err.message, "resnet51"));
	assert_non_null(strstr(err.hint, "builtin:resnet50"));
}

static void a_builtin(void **state)
{
	struct rg_bindings b = { 0 }, batch = { 0 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_model *model;
	const struct rg_graph *g;

	b.n_dims = 1;
	b.dims = rg_calloc(1, sizeof(*b.dims));
	b.dims[0].symbol = "seq"; /* of another model */
	assert_int_equal(rg_model_open("builtin:mlp", &b, &model, &err), RG_EUSAGE);
	assert_non_null(strstr(err.message, "'seq'"));
	assert_non_null(strstr(err.hint, "batch=1"));
	b.dims[0].symbol = "bat";
	assert_int_equal(rg_model_open("builtin:mlp", &b, &model, &err), RG_EUSAGE);

	rg_error_clear(&err);
	if (rg_model_open("builtin:mlp", NULL, &model, &err))
		fail_msg("%s: %s", err.where, err.message);
	g = model->graph;
	assert_string_equal(model->source, "builtin:mlp");
	assert_string_equal(model->sha256, "");
	assert_int_equal(model->file_bytes, -1);
	if (rg_model_bind(model, NULL, &err))
		fail_msg("%s: %s", err.where, err.message);
	assert_int_equal(g->values[g->inputs[0]].shape.dim[0], 1);
	rg_model_free(model);

	b.dims[0].symbol = "batch";
	b.dims[0].value = 4;
	batch = b;
	assert_int_equal(rg_model_open("builtin:mlp", &batch, &model, &err), 0);
	assert_int_equal(rg_model_bind(model, &batch, &err), 0);
	assert_int_equal(model->graph->values[model->graph->inputs[0]].shape.dim[0], 4);
	rg_model_free(model);
	rg_free(b.dims);
}

static void every_allocation_fails_once(void **state)
{
	struct wire m = wire_small_model();
	const char *path = folder_write("m.onnx", m.p, m.len);

	wire_free(&m);
	for (uint64_t n = 1;; n++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_model *model = NULL;
		bool failed;
		int rc;

		rg_alloc_fail_at(n);
		rc = rg_model_open(path, NULL, &model, &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		rg_model_free(model);
		if (!failed) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		assert_null(model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
		TEST(a_file),
		TEST(names_of_models),
		TEST(a_builtin),
		TEST(every_allocation_fails_once),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
