/* See optimize-text.h. */
#include "cmd/optimize-text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/json.h"

enum { N_EXAMPLES = 3 };

static const char *plural(int n)
{
	return n == 1 ? "" : "s";
}

/* An interface that is not the file's any more; the JSON has all names. */
static void tell_defaults(struct rg_str *out, const struct rg_optimized *r)
{
	if (r->n_defaults == 1)
		rg_str_printf(out, "%s is a constant and no input any more: the file gives it a value\n",
			      r->defaults[0]);
	else if (r->n_defaults)
		rg_str_printf(
		    out,
		    "%d inputs such as %s are constants and no inputs any more: the file gives them values\n",
		    r->n_defaults, r->defaults[0]);
}

/* "22.3 MiB ~", or "-" */
static const char *moved(char out[64], const struct rg_optimize_cost *c)
{
	char num[48];

	snprintf(out, 64, "%s%s", rg_fmt_bytes(num, c->bytes < 0 ? (double)NAN : (double)c->bytes),
		 c->bytes < 0 ? "" : " ~");
	return out;
}

void rg_optimize_summary(struct rg_str *out, const struct rg_optimized *r, const char *path)
{
	rg_str_printf(out, "wrote %s: ", path);
	if (r->planned)
		rg_str_printf(out, "%d step%s instead of %d", r->after.steps, plural(r->after.steps),
			      r->before.steps);
	else
		rg_str_printf(out, "%d node%s", r->n_nodes_after, plural(r->n_nodes_after));
	if (r->opset_after != r->opset_before)
		rg_str_printf(out, ", opset %" PRId64 " instead of %" PRId64, r->opset_after,
			      r->opset_before);
	if (r->verified)
		rg_str_printf(out, ", outputs differ by at most %.1e of their largest number", r->worst);
	rg_str_add(out, "\n");
	for (int i = 0; i < r->n_fixed; i++)
		rg_str_printf(out, "%s is fixed to %" PRId64 ": %s\n", r->fixed[i].name, r->fixed[i].value,
			      r->fixed[i].why);
	tell_defaults(out, r);
}

/* ---- for people ---- */

static int pass_table(struct rg_str *out, const struct rg_optimized *r, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
	    {"pass", RG_ALIGN_LEFT, 0, 0},          {"level", RG_ALIGN_RIGHT, 0, 2},
	    {"nodes\ngone", RG_ALIGN_RIGHT, 0, 0},  {"steps\nsaved", RG_ALIGN_RIGHT, 0, 0},
	    {"not\nmoved ~", RG_ALIGN_RIGHT, 0, 0}, {"what", RG_ALIGN_LEFT, 20, 1},
	};
	struct rg_table t;
	char num[48];
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < r->n_passes; i++) {
		const struct rg_optimized_pass *p = &r->passes[i];
		if (!p->n_rewritten)
			continue;
		rg_table_add(&t, p->pass->name);
		rg_table_addf(&t, "%d", p->pass->level);
		rg_table_addf(&t, "%d", p->n_rewritten);
		rg_table_addf(&t, "%d", p->steps_saved);
		rg_table_add(&t, rg_fmt_bytes(num, p->bytes_known ? (double)p->bytes_saved : (double)NAN));
		rg_table_add(&t, p->pass->what);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

static bool same_group(const struct rg_pass_note *a, const struct rg_pass_note *b)
{
	return a->decline == b->decline && strcmp(a->pass, b->pass) == 0;
}

/* Declines by pass and reason, with a few examples of each. */
static int decline_table(struct rg_str *out, const struct rg_optimized *r, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "pass", RG_ALIGN_LEFT, 0, 0 }, { "declined, since", RG_ALIGN_LEFT, 0, 0 },
		{ "times", RG_ALIGN_RIGHT, 0, 0 }, { "for example", RG_ALIGN_LEFT, 20, 1 },
	};
	const struct rg_pass_log *log = &r->log;
	struct rg_table t;
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < log->n_notes; i++) {
		struct rg_str examples = { 0 };
		bool first = log->notes[i].decline != RG_DECLINE_NONE;
		int n = 0;

		for (int k = 0; k < i && first; k++)
			first = !same_group(&log->notes[k], &log->notes[i]);
		if (!first)
			continue;
		for (int k = i; k < log->n_notes; k++)
			if (same_group(&log->notes[k], &log->notes[i]) && n++ < N_EXAMPLES)
				rg_str_printf(&examples, "%s%s (%s)", n > 1 ? ", " : "", log->notes[k].node,
					      log->notes[k].op_type);
		rg_table_add(&t, log->notes[i].pass);
		rg_table_add(&t, rg_decline_name(log->notes[i].decline));
		rg_table_addf(&t, "%d", n);
		rg_table_add(&t, rg_str_text(&examples));
		rg_str_free(&examples);
	}
	rc = t.n_cells ? rg_table_print(out, &t, st) : 0;
	if (t.n_cells)
		rg_str_add(out, "\n");
	rg_table_free(&t);
	return rc;
}

