/*
 * The database: one SQLite file, many runs. Every SQL statement of the project
 * is in this folder; everyone else sees the row structs below.
 *
 * Facts are written once and never updated. A run is begun (committed at once,
 * with the process that owns it), filled in several committed batches, and
 * ended by a row of its own (run_end); a run without that row whose process is
 * gone was killed, and opening the database for writing marks it so.
 *
 * Column names carry units. Missing is NULL in the database, -1 for int64 and
 * NAN for double here, never 0. Provenance is stored as its name.
 *
 * Strings and arrays inside loaded structs belong to that struct and are
 * released with it. Structs given to put functions are only read.
 * A store handle belongs to one thread at a time.
 */
#ifndef RG_STORE_STORE_H
#define RG_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/provenance.h"

struct rg_store;

enum rg_store_mode {
	RG_STORE_READ,   /* must exist; no run is changed, works in a read-only folder */
	RG_STORE_WRITE,  /* created and migrated as needed */
	RG_STORE_SCRATCH, /* in memory, empty, gone when closed; `path` is only for messages */
};

/*
 * Opens `path`. Errors: not a database, not ridge's (application_id), newer
 * than this program (says both versions), read-only folder, full disk, locked.
 */
int rg_store_open(const char *path, enum rg_store_mode mode, struct rg_store **out, struct rg_error *err);
void rg_store_close(struct rg_store *s);

enum rg_run_status {
	RG_RUN_RECORDING = 0, /* its process is alive */
	RG_RUN_COMPLETE,
	RG_RUN_INTERRUPTED,   /* Ctrl-C: what was recorded is kept */
	RG_RUN_FAILED,        /* an error, in `message` */
	RG_RUN_KILLED,        /* the process vanished */
};
const char *rg_run_status_name(enum rg_run_status s);

/* What is known when a run begins. */
struct rg_run {
	int64_t id;              /* set by begin and by loading */
	const char *tag;         /* "" none; a tag names the newest run that has it */
	const char *model;       /* as typed */
	const char *model_name;  /* short: "resnet50", "ch_PP-OCRv4_det_infer" */
	const char *model_sha256;/* "" for built-in */
	const char *command;     /* the command line */
	const char *version;     /* of ridge */
	int64_t started_unix_ns;
	int threads;
	int warmup_iterations;   /* asked for; -1: until steady */
	int64_t iterations;      /* asked for; -1: by duration */
	int64_t duration_ns;     /* asked for; -1: by iterations */
	int64_t seed;
	/* set when loaded: */
	enum rg_run_status status;
	const char *message;     /* of run_end; "" none */
	int64_t ended_unix_ns;   /* -1 while there is none */
	double p50_ns;           /* summary written when the run was ended; NAN none */
	int64_t n_iterations;    /* how many p50_ns is over: timed iterations without the
	                            hook, or those with it when there are no others */
};

/* One figure about a run with its provenance. Keys are dotted and end in the
 * unit's name where there is one: "machine.cpu", "model.params",
 * "process.peak_rss_bytes". docs/database.md lists them. */
struct rg_fact {
	const char *key;
	int kind;                /* 0 text, 1 integer, 2 real, 3 unavailable (text: why) */
	const char *text;
	int64_t integer;
	double real;
	const char *unit;        /* "", "bytes", "ns", "hz", ... */
	enum rg_provenance provenance;
	const char *method;      /* how it was got, one line; "" */
};

struct rg_ceiling_row {
	const char *kind;        /* "compute" or "bandwidth" */
	const char *level;       /* compute: "peak", "int8 widen", "int8 pairs", "int8 quads", "int8 vnni";
	                            bandwidth: "L1", "L2", "L3", "DRAM" */
	const char *dtype;       /* "float32", "int8" */
	const char *isa;         /* "avx2", "avx512" */
	int threads;
	double value, low, high; /* flop/s, op/s or byte/s; best, and the spread seen */
	int samples;
	const char *unit;        /* "flop/s", "op/s", "byte/s" */
	const char *when;        /* "before", "after": relative to the timing pass */
	const char *method;      /* one line */
	int64_t working_set_bytes; /* -1 for compute */
	enum rg_provenance provenance;
};

