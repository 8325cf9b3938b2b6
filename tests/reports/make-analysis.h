/*
 * Recordings made up for the tests of the writers: plausible ones, and ones
 * that are awkward on purpose.
 */
#ifndef RG_TESTS_MAKE_ANALYSIS_H
#define RG_TESTS_MAKE_ANALYSIS_H

#include "analyzer/ops.h"

/* A convolution network: 24 operators, all kinds of bounds, 1,200 latencies. */
struct rg_analysis *make_compiled(void); /* make_plausible, and what passes noted */
struct rg_analysis *make_plausible(void);
/* Nothing known: no steps, no iterations, every number NAN or -1. */
struct rg_analysis *make_empty(void);
/* `n` operators with names that attack terminals, Markdown, CSV, JSON, gnuplot and shells. */
struct rg_analysis *make_hostile(int n);
void make_free(struct rg_analysis *a);

#endif
