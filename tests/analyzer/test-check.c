/*
 * The checklist on recordings made by hand: order, verdicts that follow the
 * facts, unknown where facts lack, and evidence that runs.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "analyzer/check.h"
#include "analyzer/fusion.h"
#include "base/alloc.h"
#include "make-recording.h"

static const char *const ids[RG_CHECK_QUESTIONS] = {
	"model.size", "model.shapes", "model.dominant", "memory.peak", "memory.weights", "memory.largest",
	"compute.type", "compute.bound", "compute.cheap", "precision.need", "precision.granularity",
	"precision.calibration", "hardware.units", "hardware.minimum", "hardware.bandwidth", "runtime.fallback",
	"runtime.copies", "runtime.planner", "compiler.fusion", "compiler.layout", "compiler.folding",
	"performance.latency", "performance.throughput", "performance.energy",
};

static struct rg_analysis *analysis;
static const char *database; /* that the evidence names; NULL: ridge.db */

static struct rg_checklist *check(struct mk *m)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_checklist *c;

	assert_int_equal(rg_analyze(&m->rec, &analysis, &err), 0);
	assert_int_equal(rg_check_run(analysis, database, &c, &err), 0);
	return c;
}

static void done(struct mk *m, struct rg_checklist *c)
{
	rg_checklist_free(c);
	rg_analysis_free(analysis);
	mk_free(m);
}

static const struct rg_answer *answer(const struct rg_checklist *c, const char *id)
{
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++)
		if (strcmp(c->answers[i].id, id) == 0)
			return &c->answers[i];
	fail_msg("no answer '%s'", id);
	return NULL;
}

static const struct rg_figure *figure(const struct rg_answer *q, const char *name)
{
	for (int i = 0; i < q->n_figures; i++)
		if (strcmp(q->figures[i].name, name) == 0)
			return &q->figures[i];
	fail_msg("%s has no figure '%s'", q->id, name);
	return NULL;
}

static void assert_figure(const struct rg_answer *q, const char *name, double want)
{
	double got = figure(q, name)->value;

	if (!(fabs(got - want) <= 1e-9 * fabs(want)))
		fail_msg("%s.%s is %.17g, want %.17g", q->id, name, got, want);
}

/* What every checklist must keep to, whatever was recorded. */
static void check_rules(const struct rg_checklist *c)
{
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++) {
		const struct rg_answer *q = &c->answers[i];

		assert_string_equal(q->id, ids[i]);
		assert_true(q->question[0] && q->answer && q->answer[0] && q->evidence && q->evidence[0]);
		assert_true(strncmp(q->evidence, "ridge ", 6) == 0 || strncmp(q->evidence, "sqlite3 ", 8) == 0);
		if (q->verdict == RG_VERDICT_UNKNOWN)
			assert_true(q->missing && q->missing[0]);
		else
			assert_null(q->missing);
		for (int k = 0; k < q->n_figures; k++) {
			const struct rg_figure *f = &q->figures[k];

			if (!f->text)
				assert_true(isnan(f->value) == (f->provenance == RG_PROV_UNAVAILABLE));
		}
		assert_null(strstr(q->answer, " nan")); /* what is missing is never printed */
		assert_null(strstr(q->answer, "%!"));
	}
	for (int d = 0; d < 5; d++)
		assert_true(c->dimensions[d].name && c->dimensions[d].stands && c->dimensions[d].change);
	assert_true(c->binding >= -1 && c->binding < 5);
	assert_true(c->n_changes >= 0 && c->n_changes <= 3);
}

/* Conv 1 ms at a roof of 0.5 ms, Relu 0.2 ms, Gemm with M of 1: 0.3 ms, 60 runs. */
static struct mk *small_model(void)
{
	static const int64_t ns[] = { 1000000, 200000, 300000 };
	struct mk *m = mk_new(1);
	struct rg_step_row *s;
	int64_t t = 0;

