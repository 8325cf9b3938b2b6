/*
 * What running and recording have in common: a model opened, bound, planned,
 * with its inputs made and an executor ready.
 */
#ifndef RG_SESSION_PREPARE_H
#define RG_SESSION_PREPARE_H

#include "compile/plan.h"
#include "exec/exec.h"
#include "models/model.h"
#include "session/session.h"
#include "sys/cpu.h"
#include "sys/topology.h"

struct rg_prepared {
	struct rg_cpu cpu;
	struct rg_topology topo;
	int threads;               /* really used */
	bool pinned;
	uint32_t isa;              /* bits really allowed */
	struct rg_model *model;
	int64_t params;            /* on the graph as read, before any pass */
	int n_nodes_read;
	struct rg_tensor *inputs;  /* n_inputs of the graph */
	const char **uses;         /* how each was made */
	struct rg_plan *plan;
	struct rg_exec *exec;
	/* phases, on the clock of base/clock.h */
	uint64_t read_start_ns, read_end_ns;
	uint64_t plan_start_ns, plan_end_ns;
	uint64_t stage_start_ns, stage_end_ns;
};

/* On failure everything is released and *p is zero. */
int rg_prepare(const struct rg_session_options *o, struct rg_prepared *p, struct rg_error *err);
void rg_prepared_free(struct rg_prepared *p);
/* Into *b: what was given on the command line, and the shapes of input files, for rg_model_bind. The caller
 * frees b->shapes, also on failure; the rest is o's. */
int rg_prepare_shapes(const struct rg_session_options *o, const struct rg_graph *g, struct rg_bindings *b,
		      struct rg_error *err);
/* SHA-256 over type, shape and bytes of every output, in order. -ENOMEM. */
int rg_prepared_hash_outputs(struct rg_prepared *p, char hex[65], struct rg_error *err);

#endif
