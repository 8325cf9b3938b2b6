/*
 * What is made of the rows of a ladder: sentences that turn round when the figures do, the
 * table against golden text, JSON with null for what is missing, the plot, and every
 * allocation failing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "reports/ladder.h"
#include "reports/table.h"

#define RUNGS 10
static const char *const names[RUNGS] = { "naive",	  "ikj",       "tiled",	       "simd",	   "ridge", "openblas",
					  "int8-scalar", "int8-simd", "int8-blocked", "int8-ridge" };
enum { NAIVE, IKJ, TILED, SIMD, RIDGE, OPENBLAS, SCALAR8, SIMD8, BLOCKED8, RIDGE8 };

static struct rg_ladder_row row(int64_t size, int rung, double ns)
{
	bool int8 = rung >= SCALAR8;
	double gops = 2 * (double)(size * size * size) / ns;

	return (struct rg_ladder_row){ .m = size, .k = size, .n = size, .rung = names[rung], .int8 = int8,
				       .kernel = rung == RIDGE ? "tiled-avx2" : rung == RIDGE8 ? "byte-avx2" : "avx2",
				       .threads = 2, .rounds = 9, .calls = 3, .ns = ns, .ns_low = ns * 0.9,
				       .ns_high = ns * 1.2, .gops = gops, .roof = int8 ? "int8 pairs" : "peak",
				       .roof_fraction = gops / (int8 ? 200 : 100), .memory_ns = ns / 10,
				       .max_error = int8 ? 0 : 3e-5, .relative_error = int8 ? 0 : 1e-6,
				       .wrong = int8 ? 0 : -1, .pairs_share = 0.95, .quads_share = 0.7, .l1_misses = NAN,
				       .ll_misses = NAN, .misses_provenance = RG_PROV_UNAVAILABLE,
				       .misses_reason = "no counter opens; --misses simulates them", .reason = "" };
}

struct ladder {
	struct rg_ladder_report report;
	struct rg_ladder_row rows[2 * RUNGS];
	struct rg_ceiling_row ceilings[3];
};

/* At 64^3 int8 is no faster than float32, at 1024^3 twice as fast. */
static void make(struct ladder *l)
{
	static const double small[RUNGS] = { 300e3, 100e3, 110e3, 9e3, 7e3, 8e3, 150e3, 20e3, 9e3, 7e3 };
	static const double large[RUNGS] = { 4e9, 800e6, 700e6, 40e6, 24e6, 25e6, 900e6, 60e6, 20e6, 12e6 };

	memset(l, 0, sizeof(*l));
	for (int i = 0; i < RUNGS; i++) {
		l->rows[i] = row(64, i, small[i]);
		l->rows[RUNGS + i] = row(1024, i, large[i]);
	}
	l->rows[RUNGS].rounds = 1;
	l->rows[RUNGS].ns_low = l->rows[RUNGS].ns_high = NAN;
	l->ceilings[0] = (struct rg_ceiling_row){ "compute", "peak", "float32", "avx2", 2, 100e9, 99e9, 100e9, 9, "flop/s",
						  "alone", "chains", -1, RG_PROV_MEASURED };
	l->ceilings[1] = (struct rg_ceiling_row){ "compute", "int8 pairs", "int8", "avx2", 2, 200e9, 199e9, 200e9, 9, "op/s",
						  "alone", "vpmaddubsw", -1, RG_PROV_MEASURED };
	l->ceilings[2] = (struct rg_ceiling_row){ "bandwidth", "DRAM", "float32", "avx2", 2, 10e9, 9e9, 10e9, 9, "byte/s",
						  "alone", "reads", 1 << 26, RG_PROV_MEASURED };
	l->report = (struct rg_ladder_report){ .threads = 2, .pinned = true, .isa = "avx2", .weights = "normal",
					       .simulator = "", .n_rows = 2 * RUNGS, .rows = l->rows, .n_ceilings = 3,
					       .ceilings = l->ceilings };
}

