/*
 * What ridge quantize measured, written and read. A row of figures is one operator; they belong to a model.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "store/internal.h"

/* More operators than any model has; a bound for edited files. */
#define MAX_OPERATORS 4000000

static int put_operators(struct rg_store *s, const struct rg_quantization *q, int64_t id, struct rg_error *err)
{
	sqlite3_stmt *st = NULL;
	int rc = rg_store_prepare(s, "INSERT INTO quantized_operator VALUES "
				     "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)", &st, err);

	for (int i = 0; i < q->n_operators && !rc; i++) {
		const struct rg_quantized_row *o = &q->operators[i];
		/* NaN becomes NULL */
		const double figures[] = { o->sqnr_db, o->own_sqnr_db, o->clipped, o->drifted, o->weight_spread,
					   o->weight_sqnr_db, o->weight_per_tensor_db, o->weight_per_channel_db };
		int step;

		sqlite3_bind_int64(st, 1, id);
		sqlite3_bind_int(st, 2, i);
		rg_store_bind_text(st, 3, o->name);
		rg_store_bind_text(st, 4, o->op_type);
		sqlite3_bind_int(st, 5, o->quantized);
		rg_store_bind_text_or_null(st, 6, o->why_not);
		for (int k = 0; k < 8; k++)
			sqlite3_bind_double(st, 7 + k, figures[k]);
		step = sqlite3_step(st);
		if (step != SQLITE_DONE)
			rc = rg_store_fail(s, step, err, "writing operators of a quantisation");
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

int rg_store_put_quantization(struct rg_store *s, const struct rg_quantization *q, struct rg_error *err)
{
	sqlite3_stmt *st = NULL;
	int rc = rg_store_begin(s, err), step;

	if (rc)
		return rc;
	rc = rg_store_prepare(s, "INSERT INTO quantization (model, model_sha256, made_unix_ns, form, weights, ranges, "
				 "synthetic, samples, validation_samples, sqnr_db, validation_sqnr_db) "
				 "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)", &st, err);
	if (!rc) {
		rg_store_bind_text(st, 1, q->model);
		rg_store_bind_text_or_null(st, 2, q->model_sha256);
		sqlite3_bind_int64(st, 3, q->made_unix_ns);
		rg_store_bind_text(st, 4, q->form);
		rg_store_bind_text(st, 5, q->weights);
		rg_store_bind_text(st, 6, q->ranges);
		sqlite3_bind_int(st, 7, q->synthetic);
		sqlite3_bind_int(st, 8, q->samples);
		sqlite3_bind_int(st, 9, q->validation_samples);
		sqlite3_bind_double(st, 10, q->sqnr_db);
		sqlite3_bind_double(st, 11, q->validation_sqnr_db);
		step = sqlite3_step(st);
		if (step != SQLITE_DONE)
			rc = rg_store_fail(s, step, err, "writing a quantisation");
	}
	sqlite3_finalize(st);
	if (!rc)
		rc = put_operators(s, q, sqlite3_last_insert_rowid(s->db), err);
	if (!rc)
		return rg_store_commit(s, err);
	rg_store_rollback(s);
	return rc;
}

static const char *text(sqlite3_stmt *st, int at, struct rg_arena *arena, struct rg_error *err)
{
	const char *t = (const char *)sqlite3_column_text(st, at), *copy;

	copy = rg_arena_strdup(arena, t ? t : "");
	if (!copy || (!t && sqlite3_column_type(st, at) != SQLITE_NULL))
		rg_error_nomem(err, 64);
	return copy ? copy : "";
}

static int read_operators(struct rg_store *s, int64_t id, struct rg_arena *arena, struct rg_quantization *q,
			  struct rg_error *err)
{
	sqlite3_stmt *st = NULL;
	int64_t n = 0;
	int rc = rg_store_get_i64(s, "SELECT COUNT(*) FROM quantized_operator WHERE quantization_id = ?1", id, 0, &n, err);

	if (!rc && n > MAX_OPERATORS)
		return rg_error_set(err, -EBADMSG, "quantisation %" PRId64 " is damaged: too many operators", id);
	if (!rc)
		rc = rg_store_prepare(s, "SELECT name, op_type, quantized, why_not, sqnr_db, own_sqnr_db, clipped, drifted, "
					 "weight_spread, weight_sqnr_db, weight_sqnr_per_tensor_db, "
					 "weight_sqnr_per_channel_db FROM quantized_operator WHERE quantization_id = ?1 "
					 "ORDER BY operator", &st, err);
	if (!rc) {
		q->operators = rg_arena_alloc(arena, (size_t)n + 1, sizeof(*q->operators));
		rc = q->operators ? 0 : rg_error_nomem(err, (size_t)n * sizeof(*q->operators));
		sqlite3_bind_int64(st, 1, id);
	}
	while (!rc && q->n_operators < n) {
		struct rg_quantized_row *o = &q->operators[q->n_operators];
		int step = sqlite3_step(st);

		if (step == SQLITE_DONE)
			break;
		if (step != SQLITE_ROW) {
			rc = rg_store_fail(s, step, err, "reading operators of a quantisation");
			break;
		}
		o->name = text(st, 0, arena, err);
		o->op_type = text(st, 1, arena, err);
		o->quantized = sqlite3_column_int(st, 2) != 0;
		o->why_not = text(st, 3, arena, err);
		o->sqnr_db = rg_store_column_real(st, 4);
		o->own_sqnr_db = rg_store_column_real(st, 5);
		o->clipped = rg_store_column_real(st, 6);
		o->drifted = rg_store_column_real(st, 7);
		o->weight_spread = rg_store_column_real(st, 8);
		o->weight_sqnr_db = rg_store_column_real(st, 9);
		o->weight_per_tensor_db = rg_store_column_real(st, 10);
		o->weight_per_channel_db = rg_store_column_real(st, 11);
		q->n_operators++;
		rc = err->code;
	}
	sqlite3_finalize(st);
	return rc;
}

static int read_head(sqlite3_stmt *st, struct rg_arena *arena, struct rg_quantization *q, struct rg_error *err)
{
	q->id = sqlite3_column_int64(st, 0);
	q->model = text(st, 1, arena, err);
	q->model_sha256 = text(st, 2, arena, err);
	q->made_unix_ns = sqlite3_column_int64(st, 3);
	q->form = text(st, 4, arena, err);
	q->weights = text(st, 5, arena, err);
	q->ranges = text(st, 6, arena, err);
	q->synthetic = sqlite3_column_int(st, 7) != 0;
	q->samples = (int)sqlite3_column_int64(st, 8);
	q->validation_samples = (int)sqlite3_column_int64(st, 9);
	q->sqnr_db = rg_store_column_real(st, 10);
	q->validation_sqnr_db = rg_store_column_real(st, 11);
	return err->code;
}

int rg_store_read_quantization(struct rg_store *s, int64_t run, struct rg_arena *arena, struct rg_quantization **out,
			       struct rg_error *err)
{
	struct rg_quantization *q;
	sqlite3_stmt *st = NULL;
	int64_t id = 0;
	int step, rc = rg_store_prepare(
		      s, "SELECT quantization_id, q.model, q.model_sha256, made_unix_ns, form, weights, ranges, synthetic, "
			 "samples, validation_samples, sqnr_db, validation_sqnr_db FROM quantization AS q "
			 "JOIN run ON run.run_id = ?1 AND (q.model_sha256 = run.model_sha256 OR "
			 "(q.model_sha256 IS NULL AND run.model_sha256 IS NULL AND q.model = run.model)) "
			 "ORDER BY quantization_id DESC LIMIT 1", &st, err);

	*out = NULL;
	if (rc)
		return rc;
	sqlite3_bind_int64(st, 1, run);
	step = sqlite3_step(st);
	if (step == SQLITE_ROW) {
		q = rg_arena_alloc(arena, 1, sizeof(*q));
		id = sqlite3_column_int64(st, 0);
		rc = q ? read_head(st, arena, q, err) : rg_error_nomem(err, sizeof(*q));
		*out = rc ? NULL : q;
	} else if (step != SQLITE_DONE) {
		rc = rg_store_fail(s, step, err, "reading quantisations");
	}
	sqlite3_finalize(st);
	return rc || !*out ? rc : read_operators(s, id, arena, *out, err);
}