struct rg_tensor_row {       /* a value of the graph */
	int id;                  /* value index */
	const char *name;
	const char *dtype;
	const char *shape;       /* "1x64x56x56" */
	int64_t size_bytes;
	const char *place;       /* "arena", "const", "input", "unused" */
	int64_t offset_bytes;    /* in the arena; -1 elsewhere */
	int alias_of;            /* -1 */
	int first_step, last_step; /* live range; -1 none */
	bool is_input, is_output, is_param; /* param: counts as a parameter */
};

struct rg_step_row {
	int index;               /* execution order */
	const char *name;        /* node name */
	const char *op_type;
	const char *domain;
	int op_version;
	const char *op_kind;     /* "gemm", "conv", ... (graph/op.h) */
	const char *kernel;      /* "openblas", "ref", ... */
	const char *kernel_reason;
	const char *dtype;       /* of output 0 */
	const char *shape;       /* of output 0 */
	int64_t flops, iops, sfu;              /* useful; -1 unknown */
	int64_t executed_flops;                /* by the kernel; -1 unknown */
	int64_t read_bytes, write_bytes;       /* compulsory; -1 unknown */
	int64_t weight_bytes;                  /* constants among the inputs */
	int64_t params;                        /* elements of parameters it uses first */
	int64_t scratch_bytes, prepared_bytes;
	int64_t gemm_m, gemm_n, gemm_k;        /* equivalent GEMM; -1 not one */
	bool special_form;                     /* the kernel has a form for its degenerate case */
	int64_t scratch_offset_bytes;          /* in the arena; -1: no scratch, or an older run */
};

struct rg_io_row {           /* which tensors a step reads and writes */
	int step;
	int slot;                /* argument position */
	bool output;
	int tensor;
};

struct rg_edge_row { int from_step, to_step, tensor; };

struct rg_phase_row {        /* pass 0 and the passes themselves */
	const char *name;        /* "read", "optimise", "plan", "pack", "first", "stage",
	                            "warmup", "timing", "ceilings-before", ... */
	int64_t start_ns, end_ns;
};

struct rg_iteration_row {
	int index;               /* 0.. within the run */
	const char *pass;        /* "first", "warmup", "timing" */
	bool hook_on;
	int64_t start_ns, end_ns;
};

struct rg_span_row {
	int iteration;
	int step;
	int lane;
	int whole;               /* 1: the step as a whole; 0: one lane's share of it */
	int64_t start_ns, end_ns;
};

/* A view that became an alias, a node that was folded, ...: what planning did. */
struct rg_note_row {
	const char *kind;        /* "view", "folded", "dead", "bound-input", "warning" */
	const char *subject;     /* node or input name */
	const char *text;
};

/* One operator that ridge quantize looked at: figures of it alone quantised, NAN where not known (schema.c). */
struct rg_quantized_row {
	const char *name, *op_type;
	int quantized;           /* 0 or 1 */
	const char *why_not;     /* "" */
	double sqnr_db;          /* at the model's outputs; INFINITY: no error */
	double own_sqnr_db, clipped, drifted;
	double weight_spread, weight_sqnr_db, weight_per_tensor_db, weight_per_channel_db;
};

/* One ridge quantize. */
struct rg_quantization {
	int64_t id;              /* given by the database */
	const char *model;       /* as typed */
	const char *model_sha256; /* "" for built-in */
	int64_t made_unix_ns;
	const char *form;        /* "static", "dynamic" */
	const char *weights;     /* "per channel", "per tensor" */
	const char *ranges;      /* "minmax", ... */
	int synthetic;           /* 1: calibrated on generated data */
	int samples, validation_samples;
	double sqnr_db, validation_sqnr_db;
	int n_operators;
	struct rg_quantized_row *operators;
};

/* ---- writing ----
 * Rows are checked by the database: a row that breaks a rule of the schema gives
 * -EINVAL, one that is there already -EEXIST, a full disk -ENOSPC, a database
 * that another process holds for more than 10 s -EBUSY; nothing of the put is
 * written then, and what was committed before is kept.
 * A tag may not be "last" nor a number (-EINVAL). */