static char *said(const struct ladder *l)
{
	struct rg_str s = { 0 };

	rg_ladder_say(&s, l->rows, l->report.n_rows);
	assert_false(s.failed);
	return s.text ? s.text : rg_strdup("");
}

static void has(const struct ladder *l, const char *words)
{
	char *text = said(l);

	if (!strstr(text, words))
		fail_msg("'%s' is not said:\n%s", words, text);
	rg_free(text);
}

static void lacks(const struct ladder *l, const char *words)
{
	char *text = said(l);

	if (strstr(text, words))
		fail_msg("'%s' is said:\n%s", words, text);
	rg_free(text);
}

static void test_int8_pays(void **state)
{
	struct ladder l;

	make(&l);
	has(&l, "int8 pays, over our float32: 1024x1024x1024 2.00x.");
	has(&l, "int8 does not pay: 64x64x64 1.00x (a call takes 7.00 us, so what surrounds the products counts).");
	/* the other way round */
	l.rows[RIDGE8].ns = 3e3;
	l.rows[RUNGS + RIDGE8].ns = 30e6;
	has(&l, "int8 pays, over our float32: 64x64x64 2.33x.");
	has(&l, "int8 does not pay: 1024x1024x1024 0.80x");
	/* neither and both */
	l.rows[RIDGE8].ns = 30e3;
	lacks(&l, "int8 pays");
	l.rows[RIDGE8].ns = 3e3;
	l.rows[RUNGS + RIDGE8].ns = 12e6;
	lacks(&l, "does not pay");
	/* without one of the two there is nothing to compare */
	l.rows[RUNGS + RIDGE8].ns = NAN;
	lacks(&l, "1024x1024x1024 2.00x");
}

static void test_why_not(void **state)
{
	struct ladder l;
	struct rg_ladder_row *r = &l.rows[RUNGS + RIDGE8];

	make(&l);
	r->ns = 30e6;
	r->roof_fraction = 0.4;
	has(&l, "0.80x (float32 is nearer to its roof)");
	r->roof_fraction = 0.02;
	has(&l, "0.80x (the kernel, byte-avx2, reaches 2.0 % of the int8 roof)");
	r->memory_ns = 20e6;
	has(&l, "0.80x (memory sets the pace, 20.0 ms of its 30.0 ms)");
}

static void test_steps(void **state)
{
	struct ladder l;

	make(&l);
	has(&l, "float32 at 1024x1024x1024, each rung over the one before it, from naive on: ikj 5.00x, tiled 1.14x, "
		"simd 17.5x, ridge 1.67x; 167x in all, most of it by simd.");
	has(&l, "int8 at 1024x1024x1024, each rung over the one before it, from int8-scalar on: int8-simd 15.0x, "
		"int8-blocked 3.00x, int8-ridge 1.67x; 75.0x in all, most of it by int8-simd.");
	l.rows[RUNGS + IKJ].ns = 80e6;
	has(&l, "most of it by ikj");
	/* a rung that was not run is no step, and the next one is held against the one before */
	l.rows[RUNGS + TILED].ns = NAN;
	has(&l, "from naive on: ikj 50.0x, simd 2.00x, ridge");
	lacks(&l, "tiled");
	/* OpenBLAS is no step, but is compared */
	has(&l, "Our float32 is 1.04x as fast as OpenBLAS there.");
	l.rows[RUNGS + OPENBLAS].ns = 12e6;
	has(&l, "Our float32 is slower than OpenBLAS there: 0.50x of its rate.");
	/* a loop of the exercise that beats us */
	lacks(&l, "as fast as our int8");
	l.rows[RUNGS + BLOCKED8].ns = 11.9e6;
	lacks(&l, "as fast as our int8");
	l.rows[RUNGS + BLOCKED8].ns = 6e6;
	has(&l, "int8-blocked is 2.00x as fast as our int8 (byte-avx2) at 1024x1024x1024.");
}