	mk_ceiling(m, "peak", 100e9);
	mk_ceiling(m, "L2", 200e9);
	mk_ceiling(m, "DRAM", 10e9);
	mk_fact_i(m, "machine.cores", 2, "");
	mk_fact_i(m, "machine.l2_bytes", 1000000, "bytes");
	mk_fact_i(m, "machine.memory_bytes", 1000000000, "bytes");
	mk_fact_i(m, "model.params", 1500, "");
	mk_fact_i(m, "model.weight_bytes", 6000, "bytes");
	mk_fact_i(m, "model.batch", 4, "");
	mk_fact_i(m, "plan.arena_bytes", 3000000, "bytes");
	mk_fact_i(m, "plan.arena_lower_bound_bytes", 2900000, "bytes");
	mk_fact_t(m, "plan.planner", "ridge");
	mk_fact_t(m, "plan.arena_strategy", "greedy-lowest");
	mk_fact_i(m, "plan.bound_inputs", 0, "");
	mk_fact_i(m, "plan.folded", 3, "");
	mk_fact_i(m, "plan.dead", 1, "");
	s = mk_step(m, "conv1", "Conv", "conv", 50000000, 100000);
	s->params = 500;
	s->gemm_m = 8;
	s->gemm_n = 64;
	s->gemm_k = 9;
	mk_step(m, "relu1", "Relu", "elementwise", 1000, 100000)->kernel = "ref";
	s = mk_step(m, "fc", "Gemm", "gemm", 3000000, 50000);
	s->params = 1000;
	s->gemm_m = 1;
	s->gemm_n = 10;
	s->gemm_k = 100;
	mk_tensor(m, "x", "4x3x8x8", 3072, "input")->is_input = true;
	for (int i = 0; i < 3; i++) {
		struct rg_tensor_row *v = mk_tensor(m, i == 0 ? "a" : i == 1 ? "b" : "y", "4x8x1x1",
						    i == 0 ? 1200000 : 500000, "arena");

		v->first_step = i;
		v->last_step = i == 2 ? 2 : i + 1;
		v->is_output = i == 2;
	}
	for (int i = 0; i < 3; i++) {
		mk_io(m, i, false, 0, i);
		mk_io(m, i, true, 0, i + 1);
		if (i)
			mk_edge(m, i - 1, i);
	}
	for (int k = 0; k < 60; k++) {
		int it = mk_iteration(m, "timing", true, t, 0);
		int64_t start = t;

		for (int i = 0; i < 3; i++) {
			/* In the slowest three the Gemm takes longer. */
			int64_t longer = i == 2 && k >= 57 ? 2000000 : 0;

			mk_span(m, it, i, 0, 1, t + 1000, t + 1000 + ns[i] + longer);
			t += 1000 + ns[i] + longer;
		}
		m->iterations[it].end_ns = t;
		(void)start;
		mk_iteration(m, "timing", false, t, t + 1500000);
		t += 1500000;
	}
	return m;
}

static void evidence_names_the_database(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c = check(m);

	assert_non_null(strstr(answer(c, "model.dominant")->evidence, "sqlite3 ridge.db \"SELECT"));
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++)
		assert_null(strstr(c->answers[i].evidence, "--db"));
	rg_checklist_free(c);
	rg_analysis_free(analysis);
	database = "it's mine.db";
	c = check(m);
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++) {
		const char *e = c->answers[i].evidence;

		assert_non_null(strstr(e, strncmp(e, "sqlite3 ", 8) == 0 ? "sqlite3 'it'\\''s mine.db' \"SELECT"
									 : " --db 'it'\\''s mine.db'"));
	}
	database = NULL;
	done(m, c);
}

/* What hardware.bandwidth says is bound by memory is what the operators are. */
static void bandwidth_agrees_with_the_bounds(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c = check(m);
	const char *said = strstr(answer(c, "hardware.bandwidth")->answer, "a memory level bounds take ");
	double share = 0, told = NAN;

	for (int i = 0; i < analysis->n_ops; i++) {
		const char *b = analysis->ops[i].bound;

		if (b && (strncmp(b, "L", 1) == 0 || strcmp(b, "DRAM") == 0))
			share += analysis->ops[i].share;
	}
	assert_non_null(said);
	assert_int_equal(sscanf(said, "a memory level bounds take %lf %%", &told), 1);
	assert_true(fabs(told - 100 * share) < 0.51);
	done(m, c);
}

