/*
 * Live ranges over steps, and the arena. A value lives from the step that makes
 * it to the last step that reads it or a view of it; a graph output lives to
 * the end; scratch lives in its step alone. Both ends are inclusive, so a step's
 * outputs share no memory with its inputs, except where one takes an input's over
 * (in-place.c).
 */
#include "compile/internal.h"

#include "base/alloc.h"
#include "compile/arena.h"

static void touch(struct rg_plan *p, int value, int step)
{
	struct rg_plan_tensor *t = &p->tensors[rg_plan_root(p, value)];

	if (t->first_step < 0 || step < t->first_step)
		t->first_step = step;
	if (step > t->last_step)
		t->last_step = step;
}

static void live_ranges(struct rg_plan *p)
{
	int s, k, i;

	for (i = 0; i < p->n_tensors; i++)
		p->tensors[i].first_step = p->tensors[i].last_step = p->tensors[i].over = p->tensors[i].handed_to = -1;
	p->n_in_place = 0;
	for (s = 0; s < p->n_steps; s++) {
		for (k = 0; k < p->steps[s].n_in; k++)
			if (p->steps[s].in[k] >= 0)
				touch(p, p->steps[s].in[k], s);
		for (k = 0; k < p->steps[s].n_out; k++)
			if (p->steps[s].out[k] >= 0)
				touch(p, p->steps[s].out[k], s);
	}
	for (i = 0; i < p->graph->n_outputs && p->n_steps > 0; i++)
		touch(p, p->graph->outputs[i], p->n_steps - 1);
	/* Inputs are written before the first step. */
	for (i = 0; i < p->n_tensors; i++)
		if (p->tensors[i].place == RG_PLACE_INPUT && p->tensors[i].alias_of < 0 &&
		    p->tensors[i].last_step >= 0)
			p->tensors[i].first_step = 0;
}

struct rg_buffer rg_plan_buffer(int64_t size_bytes, int first, int last, int64_t align_bytes)
{
	int64_t over = size_bytes % align_bytes, more = over ? align_bytes - over : 0;

	if (size_bytes <= INT64_MAX - more) /* else it is refused as it is */
		size_bytes += more;
	return (struct rg_buffer){ first, (int64_t)last + 1, size_bytes, align_bytes, -1 };
}

/* The step at which the most bytes live; the planner's bound is that sum. */
static int find_peak(const struct rg_buffer *b, int n, int n_steps, int *peak, struct rg_error *err)
{
	int64_t *delta = rg_calloc((size_t)n_steps + 1, sizeof(*delta)), sum = 0, most = -1;
	int i;

	if (!delta)
		return rg_error_nomem(err, ((size_t)n_steps + 1) * sizeof(*delta));
	for (i = 0; i < n; i++) {
		delta[b[i].lower] += b[i].size_bytes;
		delta[b[i].upper] -= b[i].size_bytes;
	}
	for (i = 0; i < n_steps; i++) {
		sum += delta[i];
		if (sum > most) {
			most = sum;
			*peak = i;
		}
	}
	rg_free(delta);
	return 0;
}

/* Aliases say what their memory says. */
static void copy_to_aliases(struct rg_plan *p)
{
	int i;

	for (i = 0; i < p->n_tensors; i++) {
		struct rg_plan_tensor *t = &p->tensors[i];
		const struct rg_plan_tensor *root = t->alias_of >= 0 ? &p->tensors[t->alias_of] : NULL;

		if (!root)
			continue;
		t->offset_bytes = root->offset_bytes + t->part_bytes;
		t->first_step = root->first_step;
		t->last_step = root->last_step;
	}
}

/* Values in the graph's order, then scratch in that of the steps; `buffers` has room for all. */
static int list_buffers(struct builder *b, struct rg_buffer *buffers, int *n, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	int i, rc;

	*n = 0;
	live_ranges(p);
	rc = b->opt->keep_inputs ? 0 : rg_plan_take_over(p, err);
	if (rc)
		return rc;
	for (i = 0; i < p->n_tensors; i++)
		if (rg_plan_begins_buffer(&p->tensors[i]))
			buffers[(*n)++] = rg_plan_buffer(p->tensors[i].size_bytes, p->tensors[i].first_step,
							 rg_plan_memory_last(p, i), RG_ARENA_ALIGN_BYTES);
	for (i = 0; i < p->n_steps; i++)
		if (p->steps[i].scratch_bytes > 0)
			buffers[(*n)++] = rg_plan_buffer(p->steps[i].scratch_bytes, i, i, RG_ARENA_ALIGN_BYTES);
	return 0;
}

static struct rg_buffer *new_buffers(const struct rg_plan *p, struct rg_error *err)
{
	size_t cap = (size_t)p->n_tensors + (size_t)p->n_steps;
	struct rg_buffer *buffers = rg_calloc(cap, sizeof(*buffers));

	if (!buffers)
		rg_error_nomem(err, cap * sizeof(*buffers));
	return buffers;
}

int rg_plan_load(struct builder *b, int64_t *load_bytes, struct rg_error *err)
{
	struct rg_buffer *buffers = new_buffers(b->plan, err);
	int n, rc;

	if (!buffers)
		return err->code;
	rc = list_buffers(b, buffers, &n, err);
	if (!rc)
		rc = rg_buffers_validate(buffers, n, NULL, err);
	if (!rc)
		rc = rg_buffers_max_load(buffers, n, load_bytes, err);
	rg_free(buffers);
	return rc;
}

