/*
 * The terminal UI without a terminal: scripted keys, screens compared as text
 * with tests/tui/golden. RIDGE_UPDATE_GOLDEN=1 writes them anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tui/app.h"

#ifndef GOLDEN_DIR
#error "GOLDEN_DIR names the folder of the golden screens"
#endif

static char db[] = "/tmp/ridge-tui-XXXXXX";
static struct rg_store *store;

static void must(int rc, const struct rg_error *err)
{
	if (rc)
		fail_msg("%s: %s (%s)", err->where, err->message, err->hint);
}

static void put_run(const char *tag, const char *model, int iterations, enum rg_run_status end)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_run run = { .tag = tag, .model = model, .model_name = model, .model_sha256 = "", .command = "ridge record",
			      .version = "test", .started_unix_ns = 1767225600000000000, .threads = 2,
			      .warmup_iterations = -1, .iterations = iterations, .duration_ns = -1, .seed = 1 };
	struct rg_fact facts[] = {
		{ "machine.l1d_bytes", 1, "", 49152, NAN, "bytes", RG_PROV_DECLARED, "sysfs" },
		{ "machine.l2_bytes", 1, "", 2097152, NAN, "bytes", RG_PROV_DECLARED, "sysfs" },
		{ "model.params", 1, "", 25557032, NAN, "", RG_PROV_MODELLED, "" },
		{ "plan.arena_bytes", 1, "", 4000000, NAN, "bytes", RG_PROV_MODELLED, "" },
	};
	struct rg_ceiling_row ceilings[] = {
		{ "compute", "peak", "float32", "avx2", 2, 100e9, 98e9, 100e9, 9, "flop/s", "before", "", -1, RG_PROV_MEASURED },
		{ "bandwidth", "L1", "float32", "avx2", 2, 400e9, 390e9, 400e9, 9, "byte/s", "before", "", 24576, RG_PROV_MEASURED },
		{ "bandwidth", "L2", "float32", "avx2", 2, 150e9, 140e9, 150e9, 9, "byte/s", "before", "", 1 << 20, RG_PROV_MEASURED },
		{ "bandwidth", "DRAM", "float32", "avx2", 2, 20e9, 19e9, 20e9, 9, "byte/s", "before", "", 1 << 29, RG_PROV_MEASURED },
	};
	static const char *const kinds[] = { "conv", "elementwise", "pool", "gemm", "norm" };
	static const char *const types[] = { "Conv", "Relu", "MaxPool", "Gemm", "Softmax" };
	struct rg_tensor_row tensors[7];
	struct rg_step_row steps[6];
	struct rg_io_row io[12];
	struct rg_edge_row edges[5];
	struct rg_iteration_row *it = rg_calloc((size_t)iterations, sizeof(*it));
	struct rg_span_row *spans = rg_calloc((size_t)iterations * 6, sizeof(*spans));
	uint64_t s = rg_rng_stream(1, tag);
	int64_t id, at = 0;
	int n_spans = 0;

	memset(tensors, 0, sizeof(tensors));
	memset(steps, 0, sizeof(steps));
	for (int i = 0; i < 7; i++)
		tensors[i] = (struct rg_tensor_row){ i, "t", "float32", "1x64x56x56", 802816, i ? "arena" : "input",
						     i ? (int64_t)802816 * (i % 2) : -1, -1, i - 1, i, i == 0, i == 6, false };
	for (int i = 0; i < 6; i++) {
		steps[i].index = i;
		steps[i].name = i == 0 ? "/layer1/a rather long name of a convolution/Conv" : i == 1 ? "evil\033[2Jname" : types[i % 5];
		steps[i].op_type = types[i % 5];
		steps[i].domain = "";
		steps[i].op_version = 11;
		steps[i].op_kind = kinds[i % 5];
		steps[i].kernel = i % 2 ? "loops" : "openblas";
		steps[i].kernel_reason = i % 2 ? "rank 22, the highest of 4 that can run it" : "";
		steps[i].dtype = "float32";
		steps[i].shape = "1x64x56x56";
		steps[i].flops = i == 4 ? -1 : (int64_t)200704 * (i % 5 == 0 ? 1152 : 1);
		steps[i].iops = steps[i].sfu = 0;
		steps[i].executed_flops = -1;
		steps[i].read_bytes = steps[i].write_bytes = 802816;
		steps[i].gemm_m = steps[i].gemm_n = steps[i].gemm_k = -1;
		io[2 * i] = (struct rg_io_row){ i, 0, false, i };
		io[2 * i + 1] = (struct rg_io_row){ i, 0, true, i + 1 };
		if (i)
			edges[i - 1] = (struct rg_edge_row){ i - 1, i, i };
	}
	must(rg_store_begin_run(store, &run, &id, &err), &err);
	must(rg_store_put_facts(store, id, facts, 4, &err), &err);
	must(rg_store_put_ceilings(store, id, ceilings, 4, &err), &err);
	must(rg_store_put_tensors(store, id, tensors, 7, &err), &err);
	must(rg_store_put_steps(store, id, steps, 6, io, 12, edges, 5, &err), &err);
	for (int i = 0; i < iterations; i++) {
		it[i] = (struct rg_iteration_row){ i, "timing", i % 4 == 0 || i % 4 == 3, at, at };
		for (int k = 0; k < 6; k++) {
			int64_t took = (k % 5 == 0 ? 4000000 : 90000) + (int64_t)(rg_rng_u64(s, (uint64_t)(i * 6 + k)) % 40000);

			if (it[i].hook_on)
				spans[n_spans++] = (struct rg_span_row){ i, k, 0, 1, at + 500, at + 500 + took };
			at += took + 700;
		}
		it[i].end_ns = at;
		at += 1000;
	}
	if (iterations)
		must(rg_store_put_iterations(store, id, it, iterations, spans, n_spans, &err), &err);
	if (end != RG_RUN_RECORDING)
		must(rg_store_end_run(store, id, end, "", &err), &err);
	rg_free(it);
	rg_free(spans);
}

static int setup(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	int fd = mkstemp(db);

	(void)state;
	close(fd);
	unlink(db);
	must(rg_store_open(db, RG_STORE_WRITE, &store, &err), &err);
	put_run("first", "resnet50", 80, RG_RUN_COMPLETE);
	put_run("none", "empty", 0, RG_RUN_INTERRUPTED);
	return 0;
}

static int teardown(void **state)
{
	char extra[64];

	(void)state;
	rg_store_close(store);
	unlink(db);
	snprintf(extra, sizeof(extra), "%s-wal", db);
	unlink(extra);
	snprintf(extra, sizeof(extra), "%s-shm", db);
	unlink(extra);
	return 0;
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text;
	size_t n;

	if (!f)
		return NULL;
	text = rg_calloc(1, 65536);
	n = fread(text, 1, 65535, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static void expect_screen(struct rg_app *a, int w, int h, const char *name)
{
	struct rg_cells c;
	struct rg_str text = { 0 };
	char path[512];
	char *golden;

	assert_true(rg_cells_init(&c, w, h));
	rg_app_draw(a, &c);
	rg_cells_dump(&c, &text);
	snprintf(path, sizeof(path), "%s/%s-%dx%d.txt", GOLDEN_DIR, name, w, h);
	if (getenv("RIDGE_UPDATE_GOLDEN")) {
		FILE *f = fopen(path, "wb");

		assert_non_null(f);
		fputs(rg_str_text(&text), f);
		fclose(f);
	}
	golden = read_file(path);
	if (!golden)
		fail_msg("%s is missing", path);
	if (strcmp(golden, rg_str_text(&text)) != 0)
		fail_msg("%s differs; the screen is now:\n%s", path, rg_str_text(&text));
	rg_free(golden);
	rg_str_free(&text);
	rg_cells_free(&c);
}

static struct rg_app *new_app(const char *run)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tui_options *o = rg_calloc(1, sizeof(*o));
	struct rg_app *a = NULL;

	o->run = run;
	must(rg_app_new(store, o, &a, &err), &err);
	a->utf8 = false;
	return a;
}

static void free_app(struct rg_app *a)
{
	rg_free((void *)a->opt);
	rg_app_free(a);
}

static void keys(struct rg_app *a, const char *k)
{
	for (; *k; k++)
		rg_app_key(a, *k == '\n' ? RG_KEY_ENTER : *k == '\b' ? RG_KEY_BACKSPACE : *k == '\033' ? RG_KEY_ESCAPE : *k);
}

static void every_screen(void **state)
{
	static const char *const names[] = { "runs", "ops", "roofline", "tail", "check", "path" };
	struct rg_app *a = new_app("first");

	(void)state;
	for (int s = 0; s < 6; s++) {
		rg_app_key(a, '1' + s);
		expect_screen(a, 80, 24, names[s]);
		expect_screen(a, 132, 40, names[s]);
	}
	keys(a, "?");
	expect_screen(a, 80, 24, "help");
	keys(a, "x"); /* any key closes it and does nothing else */
	assert_false(a->help);
	free_app(a);
}

