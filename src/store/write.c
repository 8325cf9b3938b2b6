/*
 * Writing facts: each put is one transaction, whole or not there.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "store/internal.h"

/* One put in progress: a transaction and the statement in use. */
struct put {
	struct rg_store *s;
	int64_t run;
	const char *what;
	sqlite3_stmt *st;
	struct rg_error *err;
	int rc;
};

static bool put_begin(struct put *p, struct rg_store *s, int64_t run, const char *what, struct rg_error *err)
{
	*p = (struct put){ .s = s, .run = run, .what = what, .err = err };
	p->rc = rg_store_begin(s, err);
	return p->rc == 0;
}

/* Switches to another statement, ?1 of which is the run. */
static void put_use(struct put *p, const char *sql)
{
	sqlite3_finalize(p->st);
	p->st = NULL;
	if (p->rc)
		return;
	p->rc = rg_store_prepare(p->s, sql, &p->st, p->err);
	if (p->rc == 0)
		sqlite3_bind_int64(p->st, 1, p->run);
}

static void put_row(struct put *p)
{
	int rc = sqlite3_step(p->st);

	if (rc != SQLITE_DONE)
		p->rc = rg_store_fail(p->s, rc, p->err, "writing %s of run %" PRId64, p->what, p->run);
	sqlite3_reset(p->st);
}

static int put_end(struct put *p)
{
	sqlite3_finalize(p->st);
	p->st = NULL;
	if (p->rc == 0)
		return rg_store_commit(p->s, p->err);
	rg_store_rollback(p->s);
	return p->rc;
}

static void put_refuse(struct put *p, const char *why)
{
	p->rc = rg_error_set(p->err, -EINVAL, "%s of run %" PRId64 ": %s", p->what, p->run, why);
}

static void bind_fact(sqlite3_stmt *st, const struct rg_fact *f)
{
	const char *reason = NULL;
	int kind = f->kind;

	if ((kind == 0 && !f->text) || (kind == 2 && isnan(f->real)))
		kind = 3;
	if (kind == 3)
		reason = f->text && *f->text ? f->text : "not known";
	rg_store_bind_text(st, 2, f->key);
	if (kind == 0)
		rg_store_bind_text(st, 3, f->text);
	else if (kind == 1)
		sqlite3_bind_int64(st, 3, f->integer);
	else if (kind == 2)
		sqlite3_bind_double(st, 3, f->real);
	else
		sqlite3_bind_null(st, 3);
	rg_store_bind_text_or_null(st, 4, reason);
	rg_store_bind_text(st, 5, f->unit);
	rg_store_bind_text(st, 6, rg_provenance_name(kind == 3 ? RG_PROV_UNAVAILABLE : f->provenance));
	rg_store_bind_text(st, 7, f->method);
}

int rg_store_put_facts(struct rg_store *s, int64_t run, const struct rg_fact *v, int n, struct rg_error *err)
{
	char what[120];
	struct put p;

	if (!put_begin(&p, s, run, "facts", err))
		return p.rc;
	put_use(&p, "INSERT INTO fact (run_id, key, value, reason, unit, provenance, method) "
		    "VALUES (?1,?2,?3,?4,?5,?6,?7)");
	for (int i = 0; i < n && !p.rc; i++) {
		snprintf(what, sizeof(what), "fact '%.80s'", v[i].key ? v[i].key : "");
		p.what = what;
		bind_fact(p.st, &v[i]);
		put_row(&p);
	}
	return put_end(&p);
}

int rg_store_put_ceilings(struct rg_store *s, int64_t run, const struct rg_ceiling_row *v, int n,
			  struct rg_error *err)
{
	struct put p;

	if (!put_begin(&p, s, run, "ceilings", err))
		return p.rc;
	put_use(&p, "INSERT INTO ceiling (run_id, kind, level, dtype, isa, threads, value, low, high, samples, "
		    "unit, measured_when, method, working_set_bytes, provenance) "
		    "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)");
	for (int i = 0; i < n && !p.rc; i++) {
		rg_store_bind_text(p.st, 2, v[i].kind);
		rg_store_bind_text(p.st, 3, v[i].level);
		rg_store_bind_text(p.st, 4, v[i].dtype);
		rg_store_bind_text(p.st, 5, v[i].isa);
		sqlite3_bind_int(p.st, 6, v[i].threads);
		sqlite3_bind_double(p.st, 7, v[i].value); /* NaN becomes NULL */
		sqlite3_bind_double(p.st, 8, v[i].low);
		sqlite3_bind_double(p.st, 9, v[i].high);
		sqlite3_bind_int(p.st, 10, v[i].samples);
		rg_store_bind_text(p.st, 11, v[i].unit);
		rg_store_bind_text(p.st, 12, v[i].when);
		rg_store_bind_text(p.st, 13, v[i].method);
		rg_store_bind_count(p.st, 14, v[i].working_set_bytes);
		rg_store_bind_text(p.st, 15, rg_provenance_name(v[i].provenance));
		put_row(&p);
	}
	return put_end(&p);
}

