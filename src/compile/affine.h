/*
 * What multiplies and shifts each channel of a tensor: x becomes f x + s. BatchNormalization,
 * Neg (behind a convolution), and Mul, Div, Add, Sub of constants that are one number or one a channel, as
 * many of them as follow each other, gathered in double.
 */
#ifndef RG_COMPILE_AFFINE_H
#define RG_COMPILE_AFFINE_H

#include "compile/match.h"

struct rg_affine {
	int64_t channels;
	bool last;                  /* channels are the last dimension, else the second one */
	double *f, *s;              /* one a channel; 1 and 0 at the beginning */
	double *f_before, *s_before; /* before the node that was taken last */
};

int rg_affine_init(struct rg_affine *a, int64_t channels, bool last, struct rg_error *err);
void rg_affine_free(struct rg_affine *a);
/* Whether a constant of this shape is one number, or one a channel of a value of this rank: elements from one
 * channel to the next, 0 or 1; -1: neither. */
int rg_affine_step(const struct rg_affine *a, const struct rg_shape *s, int rank);
/* Puts node `at`, which reads value `from`, behind what there is; or leaves that as it is and says why. */
enum rg_decline rg_affine_take(const struct rg_match *m, int at, int from, struct rg_affine *a);

/* Node `at` is one of these operators, open, with constants beside input 0 or (Mul, Add) 1. The value that
 * it changes, of the same shape as what it makes; -1: it is none. */
int rg_affine_input(const struct rg_match *m, int at);

enum { RG_AFFINE_CHAIN = 16 };
/*
 * The chain of such nodes that makes `value`, the nearest first, of which nobody reads what lies
 * between. Returns how many; *first: the value that it begins with.
 */
int rg_affine_chain(const struct rg_match *m, int value, int chain[RG_AFFINE_CHAIN], int *first);
/* Gathers the n nearest nodes of a chain; *from: the value that they begin with. */
enum rg_decline rg_affine_gather(const struct rg_match *m, const int *chain, int n, struct rg_affine *a,
				 int *from);

#endif
