/*
 * Latency, roofs and operators of recordings made by hand, against what the
 * definitions in analyzer/ops.h give on paper.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/ops.h"
#include "base/alloc.h"
#include "make-recording.h"

static struct rg_analysis *analyze(struct mk *m)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_analysis *a;

	assert_int_equal(rg_analyze(&m->rec, &a, &err), 0);
	return a;
}

static void close_to(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* A machine with round numbers: 100 Gflop/s, 400/200/100/10 GB/s, two cores. */
static struct mk *machine(int threads)
{
	struct mk *m = mk_new(threads);

	mk_ceiling(m, "peak", 100e9);
	mk_ceiling(m, "L1", 400e9);
	mk_ceiling(m, "L2", 200e9);
	mk_ceiling(m, "L3", 100e9);
	mk_ceiling(m, "DRAM", 10e9);
	mk_fact_i(m, "machine.cores", 2, "");
	mk_fact_i(m, "machine.l1d_bytes", 32 * 1024, "bytes");
	mk_fact_i(m, "machine.l2_bytes", 1024 * 1024, "bytes");
	mk_fact_i(m, "machine.l3_bytes", 32 * 1024 * 1024, "bytes");
	return m;
}

/* One timed iteration with the hook in which step i takes ns[i]. */
static void iterate(struct mk *m, const int64_t *ns)
{
	int64_t t = 1000;
	int it = mk_iteration(m, "timing", true, 0, 0);

	for (int i = 0; i < m->rec.n_steps; i++) {
		mk_span(m, it, i, 0, 1, t, t + ns[i]);
		t += ns[i] + 10;
	}
	m->iterations[it].end_ns = t;
}

static void latency_is_of_iterations_without_hook(void **state)
{
	struct mk *m = machine(1);
	struct rg_analysis *a;

	mk_iteration(m, "first", false, 0, 9000);
	mk_iteration(m, "warmup", false, 0, 8000);
	for (int i = 0; i < 101; i++) {
		mk_iteration(m, "timing", true, 0, 2000 + 2 * i);
		mk_iteration(m, "timing", false, 0, 1000 + i);
	}
	a = analyze(m);
	assert_int_equal(a->n_latency, 101);
	close_to(a->p50.value, 1050);
	close_to(a->p99.value, 1099);
	close_to(a->min_ns, 1000);
	close_to(a->max_ns, 1100);
	close_to(a->mean_ns, 1050);
	assert_true(a->p50.low < 1050 && a->p50.high > 1050);
	close_to(a->throughput_per_s, 1e9 / 1050);
	close_to(a->overhead.value, 2);
	assert_true(a->overhead.low <= 2 && a->overhead.high >= 2);
	for (int i = 1; i < a->n_latency; i++)
		assert_true(a->latency_sorted_ns[i - 1] <= a->latency_sorted_ns[i]);
	rg_analysis_free(a);
	mk_free(m);
}

static void without_others_the_hooked_ones_count(void **state)
{
	struct mk *m = machine(1);
	struct rg_analysis *a;

	for (int i = 0; i < 5; i++)
		mk_iteration(m, "timing", true, 0, 100 + i);
	a = analyze(m);
	assert_int_equal(a->n_latency, 5);
	close_to(a->p50.value, 102);
	assert_true(isnan(a->overhead.value));
	assert_true(isnan(a->p99.high)); /* five samples cannot bound it */
	rg_analysis_free(a);
	mk_free(m);
}

static void nothing_recorded_is_nan_and_never_zero(void **state)
{
	struct mk *m = mk_new(2);
	struct rg_analysis *a;

	mk_step(m, "a", "Conv", "conv", -1, -1);
	a = analyze(m);
	assert_int_equal(a->n_latency, 0);
	assert_true(isnan(a->p50.value) && isnan(a->min_ns) && isnan(a->mean_ns) && isnan(a->overhead.value));
	assert_true(isnan(a->throughput_per_s) && isnan(a->peak.value) && isnan(a->ridge_intensity));
	assert_true(isnan(a->ops[0].time_ns) && isnan(a->ops[0].share) && isnan(a->ops[0].flops));
	assert_true(isnan(a->ops[0].roof_ns) && isnan(a->ops[0].headroom) && !a->ops[0].bound);
	assert_true(isnan(a->flops) && isnan(a->weight_bytes) && isnan(a->peak_bytes));
	assert_int_equal(a->n_unknown_cost, 1);
	assert_int_equal(a->batch, -1);
	assert_int_equal(a->n_roofs, 0);
	rg_analysis_free(a);
	mk_free(m);
}

