/* Translates a plan into the store's rows. */
#include "session/rows.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"

static const char *place_name(enum rg_place p)
{
	switch (p) {
	case RG_PLACE_ARENA: return "arena";
	case RG_PLACE_CONST: return "const";
	case RG_PLACE_INPUT: return "input";
	case RG_PLACE_DYNAMIC: return "dynamic";
	case RG_PLACE_UNUSED: break;
	}
	return "unused";
}

/* Running statistics are constants of the file but not parameters. */
static bool is_running_statistic(const struct rg_node *n, int slot)
{
	return strcmp(n->op_type, "BatchNormalization") == 0 && (slot == 3 || slot == 4);
}

static bool is_param_value(const struct rg_value *v)
{
	return rg_value_params(v) > 0;
}

/* Rows of the GEMM that the step amounts to; -1 when it is none. */
static void equivalent_gemm(const struct rg_plan *p, const struct rg_step *s, struct rg_step_row *r)
{
	const struct rg_node *n = &p->graph->nodes[s->node];
	const struct rg_shape *a, *w, *y;

	r->gemm_m = r->gemm_n = r->gemm_k = -1;
	if (s->dynamic || !s->kernel || s->n_in < 2 || s->in[0] < 0 || s->in[1] < 0 || s->n_out < 1 || s->out[0] < 0)
		return;
	a = &p->tensors[s->in[0]].shape;
	w = &p->tensors[s->in[1]].shape;
	y = &p->tensors[s->out[0]].shape;
	if (strcmp(n->op_type, "Conv") == 0 && w->rank >= 3 && y->rank == w->rank) {
		int64_t group = rg_node_int(n, "group", 1);

		r->gemm_m = w->dim[0] / (group > 0 ? group : 1);
		r->gemm_n = y->dim[0] * rg_shape_count_range(y, 2, y->rank);
		r->gemm_k = rg_shape_count_range(w, 1, w->rank);
	} else if (strcmp(n->op_type, "MatMul") == 0 && a->rank >= 1 && w->rank >= 1) {
		r->gemm_k = a->dim[a->rank - 1];
		r->gemm_m = a->rank >= 2 ? a->dim[a->rank - 2] : 1;
		r->gemm_n = w->rank >= 2 ? w->dim[w->rank - 1] : 1;
		/* a weight matrix without batch: the batch dimensions are rows */
		if (w->rank == 2 && a->rank > 2)
			r->gemm_m = rg_shape_count_range(a, 0, a->rank - 1);
	} else if (strcmp(n->op_type, "Gemm") == 0 && a->rank == 2 && y->rank == 2) {
		r->gemm_m = y->dim[0];
		r->gemm_n = y->dim[1];
		r->gemm_k = a->dim[rg_node_int(n, "transA", 0) ? 0 : 1];
	}
}

static int put_tensors(struct rg_store *s, int64_t run, const struct rg_prepared *p, struct rg_error *err)
{
	const struct rg_plan *plan = p->plan;
	const struct rg_graph *g = plan->graph;
	struct rg_tensor_row *rows = rg_calloc((size_t)plan->n_tensors + 1, sizeof(*rows));
	char (*shapes)[160] = rg_calloc((size_t)plan->n_tensors + 1, sizeof(*shapes));
	int rc;

	if (!rows || !shapes) {
		rc = rg_error_nomem(err, (size_t)plan->n_tensors * sizeof(*rows));
		goto out;
	}
	for (int i = 0; i < plan->n_tensors; i++) {
		const struct rg_plan_tensor *t = &plan->tensors[i];
		const struct rg_value *v = &g->values[i];
		struct rg_tensor_row *r = &rows[i];

		r->id = i;
		r->name = v->name;
		r->dtype = rg_dtype_name(t->dtype);
		r->shape = t->dtype == RG_UNDEFINED ? "" : rg_shape_text(shapes[i], &t->shape);
		r->size_bytes = t->place == RG_PLACE_DYNAMIC ? -1 : t->size_bytes;
		r->place = place_name(t->place);
		r->offset_bytes = t->place == RG_PLACE_ARENA ? t->offset_bytes : -1;
		r->alias_of = t->alias_of;
		r->first_step = t->first_step;
		r->last_step = t->last_step;
		r->is_input = v->is_input;
		r->is_output = v->is_output;
		r->is_param = is_param_value(v);
	}
	for (int i = 0; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		for (int k = 0; k < n->n_in; k++)
			if (n->in[k] >= 0 && is_running_statistic(n, k))
				rows[n->in[k]].is_param = false;
	}
	rc = rg_store_put_tensors(s, run, rows, plan->n_tensors, err);
out:
	rg_free(rows);
	rg_free(shapes);
	return rc;
}

