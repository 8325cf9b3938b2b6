/*
 * The writers against golden text, against a JSON and a CSV reader, with
 * nothing known, with hostile names, and with every allocation failing once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "make-analysis.h"
#include "reports/json.h"
#include "reports/report-memory.h"
#include "reports/report.h"
#include "reports/table.h"

static struct rg_style style(enum rg_format f, int width)
{
	return (struct rg_style){ .format = f, .width = width };
}

/* RIDGE_UPDATE_GOLDEN=1 writes the files anew, to be looked at before a commit. */
static void assert_golden(const char *name, const char *text)
{
	char path[512], *want;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", getenv("RIDGE_GOLDEN_DIR"), name);
	if (getenv("RIDGE_UPDATE_GOLDEN")) {
		f = fopen(path, "w");
		assert_non_null(f);
		assert_true(fputs(text, f) >= 0);
		assert_int_equal(fclose(f), 0);
		return;
	}
	f = fopen(path, "r");
	assert_non_null(f);
	want = calloc(1, 65536);
	assert_non_null(want);
	n = fread(want, 1, 65535, f);
	fclose(f);
	assert_true(n > 0);
	assert_string_equal(text, want);
	free(want);
}

/* No line wider than `width`, no control character but the newline (and ESC when colour). */
static void assert_fits(const char *text, int width, bool colour)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len), *clean = rg_text_clean(line);

		assert_non_null(clean);
		if (!colour) {
			assert_string_equal(line, clean);
			if (width && rg_text_width(line) > width)
				fail_msg("line of %d columns: %s", rg_text_width(line), line);
		}
		rg_free(clean);
		free(line);
		text += len + (text[len] == '\n');
	}
}

static json_t *parse(const char *text)
{
	json_error_t e;
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &e);

	if (!j)
		fail_msg("JSON: line %d: %s", e.line, e.text);
	return j;
}

static double number(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	assert_true(json_is_number(v));
	return json_number_value(v);
}

static void assert_json_null(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	if (!json_is_null(v))
		fail_msg("%s is not null", key);
}

/* Text, Markdown, JSON and CSV of ridge report --compiler; with nothing known, and with allocations failing. */
static void test_compiler(void **state)
{
	struct rg_analysis *a = make_compiled(), *empty = make_empty();
	struct rg_style st = style(RG_FORMAT_TABLE, 80);
	struct rg_str s = { 0 };
	json_t *j, *o;
	int fails = 0, rc;

	assert_int_equal(rg_report_compiler(&s, a, &st), 0);
	assert_fits(rg_str_text(&s), 80, false);
	assert_golden("compiler-80.golden", rg_str_text(&s));
	rg_str_free(&s);
	st = style(RG_FORMAT_MD, 0);
	assert_int_equal(rg_report_compiler(&s, a, &st), 0);
	assert_golden("compiler-md.golden", rg_str_text(&s));
	rg_str_free(&s);
	st = style(RG_FORMAT_CSV, 0);
	assert_int_equal(rg_report_compiler(&s, a, &st), 0);
	assert_non_null(strstr(rg_str_text(&s), "0,Add,res2a,res2a_branch1,Conv,conv-epilogue,second consumer"));
	rg_str_free(&s);
	st = style(RG_FORMAT_JSON, 0);
	assert_int_equal(rg_report_compiler(&s, a, &st), 0);
	j = parse(rg_str_text(&s));
	assert_true(number(j, "level") == 3);
	assert_true(number(j, "steps_before") == 61);
	assert_true(number(j, "duplicates") == 1);
	assert_int_equal(json_array_size(json_object_get(j, "fused")), 4);
	assert_int_equal(json_array_size(json_object_get(j, "not_fused")), 4);
	o = json_array_get(json_object_get(j, "reasons"), 0);
	assert_string_equal(json_string_value(json_object_get(o, "name")), "no pattern");
	assert_true(number(o, "count") == 3);
	o = json_array_get(json_object_get(j, "not_fused"), 1);
	assert_json_null(o, "pass");
	json_decref(j);
	rg_str_free(&s);
	assert_int_equal(rg_report_compiler(&s, empty, &st), 0);
	j = parse(rg_str_text(&s));
	assert_json_null(j, "level");
	assert_json_null(j, "steps");
	json_decref(j);
	rg_str_free(&s);
	st = style(RG_FORMAT_TABLE, 80);
	assert_int_equal(rg_report_compiler(&s, empty, &st), 0);
	assert_non_null(strstr(rg_str_text(&s), "does not say which passes ran"));
	rg_str_free(&s);
	do {
		rg_alloc_fail_at((uint64_t)++fails);
		rc = rg_report_compiler(&s, a, &st);
		rg_alloc_fail_at(0);
		assert_true(rc == 0 || rc == -ENOMEM);
		rg_str_free(&s);
	} while (rc && fails < 1000);
	assert_int_equal(rc, 0);
	make_free(a);
	make_free(empty);
}