static void answers_follow_the_facts(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c = check(m);
	const struct rg_answer *q;

	check_rules(c);
	q = answer(c, "model.size");
	assert_int_equal(q->verdict, RG_VERDICT_GOOD);
	assert_figure(q, "params", 1500);
	assert_figure(q, "flops", 53001000);
	assert_figure(q, "batch", 4);
	assert_int_equal(figure(q, "params")->provenance, RG_PROV_MEASURED);
	assert_int_equal(figure(q, "flops")->provenance, RG_PROV_MODELLED);
	q = answer(c, "model.shapes");
	assert_int_equal(q->verdict, RG_VERDICT_PROBLEM); /* fifth of the time and no special form */
	assert_figure(q, "degenerate_steps", 1);
	assert_figure(q, "without_special_form", 1);
	assert_non_null(strstr(q->answer, "'fc' (Gemm)"));
	q = answer(c, "model.dominant");
	assert_int_equal(q->verdict, RG_VERDICT_ATTENTION); /* Gemm holds parameters, Conv FLOPs */
	assert_string_equal(figure(q, "params_type")->text, "Gemm");
	assert_string_equal(figure(q, "flops_type")->text, "Conv");
	q = answer(c, "memory.peak");
	assert_int_equal(q->verdict, RG_VERDICT_ATTENTION);
	assert_figure(q, "first_spill_step", 0); /* 1.2 MB is more than the L2 of 1 MB */
	assert_figure(q, "planned_peak_bytes", 3006000);
	assert_string_equal(figure(q, "planner")->text, "ridge"); /* it holds for no other */
	assert_string_equal(figure(q, "arena_strategy")->text, "greedy-lowest");
	q = answer(c, "memory.weights");
	assert_int_equal(q->verdict, RG_VERDICT_GOOD);
	assert_figure(q, "int4_bytes", 750);
	q = answer(c, "memory.largest");
	assert_int_equal(q->verdict, RG_VERDICT_ATTENTION);
	assert_figure(q, "size_bytes", 1200000);
	assert_non_null(strstr(q->answer, "'conv1' (Conv)"));
	q = answer(c, "compute.type");
	assert_figure(q, "conv_flops_share", 50000000.0 / 53001000);
	assert_figure(q, "conv_time_share", 1000.0 / 1500);
	q = answer(c, "compute.bound");
	assert_string_equal(figure(q, "bound")->text, "compute");
	assert_figure(q, "headroom", 2);
	assert_int_equal(q->verdict, RG_VERDICT_ATTENTION);
	q = answer(c, "compute.cheap");
	assert_figure(q, "steps", 1);
	assert_figure(q, "fusable_steps", 1);
	assert_figure(q, "time_share", 200.0 / 1500);
	assert_figure(q, "saved_at_most_ns", 200000 - 10);
	q = answer(c, "hardware.bandwidth");
	assert_int_equal(q->verdict, RG_VERDICT_GOOD);
	assert_figure(q, "model_intensity", 53001000.0 / 250000);
	q = answer(c, "runtime.fallback");
	assert_int_equal(q->verdict, RG_VERDICT_PROBLEM);
	assert_figure(q, "reference_steps", 1);
	assert_figure(q, "time_share", 200.0 / 1500);
	q = answer(c, "runtime.planner");
	assert_int_equal(q->verdict, RG_VERDICT_GOOD);
	q = answer(c, "compiler.folding");
	assert_int_equal(q->verdict, RG_VERDICT_GOOD);
	q = answer(c, "performance.latency");
	assert_figure(q, "p50_ns", 1500000);
	assert_figure(q, "n", 60);
	assert_int_equal(q->verdict, RG_VERDICT_ATTENTION); /* 60 cannot bound P99 */
	assert_non_null(strstr(q->answer, "'fc' (Gemm)")); /* what makes the tail */
	assert_figure(q, "tail_excess_ns", 2000000);
	assert_figure(q, "tail_share", 1);
	q = answer(c, "performance.throughput");
	assert_figure(q, "inferences_per_s", 1e9 / 1500000);
	assert_figure(q, "samples_per_s", 4e9 / 1500000);
	assert_figure(q, "dominant_over_roofline", 0.5);
	done(m, c);
}

