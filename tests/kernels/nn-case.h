/*
 * One call of one operator for a test: built by hand, shaped by the operator
 * table's own inference, run by any kernel of the registry with canaries around
 * outputs and scratch. Every input ends at (or begins behind) a page that cannot
 * be read. check.h compares every variant with the reference over many of these.
 */
#ifndef RG_TESTS_KERNELS_NN_CASE_H
#define RG_TESTS_KERNELS_NN_CASE_H

#include "guard.h"
#include "kernels/kernel.h"

enum { NN_MAX_IO = 18, NN_MAX_BLOCKS = 4 * NN_MAX_IO, NN_MAX_ATTRS = 16, NN_MAX_LIST = 16 };

struct nn_case {
	char what[400];               /* for messages */
	struct rg_node node;
	struct rg_attr attrs[NN_MAX_ATTRS];
	int64_t ints[NN_MAX_ATTRS][NN_MAX_LIST];
	struct rg_tensor in[NN_MAX_IO], out[NN_MAX_IO];
	struct guard blocks[NN_MAX_BLOCKS]; /* freed by nn_free */
	int n_blocks;
	uint64_t salt;                /* makes each input's data its own */
	uint32_t variable;            /* bit i: planning does not see the data of input i */
	/* What check.h asks of a case. */
	enum guard_side side;         /* of the inputs' memory */
	int n_out;                    /* outputs that are wanted; 0 counts as 1 */
	uint32_t known;               /* inputs whose values a planner must know (axes, sizes) */
	uint32_t weights;             /* inputs whose values it may know */
	bool whole;                   /* all inputs are small whole numbers */
	bool overflows;               /* inputs near the largest number: sums may overflow on the way */
};

enum nn_fill {
	NN_UNIFORM,   /* [-1, 1) */
	NN_SPECIAL,   /* uniform with huge, tiny, denormal, NaN and infinite ones among them */
	NN_POSITIVE,  /* [0.1, 1.1) */
	NN_WHOLE,     /* whole numbers from -4 to 4: short sums of their products are exact */
	NN_WIDE,      /* [-20, 20) */
	NN_BIG,       /* about 2^55: products far from 1, without overflow */
	NN_TINY,      /* about 2^-70: products are denormal */
	NN_DENORMAL,
	NN_HUGE,      /* uniform with 3e38 and -3e38 among them */
	NN_NAN,       /* uniform with NaN among them */
	NN_INF,       /* uniform with infinities among them */
};

void nn_start(struct nn_case *t, const char *op_type, int version);
/* The same in another domain than the standard one. */
void nn_start_in(struct nn_case *t, const char *domain, const char *op_type, int version);
void nn_int(struct nn_case *t, const char *name, int64_t v);
void nn_ints(struct nn_case *t, const char *name, int n, const int64_t *v);
void nn_float(struct nn_case *t, const char *name, float v);
/* The list stays the caller's. */
void nn_floats(struct nn_case *t, const char *name, int n, const float *v);
void nn_string(struct nn_case *t, const char *name, const char *v);
/* The case takes the graph over. */
void nn_graph(struct nn_case *t, const char *name, struct rg_graph *g);
/* The next input, filled; returns its data. */
float *nn_input(struct nn_case *t, enum nn_fill fill, int rank, const int64_t *dims);
/* The next input of any type, zeroed. */
void *nn_input_typed(struct nn_case *t, enum rg_dtype dtype, int rank, const int64_t *dims);
/* The next input of any type, any bytes; booleans 0 or 1. */
void *nn_input_bytes(struct nn_case *t, enum rg_dtype dtype, int rank, const int64_t *dims);
/* The next input, int64, whose values the planner knows. */
void nn_input_ints(struct nn_case *t, int n, const int64_t *v);
void nn_absent(struct nn_case *t);
/* Output types and shapes by the operator table. Returns what infer returned. */
int nn_infer(struct nn_case *t, int n_out, struct rg_error *err);
/*
 * Runs the kernel on `lanes` lanes into outputs of its own. false: it does not
 * support the call. Planning sees the data of the inputs that are not in
 * `variable`; what it packed of them, the run does not see. Fails the test when it returns an error, when a canary died
 * or when a byte of an output was not written (outputs start as NaN patterns;
 * pass may_be_nan for data that makes NaN).
 */
bool nn_run(struct nn_case *t, const char *kernel, int lanes, bool may_be_nan, float **out0);
/* |got - want| <= atol + rtol * |want|, NaN equal to NaN, infinities equal. */
void nn_compare(const struct nn_case *t, const char *kernel, const float *want, const float *got, double rtol,
		double atol);
/*
 * The whole: the reference and `kernel` on 1, 2 and 3 lanes, compared on every
 * element. Returns the runs compared (0: the kernel does not support the call
 * or is not for this CPU).
 */
int nn_check(struct nn_case *t, const char *kernel, double rtol, double atol, bool may_be_nan);
/* nn_check for each kernel of the operator but the reference; frees the case.
 * Returns the runs compared. */
int nn_check_all(struct nn_case *t, double rtol, double atol, bool may_be_nan);
/* The same with `n_out` outputs, each compared: floats within the tolerance,
 * other types bit by bit. */
int nn_check_outputs(struct nn_case *t, int n_out, double rtol, double atol, bool may_be_nan);
void nn_free(struct nn_case *t);

#endif
