/* A small run written into a database. */
#include "make-run.h"

#include <math.h>
#include <stdlib.h>

int run_begin(struct rg_store *s, const char *tag, int64_t *id, struct rg_error *err)
{
	const struct rg_run run = {
		.tag = tag, .model = "builtin:test", .model_name = "test", .model_sha256 = "", .command = "ridge record",
		.version = "0.1", .started_unix_ns = 1700000000000000000, .threads = 2, .warmup_iterations = -1,
		.iterations = 10, .duration_ns = -1, .seed = -7,
	};
	const struct rg_fact facts[] = {
		{ "machine.cpu", 0, "A CPU", 0, 0, "", RG_PROV_DECLARED, "/proc/cpuinfo" },
		{ "model.params", 1, NULL, INT64_MAX, 0, "", RG_PROV_MEASURED, "counted" },
		{ "session.span_cost_ns", 2, NULL, 0, 31.25, "ns", RG_PROV_MEASURED, "calibrated" },
		{ "energy.joules", 3, "no counter opens", 0, 0, "J", RG_PROV_UNAVAILABLE, "" },
		{ "process.load", 2, NULL, 0, NAN, "", RG_PROV_MEASURED, "" },
	};
	const struct rg_ceiling_row ceilings[] = {
		{ "compute", "peak", "float32", "avx2", 2, 1e11, 9e10, 1.1e11, 5, "flop/s", "before", "fma", -1,
		  RG_PROV_MEASURED },
		{ "bandwidth", "DRAM", "float32", "avx2", 2, NAN, NAN, NAN, 0, "byte/s", "after", "failed", 1 << 28,
		  RG_PROV_UNAVAILABLE },
	};
	const struct rg_tensor_row tensors[] = {
		{ 0, "x", "float32", "1x4", 16, "input", -1, -1, 0, 1, true, false, false },
		{ 1, "w", "float32", "4x4", 64, "const", -1, -1, -1, -1, false, false, true },
		{ 2, "h", "float32", "1x4", 16, "arena", 0, -1, 0, 2, false, false, false },
		{ 3, "y", "float32", "4", 16, "arena", 0, 2, 1, 3, false, true, false },
	};
	const struct rg_step_row steps[RUN_STEPS] = {
		{ 0, "mm", "MatMul", "", 13, "gemm", "openblas", "rank 20 of 2", "float32", "1x4", 32, 0, 0, 32, 80, 16, 64,
		  16, 0, 64, 1, 4, 4, false, -1 },
		{ 1, "relu", "Relu", "", 14, "elementwise", "ref", "", "float32", "1x4", 4, 0, 0, -1, 16, 16, 0, 0, 0, 0, -1,
		  -1, -1, false, 128 },
		{ 2, "odd", "Odd", "com.example", 1, "other", "ref", "", "float32", "4", -1, -1, -1, -1, -1, -1, 0, 0, 0, 0,
		  -1, -1, -1, true, -1 },
	};
	const struct rg_io_row io[] = {
		{ 0, 0, false, 0 }, { 0, 1, false, 1 }, { 0, 0, true, 2 }, { 1, 0, false, 2 }, { 1, 0, true, 2 },
		{ 2, 0, false, 2 }, { 2, 1, false, 2 }, { 2, 0, true, 3 },
	};
	const struct rg_edge_row edges[] = { { 0, 1, 2 }, { 1, 2, 2 }, { 1, 2, 2 } };
	const struct rg_phase_row phases[] = { { "read", 5, 10 }, { "plan", 10, 30 } };
	const struct rg_note_row notes[] = { { "folded", "shape", "its inputs are constants" } };
	int rc = rg_store_begin_run(s, &run, id, err);

	rc = rc ? rc : rg_store_put_facts(s, *id, facts, 5, err);
	rc = rc ? rc : rg_store_put_ceilings(s, *id, ceilings, 2, err);
	rc = rc ? rc : rg_store_put_tensors(s, *id, tensors, 4, err);
	rc = rc ? rc : rg_store_put_steps(s, *id, steps, RUN_STEPS, io, 8, edges, 3, err);
	rc = rc ? rc : rg_store_put_phases(s, *id, phases, 2, err);
	return rc ? rc : rg_store_put_notes(s, *id, notes, 1, err);
}

int run_iterate(struct rg_store *s, int64_t id, int first, int n, struct rg_error *err)
{
	struct rg_iteration_row *it = calloc((size_t)n, sizeof(*it));
	struct rg_span_row *spans = calloc((size_t)n * RUN_SPANS_PER_ITERATION, sizeof(*spans));
	int64_t n_spans = 0;
	int rc;

	for (int i = 0; i < n; i++) {
		int index = first + i;
		int64_t t = 1000000 + 1000 * (int64_t)index;

		it[i] = (struct rg_iteration_row){ index, "timing", index % 2 == 0, t, t + 500 + index % 10 };
		for (int k = 0; k < RUN_STEPS && it[i].hook_on; k++) {
			spans[n_spans++] = (struct rg_span_row){ index, k, 0, 1, t + 100 * k, t + 100 * k + 90 };
			spans[n_spans++] = (struct rg_span_row){ index, k, 1, 0, t + 100 * k + 1, t + 100 * k + 80 };
		}
	}
	rc = rg_store_put_iterations(s, id, it, n, spans, n_spans, err);
	free(it);
	free(spans);
	return rc;
}