static void test_golden(void **state)
{
	struct rg_analysis *a = make_plausible();
	struct rg_str s = { 0 };
	struct rg_style st;

	st = style(RG_FORMAT_TABLE, 80);
	assert_int_equal(rg_report_run(&s, a, &st), 0);
	assert_fits(rg_str_text(&s), 80, false);
	assert_golden("report-80.golden", rg_str_text(&s));
	rg_str_free(&s);
	st.why = true;
	assert_int_equal(rg_report_run(&s, a, &st), 0);
	assert_fits(rg_str_text(&s), 80, false);
	assert_golden("report-why-80.golden", rg_str_text(&s));
	rg_str_free(&s);
	st = style(RG_FORMAT_TABLE, 120);
	assert_int_equal(rg_report_run(&s, a, &st), 0);
	assert_fits(rg_str_text(&s), 120, false);
	assert_golden("report-120.golden", rg_str_text(&s));
	rg_str_free(&s);
	st = style(RG_FORMAT_MD, 0);
	st.top = 3;
	assert_int_equal(rg_report_run(&s, a, &st), 0);
	assert_golden("report-md.golden", rg_str_text(&s));
	rg_str_free(&s);
	st = style(RG_FORMAT_CSV, 0);
	assert_int_equal(rg_report_run(&s, a, &st), 0);
	assert_golden("report-csv.golden", rg_str_text(&s));
	rg_str_free(&s);
	make_free(a);
}

static void test_report_json(void **state)
{
	struct rg_analysis *a = make_plausible();
	struct rg_style st = style(RG_FORMAT_JSON, 80);
	struct rg_str s = { 0 };
	json_t *j, *ops, *op, *o;

	assert_int_equal(rg_report_run(&s, a, &st), 0);
	j = parse(rg_str_text(&s));
	assert_int_equal(number(j, "run"), 12);
	o = json_object_get(j, "latency");
	assert_float_equal(number(o, "p50_ns") / a->p50.value, 1, 1e-12);
	assert_true(number(o, "p95_ns") > number(o, "p50_ns"));
	assert_true(number(o, "p99_ns") > number(o, "p95_ns"));
	assert_int_equal(number(o, "n"), 1200);
	o = json_object_get(j, "totals");
	assert_true(number(o, "params") == 25557032);
	assert_true(number(o, "flops") == 8.21e9);
	assert_true(number(o, "weight_bytes") == 102228128);
	assert_true(number(o, "peak_bytes") == 121e6);
	o = json_object_get(j, "overhead");
	assert_float_equal(number(o, "ratio"), 1.0021, 1e-12);
	assert_float_equal(number(o, "low"), 0.9987, 1e-12);
	assert_float_equal(number(o, "high"), 1.0064, 1e-12);
	ops = json_object_get(j, "ops");
	assert_int_equal(json_array_size(ops), 24);
	op = json_array_get(ops, 0);
	assert_string_equal(json_string_value(json_object_get(op, "name")), "conv1");
	assert_string_equal(json_string_value(json_object_get(op, "op_type")), "Conv");
	assert_string_equal(json_string_value(json_object_get(op, "kernel")), "im2col+openblas");
	assert_string_equal(json_string_value(json_object_get(op, "dtype")), "float32");
	assert_string_equal(json_string_value(json_object_get(op, "bound")), "compute");
	assert_int_equal(json_array_size(json_object_get(op, "shape")), 4);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(op, "shape"), 3)), 112);
	assert_true(number(op, "time_ns") == 2410e3);
	assert_float_equal(number(op, "share"), 2410e3 / a->ops_total_ns, 1e-12);
	assert_float_equal(number(op, "headroom"), 2410.0 / 979, 1e-9);
	for (size_t i = 0; i < json_array_size(ops); i++) {
		op = json_array_get(ops, i);
		if (strcmp(json_string_value(json_object_get(op, "name")), "never_timed") == 0) {
			static const char *const unknown[] = {"time_ns",   "share", "flops",   "bytes",
								  "intensity", "bound", "roof_ns", "headroom"};

			for (size_t k = 0; k < sizeof(unknown) / sizeof(unknown[0]); k++)
				assert_json_null(op, unknown[k]);
		} else if (strcmp(json_string_value(json_object_get(op, "name")), "split_heads") == 0) {
			/* A scalar has a shape, and it is empty. */
			assert_true(json_is_array(json_object_get(op, "shape")));
			assert_int_equal(json_array_size(json_object_get(op, "shape")), 0);
		}
	}
	assert_int_equal(strlen(json_string_value(json_object_get(j, "outputs_sha256"))), 64);
	json_decref(j);
	rg_str_free(&s);
	make_free(a);
}

