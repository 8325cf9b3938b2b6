/* Cases made wrong: see mutate.c. */
#ifndef TESTS_CONTRIB_MUTATE_H
#define TESTS_CONTRIB_MUTATE_H

#include <stdint.h>

#include <jansson.h>

/* A copy of a case with one to three things changed by chance, from a seed, and
 * "any": true in place of its outputs. */
json_t *mutate_case(const json_t *from, uint64_t seed);

#endif
