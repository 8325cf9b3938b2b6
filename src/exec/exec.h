/*
 * Runs a plan. The executor owns the arena, the thread pool and the input and
 * output buffers; it knows no probe and no database. Whoever wants to watch
 * sets a hook.
 *
 * Steady state (rg_exec_run): no allocation, no lock, and no system call but
 * waking and sleeping lanes. Dynamic steps (exec/dynamic.h) are the exception:
 * they allocate what they make.
 */
#ifndef RG_EXEC_EXEC_H
#define RG_EXEC_EXEC_H

#include "compile/plan.h"
#include "exec/item.h"

struct rg_exec;

/*
 * Called on the lane that did the work, after it is done. Each step gives one
 * span with lane -1 that covers the whole of it; a step that ran on more than
 * one lane gives in addition one span for each lane's share (lane 0 and up; a
 * step with several parallel-fors gives several). Must not block or allocate.
 */
struct rg_exec_hook {
	void (*span)(void *ctx, int lane, int step, uint64_t start_ns, uint64_t end_ns);
	void *ctx;
};

struct rg_exec_options {
	bool pin;              /* pin lane i to cpus[i] */
	int n_cpus;
	const int *cpus;
	/* Asked before each step, and inside of one before each node of a subgraph, on
	 * the thread that runs: true ends the inference with RG_EINTERRUPTED. Must be
	 * quick (the load of a flag). NULL: nobody stops it. */
	bool (*stop)(void *ctx);
	void *stop_ctx;
};

/* Starts plan->lanes - 1 threads and touches the arena. */
int rg_exec_new(const struct rg_plan *plan, const struct rg_exec_options *opt, struct rg_exec **out,
		struct rg_error *err);
void rg_exec_free(struct rg_exec *e);

/* The buffer of graph input i (0..n_inputs): write the data there before a run.
 * Type and shape as planned. For inputs that the plan was specialised on,
 * data is NULL. */
struct rg_tensor rg_exec_input(struct rg_exec *e, int i);
/* Gives input i its value, for all runs to come, where it is a sequence or an
 * optional (rg_value.kind). Takes a reference of its own. Such an input without
 * a value is an error of the step that reads it. */
int rg_exec_set_input(struct rg_exec *e, int i, struct rg_item *item, struct rg_error *err);
/* Output i of the graph, valid after a run until the next one. dtype
 * RG_UNDEFINED: it is no tensor, see rg_exec_output_item. */
struct rg_tensor rg_exec_output(struct rg_exec *e, int i);
/* The same for an output that a dynamic step made: borrowed until the next run;
 * NULL for planned ones, and before the first run. */
const struct rg_item *rg_exec_output_item(struct rg_exec *e, int i);
/* NULL takes the hook away: then no clock is read. */
void rg_exec_set_hook(struct rg_exec *e, const struct rg_exec_hook *hook);
/* One inference. On failure the error names the node, and outputs hold nothing of use. */
int rg_exec_run(struct rg_exec *e, struct rg_error *err);
/* Any value's current memory, for debugging and tests; data NULL when it has none. */
struct rg_tensor rg_exec_value(struct rg_exec *e, int value);

#endif
