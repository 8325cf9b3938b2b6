/*
 * The checklist: the 24 questions in their order, each with the function that
 * answers it, and the helpers that those functions share.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "analyzer/fusion.h"
#include "base/alloc.h"
#include "base/str.h"

static const struct {
	const char *id, *question;
	rg_check_fn *answer;
} questions[RG_CHECK_QUESTIONS] = {
    {"model.size", "How many parameters and FLOPs has one forward pass at this batch size?",
     rg_check_model_size},
    {"model.shapes", "Which shapes collapse to a degenerate case, and has the kernel a form for it?",
     rg_check_model_shapes},
    {"model.dominant", "Which operators dominate parameters, and which FLOPs?", rg_check_model_dominant},
    {"memory.peak", "How large is the peak footprint, and does it fit the fast memory?",
     rg_check_memory_peak},
    {"memory.weights", "How many bytes are the weights, today and at each candidate precision?",
     rg_check_memory_weights},
    {"memory.largest", "How large is the largest single intermediate tensor?", rg_check_memory_largest},
    {"compute.type", "Which kind of operator holds the FLOPs?", rg_check_compute_type},
    {"compute.bound", "Is the dominant operator bound by compute or by which memory level?",
     rg_check_compute_bound},
    {"compute.cheap", "Which operators are cheap in FLOPs and dear in time?", rg_check_compute_cheap},
    {"precision.need", "What precision does each operator need?", rg_check_precision_need},
    {"precision.granularity", "Per tensor or per channel, and does that follow the dynamic range?",
     rg_check_precision_granularity},
    {"precision.calibration", "Has the range been held against representative data?",
     rg_check_precision_calibration},
    {"hardware.units", "Which compute units are there, and which dominant operators map onto which?",
     rg_check_hardware_units},
    {"hardware.minimum", "Which units need a minimum or aligned dimension, and what falls below it?",
     rg_check_hardware_minimum},
    {"hardware.bandwidth", "What is the bandwidth of each level, and does the model clear the ridge point?",
     rg_check_hardware_bandwidth},
    {"runtime.fallback", "Which operators fell back to a slow path?", rg_check_runtime_fallback},
    {"runtime.copies", "How many bytes are copied, and which copies could go?", rg_check_runtime_copies},
    {"runtime.planner", "Did the memory planner see the real shapes?", rg_check_runtime_planner},
    {"compiler.fusion", "Which adjacent operators did not fuse, and why?", rg_check_compiler_fusion},
    {"compiler.layout", "How many layout transforms are left?", rg_check_compiler_layout},
    {"compiler.folding", "What was folded and removed, and what still could be?", rg_check_compiler_folding},
    {"performance.latency", "What is the distribution of the latency, and what makes the tail?",
     rg_check_performance_latency},
    {"performance.throughput", "What is the throughput, and where does it stand under the Roofline?",
     rg_check_performance_throughput},
    {"performance.energy", "How many joules does one inference take?", rg_check_performance_energy},
};

const char *rg_verdict_name(enum rg_verdict v)
{
	static const char *const names[] = {"good", "attention", "problem", "unknown"};

	return (unsigned)v < sizeof(names) / sizeof(names[0]) ? names[v] : "unknown";
}

const char *rg_check_text(struct rg_check *c, const char *fmt, ...)
{
	va_list ap, again;
	char *text = NULL;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len >= 0)
		text = rg_arena_alloc_aligned(c->arena, 1, (size_t)len + 1);
	if (text)
		vsnprintf(text, (size_t)len + 1, fmt, again);
	else
		c->failed = true;
	va_end(again);
	for (char *p = text; p && *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return text ? text : "";
}

static struct rg_figure *new_figure(struct rg_answer *q, const char *name, const char *unit,
				    enum rg_provenance p)
{
	struct rg_figure *f;

	if (q->n_figures == RG_CHECK_MAX_FIGURES)
		return NULL;
	f = &q->figures[q->n_figures++];
	*f = (struct rg_figure){.name = name, .value = NAN, .unit = unit, .provenance = p};
	return f;
}

void rg_check_figure(struct rg_answer *q, const char *name, double value, const char *unit,
		     enum rg_provenance p)
{
	struct rg_figure *f = new_figure(q, name, unit, isnan(value) ? RG_PROV_UNAVAILABLE : p);

	if (f)
		f->value = value;
}

void rg_check_words(struct rg_answer *q, const char *name, const char *text, enum rg_provenance p)
{
	struct rg_figure *f = new_figure(q, name, "", p);

	if (f)
		f->text = text;
}

void rg_check_fact(struct rg_check *c, struct rg_answer *q, const char *name, const char *key)
{
	const struct rg_fact *f = rg_recording_fact(c->rec, key);

	if (f && f->kind == 0)
		rg_check_words(q, name, f->text, f->provenance);
	else
		rg_check_figure(q, name, rg_recording_number(c->rec, key), f ? f->unit : "",
				f ? f->provenance : RG_PROV_UNAVAILABLE);
}

void rg_check_unknown(struct rg_answer *q, const char *answer, const char *missing)
{
	q->verdict = RG_VERDICT_UNKNOWN;
	q->answer = answer;
	q->missing = missing;
}

const char *rg_check_label(struct rg_check *c, const struct rg_step_row *s)
{
	if (s->name[0])
		return rg_check_text(c, "'%.60s' (%.40s)", s->name, s->op_type);
	return rg_check_text(c, "step %d (%.40s)", s->index, s->op_type);
}

enum rg_verdict rg_check_grade(double v, double attention, double problem)
{
	if (isnan(v))
		return RG_VERDICT_UNKNOWN;
	return v < attention ? RG_VERDICT_GOOD : v < problem ? RG_VERDICT_ATTENTION : RG_VERDICT_PROBLEM;
}

char *rg_check_percent(char *out, double fraction)
{
	double v = fraction * 100;

	if (isnan(v))
		strcpy(out, "-");
	else
		snprintf(out, 32, v >= 9.95 || v == 0 ? "%.0f %%" : v >= 0.95 ? "%.1f %%" : "%.2f %%", v);
	return out;
}

bool rg_check_kind_is_cheap(const char *op_kind)
{
	static const char *const cheap[] = {"elementwise", "norm", "reduce", "pool", "move", "quant"};

	for (size_t i = 0; i < sizeof(cheap) / sizeof(cheap[0]); i++)
		if (strcmp(op_kind, cheap[i]) == 0)
			return true;
	return false;
}

int rg_check_dominant(const struct rg_check *c)
{
	if (c->a->n_ops == 0 || !(c->a->ops[c->order[0]].time_ns > 0))
		return -1;
	return c->order[0];
}

static void find_fast_memory(struct rg_check *c)
{
	static const struct {
		const char *fact, *name;
	} caches[] = {
	    {"machine.l3_bytes", "L3"},
	    {"machine.l2_bytes", "L2"},
	    {"machine.l1d_bytes", "L1"},
	};

	c->fast_bytes = NAN;
	c->fast_name = "";
	for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
		double v = rg_recording_number(c->rec, caches[i].fact);

		if (v > 0) {
			c->fast_bytes = v;
			c->fast_name = caches[i].name;
			return;
		}
	}
}

/* How the evidence commands name the database. */
static void name_database(struct rg_check *c, const char *db)
{
	struct rg_str s = {0};

	c->db = "ridge.db";
	c->db_option = "";
	if (!db || strcmp(db, c->db) == 0)
		return;
	rg_str_shell(&s, db);
	c->failed |= s.failed;
	c->db = rg_check_text(c, "%s", rg_str_text(&s));
	c->db_option = rg_check_text(c, " --db %s", rg_str_text(&s));
	rg_str_free(&s);
}

