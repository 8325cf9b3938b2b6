/*
 * The buffers of a plan, as a planner sees them, placed by every strategy.
 */
#include "compile/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "compile/arena.h"
#include "compile/internal.h"
#include "compile/strategies.h"

#define TFLM_ALIGN_BYTES 16

static const char *const names[RG_PLANNER_COUNT] = {
	[RG_PLANNER_RIDGE] = "ridge",
	[RG_PLANNER_TFLM] = "tflm",
};

const char *rg_planner_name(enum rg_planner p)
{
	return names[p];
}

bool rg_planner_parse(const char *name, enum rg_planner *p)
{
	int i;

	for (i = 0; i < RG_PLANNER_COUNT; i++) {
		if (strcmp(name, names[i]) == 0) {
			*p = (enum rg_planner)i;
			return true;
		}
	}
	return false;
}

struct survey {
	const struct rg_plan *p;
	const struct rg_memory_options *o;
	struct rg_memory *m;
	struct rg_buffer *b;  /* m->n_buffers, in the same order */
	int *maker;           /* by value: the first step that writes it, or -1 */
};

static char *copy(struct survey *s, const char *text, struct rg_error *err)
{
	char *c = rg_arena_strdup(s->m->arena, text);

	if (!c)
		rg_error_nomem(err, strlen(text));
	return c;
}

static const struct rg_node *node_of(const struct rg_plan *p, int step)
{
	return &p->graph->nodes[p->steps[step].node];
}

static int name_steps(struct survey *s, struct rg_error *err)
{
	struct rg_memory *m = s->m;
	int i;

	m->n_steps = s->p->n_steps;
	m->n_dynamic = s->p->n_dynamic;
	m->step_names = rg_arena_alloc(m->arena, (size_t)m->n_steps + 1, sizeof(m->step_names[0]));
	m->step_types = rg_arena_alloc(m->arena, (size_t)m->n_steps + 1, sizeof(m->step_types[0]));
	if (!m->step_names || !m->step_types)
		return rg_error_nomem(err, ((size_t)m->n_steps + 1) * sizeof(m->step_names[0]));
	for (i = 0; i < m->n_steps; i++) {
		m->step_names[i] = copy(s, node_of(s->p, i)->name, err);
		m->step_types[i] = copy(s, node_of(s->p, i)->op_type, err);
		if (!m->step_names[i] || !m->step_types[i])
			return err->code;
	}
	return 0;
}

static int add_value(struct survey *s, int value, struct rg_error *err)
{
	const struct rg_plan_tensor *t = &s->p->tensors[value];
	bool tflm = s->o->planner == RG_PLANNER_TFLM; /* which writes over nothing */
	int last = tflm ? t->last_step + (t->handed_to >= 0) : rg_plan_memory_last(s->p, value);
	struct rg_memory_buffer *q = &s->m->buffers[s->m->n_buffers];
	int maker = s->maker[value];
	char shape[160];

	*q = (struct rg_memory_buffer){ .name = copy(s, s->p->graph->values[value].name, err),
					.dtype = rg_dtype_name(t->dtype),
					.shape = copy(s, rg_shape_text(shape, &t->shape), err),
					.made_by = maker >= 0 ? s->m->step_types[maker] : "",
					.first_step = t->first_step, .last_step = last };
	if (!q->name || !q->shape)
		return err->code;
	s->b[s->m->n_buffers] = rg_plan_buffer(t->size_bytes, t->first_step, last, s->m->align_bytes);
	s->b[s->m->n_buffers].offset_bytes = t->place == RG_PLACE_ARENA ? t->offset_bytes : -1;
	q->size_bytes = s->b[s->m->n_buffers++].size_bytes;
	return 0;
}

static void add_scratch(struct survey *s, int step)
{
	struct rg_memory_buffer *q = &s->m->buffers[s->m->n_buffers];

	*q = (struct rg_memory_buffer){ .name = s->m->step_names[step], .made_by = s->m->step_types[step],
					.dtype = "", .shape = "", .scratch = true,
					.first_step = step, .last_step = step };
	s->b[s->m->n_buffers] = rg_plan_buffer(s->p->steps[step].scratch_bytes, step, step, s->m->align_bytes);
	s->b[s->m->n_buffers].offset_bytes = s->p->steps[step].scratch_offset_bytes;
	q->size_bytes = s->b[s->m->n_buffers++].size_bytes;
}

