/*
 * ridge run: executes once and shows what came out.
 */
#include <inttypes.h>
#include <math.h>

#include "cmd/verbs.h"
#include "reports/json.h"
#include "reports/table.h"

static int json(struct rg_str *out, const struct rg_run_result *r)
{
	struct rg_json j;
	json_t *list, *o;

	rg_json_init(&j);
	rg_json_put(&j, j.root, "time_ns", json_integer((json_int_t)r->time_ns));
	rg_json_text(&j, j.root, "outputs_sha256", r->outputs_sha256);
	list = rg_json_put(&j, j.root, "outputs", json_array());
	for (int i = 0; i < r->n_outputs; i++) {
		const struct rg_run_output *q = &r->outputs[i];

		o = rg_json_put(&j, list, NULL, json_object());
		rg_json_text(&j, o, "name", q->name);
		rg_json_text(&j, o, "dtype", q->dtype);
		rg_json_shape(&j, o, "shape", q->shape);
		rg_json_num(&j, o, "min", q->min);
		rg_json_num(&j, o, "max", q->max);
		rg_json_num(&j, o, "mean", q->mean);
		rg_json_int(&j, o, "nan_count", q->nan_count);
		rg_json_text(&j, o, "path", q->path);
	}
	return rg_json_finish(&j, out);
}

static int table(struct rg_str *out, const struct rg_run_result *r, const struct rg_style *st)
{
	static const struct rg_column columns[] = {
		{"output", RG_ALIGN_LEFT, 10, 0}, {"dtype", RG_ALIGN_LEFT, 0, 0}, {"shape", RG_ALIGN_LEFT, 0, 0},
		{"min", RG_ALIGN_RIGHT, 0, 0},    {"max", RG_ALIGN_RIGHT, 0, 0},  {"mean", RG_ALIGN_RIGHT, 0, 0},
		{"NaN", RG_ALIGN_RIGHT, 0, 0},    {"file", RG_ALIGN_LEFT, 10, 1},
	};
	struct rg_table t;
	char num[32];
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < r->n_outputs; i++) {
		const struct rg_run_output *q = &r->outputs[i];
		const double v[] = { q->min, q->max, q->mean };

		rg_table_add(&t, q->name);
		rg_table_add(&t, q->dtype);
		rg_table_add(&t, q->shape);
		for (int k = 0; k < 3; k++) {
			if (st->format == RG_FORMAT_CSV)
				rg_table_addf(&t, isfinite(v[k]) ? "%.9g" : "-", v[k]);
			else
				rg_table_add(&t, rg_num3(num, v[k]));
		}
		if (q->nan_count >= 0)
			rg_table_addf(&t, "%" PRId64, q->nan_count);
		else
			rg_table_add(&t, "-");
		rg_table_add(&t, q->path);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	if (rc == 0 && st->format != RG_FORMAT_CSV)
		rg_str_printf(out, "\none inference, not warmed up: %s m; outputs SHA-256 %s\n",
				  rg_fmt_ns(num, (double)r->time_ns), r->outputs_sha256);
	return rc ? rc : out->failed ? -ENOMEM : 0;
}

int rg_cmd_run(struct rg_args *a, struct rg_error *err)
{
	struct rg_style st = rg_cmd_style(a);
	struct rg_run_result *r = NULL;
	struct rg_str out = { 0 };
	int rc;

	a->session.model = a->positional[0];
	rg_cmd_catch_interrupt();
	rc = rg_session_run(&a->session, a->output_dir, &r, err);
	rg_cmd_progress_end(a);
	if (rc == 0) {
		rc = a->format == RG_FORMAT_JSON ? json(&out, r) : table(&out, r, &st);
		if (rc == 0)
			rg_cmd_print(rg_str_text(&out), err);
		else
			rg_error_nomem(err, out.len);
	}
	rg_str_free(&out);
	rg_run_result_free(r);
	return rg_cmd_exit_code(err);
}
