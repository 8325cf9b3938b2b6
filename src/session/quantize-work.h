/*
 * What the files of rg_session_quantize share. Nothing else includes it. Functions that give an int give 0, or
 * the error that err holds.
 */
#ifndef RG_SESSION_QUANTIZE_WORK_H
#define RG_SESSION_QUANTIZE_WORK_H

#include "base/histogram.h"
#include "compile/plan.h"
#include "exec/exec.h"
#include "session/quantize.h"
#include "session/samples.h"

/* From reading the model to the file. Values and nodes are indices of the model as ridge optimize left it. */
struct quantize_work {
	const struct rg_quantize_run *o;
	struct rg_quantized *r;
	char *exact;                /* path of the rewritten model, float32: taken away at the end */
	struct rg_shape *shapes;    /* of every input, for generated samples */
	struct rg_samples calibration, validation;
	int n_inputs, n_outputs, n_values;
	struct rg_quantize_sites sites;
	int *op;                    /* by site: its place in r->ops */
	bool *on;                   /* sites that are quantised */
	int n_watched;
	int *watched;               /* values whose ranges are needed */
	struct rg_range *ranges;    /* by value: what is quantised */
	struct rg_range *seen;      /* by value: what was seen in calibration */
	int lanes;
	uint32_t isa;
};

/* Told of the values of float32 that a step has just made. k: which of the watched ones. */
typedef void see_fn(void *ctx, int k, const float *v, int64_t n);

/* A model that is run on one sample after the other; planned again where shapes change. */
struct trial {
	const struct quantize_work *w;
	const bool *on;             /* sites that are quantised; NULL: none */
	const char *file;           /* NULL: w->exact */
	int n_watched;
	const int *watched;         /* values to see */
	see_fn *see;                /* NULL: nobody */
	void *ctx;
	/* the rest is the trial's own */
	struct rg_graph *graph;
	struct rg_plan *plan;
	struct rg_exec *exec;
	struct rg_shape *shapes;    /* of the inputs that it is planned for */
	int *first, *next;          /* by step: the first of the watched that it makes; of the watched: the next */
	int given;                  /* watched ones that no step makes: first of them */
};

/* quantize-trial.c. Zero-initialise a trial but for what it says above. The sample must be one of this model. */
int rg_trial_run(struct trial *t, const struct rg_samples *s, int i, struct rg_error *err);
void rg_trial_free(struct trial *t);
/* Reads the float32 model, bound to the shapes of sample i, typed and shaped. */
int rg_trial_open(const struct quantize_work *w, const char *file, const struct rg_tensor *sample, struct rg_graph **out,
		  struct rg_error *err);
/* Opens it for the first calibration sample. */
int rg_trial_open_first(const struct quantize_work *w, struct rg_graph **out, struct rg_error *err);
/* Rewrites it. */
int rg_trial_rewrite(const struct quantize_work *w, struct rg_graph *g, const bool *on, struct rg_error *err);
/* Tells a person what is done; stops where a person has had enough. */
int rg_quantize_tell(const struct quantize_work *w, const char *what, double fraction, struct rg_error *err);

/* quantize-ranges.c: fills ranges and seen from the calibration samples. */
int rg_quantize_calibrate(struct quantize_work *w, struct rg_error *err);

/* quantize-measure.c: every operator alone, into ops; then switches off those that stay float32. */
int rg_quantize_measure_ops(struct quantize_work *w, struct rg_error *err);
/* Everything that is on, clipped values, and the validation data. */
int rg_quantize_measure_all(struct quantize_work *w, struct rg_error *err);
/* The file, read again. -EDOM: it computes something else. */
int rg_quantize_measure_file(struct quantize_work *w, const char *path, struct rg_error *err);

/* quantize-weights.c: what rounding does to the weight of each operator. */
int rg_quantize_measure_weights(struct quantize_work *w, const struct rg_graph *g, struct rg_error *err);

#endif
