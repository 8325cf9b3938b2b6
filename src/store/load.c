/*
 * Loading one run. The file may have been changed by hand or be damaged, so
 * everything that others use as an index is checked here, once, and everything
 * behind this door may rely on it: indices are in range, times do not run
 * backward, counts are not negative.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"

/* Longest stretch of time that is believed: 115 days. Bounds sums, too. */
#define MAX_DURATION_NS INT64_C(10000000000000000)

struct load {
	struct rg_store *s;
	struct rg_recording *r;
	int64_t run;
	const char *table;
	sqlite3_stmt *st;
	int64_t at; /* rows read so far */
	struct rg_error *err;
	int rc;
};

static void damaged(struct load *l, const char *why)
{
	if (l->rc)
		return;
	rg_error_set(l->err, -EBADMSG, "run %" PRId64 " is damaged: row %" PRId64 " of '%s': %s", l->run,
		     l->at, l->table, why);
	rg_error_hint(l->err, "the database was changed by hand or broke; record the run again");
	l->rc = rg_error_at(l->err, "%s", l->s->path);
}

/* Opens the rows of a table and makes room for them: an array of `count`
 * elements, or NULL when there are none or on failure. */
static void *open_rows(struct load *l, const char *table, const char *sql_count, const char *sql,
		       size_t size_bytes, int64_t *count)
{
	void *rows = NULL;

	sqlite3_finalize(l->st);
	l->st = NULL;
	l->table = table;
	l->at = 0;
	*count = 0;
	if (l->rc)
		return NULL;
	l->rc = rg_store_get_i64(l->s, sql_count, l->run, 0, count, l->err);
	if (!l->rc && (*count < 0 || *count > INT32_MAX))
		damaged(l, "too many rows");
	if (!l->rc)
		l->rc = rg_store_prepare(l->s, sql, &l->st, l->err);
	if (!l->rc) {
		sqlite3_bind_int64(l->st, 1, l->run);
		rows = rg_arena_alloc(l->r->arena, (size_t)*count, size_bytes);
		if (!rows)
			l->rc = rg_error_nomem(l->err, (size_t)*count * size_bytes);
	}
	if (l->rc)
		*count = 0;
	return rows;
}

#define OPEN_ROWS(l, table, columns, order, size, count)                                                     \
	open_rows(l, table, "SELECT COUNT(*) FROM " table " WHERE run_id = ?1",                              \
		  "SELECT " columns " FROM " table " WHERE run_id = ?1 ORDER BY " order, size, count)

/* Whether another row stands ready. */
static bool next_row(struct load *l, int64_t count)
{
	int rc;

	if (l->rc || l->at >= count)
		return false;
	rc = sqlite3_step(l->st);
	if (rc == SQLITE_ROW) {
		l->at++;
		return true;
	}
	/* Fewer rows than counted in the same snapshot: an index and its table differ. */
	if (rc == SQLITE_DONE)
		damaged(l, "a row is missing");
	else
		l->rc = rg_store_fail(l->s, rc, l->err, "reading '%s' of run %" PRId64, l->table, l->run);
	return false;
}

static const char *text(struct load *l, int at)
{
	const char *t = (const char *)sqlite3_column_text(l->st, at);
	const char *copy;

	/* NULL of a text that is there means that SQLite had no memory for it. */
	if (!t && sqlite3_column_type(l->st, at) != SQLITE_NULL && !l->rc)
		l->rc = rg_store_fail(l->s, SQLITE_NOMEM, l->err, "reading '%s'", l->table);
	copy = rg_arena_strdup(l->r->arena, t ? t : "");
	if (!copy && !l->rc)
		l->rc = rg_error_nomem(l->err, t ? strlen(t) + 1 : 1);
	return copy ? copy : "";
}

/* An integer that must lie in [lo, hi]. */
static int bounded(struct load *l, int at, int64_t lo, int64_t hi, const char *why)
{
	int64_t v = sqlite3_column_int64(l->st, at);

	if (sqlite3_column_type(l->st, at) != SQLITE_INTEGER || v < lo || v > hi) {
		damaged(l, why);
		return (int)lo;
	}
	return (int)v;
}

static int bounded_or_none(struct load *l, int at, int64_t hi, const char *why)
{
	return sqlite3_column_type(l->st, at) == SQLITE_NULL ? -1 : bounded(l, at, 0, hi, why);
}