static void braille(void **state)
{
	struct rg_app *a = new_app("first");

	(void)state;
	a->utf8 = true;
	keys(a, "3");
	expect_screen(a, 80, 24, "roofline-utf8");
	keys(a, "4");
	expect_screen(a, 80, 24, "tail-utf8");
	free_app(a);
}

static void list_opens_a_run(void **state)
{
	struct rg_app *a = new_app(NULL);

	(void)state;
	assert_int_equal(a->screen, RG_SCREEN_RUNS);
	keys(a, "3"); /* nothing is open: stays, and says so */
	assert_int_equal(a->screen, RG_SCREEN_RUNS);
	assert_non_null(strstr(a->message, "Enter"));
	keys(a, "j\n");
	assert_int_equal(a->screen, RG_SCREEN_OPS);
	assert_string_equal(a->rec->run.tag, "first");
	keys(a, "qk\n"); /* the newest run has no iterations */
	assert_string_equal(a->rec->run.tag, "none");
	for (int s = '1'; s <= '6'; s++) {
		char name[32];

		rg_app_key(a, s);
		snprintf(name, sizeof(name), "empty-%c", s);
		expect_screen(a, 80, 24, name);
	}
	keys(a, "qq");
	assert_true(a->quit);
	free_app(a);
}

static void sort_and_filter(void **state)
{
	struct rg_app *a = new_app("first");
	double before = INFINITY;

	(void)state;
	assert_int_equal(a->ops_list.n, 6);
	for (int i = 0; i < 6; i++) {
		double t = a->analysis->ops[a->order[i]].time_ns;

		assert_true(t <= before);
		before = t;
	}
	keys(a, "s"); /* by execution order, upward */
	for (int i = 0; i < 6; i++)
		assert_int_equal(a->order[i], i);
	keys(a, "S");
	assert_int_equal(a->order[0], 5);
	keys(a, "/conv");
	assert_int_equal(a->ops_list.n, 2);
	assert_true(a->editing);
	keys(a, "q"); /* text, not a command */
	assert_false(a->quit);
	assert_int_equal(a->ops_list.n, 0);
	expect_screen(a, 80, 24, "ops-no-match");
	keys(a, "\b\n");
	assert_int_equal(a->ops_list.n, 2);
	expect_screen(a, 80, 24, "ops-filter");
	keys(a, "\033");
	assert_int_equal(a->ops_list.n, 6);
	free_app(a);
}

