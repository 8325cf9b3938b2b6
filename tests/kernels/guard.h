/*
 * Memory for tests with an unreadable page on either side, so that whoever
 * touches what lies beyond it is stopped at once, and with canaries in what is
 * left of the pages, which show who wrote a little beyond it.
 */
#ifndef RG_TESTS_KERNELS_GUARD_H
#define RG_TESTS_KERNELS_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guard {
	unsigned char *map;    /* with both unreadable pages */
	size_t map_bytes;
	unsigned char *data;
	size_t size_bytes;
};

/* Which unreadable page the data touches. */
enum guard_side { GUARD_BEHIND, GUARD_BEFORE };

/*
 * size_bytes at a multiple of align_bytes (a power of two, at most a page), as
 * close to the unreadable page as alignment and margin_bytes allow. All of the
 * pages, the data too, is filled with the canary. false: out of memory.
 */
bool guard_new(struct guard *g, size_t size_bytes, size_t align_bytes, size_t margin_bytes, enum guard_side side);
/* Whether all canaries live; else *at is the first dead one, in bytes from the data's start. */
bool guard_intact(const struct guard *g, int64_t *at);
/* Whether an address lies in its pages, *at as above. */
bool guard_holds(const struct guard *g, const void *address, int64_t *at);
void guard_free(struct guard *g);

#endif
