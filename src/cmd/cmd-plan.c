/*
 * ridge plan: what a model needs of memory, or buffers from a CSV file, placed
 * into one memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/verbs.h"
#include "compile/buffers-csv.h"
#include "compile/search.h"
#include "compile/strategies.h"
#include "reports/report-memory.h"

#define DEFAULT_LIMIT_NS INT64_C(60000000000)

struct result {
	const char *made_by;
	int64_t bound_bytes, height_bytes;
	struct rg_search_stats stats;
	double seconds;
};

static int search(const struct rg_args *a, struct rg_buffer_table *t, struct result *r, struct rg_error *err)
{
	int64_t capacity = a->capacity_bytes >= 0 ? a->capacity_bytes : r->bound_bytes;
	enum rg_search_result result;

	r->made_by = "search";
	if (rg_arena_search(t->buffers, t->n, capacity, a->time_limit_ns >= 0 ? a->time_limit_ns : DEFAULT_LIMIT_NS,
			    -1, &result, &r->stats, err))
		return err->code;
	if (result == RG_SEARCH_FITS)
		return 0;
	if (result == RG_SEARCH_INFEASIBLE)
		rg_error_set(err, -ENOSPC, "%s: no placement fits below %" PRId64 " bytes; this is proven", a->csv,
			     capacity);
	else
		rg_error_set(err, -ETIME, "%s: out of time before a placement below %" PRId64 " bytes was found or excluded",
			     a->csv, capacity);
	return rg_error_hint(err, "the greatest load is %" PRId64 " bytes; give more with --capacity%s, or see what "
			     "--strategy portfolio reaches", r->bound_bytes,
			     result == RG_SEARCH_TIMEOUT ? " or --time-limit" : "");
}

static int place(const struct rg_args *a, struct rg_buffer_table *t, struct result *r, struct rg_error *err)
{
	const char *name = a->strategy ? a->strategy : a->capacity_bytes >= 0 ? "search" : "portfolio";
	enum rg_strategy s, won;

	if (strcmp(name, "search") == 0)
		return search(a, t, r, err);
	if (!rg_strategy_parse(name, &s)) {
		rg_error_set(err, RG_EUSAGE, "there is no strategy '%.60s'", name);
		return rg_error_hint(err, "one of search, portfolio, greedy-lowest, greedy-lowest-back, greedy-size, greedy-size-best, greedy-birth, naive");
	}
	if (rg_strategy_place(s, t->buffers, t->n, &r->height_bytes, &won, err))
		return err->code;
	r->made_by = rg_strategy_name(won);
	if (a->capacity_bytes >= 0 && r->height_bytes > a->capacity_bytes) {
		rg_error_set(err, -ENOSPC, "%s: %s reaches %" PRId64 " bytes, above the capacity of %" PRId64, a->csv,
			     r->made_by, r->height_bytes, a->capacity_bytes);
		return rg_error_hint(err, "the greatest load is %" PRId64 " bytes; --strategy search tries harder",
				     r->bound_bytes);
	}
	return 0;
}

static void summary(const struct rg_args *a, const struct rg_buffer_table *t, const struct result *r)
{
	char line[512];
	int n = snprintf(line, sizeof(line),
			 "%d buffers in %" PRId64 " bytes by %s; lower bound %" PRId64 " (%.3f times); %.3f s", t->n,
			 r->height_bytes, r->made_by, r->bound_bytes,
			 r->bound_bytes > 0 ? (double)r->height_bytes / (double)r->bound_bytes : 1.0, r->seconds);

	if (r->stats.nodes > 0)
		snprintf(line + n, sizeof(line) - (size_t)n, ", %" PRId64 " nodes, %" PRId64 " restarts",
			 r->stats.nodes, r->stats.restarts);
	if (!a->quiet)
		fprintf(stderr, "%s\n", line);
}

static int write_offsets(const struct rg_buffer_table *t, struct rg_error *err)
{
	struct rg_str out = { 0 };
	int i;

	rg_str_add(&out, "id,offset\n");
	for (i = 0; i < t->n; i++)
		rg_str_printf(&out, "%s,%" PRId64 "\n", t->ids[i], t->buffers[i].offset_bytes);
	if (out.failed)
		rg_error_nomem(err, out.len);
	else
		rg_cmd_print(rg_str_text(&out), err);
	rg_str_free(&out);
	return err->code;
}

static int plan_csv(struct rg_args *a, struct rg_error *err)
{
	struct rg_buffer_table t = { 0 };
	struct result r = { 0 };
	uint64_t begin_ns;
	int rc;

	rc = rg_buffers_csv_load(a->csv, &t, err);
	if (!rc)
		rc = rg_buffers_max_load(t.buffers, t.n, &r.bound_bytes, err);
	begin_ns = rg_clock_now_ns();
	if (!rc)
		rc = place(a, &t, &r, err);
	r.seconds = (double)(rg_clock_now_ns() - begin_ns) * 1e-9;
	if (!rc) {
		r.height_bytes = rg_buffers_height(t.buffers, t.n);
		rc = rg_buffers_check(t.buffers, t.n, a->capacity_bytes >= 0 ? a->capacity_bytes : INT64_MAX, err);
	}
	if (!rc)
		rc = write_offsets(&t, err);
	if (!rc)
		summary(a, &t, &r);
	rg_buffers_csv_free(&t);
	return rc;
}

static int not_with_csv(const char *option, const char *hint, struct rg_error *err)
{
	rg_error_set(err, RG_EUSAGE, "%s and --csv exclude each other", option);
	return rg_error_hint(err, "%s", hint);
}

static int plan_model(struct rg_args *a, struct rg_error *err)
{
	struct rg_memory_options mo = { a->planner, a->strategy, a->capacity_bytes, a->time_limit_ns };
	struct rg_style st = rg_cmd_style(a);
	struct rg_memory *m = NULL;
	struct rg_str out = { 0 };
	char num[2][64];

	a->session.model = a->positional[0];
	rg_cmd_catch_interrupt();
	if (rg_session_memory(&a->session, &mo, &m, err) == 0) {
		if (rg_report_memory(&out, m, a->session.model, &st) != 0)
			rg_error_nomem(err, out.len);
		else
			rg_cmd_print(rg_str_text(&out), err);
	}
	if (err->code == 0 && m->spill_step >= 0) {
		rg_error_set(err, -ENOSPC, "%s: the arena of %s is above the capacity of %s", a->session.model,
			     rg_fmt_bytes(num[0], (double)m->height_bytes),
			     rg_fmt_bytes(num[1], (double)m->capacity_bytes));
		rg_error_hint(err, m->bound_bytes > m->capacity_bytes ?
				   "no placement fits: give smaller shapes, or another --optimize" :
				   "another --strategy may fit: see the table");
	} else if (err->code == 0 && m->capacity_bytes >= 0 && m->n_dynamic) {
		rg_error_set(err, -ENODATA,
			     "%s: whether all fits below %s is not known: %d of %d steps find their memory as they "
			     "run", a->session.model, rg_fmt_bytes(num[0], (double)m->capacity_bytes), m->n_dynamic,
			     m->n_steps);
		rg_error_hint(err, "what is planned fits; --input may close shapes that depend on values");
	}
	rg_str_free(&out);
	rg_memory_free(m);
	return err->code;
}

int rg_cmd_plan_memory(struct rg_args *a, struct rg_error *err)
{
	if (a->csv && a->n_positional)
		not_with_csv("a MODEL", "leave one of them out", err);
	else if (a->csv && a->format_given)
		not_with_csv("--format", "offsets are printed as CSV", err);
	else if (a->csv && a->planner != RG_PLANNER_RIDGE)
		not_with_csv("--planner", "the file gives the alignment; --strategy greedy-size places like tflm", err);
	else if (a->csv && a->session.order_for_memory)
		not_with_csv("--order", "the file says when each buffer lives; --order is for a MODEL", err);
	else if (a->csv)
		plan_csv(a, err);
	else if (a->n_positional)
		plan_model(a, err);
	else {
		rg_error_set(err, RG_EUSAGE, "ridge plan needs a MODEL, or --csv FILE");
		rg_error_hint(err, "for example  ridge plan builtin:resnet50   or  ridge plan --csv buffers.csv --capacity 1M");
	}
	return rg_cmd_exit_code(err);
}