int rg_optimize_explain(struct rg_str *out, const struct rg_optimized *r, const struct rg_style *st)
{
	char before[64], after[64];
	int rc = 0;

	if (!r->planned) {
		rg_str_add(out, "level 0: the model is written as it was read\n");
		tell_defaults(out, r);
		return out->failed ? -ENOMEM : 0;
	}
	rg_str_printf(out, "at %s%s: %d step%s that move%s %s, before %d of %s\n\n",
		      r->sizes[0] ? r->sizes : "no inputs", r->sizes_given ? "" : " (an example)",
		      r->after.steps, plural(r->after.steps), r->after.steps == 1 ? "s" : "",
		      moved(after, &r->after), r->before.steps, moved(before, &r->before));
	if (r->log.n_rewritten)
		rc = pass_table(out, r, st);
	else
		rg_str_add(out, "no pass found anything to rewrite\n");
	rg_str_add(out, "\n");
	if (!rc)
		rc = decline_table(out, r, st);
	for (int i = 0; i < r->n_passes; i++)
		if (r->passes[i].left_out)
			rg_str_printf(out, "left out: %s: %s\n", r->passes[i].pass->name,
				      r->passes[i].left_out);
	for (int i = 0; i < r->n_fixed; i++)
		rg_str_printf(out, "fixed: %s is %" PRId64 ": %s\n", r->fixed[i].name, r->fixed[i].value,
			      r->fixed[i].why);
	if (r->n_pinned)
		rg_str_printf(out,
			      "left as they are: %d node%s that would become something else at other sizes, "
			      "such as %s\n",
			      r->n_pinned, plural(r->n_pinned), r->pinned[0]);
	tell_defaults(out, r);
	if (r->n_dead)
		rg_str_printf(out, "dropped: %d node%s that no output needs\n", r->n_dead, plural(r->n_dead));
	if (r->opset_after != r->opset_before)
		rg_str_printf(out,
			      "opset: %" PRId64 " instead of %" PRId64 ", for operators that came with it\n",
			      r->opset_after, r->opset_before);
	rg_str_printf(
	    out, "weights: %s, before %s\n",
	    rg_fmt_bytes(after, r->weight_bytes_after < 0 ? (double)NAN : (double)r->weight_bytes_after),
	    rg_fmt_bytes(before, r->weight_bytes_before < 0 ? (double)NAN : (double)r->weight_bytes_before));
	if (r->verified)
		rg_str_printf(out, "verified: outputs differ by at most %.1e of their largest number\n",
			      r->worst);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}

/* ---- for programs ---- */

static void put_cost(struct rg_json *j, json_t *to, const char *steps, const char *bytes,
		     const struct rg_optimize_cost *c, bool known)
{
	rg_json_int(j, to, steps, known ? c->steps : -1);
	rg_json_int(j, to, bytes, known ? c->bytes : -1);
}