int rg_check_run(const struct rg_analysis *a, const char *db, struct rg_checklist **out, struct rg_error *err)
{
	struct rg_arena *arena = rg_arena_new();
	struct rg_checklist *list = arena ? rg_arena_alloc(arena, 1, sizeof(*list)) : NULL;
	int *order = list ? rg_arena_alloc(arena, (size_t)a->n_ops, sizeof(*order)) : NULL;
	struct rg_check c = {.a = a, .rec = a->rec, .arena = arena, .order = order};
	struct rg_path *path = NULL;
	int rc;

	*out = NULL;
	if (!order) {
		rg_arena_free(arena);
		return rg_error_nomem(err, sizeof(*list));
	}
	list->arena = arena;
	rc = rg_path_find(a, &path, err);
	if (rc && rc != -ENODATA) { /* without spans some answers are unknown; that is no failure */
		rg_arena_free(arena);
		return rc;
	}
	rg_error_clear(err);
	rg_analysis_by_time(a, order);
	c.path = path;
	c.wall_ns = a->p50.value;
	find_fast_memory(&c);
	name_database(&c, db);
	for (int i = 0; i < RG_CHECK_QUESTIONS; i++) {
		struct rg_answer *q = &list->answers[i];

		q->id = questions[i].id;
		q->question = questions[i].question;
		q->verdict = RG_VERDICT_UNKNOWN;
		q->answer = "";
		q->evidence = rg_check_text(&c, "ridge report %lld%s", (long long)a->rec->run.id, c.db_option);
		questions[i].answer(&c, q);
		/* A plan lies in no database that a person could ask. */
		if (strcmp(rg_recording_text(a->rec, "session.static", "no"), "yes") == 0)
			q->evidence = rg_check_text(&c, "ridge report --static %s", a->rec->run.model);
	}
	rg_check_summarise(&c, list);
	rg_path_free(path);
	rg_fusions_free(c.fusions);
	if (c.failed) {
		rg_arena_free(arena);
		return rg_error_nomem(err, 256);
	}
	*out = list;
	return 0;
}

void rg_checklist_free(struct rg_checklist *c)
{
	if (c)
		rg_arena_free(c->arena);
}
