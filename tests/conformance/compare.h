/*
 * Holds a tensor against the expected one, with the tolerances of ONNX's own
 * tests: |got - want| <= atol + rtol * |want| for floating-point elements, NaN
 * equal to NaN, infinities equal by sign; integers, types and shapes exactly.
 */
#ifndef TESTS_CONFORMANCE_COMPARE_H
#define TESTS_CONFORMANCE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/tensor.h"

/* Element i as a number; complex types have two of them an element. */
double tensor_number(const struct rg_tensor *t, int64_t i);

/* Whether they agree; otherwise `why` says where they differ first, and how. */
bool tensors_agree(const struct rg_tensor *got, const struct rg_tensor *want, double rtol, double atol,
		   char *why, size_t why_size);
/* The largest distance of two elements, in representable numbers of their type
 * (units in the last place), of tensors that agree: equal numbers, NaN and NaN,
 * 0 and -0 are 0 apart. -1: their type is not float16, bfloat16, float32, float64
 * or complex, or they have no elements. */
int64_t tensors_ulp(const struct rg_tensor *got, const struct rg_tensor *want);
/* The rule for one floating-point number. */
bool numbers_agree(double got, double want, double rtol, double atol);

#endif
