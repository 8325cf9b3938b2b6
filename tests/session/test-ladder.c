/*
 * The ladder: weights, shapes, errors against the oracle, the simulator's geometry and file,
 * a measurement with every rung, and allocations that fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/blas/blas.h"
#include "session/ladder-run.h"
#include "session/ladder-sim.h"
#include "session/ladder.h"

static struct rg_session_options options(int threads)
{
	struct rg_session_options o;

	rg_session_defaults(&o);
	o.threads = threads;
	return o;
}

/* ---- weights ---- */

static void test_share(void **state)
{
	/* columns: 100 and 28 of one sign fit, 100 and 29 do not; signs apart fit always */
	const int8_t b[] = { 100, 100, 127, -128, 28, 29, -128, 0, 0, -100, 0, -1, 0, 20, 0, -127 };

	assert_true(rg_ladder_weights_share(b, 2, 4, 2) == 0.75);
	assert_true(rg_ladder_weights_share(b, 4, 4, 2) == 7.0 / 8);
	/* over four: column 1 sums to 149 up, column 3 to 256 down */
	assert_true(rg_ladder_weights_share(b, 4, 4, 4) == 0.5);
	/* an odd row stands alone */
	assert_true(rg_ladder_weights_share(b, 3, 4, 2) == 7.0 / 8);
	assert_int_equal(rg_ladder_weights_form(1, 1), RG_ROOF_QUADS);
	assert_int_equal(rg_ladder_weights_form(0.95, 0.7), RG_ROOF_PAIRS);
	assert_int_equal(rg_ladder_weights_form(0.75, 0.4), RG_ROOF_ANY);
	assert_int_equal(rg_ladder_weights_form(NAN, NAN), RG_ROOF_ANY);
}

static void test_weights(void **state)
{
	enum { K = 768, N = 64 };
	static int8_t b[K * N];
	struct rg_error err = { 0 };
	enum rg_ladder_weights w;
	double sum = 0, square = 0;
	int low = 0, high = 0;

	assert_int_equal(rg_ladder_weights_parse("uniform", &w, &err), RG_EUSAGE);
	assert_int_equal(rg_ladder_weights_parse("normal", &w, &err), 0);
	assert_int_equal(rg_ladder_weights_fill(w, 1, K, N, b, &err), 0);
	for (int j = 0; j < N; j++) {
		int most = 0;

		for (int l = 0; l < K; l++) {
			most = abs(b[l * N + j]) > most ? abs(b[l * N + j]) : most;
			sum += b[l * N + j];
			square += (double)b[l * N + j] * b[l * N + j];
		}
		assert_int_equal(most, 127); /* each column has a scale of its own */
	}
	/* about 127 over the largest of 768 normal numbers, 3.2 */
	assert_true(fabs(sum / (K * N)) < 1 && sqrt(square / (K * N)) > 33 && sqrt(square / (K * N)) < 46);
	assert_true(rg_ladder_weights_share(b, K, N, 2) > 0.93);
	assert_int_equal(rg_ladder_weights_form(rg_ladder_weights_share(b, K, N, 2), rg_ladder_weights_share(b, K, N, 4)),
			 RG_ROOF_PAIRS);
	assert_int_equal(rg_ladder_weights_parse("adversarial", &w, &err), 0);
	assert_int_equal(rg_ladder_weights_fill(w, 1, K, N, b, &err), 0);
	for (int i = 0; i < K * N; i++) {
		low += b[i] == -128;
		high += b[i] == 127;
	}
	assert_true(low > K * N / 10 && high > K * N / 10 && low + high < K * N / 2);
	assert_int_equal(rg_ladder_weights_form(rg_ladder_weights_share(b, K, N, 2), rg_ladder_weights_share(b, K, N, 4)),
			 RG_ROOF_ANY);
}

/* ---- shapes and errors ---- */

static void test_shapes(void **state)
{
	static const char *const bad[] = { "", "64", "64x64", "0x1x1", "2x2x2x2", "64x64x64,b=const", "64x64x64,ta=1",
					   "1x70000x1", "axbxc", "-1x2x3" };
	struct rg_ladder_shape s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rg_error err = { 0 };

		if (rg_ladder_shape_parse(bad[i], &s, &err) != RG_EUSAGE)
			fail_msg("'%s' is taken for a shape", bad[i]);
		assert_true(err.message[0] != '\0');
	}
	assert_int_equal(rg_ladder_shape_parse("128x768x3072", &s, &(struct rg_error){ 0 }), 0);
	assert_true(s.m == 128 && s.k == 768 && s.n == 3072);
	assert_int_equal(rg_ladder_shape_parse("1x65000x1", &s, &(struct rg_error){ 0 }), 0);
}

