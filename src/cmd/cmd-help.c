/*
 * ridge help, completion and man: text from the tables.
 */
#include "cmd/verbs.h"

static int print(struct rg_str *out, struct rg_error *err)
{
	if (out->failed)
		rg_error_nomem(err, out->len);
	else
		rg_cmd_print(rg_str_text(out), err);
	rg_str_free(out);
	return rg_cmd_exit_code(err);
}

int rg_cmd_help(struct rg_args *a, struct rg_error *err)
{
	int columns = a->columns ? a->columns : 80;
	const struct rg_cmd *c = NULL;
	struct rg_str out = { 0 };

	if (a->n_positional) {
		c = rg_cmd_find(a->positional[0]);
		if (!c) {
			rg_args_unknown_verb(a->positional[0], err);
			return rg_cmd_exit_code(err);
		}
	}
	if (a->format == RG_FORMAT_MD)
		rg_help_markdown(&out);
	else if (c)
		rg_help_verb(&out, c, columns);
	else
		rg_help_summary(&out, columns);
	return print(&out, err);
}

int rg_cmd_completion(struct rg_args *a, struct rg_error *err)
{
	struct rg_str out = { 0 };

	if (!rg_help_completion(&out, a->positional[0])) {
		rg_str_free(&out);
		rg_error_set(err, RG_EUSAGE, "no completion for the shell '%s'", a->positional[0]);
		rg_error_hint(err, "one of: bash, zsh, fish");
		return rg_cmd_exit_code(err);
	}
	return print(&out, err);
}

int rg_cmd_man(struct rg_args *a, struct rg_error *err)
{
	struct rg_str out = { 0 };

	rg_help_man(&out);
	return print(&out, err);
}
