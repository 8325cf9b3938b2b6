/*
 * What is said of the memory of a plan, held against the plan and against plain
 * step-by-step counting, and TensorFlow Lite Micro's planner against a second
 * writing of its algorithm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/memory.h"
#include "tests/compile/make-graph.h"

static struct rg_memory *look(const struct rg_plan *p, enum rg_planner planner, const char *strategy, int64_t capacity)
{
	struct rg_memory_options o = { planner, strategy, capacity, -1 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_memory *m;

	if (rg_memory_of(p, &o, &m, &err))
		fail_msg("%s", err.message);
	return m;
}

static bool alive(const struct rg_memory_buffer *q, int step)
{
	return q->first_step <= step && step <= q->last_step;
}

/* Peak and first spill, counted step by step. */
static void check_steps(const struct rg_memory *m)
{
	int64_t most = 0;
	int s, i, peak = -1, spill = -1;
	int64_t over = 0;

	for (s = 0; s < m->n_steps; s++) {
		int64_t sum = 0, top = 0;

		for (i = 0; i < m->n_buffers; i++) {
			const struct rg_memory_buffer *q = &m->buffers[i];

			if (!alive(q, s) || q->size_bytes == 0)
				continue;
			sum += q->size_bytes;
			if (q->offset_bytes + q->size_bytes > top)
				top = q->offset_bytes + q->size_bytes;
		}
		if (sum > most) {
			most = sum;
			peak = s;
		}
		if (spill < 0 && m->capacity_bytes >= 0 && top > m->capacity_bytes) {
			spill = s;
			over = top - m->capacity_bytes;
		}
	}
	assert_int_equal(m->bound_bytes, most);
	assert_int_equal(m->peak_step, peak);
	assert_int_equal(m->spill_step, spill);
	if (spill >= 0)
		assert_int_equal(m->spill_bytes, over);
}

static void test_as_planned(void **state)
{
	uint64_t seed;

	for (seed = 0; seed < 60; seed++) {
		struct rg_graph *g = make_random(seed, 5 + (int)seed);
		struct rg_plan *p = make_plan(g, 1);
		struct rg_memory *m = look(p, RG_PLANNER_RIDGE, NULL, p->arena_bytes);
		int i, n = 0, last;

		assert_int_equal(m->height_bytes, p->arena_bytes);
		assert_int_equal(m->bound_bytes, p->arena_lower_bound_bytes);
		assert_int_equal(m->peak_step, p->peak_step);
		assert_string_equal(m->made_by, p->arena_made_by);
		assert_int_equal(m->spill_step, -1);
		assert_int_equal(m->n_steps, p->n_steps);
		for (i = 0; i < p->n_tensors; i++) {
			const struct rg_plan_tensor *t = &p->tensors[i];

			if (t->place != RG_PLACE_ARENA || t->alias_of >= 0 || t->over >= 0)
				continue;
			for (last = i; p->tensors[last].handed_to >= 0;)
				last = p->tensors[last].handed_to;
			assert_string_equal(m->buffers[n].name, g->values[i].name);
			assert_int_equal(m->buffers[n].offset_bytes, t->offset_bytes);
			assert_int_equal(m->buffers[n].size_bytes, (t->size_bytes + 63) / 64 * 64);
			assert_int_equal(m->buffers[n].first_step, t->first_step);
			assert_int_equal(m->buffers[n++].last_step, p->tensors[last].last_step);
		}
		for (i = 0; i < p->n_steps; i++)
			n += p->steps[i].scratch_bytes > 0;
		assert_int_equal(n, m->n_buffers);
		check_steps(m);
		rg_memory_free(m);
		rg_plan_free(p);
		rg_graph_free(g);
	}
}

/* Where a smaller memory spills, for every strategy, at every tenth of the way up. */
static void test_capacity(void **state)
{
	static const char *const strategies[] = { NULL, "naive", "greedy-birth", "greedy-size", "search", "portfolio" };
	uint64_t seed;
	size_t k;
	int tenth;

	for (seed = 100; seed < 112; seed++) {
		struct rg_graph *g = make_random(seed, 40);
		struct rg_plan *p = make_plan(g, 1);

		for (k = 0; k < sizeof(strategies) / sizeof(strategies[0]); k++) {
			for (tenth = 0; tenth <= 10; tenth++) {
				struct rg_memory *m = look(p, RG_PLANNER_RIDGE, strategies[k],
							   p->arena_bytes * tenth / 10);

				check_steps(m);
				if (strategies[k])
					assert_string_equal(m->made_by, strategies[k]);
				if (m->spill_step < 0)
					assert_true(m->height_bytes <= m->capacity_bytes);
				else
					assert_true(m->height_bytes > m->capacity_bytes);
				rg_memory_free(m);
			}
		}
		rg_plan_free(p);
		rg_graph_free(g);
	}
}

static void test_table(void **state)
{
	struct rg_graph *g = make_random(5, 60);
	struct rg_plan *p = make_plan(g, 1);
	struct rg_memory *m = look(p, RG_PLANNER_RIDGE, NULL, -1);
	int i;

	assert_int_equal(m->n_tries, RG_MEMORY_TRIES);
	assert_string_equal(m->tries[0].strategy, "naive");
	assert_string_equal(m->tries[m->n_tries - 1].strategy, "search");
	for (i = 0; i < m->n_tries; i++) {
		struct rg_memory *one = look(p, RG_PLANNER_RIDGE, m->tries[i].strategy, -1);

		assert_int_equal(one->height_bytes, m->tries[i].height_bytes);
		assert_true(one->height_bytes >= m->bound_bytes);
		rg_memory_free(one);
	}
	rg_memory_free(m);
	rg_plan_free(p);
	rg_graph_free(g);
}