static void test_roof_and_errors(void **state)
{
	struct ladder l;

	make(&l);
	has(&l, "Our float32 comes to 89.5 % of its roof (float32 peak) at best, at 1024x1024x1024.");
	has(&l, "Our int8 comes to 89.5 % of its roof (int8 pairs) at best, at 1024x1024x1024.");
	has(&l, "Every int8 rung gives the int64 sums, bit for bit.");
	has(&l, "float32 stays within 1e-06 of the sums in double");
	l.rows[RUNGS + RIDGE8].roof_fraction = 1.1;
	has(&l, "more than all of it");
	l.rows[SIMD8].wrong = 12;
	l.rows[SIMD8].max_error = 300;
	has(&l, "int8-simd is wrong at 64x64x64: 12 of its results are not the int64 sum, by up to 300.");
	lacks(&l, "bit for bit");
	l.rows[TILED].relative_error = 0.5;
	has(&l, "within 0.5 of the sums in double, over the largest result (tiled at 64x64x64)");
}

static void test_misses(void **state)
{
	struct ladder l;

	make(&l);
	lacks(&l, "misses");
	for (int i = 0; i < RUNGS; i++) {
		l.rows[i].l1_misses = 262144.0 * (i + 1) / 1000;
		l.rows[i].ll_misses = 0;
		l.rows[i].misses_provenance = RG_PROV_SIMULATED;
		l.rows[i].misses_reason = "";
	}
	has(&l, "L1 misses in a thousand multiply-adds (simulated) at 64x64x64: naive 1.00, ikj 2.00,");
	for (int i = 0; i < RUNGS; i++)
		l.rows[i].misses_provenance = RG_PROV_MEASURED;
	has(&l, "(measured)");
}

static void test_busy(void **state)
{
	struct ladder l;

	make(&l);
	lacks(&l, "busy"); /* 1.11 times the fastest */
	for (int i = 0; i < RUNGS - 1; i++)
		l.rows[i].ns_low = l.rows[i].ns / 2;
	lacks(&l, "busy"); /* 9 of the 19 rungs that have a spread */
	l.rows[RUNGS + 3].ns_low = 1;
	has(&l, "The machine was busy: the median of half the rungs is 2.00x their fastest round or more.");
	for (int i = 0; i < 2 * RUNGS; i++)
		l.rows[i].rounds = 2; /* of two rounds one is the fastest */
	lacks(&l, "busy");
}

static void test_nothing(void **state)
{
	struct ladder l;
	char *text;

	make(&l);
	for (int i = 0; i < 2 * RUNGS; i++)
		l.rows[i].ns = NAN;
	text = said(&l);
	assert_string_equal(text, "");
	rg_free(text);
}

/* ---- writers ---- */

static void assert_golden(const char *name, const char *text)
{
	static char want[65536];
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", getenv("RIDGE_GOLDEN_DIR"), name);
	f = fopen(path, getenv("RIDGE_UPDATE_GOLDEN") ? "w" : "r");
	assert_non_null(f);
	if (getenv("RIDGE_UPDATE_GOLDEN")) {
		assert_true(fputs(text, f) >= 0);
	} else {
		want[fread(want, 1, sizeof(want) - 1, f)] = '\0';
		assert_string_equal(text, want);
	}
	assert_int_equal(fclose(f), 0);
}

static void drop_openblas(struct ladder *l)
{
	struct rg_ladder_row *r = &l->rows[RUNGS + OPENBLAS];

	*r = (struct rg_ladder_row){ 1024, 1024, 1024, .rung = "openblas", .kernel = "", .threads = 2, .calls = -1,
				     .ns = NAN, .ns_low = NAN, .ns_high = NAN, .gops = NAN, .roof_fraction = NAN,
				     .memory_ns = NAN, .max_error = NAN, .relative_error = NAN, .wrong = -1,
				     .pairs_share = NAN, .quads_share = NAN, .l1_misses = NAN, .ll_misses = NAN,
				     .misses_provenance = RG_PROV_UNAVAILABLE, .misses_reason = "", .reason = "no libopenblas" };
	l->rows[0].l1_misses = 1234567;
	l->rows[0].ll_misses = 0;
	l->rows[0].misses_provenance = RG_PROV_SIMULATED;
	l->rows[0].misses_reason = "";
	l->report.simulator = "L1 32.0 KiB, LL 8.00 MiB";
}

