/*
 * The one door to the heap. Every allocation of the project goes through it,
 * so that a test can count allocations and make any one of them fail.
 *
 * All functions return NULL on failure and never abort. Memory from any of
 * them is released by rg_free (NULL is allowed). Products of count and size
 * are checked for overflow. Thread safe.
 */
#ifndef RG_BASE_ALLOC_H
#define RG_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *rg_alloc(size_t size_bytes);
void *rg_calloc(size_t count, size_t size_bytes);               /* zeroed */
void *rg_realloc_array(void *old, size_t count, size_t size_bytes);
char *rg_strdup(const char *s);
char *rg_strndup(const char *s, size_t n);
char *rg_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* align_bytes: a power of two. Not zeroed. Released by rg_free as well. Blocks of 4 MiB
 * and more ask for huge pages: walking weights in 4 KiB pages costs as much as reading
 * them. */
void *rg_alloc_aligned(size_t align_bytes, size_t size_bytes);
void rg_free(void *p);

/*
 * Grows a vector geometrically: makes room for at least `need` elements of
 * size_bytes each, updating *capacity. On failure returns NULL and leaves the
 * old block valid.
 */
void *rg_grow(void *old, size_t *capacity, size_t need, size_t size_bytes);

/* Number of allocations made since the start of the process. */
uint64_t rg_alloc_count(void);

/* Bytes from here that are not freed yet, and the most there were at a time since
 * the start or the last call with `restart`. */
int64_t rg_alloc_live_bytes(void);
int64_t rg_alloc_peak_bytes(bool restart);

/*
 * Test hook: the n-th allocation from now on (1 is the next) fails, once.
 * 0 switches it off. Returns the count of allocations seen since the last
 * call, so that a loop can stop when nothing failed any more.
 */
uint64_t rg_alloc_fail_at(uint64_t n);
/* Whether the planned failure has happened. */
bool rg_alloc_did_fail(void);

#endif
