/*
 * NumPy's .npy files, versions 1 to 3 (numpy/lib/format.py documents them).
 * C and Fortran order are read, little-endian; written in C order, version 1.
 */
#ifndef RG_MODELS_NPY_H
#define RG_MODELS_NPY_H

#include "base/error.h"
#include "graph/tensor.h"

/* t->data comes from rg_alloc_aligned(64, ...) and is the caller's to rg_free. */
int rg_npy_read(const char *path, struct rg_tensor *t, struct rg_error *err);
/* Written to a temporary name beside it and renamed, so a full disk leaves no
 * half a file. bfloat16 and the 8-bit floats are written as the bits of uint16
 * and uint8; packed 4-bit types cannot be written. */
int rg_npy_write(const char *path, const struct rg_tensor *t, struct rg_error *err);
/* From memory, for fuzzing. */
int rg_npy_parse(const void *data, size_t size_bytes, struct rg_tensor *t, struct rg_error *err);

#endif