static void times(struct load *l, int at, int64_t *start_ns, int64_t *end_ns)
{
	*start_ns = sqlite3_column_int64(l->st, at);
	*end_ns = sqlite3_column_int64(l->st, at + 1);
	if (sqlite3_column_type(l->st, at) != SQLITE_INTEGER ||
	    sqlite3_column_type(l->st, at + 1) != SQLITE_INTEGER || *start_ns < 0 || *end_ns < *start_ns ||
	    *end_ns - *start_ns > MAX_DURATION_NS)
		damaged(l, "its times run backward or are absurd");
}

static void load_facts(struct load *l)
{
	int64_t n;
	struct rg_fact *v =
	    OPEN_ROWS(l, "fact", "key, value, reason, unit, provenance, method", "key", sizeof(*v), &n);

	l->r->facts = v;
	l->r->n_facts = (int)n;
	for (struct rg_fact *f = v; next_row(l, n); f++) {
		f->key = text(l, 0);
		f->text = "";
		f->real = NAN;
		f->integer = -1;
		switch (sqlite3_column_type(l->st, 1)) {
		case SQLITE_TEXT:
			f->kind = 0;
			f->text = text(l, 1);
			break;
		case SQLITE_INTEGER:
			f->kind = 1;
			f->integer = sqlite3_column_int64(l->st, 1);
			break;
		case SQLITE_FLOAT:
			f->kind = 2;
			f->real = sqlite3_column_double(l->st, 1);
			break;
		case SQLITE_NULL:
			f->kind = 3;
			f->text = text(l, 2);
			break;
		default:
			damaged(l, "its value is neither a number nor a text");
		}
		f->unit = text(l, 3);
		f->provenance = rg_provenance_parse(text(l, 4));
		f->method = text(l, 5);
	}
}

static void load_ceilings(struct load *l)
{
	int64_t n;
	struct rg_ceiling_row *v = OPEN_ROWS(
	    l, "ceiling",
	    "kind, level, dtype, isa, threads, value, low, high, samples, unit, measured_when, method, "
	    "working_set_bytes, provenance",
	    "ceiling_id", sizeof(*v), &n);

	l->r->ceilings = v;
	l->r->n_ceilings = (int)n;
	for (struct rg_ceiling_row *c = v; next_row(l, n); c++) {
		c->kind = text(l, 0);
		c->level = text(l, 1);
		c->dtype = text(l, 2);
		c->isa = text(l, 3);
		c->threads = bounded(l, 4, 1, 65536, "its number of threads is absurd");
		c->value = rg_store_column_real(l->st, 5);
		c->low = rg_store_column_real(l->st, 6);
		c->high = rg_store_column_real(l->st, 7);
		c->samples = bounded(l, 8, 0, INT32_MAX, "its number of samples is absurd");
		c->unit = text(l, 9);
		c->when = text(l, 10);
		c->method = text(l, 11);
		c->working_set_bytes = rg_store_column_count(l->st, 12);
		c->provenance = rg_provenance_parse(text(l, 13));
		if (c->value <= 0 || isinf(c->value))
			damaged(l, "a ceiling must be above zero and finite");
	}
}

static void load_steps(struct load *l)
{
	int64_t n;
	struct rg_step_row *v = OPEN_ROWS(l, "step",
					  "step, name, op_type, domain, op_version, op_kind, kernel, "
					  "kernel_reason, dtype, shape, flops, iops, "
					  "sfu, executed_flops, read_bytes, write_bytes, weight_bytes, "
					  "params, scratch_bytes, prepared_bytes, "
					  "gemm_m, gemm_n, gemm_k, special_form, scratch_offset_bytes",
					  "step", sizeof(*v), &n);

	l->r->steps = v;
	l->r->n_steps = (int)n;
	for (struct rg_step_row *s = v; next_row(l, n); s++) {
		int64_t *const counts[] = {
		    &s->flops,       &s->iops,         &s->sfu,    &s->executed_flops, &s->read_bytes,
		    &s->write_bytes, &s->weight_bytes, &s->params, &s->scratch_bytes,  &s->prepared_bytes,
		    &s->gemm_m,      &s->gemm_n,       &s->gemm_k,
		};

		s->index = bounded(l, 0, s - v, s - v, "steps are not numbered 0, 1, 2, ...");
		s->name = text(l, 1);
		s->op_type = text(l, 2);
		s->domain = text(l, 3);
		s->op_version = bounded(l, 4, 0, INT32_MAX, "its operator version is absurd");
		s->op_kind = text(l, 5);
		s->kernel = text(l, 6);
		s->kernel_reason = text(l, 7);
		s->dtype = text(l, 8);
		s->shape = text(l, 9);
		for (int i = 0; i < 13; i++)
			*counts[i] = rg_store_column_count(l->st, 10 + i);
		s->special_form = sqlite3_column_int64(l->st, 23) != 0;
		s->scratch_offset_bytes = rg_store_column_count(l->st, 24);
	}
}