static void bounds_follow_the_roofline(void **state)
{
	static const struct { int64_t flops, bytes, ns; const char *bound; double roof_ns; } cases[] = {
		{ 1000000000, 1000000, 20000000, "compute", 1e7 },     /* 10 ms at 100 Gflop/s */
		{ 1000, 60 * 1024, 10000, "L1", 60 * 1024 / 400.0 },   /* fits two L1 of 32 KiB */
		{ 1000, 70 * 1024, 10000, "L2", 70 * 1024 / 200.0 },
		{ 1000, 3 << 20, 100000, "L3", (3 << 20) / 100.0 },
		{ 0, 64 << 20, 100000000, "DRAM", (64 << 20) / 10.0 },  /* no flops: bytes decide */
		{ 1000, 1024, 1500, "overhead", 10 },
		{ -1, 1024, 1500, NULL, NAN },
		{ 1000, -1, 1500, NULL, NAN },
		{ 0, 0, 50000, "overhead", 0 },
	};
	const int n = sizeof(cases) / sizeof(cases[0]);
	struct mk *m = machine(2);
	struct rg_analysis *a;
	int64_t ns[16];

	for (int i = 0; i < n; i++) {
		mk_step(m, "s", "Op", "other", cases[i].flops, cases[i].bytes);
		ns[i] = cases[i].ns;
	}
	iterate(m, ns);
	a = analyze(m);
	close_to(a->ridge_intensity, 10);
	for (int i = 0; i < n; i++) {
		const struct rg_op_stat *op = &a->ops[i];

		if (!cases[i].bound) {
			assert_null(op->bound);
			assert_true(isnan(op->roof_ns) && isnan(op->headroom));
			continue;
		}
		assert_non_null(op->bound);
		assert_string_equal(op->bound, cases[i].bound);
		close_to(op->roof_ns, cases[i].roof_ns);
		if (cases[i].roof_ns > 0)
			close_to(op->headroom, (double)ns[i] / cases[i].roof_ns);
		else
			assert_true(isnan(op->headroom));
	}
	rg_analysis_free(a);
	mk_free(m);
}

static void roofs_are_of_the_thread_count_and_the_better_measurement(void **state)
{
	struct mk *m = mk_new(2);
	struct rg_analysis *a;

	mk_ceiling(m, "peak", 50e9);
	m->ceilings[0].threads = 1;   /* of another thread count: not used */
	mk_ceiling(m, "peak", 90e9);
	mk_ceiling(m, "peak", 100e9);
	m->ceilings[2].when = "after";
	mk_ceiling(m, "peak", 200e9);
	m->ceilings[3].dtype = "int8";
	mk_ceiling(m, "DRAM", 10e9);
	m->ceilings[4].threads = 1;
	a = analyze(m);
	close_to(a->peak.value, 100e9);
	close_to(a->peak.low, 90e9 * 0.99);
	close_to(a->peak.high, 100e9 * 1.01);
	assert_int_equal(a->n_roofs, 0);
	rg_analysis_free(a);
	mk_free(m);
}

static void faster_than_the_roof_is_flagged_not_clamped(void **state)
{
	struct mk *m = machine(1);
	struct rg_analysis *a;

	mk_step(m, "impossible", "Conv", "conv", 1000000000, 1000);
	mk_step(m, "within the spread", "Conv", "conv", 1000000000, 1000);
	for (int i = 0; i < 20; i++)
		iterate(m, (const int64_t[]){ 5000000, 9950000 });
	a = analyze(m);
	assert_true(a->ops[0].above_roof);
	close_to(a->ops[0].headroom, 0.5);
	assert_false(a->ops[1].above_roof);
	rg_analysis_free(a);
	mk_free(m);
}