static void test_nothing_known(void **state)
{
	static const char *const figures[] = { "p50_ns", "p95_ns", "p99_ns", "min_ns", "max_ns" };
	struct rg_analysis *a = make_empty();
	struct rg_style st = style(RG_FORMAT_JSON, 0);
	struct rg_str s = { 0 };
	json_t *j, *o;

	assert_int_equal(rg_report_run(&s, a, &st), 0);
	j = parse(rg_str_text(&s));
	o = json_object_get(j, "latency");
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		assert_json_null(o, figures[i]);
	assert_int_equal(number(o, "n"), 0);
	o = json_object_get(j, "totals");
	assert_json_null(o, "params");
	assert_json_null(o, "flops");
	assert_json_null(o, "peak_bytes");
	assert_json_null(json_object_get(j, "overhead"), "ratio");
	assert_json_null(j, "outputs_sha256");
	assert_int_equal(json_array_size(json_object_get(j, "ops")), 0);
	json_decref(j);
	rg_str_free(&s);
	st.format = RG_FORMAT_TABLE;
	st.width = 80;
	assert_int_equal(rg_report_run(&s, a, &st), 0);
	assert_fits(rg_str_text(&s), 80, false);
	assert_golden("report-empty.golden", rg_str_text(&s));
	rg_str_free(&s);
	make_free(a);
}

static void test_hostile(void **state)
{
	struct rg_analysis *a = make_hostile(400);
	struct rg_str s = { 0 };
	json_t *j;

	for (int width = 80; width <= 200; width += 40) {
		struct rg_style st = style(RG_FORMAT_TABLE, width);

		assert_int_equal(rg_report_run(&s, a, &st), 0);
		assert_fits(rg_str_text(&s), width, false);
		rg_str_free(&s);
	}
	for (int f = RG_FORMAT_JSON; f <= RG_FORMAT_MD; f++) {
		struct rg_style st = style((enum rg_format)f, 0);

		assert_int_equal(rg_report_run(&s, a, &st), 0);
		if (f == RG_FORMAT_JSON) {
			j = parse(rg_str_text(&s));
			assert_int_equal(json_array_size(json_object_get(j, "ops")), 400);
			json_decref(j);
		}
		assert_fits(f == RG_FORMAT_JSON ? "" : rg_str_text(&s), 0, false);
		rg_str_free(&s);
	}
	make_free(a);
}

/* A small reader of RFC 4180, to hold the writer against something else. */
static int csv_fields(const char **p)
{
	int n = 1;

	while (**p && **p != '\n') {
		if (**p == '"') {
			for ((*p)++; **p && !(**p == '"' && (*p)[1] != '"'); (*p)++)
				*p += **p == '"';
		} else if (**p == ',') {
			n++;
		}
		(*p)++;
	}
	if (**p)
		(*p)++;
	return n;
}