static void load_tensors(struct load *l)
{
	int steps = l->r->n_steps;
	int64_t n;
	struct rg_tensor_row *v = OPEN_ROWS(l, "tensor",
					    "tensor, name, dtype, shape, size_bytes, place, offset_bytes, "
					    "alias_of, first_step, last_step, is_input, "
					    "is_output, is_param",
					    "tensor", sizeof(*v), &n);

	l->r->tensors = v;
	l->r->n_tensors = (int)n;
	for (struct rg_tensor_row *t = v; next_row(l, n); t++) {
		t->id = bounded(l, 0, t - v, t - v, "tensors are not numbered 0, 1, 2, ...");
		t->name = text(l, 1);
		t->dtype = text(l, 2);
		t->shape = text(l, 3);
		t->size_bytes = rg_store_column_count(l->st, 4);
		t->place = text(l, 5);
		t->offset_bytes = rg_store_column_count(l->st, 6);
		t->alias_of = bounded_or_none(l, 7, n - 1, "it is an alias of no tensor");
		/* A run that broke early has tensors and no steps. A graph output
		 * lives until after the last step. */
		t->first_step = steps ? bounded_or_none(l, 8, steps, "it lives outside the steps") : -1;
		t->last_step = steps ? bounded_or_none(l, 9, steps, "it lives outside the steps") : -1;
		if (steps && t->first_step == steps)
			t->first_step = steps - 1;
		if (steps && t->last_step == steps)
			t->last_step = steps - 1;
		t->is_input = sqlite3_column_int64(l->st, 10) != 0;
		t->is_output = sqlite3_column_int64(l->st, 11) != 0;
		t->is_param = sqlite3_column_int64(l->st, 12) != 0;
	}
}

/* Aliases must lead to a tensor that is none: whoever follows them must arrive. */
static void check_aliases(struct load *l)
{
	int n = l->r->n_tensors;
	int *walk;

	if (l->rc || n == 0)
		return;
	walk = rg_arena_alloc(l->r->arena, (size_t)n, sizeof(*walk)); /* 1 + where the walk began */
	if (!walk) {
		l->rc = rg_error_nomem(l->err, (size_t)n * sizeof(*walk));
		return;
	}
	for (int i = 0; i < n && !l->rc; i++) {
		for (int t = i; t >= 0 && !l->rc; t = l->r->tensors[t].alias_of) {
			if (walk[t] == i + 1)
				damaged(l, "aliases lead in a circle");
			else if (walk[t])
				break;
			walk[t] = i + 1;
		}
	}
}

static void load_joins(struct load *l)
{
	int64_t n, steps = l->r->n_steps, tensors = l->r->n_tensors;
	struct rg_io_row *io;
	struct rg_edge_row *e;

	io = OPEN_ROWS(l, "step_io", "step, slot, is_output, tensor", "step, is_output, slot", sizeof(*io),
		       &n);
	l->r->io = io;
	l->r->n_io = (int)n;
	for (; next_row(l, n); io++) {
		io->step = bounded(l, 0, 0, steps - 1, "there is no such step");
		io->slot = bounded(l, 1, 0, INT32_MAX, "its position is absurd");
		io->output = sqlite3_column_int64(l->st, 2) != 0;
		io->tensor = bounded(l, 3, 0, tensors - 1, "there is no such tensor");
	}
	e = OPEN_ROWS(l, "data_edge", "from_step, to_step, tensor", "from_step, to_step, tensor", sizeof(*e),
		      &n);
	l->r->edges = e;
	l->r->n_edges = (int)n;
	for (; next_row(l, n); e++) {
		e->from_step = bounded(l, 0, 0, steps - 1, "there is no such step");
		e->to_step = bounded(l, 1, (int64_t)e->from_step + 1, steps - 1, "it does not lead forward");
		e->tensor = bounded(l, 2, 0, tensors - 1, "there is no such tensor");
	}
}

