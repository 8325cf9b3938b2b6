/* Recordings made by hand. */
#include "make-recording.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct mk *mk_new(int threads)
{
	struct mk *m = calloc(1, sizeof(*m));

	assert(m);
	m->rec.run = (struct rg_run){
		.id = 1, .tag = "", .model = "builtin:test", .model_name = "test", .model_sha256 = "",
		.command = "ridge record builtin:test", .version = "0", .threads = threads, .warmup_iterations = -1,
		.iterations = -1, .duration_ns = -1, .status = RG_RUN_COMPLETE, .message = "", .p50_ns = NAN,
	};
	m->rec.facts = m->facts;
	m->rec.ceilings = m->ceilings;
	m->rec.tensors = m->tensors;
	m->rec.steps = m->steps;
	m->rec.io = m->io;
	m->rec.edges = m->edges;
	m->rec.iterations = m->iterations;
	m->rec.spans = m->spans;
	m->rec.notes = m->notes;
	return m;
}

void mk_free(struct mk *m)
{
	free(m);
}

void mk_fact_i(struct mk *m, const char *key, int64_t v, const char *unit)
{
	assert(m->rec.n_facts < MK_MAX);
	m->facts[m->rec.n_facts++] = (struct rg_fact){
		.key = key, .kind = 1, .integer = v, .real = NAN, .text = "", .unit = unit,
		.provenance = RG_PROV_MEASURED, .method = "by hand",
	};
}

void mk_fact_t(struct mk *m, const char *key, const char *v)
{
	assert(m->rec.n_facts < MK_MAX);
	m->facts[m->rec.n_facts++] = (struct rg_fact){
		.key = key, .kind = 0, .text = v, .integer = -1, .real = NAN, .unit = "",
		.provenance = RG_PROV_DECLARED, .method = "by hand",
	};
}

void mk_ceiling(struct mk *m, const char *level, double value)
{
	bool peak = strcmp(level, "peak") == 0;

	assert(m->rec.n_ceilings < MK_MAX);
	m->ceilings[m->rec.n_ceilings++] = (struct rg_ceiling_row){
		.kind = peak ? "compute" : "bandwidth", .level = level, .dtype = "float32", .isa = "avx2",
		.threads = m->rec.run.threads, .value = value, .low = value * 0.99, .high = value * 1.01,
		.samples = 5, .unit = peak ? "flop/s" : "byte/s", .when = "before", .method = "by hand",
		.working_set_bytes = -1, .provenance = RG_PROV_MEASURED,
	};
}

void mk_int8_ceiling(struct mk *m, const char *level, double value)
{
	mk_ceiling(m, "peak", value);
	m->ceilings[m->rec.n_ceilings - 1].level = level;
	m->ceilings[m->rec.n_ceilings - 1].dtype = "int8";
	m->ceilings[m->rec.n_ceilings - 1].unit = "op/s";
}

struct rg_step_row *mk_step(struct mk *m, const char *name, const char *op_type, const char *op_kind,
			    int64_t flops, int64_t bytes)
{
	struct rg_step_row *s = &m->steps[m->rec.n_steps];

	assert(m->rec.n_steps < MK_MAX);
	*s = (struct rg_step_row){
		.index = m->rec.n_steps++, .name = name, .op_type = op_type, .domain = "", .op_version = 1,
		.op_kind = op_kind, .kernel = "openblas", .kernel_reason = "", .dtype = "float32", .shape = "1x4",
		.flops = flops, .iops = 0, .sfu = 0, .executed_flops = -1, .read_bytes = bytes < 0 ? -1 : bytes - bytes / 2,
		.write_bytes = bytes < 0 ? -1 : bytes / 2, .weight_bytes = 0, .params = 0, .scratch_bytes = 0,
		.prepared_bytes = 0, .gemm_m = -1, .gemm_n = -1, .gemm_k = -1,
	};
	return s;
}

struct rg_tensor_row *mk_tensor(struct mk *m, const char *name, const char *shape, int64_t size_bytes,
				const char *place)
{
	struct rg_tensor_row *t = &m->tensors[m->rec.n_tensors];

	assert(m->rec.n_tensors < MK_MAX);
	*t = (struct rg_tensor_row){
		.id = m->rec.n_tensors++, .name = name, .dtype = "float32", .shape = shape, .size_bytes = size_bytes,
		.place = place, .offset_bytes = -1, .alias_of = -1, .first_step = -1, .last_step = -1,
	};
	return t;
}

void mk_io(struct mk *m, int step, bool output, int slot, int tensor)
{
	assert(m->rec.n_io < MK_MAX);
	m->io[m->rec.n_io++] = (struct rg_io_row){ step, slot, output, tensor };
}

void mk_edge(struct mk *m, int from, int to)
{
	assert(m->rec.n_edges < 8 * MK_MAX && from < to && to < m->rec.n_steps);
	m->edges[m->rec.n_edges++] = (struct rg_edge_row){ from, to, 0 };
}

int mk_iteration(struct mk *m, const char *pass, bool hook_on, int64_t start_ns, int64_t end_ns)
{
	int i = m->rec.n_iterations++;

	assert(i < 4 * MK_MAX);
	m->iterations[i] = (struct rg_iteration_row){ i, pass, hook_on, start_ns, end_ns };
	return i;
}

/* Kept sorted by iteration and start, as the store loads them. */
void mk_span(struct mk *m, int iteration, int step, int lane, int whole, int64_t start_ns, int64_t end_ns)
{
	int64_t at = m->rec.n_spans++;

	assert(at < MK_MAX_SPANS);
	for (; at > 0 && (m->spans[at - 1].iteration > iteration ||
			  (m->spans[at - 1].iteration == iteration && m->spans[at - 1].start_ns > start_ns)); at--)
		m->spans[at] = m->spans[at - 1];
	m->spans[at] = (struct rg_span_row){ iteration, step, lane, whole, start_ns, end_ns };
}

void mk_note(struct mk *m, const char *kind, const char *subject, const char *text)
{
	assert(m->rec.n_notes < MK_MAX);
	m->notes[m->rec.n_notes++] = (struct rg_note_row){ kind, subject, text };
}
