/* See ladder-misses.h. */
#include "session/ladder-misses.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "probes/misses.h"
#include "session/ladder-sim.h"

/* Multiply-adds of the largest product that is simulated without being named: the naive
 * loop takes some ten seconds for it. */
#define MOST_PRODUCTS (1 << 24)

struct rg_ladder_misses {
	const struct rg_ladder_options *o;
	struct rg_bench_machine *machine; /* one thread */
	uint32_t isa;
	bool counters;           /* they open */
	struct rg_misses fds;
	bool caches_known, simulated;
	struct rg_sim_caches caches;
	char reason[RG_LADDER_REASON]; /* why there are neither; "" */
};

static void say_why(char out[RG_LADDER_REASON], const struct rg_error *err)
{
	snprintf(out, RG_LADDER_REASON, "%.150s%s%.90s", err->message, err->hint[0] ? "; " : "", err->hint);
}

int rg_ladder_misses_new(const struct rg_topology *t, uint32_t isa, const struct rg_ladder_options *o,
			 struct rg_ladder_misses **out, struct rg_error *err)
{
	struct rg_ladder_misses *m = rg_calloc(1, sizeof(*m));
	struct rg_session_options one = *o->session;
	struct rg_error why = { 0 };
	int rc;

	if (!m)
		return rg_error_nomem(err, sizeof(*m));
	m->o = o;
	m->isa = isa;
	m->machine = rg_calloc(1, sizeof(*m->machine));
	if (!m->machine) {
		rg_free(m);
		return rg_error_nomem(err, sizeof(*m->machine));
	}
	one.threads = 1;
	rc = rg_bench_machine(&one, m->machine, err);
	if (rc) {
		rg_ladder_misses_free(m);
		return rc;
	}
	m->machine->topo = *t; /* as before the pool pinned this thread */
	m->machine->pinned = false;
	m->counters = rg_misses_open(&m->fds, &why) == 0;
	if (!m->counters && !o->simulate) {
		snprintf(m->reason, sizeof(m->reason), "%.180s; --misses simulates them", why.message);
	} else if (!m->counters) {
		rg_error_clear(&why);
		m->caches_known = rg_sim_caches_of(t, &m->caches, &why) == 0;
		if (!m->caches_known)
			say_why(m->reason, &why);
	}
	*out = m;
	return 0;
}

void rg_ladder_misses_free(struct rg_ladder_misses *m)
{
	if (!m)
		return;
	if (m->counters)
		rg_misses_close(&m->fds);
	rg_free(m->machine);
	rg_free(m);
}

const char *rg_ladder_misses_simulator(const struct rg_ladder_misses *m)
{
	return m->simulated ? m->caches.text : "";
}

static int count(struct rg_ladder_misses *m, const struct rg_ladder_name *name, const char *kernel,
		 const struct rg_ladder_data *d, struct rg_ladder_row *row, char reason[RG_LADDER_REASON],
		 struct rg_error *err)
{
	struct rg_ladder_run run;
	int rc = rg_ladder_run_new(name, kernel, d, m->machine, m->o->session, &rg_par_serial, &run, err);

	if (!rc && run.reason[0]) {
		snprintf(reason, RG_LADDER_REASON, "on one thread: %s", run.reason);
	} else if (!rc) {
		rc = rg_ladder_run_call(&run, err);
		rg_misses_start(&m->fds);
		if (!rc)
			rc = rg_ladder_run_call(&run, err);
		rg_misses_stop(&m->fds, &row->l1_misses, &row->ll_misses);
		if (row->l1_misses >= 0 || row->ll_misses >= 0)
			row->misses_provenance = RG_PROV_MEASURED;
		else
			snprintf(reason, RG_LADDER_REASON, "the counters were shared with others while it ran");
	}
	rg_ladder_run_free(&run);
	return rc;
}

/* What the simulator's CPU does not have: Valgrind shows AVX2 at most. */
#define NOT_SIMULATED (RG_ISA_AVX512_ALL | RG_ISA_AVX512_VNNI | RG_ISA_AVX_VNNI | RG_ISA_AVX512_BF16 | \
		       RG_ISA_AVX512_FP16 | RG_ISA_AMX_TILE)

static void simulate(struct rg_ladder_misses *m, const struct rg_ladder_name *name, const char *kernel, uint32_t isa,
		     const struct rg_ladder_data *d, struct rg_ladder_row *row, char reason[RG_LADDER_REASON])
{
	struct rg_sim_job j = { .program = m->o->program, .rung = name->rung, .kernel = kernel,
				.weights = rg_ladder_weights_name(m->o->weights), .shape = d->shape,
				.caches = &m->caches };
	struct rg_error why = { 0 };
	struct rg_sim_result got;

	/* OpenBLAS chooses by the CPU, and would choose otherwise under the simulator */
	if (((strcmp(name->rung, "openblas") == 0 ? m->isa : isa) & NOT_SIMULATED)) {
		snprintf(reason, RG_LADDER_REASON, "the simulator has no instructions beyond AVX2, which %s uses%s", kernel,
			 strcmp(name->rung, "openblas") == 0 ? " here" : "; --isa avx2 measures what it can run");
		return;
	}
	if (!m->o->n_shapes && row->m * row->k * row->n > MOST_PRODUCTS) {
		snprintf(reason, RG_LADDER_REASON, "too long to simulate unasked; ridge bench ladder SHAPE --misses does");
		return;
	}
	if (rg_sim_run(&j, &got, &why)) {
		say_why(reason, &why);
		return;
	}
	m->simulated = true;
	row->l1_misses = got.l1_misses;
	row->ll_misses = got.ll_misses;
	row->misses_provenance = RG_PROV_SIMULATED;
}

int rg_ladder_misses_count(struct rg_ladder_misses *m, const struct rg_ladder_name *name, const char *kernel,
			   uint32_t isa, const struct rg_ladder_data *d, struct rg_ladder_row *row,
			   char reason[RG_LADDER_REASON], struct rg_error *err)
{
	reason[0] = '\0';
	if (m->counters)
		return count(m, name, kernel, d, row, reason, err);
	if (m->reason[0])
		snprintf(reason, RG_LADDER_REASON, "%s", m->reason);
	else
		simulate(m, name, kernel, isa, d, row, reason);
	return 0;
}
