/* Names to indices: a hash map that hostile names cannot slow down. */
#include "graph/names.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/clock.h"

struct rg_names_slot {
	uint64_t hash;
	const char *name; /* NULL: free */
	int index;
};

void rg_names_init(struct rg_names *m)
{
	memset(m, 0, sizeof(*m));
	if (getrandom(m->key, sizeof(m->key), GRND_NONBLOCK) != (ssize_t)sizeof(m->key)) {
		/* Early in boot there is no entropy yet: hard to guess must do. */
		m->key[0] = rg_clock_now_ns() * 0x9E3779B97F4A7C15u;
		m->key[1] = (uintptr_t)m ^ rg_clock_wall_ns();
	}
}

void rg_names_free(struct rg_names *m)
{
	rg_free(m->slots);
	m->slots = NULL;
	m->n_slots = m->used = 0;
}

static uint64_t rotl(uint64_t x, int b)
{
	return x << b | x >> (64 - b);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

/* SipHash-1-3 (Aumasson and Bernstein, INDOCRYPT 2012, with one compression
 * and three finalisation rounds). */
static uint64_t hash_of(const struct rg_names *m, const char *name)
{
	size_t len = strlen(name), i;
	uint64_t v[4] = {
		m->key[0] ^ 0x736f6d6570736575u, m->key[1] ^ 0x646f72616e646f6du,
		m->key[0] ^ 0x6c7967656e657261u, m->key[1] ^ 0x7465646279746573u,
	};
	uint64_t word;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, name + i, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = 0;
	memcpy(&word, name + i, len - i);
	word |= (uint64_t)len << 56;
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The slot that holds the name, or the free one where it would go. */
static struct rg_names_slot *probe(const struct rg_names *m, uint64_t hash, const char *name)
{
	size_t mask = m->n_slots - 1;

	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		struct rg_names_slot *s = &m->slots[i];

		if (!s->name || (s->hash == hash && strcmp(s->name, name) == 0))
			return s;
	}
}

int rg_names_find(const struct rg_names *m, const char *name)
{
	const struct rg_names_slot *s;

	if (!m->n_slots)
		return -1;
	s = probe(m, hash_of(m, name), name);
	return s->name ? s->index : -1;
}

static int grow(struct rg_names *m)
{
	struct rg_names bigger = *m;

	bigger.n_slots = m->n_slots ? 2 * m->n_slots : 64;
	bigger.slots = rg_calloc(bigger.n_slots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_slots; i++)
		if (m->slots[i].name)
			*probe(&bigger, m->slots[i].hash, m->slots[i].name) = m->slots[i];
	rg_free(m->slots);
	*m = bigger;
	return 0;
}

int rg_names_add(struct rg_names *m, const char *name, int index)
{
	uint64_t hash = hash_of(m, name);
	struct rg_names_slot *s;

	if (2 * (m->used + 1) > m->n_slots && grow(m) != 0)
		return -ENOMEM;
	s = probe(m, hash, name);
	s->hash = hash;
	s->name = name;
	s->index = index;
	m->used++;
	return 0;
}