static void load_times(struct load *l)
{
	int64_t n;
	struct rg_phase_row *p;
	struct rg_iteration_row *v;

	p = OPEN_ROWS(l, "phase", "name, start_ns, end_ns", "start_ns, phase_id", sizeof(*p), &n);
	l->r->phases = p;
	l->r->n_phases = (int)n;
	for (; next_row(l, n); p++) {
		p->name = text(l, 0);
		times(l, 1, &p->start_ns, &p->end_ns);
	}
	v = OPEN_ROWS(l, "iteration", "iteration, pass, hook_on, start_ns, end_ns", "iteration", sizeof(*v),
		      &n);
	l->r->iterations = v;
	l->r->n_iterations = (int)n;
	for (struct rg_iteration_row *i = v; next_row(l, n); i++) {
		i->index = bounded(l, 0, i - v, i - v, "iterations are not numbered 0, 1, 2, ...");
		i->pass = text(l, 1);
		i->hook_on = sqlite3_column_int64(l->st, 2) != 0;
		times(l, 3, &i->start_ns, &i->end_ns);
	}
}

static int by_iteration_and_start(const void *a, const void *b)
{
	const struct rg_span_row *x = a, *y = b;

	if (x->iteration != y->iteration)
		return x->iteration < y->iteration ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->whole != y->whole) /* the whole before its shares */
		return x->whole > y->whole ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

static void load_spans(struct load *l)
{
	int64_t n;
	struct rg_span_row *v = OPEN_ROWS(l, "span", "iteration, step, lane, whole, start_ns, end_ns",
					  "iteration, seq", sizeof(*v), &n);

	l->r->spans = v;
	l->r->n_spans = n;
	for (struct rg_span_row *s = v; next_row(l, n); s++) {
		s->iteration =
		    bounded(l, 0, 0, (int64_t)l->r->n_iterations - 1, "there is no such iteration");
		s->step = bounded(l, 1, 0, (int64_t)l->r->n_steps - 1, "there is no such step");
		s->lane = bounded(l, 2, 0, 65535, "its lane is absurd");
		s->whole = sqlite3_column_int64(l->st, 3) != 0;
		times(l, 4, &s->start_ns, &s->end_ns);
	}
	if (n > 1)
		qsort(v, (size_t)n, sizeof(*v), by_iteration_and_start);
}

static void load_notes(struct load *l)
{
	int64_t n;
	struct rg_note_row *v = OPEN_ROWS(l, "note", "kind, subject, text", "note_id", sizeof(*v), &n);

	l->r->notes = v;
	l->r->n_notes = (int)n;
	for (; next_row(l, n); v++) {
		v->kind = text(l, 0);
		v->subject = text(l, 1);
		v->text = text(l, 2);
	}
}

int rg_store_load(struct rg_store *s, int64_t run, struct rg_recording **out, struct rg_error *err)
{
	struct rg_arena *arena = rg_arena_new();
	struct load l = {.s = s, .run = run, .err = err};

	*out = NULL;
	if (!arena)
		return rg_error_nomem(err, sizeof(*l.r));
	l.r = rg_arena_alloc(arena, 1, sizeof(*l.r));
	if (!l.r) {
		rg_arena_free(arena);
		return rg_error_nomem(err, sizeof(*l.r));
	}
	l.r->arena = arena;
	/* One snapshot, so that a run that is being recorded is seen at one moment. */
	l.rc = rg_store_exec(s, "BEGIN", err);
	if (!l.rc) {
		l.rc = rg_store_read_run(s, run, arena, &l.r->run, err);
		load_facts(&l);
		load_ceilings(&l);
		load_steps(&l); /* before whatever refers to steps */
		load_tensors(&l);
		check_aliases(&l);
		load_joins(&l);
		load_times(&l);
		load_spans(&l);
		load_notes(&l);
		if (!l.rc)
			l.rc = rg_store_read_quantization(s, run, arena, &l.r->quantization, err);
		sqlite3_finalize(l.st);
		rg_store_rollback(s); /* nothing was written: this ends the snapshot */
	}
	if (l.rc) {
		rg_arena_free(arena);
		return l.rc;
	}
	*out = l.r;
	return 0;
}

void rg_recording_free(struct rg_recording *r)
{
	if (r)
		rg_arena_free(r->arena);
}

const struct rg_fact *rg_recording_fact(const struct rg_recording *r, const char *key)
{
	for (int i = 0; i < r->n_facts; i++)
		if (strcmp(r->facts[i].key, key) == 0)
			return &r->facts[i];
	return NULL;
}

double rg_recording_number(const struct rg_recording *r, const char *key)
{
	const struct rg_fact *f = rg_recording_fact(r, key);

	if (f && f->kind == 1)
		return (double)f->integer;
	return f && f->kind == 2 ? f->real : NAN;
}

const char *rg_recording_text(const struct rg_recording *r, const char *key, const char *dflt)
{
	const struct rg_fact *f = rg_recording_fact(r, key);

	return f && f->kind == 0 ? f->text : dflt;
}
