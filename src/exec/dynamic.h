/*
 * The dynamic path: runs what could not be planned, node by node. Shapes are
 * inferred from the values that are there, memory comes from the heap and goes
 * back after the last use, and the kernel is selected again whenever types or
 * shapes have changed; packed weights are kept until then. The kernels are
 * those of planned steps, so what differs is time between them, and that is
 * visible: such a step is recorded with the kernel name "dynamic".
 *
 * Control flow runs its subgraphs here, too: a subgraph is a body with a value
 * table of its own, and reads of the graphs around it by name.
 *
 * One object belongs to one executor, and to the thread that runs it.
 */
#ifndef RG_EXEC_DYNAMIC_H
#define RG_EXEC_DYNAMIC_H

#include "base/arena.h"
#include "compile/plan.h"
#include "exec/item.h"
#include "kernels/par.h"

struct rg_dynamic;

/* Where planned values lie: the executor's memory. `data` NULL: it has none. */
typedef struct rg_tensor rg_resolve_fn(void *ctx, int value);

int rg_dynamic_new(const struct rg_plan *plan, rg_resolve_fn *resolve, void *ctx, struct rg_dynamic **out,
		   struct rg_error *err);
void rg_dynamic_free(struct rg_dynamic *d);
/* rg_exec_options.stop. */
void rg_dynamic_set_stop(struct rg_dynamic *d, bool (*stop)(void *ctx), void *ctx);
/* Forgets what the last inference left. `text` takes the characters of strings. */
void rg_dynamic_begin(struct rg_dynamic *d, struct rg_arena *text);
/* Gives an input that is no plain tensor its value for all runs to come; takes
 * a reference of its own. */
void rg_dynamic_set_input(struct rg_dynamic *d, int value, struct rg_item *item);
/* Runs a step of the plan. The error names nodes inside of subgraphs, and the
 * node of the step. */
int rg_dynamic_step(struct rg_dynamic *d, int step, const struct rg_par *par, struct rg_error *err);
/* What a value of the main graph holds now, or NULL. Borrowed. */
const struct rg_item *rg_dynamic_item(const struct rg_dynamic *d, int value);

#endif
