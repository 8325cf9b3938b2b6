/* See guard.h. */
#include "guard.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 0xa5 };

bool guard_new(struct guard *g, size_t size_bytes, size_t align_bytes, size_t margin_bytes, enum guard_side side)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = size_bytes + 2 * margin_bytes + align_bytes;
	uintptr_t at;

	inside = (inside + page - 1) / page * page;
	g->size_bytes = size_bytes;
	g->map_bytes = inside + 2 * page;
	g->map = mmap(NULL, g->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g->map == MAP_FAILED || mprotect(g->map + page, inside, PROT_READ | PROT_WRITE)) {
		if (g->map != MAP_FAILED)
			munmap(g->map, g->map_bytes);
		g->map = NULL;
		return false;
	}
	memset(g->map + page, CANARY, inside);
	at = (uintptr_t)g->map + page;
	if (side == GUARD_BEFORE)
		at += (margin_bytes + align_bytes - 1) / align_bytes * align_bytes;
	else
		at = (at + inside - margin_bytes - size_bytes) / align_bytes * align_bytes;
	g->data = (unsigned char *)at;
	return true;
}

bool guard_intact(const struct guard *g, int64_t *at)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (const unsigned char *p = g->map + page; p < g->map + g->map_bytes - page; p++) {
		if (p == g->data)
			p += g->size_bytes;
		if (p < g->map + g->map_bytes - page && *p != CANARY) {
			*at = p - g->data;
			return false;
		}
	}
	return true;
}

bool guard_holds(const struct guard *g, const void *address, int64_t *at)
{
	const unsigned char *p = address;

	*at = p - g->data;
	return g->map && p >= g->map && p < g->map + g->map_bytes;
}

void guard_free(struct guard *g)
{
	if (g->map)
		munmap(g->map, g->map_bytes);
	memset(g, 0, sizeof(*g));
}
