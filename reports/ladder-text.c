/*
 * What the rows of a ladder say. A pure function: every word here follows from a figure
 * of the rows, so other figures give other words.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "reports/ladder.h"
#include "reports/table.h"

#define PAYS 1.1         /* int8 is worth its trouble from this factor on */
#define SHORT_NS 50e3    /* a call so short that what surrounds the products counts */
#define SLOW_KERNEL 0.25 /* of the roof: below it the kernel is to blame, not the type */
#define BEATEN 1.05      /* less is noise */
#define BUSY 1.3         /* of the fastest round: the median of a rung that had to share */
#define MEMORY 0.5       /* of the time: memory sets the pace */

static bool same_shape(const struct rg_ladder_row *a, const struct rg_ladder_row *b)
{
	return a->m == b->m && a->k == b->k && a->n == b->n;
}

static const struct rg_ladder_row *find(const struct rg_ladder_row *rows, int n, const struct rg_ladder_row *shape,
					const char *rung)
{
	for (int i = 0; i < n; i++)
		if (same_shape(&rows[i], shape) && strcmp(rows[i].rung, rung) == 0 && rows[i].ns > 0)
			return &rows[i];
	return NULL;
}

static void add_shape(struct rg_str *out, const struct rg_ladder_row *r)
{
	rg_str_printf(out, "%" PRId64 "x%" PRId64 "x%" PRId64, r->m, r->k, r->n);
}

/* ---- which step bought what ---- */

static void say_steps(struct rg_str *out, const struct rg_ladder_row *rows, int n, const struct rg_ladder_row *shape,
		      bool int8)
{
	static const char *const f32[] = { "naive", "ikj", "tiled", "simd", "ridge" };
	static const char *const bytes[] = { "int8-scalar", "int8-simd", "int8-blocked", "int8-ridge" };
	const char *const *names = int8 ? bytes : f32;
	int count = int8 ? 4 : 5, steps = 0;
	const struct rg_ladder_row *first = NULL, *before = NULL, *most = NULL;
	double largest = 0;
	struct rg_str text = { 0 };
	char num[32];

	for (int i = 0; i < count; i++) {
		const struct rg_ladder_row *r = find(rows, n, shape, names[i]);

		if (!r)
			continue;
		if (!before) {
			first = r;
		} else {
			rg_str_printf(&text, "%s%s %s", steps ? ", " : "", r->rung, rg_num_times(num, before->ns / r->ns));
			if (before->ns / r->ns > largest) {
				largest = before->ns / r->ns;
				most = r;
			}
			steps++;
		}
		before = r;
	}
	if (steps) {
		rg_str_printf(out, "%s at ", int8 ? "int8" : "float32");
		add_shape(out, shape);
		rg_str_printf(out, ", each rung over the one before it, from %s on: %s; ", first->rung, rg_str_text(&text));
		rg_str_printf(out, "%s in all", rg_num_times(num, first->ns / before->ns));
		if (steps > 1 && largest > 1 && first->ns > before->ns)
			rg_str_printf(out, ", most of it by %s", most->rung);
		rg_str_add(out, ".\n");
	}
	out->failed |= text.failed;
	rg_str_free(&text);
}

static void say_openblas(struct rg_str *out, const struct rg_ladder_row *rows, int n,
			 const struct rg_ladder_row *shape)
{
	const struct rg_ladder_row *ours = find(rows, n, shape, "ridge"), *blas = find(rows, n, shape, "openblas");
	char num[32];

	if (!ours || !blas)
		return;
	rg_str_add(out, "Our float32 is ");
	if (blas->ns >= ours->ns)
		rg_str_printf(out, "%s as fast as OpenBLAS there.\n", rg_num_times(num, blas->ns / ours->ns));
	else
		rg_str_printf(out, "slower than OpenBLAS there: %s of its rate.\n",
			      rg_num_times(num, blas->ns / ours->ns));
}

/* ---- where int8 pays ---- */

