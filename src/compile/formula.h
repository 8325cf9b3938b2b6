/*
 * What a chain of sums, products and small powers computes, as a polynomial: so a pattern
 * is told by its formula, in whatever order an exporter wrote it.
 *
 *	p0 + p1 x + p2 x^2 + p3 x^3  +  t (t0 + t1 x + t2 x^2 + t3 x^3)
 *
 * where t is another value, such as erf(x / sqrt 2).
 */
#ifndef RG_COMPILE_FORMULA_H
#define RG_COMPILE_FORMULA_H

#include "compile/region.h"

enum { RG_FORMULA_TERMS = 4 };

struct rg_formula {
	double p[RG_FORMULA_TERMS], t[RG_FORMULA_TERMS];
};

/*
 * The formula of `value` in x and t (-1: there is none), and the nodes that compute it. false: it is none,
 * or not all of it is float32 in the shape of x.
 */
bool rg_formula_of(const struct rg_match *m, int value, int x, int t, struct rg_formula *f, struct rg_region *r);
/* All coefficients within 1e-6. */
bool rg_formula_is(const struct rg_formula *f, const struct rg_formula *want);
/*
 * The values that sums, products and powers lead back to from `value`, itself the first, the near ones
 * before the far: what x could be. Returns how many, at most `most`.
 */
int rg_formula_variables(const struct rg_match *m, int value, int most, int *out);
/*
 * Follows sums and products on from t, until one computes `want`: the node, and in r the nodes behind t. -1
 * where none does.
 */
int rg_formula_find(const struct rg_match *m, int x, int t, const struct rg_formula *want, struct rg_region *r);

#endif
