/*
 * Completion scripts for bash, zsh and fish, made from the tables.
 */
#include <string.h>

#include "cmd/cmd.h"
#include "models/builtin.h"

/* Calls fn for each option of a verb that is offered in completion. */
static void option_words(struct rg_str *out, const struct rg_cmd *c)
{
	bool first = true;

	for (int i = 0; i < RG_OPT_COUNT; i++) {
		if (!(c->options >> i & 1))
			continue;
		rg_str_printf(out, "%s--%s", first ? "" : " ", rg_opts[i].name);
		first = false;
	}
}

static void verb_words(struct rg_str *out)
{
	for (int i = 0; i < rg_n_cmds; i++)
		rg_str_printf(out, "%s%s", i ? " " : "", rg_cmds[i].name);
}

/* The words that a first argument can be: "roofline|tail [RUN]" gives two. */
static void argument_words(struct rg_str *out, const struct rg_cmd *c)
{
	size_t len = strcspn(c->positional, " ");

	if (strcmp(c->name, "help") == 0) {
		verb_words(out);
		return;
	}
	if (!memchr(c->positional, '|', len) || c->positional[0] == '[') {
		if (strstr(c->positional, "RUN"))
			rg_str_add(out, "last");
		if (strstr(c->positional, "MODEL")) {
			for (int i = 0; i < rg_builtin_count(); i++)
				rg_str_printf(out, "%sbuiltin:%s", i || strstr(c->positional, "RUN") ? " " : "",
					      rg_builtin_at(i)->name);
		}
		return;
	}
	for (size_t i = 0; i < len; i++)
		rg_str_addn(out, c->positional[i] == '|' ? " " : c->positional + i, 1);
}

/* Which arguments may name a file: none, the first one, or only later ones. */
enum files { NO_FILES, FIRST_FILE, LATER_FILES };

static enum files takes_files(const struct rg_cmd *c)
{
	const char *model = strstr(c->positional, "MODEL");

	if (!model)
		return NO_FILES;
	return (size_t)(model - c->positional) < strcspn(c->positional, " ") ? FIRST_FILE : LATER_FILES;
}

static void bash(struct rg_str *out)
{
	rg_str_add(out,
		   "# bash completion of ridge; written by: ridge completion bash\n"
		   "_ridge() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' i\n"
		   "\tlocal IFS=$' \\t\\n'\n"
		   "\tCOMPREPLY=()\n"
		   "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		   "\t\tcase ${COMP_WORDS[i]} in -*) ;; *) verb=${COMP_WORDS[i]}; break ;; esac\n"
		   "\tdone\n\tif [[ -z $verb ]]; then\n"
		   "\t\tCOMPREPLY=($(compgen -W '");
	verb_words(out);
	rg_str_add(out, " --help --version' -- \"$cur\"))\n\t\treturn\n\tfi\n"
			"\tcase $verb:$prev in\n");
	for (int i = 0; i < rg_n_cmds; i++)
		if (rg_cmds[i].formats)
			rg_str_printf(
			    out, "\t%s:--format) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n",
			    rg_cmds[i].name, rg_cmds[i].formats);
	rg_str_add(out,
		   "\t*:--db|*:--output|*:-o) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
		   "\t*:--output-dir) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n"
		   "\t*:--isa) COMPREPLY=($(compgen -W 'sse2 avx2 avx512 native' -- \"$cur\")); return ;;\n"
		   "\tesac\n\tlocal options='' words='' files=''\n\tcase $verb in\n");
	for (int i = 0; i < rg_n_cmds; i++) {
		const struct rg_cmd *c = &rg_cmds[i];

		rg_str_printf(out, "\t%s) options='", c->name);
		option_words(out, c);
		rg_str_add(out, "' words='");
		argument_words(out, c);
		rg_str_printf(out, "' files='%s' ;;\n",
			      takes_files(c) == FIRST_FILE ? "1" : takes_files(c) == LATER_FILES ? "2" : "");
	}
	rg_str_add(out, "\tesac\n"
			"\tif [[ $cur == -* ]]; then\n"
			"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
			"\telse\n\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
			"\t\tif [[ $files == 1 || ( $files == 2 && $prev != \"$verb\" ) ]]; then\n"
			"\t\t\tCOMPREPLY+=($(compgen -f -- \"$cur\"))\n\t\tfi\n"
			"\tfi\n}\n"
			"complete -o filenames -F _ridge ridge\n");
}

