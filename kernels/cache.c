/* See cache.h. */
#include "kernels/cache.h"

#include <pthread.h>

#include "sys/topology.h"

static struct rg_kernel_caches caches = { 32 << 10, 256 << 10, 1 << 20 };
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int64_t share(const struct rg_cache *c, const struct rg_topology *t)
{
	int64_t users = c->shared_by_cpus;

	/* Threads of one core are not counted twice: a lane is one a core. */
	if (users > 1 && t->smt)
		users = (users + 1) / 2;
	/* Nor those that this process may not use. */
	if (t->cores > 0 && users > t->cores)
		users = t->cores;
	return c->size_bytes / (users < 1 ? 1 : users);
}

static void read_caches(void)
{
	static struct rg_topology topology; /* too large for the stack of a thread */
	const struct rg_topology *t = &topology;

	rg_topology_read("", &topology);
	for (int i = 0; i < t->n_caches; i++) {
		int64_t size = share(&t->caches[i], t);

		if (size < 8 << 10)
			continue;
		if (t->caches[i].level == 1)
			caches.l1_bytes = size;
		else if (t->caches[i].level == 2)
			caches.l2_bytes = caches.l3_bytes = size;
		else if (t->caches[i].level == 3)
			caches.l3_bytes = size > caches.l2_bytes ? size : caches.l2_bytes;
	}
}

const struct rg_kernel_caches *rg_kernel_caches(void)
{
	pthread_once(&once, read_caches);
	return &caches;
}
