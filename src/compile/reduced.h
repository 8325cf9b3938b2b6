/* Which dimensions a reduction (ReduceMean and the like) is over. */
#ifndef RG_COMPILE_REDUCED_H
#define RG_COMPILE_REDUCED_H

#include "compile/match.h"

/*
 * Bit d of *axes: dimension d goes, and stays as a one. false: it does not stay, or the dimensions are
 * not known before it runs, or it is over none or all by default.
 */
bool rg_reduced_axes(const struct rg_graph *g, const struct rg_node *n, unsigned *axes);

#endif
