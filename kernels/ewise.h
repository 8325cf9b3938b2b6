/*
 * Elementwise operators over broadcast operands, one at a time or in chains.
 *
 * A program is a list of row functions over registers: inputs, constants, and the
 * results of earlier functions. It is built once for the shapes; a run walks the
 * output in pieces that stay in L1, every function over a piece before the next
 * piece, split over the lanes. Each element sees the operations that separate
 * operators would do, with the same roundings, so a chain gives the same bits.
 *
 *   rg_ew_start(&e, out_shape, n, shapes, bytes);      inputs are registers 0 .. n - 1
 *   r = rg_ew_apply(&e, fn, accepts, 2, (int[]){ 0, 1 }, 0, 0, 4, cost);
 *   r = rg_ew_apply(&e, ...);                          r is a register as well
 *   rg_ew_run(&e, data, out, par);                     the last result is the output
 *
 * To fuse a chain of nodes: start with the inputs that come from outside of the
 * chain, let each node's own function add what it does (struct rg_ew_node below),
 * with the registers that its inputs became, and run. That works for any chain
 * whose nodes all have the output's shape once broadcast; a node's result that is
 * wanted outside of the chain as well ends it.
 *
 * Walking: dimensions that all inputs walk in step are merged. The innermost one
 * is then contiguous or a repeated element for each input. Where it is short, the
 * output is walked flat instead, and inputs that are neither contiguous nor one
 * element are laid out in a buffer; once for all when what they repeat fits it.
 *
 * The output may be the memory of an input that has its shape and its size of element: of a
 * piece, all is read before the last operation, and by that one element by element.
 *
 * A program holds no pointer to data and may be run by several threads at once.
 */
#ifndef RG_KERNELS_EWISE_H
#define RG_KERNELS_EWISE_H

#include "kernels/kernel.h"

enum {
	RG_EW_MAX_IN = 8,      /* inputs of a program */
	RG_EW_MAX_CONST = 8,
	RG_EW_MAX_OPS = 16,
	RG_EW_MAX_TEMPS = 4,   /* results alive at once */
	RG_EW_TILE = 512,      /* elements of a piece, where there are buffers */
	RG_EW_CONST = 32,      /* registers: inputs from 0, constants and results from these on */
	RG_EW_RESULT = 64,
};

struct rg_ew_args {
	const void *in[3];     /* n elements, or one where the bit of `single` is set */
	unsigned single;
	float a, b;            /* parameters of the function */
};
/* out overlaps no input, or is the same as one of those that are not `single`: element i of it
 * is made of element i of that one alone. */
typedef void rg_ew_fn(void *out, const struct rg_ew_args *p, int64_t n);

struct rg_ew_op {
	rg_ew_fn *fn;
	uint8_t accepts;       /* bit m: `single` may be m. 0 always may */
	uint8_t n_in, temp, cost, bytes;
	int8_t in[3];
	float a, b;
};

struct rg_ew {
	int n_in, n_const, n_ops, n_temps;
	int64_t count;
	int rank;                                   /* outer dimensions */
	int64_t dim[RG_MAX_RANK], inner;
	int64_t stride[RG_EW_MAX_IN][RG_MAX_RANK];  /* in elements */
	int64_t period[RG_EW_MAX_IN];               /* flat: 0 contiguous, 1 one element, else it is laid out
	                                               and repeats after so many elements */
	uint8_t step[RG_EW_MAX_IN];                 /* along the inner dimension, 0 or 1 */
	uint8_t bytes[RG_EW_MAX_IN];
	bool flat;
	float constant[RG_EW_MAX_CONST];
	struct rg_ew_op op[RG_EW_MAX_OPS];
};

/* Shapes broadcast to `out`; bytes of their elements, 1, 2, 4 or 8. false: too many. */
bool rg_ew_start(struct rg_ew *e, const struct rg_shape *out, int n, const struct rg_shape *const *shapes,
		 const int *bytes);
/* A constant's register, or -ENOSPC. */
int rg_ew_constant(struct rg_ew *e, float value);
/*
 * Adds an operation on n_in registers whose result has elements of `bytes`; cost in
 * quarter-nanoseconds an element. Returns the result's register, or -ENOSPC: the
 * program is full. What is not read again by a later operation is forgotten.
 */
int rg_ew_apply(struct rg_ew *e, rg_ew_fn *fn, unsigned accepts, int n_in, const int *in, float a, float b,
		int bytes, int cost);
/* data: of each input. The last operation's result goes to `out`. */
void rg_ew_run(const struct rg_ew *e, const void *const *data, void *out, const struct rg_par *par);
/* Bytes between registers and L1: what all operations load and store. */
void rg_ew_traffic(const struct rg_ew *e, struct rg_traffic *out);

/*
 * What a node adds to a program: its operations on the registers of its inputs
 * (-1: absent). Returns the register of output 0 or a negative errno: -ENOTSUP for
 * types or attributes that it is not made for. Values of inputs are read when the
 * program runs, never here.
 */
typedef int rg_ew_node(struct rg_ew *e, const struct rg_call *c, const int *in);

/* The node function behind a kernel of the registry (of its level of instructions),
 * or NULL when the kernel is not of this kind. */
rg_ew_node *rg_ew_node_of(const struct rg_kernel *k);

/* Kernels and their node functions, in the same order. */
struct rg_ew_family {
	const struct rg_kernel_table *kernels;
	rg_ew_node *const *nodes;
};

/* A node alone: its inputs, what it adds, run. For kernels. */
bool rg_ew_call_supports(const struct rg_call *c, rg_ew_node *node);
int rg_ew_call_run(const struct rg_call *c, rg_ew_node *node, const struct rg_par *par, struct rg_error *err);
void rg_ew_call_traffic(const struct rg_call *c, rg_ew_node *node, struct rg_traffic *out);

#endif
