/* What the files of the dynamic path share: dynamic.c runs nodes, control.c
 * subgraphs, sequence.c sequences and optionals. */
#ifndef RG_EXEC_DYNAMIC_INTERNAL_H
#define RG_EXEC_DYNAMIC_INTERNAL_H

#include "exec/dynamic.h"

struct rg_body;

/* One node while it runs: where its values are looked up. */
struct rg_site {
	struct rg_dynamic *d;
	struct rg_body *body;
	int node;                     /* in the body's graph */
	const struct rg_node *n;
	const struct rg_par *par;
};

typedef int rg_exec_op_fn(const struct rg_site *s, struct rg_error *err);

/* The function of an operator with RG_OP_EXEC. */
rg_exec_op_fn *rg_control_find(const char *op_type);   /* control.c; NULL: not one of these */
rg_exec_op_fn *rg_sequence_find(const char *op_type);  /* sequence.c */

rg_exec_op_fn rg_flex_attention_run;                   /* flex-attention.c */

/* ---- dynamic.c: values ---- */
/* Is input k there? */
static inline bool rg_site_has(const struct rg_site *s, int k)
{
	return k < s->n->n_in && s->n->in[k] >= 0;
}
/* Input k as an item, a new reference that may only borrow; NULL with the error
 * set. It must be there. */
struct rg_item *rg_site_item(const struct rg_site *s, int k, struct rg_error *err);
/* Input k as a tensor; an error when it is none. It must be there. */
int rg_site_tensor(const struct rg_site *s, int k, struct rg_tensor *out, struct rg_error *err);
/* Input k as one integer of type int32 or int64, or one bool. */
int rg_site_int(const struct rg_site *s, int k, int64_t *out, struct rg_error *err);
/* Output k is this item: takes the reference. Borrowed memory is copied. */
int rg_site_give(const struct rg_site *s, int k, struct rg_item *item, struct rg_error *err);

/* What is collected over many iterations has so many bytes: an error when the
 * machine has less. */
int rg_site_room(const struct rg_site *s, int64_t bytes, struct rg_error *err);

/* ---- dynamic.c: bodies ---- */
/* The body of a graph attribute; NULL with the error set when the node has none. */
struct rg_body *rg_site_body(const struct rg_site *s, const char *attr, struct rg_error *err);
const struct rg_graph *rg_body_graph(const struct rg_body *b);
/*
 * Runs a body on n inputs. Takes the references in `in`, also on failure (a
 * NULL leaves an input unset); fills `out` with one new, owned reference an
 * output, or leaves it all NULL.
 */
int rg_body_run(const struct rg_site *s, struct rg_body *b, int n, struct rg_item **in, struct rg_item **out,
		struct rg_error *err);

/* ---- sequence.c: cutting and joining ---- */
/* An axis in [-rank, rank) as one in [0, rank); else an error. */
int rg_item_axis(int64_t axis, int rank, struct rg_error *err);
/* Element `at` of a tensor along an axis, that dimension gone. Whole-byte types. */
struct rg_item *rg_item_slice(const struct rg_tensor *t, int axis, int64_t at, int64_t count, bool keep,
			      struct rg_error *err);
/* Joins n > 0 tensors along an axis: a new one, or (concat) an existing one. */
struct rg_item *rg_item_join(struct rg_item *const *v, int n, int axis, bool concat, struct rg_error *err);

#endif
