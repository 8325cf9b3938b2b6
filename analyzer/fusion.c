/*
 * See fusion.h. The text of a note is "Relu into conv1 (epilogue)" or "Add not into conv1: second consumer
 * (epilogue)"; names of nodes may hold anything, so it is read from both ends.
 */
#include "analyzer/fusion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* The last place before `end` where `what` stands. */
static const char *find_last(const char *from, const char *end, const char *what)
{
	const char *found = NULL;

	for (const char *p = strstr(from, what); p && p + strlen(what) <= end; p = strstr(p + 1, what))
		found = p;
	return found;
}

/* 1: read, 0: it is no such note, or -ENOMEM. */
static int read_note(struct rg_arena *arena, const struct rg_note_row *note, bool done, struct rg_fusion *f)
{
	const char *text = note->text ? note->text : "", *end = text + strlen(text), *open = NULL,
		   *colon = NULL;
	const char *middle = strstr(text, done ? " into " : " not into "), *into;

	if (!middle)
		return 0;
	into = middle + strlen(done ? " into " : " not into ");
	/* the name of a pass holds no blank, a reason no colon */
	if (end > into && end[-1] == ')')
		open = find_last(into, end, " (");
	if (open && memchr(open + 2, ' ', (size_t)(end - open - 2)))
		open = NULL;
	if (!done)
		colon = find_last(into, open ? open : end, ": ");
	if (!done && !colon)
		return 0;
	f->node = note->subject;
	f->op_type = rg_arena_strndup(arena, text, (size_t)(middle - text));
	f->into = rg_arena_strndup(arena, into, (size_t)((colon ? colon : open ? open : end) - into));
	f->reason =
	    colon ? rg_arena_strndup(arena, colon + 2, (size_t)((open ? open : end) - colon - 2)) : "";
	f->pass = open ? rg_arena_strndup(arena, open + 2, (size_t)(end - open - 3)) : "";
	f->into_type = "";
	return f->op_type && f->into && f->reason && f->pass ? 1 : -ENOMEM;
}

static int by_name(const void *pa, const void *pb)
{
	return strcmp((*(const struct rg_step_row *const *)pa)->name,
		      (*(const struct rg_step_row *const *)pb)->name);
}

static void find_types(const struct rg_step_row **steps, int n_steps, struct rg_fusion *f, int n)
{
	for (int i = 0; i < n; i++) {
		struct rg_step_row key = { .name = f[i].into };
		const struct rg_step_row *k = &key, **at;

		at = n_steps ? bsearch(&k, steps, (size_t)n_steps, sizeof(*steps), by_name) : NULL;
		f[i].into_type = at ? (*at)->op_type : "";
	}
}

/* ---- groups ---- */

enum by { BY_PASS, BY_REASON, BY_PAIR };

static int compare_keys(const struct rg_fusion_group *a, const struct rg_fusion_group *b)
{
	int c = strcmp(a->name, b->name);

	c = c ? c : strcmp(a->op_type, b->op_type);
	return c ? c : strcmp(a->into_type, b->into_type);
}

static int by_key(const void *pa, const void *pb)
{
	const struct rg_fusion_group *a = pa, *b = pb;
	int c = compare_keys(a, b);

	return c ? c : (a->example > b->example) - (a->example < b->example);
}

static int by_count(const void *pa, const void *pb)
{
	const struct rg_fusion_group *a = pa, *b = pb;

	return a->count != b->count ? (a->count < b->count ? 1 : -1) : compare_keys(a, b);
}

static int group(struct rg_arena *arena, const struct rg_fusion *f, int n, enum by by,
		 struct rg_fusion_group **out)
{
	struct rg_fusion_group *g = rg_arena_alloc(arena, (size_t)n + 1, sizeof(*g));
	int kept = 0;

	*out = g;
	if (!g)
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		g[i] = (struct rg_fusion_group){ by == BY_PASS ? f[i].pass : f[i].reason,
						 by == BY_PAIR ? f[i].op_type : "",
						 by == BY_PAIR ? f[i].into_type : "", 1, &f[i] };
	qsort(g, (size_t)n, sizeof(*g), by_key);
	for (int i = 0; i < n; i++) {
		if (kept && !compare_keys(&g[kept - 1], &g[i]))
			g[kept - 1].count++;
		else
			g[kept++] = g[i];
	}
	qsort(g, (size_t)kept, sizeof(*g), by_count);
	return kept;
}

/* Pairs stand with their reason, in the order of reasons. */
static int pairs_by_reason(struct rg_fusions *f)
{
	struct rg_fusion_group *sorted = rg_arena_alloc(f->arena, (size_t)f->n_pairs + 1, sizeof(*sorted));
	int n = 0;

	if (!sorted)
		return -ENOMEM;
	for (int r = 0; r < f->n_reasons; r++)
		for (int i = 0; i < f->n_pairs; i++)
			if (!strcmp(f->pairs[i].name, f->reasons[r].name))
				sorted[n++] = f->pairs[i];
	f->pairs = sorted;
	return 0;
}

static int fill(struct rg_fusions *f, const struct rg_recording *r)
{
	size_t n_notes = (size_t)r->n_notes + 1;
	const struct rg_step_row **steps = rg_arena_alloc(f->arena, (size_t)r->n_steps + 1, sizeof(*steps));
	double level = rg_recording_number(r, "session.optimize");

	f->level = isnan(level) ? -1 : (int)level;
	f->done = rg_arena_alloc(f->arena, n_notes, sizeof(*f->done));
	f->left = rg_arena_alloc(f->arena, n_notes, sizeof(*f->left));
	if (!steps || !f->done || !f->left)
		return -ENOMEM;
	for (int i = 0; i < r->n_notes; i++) {
		bool done = !strcmp(r->notes[i].kind, "fused");
		int rc = done || !strcmp(r->notes[i].kind, "not-fused") ?
			     read_note(f->arena, &r->notes[i], done,
				       done ? &f->done[f->n_done] : &f->left[f->n_left]) :
			     0;

		if (rc < 0)
			return rc;
		f->n_done += done ? rc : 0;
		f->n_left += done ? 0 : rc;
	}
	for (int i = 0; i < r->n_steps; i++) {
		steps[i] = &r->steps[i];
		f->n_transposes += !strcmp(r->steps[i].op_type, "Transpose");
	}
	qsort(steps, (size_t)r->n_steps, sizeof(*steps), by_name);
	find_types(steps, r->n_steps, f->done, f->n_done);
	find_types(steps, r->n_steps, f->left, f->n_left);
	f->n_passes = group(f->arena, f->done, f->n_done, BY_PASS, &f->passes);
	f->n_reasons = group(f->arena, f->left, f->n_left, BY_REASON, &f->reasons);
	f->n_pairs = group(f->arena, f->left, f->n_left, BY_PAIR, &f->pairs);
	return f->n_passes < 0 || f->n_reasons < 0 || f->n_pairs < 0 ? -ENOMEM : pairs_by_reason(f);
}

int rg_fusions_new(const struct rg_recording *r, struct rg_fusions **out, struct rg_error *err)
{
	struct rg_fusions *f = rg_calloc(1, sizeof(*f));

	*out = NULL;
	if (f)
		f->arena = rg_arena_new();
	if (!f || !f->arena || fill(f, r)) {
		rg_fusions_free(f);
		return rg_error_nomem(err, (size_t)r->n_notes * sizeof(*f->left));
	}
	*out = f;
	return 0;
}

void rg_fusions_free(struct rg_fusions *f)
{
	if (!f)
		return;
	rg_arena_free(f->arena);
	rg_free(f);
}