int rg_store_put_tensors(struct rg_store *s, int64_t run, const struct rg_tensor_row *v, int n,
			 struct rg_error *err)
{
	struct put p;

	if (!put_begin(&p, s, run, "tensors", err))
		return p.rc;
	put_use(&p, "INSERT INTO tensor (run_id, tensor, name, dtype, shape, size_bytes, place, offset_bytes, "
		    "alias_of, first_step, last_step, is_input, is_output, is_param) "
		    "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)");
	for (int i = 0; i < n && !p.rc; i++) {
		if (v[i].id != i) {
			put_refuse(&p, "ids must be 0, 1, 2, ... in order");
			break;
		}
		sqlite3_bind_int(p.st, 2, v[i].id);
		rg_store_bind_text(p.st, 3, v[i].name);
		rg_store_bind_text(p.st, 4, v[i].dtype);
		rg_store_bind_text(p.st, 5, v[i].shape);
		rg_store_bind_count(p.st, 6, v[i].size_bytes);
		rg_store_bind_text(p.st, 7, v[i].place);
		rg_store_bind_count(p.st, 8, v[i].offset_bytes);
		rg_store_bind_count(p.st, 9, v[i].alias_of);
		rg_store_bind_count(p.st, 10, v[i].first_step);
		rg_store_bind_count(p.st, 11, v[i].last_step);
		sqlite3_bind_int(p.st, 12, v[i].is_input);
		sqlite3_bind_int(p.st, 13, v[i].is_output);
		sqlite3_bind_int(p.st, 14, v[i].is_param);
		put_row(&p);
	}
	return put_end(&p);
}

static void bind_step(sqlite3_stmt *st, const struct rg_step_row *r)
{
	const int64_t counts[] = {
		r->flops, r->iops, r->sfu, r->executed_flops, r->read_bytes, r->write_bytes, r->weight_bytes,
		r->params, r->scratch_bytes, r->prepared_bytes, r->gemm_m, r->gemm_n, r->gemm_k,
	};
	int at = 12;

	sqlite3_bind_int(st, 2, r->index);
	rg_store_bind_text(st, 3, r->name);
	rg_store_bind_text(st, 4, r->op_type);
	rg_store_bind_text(st, 5, r->domain);
	sqlite3_bind_int(st, 6, r->op_version);
	rg_store_bind_text(st, 7, r->op_kind);
	rg_store_bind_text(st, 8, r->kernel);
	rg_store_bind_text(st, 9, r->kernel_reason);
	rg_store_bind_text(st, 10, r->dtype);
	rg_store_bind_text(st, 11, r->shape);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		rg_store_bind_count(st, at++, counts[i]);
	sqlite3_bind_int(st, at++, r->special_form);
	rg_store_bind_count(st, at, r->scratch_offset_bytes);
}

int rg_store_put_steps(struct rg_store *s, int64_t run, const struct rg_step_row *v, int n,
		       const struct rg_io_row *io, int n_io,
		       const struct rg_edge_row *edges, int n_edges, struct rg_error *err)
{
	struct put p;

	if (!put_begin(&p, s, run, "steps", err))
		return p.rc;
	put_use(&p, "INSERT INTO step (run_id, step, name, op_type, domain, op_version, op_kind, kernel, "
		    "kernel_reason, dtype, shape, flops, iops, sfu, executed_flops, read_bytes, write_bytes, "
		    "weight_bytes, params, scratch_bytes, prepared_bytes, gemm_m, gemm_n, gemm_k, special_form, "
		    "scratch_offset_bytes) "
		    "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,"
		    "?23,?24,?25,?26)");
	for (int i = 0; i < n && !p.rc; i++) {
		if (v[i].index != i) {
			put_refuse(&p, "indices must be 0, 1, 2, ... in order");
			break;
		}
		bind_step(p.st, &v[i]);
		put_row(&p);
	}
	p.what = "arguments of steps";
	put_use(&p, "INSERT INTO step_io (run_id, step, is_output, slot, tensor) VALUES (?1,?2,?3,?4,?5)");
	for (int i = 0; i < n_io && !p.rc; i++) {
		sqlite3_bind_int(p.st, 2, io[i].step);
		sqlite3_bind_int(p.st, 3, io[i].output);
		sqlite3_bind_int(p.st, 4, io[i].slot);
		sqlite3_bind_int(p.st, 5, io[i].tensor);
		put_row(&p);
	}
	p.what = "edges";
	/* A step that reads one tensor twice depends on it once. */
	put_use(&p, "INSERT INTO data_edge (run_id, from_step, to_step, tensor) VALUES (?1,?2,?3,?4) "
		    "ON CONFLICT (run_id, from_step, to_step, tensor) DO NOTHING");
	for (int i = 0; i < n_edges && !p.rc; i++) {
		sqlite3_bind_int(p.st, 2, edges[i].from_step);
		sqlite3_bind_int(p.st, 3, edges[i].to_step);
		sqlite3_bind_int(p.st, 4, edges[i].tensor);
		put_row(&p);
	}
	return put_end(&p);
}

