/*
 * ridge plot: a picture of a run, to a file or into the terminal.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/verbs.h"
#include "reports/plot.h"

static bool ends_in(const char *s, const char *ending)
{
	size_t n = strlen(s), m = strlen(ending);

	return n > m && strcmp(s + n - m, ending) == 0;
}

static int cannot_write(const char *path, int e, struct rg_error *err)
{
	rg_error_set(err, -e, "cannot write the script: %s", strerror(e));
	rg_error_hint(err, "name another place with -o FILE.gp");
	return rg_error_at(err, "%s", path);
}

/* `-o FILE.gp` keeps the script itself, for people who want to change it. */
static int write_script(const char *path, const char *script, struct rg_error *err)
{
	FILE *f = fopen(path, "w");
	bool good;
	int e;

	if (!f)
		return cannot_write(path, errno, err);
	good = fputs(script, f) >= 0;
	e = errno;
	if (fclose(f) != 0 || !good)
		return cannot_write(path, good ? errno : e, err);
	return 0;
}

static int draw(struct rg_args *a, const struct rg_analysis *an, bool roofline, struct rg_error *err)
{
	struct rg_plot_options o = {.output = a->output ? a->output : "-",
					.width = a->width,
					.height = a->height,
					.colour = a->colour};
	struct rg_str script = { 0 }, text = { 0 };
	bool terminal = strcmp(o.output, "-") == 0;
	int rc;

	/* One row stays free for the prompt. */
	if (terminal && !o.width) {
		o.width = a->columns ? a->columns : 80;
		o.height = a->rows > 11 ? a->rows - 1 : 23;
	}
	rc = roofline ? rg_plot_roofline_script(&script, an, &o, err)
			  : rg_plot_tail_script(&script, an, &o, err);
	if (rc == 0 && ends_in(o.output, ".gp"))
		rc = write_script(o.output, rg_str_text(&script), err);
	else if (rc == 0)
		rc = rg_plot_render(rg_str_text(&script), &o, &text, err);
	if (rc == 0 && terminal)
		rc = rg_cmd_print(rg_str_text(&text), err);
	if (rc == 0 && !terminal && !a->quiet)
		fprintf(stderr, "wrote %s\n", o.output);
	rg_str_free(&script);
	rg_str_free(&text);
	return rc;
}

int rg_cmd_plot(struct rg_args *a, struct rg_error *err)
{
	bool roofline = strcmp(a->positional[0], "roofline") == 0;
	struct rg_store *s = NULL;
	struct rg_recording *rec = NULL;
	struct rg_analysis *an = NULL;

	if (!roofline && strcmp(a->positional[0], "tail") != 0) {
		rg_error_set(err, RG_EUSAGE, "there is no plot '%s'", a->positional[0]);
		rg_error_hint(err, "one of: roofline, tail");
		return rg_cmd_exit_code(err);
	}
	if (rg_cmd_open_read(a, &s, err) != 0)
		return rg_cmd_exit_code(err);
	if (rg_cmd_load(s, a->positional[1], &rec, &an, err) == 0)
		draw(a, an, roofline, err);
	rg_analysis_free(an);
	rg_recording_free(rec);
	rg_store_close(s);
	return rg_cmd_exit_code(err);
}
