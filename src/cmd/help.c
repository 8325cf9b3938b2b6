/*
 * `ridge help`, `ridge help VERB` and docs/commands.md, made from the tables.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "reports/table.h"

#ifndef RG_VERSION
#error "RG_VERSION comes from the build"
#endif
const char rg_cmd_version[] = RG_VERSION;

/* "  key   text", wrapped. */
static void item(struct rg_str *out, const char *key, const char *text, int indent, int columns)
{
	struct rg_style st = { .format = RG_FORMAT_TABLE, .width = columns };
	char padded[96];
	int wide;

	snprintf(padded, sizeof(padded), "  %.80s", key);
	wide = rg_text_width(padded);
	if (wide + 2 > indent) {
		/* Too long for its column: the text begins on the next line. */
		rg_str_printf(out, "%s\n", padded);
		rg_text_paragraph(out, &st, "", indent, text);
		return;
	}
	rg_text_paragraph(out, &st, padded, indent, text);
}

static void paragraphs(struct rg_str *out, const char *text, int columns)
{
	struct rg_style st = { .format = RG_FORMAT_TABLE, .width = columns };
	char one[1024];

	while (*text) {
		size_t len = strcspn(text, "\n");

		snprintf(one, sizeof(one), "%.*s", (int)len, text);
		rg_text_paragraph(out, &st, "", 0, one);
		text += len + (text[len] == '\n');
	}
}

/* Lines with something in front of each. */
static void lines(struct rg_str *out, const char *text, const char *front)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		rg_str_printf(out, "%s%.*s\n", front, (int)len, text);
		text += len + (text[len] == '\n');
	}
}

/* "-o, --output FILE" */
static const char *option_key(char *buf, size_t cap, const struct rg_opt *o)
{
	if (o->letter)
		snprintf(buf, cap, "-%c, --%s%s%s", o->letter, o->name, o->value ? " " : "",
			 o->value ? o->value : "");
	else
		snprintf(buf, cap, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
	return buf;
}

/* The help line of an option, with the verb's formats and "repeatable". */
static const char *option_help(char *buf, size_t cap, const struct rg_cmd *c, const struct rg_opt *o)
{
	if (o->id == RG_OPT_FORMAT && c->formats)
		snprintf(buf, cap, "%s: %s (default table)", o->help, c->formats);
	else
		snprintf(buf, cap, "%s%s", o->help, o->repeatable ? "; may be repeated" : "");
	return buf;
}

void rg_help_summary(struct rg_str *out, int columns)
{
	rg_str_add(out, "ridge: where does the time of a neural network go, what is the ceiling,\n"
			"and what is worth changing?\n\n"
			"usage: ridge VERB [ARGUMENTS] [OPTIONS]\n\n");
	for (int i = 0; i < rg_n_cmds; i++)
		if (!rg_cmds[i].hidden)
			item(out, rg_cmds[i].name, rg_cmds[i].summary, 12, columns);
	rg_str_add(out, "\n");
	paragraphs(out,
		   "MODEL is an ONNX file or a builtin: name; RUN is a number, a tag, or last (the default). "
		   "ridge help VERB "
		   "explains one verb.",
		   columns);
	rg_str_add(out,
		   "\nto begin:\n  ridge record builtin:resnet50\n  ridge report\n  ridge plot roofline\n");
}

void rg_help_verb(struct rg_str *out, const struct rg_cmd *c, int columns)
{
	char key[96], help[256];

	rg_str_printf(out, "usage: ridge %s%s%s%s\n\n", c->name, c->positional[0] ? " " : "", c->positional,
		      c->options & ~(UINT64_C(1) << RG_OPT_HELP) ? " [OPTIONS]" : "");
	paragraphs(out, c->summary, columns);
	if (c->details[0]) {
		rg_str_add(out, "\n");
		paragraphs(out, c->details, columns);
	}
	rg_str_add(out, "\noptions:\n");
	for (int i = 0; i < RG_OPT_COUNT; i++)
		if (c->options >> i & 1)
			item(out, option_key(key, sizeof(key), &rg_opts[i]),
			     option_help(help, sizeof(help), c, &rg_opts[i]), 30, columns);
	rg_str_add(out, "\nexamples:\n");
	lines(out, c->examples, "  ");
}

void rg_help_markdown(struct rg_str *out)
{
	char key[96], help[256];

	rg_str_add(out, "# Commands\n\n"
			"Written by `ridge help --format md` from the command table; a test holds this file "
			"against it.\n\n"
			"Options may stand anywhere, as `--name value` or `--name=value`; after `--` nothing "
			"is an option. `MODEL` is an ONNX file or a `builtin:` name. `RUN` is a number, a tag, or `last` "
			"(the default). "
			"Where both are possible, an existing file or a `builtin:` name comes first.\n\n"
			"Data goes to standard output, everything else to standard error. Colour and the "
			"progress line appear "
			"only on a terminal, colour never when `NO_COLOR` is set.\n\n"
			"| exit code | means |\n|---:|---|\n"
			"| 0 | done |\n| 1 | failed |\n| 2 | wrong usage |\n"
			"| 3 | this machine cannot measure that |\n"
			"| 130 | interrupted; what was recorded is kept |\n\n"
			"| environment | means |\n|---|---|\n"
			"| `RIDGE_DB` | the database, where `--db` is not given |\n"
			"| `NO_COLOR` | not empty: no colour |\n\n");
	for (int i = 0; i < rg_n_cmds; i++) {
		const struct rg_cmd *c = &rg_cmds[i];

		rg_str_printf(out, "## ridge %s%s%s\n\n", c->name, c->positional[0] ? " " : "",
			      c->positional);
		rg_str_printf(out, "%s.\n\n", c->summary);
		for (const char *p = c->details; *p;) {
			size_t len = strcspn(p, "\n");

			rg_str_printf(out, "%.*s\n\n", (int)len, p);
			p += len + (p[len] == '\n');
		}
		rg_str_add(out, "| option | |\n|---|---|\n");
		for (int k = 0; k < RG_OPT_COUNT; k++)
			if (c->options >> k & 1)
				rg_str_printf(out, "| `%s` | %s |\n",
					      option_key(key, sizeof(key), &rg_opts[k]),
					      option_help(help, sizeof(help), c, &rg_opts[k]));
		rg_str_add(out, "\n```\n");
		lines(out, c->examples, "");
		rg_str_add(out, "```\n\n");
	}
	/* One newline at the end of the file. */
	if (out->len && !out->failed)
		out->text[--out->len] = '\0';
}
