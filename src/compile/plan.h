/*
 * From a bound graph to a plan: which kernel runs each step, and where every
 * byte lives. Nothing is allocated after this.
 *
 *   rg_plan_make: fold constants and infer shapes, rewrite the graph (pass.h),
 *   drop dead nodes, turn view operators into aliases, select kernels, compute lifetimes, place
 *   activations and scratch in one arena, prepare (pack) weights.
 *
 * The plan borrows the graph, which must outlive it. It is read-only once made
 * and may be shared; what changes during a run lives in the executor.
 */
#ifndef RG_COMPILE_PLAN_H
#define RG_COMPILE_PLAN_H

#include "base/error.h"
#include "compile/pass.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "kernels/kernel.h"

struct rg_plan_options {
	int lanes;              /* threads that will run it; >= 1 */
	uint32_t isa;           /* bits that may be used */
	struct rg_pass_options passes; /* level 0: the graph runs as it is */
	int n_overrides;        /* --kernel OP=NAME */
	struct { const char *op; const char *kernel; } *overrides; /* op: type or node name */
	/* --without-kernel: kernels of these names are not chosen, for no operator, unless an
	 * override asks for one. The list and its strings outlive the plan. */
	int n_without;
	const char *const *without;
	/* Values of graph inputs, for shapes that depend on them: may be NULL.
	 * Asked only when inference needs the value; the input then becomes a
	 * constant of the plan (RG_CONST_BOUND), and is listed in `bound_inputs`. */
	const struct rg_tensor *(*input_value)(void *ctx, const char *name);
	void *input_ctx;
	/* For a graph that is to serve every input: nothing is specialised to the value of one, what
	 * depends on it is dynamic. */
	bool any_value;
	/* Ifs stay, also where the condition is known: it may come from sizes that are not for good. */
	bool keep_branches;
	/* Frees constants of the graph as soon as nothing reads them any more: weights when the
	 * kernels of all their readers have packed them, and what was only folded into
	 * others. The graph can be planned once then. */
	bool release;
	/* No step writes over an input that nothing else reads (in-place.c): for tests, and for
	 * looking at what every step read. */
	bool keep_inputs;
	/* Steps may run in another order than the graph's, where that lowers the peak (order.c). */
	bool order_for_memory;
};

enum rg_place {
	RG_PLACE_ARENA,   /* offset_bytes into the arena */
	RG_PLACE_CONST,   /* a constant of the graph: data */
	RG_PLACE_INPUT,   /* the caller's input buffer */
	RG_PLACE_DYNAMIC, /* made while it runs, in memory of its own: type and shape are known then */
	RG_PLACE_UNUSED,  /* no step makes or reads it: dead, or folded away */
};

struct rg_plan_tensor { /* one for each value of the graph */
	enum rg_place place;
	enum rg_dtype dtype;
	struct rg_shape shape;
	int64_t size_bytes;
	int64_t offset_bytes;   /* ARENA */
	const void *data;       /* CONST */
	int alias_of;           /* value whose memory this is or lies in (never an alias itself), or -1 */
	int64_t part_bytes;     /* where in that memory it begins; included in offset_bytes and data */
	int over;               /* value whose memory this takes over where its first step writes it, or -1 */
	int handed_to;          /* the other way around: whose memory it is from that step on, or -1 */
	int first_step, last_step; /* live range of the memory over steps, inclusive, all aliases
	                              included; outputs live to the end; -1: no step touches it */
};

struct rg_step {
	int node;                       /* index in the graph */
	const struct rg_kernel *kernel; /* NULL: dynamic */
	/* Runs on the dynamic path (exec/dynamic.h): shapes, kernel and memory are found each
	 * time it runs. Costs and traffic are unknown before. */
	bool dynamic;
	bool unsupported;               /* lenient graphs: it cannot run, `reason` says why */
	const char *reason;             /* why this kernel: "rank 20 of 2 that support it"; why dynamic */
	int n_in, n_out;
	int *in, *out;                  /* value indices, -1 absent; what the node's subgraphs read
	                                   follows its own inputs */
	void *prepared;                 /* packed weights, NULL none */
	int64_t prepared_bytes;
	int64_t scratch_offset_bytes;   /* into the arena */
	int64_t scratch_bytes;
	struct rg_cost cost;            /* useful, from shapes */
	struct rg_traffic traffic;      /* declared by the kernel */
};