static void test_csv(void **state)
{
	struct rg_analysis *a = make_hostile(100);
	struct rg_style st = style(RG_FORMAT_CSV, 0);
	struct rg_str s = { 0 };
	const char *p;
	int rows = 0, columns;

	assert_int_equal(rg_report_run(&s, a, &st), 0);
	p = rg_str_text(&s);
	columns = csv_fields(&p);
	assert_int_equal(columns, 19);
	for (; *p; rows++)
		assert_int_equal(csv_fields(&p), columns);
	assert_int_equal(rows, 100);
	rg_str_free(&s);
	make_free(a);
}

static void test_top(void **state)
{
	struct rg_analysis *a = make_plausible();
	struct rg_style st = style(RG_FORMAT_TABLE, 100);
	struct rg_str s = { 0 };

	st.top = 2;
	assert_int_equal(rg_report_run(&s, a, &st), 0);
	assert_non_null(strstr(rg_str_text(&s), "(22 more operators, 80.4 % of the time)"));
	assert_null(strstr(rg_str_text(&s), "pool1 "));
	rg_str_free(&s);
	make_free(a);
}

static void test_colour(void **state)
{
	struct rg_analysis *a = make_plausible();
	struct rg_style st = style(RG_FORMAT_TABLE, 80);
	struct rg_str plain = { 0 }, coloured = { 0 };

	assert_int_equal(rg_report_run(&plain, a, &st), 0);
	assert_null(strstr(rg_str_text(&plain), "\033"));
	st.colour = true;
	assert_int_equal(rg_report_run(&coloured, a, &st), 0);
	assert_non_null(strstr(rg_str_text(&coloured), "\033[1mmodel\033[0m"));
	rg_str_free(&coloured);
	st.format = RG_FORMAT_MD;
	assert_int_equal(rg_report_run(&coloured, a, &st), 0);
	assert_null(strstr(rg_str_text(&coloured), "\033"));
	rg_str_free(&coloured);
	rg_str_free(&plain);
	make_free(a);
}

static void test_runs(void **state)
{
	const struct rg_run runs[] = {
		{.id = 2,
		 .tag = "a|b",
		 .model = "x.onnx",
		 .model_name = "x",
		 .status = RG_RUN_KILLED,
		 .p50_ns = NAN,
		 .started_unix_ns = 1767225600000000000,
		 .threads = 2},
		{.id = 1,
		 .tag = "",
		 .model = "builtin:mlp",
		 .model_name = "mlp",
		 .status = RG_RUN_COMPLETE,
		 .p50_ns = 1.5e6,
		 .started_unix_ns = 1767225600000000000,
		 .threads = 1,
		 .n_iterations = 40},
	};
	struct rg_style st = style(RG_FORMAT_TABLE, 80);
	struct rg_str s = { 0 };
	json_t *j, *list;

	assert_int_equal(rg_report_runs(&s, runs, 2, &st), 0);
	assert_golden("runs-80.golden", rg_str_text(&s));
	rg_str_free(&s);
	st.format = RG_FORMAT_JSON;
	assert_int_equal(rg_report_runs(&s, runs, 2, &st), 0);
	j = parse(rg_str_text(&s));
	list = json_object_get(j, "runs");
	assert_int_equal(json_array_size(list), 2);
	assert_json_null(json_array_get(list, 0), "p50_ns");
	assert_json_null(json_array_get(list, 1), "tag");
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "status")), "killed");
	json_decref(j);
	rg_str_free(&s);
}

static void test_path(void **state)
{
	struct rg_analysis *a = make_plausible();
	struct rg_segment segments[] = {
		{RG_SEG_GAP, -1, 1000, 1002},           {RG_SEG_STEP, 0, 1002, 2411000},
		{RG_SEG_RESOURCE, 4, 2411000, 3000000}, {RG_SEG_GAP, -1, 3000000, 3400000},
		{RG_SEG_STEP, 7, 3400000, 5000000},
	};
	int64_t slack[24] = { 0, 5, 0, 0, 120000 };
	int data_path[] = { 0, 4, 7 };
	struct rg_path p = {.iteration = 3,
				.wall_ns = 4999000,
				.n_segments = 5,
				.segments = segments,
				.data_path_ns = 4600000,
				.n_data_path = 3,
				.data_path = data_path,
				.slack_ns = slack,
				.parallelism = 1.25};
	struct rg_style st = style(RG_FORMAT_TABLE, 80);
	struct rg_str s = { 0 };
	json_int_t sum = 0;
	json_t *j, *list;

	assert_int_equal(rg_report_path(&s, a, &p, &st), 0);
	assert_fits(rg_str_text(&s), 80, false);
	assert_golden("path-80.golden", rg_str_text(&s));
	rg_str_free(&s);
	st.format = RG_FORMAT_JSON;
	assert_int_equal(rg_report_path(&s, a, &p, &st), 0);
	j = parse(rg_str_text(&s));
	list = json_object_get(j, "segments");
	assert_int_equal(json_array_size(list), 5);
	for (size_t i = 0; i < json_array_size(list); i++)
		sum += json_integer_value(json_object_get(json_array_get(list, i), "time_ns"));
	assert_int_equal(sum, json_integer_value(json_object_get(j, "wall_ns")));
	assert_json_null(json_array_get(list, 0), "step");
	json_decref(j);
	rg_str_free(&s);
	make_free(a);
}

