/* See serve.h. */
#include "serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static int batch(struct serve *s, int64_t calls, double *call_ns, struct rg_error *err)
{
	uint64_t start = rg_clock_now_ns();
	int rc = 0;

	for (int64_t i = 0; i < calls && !rc; i++)
		rc = s->call(s->ctx, err);
	*call_ns = (double)(rg_clock_now_ns() - start) / (double)calls;
	return rc;
}

static int calibrate(struct serve *s, const char *text, struct rg_str *answer, struct rg_error *err)
{
	double round_ns, call_ns, grow;
	int rc;

	if (!rg_parse_f64(text, &round_ns) || !(round_ns > 0 && round_ns < 1e12))
		return rg_error_set(err, RG_EUSAGE, "'%s' is no time", text);
	s->calls = 1;
	rc = batch(s, 2, &call_ns, err); /* the first calls tell nothing */
	while (!rc) {
		rc = batch(s, s->calls, &call_ns, err);
		if (rc || call_ns * (double)s->calls >= round_ns || s->calls > INT64_MAX / 16)
			break;
		grow = call_ns > 0 ? round_ns / call_ns / (double)s->calls * 1.1 : 8;
		s->calls = (int64_t)((double)s->calls * (grow > 8 ? 8 : grow)) + 1;
	}
	rg_str_printf(answer, "\t%lld\t%.3f", (long long)s->calls, call_ns);
	return rc;
}

static int round_(struct serve *s, struct rg_str *answer, struct rg_error *err)
{
	double call_ns;
	int rc;

	if (!s->calls)
		return rg_error_set(err, RG_EUSAGE, "round before calibrate");
	rc = s->call(s->ctx, err);
	if (!rc)
		rc = batch(s, s->calls, &call_ns, err);
	if (!rc)
		rg_str_printf(answer, "\t%.3f", call_ns);
	return rc;
}

static int answer_one(struct serve *s, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	if (strcmp(words[0], "calibrate") == 0 && n == 2)
		return calibrate(s, words[1], answer, err);
	if (strcmp(words[0], "round") == 0 && n == 1)
		return round_(s, answer, err);
	for (int i = 0; i < s->n_verbs; i++)
		if (strcmp(s->verbs[i].name, words[0]) == 0 && n - 1 >= s->verbs[i].min_words)
			return s->verbs[i].run(s->ctx, n - 1, words + 1, answer, err);
	return rg_error_set(err, RG_EUSAGE, "'%s' with %d words is no request", words[0], n - 1);
}

static int split(char *line, char **words)
{
	char *save = NULL;
	int n = 0;

	for (char *w = strtok_r(line, "\t\n", &save); w && n < SERVE_MAX_WORDS;
	     w = strtok_r(NULL, "\t\n", &save))
		words[n++] = w;
	return n;
}

int serve_run(struct serve *s)
{
	char *line = NULL, *words[SERVE_MAX_WORDS];
	size_t cap = 0;

	while (getline(&line, &cap, stdin) > 0) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_str answer = { 0 };
		int n = split(line, words), rc;

		if (n == 0)
			continue;
		rc = answer_one(s, n, words, &answer, &err);
		if (!rc && answer.failed)
			rc = rg_error_nomem(&err, answer.len);
		if (rc)
			printf("error\t%s%s%s%s%s\n", err.where, err.where[0] ? ": " : "", err.message,
			       err.hint[0] ? "; " : "", err.hint);
		else
			printf("ok%s\n", rg_str_text(&answer));
		rg_str_free(&answer);
		if (fflush(stdout) != 0)
			break; /* nobody reads any more */
	}
	free(line);
	return 0;
}
