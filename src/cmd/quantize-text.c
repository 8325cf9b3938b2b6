/* See quantize-text.h. */
#include "cmd/quantize-text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/json.h"

/* "38.2 dB"; no error at all is "exact", nothing that could be compared "-". */
static const char *db_text(char out[32], double db)
{
	if (isnan(db))
		return "-";
	if (isinf(db))
		return db > 0 ? "exact" : "broken";
	snprintf(out, 32, "%.1f", db);
	return out;
}

static const char *share_text(char out[32], double share)
{
	if (isnan(share))
		return "-";
	snprintf(out, 32, share > 0 && share < 0.0001 ? "<0.01 %%" : "%.2f %%", 100 * share);
	return out;
}

void rg_quantize_summary(struct rg_str *out, const struct rg_quantized *r, const char *path)
{
	char all[32], valid[32], after[48], before[48];

	if (r->synthetic && !r->dynamic)
		rg_str_printf(out,
			      "WARNING: no --calibrate DIR: the ranges are those of %d samples of generated noise. The file "
			      "runs, but on real data values leave these ranges, and what they lose is not in the figures.\n",
			      r->n_samples);
	rg_str_printf(out, "wrote %s: %d of %d operators in int8, weights %s instead of %s, SQNR of the outputs %s%s", path,
		      r->n_quantized, r->n_can,
		      rg_fmt_bytes(after, r->weight_bytes_after < 0 ? (double)NAN : (double)r->weight_bytes_after),
		      rg_fmt_bytes(before, r->weight_bytes_before < 0 ? (double)NAN : (double)r->weight_bytes_before),
		      db_text(all, r->all_db), isfinite(r->all_db) ? " dB" : "");
	if (r->n_valid)
		rg_str_printf(out, ", on the validation data %s%s", db_text(valid, r->valid_db),
			      isfinite(r->valid_db) ? " dB" : "");
	rg_str_add(out, "\n");
	if (r->n_quantized < r->n_can)
		rg_str_printf(out, "%d stay float32: the table says which and why\n", r->n_can - r->n_quantized);
}