static void roofline_follows_the_cursor(void **state)
{
	struct rg_app *a = new_app("first");
	int first;

	(void)state;
	first = a->order[0];
	keys(a, "3");
	assert_int_equal(a->point, first);
	keys(a, "n");
	assert_int_equal(a->point, a->order[1]);
	keys(a, "pp");
	assert_int_equal(a->point, first);
	free_app(a);
}

static void control_characters_stay_out(void **state)
{
	struct rg_app *a = new_app("first");
	struct rg_cells c;

	(void)state;
	assert_true(rg_cells_init(&c, 100, 30));
	for (int s = 0; s < 6; s++) {
		rg_app_key(a, '1' + s);
		rg_app_draw(a, &c);
		for (int i = 0; i < c.width * c.height; i++)
			assert_true(c.cell[i].code == 0 || c.cell[i].code >= 0x20);
	}
	rg_cells_free(&c);
	free_app(a);
}

/* Any key at any size, in any order. */
static void any_key_at_any_size(void **state)
{
	static const int all[] = { 'j', 'k', 'g', 'G', 's', 'S', '/', 'a', 'n', 'p', 'r', 'R', '?', '1', '2', '3', '4', '5',
				   '6', RG_KEY_UP, RG_KEY_DOWN, RG_KEY_PAGE_UP, RG_KEY_PAGE_DOWN, RG_KEY_HOME, RG_KEY_END,
				   RG_KEY_ENTER, RG_KEY_BACKSPACE, RG_KEY_ESCAPE, RG_KEY_TAB, RG_KEY_BACKTAB, 0, 'q' };
	struct rg_app *a = new_app("first");
	uint64_t s = rg_rng_stream(7, "keys");

	(void)state;
	for (uint64_t i = 0; i < 3000; i++) {
		struct rg_cells c;
		int w = (int)rg_rng_integer(s, 3 * i, 1, 140), h = (int)rg_rng_integer(s, 3 * i + 1, 1, 50);

		rg_app_key(a, all[rg_rng_u64(s, 3 * i + 2) % (sizeof(all) / sizeof(all[0]))]);
		a->utf8 = i % 2;
		a->quit = a->want_record = false;
		assert_true(rg_cells_init(&c, w, h));
		rg_app_draw(a, &c);
		rg_cells_free(&c);
	}
	free_app(a);
}

