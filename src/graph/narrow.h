/*
 * Element types of eight bits and fewer that C has no type for: the float8
 * family, float4e2m1, float8e8m0, and the packed integers.
 *
 * An element is a code of rg_dtype_bits() bits. Packed types hold several in a
 * byte, the first in the lowest bits; what is left over in the last byte is
 * zero. Formats: Micikevicius et al., "FP8 formats for deep learning" (2022)
 * for E4M3FN and E5M2, Noune et al., "8-bit numerical formats for deep neural
 * networks" (2022) for the FNUZ ones, OCP Microscaling Formats 1.0 for E2M1
 * and E8M0.
 */
#ifndef RG_GRAPH_NARROW_H
#define RG_GRAPH_NARROW_H

#include "graph/tensor.h"

/* Rounding to float8e8m0, which is a power of two. */
enum rg_round { RG_ROUND_UP, RG_ROUND_DOWN, RG_ROUND_NEAREST /* ties up */ };

struct rg_narrow_rule {
	bool saturate;        /* out of range: the largest value, else NaN or infinity */
	enum rg_round round;  /* float8e8m0 only */
};

bool rg_dtype_is_narrow(enum rg_dtype t);

/* The value of a code: exact in float32. */
float rg_narrow_decode(enum rg_dtype t, unsigned code);
/*
 * The code of a value, as ONNX's Cast defines it: floats round to the nearest
 * even. float4e2m1 has neither NaN nor infinities and always saturates; NaN
 * becomes a zero of the other sign, as in ONNX's test data. float8e8m0 has no
 * sign and no zero: magnitudes count, and what is below 2^-127 is out of range.
 * Integers take the value cut off to a whole number, modulo 2^bits; what is not
 * finite becomes 0.
 */
unsigned rg_narrow_encode(enum rg_dtype t, double v, struct rg_narrow_rule rule);

/* Code i of an array of elements of 2, 4 or 8 bits. */
static inline unsigned rg_narrow_get(const void *data, int bits, int64_t i)
{
	int64_t at = i * bits;

	return ((const uint8_t *)data)[at >> 3] >> (at & 7) & ((1u << bits) - 1);
}

/* The other elements of the byte keep their value. */
static inline void rg_narrow_set(void *data, int bits, int64_t i, unsigned code)
{
	uint8_t *byte = (uint8_t *)data + (i * bits >> 3);
	int shift = (int)(i * bits & 7);
	unsigned mask = ((1u << bits) - 1) << shift;

	*byte = (uint8_t)((*byte & ~mask) | (code << shift & mask));
}

#endif