static void test_errors(void **state)
{
	const struct rg_ladder_shape s = { 2, 3, 5 };
	struct rg_ladder_data d;
	struct rg_error err = { 0 };
	struct rg_ladder_errors e;
	float f[10];
	int32_t q[10];

	assert_int_equal(rg_ladder_data_new(&s, RG_LADDER_NORMAL, 1, true, &d, &err), 0);
	for (int i = 0; i < 10; i++) {
		f[i] = (float)d.want[i];
		q[i] = (int32_t)d.want8[i];
	}
	e = rg_ladder_errors_of(&d, true, q);
	assert_true(e.max == 0 && e.relative == 0 && e.wrong == 0);
	q[3] += 7;
	q[9] -= 2;
	e = rg_ladder_errors_of(&d, true, q);
	assert_true(e.max == 7 && e.wrong == 2);
	e = rg_ladder_errors_of(&d, false, f);
	assert_true(e.max < 1e-6 && e.wrong == -1);
	f[2] += 0.5f;
	e = rg_ladder_errors_of(&d, false, f);
	assert_true(fabs(e.max - 0.5) < 1e-6 && e.relative > 0.05);
	f[1] = NAN; /* and stays the largest, whatever follows */
	e = rg_ladder_errors_of(&d, false, f);
	assert_true(isinf(e.max));
	rg_ladder_data_free(&d);
}

/* ---- the simulator ---- */

static void test_geometry(void **state)
{
	/* 36 MiB of 12 ways, 48 KiB of 12, what sysfs does not say, and one line too few for its ways */
	const struct rg_cache l3 = { 3, 36 << 20, 64, 12, 8 }, l1 = { 1, 48 << 10, 64, 12, 1 };
	const struct rg_cache odd = { 1, 32 << 10, 0, 0, 0 };
	struct rg_topology *t = calloc(1, sizeof(*t));
	struct rg_sim_caches caches;
	struct rg_sim_cache c;
	struct rg_error err = { 0 };

	c = rg_sim_cache_of(&l1);
	assert_true(c.size_bytes == 48 << 10 && c.ways == 12 && c.line_bytes == 64 && !c.changed);
	c = rg_sim_cache_of(&l3);
	assert_true(c.size_bytes == 24 << 20 && c.ways == 12 && c.changed); /* 32768 sets of 49152 */
	c = rg_sim_cache_of(&odd);
	assert_true(c.size_bytes == 32 << 10 && c.ways == 8 && c.line_bytes == 64 && c.changed);
	assert_non_null(t);
	assert_int_equal(rg_sim_caches_of(t, &caches, &err), -ENOENT);
	t->caches[t->n_caches++] = l1;
	assert_int_equal(rg_sim_caches_of(t, &caches, &err), -ENOENT);
	t->caches[t->n_caches++] = (struct rg_cache){ 2, 1 << 20, 64, 16, 1 };
	t->caches[t->n_caches++] = l3;
	assert_int_equal(rg_sim_caches_of(t, &caches, &err), 0);
	assert_true(caches.first.size_bytes == 48 << 10 && caches.last.size_bytes == 24 << 20);
	assert_non_null(strstr(caches.text, "(here 36.0 MiB)"));
	free(t);
}

static void test_parse(void **state)
{
	struct rg_sim_result r;
	struct rg_error err = { 0 };

	assert_int_equal(rg_sim_parse("version: 1\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\nfn=(1)\n"
				      "totals: 1000 300 100 1 20 3 1 4 5\n", &r, &err), 0);
	assert_true(r.l1_misses == 23 && r.ll_misses == 9);
	/* zeros at the end are left out */
	assert_int_equal(rg_sim_parse("events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\ntotals: 1000 300 100 0 7\n", &r,
				      &err), 0);
	assert_true(r.l1_misses == 7 && r.ll_misses == 0);
	/* no cache was simulated; nothing was collected; no such file */
	assert_int_equal(rg_sim_parse("events: Ir\ntotals: 1000\n", &r, &err), -EINVAL);
	assert_int_equal(rg_sim_parse("events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\ntotals: 0\n", &r, &err), -EINVAL);
	assert_int_equal(rg_sim_parse("", &r, &err), -EINVAL);
	assert_int_equal(rg_sim_parse("events: Ir D1mr", &r, &err), -EINVAL);
	assert_int_equal(rg_sim_parse("events: Ir D1mr\ntotals: x y\n", &r, &err), -EINVAL);
}

