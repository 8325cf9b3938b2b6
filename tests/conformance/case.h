/*
 * One case of ONNX's test data: a model, and for each data set its inputs and
 * the outputs to expect.
 */
#ifndef TESTS_CONFORMANCE_CASE_H
#define TESTS_CONFORMANCE_CASE_H

#include <stdint.h>

enum case_outcome {
	CASE_CRASHED = 0, /* no answer came */
	CASE_PASSED,
	CASE_UNSUPPORTED, /* refused with a reason */
	CASE_WRONG,       /* another answer, or an error that is no refusal */
	CASE_OUTCOMES
};

struct case_result {
	enum case_outcome outcome;
	int64_t ulp;      /* largest error in a floating-point output; -1: it has none */
	char where[256];  /* node, file; may be "" */
	char reason[600]; /* "" when it passed */
};

const char *case_outcome_name(enum case_outcome o);

/* Runs DATA/NAME in this process. */
void case_run(const char *data, const char *name, struct case_result *r);

#endif
