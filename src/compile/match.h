/*
 * What passes need to find a pattern: who reads a value, and whether what lies
 * between two nodes may go. The view is of the graph as it was when it was made;
 * nodes that a pass adds are not in it, nor those that no output needs.
 */
#ifndef RG_COMPILE_MATCH_H
#define RG_COMPILE_MATCH_H

#include "compile/pass.h"

struct rg_match {
	struct rg_graph *g;
	const char *pass;
	struct rg_pass_log *log;
	int n_nodes;              /* nodes that are looked at */
	unsigned char *live;      /* by node: an output needs it */
	int *first_use;           /* by value, into the list of uses; -1: nobody reads it */
	int *n_uses;              /* by value: how often nodes read it, their subgraphs included */
	struct rg_match_use { int node, next; } *uses; /* next: of the same value, -1 the last */
	unsigned char *gone;      /* by node: part of a rewrite */
	unsigned char *pinned;    /* by node: it stays as it is */
	int n_values;             /* values that there were at the beginning */
	unsigned char *captured;  /* by value: a subgraph reads it, by its name */
	int *instead;             /* by value: what its readers get (rewrite.h) */
	int n_rewrites;
};

int rg_match_begin(struct rg_match *m, struct rg_graph *g, const char *pass, struct rg_pass_log *log,
		   struct rg_error *err);
/* Takes out what is gone, and unneeded nodes that read of it. `rc`: how the pass went; returns it, or the
 * number of rewrites. Frees m's own. */
int rg_match_end(struct rg_match *m, int rc, struct rg_error *err);

/* Node i is needed, not pinned, and not part of a rewrite yet; none is once the log's limit is reached. */
bool rg_match_open(const struct rg_match *m, int node);
/* Node i is standard operator `op_type`, needed, and not part of a rewrite yet. Nothing is, once
 * the log's limit of rewrites is reached. */
bool rg_match_is(const struct rg_match *m, int node, const char *op_type);
/* The same of any domain. */
bool rg_match_is_of(const struct rg_match *m, int node, const char *domain, const char *op_type);
/*
 * A node of type `op_type` that reads output 0 of `node`, its only one, as its own input 0 (commutes: or as
 * input 1); -1 where there is none. *why: what keeps the value between them from going.
 */
int rg_match_reader(const struct rg_match *m, int node, const char *op_type, bool commutes,
		    enum rg_decline *why);
int rg_match_reader_of(const struct rg_match *m, int node, const char *domain, const char *op_type,
		       bool commutes, enum rg_decline *why);
/* The node of a standard operator that makes a value as its first output, if it may be matched; -1 else. */
int rg_match_maker(const struct rg_match *m, int value, const char *op_type);
/* Why a node with this output cannot be taken apart from its readers; RG_DECLINE_NONE: it can. */
enum rg_decline rg_match_inside(const struct rg_match *m, int value);
/* A constant of float32 with data; its elements. NULL else. */
const float *rg_match_floats(const struct rg_graph *g, int value, int64_t *count);
/* A constant that is one number of float32, whatever its rank. */
bool rg_match_number(const struct rg_graph *g, int value, float *out);
/* Bounds of Clip: inputs since version 11, before that attributes; infinite where there is none.
 * false: a bound that is given at run time, or NaN. */
bool rg_match_clip(const struct rg_graph *g, const struct rg_node *n, float *low, float *high);
/* Notes what became of `node`, which is or would have become a part of `into`. */
int rg_match_note(struct rg_match *m, int node, int into, enum rg_decline why, struct rg_error *err);
/* The same for a decline where `into` is rewritten all the same. */
int rg_match_note_settled(struct rg_match *m, int node, int into, enum rg_decline why, struct rg_error *err);

#endif
