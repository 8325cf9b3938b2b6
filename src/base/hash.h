/*
 * SHA-256 over a library (nettle), for outputs and model files, so that two
 * runs can be told to have computed the same thing.
 */
#ifndef RG_BASE_HASH_H
#define RG_BASE_HASH_H

#include <stddef.h>

struct rg_sha256;

struct rg_sha256 *rg_sha256_new(void); /* NULL: out of memory */
void rg_sha256_add(struct rg_sha256 *h, const void *data, size_t size_bytes);
/* Writes 64 hexadecimal digits and a NUL, and frees h. */
void rg_sha256_finish(struct rg_sha256 *h, char hex[65]);
void rg_sha256_free(struct rg_sha256 *h);

#endif
