/* See quantize.h. Here are its entry, the steps in their order, and the writing of the file. */
#include "session/quantize.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "compile/needed.h"
#include "models/onnx-write.h"
#include "models/onnx.h"
#include "session/optimize.h"
#include "session/quantize-work.h"
#include "sys/cpu.h"
#include "sys/topology.h"

/* Generated samples, where nobody says how many. */
enum { USUAL_SAMPLES = 8 };

/* The first calibration sample gives the rewriting its sizes without fixing them. */
static int first_files(struct quantize_work *w, const struct rg_graph *g, struct rg_session_options *o,
		       struct rg_error *err)
{
	struct rg_input_file *files;

	o->n_inputs = 0;
	o->inputs = NULL;
	if (!w->calibration.folder)
		return 0;
	files = rg_arena_alloc(w->r->arena, (size_t)g->n_inputs + 1, sizeof(*files));
	if (!files)
		return rg_error_nomem(err, (size_t)g->n_inputs * sizeof(*files));
	o->inputs = files;
	for (int k = 0; k < g->n_inputs; k++) {
		const char *name = rg_arena_strdup(w->r->arena, g->values[g->inputs[k]].name);

		if (!name)
			return rg_error_nomem(err, 64);
		if (w->calibration.path[k])
			files[o->n_inputs++] = (struct rg_input_file){ name, w->calibration.path[k] };
	}
	return 0;
}

static int find_samples(struct quantize_work *w, const struct rg_graph *g, struct rg_error *err)
{
	int rc = w->o->calibrate ? rg_samples_find(w->o->calibrate, g, &w->calibration, err)
				 : rg_samples_seeded(w->o->n_samples ? w->o->n_samples : USUAL_SAMPLES, g,
						     &w->calibration, err);

	if (!rc && w->o->validate)
		rc = rg_samples_find(w->o->validate, g, &w->validation, err);
	w->r->synthetic = !w->o->calibrate;
	w->r->n_samples = w->calibration.n;
	w->r->n_valid = w->validation.n;
	return rc;
}

/* The model as ridge optimize leaves it, in a file: it is read once for every operator. */
static int rewrite_model(struct quantize_work *w, struct rg_error *err)
{
	static const char *const disabled[] = { "affine-blocked" }; /* its convolutions are sums and products */
	struct rg_optimize_options oo = { .session = w->o->session, .level = 2, .n_disabled = 1, .disabled = disabled };
	struct rg_model *m = NULL;
	struct rg_optimized *opt = NULL;
	int rc = rg_quantize_tell(w, "rewriting", NAN, err);

	if (!rc)
		rc = rg_model_open(w->o->session.model, &w->o->session.bindings, &m, err);
	if (rc)
		return rc;
	memcpy(w->r->sha256, m->sha256, sizeof(w->r->sha256));
	w->r->file_bytes_before = m->file_bytes;
	rc = find_samples(w, m->graph, err);
	if (!rc)
		rc = first_files(w, m->graph, &oo.session, err);
	rg_model_free(m);
	if (!rc)
		rc = rg_session_optimize(&oo, w->exact, &opt, err);
	if (rc)
		return rc;
	w->n_inputs = opt->model->graph->n_inputs;
	w->n_outputs = opt->model->graph->n_outputs;
	w->shapes = rg_calloc((size_t)w->n_inputs + 1, sizeof(*w->shapes));
	if (!w->shapes)
		rc = rg_error_nomem(err, (size_t)w->n_inputs * sizeof(*w->shapes));
	for (int i = 0; i < w->n_inputs && !rc; i++)
		w->shapes[i] = opt->model->graph->values[opt->model->graph->inputs[i]].shape;
	rg_optimized_free(opt);
	return rc;
}

static bool is_named(const char *const *list, int n, const struct rg_node *node, bool *used)
{
	bool found = false;

	for (int i = 0; i < n; i++)
		if (strcmp(list[i], node->name) == 0 || strcmp(list[i], node->op_type) == 0)
			used[i] = found = true;
	return found;
}