static int op_table(struct rg_str *out, const struct rg_quantized *r, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{ "operator", RG_ALIGN_LEFT, 20, 0 },       { "type", RG_ALIGN_LEFT, 0, 1 },
		{ "alone,\nat outputs", RG_ALIGN_RIGHT, 0, 0 }, { "alone,\nat its own", RG_ALIGN_RIGHT, 0, 0 },
		{ "weight", RG_ALIGN_RIGHT, 0, 1 },          { "one\nscale", RG_ALIGN_RIGHT, 0, 2 },
		{ "clipped", RG_ALIGN_RIGHT, 0, 0 },         { "drifted", RG_ALIGN_RIGHT, 0, 1 },
		{ "", RG_ALIGN_LEFT, 0, 0 },
	};
	struct rg_table t;
	char num[32];
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < r->n_ops; i++) {
		const struct rg_quantized_op *op = &r->ops[i];

		rg_table_add(&t, op->name);
		rg_table_add(&t, op->op_type);
		rg_table_add(&t, db_text(num, op->outputs_db));
		rg_table_add(&t, db_text(num, op->own_db));
		rg_table_add(&t, db_text(num, op->weight_db));
		rg_table_add(&t, db_text(num, op->per_tensor_db));
		rg_table_add(&t, share_text(num, op->clipped));
		rg_table_add(&t, share_text(num, op->drifted));
		rg_table_addf(&t, "%s%s", op->quantized ? "int8" : "float32: ", op->quantized ? "" : op->why);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

/* Ranges that the validation data leaves, the worst first. */
static void drift(struct rg_str *out, const struct rg_quantized *r)
{
	int left = 0, worst = -1;
	char share[32];

	for (int i = 0; i < r->n_ranges; i++) {
		left += r->ranges[i].drifted > 0;
		if (r->ranges[i].drifted > 0 && (worst < 0 || r->ranges[i].drifted > r->ranges[worst].drifted))
			worst = i;
	}
	rg_str_printf(out, "\nvalidation: %d samples; values leave the range of %d of %d activations", r->n_valid, left,
		      r->n_ranges);
	if (worst >= 0)
		rg_str_printf(out, ", most of '%s': %s outside of %.4g to %.4g, down to %.4g and up to %.4g",
			      r->ranges[worst].value, share_text(share, r->ranges[worst].drifted), r->ranges[worst].low,
			      r->ranges[worst].high, r->ranges[worst].valid_low, r->ranges[worst].valid_high);
	rg_str_add(out, "\n");
}

int rg_quantize_text(struct rg_str *out, const struct rg_quantized *r, const struct rg_style *st)
{
	char all[32], valid[32];
	int rc = op_table(out, r, st);

	rg_str_printf(out,
		      "\nSQNR in dB. Alone: one operator quantised, %d sample%s, at the least of the model's outputs and at "
		      "its own. Weight: of its weights as they are written, and with one scale for all.\n",
		      r->n_alone, r->n_alone == 1 ? "" : "s");
	rg_str_printf(out, "everything: %s%s at the outputs over %d %s samples, ranges by %s\n", db_text(all, r->all_db),
		      isfinite(r->all_db) ? " dB" : "", r->n_samples, r->synthetic ? "generated" : "calibration",
		      r->dynamic ? "each input" : r->rule);
	if (r->n_valid) {
		if (!r->dynamic)
			drift(out, r);
		rg_str_printf(out, "everything on validation data: %s%s\n", db_text(valid, r->valid_db),
			      isfinite(r->valid_db) ? " dB" : "");
	}
	return rc ? rc : out->failed ? -ENOMEM : 0;
}

/* ---- for programs ---- */

static void put_db(struct rg_json *j, json_t *to, const char *key, double db)
{
	/* JSON has no infinity: no error at all is a word */
	if (isinf(db))
		rg_json_text(j, to, key, db > 0 ? "exact" : "broken");
	else
		rg_json_num(j, to, key, db);
}

static void put_op(struct rg_json *j, json_t *to, const struct rg_quantized_op *op)
{
	rg_json_text(j, to, "name", op->name);
	rg_json_text(j, to, "op_type", op->op_type);
	rg_json_bool(j, to, "quantized", op->quantized);
	rg_json_text(j, to, "why_not", op->quantized ? NULL : op->why);
	put_db(j, to, "sqnr_outputs_db", op->outputs_db);
	put_db(j, to, "sqnr_own_db", op->own_db);
	rg_json_num(j, to, "clipped", op->clipped);
	rg_json_num(j, to, "drifted", op->drifted);
	rg_json_int(j, to, "weight_scales", op->channels ? op->channels : -1);
	rg_json_num(j, to, "weight_spread", op->spread);
	put_db(j, to, "weight_sqnr_db", op->weight_db);
	put_db(j, to, "weight_sqnr_per_tensor_db", op->per_tensor_db);
	put_db(j, to, "weight_sqnr_per_channel_db", op->per_channel_db);
}

int rg_quantize_json(struct rg_str *out, const struct rg_quantized *r, const char *model, const char *path)
{
	struct rg_json j;
	json_t *list;

	rg_json_init(&j);
	rg_json_text(&j, j.root, "model", model);
	rg_json_text(&j, j.root, "output", path);
	rg_json_text(&j, j.root, "form", r->dynamic ? "dynamic" : "static");
	rg_json_text(&j, j.root, "weights", r->per_tensor ? "per tensor" : "per channel");
	rg_json_text(&j, j.root, "activations", r->symmetric && !r->dynamic ? "int8" : "uint8");
	rg_json_text(&j, j.root, "ranges", r->dynamic ? NULL : r->rule);
	rg_json_bool(&j, j.root, "synthetic", r->synthetic);
	rg_json_int(&j, j.root, "samples", r->n_samples);
	rg_json_int(&j, j.root, "samples_alone", r->n_alone);
	rg_json_int(&j, j.root, "samples_validation", r->n_valid);
	rg_json_num(&j, j.root, "min_sqnr_db", r->min_sqnr_db);
	rg_json_int(&j, j.root, "operators_quantized", r->n_quantized);
	rg_json_int(&j, j.root, "operators_possible", r->n_can);
	put_db(&j, j.root, "sqnr_db", r->all_db);
	put_db(&j, j.root, "sqnr_validation_db", r->valid_db);
	put_db(&j, j.root, "sqnr_file_db", r->file_db);
	rg_json_int(&j, j.root, "weight_bytes_before", r->weight_bytes_before);
	rg_json_int(&j, j.root, "weight_bytes_after", r->weight_bytes_after);
	rg_json_int(&j, j.root, "file_bytes_before", r->file_bytes_before);
	rg_json_int(&j, j.root, "file_bytes_after", r->file_bytes_after);
	list = rg_json_put(&j, j.root, "operators", json_array());
	for (int i = 0; i < r->n_ops; i++)
		put_op(&j, rg_json_put(&j, list, NULL, json_object()), &r->ops[i]);
	list = rg_json_put(&j, j.root, "activation_ranges", json_array());
	for (int i = 0; i < r->n_ranges; i++) {
		const struct rg_quantized_range *v = &r->ranges[i];
		json_t *o = rg_json_put(&j, list, NULL, json_object());

		rg_json_text(&j, o, "value", v->value);
		rg_json_num(&j, o, "low", v->low);
		rg_json_num(&j, o, "high", v->high);
		rg_json_num(&j, o, "seen_low", v->seen_low);
		rg_json_num(&j, o, "seen_high", v->seen_high);
		rg_json_num(&j, o, "clipped", v->clipped);
		rg_json_num(&j, o, "validation_low", v->valid_low);
		rg_json_num(&j, o, "validation_high", v->valid_high);
		rg_json_num(&j, o, "drifted", v->drifted);
	}
	return rg_json_finish(&j, out);
}