static void test_table(void **state)
{
	struct rg_style st = { .format = RG_FORMAT_TABLE, .width = 100 };
	struct rg_str s = { 0 };
	struct ladder l;

	make(&l);
	drop_openblas(&l);
	assert_int_equal(rg_report_ladder(&s, &l.report, &st), 0);
	assert_golden("ladder-100.golden", rg_str_text(&s));
	for (const char *p = rg_str_text(&s); *p; p += strcspn(p, "\n"), p += *p == '\n')
		assert_true(strcspn(p, "\n") <= 100);
	rg_str_free(&s);
	st.format = RG_FORMAT_MD;
	assert_int_equal(rg_report_ladder(&s, &l.report, &st), 0);
	assert_non_null(strstr(rg_str_text(&s), "| 1024x1024x1024 | openblas |"));
	rg_str_free(&s);
	st.format = RG_FORMAT_CSV;
	assert_int_equal(rg_report_ladder(&s, &l.report, &st), 0);
	assert_non_null(strstr(rg_str_text(&s), "shape,rung,dtype,kernel,threads,gops,ns,"));
	assert_non_null(strstr(rg_str_text(&s), "1024x1024x1024,openblas,float32,,2,,,,,0,,,,,,,,unavailable"));
	rg_str_free(&s);
}

static json_t *get(const json_t *rows, int i, const char *key)
{
	json_t *v = json_object_get(json_array_get(rows, (size_t)i), key);

	if (!v)
		fail_msg("row %d has no %s", i, key);
	return v;
}

static void test_json(void **state)
{
	static const char *const numbers[] = { "threads", "gops", "ns", "roof_fraction", "max_error" };
	static const char *const missing[] = { "gops",	    "ns",	 "ns_low",    "roof_fraction", "max_error", "wrong",
					       "l1_misses", "ll_misses", "kernel", "calls", "memory_ns" };
	struct rg_style st = { .format = RG_FORMAT_JSON };
	struct rg_str s = { 0 };
	struct ladder l;
	json_t *j, *rows;

	make(&l);
	drop_openblas(&l);
	assert_int_equal(rg_report_ladder(&s, &l.report, &st), 0);
	j = json_loads(rg_str_text(&s), 0, NULL);
	assert_non_null(j);
	rows = json_object_get(j, "results");
	assert_int_equal(json_array_size(rows), 2 * RUNGS);
	for (int i = 0; i < RUNGS; i++) {
		assert_string_equal(json_string_value(get(rows, i, "shape")), "64x64x64");
		assert_string_equal(json_string_value(get(rows, i, "rung")), names[i]);
		assert_string_equal(json_string_value(get(rows, i, "provenance")), "measured");
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
			assert_true(json_is_number(get(rows, i, numbers[k])));
	}
	/* a simulated zero is a zero, and what nobody counted is null */
	assert_true(json_number_value(get(rows, 0, "l1_misses")) == 1234567);
	assert_true(json_is_number(get(rows, 0, "ll_misses")) && json_number_value(get(rows, 0, "ll_misses")) == 0);
	assert_string_equal(json_string_value(get(rows, 0, "misses_provenance")), "simulated");
	assert_true(json_is_null(get(rows, 1, "l1_misses")) && json_is_null(get(rows, 1, "ll_misses")));
	assert_string_equal(json_string_value(get(rows, 1, "misses_provenance")), "unavailable");
	assert_non_null(json_string_value(get(rows, 1, "misses_reason")));
	assert_true(json_is_null(get(rows, RUNGS, "ns_low"))); /* one round has no spread */
	for (size_t k = 0; k < sizeof(missing) / sizeof(missing[0]); k++)
		assert_true(json_is_null(get(rows, RUNGS + OPENBLAS, missing[k])));
	assert_string_equal(json_string_value(get(rows, RUNGS + OPENBLAS, "provenance")), "unavailable");
	assert_string_equal(json_string_value(get(rows, RUNGS + OPENBLAS, "reason")), "no libopenblas");
	assert_true(json_number_value(get(rows, RIDGE8, "max_error")) == 0);
	assert_true(json_array_size(json_object_get(j, "text")) >= 6);
	assert_int_equal(json_array_size(json_object_get(j, "ceilings")), 3);
	json_decref(j);
	rg_str_free(&s);
}

