/*
 * Kernels that measure the machine: peak floating-point rate, peak rate of exact
 * int8 products, and read bandwidth. They work on memory that the caller gives
 * and return what they did; the session times them.
 *
 * int8 means an unsigned byte times a signed one, added up in 32 bits without any
 * loss. There are several ways to do that (`form`), and one of them saturates in 16
 * bits unless the weights are known: it is exact only where they fulfil what
 * `weights` says.
 */
#ifndef RG_KERNELS_ROOF_ROOF_H
#define RG_KERNELS_ROOF_ROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For which signed bytes a form of the int8 product is exact, whatever the unsigned ones. */
enum rg_roof_weights {
	RG_ROOF_ANY,   /* all from -128 to 127 */
	RG_ROOF_PAIRS, /* those of one sign among 2 that are added in 16 bits sum to at most 128 */
	RG_ROOF_QUADS, /* the same among 4 */
};

struct rg_roof_kernel {
	const char *name;         /* "fma-f32-avx512" */
	const char *isa_name;     /* "avx512", "avx2", "scalar" */
	uint32_t isa;             /* bits needed */
	/* Runs independent multiply-add chains `rounds` times; returns the FLOPs
	 * done. `sink` keeps the compiler honest. NULL for others. */
	int64_t (*flops)(int64_t rounds, float *sink);
	/* Reads all of data[0..size_bytes) once; returns bytes read. NULL for
	 * others. size_bytes: a multiple of 4096, data 64-aligned. */
	int64_t (*read)(const void *data, size_t size_bytes, float *sink);
	/* Runs independent chains of int8 products `rounds` times; returns the integer
	 * operations done, 2 a multiply-add. Each product is factor[0] * factor[1];
	 * *sink becomes the sum of all of them modulo 2^32, which shows that each was
	 * done. NULL for others. */
	int64_t (*iops)(int64_t rounds, uint32_t *sink);
	const char *form;         /* of int8: "widen", "pairs", "quads", "vnni" */
	enum rg_roof_weights weights;
	int factor[2];            /* unsigned, signed */
	const char *method;       /* of int8: the instructions, one line */
};
/* In order of vector width, narrow first. */
int rg_roof_count(void);
const struct rg_roof_kernel *rg_roof_at(int i);

/* Whether an int8 kernel gives the sum that it must, over a few rounds: what no test
 * machine has is believed only after that. */
bool rg_roof_check(const struct rg_roof_kernel *k);

#endif