static void test_whatif(void **state)
{
	struct rg_analysis *a = make_plausible();
	struct rg_whatif w = {.n_steps = 12,
				  .share = 0.61,
				  .speedup = INFINITY,
				  .before_ns = 21e6,
				  .after_ns = 9e6,
				  .after_low_ns = 8.9e6,
				  .after_high_ns = 9.2e6,
				  .gain = 2.33,
				  .amdahl_gain = 2.56,
				  .limit_gain = 2.56,
				  .n_iterations = 100};
	struct rg_style st = style(RG_FORMAT_TABLE, 80);
	struct rg_str s = { 0 };
	json_t *j;

	assert_int_equal(rg_report_whatif(&s, a, "Conv", &w, &st), 0);
	assert_golden("whatif-80.golden", rg_str_text(&s));
	rg_str_free(&s);
	st.format = RG_FORMAT_JSON;
	assert_int_equal(rg_report_whatif(&s, a, "Conv", &w, &st), 0);
	j = parse(rg_str_text(&s));
	assert_json_null(j, "speedup"); /* JSON has no infinity: `removed` says it */
	assert_true(json_is_true(json_object_get(j, "removed")));
	json_decref(j);
	rg_str_free(&s);
	st.format = RG_FORMAT_CSV;
	assert_int_equal(rg_report_whatif(&s, a, "Conv", &w, &st), -EINVAL);
	rg_str_free(&s);
	make_free(a);
}

static void fill_checklist(struct rg_checklist *c)
{
	memset(c, 0, sizeof(*c));
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++) {
		struct rg_answer *q = &c->answers[i];

		q->id = "model.size";
		q->question = "parameters and FLOPs of one forward pass?";
		q->verdict = (enum rg_verdict)(i % 4);
		q->answer =
			i % 4 == RG_VERDICT_UNKNOWN ? "not known" : "25.6 M parameters, 8.2 GFLOP at batch 1";
		q->evidence = "ridge report 12";
		q->missing = i % 4 == RG_VERDICT_UNKNOWN ? "an energy register: ridge doctor says why" : NULL;
		q->n_figures = 3;
		q->figures[0] = (struct rg_figure){ "params", 25557032, NULL, "", RG_PROV_MODELLED };
		q->figures[1] = (struct rg_figure){ "energy", NAN, NULL, "joules", RG_PROV_UNAVAILABLE };
		q->figures[2] = (struct rg_figure){ "largest", NAN, "conv1 'x'", "", RG_PROV_MEASURED };
	}
	for (int i = 0; i < 5; i++)
		c->dimensions[i] = (struct rg_dimension){
			"compute", RG_VERDICT_ATTENTION, "41 % of the peak", 1, 2.4, i ? "" : "a faster MaxPool"};
	c->dimensions[4].ceiling = c->dimensions[4].headroom = NAN;
	c->binding = 0;
	c->n_changes = 1;
	c->changes[0] = "a MaxPool kernel that is not the reference";
}