/* Steps that are not planned, or cannot run, are no reason for a good verdict. */
static void dynamic_and_missing_kernels(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c;
	const struct rg_answer *q;

	for (int i = 0; i < m->rec.n_steps; i++)
		m->steps[i].kernel = i == 0 ? "dynamic" : "openblas";
	mk_fact_i(m, "plan.dynamic", 1, "");
	mk_note(m, "dynamic", "conv1", "it reads 'x', known only while the model runs");
	c = check(m);
	q = answer(c, "runtime.fallback");
	assert_int_equal(q->verdict, RG_VERDICT_UNKNOWN);
	assert_figure(q, "dynamic_steps", 1);
	assert_non_null(q->missing);
	q = answer(c, "runtime.planner");
	assert_int_equal(q->verdict, RG_VERDICT_ATTENTION);
	assert_figure(q, "dynamic_share", 1000.0 / 1500);
	assert_non_null(strstr(q->answer, "'conv1' (it reads 'x'"));
	done(m, c);

	m = small_model();
	m->steps[0].kernel = "none";
	c = check(m);
	q = answer(c, "runtime.fallback");
	assert_int_equal(q->verdict, RG_VERDICT_PROBLEM);
	assert_figure(q, "steps_without_kernel", 1);
	assert_non_null(strstr(q->answer, "cannot run"));
	done(m, c);
}

static void dimensions_and_changes(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c = check(m);
	double wall = 1503000;

	/* conv1 loses 0.5 ms of 1.503 ms to compute, fc 0.27 ms; relu 0.2 ms less its roof. */
	assert_int_equal(c->binding, 0);
	assert_true(fabs(c->dimensions[0].ceiling - (500000 + 270000) / wall) < 1e-9);
	assert_true(fabs(c->dimensions[0].headroom - wall / (wall - 770000)) < 1e-9);
	assert_true(fabs(c->dimensions[1].ceiling - (200000 - 100000 / 200.0) / wall) < 1e-9);
	assert_true(fabs(c->dimensions[2].headroom - 1) < 1e-9); /* one thread */
	assert_true(isnan(c->dimensions[3].headroom));
	assert_int_equal(c->dimensions[3].verdict, RG_VERDICT_UNKNOWN);
	assert_true(fabs(c->dimensions[4].ceiling - 3000 / wall) < 1e-9);
	assert_int_equal(c->n_changes, 3);
	assert_non_null(strstr(c->changes[0], "Conv"));
	assert_non_null(strstr(c->changes[1], "Gemm"));
	assert_non_null(strstr(c->changes[2], "Relu"));
	done(m, c);
}

static void a_beaten_roof_is_never_good_news(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c;

	m->ceilings[0].value = m->ceilings[0].low = m->ceilings[0].high = 20e9; /* conv1 would need 2.5 ms */
	c = check(m);
	check_rules(c);
	assert_int_equal(answer(c, "compute.bound")->verdict, RG_VERDICT_ATTENTION);
	assert_int_equal(answer(c, "performance.throughput")->verdict, RG_VERDICT_ATTENTION);
	assert_true(isnan(c->dimensions[0].headroom));
	assert_int_equal(c->dimensions[0].verdict, RG_VERDICT_UNKNOWN);
	assert_non_null(strstr(c->dimensions[0].stands, "too low"));
	done(m, c);
}

static void an_empty_recording_is_unknown_and_says_why(void **state)
{
	struct mk *m = mk_new(2);
	struct rg_checklist *c = check(m);

	check_rules(c);
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++)
		assert_int_equal(c->answers[i].verdict, RG_VERDICT_UNKNOWN);
	assert_int_equal(c->binding, -1);
	assert_int_equal(c->n_changes, 0);
	for (int d = 0; d < 5; d++)
		assert_true(isnan(c->dimensions[d].headroom));
	done(m, c);
}

