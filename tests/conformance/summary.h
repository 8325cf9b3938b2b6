/*
 * What a run over the test data came to: outcomes by group, what stops cases by
 * how many, and how far passing cases are from the expected numbers.
 */
#ifndef TESTS_CONFORMANCE_SUMMARY_H
#define TESTS_CONFORMANCE_SUMMARY_H

#include <stdio.h>

#include "tests/conformance/case.h"
#include "tests/conformance/names.h"

/* Buckets of the largest ULP error: 0, 1, 2, 3-4, 5-8, ..., 513-1024, more. */
#define SUMMARY_BUCKETS 13
#define SUMMARY_GROUPS 8

struct summary {
	size_t count[CASE_OUTCOMES];
	size_t listed;          /* cases that the table of passing ones names */
	size_t regressed;       /* listed and not passed */
	struct names newly;     /* pass and are not listed */
	struct names reasons;   /* "outcome: reason" of each that did not pass */
	size_t exact;           /* pass and have no float output: nothing to be off */
	size_t ulp[SUMMARY_BUCKETS];
	int n_groups;
	struct summary_group {
		char name[64];
		size_t count[CASE_OUTCOMES];
	} groups[SUMMARY_GROUPS];
};

/* `name` is GROUP/CASE. */
void summary_add(struct summary *s, const char *name, const struct case_result *r, bool listed);
size_t summary_cases(const struct summary *s);
/* Reasons by how many cases they stop; `markdown` as rows of a table. */
void summary_print_reasons(struct summary *s, FILE *f, bool markdown);
/* All of it, as Markdown. */
void summary_print(struct summary *s, FILE *f);
void summary_free(struct summary *s);

#endif