/* In the order in which the plan placed them, since that decides among equals. */
static int list_buffers(struct survey *s, struct rg_error *err)
{
	const struct rg_plan *p = s->p;
	bool tflm = s->o->planner == RG_PLANNER_TFLM;
	int i, rc = 0;

	for (i = 0; i < p->n_tensors && !rc; i++) {
		const struct rg_plan_tensor *t = &p->tensors[i];
		bool is_input = tflm && t->place == RG_PLACE_INPUT && t->alias_of < 0 && t->first_step >= 0;

		if (tflm ? rg_plan_needs_memory(t) || is_input : rg_plan_begins_buffer(t))
			rc = add_value(s, i, err);
	}
	for (i = 0; i < p->n_steps && !rc && s->o->planner == RG_PLANNER_RIDGE; i++)
		if (p->steps[i].scratch_bytes > 0)
			add_scratch(s, i);
	return rc;
}

static void find_makers(struct survey *s)
{
	int i, k;

	for (i = 0; i < s->p->n_tensors; i++)
		s->maker[i] = -1;
	for (i = 0; i < s->p->n_steps; i++)
		for (k = 0; k < s->p->steps[i].n_out; k++) {
			int value = s->p->steps[i].out[k], *maker;

			/* several steps may write parts of one value: the first begins it */
			maker = value >= 0 ? &s->maker[rg_plan_root(s->p, value)] : NULL;
			if (maker && *maker < 0)
				*maker = i;
		}
}

/* One strategy by name; *height_bytes -1: the search found nothing. */
static int place(struct survey *s, struct rg_buffer *b, const char *name, int64_t *height_bytes, struct rg_error *err)
{
	enum rg_strategy strategy;

	if (strcmp(name, "search") == 0)
		return rg_arena_search_low(b, s->m->n_buffers, s->m->bound_bytes, INT64_MAX, s->o->time_limit_ns,
					   height_bytes, err);
	if (!rg_strategy_parse(name, &strategy)) {
		rg_error_set(err, RG_EUSAGE, "there is no strategy '%.60s'", name);
		return rg_error_hint(err, "one of search, portfolio, greedy-lowest, greedy-lowest-back, greedy-size, greedy-size-best, greedy-birth, naive");
	}
	return rg_strategy_place(strategy, b, s->m->n_buffers, height_bytes, NULL, err);
}

static int try_all(struct survey *s, struct rg_error *err)
{
	size_t n = (size_t)s->m->n_buffers;
	struct rg_buffer *b = rg_calloc(n + 1, sizeof(*b));
	int i, rc = 0;

	if (!b)
		return rg_error_nomem(err, (n + 1) * sizeof(*b));
	for (i = 0; i < RG_MEMORY_TRIES && !rc; i++) {
		struct rg_memory_try *t = &s->m->tries[s->m->n_tries++];
		uint64_t begin_ns = rg_clock_now_ns();

		t->strategy = i < RG_STRATEGY_COUNT ? rg_strategy_name((enum rg_strategy)i) : "search";
		memcpy(b, s->b, n * sizeof(*b));
		rc = place(s, b, t->strategy, &t->height_bytes, err);
		t->time_ns = rg_clock_now_ns() - begin_ns;
	}
	rg_free(b);
	return rc;
}

/* Offsets: as the plan has them, unless a strategy or another planner is asked for. */
static int choose(struct survey *s, struct rg_error *err)
{
	const char *name = s->o->planner == RG_PLANNER_TFLM ? "greedy-size" : s->o->strategy;
	int i, rc = 0;

	s->m->made_by = name ? copy(s, name, err) : s->p->arena_made_by;
	if (!s->m->made_by)
		return err->code;
	if (name)
		rc = place(s, s->b, name, &s->m->height_bytes, err);
	else
		s->m->height_bytes = s->p->arena_bytes;
	if (rc)
		return rc;
	if (s->m->height_bytes < 0) {
		rg_error_set(err, -ETIME, "the search found no placement within its limit");
		return rg_error_hint(err, "give it more with --time-limit, or see what --strategy portfolio reaches");
	}
	for (i = 0; i < s->m->n_buffers; i++)
		s->m->buffers[i].offset_bytes = s->b[i].offset_bytes;
	return rg_buffers_check(s->b, s->m->n_buffers, s->m->height_bytes, err);
}