static void fill_step(const struct rg_plan *plan, int index, bool *counted, struct rg_step_row *r, char *shape)
{
	const struct rg_step *s = &plan->steps[index];
	const struct rg_node *n = &plan->graph->nodes[s->node];

	memset(r, 0, sizeof(*r));
	r->index = index;
	r->name = n->name;
	r->op_type = n->op_type;
	r->domain = n->domain;
	r->op_version = n->version;
	r->op_kind = rg_op_kind_name(n->op->kind);
	r->kernel = rg_step_kernel_name(s);
	r->kernel_reason = s->reason;
	r->dtype = "";
	r->shape = "";
	for (int k = 0; k < s->n_out; k++) {
		if (s->out[k] < 0 || s->dynamic)
			continue;
		r->dtype = rg_dtype_name(plan->tensors[s->out[k]].dtype);
		r->shape = rg_shape_text(shape, &plan->tensors[s->out[k]].shape);
		break;
	}
	r->flops = s->cost.flops;
	r->iops = s->cost.iops;
	r->sfu = s->cost.sfu;
	r->read_bytes = s->cost.read_bytes;
	r->write_bytes = s->cost.write_bytes;
	r->executed_flops = s->traffic.executed_flops;
	r->scratch_bytes = s->scratch_bytes;
	r->scratch_offset_bytes = s->scratch_bytes > 0 ? s->scratch_offset_bytes : -1;
	r->prepared_bytes = s->prepared_bytes;
	for (int k = 0; k < s->n_in; k++) {
		int v = s->in[k];
		int64_t elements;

		if (v < 0 || plan->tensors[v].place != RG_PLACE_CONST)
			continue;
		r->weight_bytes += plan->tensors[v].size_bytes;
		elements = rg_shape_count(&plan->tensors[v].shape);
		if (!counted[v] && is_param_value(&plan->graph->values[v]) && !is_running_statistic(n, k))
			r->params += elements;
		counted[v] = true;
	}
	equivalent_gemm(plan, s, r);
	/* the depthwise kernels ("depthwise", "depthwise-avx512") are the one form so
	 * far that exists for a degenerate shape */
	r->special_form = strncmp(r->kernel, "depthwise", strlen("depthwise")) == 0;
}

static int put_steps(struct rg_store *st, int64_t run, const struct rg_prepared *p, struct rg_error *err)
{
	const struct rg_plan *plan = p->plan;
	struct rg_step_row *rows = rg_calloc((size_t)plan->n_steps + 1, sizeof(*rows));
	char (*shapes)[160] = rg_calloc((size_t)plan->n_steps + 1, sizeof(*shapes));
	bool *counted = rg_calloc((size_t)plan->n_tensors + 1, sizeof(*counted));
	struct rg_edge_row *edges = rg_calloc((size_t)plan->n_edges + 1, sizeof(*edges));
	struct rg_io_row *io = NULL;
	size_t n_io = 0, cap_io = 0;
	int rc = 0;

	if (!rows || !shapes || !counted || !edges) {
		rc = rg_error_nomem(err, (size_t)plan->n_steps * sizeof(*rows));
		goto out;
	}
	for (int i = 0; i < plan->n_steps; i++) {
		const struct rg_step *s = &plan->steps[i];
		int total = s->n_in + s->n_out;
		struct rg_io_row *more = rg_grow(io, &cap_io, n_io + (size_t)total, sizeof(*io));

		if (!more) {
			rc = rg_error_nomem(err, n_io * sizeof(*io));
			goto out;
		}
		io = more;
		fill_step(plan, i, counted, &rows[i], shapes[i]);
		for (int k = 0; k < total; k++) {
			bool output = k >= s->n_in;
			int slot = output ? k - s->n_in : k;
			int tensor = output ? s->out[slot] : s->in[slot];

			if (tensor >= 0)
				io[n_io++] = (struct rg_io_row){ i, slot, output, tensor };
		}
	}
	for (int i = 0; i < plan->n_edges; i++)
		edges[i] = (struct rg_edge_row){ plan->edges[i].from_step, plan->edges[i].to_step, plan->edges[i].value };
	rc = rg_store_put_steps(st, run, rows, plan->n_steps, io, (int)n_io, edges, plan->n_edges, err);
out:
	rg_free(rows);
	rg_free(shapes);
	rg_free(counted);
	rg_free(edges);
	rg_free(io);
	return rc;
}

