/*
 * Which range of a tensor's values is quantised, given how they are distributed. A
 * narrower one has finer steps and clips what lies outside. Each rule is a pure function of a histogram
 * (range-NAME.c), and answers within the range of the histogram.
 */
#ifndef RG_BASE_RANGE_H
#define RG_BASE_RANGE_H

#include <stdbool.h>

#include "base/histogram.h"

enum rg_range_rule {
	RG_RANGE_MINMAX,        /* all that was seen; needs no histogram */
	RG_RANGE_PERCENTILE,
	RG_RANGE_ENTROPY,
	RG_RANGE_MSE,
};

struct rg_range { double low, high; };

/* "minmax", "percentile", "entropy", "mse"; static storage. */
const char *rg_range_rule_name(enum rg_range_rule r);
bool rg_range_rule_parse(const char *name, enum rg_range_rule *out);

/* The share of values that is kept, in percent (above 50, at most 100): half of the rest is left out at each end. An
 * end that 0 is at stays there. */
struct rg_range rg_range_percentile(const struct rg_histogram *h, double percent);
/*
 * The threshold T whose clipped and quantised distribution has the least relative entropy (Kullback and
 * Leibler) to what was seen: Migacz, 8-bit Inference with TensorRT, GTC 2017. It is of magnitudes, as there,
 * and the range [-T, T], cut to what was seen; 128 levels, or 256 where all values have one sign.
 */
struct rg_range rg_range_entropy(const struct rg_histogram *h);
/*
 * The range with the least mean squared error of u8 quantisation, rounding and clipping together (as in Sung, Shin and
 * Hwang, Resiliency of Deep Neural Networks under Quantization, 2015, for one bound): each end is moved in
 * turn until neither gains.
 */
struct rg_range rg_range_mse(const struct rg_histogram *h);
/* That error, for a given range: the mean square of what u8 quantisation to it leaves. */
double rg_range_error(const struct rg_histogram *h, const struct rg_range *r);

#endif
