/*
 * What the passes for quantised models share: which bytes a value stands for, and into which
 * bytes it is made again.
 *
 * Such a model comes as pairs of QuantizeLinear and DequantizeLinear around operators of
 * float32 (QDQ). Weights are constants that are dequantised: folding has made floats of
 * them by now, but the node that did it is still there, and the bytes are what is wanted.
 */
#ifndef RG_COMPILE_QUANTISED_H
#define RG_COMPILE_QUANTISED_H

#include "compile/rewrite.h"

/* Bytes, and what they mean: (byte - zero) * scale. Scale and zero point are constants. */
struct rg_quantised {
	int node;  /* DequantizeLinear or QuantizeLinear */
	int value; /* int8 or uint8 */
	enum rg_dtype type;
	int scale, zero; /* values; zero -1: absent, which is 0 */
	int64_t n;       /* scales: 1, or one a position of `axis` */
	int axis;
	float s; /* the first scale, and its zero point */
	int32_t z;
};

/* `value` is made of bytes by a DequantizeLinear, which may be folded. */
bool rg_quantised_from(const struct rg_match *m, int value, struct rg_quantised *out);
/*
 * The one node that reads output 0 of `node` is a QuantizeLinear with one scale that makes bytes. false: it
 * is not; *why says what keeps the value between the two from going where there is such a reader.
 */
bool rg_quantised_to(const struct rg_match *m, int node, struct rg_quantised *out, enum rg_decline *why);
/* The same of node `at` alone: it is such a QuantizeLinear. */
bool rg_quantised_by(const struct rg_match *m, int at, struct rg_quantised *out);

/* One scale, and both have the same one and the same zero point and type. */
bool rg_quantised_same(const struct rg_quantised *a, const struct rg_quantised *b);
/* The byte of x: rounded to the nearest even, at the ends of the type where it is outside. */
int32_t rg_quantised_byte(const struct rg_quantised *q, float x);
float rg_quantised_float(const struct rg_quantised *q, int32_t byte);
/* The type's least byte, and its largest. */
int32_t rg_quantised_least(enum rg_dtype type);
/* The zero point as a value: a new constant of zeros where it is absent. Or a negative errno. */
int rg_quantised_zero(struct rg_match *m, const struct rg_quantised *q, struct rg_error *err);

/*
 * A constant of int32 in steps of step[k], one a channel, from one of float32 or one that was int32 with such
 * a scale before. Returns the value; -ERANGE without an error: a number leaves the range, or a step is none.
 */
int rg_quantised_bias(struct rg_match *m, int value, int64_t n, const float *step, const char *name,
		      struct rg_error *err);

#endif
