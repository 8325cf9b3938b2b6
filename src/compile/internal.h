/*
 * What the passes of this folder share while they build a plan, in the order
 * in which they run.
 */
#ifndef RG_COMPILE_INTERNAL_H
#define RG_COMPILE_INTERNAL_H

#include "base/arena.h"
#include "compile/plan.h"

struct builder {
	struct rg_graph *g;
	const struct rg_plan_options *opt;
	struct rg_plan *plan;
	struct rg_arena *arena;   /* owns what the plan points to */
	struct rg_tensor *in, *out; /* room for the widest node */
	int *packers;             /* by value: readers that still have to pack it; -1: it stays */
};

/* steps.c: which nodes become steps, which views, and what each value is. */
int rg_plan_lower(struct builder *b, struct rg_error *err);
/* lifetime.c: live ranges, then places in the arena. Needs scratch sizes. */
int rg_plan_allocate(struct builder *b, struct rg_error *err);
/* edges.c: true data dependencies between steps. */
int rg_plan_edges(struct builder *b, struct rg_error *err);

/*
 * release.c: constants that nothing reads any more are freed. Begin before the
 * first step is packed, one call after each, the end after the last.
 */
int rg_release_begin(struct builder *b, struct rg_error *err);
void rg_release_step(struct builder *b, const struct rg_step *s);
void rg_release_end(struct builder *b);

/* The value whose memory this is. */
static inline int rg_plan_root(const struct rg_plan *p, int value)
{
	return p->tensors[value].alias_of >= 0 ? p->tensors[value].alias_of : value;
}

/* Fills b->in and b->out for a step, with data only where it is constant. */
struct rg_call rg_plan_call(struct builder *b, const struct rg_step *s);

#endif