int rg_plan_allocate(struct builder *b, struct rg_error *err)
{
	struct rg_plan *p = b->plan;
	struct rg_buffer *buffers = new_buffers(p, err);
	struct rg_arena_result placed = { 0 };
	int i, n = 0, rc;

	if (!buffers)
		return err->code;
	rc = list_buffers(b, buffers, &n, err);
	if (rc)
		goto out;
	rc = rg_arena_place(buffers, n, &placed, err);
	if (rc == -EOVERFLOW)
		rg_error_hint(err, "these are the activations of the model: give smaller shapes");
	p->arena_bytes = placed.height_bytes;
	p->arena_lower_bound_bytes = placed.load_bytes;
	p->arena_made_by = placed.made_by;
	p->peak_step = -1;
	if (!rc && n > 0)
		rc = find_peak(buffers, n, p->n_steps, &p->peak_step, err);
	for (i = n = 0; i < p->n_tensors; i++) {
		int k = i;

		if (!rg_plan_begins_buffer(&p->tensors[i]))
			continue;
		for (; k >= 0; k = p->tensors[k].handed_to)
			p->tensors[k].offset_bytes = buffers[n].offset_bytes;
		n++;
	}
	for (i = 0; i < p->n_steps; i++)
		if (p->steps[i].scratch_bytes > 0)
			p->steps[i].scratch_offset_bytes = buffers[n++].offset_bytes;
	copy_to_aliases(p);
out:
	rg_free(buffers);
	return rc;
}

/* ---- the checker: pair by pair, from the finished plan alone ---- */

struct placed {
	int64_t from, to;
	int first, last;
	int value, step; /* one of them, the other -1 */
};

static int report_overlap(const struct rg_plan *p, const struct placed *a, struct rg_error *err)
{
	const char *what = a->value >= 0 ? p->graph->values[a->value].name :
					   p->graph->nodes[p->steps[a->step].node].name;

	return rg_error_at(err, "%s '%s' at %lld of the arena", a->value >= 0 ? "value" : "scratch of", what,
			   (long long)a->from);
}

/* Does the step write its first output over this memory, with a kernel that may, of a value like it? */
static bool overwrites(const struct rg_plan *p, const struct rg_step *s, int k)
{
	int root = rg_plan_root(p, s->in[k]), out = s->n_out > 0 ? s->out[0] : -1;
	const struct rg_plan_tensor *from = &p->tensors[s->in[k]], *to;

	if (out < 0 || p->tensors[out].over != root || !s->kernel)
		return false;
	to = &p->tensors[out];
	return s->kernel->in_place >> k & 1 && from->offset_bytes == to->offset_bytes && from->dtype == to->dtype &&
	       rg_shape_equal(&from->shape, &to->shape);
}

static int check_reads(const struct rg_plan *p, struct rg_error *err)
{
	int i, k;

	for (i = 0; i < p->n_steps; i++) {
		const struct rg_step *s = &p->steps[i];

		for (k = 0; k < s->n_in; k++) {
			const struct rg_plan_tensor *t = s->in[k] >= 0 ? &p->tensors[s->in[k]] : NULL;

			if (!t || t->place != RG_PLACE_ARENA || (t->first_step <= i && i <= t->last_step) ||
			    overwrites(p, s, k))
				continue;
			rg_error_set(err, -EFAULT, "value '%s' is not alive where it is read",
				     p->graph->values[s->in[k]].name);
			return rg_error_at(err, "node '%s'", p->graph->nodes[s->node].name);
		}
	}
	return 0;
}

int rg_plan_check(const struct rg_plan *p, struct rg_error *err)
{
	size_t cap = (size_t)p->n_tensors + (size_t)p->n_steps;
	struct placed *all = rg_calloc(cap, sizeof(*all));
	int i, k, n = 0, rc = 0;

	if (!all)
		return rg_error_nomem(err, cap * sizeof(*all));
	for (i = 0; i < p->n_tensors; i++) {
		const struct rg_plan_tensor *t = &p->tensors[i];

		if (rg_plan_needs_memory(t) && t->size_bytes > 0)
			all[n++] = (struct placed){ t->offset_bytes, t->offset_bytes + t->size_bytes,
						   t->first_step,
						    t->last_step, i, -1 };
	}
	for (i = 0; i < p->n_steps; i++) {
		const struct rg_step *s = &p->steps[i];

		if (s->scratch_bytes > 0)
			all[n++] = (struct placed){ s->scratch_offset_bytes,
						    s->scratch_offset_bytes + s->scratch_bytes, i, i, -1, i };
	}
	for (i = 0; i < n && !rc; i++) {
		if (all[i].from < 0 || all[i].from % 64 || all[i].to > p->arena_bytes || all[i].first < 0) {
			rg_error_set(err, -EFAULT, "not inside the arena of %lld bytes",
				     (long long)p->arena_bytes);
			rc = report_overlap(p, &all[i], err);
		}
		for (k = 0; k < i && !rc; k++) {
			if (all[i].last < all[k].first || all[k].last < all[i].first ||
			    all[i].to <= all[k].from ||
			    all[k].to <= all[i].from)
				continue;
			rg_error_set(err, -EFAULT, "shares memory while both live");
			report_overlap(p, &all[k], err);
			rc = report_overlap(p, &all[i], err);
		}
	}
	rg_free(all);
	return rc ? rc : check_reads(p, err);
}
