/*
 * What can be said of the memory of a plan: what lives when and where, how far
 * above the lower bound each strategy ends, what is alive at the peak, and where
 * a smaller memory would first spill.
 *
 * A planner stands for a target. That of ridge gives every offset as the plan has it.
 * That of TensorFlow Lite Micro places the model's activations as its greedy
 * memory planner does (tensorflow/lite/micro/memory_planner/greedy_memory_planner.cc):
 * sizes rounded up to 16 bytes, by size, the earlier one first among equals, each at
 * the lowest gap between those alive at the same time. Inputs of the model lie in its
 * arena too; scratch of ridge's kernels does not, since it has kernels of its own, and
 * nothing is written in place.
 */
#ifndef RG_COMPILE_MEMORY_H
#define RG_COMPILE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum rg_planner { RG_PLANNER_RIDGE, RG_PLANNER_TFLM, RG_PLANNER_COUNT };

const char *rg_planner_name(enum rg_planner p); /* "tflm" */
bool rg_planner_parse(const char *name, enum rg_planner *p);

struct rg_memory_options {
	enum rg_planner planner;
	const char *strategy;   /* place with this one (strategies.h, or "search"); NULL: as the planner does */
	int64_t capacity_bytes; /* where does it first spill? -1: not asked */
	int64_t time_limit_ns;  /* of the search; -1: limited by counted work instead */
};

struct rg_memory_buffer {
	const char *name;       /* of the value, of the first of those that take it over one from the
	                           other, or of the node whose scratch it is */
	const char *made_by;    /* operator type; "" an input of the model */
	const char *dtype, *shape; /* "" for scratch */
	bool scratch;
	int first_step, last_step; /* inclusive */
	int64_t size_bytes;     /* rounded up to the alignment */
	int64_t offset_bytes;
};

struct rg_memory_try {
	const char *strategy;
	int64_t height_bytes;   /* -1: found nothing within its limit */
	uint64_t time_ns;
};

#define RG_MEMORY_TRIES 8 /* every strategy, then the search */

struct rg_memory {
	const char *planner, *made_by; /* "ridge", "search" */
	int64_t align_bytes;
	int n_steps, n_dynamic;  /* dynamic steps take memory of their own, which is not planned */
	const char **step_names, **step_types;
	int n_buffers;
	struct rg_memory_buffer *buffers; /* values in the graph's order, then scratch */
	int64_t height_bytes, bound_bytes;/* where the highest ends; largest sum alive at once */
	int64_t graph_order_bound_bytes; /* with options.order_for_memory of the plan: that bound of ridge's
	                                    planner in the order of the graph; 0: not asked */
	bool reordered;          /* steps are in another order */
	int n_tries;
	struct rg_memory_try tries[RG_MEMORY_TRIES];
	int peak_step;           /* where the most is alive; -1: nothing is */
	int64_t capacity_bytes;  /* -1: not asked */
	int spill_step;          /* the first at which something ends above the capacity; -1: none */
	int64_t spill_bytes;     /* how far above, there */
	struct rg_arena *arena;  /* owns all of the above */
};

struct rg_plan;

/*
 * Names are copied: the plan may go. Errors: RG_EUSAGE for a strategy that there is
 * not, or one with a planner that has its own; -ETIME when the search was asked
 * for by name and found nothing in time, -ENOSPC when it proved that there is nothing;
 * -EOVERFLOW, -ENOMEM.
 */
int rg_memory_of(const struct rg_plan *p, const struct rg_memory_options *o, struct rg_memory **out,
		 struct rg_error *err);
void rg_memory_free(struct rg_memory *m);

#endif
