/*
 * A bump allocator for things that live and die together, such as the names,
 * nodes and attributes of a graph. Memory is zeroed. There is no free of a
 * single piece; rg_arena_free releases everything. Not thread safe.
 */
#ifndef RG_BASE_ARENA_H
#define RG_BASE_ARENA_H

#include <stddef.h>

struct rg_arena;

struct rg_arena *rg_arena_new(void);                 /* NULL: out of memory */
void rg_arena_free(struct rg_arena *arena);          /* NULL is allowed */
/* Aligned for any scalar type; overflow-checked count * size. NULL: none left. */
void *rg_arena_alloc(struct rg_arena *arena, size_t count, size_t size_bytes);
void *rg_arena_alloc_aligned(struct rg_arena *arena, size_t align_bytes, size_t size_bytes);
char *rg_arena_strndup(struct rg_arena *arena, const char *s, size_t n);
char *rg_arena_strdup(struct rg_arena *arena, const char *s);
char *rg_arena_printf(struct rg_arena *arena, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
size_t rg_arena_bytes(const struct rg_arena *arena); /* bytes taken from the heap */

#endif
