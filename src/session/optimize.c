/* See optimize.h. Here are its entry, the steps in their order, and the writing of the file. */
#include "session/optimize.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "compile/opset.h"
#include "models/onnx-write.h"
#include "session/optimize-work.h"

/* Models of this opset run where most people deploy. */
enum { USUAL_OPSET = 17 };

/* The file that is written for `path`: behind a link, what it leads to. A rename would replace a device
 * or a pipe (/dev/null, say) instead of writing to it, so those are refused, before there is work. */
static int find_place(const char *path, char place[PATH_MAX], struct rg_error *err)
{
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		rg_error_set(err, RG_EUSAGE, "%s is %s, not a file", path,
			     S_ISDIR(st.st_mode) ? "a folder" : "a device or a pipe");
		return rg_error_hint(err, "a model is written to a file: -o FILE.onnx");
	}
	if (realpath(path, place))
		return 0;
	if (snprintf(place, PATH_MAX, "%s", path) < PATH_MAX)
		return 0;
	rg_error_set(err, -ENAMETOOLONG, "%.60s...: the path is longer than %d", path, PATH_MAX);
	return rg_error_hint(err, "name another place with -o FILE.onnx");
}

static int write_graph(struct work *w, struct rg_graph *g, const char *path, struct rg_error *err)
{
	unsigned char *values = NULL;
	char *part = rg_asprintf("%s.part", path);
	int rc = part ? 0 : rg_error_nomem(err, strlen(path));

	if (!rc && w->o->level > 0)
		rc = rg_optimize_needed_values(g, &values, err);
	if (!rc)
		rc = rg_onnx_write_values(g, values, part, err);
	if (!rc && w->o->verify && w->r->planned)
		rc = rg_optimize_prove_file(w, part, false, err);
	if (!rc && w->o->verify && w->r->planned && rg_optimize_varies(w))
		rc = rg_optimize_prove_file(w, part, true, err);
	if (!rc && rename(part, path) < 0) {
		rg_error_set(err, -errno, "cannot be written: %s", strerror(errno));
		rg_error_hint(err, "name another place with -o FILE.onnx");
		rc = rg_error_at(err, "%s", path);
	}
	if (rc && part)
		unlink(part);
	rg_free(part);
	rg_free(values);
	return rc;
}

/* Hands the rewritten graph to the result. */
static void keep(struct rg_optimized *r, struct rewriting *a)
{
	rg_graph_free(r->model->graph);
	r->model->graph = a->g;
	r->log = a->log;
	r->n_dead = a->log.n_dead;
	a->g = NULL;
	a->log = (struct rg_pass_log){ 0 };
}

static int rewrite_model(struct work *w, struct rg_error *err)
{
	struct rewriting a = { 0 };
	int rc = rg_optimize_find_sizes(w, err);

	if (rc)
		return rc;
	rc = rg_optimize_vary_sizes(w, err);
	if (!rc)
		rc = rg_optimize_settle(w, &a, err);
	w->r->planned = true;
	if (!rc && w->o->verify)
		rc = rg_optimize_prove_passes(w, err);
	if (!rc)
		rc = rg_optimize_report(w, &a, err);
	if (!rc)
		rc = rg_open_sizes_fix(&w->sizes, a.g, err);
	if (!rc)
		keep(w->r, &a);
	rg_optimize_rewriting_free(&a);
	return rc;
}

/* A pass that exists, and that would run but for this. */
static int check_disabled(const char *name, struct rg_error *err)
{
	const struct rg_pass *pass = NULL;
	struct rg_str names = { 0 };

	for (int k = 0; k < rg_pass_count(); k++) {
		const struct rg_pass *p = rg_pass_at(k);

		if (strcmp(p->name, name) == 0)
			pass = p;
		if (!p->own_only)
			rg_str_printf(&names, "%s%s", names.len ? ", " : "", p->name);
	}
	if (!pass)
		rg_error_set(err, RG_EUSAGE, "--disable %.60s: there is no such pass", name);
	else if (pass->own_only)
		rg_error_set(err, RG_EUSAGE, "--disable %s: the pass never runs for a file: %s", name,
			     pass->own_only);
	if (err->code)
		rg_error_hint(err, "one of: %s", rg_str_text(&names));
	rg_str_free(&names);
	return err->code;
}

static int make_room(struct work *w, struct rg_error *err)
{
	size_t n = (size_t)rg_pass_count() + 1;

	w->out = rg_calloc(n, sizeof(*w->out));
	w->disabled = rg_calloc(n + (size_t)w->o->n_disabled, sizeof(*w->disabled));
	if (!w->out || !w->disabled)
		return rg_error_nomem(err, n * sizeof(*w->out));
	for (int i = 0; i < w->o->n_disabled; i++) {
		if (check_disabled(w->o->disabled[i], err))
			return err->code;
		w->disabled[i] = w->o->disabled[i];
	}
	return 0;
}

static int optimize(struct work *w, const char *path, struct rg_error *err)
{
	struct rg_optimized *r = w->r;
	int rc = make_room(w, err);

	if (!rc)
		rc = rg_model_open(w->o->session.model, &w->o->session.bindings, &r->model, err);
	if (rc)
		return rc;
	rc = rg_optimize_report_defaults(w, r->model->graph, err);
	r->opset_before = rg_graph_opset(r->model->graph, "");
	w->opset = r->opset_before;
	w->most_opset = w->o->opset ? w->o->opset : USUAL_OPSET;
	if (w->most_opset < r->opset_before)
		w->most_opset = r->opset_before;
	r->n_nodes_before = r->model->graph->n_nodes;
	r->weight_bytes_before = rg_graph_weight_bytes(r->model->graph);
	if (!rc && r->level > 0)
		rc = rewrite_model(w, err);
	if (!rc)
		rc = rg_opset_raise(r->model->graph, 0, err);
	if (rc == -EINVAL && !err->hint[0])
		rg_error_hint(err, "the model does not fit together, or not with the given shapes: export it again, "
				   "or change --shape and --dim");
	if (rc)
		return rg_error_at(err, "%s", w->o->session.model);
	r->opset_after = rg_graph_opset(r->model->graph, "");
	r->n_nodes_after = r->model->graph->n_nodes;
	r->weight_bytes_after = rg_graph_weight_bytes(r->model->graph);
	rc = write_graph(w, r->model->graph, path, err);
	r->verified = !rc && w->o->verify && r->planned;
	return rc;
}

int rg_session_optimize(const struct rg_optimize_options *o, const char *path, struct rg_optimized **out,
			struct rg_error *err)
{
	struct rg_optimized *r = rg_calloc(1, sizeof(*r));
	struct work w = { .o = o, .r = r };
	char place[PATH_MAX];

	*out = NULL;
	if (!r)
		return rg_error_nomem(err, sizeof(*r));
	r->level = o->level;
	r->arena = rg_arena_new();
	if (!r->arena)
		rg_error_nomem(err, sizeof(*r));
	else if (!find_place(path, place, err))
		optimize(&w, place, err);
	rg_free(w.given.shapes);
	rg_free(w.bound);
	rg_open_sizes_free(&w.sizes);
	rg_free(w.out);
	rg_free(w.disabled);
	if (err->code) {
		rg_optimized_free(r);
		return err->code;
	}
	*out = r;
	return 0;
}

void rg_optimized_free(struct rg_optimized *r)
{
	if (!r)
		return;
	rg_pass_log_free(&r->log);
	rg_free(r->pinned);
	rg_model_free(r->model);
	rg_arena_free(r->arena);
	rg_free(r);
}
