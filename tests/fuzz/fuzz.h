/*
 * A fuzz target is one function over bytes, and the seeds that it starts from.
 * libFuzzer drives it (meson -Dfuzz=true, clang), or replay.c in every test run.
 */
#ifndef RG_TESTS_FUZZ_FUZZ_H
#define RG_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* The i-th built-in seed from malloc, or NULL past the last. */
uint8_t *fuzz_seed(int i, size_t *size);
/* Files with this ending are corpus. */
extern const char *const fuzz_suffix;

#endif
