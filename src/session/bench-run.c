/* See bench-run.h. */
#include "session/bench-run.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/blas/blas.h"
#include "session/inputs.h"

int rg_bench_machine(const struct rg_session_options *o, struct rg_bench_machine *m, struct rg_error *err)
{
	rg_cpu_detect("", &m->cpu);
	rg_topology_read("", &m->topo);
	m->isa = o->isa ? m->cpu.isa & o->isa : m->cpu.isa;
	m->threads = o->threads ? o->threads : rg_topology_default_threads(&m->topo);
	if (m->threads < 1 || m->threads > RG_MAX_CPUS)
		return rg_error_set(err, RG_EUSAGE, "--threads %d: from 1 to %d", m->threads, RG_MAX_CPUS);
	m->pinned = m->threads <= m->topo.n_allowed;
	rg_blas_available(); /* loaded now, not while something is measured */
	return 0;
}

static bool is_interrupted(void *ctx)
{
	return rg_session_interrupted();
}

static int make_exec(const struct rg_bench_machine *m, struct rg_bench_run *r, struct rg_error *err)
{
	struct rg_exec_options xo = { .stop = is_interrupted, .pin = m->pinned, .n_cpus = m->topo.n_allowed };
	int cpus[RG_MAX_CPUS];

	rg_topology_pin_order(&m->topo, cpus);
	xo.cpus = cpus;
	return rg_exec_new(r->plan, &xo, &r->exec, err);
}

static int fill_inputs(const struct rg_graph *g, const struct rg_session_options *o, struct rg_bench_run *r,
		       struct rg_error *err)
{
	struct rg_session_options plain;
	struct rg_tensor *inputs;
	const char **uses;
	int rc;

	rg_session_defaults(&plain); /* files and ranges of the command line name inputs of a model */
	plain.seed = o->seed;
	rc = rg_inputs_make(g, &plain, &inputs, &uses, err);
	if (rc)
		return rc;
	for (int i = 0; i < g->n_inputs; i++) {
		struct rg_tensor to = rg_exec_input(r->exec, i);

		if (to.data)
			memcpy(to.data, inputs[i].data, (size_t)rg_tensor_bytes(to.dtype, &to.shape));
	}
	rg_inputs_free(inputs, g->n_inputs, uses);
	return 0;
}

int rg_bench_run_new(const struct rg_bench_case *c, const struct rg_bench_machine *m,
		     const struct rg_session_options *o, const char *kernel, struct rg_bench_run *r,
		     struct rg_error *err)
{
	struct rg_plan_options po = { .lanes = m->threads, .isa = m->isa, .n_without = o->n_without,
				      .without = o->without };
	int rc;

	memset(r, 0, sizeof(*r));
	po.overrides = rg_calloc(1, sizeof(*po.overrides));
	if (!po.overrides)
		return rg_error_nomem(err, sizeof(*po.overrides));
	if (kernel) {
		po.n_overrides = 1;
		po.overrides[0].op = c->graph->nodes[0].op_type;
		po.overrides[0].kernel = kernel;
	}
	rc = rg_plan_make(c->graph, &po, &r->plan, err);
	rg_free(po.overrides);
	if (!rc && r->plan->n_steps != 1)
		rc = rg_error_set(err, -EINVAL, "it is no single step: %d are left of it", r->plan->n_steps);
	if (!rc && kernel && strcmp(rg_step_kernel_name(&r->plan->steps[0]), kernel) != 0) {
		rg_bench_run_free(r); /* it was asked for and cannot run it */
		return 0;
	}
	if (!rc)
		rc = make_exec(m, r, err);
	if (!rc)
		rc = fill_inputs(c->graph, o, r, err);
	if (rc)
		rg_bench_run_free(r);
	return rc ? rg_error_at(err, "%s", c->name) : 0;
}

void rg_bench_run_free(struct rg_bench_run *r)
{
	rg_exec_free(r->exec);
	rg_plan_free(r->plan);
	memset(r, 0, sizeof(*r));
}

int rg_bench_run_round(struct rg_bench_run *r, double *call_ns, struct rg_error *err)
{
	uint64_t start = rg_clock_now_ns();
	int rc = 0;

	for (int64_t i = 0; i < r->calls && !rc; i++)
		rc = rg_exec_run(r->exec, err);
	*call_ns = (double)(rg_clock_now_ns() - start) / (double)r->calls;
	return rc;
}

int rg_bench_run_calibrate(struct rg_bench_run *r, double round_ns, double *call_ns, struct rg_error *err)
{
	int rc;

	r->calls = 1;
	rc = rg_bench_run_round(r, call_ns, err); /* faults pages in, wakes lanes: tells nothing */
	while (!rc) {
		double grow;

		rc = rg_bench_run_round(r, call_ns, err);
		if (rc || *call_ns * (double)r->calls >= round_ns || r->calls > INT64_MAX / 16)
			break;
		grow = *call_ns > 0 ? round_ns / *call_ns / (double)r->calls * 1.2 : 8;
		r->calls = (int64_t)((double)r->calls * (grow > 8 ? 8 : grow)) + 1;
	}
	return rc;
}
