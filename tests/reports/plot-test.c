/*
 * The plots: what a script must hold, what it must never do, and pictures of
 * every form that gnuplot really draws. Without gnuplot those are skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "make-analysis.h"
#include "reports/plot-label.h"
#include "reports/plot.h"
#include "reports/table.h"

typedef int script_fn(struct rg_str *, const struct rg_analysis *, const struct rg_plot_options *,
			  struct rg_error *);
static script_fn *const scripts[] = { rg_plot_roofline_script, rg_plot_tail_script, rg_plot_memory_script };

#define N_SCRIPTS (sizeof(scripts) / sizeof(scripts[0]))

static char folder[64];

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/ridge-plot-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	struct dirent *e;
	DIR *d = opendir(folder);
	char path[512];

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
	return rmdir(folder);
}

static void need_gnuplot(void)
{
	const char *path = getenv("PATH");
	char list[4096], file[4200], *save = NULL;

	snprintf(list, sizeof(list), "%s", path ? path : "");
	for (char *p = strtok_r(list, ":", &save); p; p = strtok_r(NULL, ":", &save)) {
		snprintf(file, sizeof(file), "%s/gnuplot", p);
		if (access(file, X_OK) == 0)
			return;
	}
	print_message("gnuplot is not installed: nothing was drawn\n");
	skip();
}

static int files_in_folder(void)
{
	DIR *d = opendir(folder);
	int n = 0;

	assert_non_null(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* Every quote of a line closes, so nothing of a name is outside of one. */
static void assert_quoted(const char *script)
{
	int in = 0;

	for (const char *p = script; *p; p++) {
		if (*p == '\'')
			in = !in;
		else if (*p == '\n')
			assert_int_equal(in, 0);
		else if (!in && *p == '`')
			fail_msg("a back quote outside of quotes: %.40s", p);
	}
}

static void test_scripts(void **state)
{
	struct rg_analysis *a[] = { make_plausible(), make_hostile(400) };
	static const char *const outputs[] = { "-", "x.svg", "x.png", "x.pdf", "x.gp" };

	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < N_SCRIPTS; k++) {
			for (size_t o = 0; o < 5; o++) {
				struct rg_plot_options opt = { .output = outputs[o] };
				struct rg_error err = RG_ERROR_INIT;
				struct rg_str s = { 0 };

				assert_int_equal(scripts[k](&s, a[i], &opt, &err), 0);
				assert_quoted(rg_str_text(&s));
				assert_non_null(strstr(rg_str_text(&s), " noenhanced "));
				assert_null(strstr(rg_str_text(&s), "nan"));
				assert_null(strstr(rg_str_text(&s), "inf "));
				rg_str_free(&s);
			}
		}
		make_free(a[i]);
	}
}

static void test_roofline_holds(void **state)
{
	struct rg_analysis *a = make_plausible();
	struct rg_plot_options o = { .output = "x.svg" };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_str s = { 0 };

	assert_int_equal(rg_plot_roofline_script(&s, a, &o, &err), 0);
	/* One roof a level, the peak, the ridge, the point of conv1 (intensity 61.3, 97.9 GFLOP/s). */
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "$roof%d << EOD", i);
		assert_non_null(strstr(rg_str_text(&s), name));
	}
	assert_non_null(strstr(rg_str_text(&s), "$peak << EOD"));
	assert_non_null(strstr(rg_str_text(&s), "13.169399 2.41e+11"));
	assert_non_null(strstr(rg_str_text(&s), "61.298701 9.7925311e+10"));
	assert_non_null(strstr(rg_str_text(&s), "conv1 12 %"));
	assert_non_null(strstr(rg_str_text(&s), "3 of 24 operators not drawn"));
	rg_str_free(&s);
	make_free(a);
}

/* Where the text of a "set label" line lies; false: it is another line, or without a place of its own. */
static bool label_box(const char *line, size_t len, struct rg_box *b)
{
	const char *at = NULL, *p;
	double x, y, w, h;
	char how[32];
	int quotes = 0;

	if (strncmp(line, "set label '", 11) != 0)
		return false;
	for (p = line + 11; p < line + len; p++)
		if (strncmp(p, "' at screen ", 12) == 0)
			at = p;
	if (!at || sscanf(at + 12, "%lf,%lf %31s", &x, &y, how) != 3)
		return false;
	w = 0;
	for (p = line + 11; p < at; p++) {
		quotes += *p == '\'';
		w += ((unsigned char)*p & 0xc0) != 0x80; /* no wide ones in these tests */
	}
	w = (w - quotes / 2) * 6.2;
	h = 14;
	for (p = at; p < line + len; p++) {
		if (strncmp(p, "rotate", 6) == 0) {
			h = w;
			w = 14;
		}
	}
	x *= b->x1;
	y *= b->y1;
	b->x0 = strcmp(how, "left") == 0 ? x : strcmp(how, "right") == 0 ? x - w : x - w / 2;
	b->x1 = b->x0 + w;
	b->y0 = y - h / 2;
	b->y1 = y + h / 2;
	return true;
}