static void why_not(struct rg_str *out, const struct rg_ladder_row *int8)
{
	char num[32], all[32];

	if (int8->memory_ns >= MEMORY * int8->ns)
		rg_str_printf(out, "memory sets the pace, %s of its %s", rg_fmt_ns(num, int8->memory_ns),
			      rg_fmt_ns(all, int8->ns));
	else if (int8->ns < SHORT_NS)
		rg_str_printf(out, "a call takes %s, so what surrounds the products counts", rg_fmt_ns(num, int8->ns));
	else if (int8->roof_fraction < SLOW_KERNEL)
		rg_str_printf(out, "the kernel, %s, reaches %s %% of the int8 roof", int8->kernel,
			      rg_num_percent(num, int8->roof_fraction));
	else
		rg_str_add(out, "float32 is nearer to its roof");
}

static void say_int8(struct rg_str *out, const struct rg_ladder_row *rows, int n)
{
	struct rg_str yes = { 0 }, no = { 0 };
	char num[32];

	for (int i = 0; i < n; i++) {
		const struct rg_ladder_row *int8 = &rows[i], *f32;
		struct rg_str *to;
		double factor;

		if (strcmp(int8->rung, "int8-ridge") != 0 || !(int8->ns > 0))
			continue;
		f32 = find(rows, n, int8, "ridge");
		if (!f32)
			continue;
		factor = f32->ns / int8->ns;
		to = factor >= PAYS ? &yes : &no;
		rg_str_add(to, to->len ? "; " : "");
		add_shape(to, int8);
		rg_str_printf(to, " %s", rg_num_times(num, factor));
		if (factor < PAYS) {
			rg_str_add(to, " (");
			why_not(to, int8);
			rg_str_add(to, ")");
		}
	}
	if (yes.len)
		rg_str_printf(out, "int8 pays, over our float32: %s.\n", rg_str_text(&yes));
	if (no.len)
		rg_str_printf(out, "int8 does not pay: %s.\n", rg_str_text(&no));
	out->failed |= yes.failed || no.failed;
	rg_str_free(&yes);
	rg_str_free(&no);
}

/* A loop of the exercise that beats our kernel is our fault, and is said. */
static void say_beaten(struct rg_str *out, const struct rg_ladder_row *rows, int n)
{
	for (int i = 0; i < n; i++) {
		const struct rg_ladder_row *ours = &rows[i], *best = NULL;
		char num[32];

		if ((strcmp(ours->rung, "ridge") != 0 && strcmp(ours->rung, "int8-ridge") != 0) || !(ours->ns > 0))
			continue;
		for (int k = 0; k < n; k++)
			if (same_shape(&rows[k], ours) && rows[k].int8 == ours->int8 && rows[k].ns < ours->ns &&
			    strcmp(rows[k].rung, "openblas") != 0 && (!best || rows[k].ns < best->ns))
				best = &rows[k];
		if (!best || ours->ns / best->ns < BEATEN)
			continue;
		rg_str_printf(out, "%s is %s as fast as our %s (%s) at ", best->rung,
			      rg_num_times(num, ours->ns / best->ns), ours->int8 ? "int8" : "float32", ours->kernel);
		add_shape(out, ours);
		rg_str_add(out, ".\n");
	}
}

/* ---- roof and errors ---- */

static void say_roof(struct rg_str *out, const struct rg_ladder_row *rows, int n, const char *rung)
{
	const struct rg_ladder_row *best = NULL;
	char num[32];

	for (int i = 0; i < n; i++)
		if (strcmp(rows[i].rung, rung) == 0 && rows[i].roof && rows[i].roof_fraction > 0 &&
		    (!best || rows[i].roof_fraction > best->roof_fraction))
			best = &rows[i];
	if (!best)
		return;
	rg_str_printf(out, "Our %s comes to %s %% of its roof (%s%s) at best, at ", best->int8 ? "int8" : "float32",
		      rg_num_percent(num, best->roof_fraction), best->int8 ? "" : "float32 ", best->roof);
	add_shape(out, best);
	rg_str_add(out, best->roof_fraction > 1 ? "; more than all of it: the roof was measured too low, or does not "
						  "bind this kernel.\n" : ".\n");
}

