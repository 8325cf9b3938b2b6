#include "base/rng.h"

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

uint64_t rg_rng_stream(uint64_t seed, const char *name)
{
	uint64_t h = 0xCBF29CE484222325u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001B3u;
	return mix(seed ^ h);
}

uint64_t rg_rng_u64(uint64_t stream, uint64_t i)
{
	return mix(stream + (i + 1) * 0x9E3779B97F4A7C15u);
}

float rg_rng_unit(uint64_t stream, uint64_t i)
{
	return (float)(rg_rng_u64(stream, i) >> 40) * 0x1p-24f;
}

float rg_rng_uniform(uint64_t stream, uint64_t i, float lo, float hi)
{
	/* volatile: one rounding an operation, whatever the compiler may contract */
	volatile float scaled = (hi - lo) * rg_rng_unit(stream, i);

	return lo + scaled;
}

int64_t rg_rng_integer(uint64_t stream, uint64_t i, int64_t lo, int64_t hi)
{
	uint64_t span = (uint64_t)hi - (uint64_t)lo + 1;
	uint64_t r = rg_rng_u64(stream, i);

	return (int64_t)((uint64_t)lo + (span ? r % span : r));
}

/*
 * The same numbers as rg_rng_uniform, for tensors of many millions: the counter
 * is carried, 24 bits convert as a signed number (no CPU before AVX-512 has an
 * unsigned conversion), and contraction is off for the whole project.
 */
void rg_rng_fill_f32(uint64_t stream, float lo, float hi, float *out, size_t count)
{
	float span = hi - lo;
	uint64_t z = stream;

	for (size_t i = 0; i < count; i++) {
		float scaled;

		z += 0x9E3779B97F4A7C15u;
		scaled = span * ((float)(int32_t)(mix(z) >> 40) * 0x1p-24f);
		out[i] = lo + scaled;
	}
}