/* Text inside single quotes of zsh or fish. */
static void quoted(struct rg_str *out, const char *text, bool zsh_spec)
{
	for (; *text; text++) {
		if (*text == '\'')
			rg_str_add(out, zsh_spec ? "'\\''" : "\\'");
		else if (zsh_spec && strchr("[]:\\", *text))
			rg_str_printf(out, "\\%c", *text);
		else
			rg_str_addn(out, text, 1);
	}
}

static void zsh(struct rg_str *out)
{
	rg_str_add(out, "#compdef ridge\n# zsh completion of ridge; written by: ridge completion zsh\n"
			"_ridge() {\n\tlocal -a verbs\n\tverbs=(\n");
	for (int i = 0; i < rg_n_cmds; i++) {
		rg_str_printf(out, "\t\t'%s:", rg_cmds[i].name);
		quoted(out, rg_cmds[i].summary, true);
		rg_str_add(out, "'\n");
	}
	rg_str_add(out, "\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n"
			"\tlocal verb=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $verb in\n");
	for (int i = 0; i < rg_n_cmds; i++) {
		const struct rg_cmd *c = &rg_cmds[i];
		struct rg_str words = { 0 };

		rg_str_printf(out, "\t%s)\n\t\t_arguments", c->name);
		for (int k = 0; k < RG_OPT_COUNT; k++) {
			if (!(c->options >> k & 1))
				continue;
			rg_str_printf(out, " \\\n\t\t\t'%s--%s%s[", rg_opts[k].repeatable ? "*" : "",
				      rg_opts[k].name, rg_opts[k].value ? "=" : "");
			quoted(out, rg_opts[k].help, true);
			rg_str_add(out, "]");
			if (rg_opts[k].value) {
				rg_str_add(out, ":");
				quoted(out, rg_opts[k].value, true);
				if (k == RG_OPT_FORMAT && c->formats)
					rg_str_printf(out, ":(%s)", c->formats);
				else
					rg_str_add(out,
						   k == RG_OPT_DB || k == RG_OPT_OUTPUT ? ":_files" : ": ");
			}
			rg_str_add(out, "'");
		}
		argument_words(&words, c);
		if (words.failed)
			out->failed = true;
		if (takes_files(c) == FIRST_FILE)
			rg_str_add(out, " \\\n\t\t\t'1:argument:_files'");
		else if (words.len)
			rg_str_printf(out, " \\\n\t\t\t'1:argument:(%s)'", rg_str_text(&words));
		if (takes_files(c) == LATER_FILES)
			rg_str_add(out, " \\\n\t\t\t'*:argument:_files'");
		rg_str_free(&words);
		rg_str_add(out, "\n\t\t;;\n");
	}
	rg_str_add(out, "\tesac\n}\n_ridge \"$@\"\n");
}

static void fish(struct rg_str *out)
{
	rg_str_add(out,
		   "# fish completion of ridge; written by: ridge completion fish\ncomplete -c ridge -f\n");
	for (int i = 0; i < rg_n_cmds; i++) {
		const struct rg_cmd *c = &rg_cmds[i];
		struct rg_str words = { 0 };

		rg_str_printf(out, "complete -c ridge -n __fish_use_subcommand -a %s -d '", c->name);
		quoted(out, c->summary, false);
		rg_str_add(out, "'\n");
		for (int k = 0; k < RG_OPT_COUNT; k++) {
			if (!(c->options >> k & 1))
				continue;
			rg_str_printf(out, "complete -c ridge -n '__fish_seen_subcommand_from %s' -l %s",
				      c->name, rg_opts[k].name);
			if (rg_opts[k].letter)
				rg_str_printf(out, " -s %c", rg_opts[k].letter);
			if (k == RG_OPT_FORMAT && c->formats)
				rg_str_printf(out, " -x -a '%s'", c->formats);
			else if (rg_opts[k].value)
				rg_str_add(out, " -r");
			rg_str_add(out, " -d '");
			quoted(out, rg_opts[k].help, false);
			rg_str_add(out, "'\n");
		}
		argument_words(&words, c);
		if (words.len)
			rg_str_printf(out, "complete -c ridge -n '__fish_seen_subcommand_from %s' -a '%s'\n",
				      c->name, rg_str_text(&words));
		if (strstr(c->positional, "MODEL"))
			rg_str_printf(out, "complete -c ridge -n '__fish_seen_subcommand_from %s' -F\n",
				      c->name);
		if (words.failed)
			out->failed = true;
		rg_str_free(&words);
	}
}

bool rg_help_completion(struct rg_str *out, const char *shell)
{
	if (strcmp(shell, "bash") == 0)
		bash(out);
	else if (strcmp(shell, "zsh") == 0)
		zsh(out);
	else if (strcmp(shell, "fish") == 0)
		fish(out);
	else
		return false;
	return true;
}