static void unknown_costs_are_told(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c;

	m->steps[0].flops = -1;
	c = check(m);
	check_rules(c);
	assert_int_equal(answer(c, "model.size")->verdict, RG_VERDICT_ATTENTION);
	assert_non_null(strstr(answer(c, "model.size")->answer, "at least"));
	assert_int_equal(answer(c, "compute.bound")->verdict, RG_VERDICT_UNKNOWN);
	done(m, c);
}

static void no_ceilings_leave_the_bound_open(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c;

	m->rec.n_ceilings = 0;
	c = check(m);
	check_rules(c);
	assert_int_equal(answer(c, "compute.bound")->verdict, RG_VERDICT_UNKNOWN);
	assert_non_null(strstr(answer(c, "compute.bound")->missing, "ceilings"));
	assert_int_equal(answer(c, "hardware.bandwidth")->verdict, RG_VERDICT_UNKNOWN);
	assert_int_equal(answer(c, "performance.latency")->verdict, RG_VERDICT_ATTENTION);
	assert_true(isnan(c->dimensions[0].headroom));
	done(m, c);
}

static void bound_inputs_and_constant_steps_are_seen(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c;

	for (int i = 0; i < m->rec.n_facts; i++)
		if (strcmp(m->facts[i].key, "plan.bound_inputs") == 0)
			m->facts[i].integer = 1;
	mk_note(m, "bound-input", "shape\ninput", "its value decides a shape");
	m->tensors[0].place = "const";
	c = check(m);
	check_rules(c);
	assert_int_equal(answer(c, "runtime.planner")->verdict, RG_VERDICT_ATTENTION);
	assert_non_null(strstr(answer(c, "runtime.planner")->answer, "'shape?input'")); /* no control characters */
	assert_int_equal(answer(c, "compiler.folding")->verdict, RG_VERDICT_ATTENTION);
	assert_non_null(strstr(answer(c, "compiler.folding")->answer, "'conv1' (Conv)"));
	done(m, c);
}

/* What passes did and left, from the notes; of a run without passes nothing is claimed. */
static void fusion_answers_come_from_the_notes(void **state)
{
	struct mk *m = small_model();
	struct rg_checklist *c = check(m);
	const struct rg_answer *q = answer(c, "compiler.fusion");

	assert_int_equal(q->verdict, RG_VERDICT_UNKNOWN); /* it does not say which passes ran */
	rg_checklist_free(c);
	rg_analysis_free(analysis);
	mk_fact_i(m, "session.optimize", 0, "");
	mk_fact_i(m, "plan.steps", 3, "");
	c = check(m);
	check_rules(c);
	q = answer(c, "compiler.fusion");
	assert_int_equal(q->verdict, RG_VERDICT_UNKNOWN);
	assert_non_null(strstr(q->answer, "not tried"));
	assert_non_null(strstr(q->missing, "--optimize 3"));
	assert_non_null(strstr(answer(c, "compiler.folding")->answer, "not looked for"));
	rg_checklist_free(c);
	rg_analysis_free(analysis);
	for (int i = 0; i < m->rec.n_facts; i++)
		if (strcmp(m->facts[i].key, "session.optimize") == 0)
			m->facts[i].integer = 3;
	mk_fact_i(m, "plan.steps_before", 9, "");
	mk_note(m, "fused", "r", "Relu into conv1 (epilogue)");
	mk_note(m, "fused", "c2", "constant into c1 (common)");
	mk_note(m, "not-fused", "a", "Add not into odd (name): x: second consumer (epilogue)");
	mk_note(m, "not-fused", "fc", "Gemm not into conv1: no pattern");
	mk_note(m, "not-fused", "fd", "Gemm not into conv1: no pattern");
	mk_note(m, "not-fused", "torn", "no such text");
	c = check(m);
	check_rules(c);
	q = answer(c, "compiler.fusion");
	assert_int_equal(q->verdict, RG_VERDICT_ATTENTION);
	assert_figure(q, "fused", 2);
	assert_figure(q, "not_fused", 3);
	assert_figure(q, "steps_before", 9);
	assert_non_null(strstr(q->answer, "no pattern 2, second consumer 1"));
	assert_non_null(strstr(q->answer, "'fc' behind 'conv1'"));
	assert_figure(answer(c, "compiler.folding"), "duplicates", 1);
	done(m, c);
}

