/*
 * The command table: one entry a verb, from which usage, --help, shell
 * completion and the man page come. Options are described once and shared.
 */
#ifndef RG_CMD_CMD_H
#define RG_CMD_CMD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "reports/report.h"
#include "session/quantize.h"
#include "session/session.h"

enum rg_opt_id {
	RG_OPT_DB, RG_OPT_THREADS, RG_OPT_ITERATIONS, RG_OPT_DURATION, RG_OPT_WARMUP, RG_OPT_SEED,
	RG_OPT_TAG, RG_OPT_FORMAT, RG_OPT_QUIET, RG_OPT_INPUT, RG_OPT_INPUT_RANGE, RG_OPT_SHAPE,
	RG_OPT_DIM, RG_OPT_OUTPUT, RG_OPT_OUTPUT_DIR, RG_OPT_OP, RG_OPT_SPEEDUP, RG_OPT_KERNEL, RG_OPT_WITHOUT_KERNEL,
	RG_OPT_ISA, RG_OPT_TOP, RG_OPT_SIZE, RG_OPT_QUICK, RG_OPT_ROUNDS, RG_OPT_STATIC, RG_OPT_WHY, RG_OPT_COMPILER, RG_OPT_OPTIMIZE,
	RG_OPT_CSV, RG_OPT_STRATEGY, RG_OPT_CAPACITY, RG_OPT_TIME_LIMIT, RG_OPT_PLANNER, RG_OPT_ORDER,
	RG_OPT_LEVEL, RG_OPT_DISABLE, RG_OPT_VERIFY, RG_OPT_EXPLAIN, RG_OPT_OPSET, RG_OPT_RUNG,
	RG_OPT_WEIGHTS, RG_OPT_MISSES,
	RG_OPT_CALIBRATE, RG_OPT_VALIDATE, RG_OPT_SAMPLES, RG_OPT_DYNAMIC, RG_OPT_PER_TENSOR, RG_OPT_SYMMETRIC,
	RG_OPT_RANGES, RG_OPT_PERCENTILE, RG_OPT_MIN_SQNR, RG_OPT_KEEP, RG_OPT_ALSO, RG_OPT_HELP,
	RG_OPT_COUNT
};

struct rg_opt {
	enum rg_opt_id id;
	const char *name;     /* "threads": --threads */
	char letter;          /* 'o' for -o; 0 none */
	const char *value;    /* "N", "NAME=FILE.npy"; NULL: a flag */
	bool repeatable;
	const char *help;     /* one line */
};

#define RG_MAX_POSITIONAL 16

/* Parsed command line of one verb. */
struct rg_args {
	const struct rg_cmd *cmd;
	const char *db;               /* resolved: --db, RIDGE_DB, ridge.db */
	enum rg_format format;
	bool format_given;
	bool quiet;
	struct rg_session_options session;
	const char *output, *output_dir;
	const char *op;
	double speedup;
	int top;
	int width, height;            /* --size 800x600; 0 not given */
	bool quick;
	int rounds;                   /* 0 not given */
	bool plan_only;               /* --static */
	bool why;                     /* --why */
	bool compiler;                /* --compiler */
	const char *csv;              /* --csv; NULL not given */
	const char *strategy;         /* --strategy; NULL not given */
	enum rg_planner planner;      /* --planner */
	int64_t capacity_bytes;       /* --capacity; -1 not given */
	int64_t time_limit_ns;        /* --time-limit; -1 not given */
	int level;                    /* --level; -1 not given */
	int n_disabled;
	const char **disabled;        /* --disable */
	bool verify, explain;
	int opset;                    /* --opset; 0 not given */
	int n_bare_shapes;
	const char **bare_shapes;     /* --shape without a name: bench */
	int n_rungs;
	const char **rungs;           /* --rung */
	const char *weights;          /* --weights; NULL not given */
	bool misses;                  /* --misses */
	struct rg_quantize_run quantize; /* what ridge quantize takes beyond the above */
	int n_positional;
	const char *positional[RG_MAX_POSITIONAL];
	bool stdout_tty, stderr_tty, colour;
	int columns, rows;            /* of the terminal; 0: not one */
	bool help;                    /* --help */
	bool version;                 /* --version */
	struct rg_arena *arena;       /* owns lists of the above */
};