static void test_check(void **state)
{
	struct rg_analysis *a = make_plausible();
	struct rg_checklist c;
	struct rg_style st = style(RG_FORMAT_JSON, 80);
	struct rg_str s = { 0 };
	json_t *j, *o, *f;

	fill_checklist(&c);
	assert_int_equal(rg_report_check(&s, a, &c, &st), 0);
	j = parse(rg_str_text(&s));
	assert_int_equal(json_array_size(json_object_get(j, "answers")), 24);
	assert_int_equal(json_array_size(json_object_get(j, "dimensions")), 5);
	o = json_array_get(json_object_get(j, "answers"), 3);
	assert_string_equal(json_string_value(json_object_get(o, "verdict")), "unknown");
	f = json_array_get(json_object_get(o, "figures"), 1);
	assert_json_null(f, "value");
	assert_string_equal(json_string_value(json_object_get(f, "provenance")), "unavailable");
	assert_json_null(json_array_get(json_object_get(j, "dimensions"), 4), "headroom");
	assert_string_equal(json_string_value(json_object_get(j, "binding")), "compute");
	json_decref(j);
	rg_str_free(&s);
	st.format = RG_FORMAT_TABLE;
	assert_int_equal(rg_report_check(&s, a, &c, &st), 0);
	assert_fits(rg_str_text(&s), 80, false);
	assert_golden("check-80.golden", rg_str_text(&s));
	rg_str_free(&s);
	make_free(a);
}

static void test_ceilings(void **state)
{
	const struct rg_ceiling_row rows[] = {
		{"compute", "peak", "float32", "avx2", 1, 50e9, 49e9, 50e9, 9, "flop/s", "alone", "chains", -1,
		 RG_PROV_MEASURED},
		{"compute", "peak", "float32", "avx2", 2, 96e9, 90e9, 97e9, 9, "flop/s", "alone", "chains", -1,
		 RG_PROV_MEASURED},
		{"compute", "int8 pairs", "int8", "avx2", 2, 190e9, 180e9, 190e9, 9, "op/s", "alone", "vpmaddubsw", -1,
		 RG_PROV_MEASURED},
		{"bandwidth", "DRAM", "float32", "avx2", 2, 12e9, 11e9, 12e9, 5, "byte/s", "alone", "reads",
		 1 << 29, RG_PROV_MEASURED},
	};
	const struct rg_fact facts[] = {
		{ "machine.cpu", 0, "Example", -1, NAN, "", RG_PROV_DECLARED, "" },
		{ "machine.quota_cpus", 3, "no quota is set", -1, NAN, "", RG_PROV_UNAVAILABLE, "" },
	};
	struct rg_style st = style(RG_FORMAT_JSON, 80);
	struct rg_str s = { 0 };
	json_t *j;

	assert_int_equal(rg_report_ceilings(&s, facts, 2, rows, 4, &st), 0);
	j = parse(rg_str_text(&s));
	assert_true(number(j, "ridge_intensity") == 8); /* 96 over 12: not 50, and not the 190 of int8 */
	assert_json_null(json_array_get(json_object_get(j, "ceilings"), 0), "working_set_bytes");
	assert_json_null(json_array_get(json_object_get(j, "facts"), 1), "value");
	json_decref(j);
	rg_str_free(&s);
	st.format = RG_FORMAT_TABLE;
	assert_int_equal(rg_report_ceilings(&s, facts, 2, rows, 4, &st), 0);
	assert_fits(rg_str_text(&s), 80, false);
	assert_golden("ceilings-80.golden", rg_str_text(&s));
	rg_str_free(&s);
}

/* Each writer with each allocation failing: -ENOMEM or a whole result, no leak, no crash. */
static void test_out_of_memory(void **state)
{
	struct rg_analysis *a = make_hostile(20);
	int failures = 0;

	for (int f = RG_FORMAT_TABLE; f <= RG_FORMAT_MD; f++) {
		for (uint64_t n = 1; n < 20000; n++) {
			struct rg_style st = style((enum rg_format)f, 100);
			struct rg_str s = { 0 };
			bool failed;
			int rc;

			rg_alloc_fail_at(n);
			rc = rg_report_run(&s, a, &st);
			failed = rg_alloc_did_fail();
			rg_alloc_fail_at(0);
			rg_str_free(&s);
			if (!failed) {
				assert_int_equal(rc, 0);
				break;
			}
			failures++;
			/* JSON may repair a string with what memory there is. */
			if (f != RG_FORMAT_JSON)
				assert_int_equal(rc, -ENOMEM);
			else
				assert_true(rc == 0 || rc == -ENOMEM);
		}
	}
	assert_true(failures > 300);
	make_free(a);
}

