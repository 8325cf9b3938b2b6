/*
 * What the files of the checklist share. Each question is a function that fills
 * one answer; whatever text it makes lives in the checklist's arena.
 */
#ifndef RG_ANALYZER_CHECK_INTERNAL_H
#define RG_ANALYZER_CHECK_INTERNAL_H

#include <stdbool.h>

#include "analyzer/check.h"
#include "base/arena.h"

struct rg_fusions;

struct rg_check {
	const struct rg_analysis *a;
	const struct rg_recording *rec;
	const struct rg_path *path; /* NULL: no spans */
	const int *order;           /* operators, longest first */
	double wall_ns;             /* median latency; NAN */
	double fast_bytes;          /* last-level cache; NAN unknown */
	const char *fast_name;      /* "L3", "L2"; "" unknown */
	const char *db;             /* as a shell takes it, for evidence */
	const char *db_option;      /* " --db FILE", "" for ridge.db */
	struct rg_arena *arena;
	struct rg_fusions *fusions; /* made when first asked for */
	bool failed;                /* an allocation did: the checklist is not returned */
};

/* Text in the arena; control characters, which names from files may hold, become '?'. */
const char *rg_check_text(struct rg_check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3), nonnull(2)));
void rg_check_figure(struct rg_answer *q, const char *name, double value, const char *unit, enum rg_provenance p);
void rg_check_words(struct rg_answer *q, const char *name, const char *text, enum rg_provenance p);
/* A figure from a fact, with the fact's own provenance and unit. */
void rg_check_fact(struct rg_check *c, struct rg_answer *q, const char *name, const char *key);
/* Verdict unknown; `missing`: what is missing and how to get it. */
void rg_check_unknown(struct rg_answer *q, const char *answer, const char *missing);
/* "'conv1' (Conv)", or "step 12 (Conv)" for a node without a name. */
const char *rg_check_label(struct rg_check *c, const struct rg_step_row *s);
/* good below `attention`, problem from `problem` on; NAN is unknown. */
enum rg_verdict rg_check_grade(double v, double attention, double problem);
/* "12 %" of a fraction; "-" for NAN. out has 32 bytes. */
char *rg_check_percent(char *out, double fraction);
/* Whether a kind does little arithmetic for the bytes that it moves. */
bool rg_check_kind_is_cheap(const char *op_kind);
/* Index of the operator that takes the most time; -1: none was timed. */
int rg_check_dominant(const struct rg_check *c);

typedef void rg_check_fn(struct rg_check *c, struct rg_answer *q);

rg_check_fn rg_check_model_size, rg_check_model_shapes, rg_check_model_dominant;
rg_check_fn rg_check_memory_peak, rg_check_memory_weights, rg_check_memory_largest;
rg_check_fn rg_check_compute_type, rg_check_compute_bound, rg_check_compute_cheap;
rg_check_fn rg_check_precision_need, rg_check_precision_granularity, rg_check_precision_calibration;
rg_check_fn rg_check_hardware_units, rg_check_hardware_minimum, rg_check_hardware_bandwidth;
rg_check_fn rg_check_runtime_fallback, rg_check_runtime_copies, rg_check_runtime_planner;
rg_check_fn rg_check_compiler_fusion, rg_check_compiler_layout, rg_check_compiler_folding;
rg_check_fn rg_check_performance_latency, rg_check_performance_throughput, rg_check_performance_energy;

/* The five dimensions, the one that binds, and the three best changes. */
void rg_check_summarise(struct rg_check *c, struct rg_checklist *out);

#endif