int rg_store_begin_run(struct rg_store *s, const struct rg_run *run, int64_t *id, struct rg_error *err);
/* Each put is one transaction. */
int rg_store_put_facts(struct rg_store *s, int64_t run, const struct rg_fact *v, int n, struct rg_error *err);
int rg_store_put_ceilings(struct rg_store *s, int64_t run, const struct rg_ceiling_row *v, int n, struct rg_error *err);
/* Tensors, then steps, then iterations: each refers to the one before. Indices
 * of all three are 0, 1, 2, ... in order; iterations go on over several puts,
 * and are numbered over all passes. */
int rg_store_put_tensors(struct rg_store *s, int64_t run, const struct rg_tensor_row *v, int n, struct rg_error *err);
int rg_store_put_steps(struct rg_store *s, int64_t run, const struct rg_step_row *v, int n,
		       const struct rg_io_row *io, int n_io,
		       const struct rg_edge_row *edges, int n_edges, struct rg_error *err);
int rg_store_put_phases(struct rg_store *s, int64_t run, const struct rg_phase_row *v, int n, struct rg_error *err);
int rg_store_put_notes(struct rg_store *s, int64_t run, const struct rg_note_row *v, int n, struct rg_error *err);
/* Belongs to a model, not to a run. */
int rg_store_put_quantization(struct rg_store *s, const struct rg_quantization *q, struct rg_error *err);
/* Iterations and their spans together, so that no iteration is half there. */
int rg_store_put_iterations(struct rg_store *s, int64_t run, const struct rg_iteration_row *v, int n,
			    const struct rg_span_row *spans, int64_t n_spans, struct rg_error *err);
/* Ends the run and writes its summary. Status: not RG_RUN_RECORDING. */
int rg_store_end_run(struct rg_store *s, int64_t run, enum rg_run_status status, const char *message,
		     struct rg_error *err);

/* ---- reading ---- */
/* All runs, newest first. *out is an array of *n owned by the caller: rg_store_free_runs. */
int rg_store_list_runs(struct rg_store *s, struct rg_run **out, int *n, struct rg_error *err);
void rg_store_free_runs(struct rg_run *runs, int n);
/* Resolves "last" (also NULL and ""), a number or a tag. The error (-ENOENT)
 * lists what there is. */
int rg_store_find_run(struct rg_store *s, const char *ref, int64_t *id, struct rg_error *err);

/*
 * Everything about one run, in memory. Arrays are sorted by their index, and
 * steps[i].index == i, tensors[i].id == i, iterations[i].index == i. Loading
 * checks what a damaged or edited database may hold: every index is in range,
 * edges lead forward, aliases end, times do not run backward. -EBADMSG else.
 */
struct rg_recording {
	struct rg_run run;
	int n_facts;      struct rg_fact *facts;
	int n_ceilings;   struct rg_ceiling_row *ceilings;
	int n_tensors;    struct rg_tensor_row *tensors;
	int n_steps;      struct rg_step_row *steps;
	int n_io;         struct rg_io_row *io;
	int n_edges;      struct rg_edge_row *edges;
	int n_phases;     struct rg_phase_row *phases;
	int n_iterations; struct rg_iteration_row *iterations;
	int64_t n_spans;  struct rg_span_row *spans; /* by iteration, then start */
	int n_notes;      struct rg_note_row *notes;
	struct rg_quantization *quantization; /* the newest of the run's model; NULL: none */
	struct rg_arena *arena; /* owns all of the above */
};
int rg_store_load(struct rg_store *s, int64_t run, struct rg_recording **out, struct rg_error *err);
void rg_recording_free(struct rg_recording *r);
/* The fact, or NULL. */
const struct rg_fact *rg_recording_fact(const struct rg_recording *r, const char *key);
/* As a number: NAN when absent or not numeric. */
double rg_recording_number(const struct rg_recording *r, const char *key);
/* As text: `dflt` when absent. */
const char *rg_recording_text(const struct rg_recording *r, const char *key, const char *dflt);

#endif
