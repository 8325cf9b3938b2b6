/* A list of names that grows, sorts and is searched; for tests: it ends the
 * program when memory runs out. */
#ifndef TESTS_CONFORMANCE_NAMES_H
#define TESTS_CONFORMANCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct names {
	char **v;
	size_t n, cap;
};

/* p, or the end of the program. */
void *must(void *p);
void names_add(struct names *l, const char *name);
void names_sort(struct names *l);
/* Whether a sorted list holds it. */
bool names_has(const struct names *l, const char *name);
void names_free(struct names *l);

#endif
