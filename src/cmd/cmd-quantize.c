/*
 * ridge quantize: a model in eight bits, as an ONNX file, and what that costs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/quantize-text.h"
#include "cmd/verbs.h"

/* An error of a third of the signal by one operator alone. */
#define USUAL_MIN_DB 10
#define USUAL_PERCENT 99.99

static int show(struct rg_args *a, const struct rg_quantized *r, struct rg_error *err)
{
	struct rg_style st = rg_cmd_style(a);
	struct rg_str out = { 0 }, line = { 0 };
	int rc = a->format == RG_FORMAT_JSON ? rg_quantize_json(&out, r, a->session.model, a->output)
					     : a->quiet ? 0 : rg_quantize_text(&out, r, &st);

	rg_quantize_summary(&line, r, a->output);
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

static int check(const struct rg_args *a, struct rg_error *err)
{
	const struct rg_quantize_run *q = &a->quantize;
	const char *useless = NULL;

	if (!a->output || strcmp(a->output, "-") == 0) {
		rg_error_set(err, RG_EUSAGE, "quantize needs -o FILE.onnx%s",
			     a->output ? ": a model is not for the terminal" : "");
		return rg_error_hint(err, "for example  ridge quantize %.100s -o int8.onnx --calibrate DIR",
				     a->positional[0]);
	}
	if (q->calibrate && q->n_samples) {
		rg_error_set(err, RG_EUSAGE, "--samples and --calibrate exclude each other");
		return rg_error_hint(err, "the folder says which samples there are");
	}
	if (q->how.dynamic) /* what the dynamic form has no use for would go unheard */
		useless = q->how.symmetric ? "--symmetric" : q->rule ? "--ranges" : q->how.n_also ? "--also" : NULL;
	if (useless) {
		rg_error_set(err, RG_EUSAGE, "--dynamic and %s exclude each other", useless);
		return rg_error_hint(err, "in the dynamic form activations are uint8, and ranges those of each input");
	}
	if (q->percent > 0 && q->rule != RG_RANGE_PERCENTILE) {
		rg_error_set(err, RG_EUSAGE, "--percentile is for one of the rules only");
		return rg_error_hint(err, "add --ranges percentile");
	}
	return 0;
}

int rg_cmd_quantize(struct rg_args *a, struct rg_error *err)
{
	struct rg_quantize_run *q = &a->quantize;
	struct rg_quantized *r = NULL;
	struct rg_store *s = NULL;
	int rc;

	a->session.model = a->positional[0];
	if (check(a, err))
		return rg_cmd_exit_code(err);
	if (isnan(q->min_sqnr_db))
		q->min_sqnr_db = USUAL_MIN_DB;
	if (!(q->percent > 0))
		q->percent = USUAL_PERCENT;
	q->quick = a->quick;
	q->session = a->session;
	/* first: a database that cannot be written is no surprise for the end of minutes */
	if (rg_cmd_open_write(a, &s, err))
		return rg_cmd_exit_code(err);
	rg_cmd_catch_interrupt();
	rc = rg_session_quantize(q, a->output, &r, err);
	rg_cmd_progress_end(a);
	if (!rc)
		rc = rg_quantized_store(r, q, s, err);
	rg_store_close(s);
	if (!rc)
		show(a, r, err);
	rg_quantized_free(r);
	return rg_cmd_exit_code(err);
}