static void put_notes(struct rg_json *j, const struct rg_pass_log *log, const char *key, bool declined)
{
	json_t *list = rg_json_put(j, j->root, key, json_array());

	for (int i = 0; i < log->n_notes; i++) {
		const struct rg_pass_note *n = &log->notes[i];
		json_t *o;

		if ((n->decline != RG_DECLINE_NONE) != declined)
			continue;
		o = rg_json_put(j, list, NULL, json_object());
		rg_json_text(j, o, "pass", n->pass);
		rg_json_text(j, o, "node", n->node);
		rg_json_text(j, o, "op_type", n->op_type);
		rg_json_text(j, o, "into", n->into);
		if (declined)
			rg_json_text(j, o, "reason", rg_decline_name(n->decline));
	}
}

int rg_optimize_json(struct rg_str *out, const struct rg_optimized *r, const char *path)
{
	struct rg_json j;
	json_t *list, *o;

	rg_json_init(&j);
	rg_json_text(&j, j.root, "model", r->model->source);
	rg_json_text(&j, j.root, "output", path);
	rg_json_int(&j, j.root, "level", r->level);
	rg_json_int(&j, j.root, "opset_before", r->opset_before);
	rg_json_int(&j, j.root, "opset_after", r->opset_after);
	rg_json_int(&j, j.root, "nodes_before", r->n_nodes_before);
	rg_json_int(&j, j.root, "nodes_after", r->n_nodes_after);
	rg_json_int(&j, j.root, "nodes_dropped", r->n_dead);
	rg_json_int(&j, j.root, "weight_bytes_before", r->weight_bytes_before);
	rg_json_int(&j, j.root, "weight_bytes_after", r->weight_bytes_after);
	rg_json_text(&j, j.root, "sizes", r->planned ? r->sizes : NULL);
	put_cost(&j, j.root, "steps_before", "bytes_before", &r->before, r->planned);
	put_cost(&j, j.root, "steps_after", "bytes_after", &r->after, r->planned);
	rg_json_bool(&j, j.root, "verified", r->verified);
	rg_json_num(&j, j.root, "worst_difference", r->verified ? r->worst : (double)NAN);
	list = rg_json_put(&j, j.root, "passes", json_array());
	for (int i = 0; i < r->n_passes; i++) {
		const struct rg_optimized_pass *p = &r->passes[i];

		o = rg_json_put(&j, list, NULL, json_object());
		rg_json_text(&j, o, "name", p->pass->name);
		rg_json_text(&j, o, "what", p->pass->what);
		rg_json_int(&j, o, "level", p->pass->level);
		rg_json_int(&j, o, "rewritten", p->n_rewritten);
		rg_json_put(&j, o, "steps_saved", json_integer(p->steps_saved));
		rg_json_put(&j, o, "bytes_saved",
			    p->bytes_known ? json_integer((json_int_t)p->bytes_saved) : json_null());
		rg_json_text(&j, o, "left_out", p->left_out);
	}
	put_notes(&j, &r->log, "rewrites", false);
	put_notes(&j, &r->log, "declines", true);
	list = rg_json_put(&j, j.root, "fixed", json_array());
	for (int i = 0; i < r->n_fixed; i++) {
		o = rg_json_put(&j, list, NULL, json_object());
		rg_json_text(&j, o, "name", r->fixed[i].name);
		rg_json_int(&j, o, "value", r->fixed[i].value);
		rg_json_text(&j, o, "why", r->fixed[i].why);
	}
	list = rg_json_put(&j, j.root, "constant_inputs", json_array());
	for (int i = 0; i < r->n_defaults; i++)
		rg_json_text(&j, list, NULL, r->defaults[i]);
	list = rg_json_put(&j, j.root, "left_as_they_are", json_array());
	for (int i = 0; i < r->n_pinned; i++)
		rg_json_text(&j, list, NULL, r->pinned[i]);
	return rg_json_finish(&j, out);
}
