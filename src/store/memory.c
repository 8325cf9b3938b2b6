/*
 * SQLite's heap through the one door of the project, so that a test can make
 * any of its allocations fail too. SQLite asks blocks for their size, which the
 * door does not know: it stands in front of each block.
 */
#include <stddef.h>

#include "base/alloc.h"
#include "store/memory.h"

#include <sqlite3.h>

union head {
	int size_bytes;
	max_align_t align;
};

static void *mem_alloc(int size_bytes)
{
	union head *h = rg_alloc(sizeof(*h) + (size_t)size_bytes);

	if (!h)
		return NULL;
	h->size_bytes = size_bytes;
	return h + 1;
}

static void mem_free(void *p)
{
	if (p)
		rg_free((union head *)p - 1);
}

static void *mem_realloc(void *p, int size_bytes)
{
	union head *h = rg_realloc_array((union head *)p - 1, 1, sizeof(*h) + (size_t)size_bytes);

	if (!h)
		return NULL;
	h->size_bytes = size_bytes;
	return h + 1;
}

static int mem_size(void *p)
{
	return p ? ((union head *)p - 1)->size_bytes : 0;
}

static int mem_roundup(int size_bytes)
{
	return (size_bytes + 7) & ~7;
}

static int mem_init(void *ctx)
{
	return SQLITE_OK;
}

static void mem_shutdown(void *ctx)
{
}

void rg_store_use_our_heap(void)
{
	static const sqlite3_mem_methods methods = {
		mem_alloc, mem_free, mem_realloc, mem_size, mem_roundup, mem_init, mem_shutdown, NULL,
	};

	/* Refused once SQLite is in use; then it keeps its own heap, which works. */
	sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}
