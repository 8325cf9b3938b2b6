/*
 * Questions about memory: the peak, the weights, the largest intermediate.
 */
#include <math.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "base/str.h"

static const char need_plan[] = "a recording that got as far as the plan: ridge record MODEL";

static bool is_activation(const struct rg_tensor_row *t)
{
	return strcmp(t->place, "arena") == 0 && t->alias_of < 0 && t->size_bytes >= 0;
}

/*
 * The first step at which live activations and its scratch exceed `limit`; -1:
 * none. An alias keeps the memory of its root alive, which the planner has
 * counted into the live range of the root.
 */
static int first_spill(struct rg_check *c, double limit, double *live_bytes)
{
	const struct rg_recording *rec = c->rec;
	double *change = rg_arena_alloc(c->arena, (size_t)rec->n_steps + 1, sizeof(*change));
	double live = 0;

	*live_bytes = NAN;
	if (!change) {
		c->failed = true;
		return -1;
	}
	for (int i = 0; i < rec->n_tensors; i++) {
		const struct rg_tensor_row *t = &rec->tensors[i];

		if (is_activation(t) && t->first_step >= 0 && t->last_step >= t->first_step) {
			change[t->first_step] += (double)t->size_bytes;
			change[t->last_step + 1] -= (double)t->size_bytes;
		}
	}
	for (int i = 0; i < rec->n_steps; i++) {
		double scratch = rec->steps[i].scratch_bytes > 0 ? (double)rec->steps[i].scratch_bytes : 0;

		live += change[i];
		if (live + scratch > limit) {
			*live_bytes = live + scratch;
			return i;
		}
	}
	return -1;
}

void rg_check_memory_peak(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	double arena = rg_recording_number(c->rec, "plan.arena_bytes");
	double memory = rg_recording_number(c->rec, "machine.memory_bytes");
	double peak_step = rg_recording_number(c->rec, "plan.peak_step"), live = NAN, scratch = 0;
	char b[5][32];
	int spill;

	if (isnan(arena)) {
		rg_check_unknown(q, "the size of the arena is not known", need_plan);
		return;
	}
	for (int i = 0; i < a->n_ops; i++)
		scratch = fmax(scratch, (double)a->ops[i].step->scratch_bytes);
	spill = isnan(c->fast_bytes) ? -1 : first_spill(c, c->fast_bytes, &live);
	rg_fmt_bytes(b[0], a->peak_bytes);
	rg_fmt_bytes(b[1], arena);
	rg_fmt_bytes(b[2], a->weight_bytes);
	rg_fmt_bytes(b[3], c->fast_bytes);
	rg_fmt_bytes(b[4], live);
	if (a->peak_bytes > memory) {
		q->verdict = RG_VERDICT_PROBLEM;
		q->answer = rg_check_text(
		    c,
		    "the planned peak of %s (activations and scratch %s, weights %s) exceeds the "
		    "memory of this machine: use a smaller batch or shape",
		    b[0], b[1], b[2]);
	} else if (spill >= 0) {
		q->verdict = RG_VERDICT_ATTENTION;
		q->answer = rg_check_text(
		    c,
		    "planned peak %s (activations and scratch %s, weights %s); the live activations "
		    "first outgrow the %s of %s at %s with %s: split or tile from there on",
		    b[0], b[1], b[2], c->fast_name, b[3], rg_check_label(c, a->ops[spill].step), b[4]);
	} else if (isnan(c->fast_bytes)) {
		q->verdict = RG_VERDICT_ATTENTION;
		q->answer = rg_check_text(
		    c,
		    "planned peak %s (activations and scratch %s, weights %s); whether it fits the "
		    "cache is open, since the size of no cache is known",
		    b[0], b[1], b[2]);
	} else {
		q->verdict = RG_VERDICT_GOOD;
		q->answer = rg_check_text(
		    c,
		    "planned peak %s (activations and scratch %s, weights %s); the live activations "
		    "fit the %s of %s at every step",
		    b[0], b[1], b[2], c->fast_name, b[3]);
	}
	q->evidence =
	    rg_check_text(c,
			  "sqlite3 %s \"SELECT name, size_bytes, offset_bytes, first_step, last_step "
			  "FROM tensor WHERE run_id = %lld AND place = 'arena' ORDER BY 2 DESC\"",
			  c->db, (long long)c->rec->run.id);
	rg_check_figure(q, "planned_peak_bytes", a->peak_bytes, "bytes", RG_PROV_MODELLED);
	rg_check_fact(c, q, "arena_bytes", "plan.arena_bytes");
	rg_check_fact(c, q, "arena_lower_bound_bytes", "plan.arena_lower_bound_bytes");
	/* whose planner it was: the answer holds for no other */
	rg_check_fact(c, q, "planner", "plan.planner");
	rg_check_fact(c, q, "arena_strategy", "plan.arena_strategy");
	rg_check_figure(q, "peak_step", peak_step, "", RG_PROV_MODELLED);
	rg_check_figure(q, "largest_scratch_bytes", a->n_ops ? scratch : NAN, "bytes", RG_PROV_MODELLED);
	rg_check_figure(q, "weight_bytes", a->weight_bytes, "bytes", RG_PROV_MODELLED);
	rg_check_fact(c, q, "packed_weight_bytes", "plan.prepared_bytes");
	rg_check_fact(c, q, "resident_peak_bytes", "process.peak_rss_bytes");
	rg_check_figure(q, "fast_memory_bytes", c->fast_bytes, "bytes", RG_PROV_DECLARED);
	rg_check_figure(q, "first_spill_step", spill < 0 ? NAN : spill, "", RG_PROV_MODELLED);
}