static void fusion_notes_are_read(void **state)
{
	struct mk *m = small_model();
	struct rg_error err = RG_ERROR_INIT;
	struct rg_fusions *f;
	int fails = 0, rc;

	mk_note(m, "fused", "r", "Relu into conv1 (epilogue)");
	mk_note(m, "not-fused", "a", "Add not into odd (name): x: second consumer (epilogue)");
	mk_note(m, "not-fused", "b", "Add not into b (c): no pattern");
	do {
		rg_alloc_fail_at((uint64_t)++fails);
		rc = rg_fusions_new(&m->rec, &f, &err);
		rg_alloc_fail_at(0);
		assert_true(rc == 0 || rc == -ENOMEM);
	} while (rc && fails < 100);
	assert_int_equal(rc, 0);
	assert_int_equal(f->n_done, 1);
	assert_int_equal(f->n_left, 2);
	assert_int_equal(f->level, -1);
	assert_string_equal(f->done[0].op_type, "Relu");
	assert_string_equal(f->done[0].into, "conv1");
	assert_string_equal(f->done[0].into_type, "Conv");
	assert_string_equal(f->done[0].pass, "epilogue");
	assert_string_equal(f->left[0].into, "odd (name): x");
	assert_string_equal(f->left[0].into_type, "");
	assert_string_equal(f->left[0].reason, "second consumer");
	assert_string_equal(f->left[0].pass, "epilogue");
	assert_string_equal(f->left[1].into, "b (c)");
	assert_string_equal(f->left[1].reason, "no pattern");
	assert_string_equal(f->left[1].pass, "");
	rg_fusions_free(f);
	mk_free(m);
}

/* Evidence is a command that a person can type: the queries must be valid SQL
 * over the tables that there are. */
static void evidence_queries_are_valid(void **state)
{
	char path[] = "/tmp/ridge-check-XXXXXX";
	struct mk *m = small_model();
	struct rg_checklist *c = check(m);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_store *s;
	sqlite3 *db;
	int n = 0;

	close(mkstemp(path));
	assert_int_equal(rg_store_open(path, RG_STORE_WRITE, &s, &err), 0);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++) {
		const char *sql = strchr(c->answers[i].evidence, '"');
		sqlite3_stmt *st;
		char *copy;

		if (!sql)
			continue;
		copy = strdup(sql + 1);
		assert_int_equal(copy[strlen(copy) - 1], '"');
		copy[strlen(copy) - 1] = '\0';
		if (sqlite3_prepare_v2(db, copy, -1, &st, NULL) != SQLITE_OK)
			fail_msg("%s: %s", copy, sqlite3_errmsg(db));
		sqlite3_finalize(st);
		free(copy);
		n++;
	}
	assert_true(n > 5);
	sqlite3_close(db);
	rg_store_close(s);
	unlink(path);
	done(m, c);
}

static void every_allocation_may_fail(void **state)
{
	struct mk *m = small_model();
	struct rg_error err = RG_ERROR_INIT;
	struct rg_analysis *a;
	uint64_t n = 1;

	assert_int_equal(rg_analyze(&m->rec, &a, &err), 0);
	for (;; n++) {
		struct rg_checklist *c;
		int rc;

		rg_alloc_fail_at(n);
		rc = rg_check_run(a, "my runs.db", &c, &err);
		if (rc == 0) {
			rg_checklist_free(c);
			if (!rg_alloc_did_fail())
				break;
			fail_msg("allocation %llu failed unnoticed", (unsigned long long)n);
		}
		assert_int_equal(rc, -ENOMEM);
	}
	rg_alloc_fail_at(0);
	assert_true(n > 5);
	rg_analysis_free(a);
	mk_free(m);
}

