/*
 * What the passes of this folder share while they build a plan, in the order
 * in which they run.
 */
#ifndef RG_COMPILE_INTERNAL_H
#define RG_COMPILE_INTERNAL_H

#include "base/arena.h"
#include "compile/buffers.h"
#include "compile/plan.h"

#define RG_ARENA_ALIGN_BYTES 64 /* a cache line, and the widest vector */

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
/* How many steps it would be as it is, without passes and without embed.c. -1: out of memory. */
int rg_plan_count_steps(const struct rg_graph *g);
/* embed.c: values that lie inside others, so that nothing is cut out or joined. Takes steps out. */
int rg_plan_embed(struct builder *b, struct rg_error *err);
/* in-place.c: outputs that take over the memory of an input. Needs live ranges, which it cuts. */
int rg_plan_take_over(struct rg_plan *p, struct rg_error *err);
/* The last step at which the memory of a value is in use, by it or by what takes it over. */
int rg_plan_memory_last(const struct rg_plan *p, int value);
/* lifetime.c: live ranges, then places in the arena. Needs scratch sizes. */
int rg_plan_allocate(struct builder *b, struct rg_error *err);
/* The largest sum of bytes alive at once, in units of the alignment, with the steps as they are now. */
int rg_plan_load(struct builder *b, int64_t *load_bytes, struct rg_error *err);
/* order.c: puts steps into the order that has least alive at its peak, where one is found. */
int rg_plan_order(struct builder *b, struct rg_error *err);
/* edges.c: true data dependencies between steps. */
int rg_plan_edges(struct builder *b, struct rg_error *err);

/* unfused.c: a note for each pair of steps of which no pass has said why it stayed two. Needs edges. */
int rg_plan_note_unfused(struct builder *b, struct rg_error *err);

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

/* Does it lie in the arena by itself, or over another value, and not inside of one? */
static inline bool rg_plan_needs_memory(const struct rg_plan_tensor *t)
{
	return t->place == RG_PLACE_ARENA && t->alias_of < 0;
}

/* Does it begin a buffer of the arena? */
static inline bool rg_plan_begins_buffer(const struct rg_plan_tensor *t)
{
	return rg_plan_needs_memory(t) && t->over < 0;
}

/*
 * A buffer for what lives over these steps, inclusive. Everything begins at a
 * multiple of the alignment and nothing else uses the rest of its last one: with sizes
 * rounded up, the load that a planner sees is what no arena can be below.
 */
struct rg_buffer rg_plan_buffer(int64_t size_bytes, int first, int last, int64_t align_bytes);

/* Fills b->in and b->out for a step, with data only where it is constant. */
struct rg_call rg_plan_call(struct builder *b, const struct rg_step *s);

#endif
