/*
 * ridge doctor: what can be measured here, and what would open the rest.
 */
#include "base/alloc.h"
#include "cmd/verbs.h"
#include "reports/json.h"
#include "reports/table.h"

static const char *state_name(int state)
{
	return state == 0 ? "ok" : state == 1 ? "limited" : "unavailable";
}

static int json(struct rg_str *out, const struct rg_doctor_row *rows, int n)
{
	struct rg_json j;
	json_t *list, *o;

	rg_json_init(&j);
	list = rg_json_put(&j, j.root, "checks", json_array());
	for (int i = 0; i < n; i++) {
		o = rg_json_put(&j, list, NULL, json_object());
		rg_json_text(&j, o, "name", rows[i].name);
		rg_json_text(&j, o, "state", state_name(rows[i].state));
		rg_json_text(&j, o, "detail", rows[i].detail);
		rg_json_text(&j, o, "hint", rows[i].hint[0] ? rows[i].hint : NULL);
	}
	return rg_json_finish(&j, out);
}

static int table(struct rg_str *out, const struct rg_doctor_row *rows, int n, const struct rg_style *st)
{
	static const struct rg_column columns[] = { { "name" }, { "state" }, { "detail" }, { "hint" } };
	struct rg_table t;
	int rc;

	rg_table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < n; i++) {
		rg_table_add(&t, rows[i].name);
		rg_table_add(&t, state_name(rows[i].state));
		rg_table_add(&t, rows[i].detail);
		rg_table_add(&t, rows[i].hint);
	}
	rc = rg_table_print(out, &t, st);
	rg_table_free(&t);
	return rc;
}

/* For people the sentences are wrapped, not squeezed into columns. */
static int text(struct rg_str *out, const struct rg_doctor_row *rows, int n, const struct rg_style *st)
{
	static const char *const sgr[] = { "32", "33", "31" };

	for (int i = 0; i < n; i++) {
		int state = rows[i].state < 0 || rows[i].state > 2 ? 2 : rows[i].state;

		rg_text_styled(out, st, "1", rows[i].name);
		rg_str_printf(out, "%*s", 28 - rg_text_width(rows[i].name), "");
		rg_text_styled(out, st, sgr[state], state_name(state));
		rg_str_add(out, "\n");
		rg_text_paragraph(out, st, "", 4, rows[i].detail);
		if (rows[i].hint[0])
			rg_text_paragraph(out, st, "    to do:", 11, rows[i].hint);
	}
	return out->failed ? -ENOMEM : 0;
}

int rg_cmd_doctor(struct rg_args *a, struct rg_error *err)
{
	struct rg_style st = rg_cmd_style(a);
	struct rg_doctor_row *rows = NULL;
	struct rg_str out = { 0 };
	int n = 0, rc;

	if (rg_session_doctor(&rows, &n, err) == 0) {
		if (a->format == RG_FORMAT_JSON)
			rc = json(&out, rows, n);
		else if (a->format == RG_FORMAT_TABLE)
			rc = text(&out, rows, n, &st);
		else
			rc = table(&out, rows, n, &st);
		if (rc != 0)
			rg_error_nomem(err, out.len);
		else
			rg_cmd_print(rg_str_text(&out), err);
	}
	rg_str_free(&out);
	rg_free(rows);
	return rg_cmd_exit_code(err);
}