/* Valgrind itself: caches that hold all, and hardly anything. */
static void test_simulate(void **state)
{
	struct rg_sim_caches large = { .first = { 1 << 20, 64, 8, false }, .last = { 8 << 20, 64, 16, false } };
	struct rg_sim_caches small = { .first = { 4096, 64, 2, false }, .last = { 8 << 20, 64, 16, false } };
	struct rg_sim_job j = { .program = getenv("RIDGE"), .rung = "naive", .kernel = "scalar", .weights = "normal",
				.shape = { 64, 64, 64 }, .caches = &large };
	struct rg_sim_result warm, cold;
	struct rg_error err = { 0 };
	char *path;
	int rc;

	if (!j.program || system("valgrind --version > /dev/null 2>&1") != 0)
		skip();
	rc = rg_sim_run(&j, &warm, &err);
	if (rc == -ENOTSUP) {
		print_message("# %s\n", err.message);
		skip();
	}
	assert_int_equal(rc, 0);
	j.caches = &small;
	assert_int_equal(rg_sim_run(&j, &cold, &err), 0);
	/* what the first product left there serves the second; 4 KiB hold no column of 64 lines */
	assert_true(warm.l1_misses < 1000 && warm.ll_misses < 1000);
	assert_true(cold.l1_misses > 64 * 64 * 64);
	/* in order, one line serves 16 numbers of a row */
	j.rung = "ikj";
	assert_int_equal(rg_sim_run(&j, &warm, &err), 0);
	assert_true(warm.l1_misses > 64 * 64 * 64 / 16.0 * 0.9 && warm.l1_misses < cold.l1_misses / 4);
	/* what goes wrong in the child is said */
	j.kernel = "nothing";
	assert_true(rg_sim_run(&j, &warm, &err) < 0);
	assert_non_null(strstr(err.message, "vector instructions"));
	path = strdup(getenv("PATH"));
	setenv("PATH", "/nowhere", 1);
	assert_int_equal(rg_sim_run(&j, &warm, &err), -ENOENT);
	assert_non_null(strstr(err.message, "valgrind"));
	setenv("PATH", path, 1);
	free(path);
}

/* ---- measuring ---- */

static void check_row(const struct rg_ladder_row *v, int threads)
{
	if (*v->reason) {
		assert_true(isnan(v->ns) && isnan(v->gops) && isnan(v->max_error) && v->rounds == 0);
		return;
	}
	assert_int_equal(v->threads, threads);
	assert_int_equal(v->rounds, 3);
	assert_true(v->ns > 0 && v->ns_low <= v->ns && v->ns <= v->ns_high);
	assert_true(fabs(v->gops * v->ns - 2.0 * (double)(v->m * v->k * v->n)) < 1e-3 * (double)(v->m * v->k * v->n));
	assert_true(v->roof && v->roof_fraction > 0 && v->roof_fraction < 1.5);
	if (v->int8)
		assert_true(v->wrong == 0 && v->max_error == 0);
	else
		assert_true(v->wrong == -1 && v->relative_error < 1e-5);
	/* never a zero that nobody counted */
	assert_true(v->misses_provenance == RG_PROV_MEASURED || (isnan(v->l1_misses) && *v->misses_reason));
}

static void test_measure(void **state)
{
	const struct rg_ladder_shape shapes[] = { { 33, 65, 49 }, { 3, 1, 2 } };

	for (int w = 0; w < 2; w++) {
		struct rg_session_options so = options(w + 1);
		struct rg_ladder_options o = { .session = &so, .n_shapes = 2, .shapes = shapes,
					       .weights = (enum rg_ladder_weights)w, .rounds = 3, .quick = true };
		struct rg_ladder_report *r;
		struct rg_error err = { 0 };

		assert_int_equal(rg_ladder_measure(&o, &r, &err), 0);
		assert_int_equal(r->n_rows, 2 * RG_LADDER_RUNGS);
		for (int i = 0; i < r->n_rows; i++) {
			const struct rg_ladder_row *v = &r->rows[i];

			assert_string_equal(v->rung, rg_ladder_names[i % RG_LADDER_RUNGS].rung);
			assert_int_equal(v->m, shapes[i / RG_LADDER_RUNGS].m);
			check_row(v, w + 1);
			if (strcmp(v->rung, "openblas") == 0)
				assert_int_equal(!*v->reason, rg_blas_available());
			if (strcmp(v->rung, "ridge") == 0)
				assert_string_not_equal(v->kernel, "openblas");
		}
		/* what any weights allow is never above what proven ones do */
		assert_string_equal(r->weights, w ? "adversarial" : "normal");
		rg_ladder_report_free(r);
	}
}

