/*
 * The manual page (man(7) macros), made from the tables.
 */
#include <string.h>

#include "cmd/cmd.h"

/* roff obeys backslashes, and dots and quotes at the beginning of a line. */
static void roff(struct rg_str *out, const char *text)
{
	bool begin = true;

	for (; *text; text++) {
		if (begin && (*text == '.' || *text == '\''))
			rg_str_add(out, "\\&");
		if (*text == '\\')
			rg_str_add(out, "\\e");
		else if (*text == '-')
			rg_str_add(out, "\\-");
		else if (*text == '~')
			rg_str_add(out, "\\(ti");
		else
			rg_str_addn(out, text, 1);
		begin = *text == '\n';
	}
}

static void option(struct rg_str *out, const struct rg_opt *o)
{
	rg_str_add(out, ".TP\n\\fB");
	if (o->letter)
		rg_str_printf(out, "\\-%c\\fR, \\fB", o->letter);
	rg_str_add(out, "\\-\\-");
	roff(out, o->name);
	rg_str_add(out, "\\fR");
	if (o->value) {
		rg_str_add(out, " \\fI");
		roff(out, o->value);
		rg_str_add(out, "\\fR");
	}
	rg_str_add(out, "\n");
	roff(out, o->help);
	rg_str_add(out, o->repeatable ? "; may be repeated.\n" : ".\n");
}

static void verb(struct rg_str *out, const struct rg_cmd *c)
{
	bool first = true;

	rg_str_printf(out, ".SS ridge %s ", c->name);
	roff(out, c->positional);
	rg_str_add(out, "\n");
	roff(out, c->summary);
	rg_str_add(out, ".\n");
	for (const char *p = c->details; *p;) {
		size_t len = strcspn(p, "\n");
		char one[1024];

		if (len >= sizeof(one))
			len = sizeof(one) - 1;
		memcpy(one, p, len);
		one[len] = '\0';
		rg_str_add(out, ".PP\n");
		roff(out, one);
		rg_str_add(out, "\n");
		p += len + (p[len] == '\n');
	}
	rg_str_add(out, ".PP\nOptions: ");
	for (int i = 0; i < RG_OPT_COUNT; i++) {
		if (!(c->options >> i & 1))
			continue;
		rg_str_add(out, first ? "\\-\\-" : ", \\-\\-");
		roff(out, rg_opts[i].name);
		first = false;
	}
	rg_str_add(out, ".\n");
	if (c->formats) {
		rg_str_printf(out, "Formats: %s.\n", c->formats);
	}
	rg_str_add(out, ".PP\n.nf\n");
	roff(out, c->examples);
	rg_str_add(out, "\n.fi\n");
}

void rg_help_man(struct rg_str *out)
{
	rg_str_printf(out, ".TH RIDGE 1 \"\" \"ridge %s\" \"User Commands\"\n", rg_cmd_version);
	rg_str_add(
	    out,
	    ".SH NAME\nridge \\- performance analysis and Roofline of neural network inference\n"
	    ".SH SYNOPSIS\n.B ridge\n.I VERB\n[ARGUMENTS] [OPTIONS]\n"
	    ".SH DESCRIPTION\nruns a model in an executor whose every kernel is instrumented, keeps what it\n"
	    "measured in one SQLite database, and says where the time goes, what the ceiling is,\n"
	    "and what is worth changing.\n.PP\n"
	    "MODEL is an ONNX file or a builtin: name. RUN is a number, a tag, or last (the default).\n"
	    ".SH VERBS\n");
	for (int i = 0; i < rg_n_cmds; i++)
		verb(out, &rg_cmds[i]);
	rg_str_add(out, ".SH OPTIONS\n");
	for (int i = 0; i < RG_OPT_COUNT; i++)
		option(out, &rg_opts[i]);
	rg_str_add(out, ".SH EXIT STATUS\n"
			".TP\n0\ndone\n.TP\n1\nfailed\n.TP\n2\nwrong usage\n"
			".TP\n3\nthis machine cannot measure that\n"
			".TP\n130\ninterrupted; what was recorded is kept\n"
			".SH ENVIRONMENT\n.TP\nRIDGE_DB\nthe database, where \\-\\-db is not given\n"
			".TP\nNO_COLOR\nnot empty: no colour\n"
			".SH FILES\n.TP\nridge.db\nthe database, in the working directory\n");
}
