/*
 * The Mersenne Twister MT19937 (Matsumoto, Nishimura, ACM TOMACS 8, 1998), for
 * operators that draw random numbers: ONNX leaves the generator open, its
 * reference implementation draws from this one (numpy's RandomState), and so a
 * seed gives here the numbers that it gives there. Not for seeded inputs: those
 * have rng.h, whose numbers do not depend on their order.
 */
#ifndef RG_BASE_MT19937_H
#define RG_BASE_MT19937_H

#include <stdbool.h>
#include <stdint.h>

struct rg_mt19937 {
	uint32_t state[624];
	int next;       /* 624: all are used up */
	bool has_spare; /* of the pair of normal numbers that are made at once */
	double spare;
};

void rg_mt19937_seed(struct rg_mt19937 *mt, uint32_t seed);
uint32_t rg_mt19937_u32(struct rg_mt19937 *mt);
/* In [0, 1), 53 bits out of two words. */
double rg_mt19937_unit(struct rg_mt19937 *mt);
/* Standard normal, by Marsaglia's polar method. */
double rg_mt19937_normal(struct rg_mt19937 *mt);

#endif
