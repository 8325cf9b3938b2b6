/*
 * Names to indices. Open addressing with a seeded hash (SipHash-1-3), so that
 * a file cannot choose names that all collide. Keys are borrowed.
 */
#ifndef RG_GRAPH_NAMES_H
#define RG_GRAPH_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct rg_names {
	uint64_t key[2];
	struct rg_names_slot *slots;
	size_t n_slots, used; /* n_slots: a power of two, or 0 */
};

void rg_names_init(struct rg_names *m);
void rg_names_free(struct rg_names *m);
/* Index, or -1. */
int rg_names_find(const struct rg_names *m, const char *name);
/* The name must not be in the map yet. 0 or -ENOMEM. */
int rg_names_add(struct rg_names *m, const char *name, int index);

#endif