/*
 * TensorFlow Lite Micro's greedy planner, written a second time: buffers by
 * falling size, those of one size in order of first use; a list of the placed ones by
 * offset is walked for the first gap between two that live at the same time.
 */
struct tflm {
	int64_t size, offset;
	int first, last, index;
};

static int by_size_then_use(const void *pa, const void *pb)
{
	const struct tflm *a = pa, *b = pb;

	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	if (a->first != b->first)
		return a->first - b->first;
	return a->index - b->index;
}

static void tflm_place(struct tflm *t, int n)
{
	int *list = calloc((size_t)n + 1, sizeof(*list)), n_list = 0, i, k;

	qsort(t, (size_t)n, sizeof(*t), by_size_then_use);
	for (i = 0; i < n; i++) {
		int64_t at = 0;

		for (k = 0; k < n_list; k++) {
			const struct tflm *q = &t[list[k]];

			if (q->last < t[i].first || t[i].last < q->first)
				continue;
			if (q->offset - at >= t[i].size)
				break;
			if (q->offset + q->size > at)
				at = q->offset + q->size;
		}
		t[i].offset = at;
		for (k = n_list++; k > 0 && t[list[k - 1]].offset > at; k--)
			list[k] = list[k - 1];
		list[k] = i;
	}
	free(list);
}

static void test_tflm(void **state)
{
	uint64_t seed;
	int with_inputs = 0;

	for (seed = 0; seed < 60; seed++) {
		struct rg_graph *g = make_random(seed + 500, 10 + (int)seed);
		struct rg_plan *p = make_plan(g, 1);
		struct rg_memory *m = look(p, RG_PLANNER_TFLM, NULL, 1000);
		struct tflm *t = calloc((size_t)p->n_tensors + 1, sizeof(*t));
		int64_t height = 0;
		int i, n = 0;

		/* from the plan alone: values and inputs, no scratch */
		for (i = 0; i < p->n_tensors; i++) {
			const struct rg_plan_tensor *v = &p->tensors[i];
			bool input = v->place == RG_PLACE_INPUT && v->first_step >= 0;

			if (v->alias_of >= 0 || (v->place != RG_PLACE_ARENA && !input))
				continue;
			with_inputs += input;
			/* it writes nothing in place: what takes over still reads it */
			t[n] = (struct tflm){ (v->size_bytes + 15) / 16 * 16, -1, v->first_step,
					      v->last_step + (v->handed_to >= 0), n };
			n++;
		}
		tflm_place(t, n);
		assert_int_equal(m->n_buffers, n);
		assert_int_equal(m->align_bytes, 16);
		for (i = 0; i < n; i++) {
			assert_false(m->buffers[i].scratch);
			assert_int_equal(m->buffers[t[i].index].offset_bytes, t[i].offset);
			height = t[i].offset + t[i].size > height ? t[i].offset + t[i].size : height;
		}
		assert_int_equal(m->height_bytes, height);
		check_steps(m);
		free(t);
		rg_memory_free(m);
		rg_plan_free(p);
		rg_graph_free(g);
	}
	assert_true(with_inputs > 60);
}

static void test_refusals(void **state)
{
	struct rg_graph *g = make_random(1, 10);
	struct rg_plan *p = make_plan(g, 1);
	struct rg_memory_options o = { RG_PLANNER_RIDGE, "best", -1, -1 };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_memory *m;
	enum rg_planner planner;

	assert_int_equal(rg_memory_of(p, &o, &m, &err), RG_EUSAGE);
	assert_non_null(strstr(err.message, "'best'"));
	assert_null(m);
	rg_error_clear(&err);
	o = (struct rg_memory_options){ RG_PLANNER_TFLM, "naive", -1, -1 };
	assert_int_equal(rg_memory_of(p, &o, &m, &err), RG_EUSAGE);
	assert_non_null(strstr(err.message, "tflm"));
	assert_true(rg_planner_parse("tflm", &planner));
	assert_int_equal(planner, RG_PLANNER_TFLM);
	assert_string_equal(rg_planner_name(RG_PLANNER_RIDGE), "ridge");
	assert_false(rg_planner_parse("TFLM", &planner));
	rg_plan_free(p);
	rg_graph_free(g);
}

static void test_no_memory(void **state)
{
	static const char *const strategies[] = { NULL, "search" };
	struct rg_graph *g = make_random(2, 30);
	struct rg_plan *p = make_plan(g, 1);
	int fails, rc = -1, k;

	for (k = 0; k < 2; k++) {
		struct rg_memory_options o = { RG_PLANNER_RIDGE, strategies[k], 4096, -1 };

		for (fails = 1; fails < 1000; fails++) {
			struct rg_error err = RG_ERROR_INIT;
			struct rg_memory *m;
			bool failed;

			rg_alloc_fail_at((uint64_t)fails);
			rc = rg_memory_of(p, &o, &m, &err);
			failed = rg_alloc_did_fail();
			rg_alloc_fail_at(0);
			if (failed) {
				assert_int_equal(rc, -ENOMEM);
				assert_null(m);
			}
			rg_memory_free(m);
			if (!failed)
				break;
		}
		assert_int_equal(rc, 0);
		assert_true(fails > 20);
	}
	rg_plan_free(p);
	rg_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_planned), cmocka_unit_test(test_capacity), cmocka_unit_test(test_table),
		cmocka_unit_test(test_tflm),	   cmocka_unit_test(test_refusals), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
