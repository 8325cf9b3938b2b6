/* Items: making, counting and copying them. */
#include "exec/item.h"

#include <string.h>

#include "base/alloc.h"

/* Where tensors without elements point. */
static _Alignas(64) unsigned char nothing[64];

static struct rg_item *make(enum rg_item_kind kind, struct rg_error *err)
{
	struct rg_item *i = rg_calloc(1, sizeof(*i));

	if (!i) {
		rg_error_nomem(err, sizeof(*i));
		return NULL;
	}
	i->kind = kind;
	i->refs = 1;
	return i;
}

struct rg_item *rg_item_new(enum rg_dtype t, const struct rg_shape *shape, int64_t limit_bytes,
			    struct rg_error *err)
{
	int64_t bytes = rg_tensor_bytes(t, shape);
	struct rg_item *i;
	char text[160];

	if (bytes < 0) {
		rg_error_set(err, -EOVERFLOW, "a tensor of %s %s has no size", rg_dtype_name(t),
			     rg_shape_text(text, shape));
		return NULL;
	}
	if (limit_bytes > 0 && bytes > limit_bytes) {
		rg_error_set(err, -ENOMEM, "a tensor of %s %s takes %lld MiB, more than this machine has",
			     rg_dtype_name(t), rg_shape_text(text, shape), (long long)(bytes >> 20));
		return NULL;
	}
	i = make(RG_ITEM_TENSOR, err);
	if (!i)
		return NULL;
	i->t = (struct rg_tensor){ .dtype = t, .shape = *shape, .data = nothing };
	if (bytes == 0)
		return i;
	i->memory = i->t.data = rg_alloc_aligned(64, (size_t)bytes);
	if (!i->memory) {
		rg_error_nomem(err, (unsigned long)bytes);
		rg_free(i);
		return NULL;
	}
	return i;
}

struct rg_item *rg_item_copy(const struct rg_tensor *t, struct rg_error *err)
{
	struct rg_item *i = rg_item_new(t->dtype, &t->shape, 0, err);

	if (i && i->memory)
		memcpy(i->memory, t->data, (size_t)rg_tensor_bytes(t->dtype, &t->shape));
	return i;
}

struct rg_item *rg_item_borrow(const struct rg_tensor *t, bool lasting, struct rg_error *err)
{
	struct rg_item *i = make(RG_ITEM_TENSOR, err);

	if (!i)
		return NULL;
	i->t = *t;
	if (!i->t.data)
		i->t.data = nothing;
	i->lasting = lasting || i->t.data == nothing;
	return i;
}

struct rg_item *rg_item_scalar(enum rg_dtype t, int64_t v, struct rg_error *err)
{
	const struct rg_shape shape = { 0 };
	struct rg_item *i = rg_item_new(t, &shape, 0, err);

	if (i && t == RG_BOOL)
		*(uint8_t *)i->memory = v != 0;
	else if (i)
		*(int64_t *)i->memory = v;
	return i;
}

struct rg_item *rg_item_none(struct rg_error *err)
{
	return make(RG_ITEM_NONE, err);
}

struct rg_item *rg_item_sequence(enum rg_dtype t, int n, struct rg_item *const *v, struct rg_error *err)
{
	struct rg_item *i = make(RG_ITEM_SEQUENCE, err);
	struct rg_item **list = i ? rg_calloc(n > 0 ? (size_t)n : 1, sizeof(*list)) : NULL;

	if (!list) {
		if (i)
			rg_error_nomem(err, (size_t)n * sizeof(*list));
		for (int k = 0; v && k < n; k++)
			rg_item_unref(v[k]);
		rg_free(i);
		return NULL;
	}
	if (v && n > 0)
		memcpy(list, v, (size_t)n * sizeof(*list));
	i->t.dtype = t;
	i->n = n;
	i->v = list;
	return i;
}

int64_t rg_item_bytes(const struct rg_item *i)
{
	int64_t sum = (int64_t)sizeof(*i), part;

	if (i->memory)
		sum += rg_tensor_bytes(i->t.dtype, &i->t.shape);
	for (int k = 0; k < i->n; k++) {
		part = i->v[k] ? rg_item_bytes(i->v[k]) : 0;
		if (__builtin_add_overflow(sum, part + (int64_t)sizeof(i->v[k]), &sum))
			return INT64_MAX;
	}
	return sum;
}

struct rg_item *rg_item_ref(struct rg_item *i)
{
	i->refs++;
	return i;
}

/* A sequence holds tensors only, so this goes one level deep. */
void rg_item_unref(struct rg_item *i)
{
	if (!i || --i->refs > 0)
		return;
	for (int k = 0; k < i->n; k++)
		rg_item_unref(i->v[k]);
	rg_free(i->v);
	rg_free(i->memory);
	rg_free(i);
}

struct rg_item *rg_item_own(struct rg_item *i, struct rg_error *err)
{
	struct rg_item *copy;

	if (i->kind != RG_ITEM_TENSOR || i->memory || i->lasting)
		return i;
	copy = rg_item_copy(&i->t, err);
	rg_item_unref(i);
	return copy;
}
