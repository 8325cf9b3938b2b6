/*
 * Quantises a model to eight bits and says what that costs.
 *
 * The model is rewritten as ridge optimize does it, so that normalisations are in the weights before those are
 * rounded. Ranges of activations come from calibration data. Then each operator is quantised alone and the model run:
 * operators whose error is too large stay in float32. What is written is run, too.
 */
#ifndef RG_SESSION_QUANTIZE_H
#define RG_SESSION_QUANTIZE_H

#include "base/range.h"
#include "compile/quantize.h"
#include "session/session.h"

struct rg_quantize_run {
	struct rg_session_options session; /* model, bindings, ranges of generated inputs, seed, threads */
	struct rg_quantize_options how;
	enum rg_range_rule rule;
	double percent;             /* of RG_RANGE_PERCENTILE */
	const char *calibrate;      /* folder; NULL: generated from the seed */
	const char *validate;       /* folder; NULL: none */
	int n_samples;              /* generated ones; 0: the default */
	double min_sqnr_db;         /* an operator that alone leaves less at the model's outputs stays float32;
	                               -INFINITY: none does for its error */
	bool quick;                 /* one sample for operators alone, instead of a few */
	int n_keep;
	const char *const *keep;    /* names or types of operators that stay float32 */
};

/* One operator of a type that is quantised. */
struct rg_quantized_op {
	const char *name, *op_type;
	bool quantized;
	bool can;                   /* it could be; figures below are known */
	const char *why;            /* why not; NULL */
	double outputs_db;          /* SQNR at the model's outputs (the least of them), this operator alone
	                               quantised; INFINITY: no error, NAN: not known */
	double own_db;              /* the same at its own output */
	double clipped;             /* share of values of its activations outside of their range, calibration data: of
	                               the one that loses most; NAN: dynamic */
	double drifted;             /* the same on the validation data; NAN: none was given */
	int64_t channels;           /* scales of its weight; 0: it has none */
	double spread;              /* largest magnitude of a channel over the least (that is not 0); NAN */
	double weight_db;           /* SQNR of the weight as quantised, with one scale, and with one a channel */
	double per_tensor_db, per_channel_db;
};

/* An activation's range, and what the validation data makes of it. */
struct rg_quantized_range {
	const char *value;
	double low, high;           /* that is quantised */
	double seen_low, seen_high; /* in calibration */
	double clipped;             /* share outside of low to high, calibration data */
	double valid_low, valid_high, drifted; /* the same with validation data; NAN */
};

struct rg_quantized {
	bool dynamic, per_tensor, symmetric, synthetic;
	const char *rule;
	double min_sqnr_db;
	int n_samples, n_alone;     /* calibration samples, and how many of them measured operators alone */
	int n_valid;                /* validation samples */
	int n_ops;
	struct rg_quantized_op *ops; /* in the order of the graph */
	int n_ranges;
	struct rg_quantized_range *ranges;
	int n_quantized, n_can;
	double all_db;              /* of everything quantised, calibration data: at the outputs, the least of them */
	double valid_db;            /* the same on the validation data; NAN */
	double file_db;             /* of what was written and read again, first sample: as all_db of it */
	int64_t weight_bytes_before, weight_bytes_after, file_bytes_before, file_bytes_after; /* -1 unknown */
	char sha256[65];            /* of the model's file; "" built-in */
	struct rg_arena *arena;     /* owns the names */
};

/*
 * Writes the quantised model to `path`, which is replaced only when all went well. RG_EUSAGE: a folder without samples,
 * a --keep that fits nothing. -EINVAL: calibration data that does not fit the model, or holds NaN. -ENODATA: nothing
 * is left to quantise.
 */
int rg_session_quantize(const struct rg_quantize_run *o, const char *path, struct rg_quantized **out,
			struct rg_error *err);
void rg_quantized_free(struct rg_quantized *r);
/* Keeps the figures in the database (docs/database.md), for ridge check. */
int rg_quantized_store(const struct rg_quantized *r, const struct rg_quantize_run *o, struct rg_store *s,
		       struct rg_error *err);

#endif
