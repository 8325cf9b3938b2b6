/*
 * ridge optimize: a model rewritten, as an ONNX file for whoever runs it.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/optimize-text.h"
#include "cmd/verbs.h"

static int show(struct rg_args *a, const struct rg_optimized *r, struct rg_error *err)
{
	struct rg_style st = rg_cmd_style(a);
	struct rg_str out = { 0 }, line = { 0 };
	int rc = 0;

	if (a->format == RG_FORMAT_JSON)
		rc = rg_optimize_json(&out, r, a->output);
	else if (a->explain)
		rc = rg_optimize_explain(&out, r, &st);
	rg_optimize_summary(&line, r, a->output);
	if (rc || out.failed || line.failed)
		rg_error_nomem(err, out.len + line.len);
	else if (out.len)
		rg_cmd_print(rg_str_text(&out), err);
	if (!err->code && !a->quiet)
		fputs(rg_str_text(&line), stderr);
	rg_str_free(&out);
	rg_str_free(&line);
	return err->code;
}

int rg_cmd_optimize(struct rg_args *a, struct rg_error *err)
{
	struct rg_optimize_options o = { .level = a->level < 0 ? 2 : a->level, .n_disabled = a->n_disabled,
					 .disabled = a->disabled, .opset = a->opset, .verify = a->verify };
	struct rg_optimized *r = NULL;

	if (!a->output || strcmp(a->output, "-") == 0) {
		rg_error_set(err, RG_EUSAGE, "optimize needs -o FILE.onnx%s",
			     a->output ? ": a model is not for the terminal" : "");
		rg_error_hint(err, "for example  ridge optimize %.100s -o optimized.onnx", a->positional[0]);
		return rg_cmd_exit_code(err);
	}
	if (o.level == 0 && a->verify) {
		rg_error_set(err, RG_EUSAGE, "--verify: at level 0 nothing is rewritten");
		rg_error_hint(err, "leave it out, or give --level 1");
		return rg_cmd_exit_code(err);
	}
	a->session.model = a->positional[0];
	o.session = a->session;
	rg_cmd_catch_interrupt();
	if (!rg_session_optimize(&o, a->output, &r, err))
		show(a, r, err);
	rg_optimized_free(r);
	return rg_cmd_exit_code(err);
}
