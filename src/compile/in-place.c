/*
 * Steps that write over an input. A kernel says of which inputs that is safe for it
 * (rg_kernel.in_place); here it is found where the input's memory is wanted by
 * nobody after the step: then the output takes it over, and no new memory is needed.
 *
 * From that step on the memory counts as the output's, so that live ranges never meet:
 * the input lives up to the step before. Edges do not change, since they say who
 * made what a step reads, not where it lies.
 */
#include "compile/internal.h"

#include "base/alloc.h"

/* Memory that a graph output lies in is wanted to the end. */
static bool *mark_outputs(const struct rg_plan *p)
{
	bool *wanted = rg_calloc((size_t)p->n_tensors + 1, sizeof(*wanted));
	int i;

	if (wanted)
		for (i = 0; i < p->graph->n_outputs; i++)
			wanted[rg_plan_root(p, p->graph->outputs[i])] = true;
	return wanted;
}

/* May output 0 of the step become the memory of its input k? */
static bool fits(const struct rg_plan *p, const bool *wanted, int step, int k)
{
	const struct rg_step *s = &p->steps[step];
	int in = s->in[k], out = s->out[0], root, i;
	const struct rg_plan_tensor *from, *to;

	if (in < 0)
		return false;
	root = rg_plan_root(p, in);
	from = &p->tensors[in];
	to = &p->tensors[out];
	if (p->tensors[root].place != RG_PLACE_ARENA || p->tensors[root].last_step != step ||
	    p->tensors[root].first_step >= step || wanted[root])
		return false;
	if (from->dtype != to->dtype || !rg_shape_equal(&from->shape, &to->shape) || from->part_bytes != 0 ||
	    p->tensors[root].size_bytes != to->size_bytes || to->size_bytes == 0)
		return false;
	/* read again by another name, it may be walked in another order */
	for (i = 0; i < s->n_in; i++)
		if (s->in[i] >= 0 && s->in[i] != in && rg_plan_root(p, s->in[i]) == root)
			return false;
	return true;
}

int rg_plan_take_over(struct rg_plan *p, struct rg_error *err)
{
	bool *wanted = mark_outputs(p);
	int s, k;

	if (!wanted)
		return rg_error_nomem(err, (unsigned long)p->n_tensors + 1);
	for (s = 0; s < p->n_steps; s++) {
		const struct rg_step *step = &p->steps[s];
		int out = step->n_out > 0 ? step->out[0] : -1;

		if (step->dynamic || step->unsupported || out < 0 || !rg_plan_needs_memory(&p->tensors[out]))
			continue;
		for (k = 0; k < step->n_in && k < 32 && p->tensors[out].over < 0; k++) {
			int root = step->kernel->in_place >> k & 1 && fits(p, wanted, s, k) ? rg_plan_root(p, step->in[k]) : -1;

			if (root < 0)
				continue;
			p->tensors[out].over = root;
			p->tensors[root].handed_to = out;
			p->tensors[root].last_step = s - 1;
			p->n_in_place++;
		}
	}
	rg_free(wanted);
	return 0;
}

int rg_plan_memory_last(const struct rg_plan *p, int value)
{
	while (p->tensors[value].handed_to >= 0)
		value = p->tensors[value].handed_to;
	return p->tensors[value].last_step;
}