/* Four steps, five buffers, a search that found nothing. */
static void make_memory(struct rg_memory *m)
{
	static const char *steps[] = { "conv1", "relu1", "pool|1", "\x1b[31m\xe6\xb7\xb1" },
			  *types[] = { "Conv", "Relu", "MaxPool", "Gemm" };
	static struct rg_memory_buffer buffers[] = {
		{ "conv1_out", "Conv", "float32", "1x64x56x56", false, 0, 1, 802816, 0 },
		{ "relu1_out", "Relu", "float32", "1x64x56x56", false, 1, 2, 802816, 802816 },
		{ "a_pooled_map_with_quite_a_long_name_of_its_own_that_goes_on_for_ever", "MaxPool", "float32",
		  "1x64x28x28", false, 2, 3, 200704, 0 },
		{ "y", "Gemm", "float32", "", false, 3, 3, 64, 200704 },
		{ "conv1", "Conv", "", "", true, 0, 0, 1605632, 802816 },
	};

	*m = (struct rg_memory){ .planner = "ridge", .made_by = "greedy-size", .align_bytes = 64, .n_steps = 4,
				 .n_dynamic = 1, .step_names = steps, .step_types = types, .n_buffers = 5,
				 .buffers = buffers, .height_bytes = 2408448, .bound_bytes = 2408448, .n_tries = 3,
				 .tries = { { "naive", 3412032, 800 }, { "greedy-size", 2408448, 1500 },
					    { "search", -1, 25000000 } },
				 .peak_step = 0, .capacity_bytes = -1, .spill_step = -1 };
}

static void test_memory(void **state)
{
	struct rg_style st = style(RG_FORMAT_TABLE, 80);
	struct rg_str s = { 0 };
	struct rg_memory m;
	json_t *j, *o;

	make_memory(&m);
	assert_int_equal(rg_report_memory(&s, &m, "x.onnx", &st), 0);
	assert_fits(rg_str_text(&s), 80, false);
	assert_golden("memory-80.golden", rg_str_text(&s));
	rg_str_free(&s);
	m.capacity_bytes = 1 << 20;
	m.spill_step = 0;
	m.spill_bytes = 2408448 - (1 << 20);
	m.planner = "tflm";
	m.graph_order_bound_bytes = 3000000;
	m.reordered = true;
	st = style(RG_FORMAT_MD, 0);
	st.top = 1;
	assert_int_equal(rg_report_memory(&s, &m, "x.onnx", &st), 0);
	assert_golden("memory-md.golden", rg_str_text(&s));
	rg_str_free(&s);

	st = style(RG_FORMAT_JSON, 0);
	assert_int_equal(rg_report_memory(&s, &m, "x.onnx", &st), 0);
	j = parse(rg_str_text(&s));
	assert_int_equal(number(j, "arena_bytes"), 2408448);
	assert_int_equal(number(j, "dynamic_steps"), 1);
	assert_string_equal(json_string_value(json_object_get(j, "order")), "memory");
	assert_int_equal(number(j, "graph_order_lower_bound_bytes"), 3000000);
	assert_int_equal(json_array_size(json_object_get(j, "buffers")), 5);
	o = json_array_get(json_object_get(j, "strategies"), 2);
	assert_json_null(o, "arena_bytes");
	assert_json_null(o, "ratio");
	assert_int_equal(number(o, "time_ns"), 25000000);
	o = json_object_get(j, "peak");
	assert_string_equal(json_string_value(json_object_get(o, "name")), "conv1");
	assert_int_equal(json_array_size(json_object_get(o, "alive")), 2);
	o = json_array_get(json_object_get(o, "alive"), 1);
	assert_string_equal(json_string_value(json_object_get(o, "kind")), "scratch");
	assert_json_null(o, "shape");
	o = json_object_get(j, "capacity");
	assert_true(json_is_false(json_object_get(o, "fits")));
	assert_int_equal(number(json_object_get(o, "first_spill"), "over_bytes"), m.spill_bytes);
	json_decref(j);
	rg_str_free(&s);
	m.capacity_bytes = m.peak_step = m.spill_step = -1;
	m.n_buffers = 0;
	assert_int_equal(rg_report_memory(&s, &m, "x.onnx", &st), 0);
	j = parse(rg_str_text(&s));
	assert_json_null(j, "peak");
	assert_json_null(j, "capacity");
	json_decref(j);
	rg_str_free(&s);

	make_memory(&m);
	st = style(RG_FORMAT_CSV, 0);
	assert_int_equal(rg_report_memory(&s, &m, "x.onnx", &st), 0);
	assert_string_equal(rg_str_text(&s), "id,lower,upper,size,alignment,offset\n0,0,2,802816,64,0\n"
			    "1,1,3,802816,64,802816\n2,2,4,200704,64,0\n3,3,4,64,64,200704\n"
			    "4,0,1,1605632,64,802816\n");
	rg_str_free(&s);
}