static void test_choice(void **state)
{
	const struct rg_ladder_shape shape = { 8, 8, 8 };
	const char *const some[] = { "int8-scalar", "ikj" }, *const wrong[] = { "fastest" };
	struct rg_session_options so = options(1);
	struct rg_ladder_options o = { .session = &so, .n_shapes = 1, .shapes = &shape, .n_rungs = 2, .rungs = some,
				       .rounds = 3, .quick = true };
	struct rg_ladder_report *r;
	struct rg_error err = { 0 };

	assert_int_equal(rg_ladder_measure(&o, &r, &err), 0);
	assert_int_equal(r->n_rows, 2); /* in the order of the ladder */
	assert_string_equal(r->rows[0].rung, "ikj");
	assert_string_equal(r->rows[1].rung, "int8-scalar");
	rg_ladder_report_free(r);
	o.n_rungs = 1;
	o.rungs = wrong;
	assert_int_equal(rg_ladder_measure(&o, &r, &err), RG_EUSAGE);
	assert_non_null(strstr(err.hint, "int8-blocked"));
	so.threads = 1000000;
	o.n_rungs = 0;
	assert_int_equal(rg_ladder_measure(&o, &r, &err), RG_EUSAGE);
}

static void test_once(void **state)
{
	struct rg_error err = { 0 };

	assert_int_equal(rg_ladder_once("int8-scalar", "scalar", "5x6x7", "normal", &err), 0);
	assert_int_equal(rg_ladder_once("nothing", "scalar", "5x6x7", "normal", &err), RG_EUSAGE);
	assert_int_equal(rg_ladder_once("ikj", "scalar", "5x6", "normal", &err), RG_EUSAGE);
	assert_int_equal(rg_ladder_once("ikj", "scalar", "5x6x7", "odd", &err), RG_EUSAGE);
	assert_true(rg_ladder_once("ikj", "avx2", "5x6x7", "normal", &err) < 0);
}

/* ---- memory ---- */

static int all_of_a_shape(struct rg_error *err)
{
	const struct rg_ladder_shape s = { 5, 6, 7 };
	struct rg_session_options so = options(1);
	struct rg_bench_machine *m = rg_calloc(1, sizeof(*m));
	struct rg_ladder_data d;
	int rc;

	if (!m)
		return rg_error_nomem(err, sizeof(*m));
	rc = rg_bench_machine(&so, m, err);
	if (!rc)
		rc = rg_ladder_data_new(&s, RG_LADDER_NORMAL, 1, true, &d, err);
	for (int i = 0; i < RG_LADDER_RUNGS && !rc; i++) {
		struct rg_ladder_run r;

		rc = rg_ladder_run_new(&rg_ladder_names[i], NULL, &d, m, &so, &rg_par_serial, &r, err);
		if (!rc && !r.reason[0])
			rc = rg_ladder_run_call(&r, err);
		rg_ladder_run_free(&r);
		if (rc || i == RG_LADDER_RUNGS - 1)
			rg_ladder_data_free(&d);
	}
	rg_free(m);
	return rc;
}

static int whole(struct rg_error *err)
{
	const struct rg_ladder_shape s = { 2, 2, 2 };
	const char *const rung = "ikj";
	struct rg_session_options so = options(1);
	struct rg_ladder_options o = { .session = &so, .n_shapes = 1, .shapes = &s, .n_rungs = 1, .rungs = &rung,
				       .rounds = 1, .quick = true };
	struct rg_ladder_report *r;
	int rc = rg_ladder_measure(&o, &r, err);

	if (!rc)
		rg_ladder_report_free(r);
	return rc;
}

static void test_out_of_memory(void **state)
{
	int (*const what[])(struct rg_error *) = { all_of_a_shape, whole };

	for (int w = 0; w < 2; w++) {
		bool failed = true;
		int failures = 0;

		/* the second measures roofs: steps grow so that it ends soon */
		for (uint64_t n = 1; failed && n < 20000; n += w && n > 10 ? n / 4 : 1) {
			struct rg_error err = { 0 };
			int rc;

			rg_alloc_fail_at(n);
			rc = what[w](&err);
			failed = rg_alloc_did_fail();
			rg_alloc_fail_at(0);
			if (failed && rc != -ENOMEM)
				fail_msg("allocation %d failed and %d came back: %s", (int)n, rc, err.message);
			if (!failed)
				assert_int_equal(rc, 0);
			failures += failed;
		}
		assert_false(failed);
		assert_true(failures > (w ? 10 : 50));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share),	 cmocka_unit_test(test_weights),  cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_errors),	 cmocka_unit_test(test_geometry), cmocka_unit_test(test_parse),
		cmocka_unit_test(test_simulate), cmocka_unit_test(test_measure),  cmocka_unit_test(test_choice),
		cmocka_unit_test(test_once),	 cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests_name("session ladder", tests, NULL, NULL);
}