struct rg_edge { int from_step, to_step, value; }; /* true data dependency */

struct rg_plan {
	const struct rg_graph *graph;
	int lanes;
	uint32_t isa;                   /* that dynamic steps may use */
	int n_without;                  /* kernels that they may not */
	const char *const *without;
	int n_tensors;
	struct rg_plan_tensor *tensors; /* by value index */
	int n_steps;                    /* views are not steps */
	int n_steps_before;             /* that it would have without passes */
	struct rg_step *steps;
	int n_views;                    /* nodes that became aliases */
	int *views;                     /* their node indices */
	int n_in_place;                 /* steps that write over an input */
	int n_dynamic;                  /* steps on the dynamic path */
	int n_unsupported;              /* steps that cannot run: the plan is for analysis only */
	struct rg_pass_log passes;      /* what the graph passes did and declined */
	int n_folded;                   /* nodes computed at plan time */
	int n_dead;                     /* nodes that no output needs */
	int n_edges;
	struct rg_edge *edges;
	int64_t arena_bytes;            /* activations and scratch, as placed */
	int64_t arena_lower_bound_bytes;/* largest sum of live bytes at any step, each rounded up to 64 */
	bool reordered;                 /* steps are not in the graph's order (options.order_for_memory) */
	int64_t graph_order_bound_bytes;/* then, or when no better one was found: that bound in the graph's
	                                   order; 0: not asked */
	const char *arena_made_by;      /* strategy that placed it (arena.h): "greedy-size", "search" */
	int peak_step;                  /* where that is */
	int64_t prepared_bytes;         /* all packed weights */
	int64_t released_bytes;         /* of constants that were freed (options.release) */
	int n_bound_inputs;             /* inputs that the plan was specialised on */
	const char **bound_inputs;
	uint64_t optimise_ns, plan_ns, pack_ns; /* phases as measured here */
};

/* "openblas"; "none" for what cannot run; "dynamic" for a step that finds its kernel as it runs. */
const char *rg_step_kernel_name(const struct rg_step *s);

/*
 * g is changed: constants are folded into it.
 *
 * Nodes whose shapes depend on computed data, control flow, sequences, and all
 * that reads what they make become dynamic steps. --kernel does not reach them.
 *
 * Errors: RG_ENOTSUP_MODEL when a node has no kernel; RG_ENEED_VALUE when it depends on an input whose value nobody
 * gave; -EINVAL for a graph whose constants another plan has released; RG_EUSAGE for an override that fits nothing; -ENOMEM.
 *
 * A view is an alias unless it is a graph output whose memory would be the
 * caller's input buffer or a constant: an output must not change with the next
 * input, so that one is copied by a step. Two outputs may share memory, since
 * the caller only reads them.
 *
 * With passes (level 1 and up) two more kinds of nodes are no steps, where that does not raise the largest sum
 * of live bytes: what cuts a contiguous part out (Slice, Split, Gather) is an alias into its input, and Concat along
 * the outermost axis has its pieces made inside its output.
 */
int rg_plan_make(struct rg_graph *g, const struct rg_plan_options *opt, struct rg_plan **out,
		 struct rg_error *err);
void rg_plan_free(struct rg_plan *p);
/*
 * Proves that no two things alive at the same step (values, scratch) share a
 * byte of the arena, that each lies inside it, and that what a step reads is alive
 * then, or is what the step may write over and does. 0, or -EFAULT naming one or two of
 * them. Quadratic: for tests and for looking into a suspicion.
 */
int rg_plan_check(const struct rg_plan *p, struct rg_error *err);

#endif