/* Step by step: the most alive, and the first that ends above the capacity. */
static int find_steps(struct survey *s, struct rg_error *err)
{
	struct rg_memory *m = s->m;
	int64_t *live = rg_calloc((size_t)m->n_steps + 1, sizeof(*live)), sum = 0, most = 0;
	int i;

	if (!live)
		return rg_error_nomem(err, ((size_t)m->n_steps + 1) * sizeof(*live));
	m->peak_step = m->spill_step = -1;
	for (i = 0; i < m->n_buffers; i++) {
		const struct rg_memory_buffer *q = &m->buffers[i];
		int64_t above = q->offset_bytes + q->size_bytes - m->capacity_bytes;

		live[q->first_step] += q->size_bytes;
		live[q->last_step + 1] -= q->size_bytes;
		if (m->capacity_bytes < 0 || above <= 0 || q->size_bytes == 0)
			continue;
		if (m->spill_step < 0 || q->first_step < m->spill_step) {
			m->spill_step = q->first_step;
			m->spill_bytes = above;
		} else if (q->first_step == m->spill_step && above > m->spill_bytes) {
			m->spill_bytes = above;
		}
	}
	for (i = 0; i < m->n_steps; i++) {
		sum += live[i];
		if (sum > most) {
			most = sum;
			m->peak_step = i;
		}
	}
	rg_free(live);
	return 0;
}

static int survey(struct survey *s, struct rg_error *err)
{
	struct rg_memory *m = s->m;
	size_t cap = (size_t)s->p->n_tensors + (size_t)s->p->n_steps + 1;
	int rc;

	m->planner = rg_planner_name(s->o->planner);
	m->align_bytes = s->o->planner == RG_PLANNER_TFLM ? TFLM_ALIGN_BYTES : RG_ARENA_ALIGN_BYTES;
	m->capacity_bytes = s->o->capacity_bytes;
	m->graph_order_bound_bytes = s->p->graph_order_bound_bytes;
	m->reordered = s->p->reordered;
	m->buffers = rg_arena_alloc(m->arena, cap, sizeof(m->buffers[0]));
	s->b = rg_calloc(cap, sizeof(*s->b));
	s->maker = rg_calloc(cap, sizeof(*s->maker));
	if (!m->buffers || !s->b || !s->maker)
		return rg_error_nomem(err, cap * sizeof(m->buffers[0]));
	find_makers(s);
	rc = name_steps(s, err);
	if (!rc)
		rc = list_buffers(s, err);
	if (!rc)
		rc = rg_buffers_validate(s->b, m->n_buffers, NULL, err);
	if (!rc)
		rc = rg_buffers_max_load(s->b, m->n_buffers, &m->bound_bytes, err);
	if (!rc)
		rc = choose(s, err);
	if (!rc)
		rc = try_all(s, err);
	return rc ? rc : find_steps(s, err);
}

int rg_memory_of(const struct rg_plan *p, const struct rg_memory_options *o, struct rg_memory **out,
		 struct rg_error *err)
{
	struct rg_arena *arena;
	struct survey s = { .p = p, .o = o };
	int rc;

	*out = NULL;
	if (o->strategy && o->planner != RG_PLANNER_RIDGE) {
		rg_error_set(err, RG_EUSAGE, "the planner %s has its own strategy", rg_planner_name(o->planner));
		return rg_error_hint(err, "leave --strategy or --planner out");
	}
	arena = rg_arena_new();
	if (!arena)
		return rg_error_nomem(err, sizeof(*s.m));
	s.m = rg_arena_alloc(arena, 1, sizeof(*s.m));
	if (!s.m) {
		rg_arena_free(arena);
		return rg_error_nomem(err, sizeof(*s.m));
	}
	s.m->arena = arena;
	rc = survey(&s, err);
	rg_free(s.b);
	rg_free(s.maker);
	if (rc)
		rg_memory_free(s.m);
	else
		*out = s.m;
	return rc;
}

void rg_memory_free(struct rg_memory *m)
{
	if (m)
		rg_arena_free(m->arena);
}
