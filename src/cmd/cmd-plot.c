/*
 * ridge plot: a picture of a run, or of a plan's memory, to a file or into the terminal.
 */
#include <string.h>

#include "cmd/draw.h"
#include "cmd/verbs.h"
#include "models/model.h"
#include "reports/plot.h"

typedef int script_fn(struct rg_str *out, const struct rg_analysis *a, const struct rg_plot_options *o,
		      struct rg_error *err);

static const struct kind {
	const char *name;
	script_fn *script;
	bool takes_model; /* and --capacity */
} kinds[] = {
	{ "roofline", rg_plot_roofline_script, false },
	{ "tail", rg_plot_tail_script, false },
	{ "memory", rg_plot_memory_script, true },
};

static int draw(struct rg_args *a, const struct rg_analysis *an, const struct kind *kind, struct rg_error *err)
{
	struct rg_plot_options o = {.output = a->output ? a->output : "-",
					.width = a->width,
					.height = a->height,
					.colour = a->colour,
					.capacity_bytes = a->capacity_bytes > 0 ? a->capacity_bytes : 0};
	struct rg_str script = { 0 };
	int rc;

	rg_cmd_canvas(a, &o);
	rc = kind->script(&script, an, &o, err);
	if (rc == 0)
		rc = rg_cmd_draw(a, rg_str_text(&script), &o, err);
	rg_str_free(&script);
	return rc;
}

/* What to draw, refused where it does not fit together; NULL then. */
static const struct kind *find_kind(const struct rg_args *a, struct rg_error *err)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(a->positional[0], kinds[i].name) != 0)
			continue;
		if (kinds[i].takes_model || a->capacity_bytes < 0)
			return &kinds[i];
		rg_error_set(err, RG_EUSAGE, "ridge plot %s takes no --capacity", kinds[i].name);
		rg_error_hint(err, "ridge plot memory does");
		return NULL;
	}
	rg_error_set(err, RG_EUSAGE, "there is no plot '%s'", a->positional[0]);
	rg_error_hint(err, "one of: roofline, tail, memory");
	return NULL;
}

int rg_cmd_plot(struct rg_args *a, struct rg_error *err)
{
	const struct kind *kind = find_kind(a, err);
	const char *what = a->positional[1];
	bool model = kind && kind->takes_model && what && rg_model_looks_like(what);
	struct rg_store *s = NULL;
	struct rg_recording *rec = NULL;
	struct rg_analysis *an = NULL;

	if (!kind)
		return rg_cmd_exit_code(err);
	a->session.no_ceilings = true; /* no roof is drawn */
	if ((model ? rg_cmd_plan(a, what, &s, err) : rg_cmd_open_read(a, &s, err)) != 0) {
		rg_cmd_missing_model(what, err);
		return rg_cmd_exit_code(err);
	}
	if (rg_cmd_load(s, model ? "last" : what, &rec, &an, err) == 0)
		draw(a, an, kind, err);
	else if (kind->takes_model && !model)
		rg_cmd_missing_model(what, err);
	rg_analysis_free(an);
	rg_recording_free(rec);
	rg_store_close(s);
	return rg_cmd_exit_code(err);
}