static void say_errors(struct rg_str *out, const struct rg_ladder_row *rows, int n)
{
	const struct rg_ladder_row *worst = NULL;
	int exact = 0, inexact = 0;
	char num[32], by[32];

	for (int i = 0; i < n; i++) {
		const struct rg_ladder_row *r = &rows[i];

		if (!(r->ns > 0))
			continue;
		if (!r->int8 && r->relative_error >= 0 && (!worst || r->relative_error > worst->relative_error))
			worst = r;
		exact += r->int8 && r->wrong == 0;
		if (!r->int8 || r->wrong <= 0)
			continue;
		inexact++;
		rg_str_printf(out, "%s is wrong at ", r->rung);
		add_shape(out, r);
		rg_str_printf(out, ": %s of its results are not the int64 sum, by up to %s.\n", rg_fmt_count(num, r->wrong),
			      rg_num3(by, r->max_error));
	}
	if (exact && !inexact)
		rg_str_add(out, "Every int8 rung gives the int64 sums, bit for bit.\n");
	if (worst) {
		rg_str_printf(out, "float32 stays within %.2g of the sums in double, over the largest result (%s at ",
			      worst->relative_error, worst->rung);
		add_shape(out, worst);
		rg_str_add(out, ").\n");
	}
}

/* ---- a busy machine ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A neighbour makes rounds slower, never faster: medians far above the fastest rounds tell of one. */
static void say_busy(struct rg_str *out, const struct rg_ladder_row *rows, int n)
{
	double *v = rg_calloc((size_t)n, sizeof(*v)), middle;
	char num[32];
	int count = 0;

	if (!v) {
		out->failed = true;
		return;
	}
	for (int i = 0; i < n; i++)
		if (rows[i].rounds >= 3 && rows[i].ns_low > 0)
			v[count++] = rows[i].ns / rows[i].ns_low;
	qsort(v, (size_t)count, sizeof(*v), by_value);
	middle = count ? v[count / 2] : 0;
	rg_free(v);
	if (middle >= BUSY)
		rg_str_printf(out, "The machine was busy: the median of half the rungs is %s their fastest round or more. "
			      "Measure again when it is idle.\n", rg_num_times(num, middle));
}

/* ---- misses ---- */

static void say_misses(struct rg_str *out, const struct rg_ladder_row *rows, int n, const struct rg_ladder_row *shape)
{
	struct rg_str text = { 0 };
	enum rg_provenance from = RG_PROV_UNAVAILABLE;
	char num[32];

	for (int i = 0; i < n; i++) {
		const struct rg_ladder_row *r = &rows[i];

		if (!same_shape(r, shape) || isnan(r->l1_misses))
			continue;
		rg_str_printf(&text, "%s%s %s", text.len ? ", " : "", r->rung,
			      rg_num3(num, r->l1_misses * 1000 / ((double)r->m * (double)r->k * (double)r->n)));
		from = r->misses_provenance;
	}
	if (text.len) {
		rg_str_printf(out, "L1 misses in a thousand multiply-adds (%s) at ", rg_provenance_name(from));
		add_shape(out, shape);
		rg_str_printf(out, ": %s.\n", rg_str_text(&text));
	}
	out->failed |= text.failed;
	rg_str_free(&text);
}

/* The largest shape for which `counts` holds of at least one row. */
static const struct rg_ladder_row *largest(const struct rg_ladder_row *rows, int n, bool misses)
{
	const struct rg_ladder_row *best = NULL;
	double most = 0;

	for (int i = 0; i < n; i++) {
		double work = (double)rows[i].m * (double)rows[i].k * (double)rows[i].n;

		if ((misses ? !isnan(rows[i].l1_misses) : rows[i].ns > 0) && work > most) {
			most = work;
			best = &rows[i];
		}
	}
	return best;
}

void rg_ladder_say(struct rg_str *out, const struct rg_ladder_row *rows, int n)
{
	const struct rg_ladder_row *shape = largest(rows, n, false);

	if (!shape)
		return;
	say_steps(out, rows, n, shape, false);
	say_openblas(out, rows, n, shape);
	say_steps(out, rows, n, shape, true);
	say_int8(out, rows, n);
	say_beaten(out, rows, n);
	say_roof(out, rows, n, "ridge");
	say_roof(out, rows, n, "int8-ridge");
	say_errors(out, rows, n);
	say_busy(out, rows, n);
	shape = largest(rows, n, true);
	if (shape)
		say_misses(out, rows, n, shape);
}
