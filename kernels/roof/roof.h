/*
 * Kernels that measure the machine: peak floating-point rate and read bandwidth.
 * They work on memory that the caller gives and return what they did; the
 * session times them.
 */
#ifndef RG_KERNELS_ROOF_ROOF_H
#define RG_KERNELS_ROOF_ROOF_H

#include <stddef.h>
#include <stdint.h>

struct rg_roof_kernel {
	const char *name;         /* "fma-f32-avx512" */
	const char *isa_name;     /* "avx512", "avx2", "scalar" */
	uint32_t isa;             /* bits needed */
	/* Runs independent multiply-add chains `rounds` times; returns the FLOPs
	 * done. `sink` keeps the compiler honest. NULL for bandwidth kernels. */
	int64_t (*flops)(int64_t rounds, float *sink);
	/* Reads all of data[0..size_bytes) once; returns bytes read. NULL for
	 * peak kernels. size_bytes: a multiple of 4096, data 64-aligned. */
	int64_t (*read)(const void *data, size_t size_bytes, float *sink);
};
/* In order of vector width, narrow first. */
int rg_roof_count(void);
const struct rg_roof_kernel *rg_roof_at(int i);

#endif