int rg_store_put_phases(struct rg_store *s, int64_t run, const struct rg_phase_row *v, int n,
			struct rg_error *err)
{
	struct put p;

	if (!put_begin(&p, s, run, "phases", err))
		return p.rc;
	put_use(&p, "INSERT INTO phase (run_id, name, start_ns, end_ns) VALUES (?1,?2,?3,?4)");
	for (int i = 0; i < n && !p.rc; i++) {
		rg_store_bind_text(p.st, 2, v[i].name);
		sqlite3_bind_int64(p.st, 3, v[i].start_ns);
		sqlite3_bind_int64(p.st, 4, v[i].end_ns);
		put_row(&p);
	}
	return put_end(&p);
}

int rg_store_put_notes(struct rg_store *s, int64_t run, const struct rg_note_row *v, int n,
		       struct rg_error *err)
{
	struct put p;

	if (!put_begin(&p, s, run, "notes", err))
		return p.rc;
	put_use(&p, "INSERT INTO note (run_id, kind, subject, text) VALUES (?1,?2,?3,?4)");
	for (int i = 0; i < n && !p.rc; i++) {
		rg_store_bind_text(p.st, 2, v[i].kind);
		rg_store_bind_text(p.st, 3, v[i].subject);
		rg_store_bind_text(p.st, 4, v[i].text);
		put_row(&p);
	}
	return put_end(&p);
}

int rg_store_put_iterations(struct rg_store *s, int64_t run, const struct rg_iteration_row *v, int n,
			    const struct rg_span_row *spans, int64_t n_spans, struct rg_error *err)
{
	struct put p;
	int64_t next = 0;

	if (!put_begin(&p, s, run, "iterations", err))
		return p.rc;
	p.rc = rg_store_get_i64(s, "SELECT MAX(iteration) + 1 FROM iteration WHERE run_id = ?1", run, 0, &next,
				err);
	put_use(&p, "INSERT INTO iteration (run_id, iteration, pass, hook_on, start_ns, end_ns) "
		    "VALUES (?1,?2,?3,?4,?5,?6)");
	for (int i = 0; i < n && !p.rc; i++) {
		if (v[i].index != next + i) {
			put_refuse(&p, "indices must go on from those already written, without gaps");
			break;
		}
		sqlite3_bind_int(p.st, 2, v[i].index);
		rg_store_bind_text(p.st, 3, v[i].pass);
		sqlite3_bind_int(p.st, 4, v[i].hook_on);
		sqlite3_bind_int64(p.st, 5, v[i].start_ns);
		sqlite3_bind_int64(p.st, 6, v[i].end_ns);
		put_row(&p);
	}
	p.what = "spans";
	put_use(&p, "INSERT INTO span (run_id, iteration, seq, step, lane, whole, start_ns, end_ns) "
		    "VALUES (?1,?2,?3,?4,?5,?6,?7,?8)");
	for (int64_t i = 0; i < n_spans && !p.rc; i++) {
		sqlite3_bind_int(p.st, 2, spans[i].iteration);
		sqlite3_bind_int64(p.st, 3, i);
		sqlite3_bind_int(p.st, 4, spans[i].step);
		sqlite3_bind_int(p.st, 5, spans[i].lane);
		sqlite3_bind_int(p.st, 6, spans[i].whole);
		sqlite3_bind_int64(p.st, 7, spans[i].start_ns);
		sqlite3_bind_int64(p.st, 8, spans[i].end_ns);
		put_row(&p);
	}
	return put_end(&p);
}