static int add_op(struct quantize_work *w, const struct rg_node *n, struct rg_quantized_op **out, struct rg_error *err)
{
	struct rg_quantized_op *op = &w->r->ops[w->r->n_ops++];

	*op = (struct rg_quantized_op){ .outputs_db = NAN, .own_db = NAN, .clipped = NAN, .drifted = NAN, .spread = NAN,
					.weight_db = NAN, .per_tensor_db = NAN, .per_channel_db = NAN };
	op->name = rg_arena_strdup(w->r->arena, n->name);
	op->op_type = rg_arena_strdup(w->r->arena, n->op_type);
	*out = op;
	return op->name && op->op_type ? 0 : rg_error_nomem(err, strlen(n->name));
}

static int check_keep(const struct quantize_work *w, const bool *used, struct rg_error *err)
{
	for (int i = 0; i < w->o->n_keep; i++) {
		if (used[i])
			continue;
		rg_error_set(err, RG_EUSAGE, "--keep %.100s: no operator of that name or type is quantised", w->o->keep[i]);
		if (w->r->n_ops)
			rg_error_hint(err, "one of them is '%.100s' (%s)", w->r->ops[0].name, w->r->ops[0].op_type);
		return err->code;
	}
	return 0;
}

/* Operators in the order of the graph, those that can be quantised and the others. */
static int list_ops(struct quantize_work *w, const struct rg_graph *g, bool *used, struct rg_error *err)
{
	int site = 0, left = 0, rc = 0;

	while (!rc && (site < w->sites.n || left < w->sites.n_left)) {
		bool can = site < w->sites.n && (left == w->sites.n_left || w->sites.v[site].node < w->sites.left[left].node);
		const struct rg_node *n = &g->nodes[can ? w->sites.v[site].node : w->sites.left[left].node];
		bool kept = is_named(w->o->keep, w->o->n_keep, n, used);
		struct rg_quantized_op *op;

		rc = add_op(w, n, &op, err);
		op->can = can;
		op->why = can ? kept ? "it is kept, as asked" : NULL : w->sites.left[left].why;
		if (can) {
			w->op[site] = w->r->n_ops - 1;
			w->on[site++] = !kept;
			w->r->n_can++;
		} else {
			left++;
		}
	}
	return rc ? rc : check_keep(w, used, err);
}

static int watch(struct quantize_work *w, const struct rg_graph *g, int value, struct rg_error *err)
{
	struct rg_quantized_range *r = &w->r->ranges[w->n_watched];

	for (int k = 0; k < w->n_watched; k++)
		if (w->watched[k] == value)
			return 0;
	*r = (struct rg_quantized_range){ .low = NAN, .high = NAN, .seen_low = NAN, .seen_high = NAN, .clipped = NAN,
					  .valid_low = NAN, .valid_high = NAN, .drifted = NAN };
	r->value = rg_arena_strdup(w->r->arena, g->values[value].name);
	w->watched[w->n_watched++] = value;
	return r->value ? 0 : rg_error_nomem(err, 64);
}

static int watch_all(struct quantize_work *w, const struct rg_graph *g, struct rg_error *err)
{
	size_t most = (size_t)w->sites.n * (RG_QUANTIZE_ACTS + 1) + 1;
	int rc = 0;

	w->watched = rg_calloc(most, sizeof(*w->watched));
	w->r->ranges = rg_arena_alloc(w->r->arena, most, sizeof(*w->r->ranges));
	if (!w->watched || !w->r->ranges)
		return rg_error_nomem(err, most * sizeof(*w->r->ranges));
	for (int i = 0; i < w->sites.n && !rc && !w->o->how.dynamic; i++) {
		const struct rg_quantize_site *s = &w->sites.v[i];

		for (int k = 0; k < s->n_act && !rc; k++)
			rc = watch(w, g, s->act[k], err);
		if (!rc && s->output >= 0)
			rc = watch(w, g, s->output, err);
	}
	w->r->n_ranges = w->n_watched;
	return rc;
}