/* What the graph passes did and declined: "Relu into /conv1/Conv (conv-epilogue)". */
static int put_passes(struct rg_store *s, int64_t run, const struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_note_row *rows = rg_calloc((size_t)log->n_notes + 1, sizeof(*rows));
	struct rg_arena *arena = rg_arena_new();
	int rc = rows && arena ? 0 : rg_error_nomem(err, (size_t)log->n_notes * sizeof(*rows));

	for (int i = 0; i < log->n_notes && !rc; i++) {
		const struct rg_pass_note *p = &log->notes[i];
		struct rg_str text = { 0 };

		if (p->decline && !*p->pass)
			rg_str_printf(&text, "%s not into %s: %s", p->op_type, p->into, rg_decline_name(p->decline));
		else if (p->decline)
			rg_str_printf(&text, "%s not into %s: %s (%s)", p->op_type, p->into, rg_decline_name(p->decline), p->pass);
		else
			rg_str_printf(&text, "%s into %s (%s)", p->op_type, p->into, p->pass);
		rows[i] = (struct rg_note_row){ p->decline ? "not-fused" : "fused", p->node,
						text.failed ? NULL : rg_arena_strdup(arena, rg_str_text(&text)) };
		if (!rows[i].text)
			rc = rg_error_nomem(err, text.len);
		rg_str_free(&text);
	}
	if (!rc && log->n_notes)
		rc = rg_store_put_notes(s, run, rows, log->n_notes, err);
	rg_arena_free(arena);
	rg_free(rows);
	return rc;
}

static int put_notes(struct rg_store *s, int64_t run, const struct rg_prepared *p, struct rg_error *err)
{
	const struct rg_plan *plan = p->plan;
	const struct rg_graph *g = plan->graph;
	size_t cap = (size_t)plan->n_views + (size_t)plan->n_bound_inputs + (size_t)g->n_inputs +
		     (size_t)plan->n_steps + 1;
	struct rg_note_row *rows = rg_calloc(cap, sizeof(*rows));
	int n = 0, rc;

	if (!rows)
		return rg_error_nomem(err, cap * sizeof(*rows));
	for (int i = 0; i < plan->n_views; i++)
		rows[n++] = (struct rg_note_row){ "view", g->nodes[plan->views[i]].name,
						  g->nodes[plan->views[i]].op_type };
	for (int i = 0; i < plan->n_bound_inputs; i++)
		rows[n++] = (struct rg_note_row){ "bound-input", plan->bound_inputs[i],
						  "a shape depends on its value: the plan holds for this value only" };
	for (int i = 0; i < g->n_inputs; i++)
		rows[n++] = (struct rg_note_row){ "input", g->values[g->inputs[i]].name, p->uses[i] };
	for (int i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].unsupported || plan->steps[i].dynamic)
			rows[n++] = (struct rg_note_row){ plan->steps[i].unsupported ? "unsupported" : "dynamic",
							  g->nodes[plan->steps[i].node].name, plan->steps[i].reason };
	rc = rg_store_put_notes(s, run, rows, n, err);
	rg_free(rows);
	return rc;
}

int rg_rows_put_plan(struct rg_store *s, int64_t run, const struct rg_prepared *p, struct rg_error *err)
{
	int rc = put_tensors(s, run, p, err);

	if (!rc)
		rc = put_steps(s, run, p, err);
	if (!rc)
		rc = put_notes(s, run, p, err);
	if (!rc)
		rc = put_passes(s, run, &p->plan->passes, err);
	return rc;
}