/* What ridge quantize measured answers the three questions. */
static void precision_is_what_was_measured(void **state)
{
	struct rg_quantized_row ops[] = {
		{ "conv1", "Conv", 1, "", 35, 36, 0.002, NAN, 100, 45, 30, 45 },
		{ "fc", "Gemm", 1, "", 22, 40, 0, NAN, 1, 40, 40, 40 },
		{ "up", "ConvTranspose", 0, "no runtime has an integer kernel for it", NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN },
	};
	struct rg_quantization z = { .id = 3, .model = "m", .model_sha256 = "", .form = "static", .weights = "per channel",
				     .ranges = "minmax", .samples = 9, .sqnr_db = 20, .validation_sqnr_db = NAN,
				     .n_operators = 3, .operators = ops };
	struct mk *m = small_model();
	struct rg_checklist *c;
	const struct rg_answer *q;

	m->rec.quantization = &z;
	c = check(m);
	check_rules(c);
	q = answer(c, "precision.need");
	assert_int_equal(q->verdict, RG_VERDICT_ATTENTION);
	assert_non_null(strstr(q->answer, "'fc' (Gemm) with 22.0 dB"));
	assert_figure(q, "operators", 2);
	assert_figure(q, "operators_below_30_db", 1);
	q = answer(c, "precision.granularity");
	assert_int_equal(q->verdict, RG_VERDICT_GOOD);
	assert_figure(q, "weights_that_gain", 1);
	assert_figure(q, "largest_gain", 15);
	assert_figure(q, "its_spread", 100);
	q = answer(c, "precision.calibration");
	assert_int_equal(q->verdict, RG_VERDICT_ATTENTION); /* held against nothing else */
	assert_figure(q, "most_clipped", 0.002);
	rg_checklist_free(c);
	rg_analysis_free(analysis);

	ops[1].sqnr_db = 5;
	ops[1].drifted = 0.3;
	z.validation_samples = 4;
	z.weights = "per tensor";
	c = check(m);
	check_rules(c);
	assert_int_equal(answer(c, "precision.need")->verdict, RG_VERDICT_PROBLEM);
	assert_int_equal(answer(c, "precision.granularity")->verdict, RG_VERDICT_ATTENTION);
	assert_int_equal(answer(c, "precision.calibration")->verdict, RG_VERDICT_PROBLEM);
	assert_figure(answer(c, "precision.calibration"), "most_drifted", 0.3);
	rg_checklist_free(c);
	rg_analysis_free(analysis);

	ops[0].clipped = ops[1].clipped = ops[1].drifted = NAN; /* nothing known of ranges */
	ops[0].sqnr_db = ops[1].sqnr_db = NAN;
	c = check(m);
	check_rules(c);
	assert_int_equal(answer(c, "precision.calibration")->verdict, RG_VERDICT_UNKNOWN);
	assert_int_equal(answer(c, "precision.need")->verdict, RG_VERDICT_UNKNOWN);
	done(m, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evidence_names_the_database),
		cmocka_unit_test(bandwidth_agrees_with_the_bounds),
		cmocka_unit_test(answers_follow_the_facts),
		cmocka_unit_test(dynamic_and_missing_kernels),
		cmocka_unit_test(dimensions_and_changes),
		cmocka_unit_test(a_beaten_roof_is_never_good_news),
		cmocka_unit_test(an_empty_recording_is_unknown_and_says_why),
		cmocka_unit_test(unknown_costs_are_told),
		cmocka_unit_test(no_ceilings_leave_the_bound_open),
		cmocka_unit_test(bound_inputs_and_constant_steps_are_seen),
		cmocka_unit_test(fusion_answers_come_from_the_notes),
		cmocka_unit_test(fusion_notes_are_read),
		cmocka_unit_test(evidence_queries_are_valid),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(precision_is_what_was_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