/* Every text of the memory plot keeps clear of every other, of the peak's line, and inside. */
static void test_memory_texts(void **state)
{
	static const struct { int width, height; int64_t capacity; } c[] = {
		{ 800, 600, 0 }, { 800, 600, 1000000 }, { 1600, 900, 1900000 }, { 3000, 1200, 1250000 }, { 400, 300, 1700000 },
	};

	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct rg_plot_options o = { "x.png", c[i].width, c[i].height, false, c[i].capacity };
		struct rg_analysis *a = make_plausible();
		struct rg_error err = RG_ERROR_INIT;
		struct rg_str s = { 0 };
		struct rg_box boxes[200];
		double peak_x;
		int n = 0;

		assert_int_equal(rg_plot_memory_script(&s, a, &o, &err), 0);
		for (const char *line = rg_str_text(&s); *line;) {
			size_t len = strcspn(line, "\n");

			boxes[n] = (struct rg_box){ 0, 0, c[i].width, c[i].height };
			n += label_box(line, len, &boxes[n]);
			assert_true(n < 200);
			line += len + (line[len] == '\n');
		}
		assert_true(n >= (c[i].capacity ? 3 : 2));
		if (c[i].width == 3000)
			assert_true(n > 15); /* room for names */
		peak_x = 76 + 5.5 / 24 * (c[i].width - 76 - 18);
		for (int k = 0; k < n; k++) {
			assert_true(boxes[k].x0 >= 0 && boxes[k].y0 >= 0 && boxes[k].x1 <= c[i].width &&
				    boxes[k].y1 <= c[i].height);
			for (int m = 0; m < k; m++)
				if (boxes[k].x0 < boxes[m].x1 && boxes[m].x0 < boxes[k].x1 &&
				    boxes[k].y0 < boxes[m].y1 && boxes[m].y0 < boxes[k].y1)
					fail_msg("labels %d and %d of %dx%d", m, k, c[i].width, c[i].height);
			if (boxes[k].y0 > 104) /* above the axis */
				assert_true(boxes[k].x1 < peak_x || boxes[k].x0 > peak_x);
		}
		rg_str_free(&s);
		make_free(a);
	}
}

static void test_memory_holds(void **state)
{
	struct rg_plot_options o = { .output = "x.svg", .capacity_bytes = 1048576 };
	struct rg_analysis *a = make_plausible();
	struct rg_error err = RG_ERROR_INIT;
	struct rg_str s = { 0 };

	assert_int_equal(rg_plot_memory_script(&s, a, &o, &err), 0);
	/* the value of step 1, made by a convolution: steps 1 to 3, 200,000 bytes from 600,000 on */
	assert_non_null(strstr(rg_str_text(&s), "\n2.5 0.66757202 1 4 0.57220459 0.76293945\n"));
	/* scratch of step 1 */
	assert_non_null(strstr(rg_str_text(&s), "$scratch << EOD\n1.5 1.7478638 1 2 1.7166138 1.7791138\n"));
	assert_non_null(strstr(rg_str_text(&s), "set arrow from 5.5,graph 0 to 5.5,graph 1"));
	assert_non_null(strstr(rg_str_text(&s), "set arrow from graph 0,first 1 to graph 1,first 1"));
	assert_non_null(strstr(rg_str_text(&s), "arena 1.78 MiB by greedy-size; peak at 'res2a_branch2c' (Conv)") ?:
			strstr(rg_str_text(&s), "arena 1.78 MiB by greedy-size; peak at ''res2a_branch2c'' (Conv)"));
	assert_null(strstr(rg_str_text(&s), "'part'")); /* no memory of its own */
	assert_non_null(strstr(rg_str_text(&s), "title 'conv'"));
	assert_null(strstr(rg_str_text(&s), "title 'pool'"));
	rg_str_free(&s);
	/* a capacity that would leave nothing to look at is said, not drawn */
	o.capacity_bytes = 1 << 30;
	assert_int_equal(rg_plot_memory_script(&s, a, &o, &err), 0);
	assert_non_null(strstr(rg_str_text(&s), "far below the capacity of 1.00 GiB"));
	assert_null(strstr(rg_str_text(&s), "graph 0,first"));
	rg_str_free(&s);
	make_free(a);
}

