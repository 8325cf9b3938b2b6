/*
 * What the compiler did to a graph and what it left, out of the notes of a recording: who became part of
 * whom, which pairs of steps stayed two and why, by pass, by reason and by pair of operators.
 */
#ifndef RG_ANALYZER_FUSION_H
#define RG_ANALYZER_FUSION_H

#include "base/arena.h"
#include "store/store.h"

struct rg_fusion {
	const char *op_type, *node; /* what went, or would have gone */
	const char *into;           /* what it became part of, or would have */
	const char *into_type;      /* its operator; "" where it is no step any more */
	const char *pass;           /* "" where no pass looks at the pair */
	const char *reason;         /* why they stayed two; "" where it was done */
};

/* Some that have a pass, a reason, or reason and operators in common. */
struct rg_fusion_group {
	const char *name;           /* pass or reason */
	const char *op_type, *into_type; /* of pairs; else "" */
	int count;
	const struct rg_fusion *example; /* the first of them */
};

struct rg_fusions {
	int level;                  /* --optimize; -1: the recording does not say */
	int n_done, n_left;
	struct rg_fusion *done, *left;
	int n_passes, n_reasons, n_pairs;
	struct rg_fusion_group *passes;  /* of what was done, most first */
	struct rg_fusion_group *reasons; /* of what was left, most first */
	struct rg_fusion_group *pairs;   /* by reason and pair of operators: reasons in their order */
	int n_transposes;           /* steps that only change the layout */
	struct rg_arena *arena;     /* owns all of the above; names are the recording's or its own */
};

/* The caller frees *out. -ENOMEM. `r` outlives it. */
int rg_fusions_new(const struct rg_recording *r, struct rg_fusions **out, struct rg_error *err);
void rg_fusions_free(struct rg_fusions *f);

#endif
