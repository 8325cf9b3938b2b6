/* The Mersenne Twister; see mt19937.h. */
#include "base/mt19937.h"

#include <math.h>

enum { N = 624, M = 397 };

void rg_mt19937_seed(struct rg_mt19937 *mt, uint32_t seed)
{
	mt->state[0] = seed;
	for (uint32_t i = 1; i < N; i++)
		mt->state[i] = 1812433253u * (mt->state[i - 1] ^ (mt->state[i - 1] >> 30)) + i;
	mt->next = N;
	mt->has_spare = false;
}

static void refill(struct rg_mt19937 *mt)
{
	uint32_t *s = mt->state;

	for (int i = 0; i < N; i++) {
		uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % N] & 0x7fffffffu);

		s[i] = s[(i + M) % N] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
	}
	mt->next = 0;
}

uint32_t rg_mt19937_u32(struct rg_mt19937 *mt)
{
	uint32_t y;

	if (mt->next >= N)
		refill(mt);
	y = mt->state[mt->next++];
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680u;
	y ^= (y << 15) & 0xefc60000u;
	return y ^ (y >> 18);
}

double rg_mt19937_unit(struct rg_mt19937 *mt)
{
	uint32_t high = rg_mt19937_u32(mt) >> 5, low = rg_mt19937_u32(mt) >> 6;

	return ((double)high * 0x1p26 + (double)low) * 0x1p-53;
}

double rg_mt19937_normal(struct rg_mt19937 *mt)
{
	double x, y, square, factor;

	if (mt->has_spare) {
		mt->has_spare = false;
		return mt->spare;
	}
	do {
		x = 2 * rg_mt19937_unit(mt) - 1;
		y = 2 * rg_mt19937_unit(mt) - 1;
		square = x * x + y * y;
	} while (square >= 1 || square == 0);
	factor = sqrt(-2 * log(square) / square);
	mt->spare = factor * x;
	mt->has_spare = true;
	return factor * y;
}