static void test_memory_without_memory(void **state)
{
	struct rg_memory m;
	int failures = 0;

	make_memory(&m);
	for (int f = RG_FORMAT_TABLE; f <= RG_FORMAT_MD; f++) {
		for (uint64_t n = 1; n < 20000; n++) {
			struct rg_style st = style((enum rg_format)f, 100);
			struct rg_str s = { 0 };
			bool failed;
			int rc;

			rg_alloc_fail_at(n);
			rc = rg_report_memory(&s, &m, "x.onnx", &st);
			failed = rg_alloc_did_fail();
			rg_alloc_fail_at(0);
			rg_str_free(&s);
			if (!failed) {
				assert_int_equal(rc, 0);
				break;
			}
			failures++;
			if (f != RG_FORMAT_JSON)
				assert_int_equal(rc, -ENOMEM);
			else
				assert_true(rc == 0 || rc == -ENOMEM);
		}
	}
	assert_true(failures > 50);
}

static void test_text(void **state)
{
	struct rg_str s = { 0 };
	char out[64], *clean;

	rg_text_shorten(&s, "abcdefghij", 10);
	assert_string_equal(rg_str_text(&s), "abcdefghij");
	rg_str_free(&s);
	rg_text_shorten(&s, "abcdefghij", 6);
	assert_string_equal(rg_str_text(&s), "ab\xe2\x80\xa6hij");
	assert_int_equal(rg_text_width(rg_str_text(&s)), 6);
	rg_str_free(&s);
	/* Wide characters never push a column. */
	rg_text_shorten(&s, "\xe6\xb7\xb1\xe5\xb1\x82\xe7\xbd\x91\xe7\xbb\x9c", 5);
	assert_true(rg_text_width(rg_str_text(&s)) <= 5);
	rg_str_free(&s);
	clean = rg_text_clean("a\033[31mb\x7f\xc3(\xed\xa0\x80\xf4\x90\x80\x80\xc2\x9b");
	assert_non_null(clean);
	assert_string_equal(clean, "a?[31mb?" "?(???" "?????");
	rg_free(clean);
	assert_string_equal(rg_num3(out, NAN), "-");
	assert_string_equal(rg_num3(out, 0), "0");
	assert_string_equal(rg_num3(out, 0.0832), "0.083");
	assert_string_equal(rg_num3(out, 9.996), "10.0");
	assert_string_equal(rg_num3(out, 123456), "123456");
	assert_string_equal(rg_num_si(out, 241e9, "FLOP/s"), "241 GFLOP/s");
	assert_string_equal(rg_num_si(out, 999.7e6, "B/s"), "1.00 GB/s");
	assert_string_equal(rg_num_unit(out, NAN, "bytes"), "-");
	assert_string_equal(rg_num_unit(out, 0.123, "fraction"), "12.3 %");
	assert_string_equal(rg_num_unit(out, 25557032, ""), "25,557,032");
	assert_string_equal(rg_num_times(out, NAN), "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),        cmocka_unit_test(test_compiler),
		cmocka_unit_test(test_report_json),
		cmocka_unit_test(test_nothing_known), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_csv),           cmocka_unit_test(test_top),
		cmocka_unit_test(test_colour),        cmocka_unit_test(test_runs),
		cmocka_unit_test(test_path),          cmocka_unit_test(test_whatif),
		cmocka_unit_test(test_check),         cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_text),
		cmocka_unit_test(test_memory),        cmocka_unit_test(test_memory_without_memory),
	};

	return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}
