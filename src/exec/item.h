/*
 * What a value of the dynamic path holds while a model runs: a tensor, a
 * sequence of items, or nothing (an empty optional).
 *
 * Items are counted references and do not change once others can see them. All
 * of them belong to the thread that calls rg_exec_run. The functions that make
 * one return it with one reference, the caller's, or NULL with the error set.
 */
#ifndef RG_EXEC_ITEM_H
#define RG_EXEC_ITEM_H

#include "base/error.h"
#include "graph/tensor.h"

enum rg_item_kind { RG_ITEM_NONE, RG_ITEM_TENSOR, RG_ITEM_SEQUENCE };

struct rg_item {
	enum rg_item_kind kind;
	int refs;
	struct rg_tensor t;     /* TENSOR; data is never NULL. SEQUENCE: t.dtype is that of its
	                           tensors, RG_UNDEFINED while it has none and nobody said */
	void *memory;           /* what t.data lies in; NULL: borrowed, see rg_item_borrow */
	bool lasting;           /* borrowed for as long as the graph lives */
	int n;                  /* SEQUENCE */
	struct rg_item **v;     /* n of them, a reference each */
};

/* A tensor with memory of its own, not initialised. limit_bytes: more is
 * refused as out of memory; 0 no limit. */
struct rg_item *rg_item_new(enum rg_dtype t, const struct rg_shape *shape, int64_t limit_bytes,
			    struct rg_error *err);
/* A tensor in memory of its own with a copy of t's elements (of strings, the
 * pointers). */
struct rg_item *rg_item_copy(const struct rg_tensor *t, struct rg_error *err);
/* A view of memory that outlives what the item is used for: only for passing
 * down into a subgraph; rg_item_own before it is kept. */
struct rg_item *rg_item_borrow(const struct rg_tensor *t, bool lasting, struct rg_error *err);
/* One int64 or bool. */
struct rg_item *rg_item_scalar(enum rg_dtype t, int64_t v, struct rg_error *err);
struct rg_item *rg_item_none(struct rg_error *err);
/* Takes over the n references in v (NULL: leaves n empty slots to fill), also on failure. */
struct rg_item *rg_item_sequence(enum rg_dtype t, int n, struct rg_item *const *v, struct rg_error *err);

/* Bytes that it takes, elements of a sequence and its own place included; one
 * that is there twice counts twice. */
int64_t rg_item_bytes(const struct rg_item *i);
struct rg_item *rg_item_ref(struct rg_item *i);   /* returns i */
void rg_item_unref(struct rg_item *i);            /* NULL is allowed */
/* Gives away one reference to i and returns one to an item that may be kept: i
 * itself, or a copy where i only borrows. */
struct rg_item *rg_item_own(struct rg_item *i, struct rg_error *err);

#endif
