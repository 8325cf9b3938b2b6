/*
 * Whether a rewritten graph still computes what the model computes: both are run on
 * inputs that are seeded, all zeros, all ones, large, tiny and denormal. Integers (token ids,
 * lengths, masks) are seeded in each, since edge values would not be valid.
 */
#ifndef RG_SESSION_OPTIMIZE_PROVE_H
#define RG_SESSION_OPTIMIZE_PROVE_H

#include "compile/plan.h"
#include "session/session.h"

struct rg_proof; /* inputs, and what the model made of them */

/* The largest difference that was found. */
struct rg_difference {
	double off;                 /* of the largest number of that output; INFINITY: NaN, type or shape differ */
	double allowed;             /* for its type */
	double worst;               /* the largest of all, large inputs not counted: those amplify roundings */
	bool wrong;                 /* beyond what is allowed */
	const char *output;         /* the graph's name */
	const char *inputs;         /* "all zeros"; static */
};

/* Makes the inputs. The graph is bound and not inferred yet. seeded_only: no edge values, to see whether
 * it runs at all. */
int rg_proof_new(const struct rg_graph *g, const struct rg_session_options *o, bool seeded_only,
		 struct rg_proof **out, struct rg_error *err);
/* What the graph, inferred now, makes of them is what shall be. */
int rg_proof_record(struct rg_proof *p, struct rg_graph *g, struct rg_error *err);
/* Runs another graph of the same model, and finds the largest difference; the first wrong one ends it. */
int rg_proof_hold(struct rg_proof *p, struct rg_graph *g, struct rg_difference *d, struct rg_error *err);
void rg_proof_free(struct rg_proof *p);

#endif