/* The axis names no percentile that n samples cannot tell. */
static void test_tail_axis(void **state)
{
	static const struct { int n; const char *has, *lacks;
	} c[] = {
		{1200, "'99.9%%' 1e3", "'99.99%%'"}, {500, "'99%%' 100", "'99.9%%'"}, {50, "'95%%' 20", "'99%%'"},
		{7, "'75%%' 4", "'90%%'"},           {1, "'50%%' 2", "'75%%'"},
	};

	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct rg_analysis *a = make_plausible();
		struct rg_plot_options o = { .output = "-" };
		struct rg_error err = RG_ERROR_INIT;
		struct rg_str s = { 0 };
		char text[64];

		a->n_latency = c[i].n;
		assert_int_equal(rg_plot_tail_script(&s, a, &o, &err), 0);
		assert_non_null(strstr(rg_str_text(&s), c[i].has));
		assert_null(strstr(rg_str_text(&s), c[i].lacks));
		snprintf(text, sizeof(text), "'%d inference%s, ", c[i].n, c[i].n == 1 ? "" : "s");
		assert_non_null(strstr(rg_str_text(&s), text));
		/* No mark for a percentile beyond n. */
		assert_int_equal(strstr(rg_str_text(&s), "'P99 ") != NULL, c[i].n >= 100);
		rg_str_free(&s);
		make_free(a);
	}
}

static void test_nothing_to_draw(void **state)
{
	struct rg_analysis *a = make_empty();
	struct rg_plot_options o = { .output = "x.svg" };

	for (size_t k = 0; k < N_SCRIPTS; k++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_str s = { 0 };

		assert_int_equal(scripts[k](&s, a, &o, &err), -ENODATA);
		assert_true(err.message[0] && err.hint[0]);
		rg_str_free(&s);
	}
	make_free(a);
}

static void test_wrong_ending(void **state)
{
	struct rg_analysis *a = make_plausible();
	struct rg_plot_options o = { .output = "picture.bmp" };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_str s = { 0 };

	assert_int_equal(rg_plot_roofline_script(&s, a, &o, &err), RG_EUSAGE);
	rg_str_free(&s);
	make_free(a);
}

static void test_pictures(void **state)
{
	static const struct { const char *ending, *magic; } form[] = {
		{ "svg", "<?xml" }, { "png", "\x89PNG" }, { "pdf", "%PDF" },
	};
	struct rg_analysis *a[] = { make_plausible(), make_hostile(60) };
	int drawn = 0;

	need_gnuplot();
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < N_SCRIPTS; k++) {
			for (size_t f = 0; f < 3; f++) {
				char path[128], head[8] = "";
				struct rg_plot_options o = { .output = path };
				struct rg_error err = RG_ERROR_INIT;
				struct rg_str s = { 0 }, none = { 0 };
				struct stat st;
				FILE *file;

				snprintf(path, sizeof(path), "%s/it's %zu%zu.%s", folder, i, k,
					 form[f].ending);
				assert_int_equal(scripts[k](&s, a[i], &o, &err), 0);
				if (rg_plot_render(rg_str_text(&s), &o, &none, &err) != 0)
					fail_msg("%s", err.message);
				assert_int_equal(stat(path, &st), 0);
				assert_true(st.st_size > 2000);
				file = fopen(path, "r");
				assert_non_null(file);
				assert_true(fread(head, 1, 5, file) == 5);
				fclose(file);
				assert_memory_equal(head, form[f].magic, strlen(form[f].magic));
				rg_str_free(&s);
				drawn++;
			}
		}
		make_free(a[i]);
	}
	assert_int_equal(files_in_folder(), drawn); /* no temporary file is left */
	/* No name was executed by anybody. */
	assert_int_equal(access("/tmp/ridge-pwned", F_OK), -1);
}