static void the_roof_asks_for_the_fewer_operations(void **state)
{
	struct mk *m = machine(1);
	struct rg_analysis *a;

	mk_step(m, "fewer than the definition", "Conv", "conv", 1000000000, 1000)->executed_flops = 400000000;
	mk_step(m, "more, for padding", "Conv", "conv", 1000000000, 1000)->executed_flops = 1200000000;
	for (int i = 0; i < 20; i++)
		iterate(m, (const int64_t[]){ 5000000, 5000000 });
	a = analyze(m);
	close_to(a->ops[0].headroom, 1.25);
	assert_false(a->ops[0].above_roof);
	close_to(a->ops[0].flop_rate, 200e9);
	close_to(a->ops[1].headroom, 0.5);
	assert_true(a->ops[1].above_roof);
	rg_analysis_free(a);
	mk_free(m);
}

/* Products of bytes have a peak of their own, the fastest form's; other integer arithmetic has none. */
static void products_of_bytes_are_held_to_their_peak(void **state)
{
	struct mk *m = machine(1);
	struct rg_analysis *a;

	mk_int8_ceiling(m, "int8 pairs", 200e9);
	mk_int8_ceiling(m, "int8 vnni", 400e9);
	mk_step(m, "product", "MatMulInteger", "gemm", 0, 1000000)->iops = 4000000000;
	mk_step(m, "requantised", "QLinearConv", "conv", 2000000000, 1000000)->iops = 4000000000; /* 20 ms of floats */
	mk_step(m, "other", "Mul", "elementwise", 0, 1000000)->iops = 4000000000;
	mk_step(m, "floats", "MatMul", "gemm", 4000000000, 1000000);
	iterate(m, (const int64_t[]){ 20000000, 25000000, 20000000, 80000000 });
	a = analyze(m);
	close_to(a->peak.value, 100e9);
	close_to(a->int8_peak.value, 400e9);
	assert_string_equal(a->int8_peak.level, "int8 vnni");
	assert_string_equal(a->ops[0].bound, "compute");
	close_to(a->ops[0].roof_ns, 1e7);
	close_to(a->ops[0].headroom, 2);
	close_to(a->ops[1].roof_ns, 2e7);
	assert_null(a->ops[2].bound);
	assert_true(isnan(a->ops[2].roof_ns));
	close_to(a->ops[3].roof_ns, 4e7);
	rg_analysis_free(a);
	mk_free(m);
	m = machine(1); /* no such peak: nothing to hold it to */
	mk_step(m, "product", "MatMulInteger", "gemm", 0, 1000000)->iops = 4000000000;
	iterate(m, (const int64_t[]){ 20000000 });
	a = analyze(m);
	assert_true(isnan(a->int8_peak.value));
	assert_null(a->ops[0].bound);
	rg_analysis_free(a);
	mk_free(m);
}

static void a_lopsided_step_is_bound_by_imbalance(void **state)
{
	struct mk *m = machine(2);
	struct rg_analysis *a;
	int64_t ns[] = { 10000000, 10000000, 10000000 };

	/* Roof 6 ms. Even lanes would take 6 ms and win 4 of 4 ms. */
	mk_step(m, "lopsided", "Conv", "conv", 600000000, 1000);
	/* Roof 1 ms: evening out wins 4 of 9 ms: that is not what binds. */
	mk_step(m, "slow kernel", "Conv", "conv", 100000000, 1000);
	mk_step(m, "one lane got nothing", "Conv", "conv", 600000000, 1000);
	iterate(m, ns);
	mk_span(m, 0, 0, 0, 0, 1000, 1000 + 10000000);
	mk_span(m, 0, 0, 1, 0, 1000, 1000 + 2000000);
	mk_span(m, 0, 1, 0, 0, 10001010, 10001010 + 10000000);
	mk_span(m, 0, 1, 1, 0, 10001010, 10001010 + 2000000);
	mk_span(m, 0, 2, 0, 0, 20001020, 20001020 + 5000000); /* twice on one lane: summed */
	mk_span(m, 0, 2, 0, 0, 25001020, 25001020 + 5000000);
	a = analyze(m);
	close_to(a->ops[0].imbalance, 10.0 / 6);
	assert_string_equal(a->ops[0].bound, "imbalance");
	close_to(a->ops[1].imbalance, 10.0 / 6);
	assert_string_equal(a->ops[1].bound, "compute");
	close_to(a->ops[2].imbalance, 2);
	assert_string_equal(a->ops[2].bound, "imbalance");
	rg_analysis_free(a);
	mk_free(m);
}