struct rg_cmd {
	const char *name;             /* "record" */
	const char *positional;       /* "MODEL", "[RUN]", "roofline|tail [RUN]" */
	int min_positional, max_positional;
	const char *summary;          /* one line, lower case */
	const char *details;          /* paragraphs for --help and the man page */
	const char *examples;         /* lines of commands */
	uint64_t options;             /* bits 1 << enum rg_opt_id */
	const char *formats;          /* "table json csv md"; NULL: --format not taken */
	/* Returns the exit code; err filled when not 0 (main prints it). */
	int (*run)(struct rg_args *a, struct rg_error *err);
	bool hidden;                  /* not in the summary of verbs */
	bool bare_names;              /* --kernel also takes a kernel alone (the operator is "" then), and --shape
					 a shape alone (bare_shapes) */
};

extern const struct rg_cmd rg_cmds[];
extern const int rg_n_cmds;
extern const struct rg_opt rg_opts[RG_OPT_COUNT];
extern const char rg_cmd_version[];

const struct rg_cmd *rg_cmd_find(const char *name); /* NULL: none */

/*
 * Parses argv[1..argc). Options may stand anywhere, before or after the verb;
 * `--opt=value`, `--opt value`, `-o value`, `-ovalue`; after `--` everything is
 * positional. The environment (RIDGE_DB, NO_COLOR) and the terminal are read by
 * the caller into *a before. Wrong options: RG_EUSAGE with the nearest name.
 * `a->cmd` NULL after success: only a->help or a->version was asked for.
 * rg_args_free in any case.
 */
int rg_args_parse(struct rg_args *a, int argc, char **argv, struct rg_error *err);
void rg_args_free(struct rg_args *a);
/* The candidate nearest to `word` by edit distance, NULL when none is near. */
const char *rg_args_nearest(const char *word, const char *const *candidates, int n);

/* RG_EUSAGE: there is no such verb, and which one is near. */
int rg_args_unknown_verb(const char *word, struct rg_error *err);

/* Text made from the table: `ridge help`, `ridge help VERB`, docs/commands.md,
 * the man page, a completion script (false: unknown shell). */
void rg_help_summary(struct rg_str *out, int columns);
void rg_help_verb(struct rg_str *out, const struct rg_cmd *c, int columns);
void rg_help_markdown(struct rg_str *out);
void rg_help_man(struct rg_str *out);
bool rg_help_completion(struct rg_str *out, const char *shell);

/* Prints `text` to standard output, wholly or with an error (EPIPE, full disk). */
int rg_cmd_print(const char *text, struct rg_error *err);
/* Opens a.db for reading / writing with good errors. */
int rg_cmd_open_read(const struct rg_args *a, struct rg_store **s, struct rg_error *err);
/* --static: plans the model `name` into a store in memory. */
int rg_cmd_plan(struct rg_args *a, const char *name, struct rg_store **s, struct rg_error *err);
int rg_cmd_open_write(const struct rg_args *a, struct rg_store **s, struct rg_error *err);
/* Loads and analyses the run that `ref` names ("last" when NULL). Both are the
 * caller's to free (analysis first). */
int rg_cmd_load(struct rg_store *s, const char *ref, struct rg_recording **rec,
		struct rg_analysis **a, struct rg_error *err);
/* `what` names no run, but reads like a model's file: the error then says that there is no such file. */
void rg_cmd_missing_model(const char *what, struct rg_error *err);
/* Exit code for an error: 1, 2, 3, 130 (docs/commands.md). */
int rg_cmd_exit_code(const struct rg_error *err);
/* A progress callback that draws one line on a terminal's stderr. */
void rg_cmd_progress(void *args, const char *what, double fraction);
/* A line for a person on stderr, unless --quiet. */
void rg_cmd_warn(void *args, const char *text);
/* Takes that line away again, before anything else is written to stderr. */
void rg_cmd_progress_end(struct rg_args *a);
/* Ctrl-C and SIGTERM from now on ask the session to stop; the second one kills. */
void rg_cmd_catch_interrupt(void);
/* The style of a->format for standard output. */
struct rg_style rg_cmd_style(const struct rg_args *a);
/* Writes the paragraph that follows a recording, to stderr. */
void rg_cmd_recorded(const struct rg_args *a, struct rg_store *s, int64_t run_id);

#endif