static int find_ops(struct quantize_work *w, struct rg_error *err)
{
	bool *used = rg_calloc((size_t)w->o->n_keep + 1, sizeof(*used));
	struct rg_graph *g = NULL;
	int rc = used ? rg_trial_open_first(w, &g, err) : rg_error_nomem(err, (size_t)w->o->n_keep);

	if (!rc) {
		/* folded, as what is written is when it is counted */
		w->r->weight_bytes_before = rg_graph_weight_bytes(g);
		rc = rg_quantize_find(g, &w->o->how, &w->sites, err);
	}
	if (!rc) {
		size_t n = (size_t)w->sites.n + 1;

		w->n_values = g->n_values;
		w->on = rg_calloc(n, sizeof(*w->on));
		w->op = rg_calloc(n, sizeof(*w->op));
		w->ranges = rg_calloc((size_t)g->n_values + 1, sizeof(*w->ranges));
		w->seen = rg_calloc((size_t)g->n_values + 1, sizeof(*w->seen));
		w->r->ops = rg_arena_alloc(w->r->arena, n + (size_t)w->sites.n_left, sizeof(*w->r->ops));
		if (!w->on || !w->op || !w->ranges || !w->seen || !w->r->ops)
			rc = rg_error_nomem(err, (size_t)g->n_values * sizeof(*w->ranges));
	}
	if (!rc)
		rc = list_ops(w, g, used, err);
	if (!rc)
		rc = watch_all(w, g, err);
	rg_graph_free(g);
	rg_free(used);
	return rc;
}

static int count_on(const struct quantize_work *w)
{
	int n = 0;

	for (int i = 0; i < w->sites.n; i++)
		n += w->on[i];
	return n;
}

static int check_any(const struct quantize_work *w, const char *when, struct rg_error *err)
{
	if (count_on(w))
		return 0;
	rg_error_set(err, -ENODATA, "%s", when);
	if (!w->sites.n)
		return rg_error_hint(err, w->sites.n_left ? "'%.100s' (%s): %s" :
							     "Conv, Gemm and MatMul are what is quantised%s%s%s",
				     w->sites.n_left ? w->r->ops[0].name : "", w->sites.n_left ? w->r->ops[0].op_type : "",
				     w->sites.n_left ? w->r->ops[0].why : "");
	return rg_error_hint(err, "nothing was written; a lower --min-sqnr, another --ranges or data that is like the "
				  "model's own may help");
}

static int write_file(struct quantize_work *w, const char *part, struct rg_error *err)
{
	unsigned char *values = NULL, *nodes = NULL;
	struct rg_graph *g = NULL;
	struct stat st;
	int rc = rg_trial_open_first(w, &g, err);

	if (!rc)
		rc = rg_trial_rewrite(w, g, w->on, err);
	if (!rc) {
		values = rg_calloc((size_t)g->n_values + 1, 1);
		nodes = rg_calloc((size_t)g->n_nodes + 1, 1);
		rc = values && nodes ? 0 : rg_error_nomem(err, (size_t)g->n_values);
	}
	if (!rc) {
		rg_mark_needed(g, true, values, nodes);
		w->r->weight_bytes_after = rg_graph_weight_bytes(g);
		rc = rg_onnx_write_values(g, values, part, err);
	}
	if (!rc && stat(part, &st) == 0)
		w->r->file_bytes_after = st.st_size;
	rg_free(values);
	rg_free(nodes);
	rg_graph_free(g);
	return rc;
}

