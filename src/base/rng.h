/*
 * The documented generator of seeded inputs and seeded weights.
 *
 * It is counter based, so element i of a tensor never depends on how the work
 * was split, and a script in another language makes the same numbers:
 *
 *   stream(seed, name) = mix(seed ^ fnv1a64(name))
 *   u64(stream, i)     = mix(stream + (i + 1) * 0x9E3779B97F4A7C15)   mod 2^64
 *   mix(z): z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9
 *           z = (z ^ z >> 27) * 0x94D049BB133111EB
 *           z =  z ^ z >> 31                     (the finaliser of SplitMix64,
 *           Steele, Lea, Flood, OOPSLA 2014)
 *   fnv1a64: offset basis 0xCBF29CE484222325, prime 0x100000001B3, over the
 *           bytes of the name (Fowler, Noll, Vo)
 *   unit(stream, i)    = (u64 >> 40) * 2^-24      a float in [0, 1), exact
 *   uniform(lo, hi)    = lo + (hi - lo) * unit    in float arithmetic, one
 *           rounding for each operation, no fused multiply-add
 *   integer(lo, hi)    = lo + (int64) (u64 mod (hi - lo + 1))   inclusive
 */
#ifndef RG_BASE_RNG_H
#define RG_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

uint64_t rg_rng_stream(uint64_t seed, const char *name);
uint64_t rg_rng_u64(uint64_t stream, uint64_t i);
float rg_rng_unit(uint64_t stream, uint64_t i);
float rg_rng_uniform(uint64_t stream, uint64_t i, float lo, float hi);
int64_t rg_rng_integer(uint64_t stream, uint64_t i, int64_t lo, int64_t hi);
void rg_rng_fill_f32(uint64_t stream, float lo, float hi, float *out, size_t count);

#endif
