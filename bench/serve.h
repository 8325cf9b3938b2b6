/*
 * What the measured processes of scripts/bench-peers share: a loop over request
 * lines on standard input, and the batch of calls that is timed, so that both
 * sides are timed by the same code. docs/benchmarks.md describes the method.
 *
 * A request is one line of words separated by tabs. The answer is one line:
 * "ok", or "ok" and words, or "error" and a message; words are separated by tabs.
 */
#ifndef RG_BENCH_SERVE_H
#define RG_BENCH_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

#define SERVE_MAX_WORDS 256

/* One call of what is open. */
typedef int serve_call_fn(void *ctx, struct rg_error *err);

struct serve_verb {
	const char *name;
	int min_words; /* after the name */
	/* Appends the words of the answer, each with a tab in front. */
	int (*run)(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err);
};

struct serve {
	void *ctx;
	const struct serve_verb *verbs;
	int n_verbs;
	serve_call_fn *call; /* measured by the verbs that every server has: */
	int64_t calls;       /* in a round */
};

/*
 * Answers requests until standard input ends. Beside the verbs given:
 *   calibrate NS   as many calls to a round as take NS; answers with them, and ns a call
 *   round          one call that is not timed, since the other side has had the
 *                  caches, then a timed batch; answers with ns a call
 * Returns the exit code of the process.
 */
int serve_run(struct serve *s);

#endif