void rg_check_memory_weights(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	double bandwidth = NAN, memory = rg_recording_number(c->rec, "machine.memory_bytes");
	char b[5][32], ns[32];
	bool fits;

	if (isnan(a->weight_bytes)) {
		rg_check_unknown(q, "the size of the weights is not known", need_plan);
		return;
	}
	if (a->n_roofs && isinf(a->roofs[a->n_roofs - 1].capacity_bytes))
		bandwidth = a->roofs[a->n_roofs - 1].value;
	rg_fmt_bytes(b[0], a->weight_bytes);
	rg_fmt_bytes(b[1], a->params * 2);
	rg_fmt_bytes(b[2], a->params);
	rg_fmt_bytes(b[3], a->params / 2);
	rg_fmt_bytes(b[4], c->fast_bytes);
	rg_fmt_ns(ns, a->weight_bytes / bandwidth * 1e9);
	fits = a->weight_bytes <= c->fast_bytes;
	q->verdict = a->weight_bytes > memory ? RG_VERDICT_PROBLEM
		     : fits                   ? RG_VERDICT_GOOD
					      : RG_VERDICT_ATTENTION;
	if (isnan(c->fast_bytes))
		q->answer = rg_check_text(
		    c, "the weights take %s; as fp16 or bf16 %s, as int8 %s, as int4 %s (without scales)",
		    b[0], b[1], b[2], b[3]);
	else if (fits)
		q->answer = rg_check_text(
		    c,
		    "the weights take %s and fit the %s of %s; as fp16 or bf16 %s, as int8 %s, as "
		    "int4 %s (without scales)",
		    b[0], c->fast_name, b[4], b[1], b[2], b[3]);
	else
		q->answer = rg_check_text(
		    c,
		    "the weights take %s, more than the %s of %s: every inference reads them from "
		    "memory%s%s; as fp16 or bf16 %s, as int8 %s, as int4 %s (without scales)",
		    b[0], c->fast_name, b[4], isnan(bandwidth) ? "" : ", at least ",
		    isnan(bandwidth) ? "" : ns, b[1], b[2], b[3]);
	q->evidence =
	    rg_check_text(c,
			  "sqlite3 %s \"SELECT dtype, COUNT(*), SUM(size_bytes) FROM tensor WHERE "
			  "run_id = %lld AND is_param GROUP BY dtype\"",
			  c->db, (long long)c->rec->run.id);
	rg_check_figure(q, "weight_bytes", a->weight_bytes, "bytes", RG_PROV_MODELLED);
	rg_check_figure(q, "fp16_bytes", a->params * 2, "bytes", RG_PROV_MODELLED);
	rg_check_figure(q, "bf16_bytes", a->params * 2, "bytes", RG_PROV_MODELLED);
	rg_check_figure(q, "int8_bytes", a->params, "bytes", RG_PROV_MODELLED);
	rg_check_figure(q, "int4_bytes", a->params / 2, "bytes", RG_PROV_MODELLED);
	rg_check_figure(q, "read_once_from_memory_ns", a->weight_bytes / bandwidth * 1e9, "ns",
			RG_PROV_MODELLED);
}

void rg_check_memory_largest(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_tensor_row *big = NULL;
	const struct rg_step_row *maker = NULL;
	double activations = 0;
	char b[2][32], share[32];

	for (int i = 0; i < c->rec->n_tensors; i++) {
		const struct rg_tensor_row *t = &c->rec->tensors[i];

		if (!is_activation(t))
			continue;
		activations += (double)t->size_bytes;
		if (!big || t->size_bytes > big->size_bytes)
			big = t;
	}
	if (!big) {
		rg_check_unknown(q, "the recording holds no intermediate tensor", need_plan);
		return;
	}
	for (int i = 0; i < c->rec->n_io; i++)
		if (c->rec->io[i].output && c->rec->io[i].tensor == big->id)
			maker = &c->rec->steps[c->rec->io[i].step];
	rg_fmt_bytes(b[0], (double)big->size_bytes);
	rg_fmt_bytes(b[1], c->fast_bytes);
	q->verdict = (double)big->size_bytes > c->fast_bytes ? RG_VERDICT_ATTENTION : RG_VERDICT_GOOD;
	q->answer = rg_check_text(
	    c, "the largest intermediate is '%.60s' (%.60s) with %s%s%s, %s", big->name, big->shape, b[0],
	    maker ? ", made by " : "", maker ? rg_check_label(c, maker) : "",
	    isnan(c->fast_bytes) ? "and the size of no cache is known"
	    : q->verdict == RG_VERDICT_GOOD
		? rg_check_text(c, "%s of the %s of %s",
				rg_check_percent(share, (double)big->size_bytes / c->fast_bytes),
				c->fast_name, b[1])
		: rg_check_text(c, "which alone does not fit the %s of %s: it goes through memory twice",
				c->fast_name, b[1]));
	q->evidence =
	    rg_check_text(c,
			  "sqlite3 %s \"SELECT name, shape, size_bytes FROM tensor WHERE run_id = %lld "
			  "AND place = 'arena' ORDER BY size_bytes DESC LIMIT 10\"",
			  c->db, (long long)c->rec->run.id);
	rg_check_words(q, "tensor", big->name, RG_PROV_MODELLED);
	rg_check_words(q, "shape", big->shape, RG_PROV_MODELLED);
	rg_check_figure(q, "size_bytes", (double)big->size_bytes, "bytes", RG_PROV_MODELLED);
	rg_check_figure(q, "share_of_all_intermediates",
			activations > 0 ? (double)big->size_bytes / activations : NAN, "fraction",
			RG_PROV_MODELLED);
	rg_check_figure(q, "fast_memory_bytes", c->fast_bytes, "bytes", RG_PROV_DECLARED);
}
