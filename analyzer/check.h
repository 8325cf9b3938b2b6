/*
 * The checklist: 24 questions in fixed order, each answered from facts of one
 * recording or with `unknown` and what is missing.
 */
#ifndef RG_ANALYZER_CHECK_H
#define RG_ANALYZER_CHECK_H

#include "analyzer/ops.h"
#include "analyzer/path.h"

#define RG_CHECK_QUESTIONS 24
#define RG_CHECK_MAX_FIGURES 24

enum rg_verdict { RG_VERDICT_GOOD, RG_VERDICT_ATTENTION, RG_VERDICT_PROBLEM, RG_VERDICT_UNKNOWN };
const char *rg_verdict_name(enum rg_verdict v);

struct rg_figure {
	const char *name;
	double value;            /* NAN: unavailable; or text below */
	const char *text;        /* for figures that are words; NULL for numbers */
	const char *unit;        /* "", "bytes", "ns", "flop/s", "fraction", ... */
	enum rg_provenance provenance;
};

struct rg_answer {
	const char *id;          /* "model.size" */
	const char *question;    /* in one line */
	enum rg_verdict verdict;
	const char *answer;      /* one sentence a person can act on */
	int n_figures;
	struct rg_figure figures[RG_CHECK_MAX_FIGURES];
	const char *evidence;    /* the command or query that shows it */
	const char *missing;     /* for unknown: what is missing and how to get it; NULL */
};

struct rg_dimension {
	const char *name;        /* compute, data movement, parallelism, precision, scheduling */
	enum rg_verdict verdict;
	const char *stands;      /* where the model stands, one sentence */
	double ceiling;          /* fraction or gain that is possible; NAN unknown */
	double headroom;         /* possible speed-up of the whole model; NAN unknown */
	const char *change;      /* what would buy the most there; "" none known */
};

struct rg_checklist {
	struct rg_answer answers[RG_CHECK_QUESTIONS];
	struct rg_dimension dimensions[5];
	int binding;             /* index of the dimension that binds; -1 unknown */
	int n_changes;           /* up to 3 */
	const char *changes[3];
	struct rg_arena *arena;
};

/* `db`: the database that the evidence commands name; NULL: ridge.db. */
int rg_check_run(const struct rg_analysis *a, const char *db, struct rg_checklist **out, struct rg_error *err);
void rg_checklist_free(struct rg_checklist *c);

#endif
