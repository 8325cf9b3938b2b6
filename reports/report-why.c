/*
 * Why each kernel was chosen (ridge report --why): the plan's own reason, once for
 * all operators that share it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "reports/report-run.h"
#include "reports/table.h"

static bool same(const struct rg_step_row *x, const struct rg_step_row *y)
{
	return !strcmp(x->op_type, y->op_type) && !strcmp(x->kernel, y->kernel) &&
	       !strcmp(x->kernel_reason, y->kernel_reason);
}

static void one(struct rg_str *out, const struct rg_style *st, const struct rg_step_row *s, int count)
{
	const char *why = *s->kernel_reason ? s->kernel_reason : "no reason was recorded";
	struct rg_str text = { 0 };

	if (count > 1)
		rg_str_printf(&text, "%s for %d operators: %s", s->kernel, count, why);
	else
		rg_str_printf(&text, "%s for %s: %s", s->kernel, s->name, why);
	if (text.failed)
		out->failed = true;
	else
		rg_text_paragraph(out, st, s->op_type, 18, rg_str_text(&text));
	rg_str_free(&text);
}

int rg_report_why(struct rg_str *out, const struct rg_analysis *a, const struct rg_style *st)
{
	int shown, *order = rg_report_order(a, st, &shown);
	bool *told = rg_calloc((size_t)(a->n_ops > 0 ? a->n_ops : 1), sizeof(*told));

	if (!order || !told) {
		rg_free(order);
		rg_free(told);
		return -ENOMEM;
	}
	rg_str_add(out, "\n");
	for (int i = 0; i < shown; i++) {
		const struct rg_step_row *s = a->ops[order[i]].step;
		int count = 0;

		if (told[i])
			continue;
		for (int k = i; k < shown; k++) {
			if (!same(s, a->ops[order[k]].step))
				continue;
			told[k] = true;
			count++;
		}
		one(out, st, s, count);
	}
	rg_free(order);
	rg_free(told);
	return out->failed ? -ENOMEM : 0;
}