static void test_terminal(void **state)
{
	static const char *const says[N_SCRIPTS] = { "peak 241 GFLOP/s", "P99 22.8 ms",
						     "peak: 1.21 MiB alive at step 5" };
	struct rg_analysis *a = make_plausible();

	need_gnuplot();
	for (size_t k = 0; k < N_SCRIPTS; k++) {
		struct rg_plot_options o = { .output = "-", .width = 80, .height = 23 };
		struct rg_error err = RG_ERROR_INIT;
		struct rg_str s = { 0 }, text = { 0 };
		int lines = 0;

		assert_int_equal(scripts[k](&s, a, &o, &err), 0);
		assert_int_equal(rg_plot_render(rg_str_text(&s), &o, &text, &err), 0);
		for (const char *p = rg_str_text(&text); *p; lines++) {
			size_t len = strcspn(p, "\n");
			char *line = strndup(p, len);

			assert_true(rg_text_width(line) <= 80);
			free(line);
			p += len + (p[len] == '\n');
		}
		assert_true(lines <= 24);
		assert_null(strchr(rg_str_text(&text), '\033'));
		assert_null(strchr(rg_str_text(&text), '\f'));
		assert_non_null(strstr(rg_str_text(&text), "resnet50, batch 1, run 12"));
		assert_non_null(strstr(rg_str_text(&text), says[k]));
		rg_str_free(&s);
		rg_str_free(&text);
	}
	make_free(a);
}

static void test_errors(void **state)
{
	struct rg_plot_options o = { .output = "/nonexistent-folder/x.svg" };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_str none = { 0 };
	char *path = strdup(getenv("PATH") ? getenv("PATH") : "");

	need_gnuplot();
	assert_int_equal(rg_plot_render("set terminal svg\nplot x\n", &o, &none, &err), -ENOENT);
	assert_non_null(strstr(err.where, "/nonexistent-folder/x.svg"));
	o.output = "-";
	assert_int_equal(rg_plot_render("this is no command\n", &o, &none, &err), -EIO);
	assert_non_null(strstr(err.message, "invalid command"));
	setenv("PATH", folder, 1);
	assert_int_equal(rg_plot_render("plot x\n", &o, &none, &err), -ENOENT);
	assert_non_null(strstr(err.hint, "gnuplot-nox"));
	setenv("PATH", path, 1);
	free(path);
	rg_str_free(&none);
}

/* Labels never cover each other, a point, or the frame. */
static void test_placing(void **state)
{
	struct rg_placer p = { .frame = { 0, 0, 400, 300 } };
	struct rg_box got[64];
	int n = 0, refused = 0;

	for (int i = 0; i < 60; i++) {
		double x = (i * 37) % 400, y = (i * 91) % 300;
		bool far;

		rg_place_block(&p, (struct rg_box){ x - 3, y - 3, x + 3, y + 3 });
		if (rg_place_label(&p, x, y, 3, 70, 12, &got[n], &far))
			n++;
		else
			refused++;
	}
	assert_true(n > 15);
	assert_true(refused > 0);
	for (int i = 0; i < n; i++) {
		assert_true(got[i].x0 >= 0 && got[i].x1 <= 400 && got[i].y0 >= 0 && got[i].y1 <= 300);
		for (int k = 0; k < i; k++)
			assert_false(got[i].x0 < got[k].x1 && got[k].x0 < got[i].x1 &&
					 got[i].y0 < got[k].y1 && got[k].y0 < got[i].y1);
	}
}

static void test_out_of_memory(void **state)
{
	struct rg_analysis *a = make_plausible();

	for (size_t k = 0; k < N_SCRIPTS; k++) {
		int failures = 0;

		for (uint64_t n = 1; n < 5000; n++) {
			struct rg_plot_options o = { .output = "x.svg" };
			struct rg_error err = RG_ERROR_INIT;
			struct rg_str s = { 0 };
			bool failed;
			int rc;

			rg_alloc_fail_at(n);
			rc = scripts[k](&s, a, &o, &err);
			failed = rg_alloc_did_fail();
			rg_alloc_fail_at(0);
			rg_str_free(&s);
			if (!failed) {
				assert_int_equal(rc, 0);
				break;
			}
			failures++;
			assert_int_equal(rc, -ENOMEM);
		}
		assert_true(failures > 10);
	}
	make_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scripts),	       cmocka_unit_test(test_roofline_holds),
		cmocka_unit_test(test_tail_axis),      cmocka_unit_test(test_nothing_to_draw),
		cmocka_unit_test(test_wrong_ending),   cmocka_unit_test(test_pictures),
		cmocka_unit_test(test_terminal),       cmocka_unit_test(test_errors),
		cmocka_unit_test(test_placing),	       cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_memory_holds),   cmocka_unit_test(test_memory_texts),
	};

	return cmocka_run_group_tests_name("plots", tests, make_folder, remove_folder);
}
