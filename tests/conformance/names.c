/* A list of names; see names.h. */
#include "tests/conformance/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *must(void *p)
{
	if (!p) {
		fprintf(stderr, "conformance: out of memory\n");
		exit(1);
	}
	return p;
}

void names_add(struct names *l, const char *name)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 256;
		l->v = must(realloc(l->v, l->cap * sizeof(*l->v)));
	}
	l->v[l->n++] = must(strdup(name));
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void names_sort(struct names *l)
{
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), compare_names);
}

bool names_has(const struct names *l, const char *name)
{
	return l->n && bsearch(&name, l->v, l->n, sizeof(*l->v), compare_names);
}

void names_free(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
}
