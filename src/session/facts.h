/*
 * Facts about a run, gathered into a list that the store takes. Keys are
 * documented in docs/database.md.
 */
#ifndef RG_SESSION_FACTS_H
#define RG_SESSION_FACTS_H

#include "base/arena.h"
#include "store/store.h"
#include "sys/cpu.h"
#include "sys/topology.h"

struct rg_facts {
	struct rg_fact *v;
	size_t n, cap;
	struct rg_arena *arena; /* owns the strings */
	bool failed;            /* out of memory: nothing more is added */
};

/* Zero-initialise, then add. Text is copied. NAN or -1 given to real and
 * integer makes the fact unavailable, with `method` as the reason. */
void rg_facts_text(struct rg_facts *f, const char *key, const char *text, enum rg_provenance p, const char *method);
void rg_facts_integer(struct rg_facts *f, const char *key, int64_t v, const char *unit, enum rg_provenance p,
		      const char *method);
void rg_facts_real(struct rg_facts *f, const char *key, double v, const char *unit, enum rg_provenance p,
		   const char *method);
void rg_facts_free(struct rg_facts *f);

/* What the operating system and cpuid say about this machine: machine.*. */
void rg_facts_machine(struct rg_facts *f, const struct rg_cpu *cpu, const struct rg_topology *t);

#endif
