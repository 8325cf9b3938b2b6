/* See quantize.h: what was measured, as rows of the store. */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "session/quantize.h"

int rg_quantized_store(const struct rg_quantized *r, const struct rg_quantize_run *o, struct rg_store *s,
		       struct rg_error *err)
{
	struct rg_quantization q = { .model = o->session.model, .model_sha256 = r->sha256,
				     .form = r->dynamic ? "dynamic" : "static",
				     .weights = r->per_tensor ? "per tensor" : "per channel",
				     .ranges = r->dynamic ? "each input" : r->rule, .synthetic = r->synthetic,
				     .samples = r->n_samples, .validation_samples = r->n_valid, .sqnr_db = r->all_db,
				     .validation_sqnr_db = r->valid_db, .n_operators = r->n_ops };
	struct timespec now;
	int rc;

	clock_gettime(CLOCK_REALTIME, &now);
	q.made_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	q.operators = rg_calloc((size_t)r->n_ops + 1, sizeof(*q.operators));
	if (!q.operators)
		return rg_error_nomem(err, (size_t)r->n_ops * sizeof(*q.operators));
	for (int i = 0; i < r->n_ops; i++) {
		const struct rg_quantized_op *op = &r->ops[i];

		q.operators[i] = (struct rg_quantized_row){
			.name = op->name, .op_type = op->op_type, .quantized = op->quantized,
			.why_not = op->quantized || !op->why ? "" : op->why, .sqnr_db = op->outputs_db,
			.own_sqnr_db = op->own_db, .clipped = op->clipped, .drifted = op->drifted,
			.weight_spread = op->spread, .weight_sqnr_db = op->weight_db,
			.weight_per_tensor_db = op->per_tensor_db, .weight_per_channel_db = op->per_channel_db,
		};
	}
	rc = rg_store_put_quantization(s, &q, err);
	rg_free(q.operators);
	return rc;
}
