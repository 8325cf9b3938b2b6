/*
 * One call of one operator of any element types, for tests of the reference
 * kernels against formulas: shaped by the operator table's inference, run with
 * canaries around the outputs, and run twice over different old contents, so
 * that a byte that is not written shows.
 */
#ifndef RG_TESTS_KERNELS_MATH_CASE_H
#define RG_TESTS_KERNELS_MATH_CASE_H

#include "kernels/kernel.h"

enum { MC_MAX_IO = 10, MC_MAX_ATTRS = 24, MC_MAX_LIST = 12 };

struct math_case {
	char what[256];                 /* for messages */
	struct rg_node node;
	struct rg_attr attrs[MC_MAX_ATTRS];
	int64_t ints[MC_MAX_ATTRS][MC_MAX_LIST];
	float floats[MC_MAX_ATTRS][MC_MAX_LIST];
	struct rg_tensor in[MC_MAX_IO], out[MC_MAX_IO];
	bool variable[MC_MAX_IO];       /* its value is not known to inference */
	void *blocks[4 * MC_MAX_IO];
	int n_blocks;
	struct rg_error err;
};

#define MC_DIMS(...) ((const int64_t[]){ __VA_ARGS__ })
#define MC_LIST(...) ((const double[]){ __VA_ARGS__ })

void mc_start(struct math_case *t, const char *op_type, int version);
/* The same in another domain than the standard one. */
void mc_start_in(struct math_case *t, const char *domain, const char *op_type, int version);
void mc_int(struct math_case *t, const char *name, int64_t v);
void mc_ints(struct math_case *t, const char *name, int n, const int64_t *v);
void mc_floats(struct math_case *t, const char *name, int n, const float *v);
/* The list stays the caller's. */
void mc_strings(struct math_case *t, const char *name, int n, const char *const *v);
/* A list as a tensor. */
void mc_tensor(struct math_case *t, const char *name, enum rg_dtype dtype, int64_t n, const double *v);
void mc_float(struct math_case *t, const char *name, float v);
void mc_string(struct math_case *t, const char *name, const char *v);
/* The next input, zeroed; returns its index. */
int mc_in(struct math_case *t, enum rg_dtype dtype, int rank, const int64_t *dims);
/* The next input, from a list of as many values as it has elements. */
void mc_in_list(struct math_case *t, enum rg_dtype dtype, int rank, const int64_t *dims, const double *v);
/* The next input, seeded: uniform in [lo, hi), whole numbers for integers. */
void mc_in_random(struct math_case *t, enum rg_dtype dtype, int rank, const int64_t *dims, double lo,
		  double hi);
/* Puts NaN, infinities, zeros of both signs, huge and tiny ones among the elements. */
void mc_special(struct math_case *t, int input);
void mc_absent(struct math_case *t);

/* Infers and runs the reference. 0, or the error of either (t->err says which). */
int mc_run(struct math_case *t, int n_out);
void mc_must_run(struct math_case *t, int n_out);
void mc_free(struct math_case *t);

/* Elements as doubles, exact but for 64-bit integers. */
double mc_get(const struct rg_tensor *t, int64_t i);
void mc_set(const struct rg_tensor *t, int64_t i, double v);
/* Relative rounding error of one operation in this type, with room for libm. */
double mc_tolerance(enum rg_dtype t);
/* Element i of an output is `want`: equal, both NaN, or within tolerance. */
void mc_expect(const struct math_case *t, int output, int64_t i, double want, double rtol, double atol);
/* The shape of an output is this. */
void mc_expect_shape(const struct math_case *t, int output, int rank, const int64_t *dims);

/* Index arithmetic done the slow way: where element `flat` of `out` reads in a
 * tensor of shape `s` that numpy's rules broadcast to it. */
int64_t mc_broadcast_index(const struct rg_shape *s, const struct rg_shape *out, int64_t flat);

#endif
