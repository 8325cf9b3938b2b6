#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define BLOCK_BYTES ((size_t)64 * 1024)

struct block {
	struct block *next;
	size_t used, cap; /* of the bytes behind the header */
	_Alignas(max_align_t) unsigned char data[];
};

struct rg_arena {
	struct block *head;
	size_t total;
};

struct rg_arena *rg_arena_new(void)
{
	return rg_calloc(1, sizeof(struct rg_arena));
}

void rg_arena_free(struct rg_arena *arena)
{
	struct block *b, *next;

	if (!arena)
		return;
	for (b = arena->head; b; b = next) {
		next = b->next;
		rg_free(b);
	}
	rg_free(arena);
}

void *rg_arena_alloc_aligned(struct rg_arena *arena, size_t align_bytes, size_t size_bytes)
{
	struct block *b = arena->head;
	size_t cap;

	if (size_bytes > SIZE_MAX / 2 || align_bytes > BLOCK_BYTES)
		return NULL;
	if (b) {
		uintptr_t base = (uintptr_t)b->data;
		uintptr_t at = (base + b->used + align_bytes - 1) & ~(uintptr_t)(align_bytes - 1);
		size_t offset = (size_t)(at - base);

		if (offset <= b->cap && size_bytes <= b->cap - offset) {
			b->used = offset + size_bytes;
			return b->data + offset;
		}
	}
	cap = size_bytes + align_bytes;
	if (cap < BLOCK_BYTES)
		cap = BLOCK_BYTES;
	b = rg_calloc(1, sizeof(*b) + cap);
	if (!b)
		return NULL;
	b->cap = cap;
	arena->total += sizeof(*b) + cap;
	/* A big piece gets a block of its own behind the current one, so that the
	 * rest of the current one stays in use. */
	if (arena->head && size_bytes > BLOCK_BYTES / 4) {
		b->next = arena->head->next;
		arena->head->next = b;
	} else {
		b->next = arena->head;
		arena->head = b;
	}
	{
		uintptr_t base = (uintptr_t)b->data;
		uintptr_t at = (base + align_bytes - 1) & ~(uintptr_t)(align_bytes - 1);

		b->used = (size_t)(at - base) + size_bytes;
		return (void *)at;
	}
}

void *rg_arena_alloc(struct rg_arena *arena, size_t count, size_t size_bytes)
{
	size_t total;

	if (__builtin_mul_overflow(count, size_bytes, &total))
		return NULL;
	return rg_arena_alloc_aligned(arena, _Alignof(max_align_t), total);
}

char *rg_arena_strndup(struct rg_arena *arena, const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = rg_arena_alloc_aligned(arena, 1, len + 1);

	if (p)
		memcpy(p, s, len);
	return p;
}

char *rg_arena_strdup(struct rg_arena *arena, const char *s)
{
	return rg_arena_strndup(arena, s, strlen(s));
}

char *rg_arena_printf(struct rg_arena *arena, const char *fmt, ...)
{
	va_list ap, again;
	char *p = NULL;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len >= 0)
		p = rg_arena_alloc_aligned(arena, 1, (size_t)len + 1);
	if (p)
		vsnprintf(p, (size_t)len + 1, fmt, again);
	va_end(again);
	return p;
}

size_t rg_arena_bytes(const struct rg_arena *arena)
{
	return arena->total;
}
