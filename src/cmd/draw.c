/* See draw.h. */
#include "cmd/draw.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

void rg_cmd_canvas(const struct rg_args *a, struct rg_plot_options *o)
{
	if (strcmp(o->output, "-") != 0 || o->width)
		return;
	o->width = a->columns ? a->columns : 80;
	o->height = a->rows > 11 ? a->rows - 1 : 23; /* one row stays free for the prompt */
}

int rg_cmd_draw(struct rg_args *a, const char *script, const struct rg_plot_options *o, struct rg_error *err)
{
	bool terminal = strcmp(o->output, "-") == 0;
	struct rg_str text = { 0 };
	int rc;

	if (ends_in(o->output, ".gp"))
		rc = write_script(o->output, script, err);
	else
		rc = rg_plot_render(script, o, &text, err);
	if (rc == 0 && terminal)
		rc = rg_cmd_print(rg_str_text(&text), err);
	if (rc == 0 && !terminal && !a->quiet)
		fprintf(stderr, "wrote %s\n", o->output);
	rg_str_free(&text);
	return rc;
}