static int quantize(struct quantize_work *w, const char *part, struct rg_error *err)
{
	int rc = rewrite_model(w, err);

	if (!rc)
		rc = find_ops(w, err);
	if (!rc)
		rc = check_any(w, "there is nothing to quantise", err);
	if (!rc)
		rc = rg_quantize_calibrate(w, err);
	if (!rc)
		rc = rg_quantize_measure_ops(w, err);
	if (!rc)
		rc = check_any(w, "every operator's error is too large", err);
	w->r->n_quantized = count_on(w);
	if (!rc)
		rc = rg_quantize_measure_all(w, err);
	if (!rc)
		rc = write_file(w, part, err);
	return rc ? rc : rg_quantize_measure_file(w, part, err);
}

/* Behind a link, what it leads to: a rename would replace the link. Devices and folders are no place for a
 * model. */
static int find_place(const char *path, char place[PATH_MAX], struct rg_error *err)
{
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		rg_error_set(err, RG_EUSAGE, "%s is %s, not a file", path,
			     S_ISDIR(st.st_mode) ? "a folder" : "a device or a pipe");
		return rg_error_hint(err, "a model is written to a file: -o FILE.onnx");
	}
	if (realpath(path, place) || snprintf(place, PATH_MAX, "%s", path) < PATH_MAX)
		return 0;
	rg_error_set(err, -ENAMETOOLONG, "%.60s...: the path is longer than %d", path, PATH_MAX);
	return rg_error_hint(err, "name another place with -o FILE.onnx");
}

static void work_free(struct quantize_work *w)
{
	if (w->exact)
		unlink(w->exact);
	rg_free(w->exact);
	rg_free(w->shapes);
	rg_samples_free(&w->calibration);
	rg_samples_free(&w->validation);
	rg_quantize_sites_free(&w->sites);
	rg_free(w->on);
	rg_free(w->op);
	rg_free(w->watched);
	rg_free(w->ranges);
	rg_free(w->seen);
}

int rg_session_quantize(const struct rg_quantize_run *o, const char *path, struct rg_quantized **out,
			struct rg_error *err)
{
	struct rg_quantized *r = rg_calloc(1, sizeof(*r));
	struct quantize_work w = { .o = o, .r = r };
	struct rg_topology topo;
	char place[PATH_MAX], *part = NULL;
	struct rg_cpu cpu;

	*out = NULL;
	if (!r)
		return rg_error_nomem(err, sizeof(*r));
	*r = (struct rg_quantized){ .dynamic = o->how.dynamic, .per_tensor = o->how.per_tensor,
				    .symmetric = o->how.symmetric, .rule = rg_range_rule_name(o->rule),
				    .min_sqnr_db = o->min_sqnr_db, .all_db = NAN, .valid_db = NAN, .file_db = NAN,
				    .weight_bytes_before = -1, .weight_bytes_after = -1, .file_bytes_before = -1,
				    .file_bytes_after = -1, .arena = rg_arena_new() };
	rg_cpu_detect("", &cpu);
	rg_topology_read("", &topo);
	w.isa = cpu.isa;
	w.lanes = o->session.threads ? o->session.threads : rg_topology_default_threads(&topo);
	if (!r->arena)
		rg_error_nomem(err, sizeof(*r));
	else if (!find_place(path, place, err)) {
		part = rg_asprintf("%s.part", place);
		w.exact = rg_asprintf("%s.float.part", place);
		if (!part || !w.exact)
			rg_error_nomem(err, strlen(place));
		else
			quantize(&w, part, err);
		if (!err->code && rename(part, place) < 0) {
			rg_error_set(err, -errno, "cannot be written: %s", strerror(errno));
			rg_error_hint(err, "name another place with -o FILE.onnx");
			rg_error_at(err, "%s", path);
		}
		if (err->code && part)
			unlink(part);
	}
	rg_free(part);
	work_free(&w);
	if (err->code) {
		rg_quantized_free(r);
		return err->code;
	}
	*out = r;
	return 0;
}

void rg_quantized_free(struct rg_quantized *r)
{
	if (!r)
		return;
	rg_arena_free(r->arena);
	rg_free(r);
}