static void test_plot(void **state)
{
	struct rg_plot_options o = { .output = "x.svg", .width = 1200, .height = 600 };
	struct rg_error err = { 0 };
	struct rg_str s = { 0 };
	struct ladder l;

	make(&l);
	drop_openblas(&l);
	assert_int_equal(rg_plot_ladder_script(&s, &l.report, &o, &err), 0);
	assert_non_null(strstr(rg_str_text(&s), "'64^3' 0, '1024^3' 1"));
	assert_non_null(strstr(rg_str_text(&s), "'float32 peak 100'"));
	assert_non_null(strstr(rg_str_text(&s), "'int8 pairs 200'"));
	for (int i = 0; i < RUNGS; i++) {
		char block[32];

		snprintf(block, sizeof(block), "$rung%d << EOD", i);
		assert_non_null(strstr(rg_str_text(&s), block));
	}
	rg_str_free(&s);
	/* a rung without a figure has no column and no entry in the key */
	l.rows[OPENBLAS].gops = NAN;
	assert_int_equal(rg_plot_ladder_script(&s, &l.report, &o, &err), 0);
	assert_null(strstr(rg_str_text(&s), "openblas"));
	rg_str_free(&s);
	o.output = "-";
	assert_int_equal(rg_plot_ladder_script(&s, &l.report, &o, &err), 0);
	rg_str_free(&s);
	for (int i = 0; i < 2 * RUNGS; i++)
		l.rows[i].gops = NAN;
	assert_int_equal(rg_plot_ladder_script(&s, &l.report, &o, &err), -ENODATA);
	rg_str_free(&s);
}

static void test_out_of_memory(void **state)
{
	struct rg_plot_options o = { .output = "x.png" };
	struct ladder l;
	int failures = 0;

	make(&l);
	drop_openblas(&l);
	for (int what = 0; what < 5; what++) {
		bool failed = true;

		for (uint64_t n = 1; failed && n < 20000; n++) {
			struct rg_style st = { .format = (enum rg_format)what, .width = 100 };
			struct rg_error err = { 0 };
			struct rg_str s = { 0 };
			int rc;

			rg_alloc_fail_at(n);
			rc = what == 4 ? rg_plot_ladder_script(&s, &l.report, &o, &err) : rg_report_ladder(&s, &l.report, &st);
			failed = rg_alloc_did_fail();
			rg_alloc_fail_at(0);
			rg_str_free(&s);
			assert_true(failed ? rc == -ENOMEM || (what == RG_FORMAT_JSON && rc == 0) : rc == 0);
			failures += failed;
		}
		assert_false(failed);
	}
	assert_true(failures > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_int8_pays), cmocka_unit_test(test_why_not),
		cmocka_unit_test(test_steps),	  cmocka_unit_test(test_roof_and_errors),
		cmocka_unit_test(test_misses),	  cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_table),	  cmocka_unit_test(test_json),
		cmocka_unit_test(test_plot),	  cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests_name("ladder", tests, NULL, NULL);
}
