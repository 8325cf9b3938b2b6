/* What a run came to; see summary.h. */
#include "tests/conformance/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int bucket_of(int64_t ulp)
{
	int b = 0;

	/* 0, 1, 2, then up to the next power of two */
	while (b < SUMMARY_BUCKETS - 1 && ulp > (b == 0 ? 0 : INT64_C(1) << (b - 1)))
		b++;
	return b;
}

static void bucket_name(int b, char *out, size_t size)
{
	int64_t to = b == 0 ? 0 : INT64_C(1) << (b - 1);

	if (b <= 2)
		snprintf(out, size, "%" PRId64, to);
	else if (b == SUMMARY_BUCKETS - 1)
		snprintf(out, size, "over %" PRId64, to / 2);
	else
		snprintf(out, size, "%" PRId64 "-%" PRId64, to / 2 + 1, to);
}

static struct summary_group *group_of(struct summary *s, const char *name)
{
	size_t len = strcspn(name, "/");
	int i;

	for (i = 0; i < s->n_groups; i++)
		if (strlen(s->groups[i].name) == len && !memcmp(s->groups[i].name, name, len))
			return &s->groups[i];
	if (i == SUMMARY_GROUPS)
		return &s->groups[i - 1];
	s->n_groups++;
	snprintf(s->groups[i].name, sizeof(s->groups[i].name), "%.*s", (int)len, name);
	return &s->groups[i];
}

/* Puts "'...'" for every quoted name, so that reasons of one kind count together. */
static void forget_names(char *text)
{
	char *to = text;

	for (char *from = text; *from; from++) {
		char *end = *from == '\'' ? strchr(from + 1, '\'') : NULL;

		if (end && end - from > 4) {
			memcpy(to, "'...'", 5);
			to += 5;
			from = end;
		} else {
			*to++ = *from;
		}
	}
	*to = 0;
}

/* "no kernel for operator Cast version 25 on (float16 3x5)": without the shapes. */
static void forget_shapes(char *text)
{
	char *to = strstr(text, " on (");

	for (char *from = to; from && *from; ) {
		size_t len = *from == ' ' ? strspn(from + 1, "0123456789x") : 0;

		if (len)
			from += len + 1;
		else
			*to++ = *from++;
	}
	if (to)
		*to = 0;
}

void summary_add(struct summary *s, const char *name, const struct case_result *r, bool listed)
{
	char text[1100];

	s->count[r->outcome]++;
	s->listed += listed;
	group_of(s, name)->count[r->outcome]++;
	if (r->outcome != CASE_PASSED) {
		s->regressed += listed;
		snprintf(text, sizeof(text), "%s: %s", case_outcome_name(r->outcome), r->reason);
		forget_names(text);
		forget_shapes(text);
		names_add(&s->reasons, text);
		return;
	}
	if (!listed)
		names_add(&s->newly, name);
	if (r->ulp < 0)
		s->exact++;
	else
		s->ulp[bucket_of(r->ulp)]++;
}

size_t summary_cases(const struct summary *s)
{
	size_t n = 0;

	for (int o = 0; o < CASE_OUTCOMES; o++)
		n += s->count[o];
	return n;
}

void summary_print_reasons(struct summary *s, FILE *f, bool markdown)
{
	size_t i, j, n = 0;
	struct ranked { size_t count; const char *text; } *v;

	names_sort(&s->reasons);
	v = must(calloc(s->reasons.n + 1, sizeof(*v)));
	for (i = 0; i < s->reasons.n; i = j) {
		for (j = i; j < s->reasons.n && !strcmp(s->reasons.v[i], s->reasons.v[j]); j++)
			;
		v[n].count = j - i;
		v[n++].text = s->reasons.v[i];
	}
	/* A stable insertion sort: the list is short and sorted by text already. */
	for (i = 1; i < n; i++) {
		struct ranked r = v[i];

		for (j = i; j > 0 && v[j - 1].count < r.count; j--)
			v[j] = v[j - 1];
		v[j] = r;
	}
	for (i = 0; i < n; i++)
		fprintf(f, markdown ? "| %zu | %s |\n" : "%5zu  %s\n", v[i].count, v[i].text);
	free(v);
}

static void print_groups(const struct summary *s, FILE *f)
{
	fprintf(f, "| group | cases | passed | unsupported | wrong | crashed |\n|---|--:|--:|--:|--:|--:|\n");
	for (int i = 0; i < s->n_groups; i++) {
		const size_t *c = s->groups[i].count;

		fprintf(f, "| %s | %zu | %zu | %zu | %zu | %zu |\n", s->groups[i].name,
			c[CASE_PASSED] + c[CASE_UNSUPPORTED] + c[CASE_WRONG] + c[CASE_CRASHED], c[CASE_PASSED],
			c[CASE_UNSUPPORTED], c[CASE_WRONG], c[CASE_CRASHED]);
	}
	fprintf(f, "| **all** | %zu | %zu | %zu | %zu | %zu |\n\n", summary_cases(s), s->count[CASE_PASSED],
		s->count[CASE_UNSUPPORTED], s->count[CASE_WRONG], s->count[CASE_CRASHED]);
}

static void print_ulp(const struct summary *s, FILE *f)
{
	char name[64];

	fprintf(f, "Largest error of each passing case, in units of the last place of the expected number,\n"
		   "over all elements of its floating-point outputs:\n\n| ULP | cases |\n|---|--:|\n");
	for (int b = 0; b < SUMMARY_BUCKETS; b++) {
		bucket_name(b, name, sizeof(name));
		fprintf(f, "| %s | %zu |\n", name, s->ulp[b]);
	}
	fprintf(f, "| no floating-point output (equal bit by bit) | %zu |\n", s->exact);
}

void summary_print(struct summary *s, FILE *f)
{
	print_groups(s, f);
	fprintf(f, "%zu of them are listed as passing: one of those that does not pass is a failure.\n\n",
		s->listed);
	if (s->reasons.n) {
		fprintf(f, "| cases | what stops them |\n|--:|---|\n");
		summary_print_reasons(s, f, true);
		fprintf(f, "\n");
	}
	print_ulp(s, f);
}

void summary_free(struct summary *s)
{
	names_free(&s->newly);
	names_free(&s->reasons);
}