static void a_step_of_a_loop_counts_the_sum(void **state)
{
	struct mk *m = machine(1);
	struct rg_analysis *a;

	mk_step(m, "body", "Add", "elementwise", 10, 40);
	for (int i = 0; i < 3; i++) {
		mk_iteration(m, "timing", true, 0, 1000);
		mk_span(m, i, 0, 0, 1, 10, 110);
		mk_span(m, i, 0, 0, 1, 200, 250 + i);
	}
	mk_iteration(m, "warmup", true, 0, 1000);
	mk_span(m, 3, 0, 0, 1, 0, 900);
	a = analyze(m);
	close_to(a->ops[0].time_ns, 151);
	close_to(a->ops[0].share, 1);
	rg_analysis_free(a);
	mk_free(m);
}

static void totals_and_order(void **state)
{
	struct mk *m = machine(1);
	struct rg_analysis *a;
	int order[8];
	int64_t ns[] = { 50, 500, 50, 5000, 1, 700, 20 };

	for (int i = 0; i < 7; i++)
		mk_step(m, "s", "Op", "other", i == 2 ? -1 : 100, 10)->prepared_bytes = 8;
	mk_step(m, "never ran", "Op", "other", 100, 10);
	mk_tensor(m, "w", "3x4", 4800, "const")->is_param = true;
	mk_tensor(m, "x", "16x3x224x224", 100, "input")->is_input = true;
	mk_fact_i(m, "plan.arena_bytes", 1000, "bytes");
	{
		int it = mk_iteration(m, "timing", true, 0, 9000);

		for (int i = 0; i < 7; i++)
			mk_span(m, it, i, 0, 1, 1000 * i, 1000 * i + ns[i]);
	}
	a = analyze(m);
	assert_int_equal(a->n_unknown_cost, 1);
	close_to(a->flops, 700);
	close_to(a->weight_bytes, 4800);
	close_to(a->peak_bytes, 1000 + 4800 + 56);
	assert_int_equal(a->batch, 16);
	close_to(a->ops_total_ns, 6321);
	rg_analysis_by_time(a, order);
	{
		static const int want[] = { 3, 5, 1, 0, 2, 6, 4, 7 };

		for (int i = 0; i < 8; i++)
			assert_int_equal(order[i], want[i]);
	}
	rg_analysis_free(a);
	mk_free(m);
}

static void every_allocation_may_fail(void **state)
{
	struct mk *m = machine(2);
	uint64_t n = 1;

	mk_step(m, "a", "Conv", "conv", 1000, 1000);
	iterate(m, (const int64_t[]){ 500 });
	mk_iteration(m, "timing", false, 0, 500);
	for (;; n++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_analysis *a;
		int rc;

		rg_alloc_fail_at(n);
		rc = rg_analyze(&m->rec, &a, &err);
		if (!rg_alloc_did_fail()) {
			assert_int_equal(rc, 0);
			rg_analysis_free(a);
			break;
		}
		if (rc) {
			assert_int_equal(rc, -ENOMEM);
			assert_null(a);
		} else {
			rg_analysis_free(a); /* only the bootstrap may do without */
		}
	}
	rg_alloc_fail_at(0);
	assert_true(n > 2);
	mk_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency_is_of_iterations_without_hook),
		cmocka_unit_test(without_others_the_hooked_ones_count),
		cmocka_unit_test(nothing_recorded_is_nan_and_never_zero),
		cmocka_unit_test(bounds_follow_the_roofline),
		cmocka_unit_test(roofs_are_of_the_thread_count_and_the_better_measurement),
		cmocka_unit_test(faster_than_the_roof_is_flagged_not_clamped),
		cmocka_unit_test(the_roof_asks_for_the_fewer_operations),
		cmocka_unit_test(products_of_bytes_are_held_to_their_peak),
		cmocka_unit_test(a_lopsided_step_is_bound_by_imbalance),
		cmocka_unit_test(a_step_of_a_loop_counts_the_sum),
		cmocka_unit_test(totals_and_order),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