static void text_is_clipped(void **state)
{
	struct rg_cells c;
	struct rg_str s = { 0 };

	(void)state;
	assert_true(rg_cells_init(&c, 10, 2));
	rg_cells_text(&c, 2, 0, 5, RG_ROLE_NORMAL, "abcdefgh");
	rg_cells_text(&c, 8, 1, 99, RG_ROLE_NORMAL, "\xc3\xa4\xff\xe2\x80\xae");
	rg_cells_text(&c, -3, 1, 5, RG_ROLE_NORMAL, "abcde");
	rg_cells_dump(&c, &s);
	assert_string_equal(rg_str_text(&s), "  abcd~\nde      \xc3\xa4~\n");
	rg_str_free(&s);
	rg_cells_clear(&c);
	rg_cells_name(&c, 0, 0, 9, RG_ROLE_NORMAL, "abcdefghijklm");
	rg_cells_name(&c, 0, 1, 9, RG_ROLE_NORMAL, "abcdefghi");
	rg_cells_name(&c, 9, 1, 0, RG_ROLE_NORMAL, "abc");
	rg_cells_dump(&c, &s);
	assert_string_equal(rg_str_text(&s), "abc~ijklm\nabcdefghi\n");
	rg_str_free(&s);
	rg_cells_free(&c);
	assert_false(rg_cells_init(&c, 0, 5));
	assert_false(rg_cells_init(&c, 5, 1 << 30));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_screen),
		cmocka_unit_test(braille),
		cmocka_unit_test(list_opens_a_run),
		cmocka_unit_test(sort_and_filter),
		cmocka_unit_test(roofline_follows_the_cursor),
		cmocka_unit_test(control_characters_stay_out),
		cmocka_unit_test(any_key_at_any_size),
		cmocka_unit_test(text_is_clipped),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
