/*
 * Shapes for the whole graph, and constants computed once instead of in every
 * run.
 */
#ifndef RG_COMPILE_FOLD_H
#define RG_COMPILE_FOLD_H

#include "compile/plan.h"

/*
 * Infers every type and shape and folds what is constant. Where a shape depends
 * on a graph input, opt->input_value is asked and the input becomes a constant
 * (RG_CONST_BOUND), until inference is through.
 */
int rg_fold_graph(struct rg_graph *g, const struct rg_plan_options *opt, struct rg_error *err);

#endif
