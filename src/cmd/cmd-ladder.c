/*
 * ridge bench ladder: matrix products from the definition to our best kernels, float32 and
 * int8; and ladder-once, what the simulator runs of it.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "cmd/draw.h"
#include "cmd/ladder.h"
#include "cmd/verbs.h"
#include "session/ladder-sim.h"
#include "session/ladder.h"

/* Shapes as words and as --shape. */
static int shapes(const struct rg_args *a, struct rg_ladder_shape **out, int *n, struct rg_error *err)
{
	int words = a->n_positional - 1, rc = 0;

	*n = words + a->n_bare_shapes;
	if (*n == 0)
		return 0;
	*out = rg_calloc((size_t)*n, sizeof(**out));
	if (!*out)
		return rg_error_nomem(err, (size_t)*n * sizeof(**out));
	for (int i = 0; i < *n && !rc; i++)
		rc = rg_ladder_shape_parse(i < words ? a->positional[i + 1] : a->bare_shapes[i - words], &(*out)[i], err);
	return rc;
}

static int draw(struct rg_args *a, const struct rg_ladder_report *r, struct rg_error *err)
{
	struct rg_plot_options o = { .output = a->output, .width = a->width, .height = a->height, .colour = a->colour };
	struct rg_str script = { 0 };
	int rc;

	rg_cmd_canvas(a, &o);
	if (!o.width) {
		o.width = 1200; /* 60 columns and more */
		o.height = 600;
	}
	rc = rg_plot_ladder_script(&script, r, &o, err);
	if (rc == 0)
		rc = rg_cmd_draw(a, rg_str_text(&script), &o, err);
	rg_str_free(&script);
	return rc;
}

static int refuse(const char *option, const char *why, struct rg_error *err)
{
	rg_error_set(err, RG_EUSAGE, "ridge bench ladder takes no --%s", option);
	return rg_error_hint(err, "%s", why);
}

/* Options of the verb that are for gemm and conv. */
static int check(const struct rg_args *a, struct rg_error *err)
{
	if (a->session.n_overrides)
		return refuse("kernel", "--rung NAME measures one rung; ridge bench gemm takes kernels by name", err);
	if (a->session.bindings.n_shapes || a->session.bindings.n_dims)
		return refuse(a->session.bindings.n_dims ? "dim" : "shape NAME=...", "its shapes are MxKxN: 128x768x3072",
			      err);
	return 0;
}

int rg_cmd_ladder(struct rg_args *a, struct rg_error *err)
{
	struct rg_ladder_options o = { .session = &a->session, .n_rungs = a->n_rungs, .rungs = a->rungs,
				       .rounds = a->rounds, .quick = a->quick, .simulate = a->misses };
	struct rg_style st = rg_cmd_style(a);
	struct rg_ladder_shape *list = NULL;
	struct rg_ladder_report *r = NULL;
	struct rg_str out = { 0 };
	int rc = check(a, err);

	a->session.progress = rg_cmd_progress;
	a->session.progress_ctx = a;
	rg_cmd_catch_interrupt();
	if (!rc && a->weights)
		rc = rg_ladder_weights_parse(a->weights, &o.weights, err);
	if (!rc)
		rc = shapes(a, &list, &o.n_shapes, err);
	o.shapes = list;
	if (!rc)
		rc = rg_ladder_measure(&o, &r, err);
	rg_cmd_progress_end(a);
	if (!rc) {
		if (rg_report_ladder(&out, r, &st))
			rc = rg_error_nomem(err, out.len);
		else
			rc = rg_cmd_print(rg_str_text(&out), err);
	}
	if (!rc && a->output)
		draw(a, r, err);
	rg_str_free(&out);
	rg_ladder_report_free(r);
	rg_free(list);
	return rg_cmd_exit_code(err);
}

int rg_cmd_ladder_once(struct rg_args *a, struct rg_error *err)
{
	rg_ladder_once(a->positional[0], a->positional[3], a->positional[1], a->positional[2], err);
	return rg_cmd_exit_code(err);
}
