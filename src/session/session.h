/*
 * Where execution meets probes and is written to the store: runs a model,
 * records it, measures ceilings. Nothing here prints; progress goes to a
 * callback.
 */
#ifndef RG_SESSION_SESSION_H
#define RG_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "compile/memory.h"
#include "graph/graph.h"
#include "store/store.h"

/* Called now and then during long work. fraction NAN: unknown. */
typedef void rg_progress_fn(void *ctx, const char *what, double fraction);

struct rg_input_file { const char *name; const char *path; };              /* --input */
struct rg_input_range { const char *name; double lo, hi; };                /* --input-range */

/* What every verb that runs a model takes. Zero-initialise, then
 * rg_session_defaults. Strings are borrowed. */
struct rg_session_options {
	const char *model;
	struct rg_bindings bindings;
	int threads;               /* 0: as many as the machine really allows */
	int64_t iterations;        /* -1: not given */
	int64_t duration_ns;       /* -1: not given */
	int warmup;                /* -1: until steady */
	uint64_t seed;
	const char *tag;           /* "" */
	uint32_t isa;              /* 0: all that the CPU has */
	int optimize;              /* --optimize: level of the graph passes (compile/pass.h); 0 none */
	bool order_for_memory;     /* --order memory */
	int n_inputs;
	struct rg_input_file *inputs;
	int n_ranges;
	struct rg_input_range *ranges;
	int n_overrides;
	struct { const char *op; const char *kernel; } *overrides; /* --kernel */
	int n_without;
	const char **without;      /* --without-kernel: names that are not chosen */
	bool lenient;              /* what cannot run is kept and named: for rg_session_plan */
	bool no_ceilings;          /* tests: skip measuring roofs */
	const char *command;       /* the command line, for the record */
	rg_progress_fn *progress;  /* may be NULL */
	void *progress_ctx;
	void (*warn)(void *ctx, const char *text); /* one line for a person; may be NULL */
	void *warn_ctx;
};
void rg_session_defaults(struct rg_session_options *o);

/* Records into an open store; *run_id is set as soon as the run exists.
 * Ctrl-C (rg_session_interrupt) ends it early: RG_EINTERRUPTED, data kept. */
int rg_session_record(struct rg_store *s, const struct rg_session_options *o, int64_t *run_id,
		      struct rg_error *err);

/*
 * Plans a model without running it and writes that as a run: plan, costs, memory,
 * and (unless no_ceilings) the ceilings that give each step its target. What
 * cannot run or is not known before stands in the notes ("unsupported",
 * "dynamic"). Fact session.static says "yes".
 */
int rg_session_plan(struct rg_store *s, const struct rg_session_options *o, int64_t *run_id,
		    struct rg_error *err);

/* Plans a model without running it, and says what that does with memory. What cannot run
 * is planned all the same. Errors: those of a plan and of rg_memory_of; rg_memory_free. */
int rg_session_memory(const struct rg_session_options *o, const struct rg_memory_options *mo, struct rg_memory **out,
		      struct rg_error *err);

/* Just executes once and writes each output to output_dir/NAME.npy, strings to NAME.txt (characters
 * that are no good in a file name become '_'); output_dir NULL: no files. */
struct rg_run_output { char *name; char *path; char *dtype; char *shape; int64_t nan_count; double min, max, mean; };
struct rg_run_result { int n_outputs; struct rg_run_output *outputs; uint64_t time_ns; char outputs_sha256[65]; };
int rg_session_run(const struct rg_session_options *o, const char *output_dir,
		   struct rg_run_result **out, struct rg_error *err);
void rg_run_result_free(struct rg_run_result *r);

/* Measures the ceilings of this machine: peak and bandwidth a level.
 * quick: under 10 s. *rows from rg_alloc; strings static. */
int rg_session_ceilings(int threads, uint32_t isa, bool quick, rg_progress_fn *progress, void *ctx,
			struct rg_ceiling_row **rows, int *n, struct rg_error *err);

/* What this machine lets us measure, and why not. */
struct rg_doctor_row {
	char name[48];             /* "hardware counters", "RAPL energy", ... */
	int state;                 /* 0 ok, 1 limited, 2 unavailable */
	char detail[256];          /* what was found */
	char hint[384];            /* what to do; "" nothing */
};
int rg_session_doctor(struct rg_doctor_row **rows, int *n, struct rg_error *err);

/* Asks a running record to stop soon. Async-signal-safe. */
void rg_session_interrupt(void);
bool rg_session_interrupted(void);

#endif
