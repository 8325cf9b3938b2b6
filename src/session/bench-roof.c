/* See bench-roof.h. */
#include "session/bench-roof.h"

#include <math.h>
#include <string.h>

/* What a level of the memory holds for all threads together. */
static double capacity(const struct rg_bench_machine *m, const char *level)
{
	const struct rg_topology *t = &m->topo;

	if (strcmp(level, "DRAM") == 0)
		return INFINITY;
	for (int i = 0; i < t->n_caches; i++) {
		const struct rg_cache *c = &t->caches[i];
		int shared = c->shared_by_cpus > 0 ? c->shared_by_cpus : 1;

		if (c->level == level[1] - '0' && c->size_bytes > 0)
			return (double)c->size_bytes * ((m->threads + shared - 1) / shared);
	}
	return 0; /* of unknown size: it serves nothing */
}

const struct rg_ceiling_row *rg_bench_level(const struct rg_bench_machine *m, const struct rg_ceiling_row *rows, int n,
					    double bytes)
{
	for (int i = 0; i < n; i++) /* nearest level first */
		if (strcmp(rows[i].kind, "bandwidth") == 0 && bytes <= capacity(m, rows[i].level))
			return &rows[i];
	return NULL;
}

void rg_bench_keep_ceiling(struct rg_ceiling_row *rows, int *n, const struct rg_ceiling_row *c)
{
	struct rg_ceiling_row *k = NULL;

	for (int i = 0; i < *n && !k; i++)
		if (strcmp(rows[i].level, c->level) == 0)
			k = &rows[i];
	if (!k) {
		k = &rows[(*n)++];
		*k = *c;
		k->low = c->value;
		return;
	}
	k->low = fmin(k->low, c->value);
	if (c->value > k->value) {
		double low = k->low;

		*k = *c;
		k->low = low;
	}
	k->high = k->value;
}
