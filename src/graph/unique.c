/* Unique: arguments and search; see unique.h. */
#include "graph/unique.h"

#include <inttypes.h>
#include <string.h>

#include "graph/op-args.h"
#include "graph/op-types.h"
#include "graph/text.h"

int rg_unique_resolve(const struct rg_node *n, const struct rg_tensor *x, struct rg_unique *a,
		      struct rg_error *err)
{
	const struct rg_shape *s = &x->shape;
	int64_t axis = rg_node_int(n, "axis", 0);

	memset(a, 0, sizeof(*a));
	if (!rg_in_set(x->dtype, RG_SET_NUM | RG_BIT(RG_BOOL) | RG_BIT(RG_STRING)))
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s of type %s is not supported", n->op_type,
				    rg_dtype_name(x->dtype));
	a->sorted = rg_node_int(n, "sorted", 1) != 0;
	a->axis = -1;
	a->items = rg_shape_count(s);
	a->outer = a->inner = 1;
	if (!rg_node_attr(n, "axis"))
		return 0;
	a->axis = rg_args_axis(axis, s->rank);
	if (a->axis < 0)
		return rg_error_set(err, -EINVAL, "%s: axis %" PRId64 " is outside of a tensor of rank %d",
				    n->op_type, axis, s->rank);
	a->items = s->dim[a->axis];
	a->outer = rg_shape_count_range(s, 0, a->axis);
	a->inner = rg_shape_count_range(s, a->axis + 1, s->rank);
	a->blank = a->outer == 0 || a->inner == 0;
	return 0;
}

/* A number that orders as the elements do. */
static uint64_t key_of(const struct rg_tensor *t, int64_t i)
{
	const uint64_t sign = UINT64_C(1) << 63;
	uint64_t u;
	double v;

	switch (t->dtype) {
	case RG_U64: return ((const uint64_t *)t->data)[i];
	case RG_U32: return ((const uint32_t *)t->data)[i];
	case RG_U16: return ((const uint16_t *)t->data)[i];
	case RG_BOOL:
	case RG_U8: return ((const uint8_t *)t->data)[i];
	case RG_I64: return (uint64_t)((const int64_t *)t->data)[i] ^ sign;
	case RG_I32: return (uint64_t)(int64_t)((const int32_t *)t->data)[i] ^ sign;
	case RG_I16: return (uint64_t)(int64_t)((const int16_t *)t->data)[i] ^ sign;
	case RG_I8: return (uint64_t)(int64_t)((const int8_t *)t->data)[i] ^ sign;
	case RG_F64: v = ((const double *)t->data)[i]; break;
	case RG_F16: v = (double)rg_f16_to_f32(((const uint16_t *)t->data)[i]); break;
	case RG_BF16: v = (double)rg_bf16_to_f32(((const uint16_t *)t->data)[i]); break;
	default: v = (double)((const float *)t->data)[i]; break;
	}
	if (v != v)
		return UINT64_MAX;
	v += 0.0; /* -0 becomes 0 */
	memcpy(&u, &v, sizeof(u));
	return u & sign ? ~u : u | sign;
}

static int compare_elements(const struct rg_tensor *x, int64_t i, int64_t k)
{
	uint64_t p, q;

	if (x->dtype == RG_STRING)
		return strcmp(rg_text_at(x, i), rg_text_at(x, k));
	p = key_of(x, i);
	q = key_of(x, k);
	return (p > q) - (p < q);
}

static int compare(const struct rg_unique *a, const struct rg_tensor *x, int64_t i, int64_t k)
{
	for (int64_t o = 0; o < a->outer; o++) {
		for (int64_t e = 0; e < a->inner; e++) {
			int c = compare_elements(x, (o * a->items + i) * a->inner + e,
						 (o * a->items + k) * a->inner + e);

			if (c)
				return c;
		}
	}
	return 0;
}

/* Among equals the later item is the greater one: the order is total. */
static bool before(const struct rg_unique *a, const struct rg_tensor *x, int64_t i, int64_t k)
{
	int c = compare(a, x, i, k);

	return c ? c < 0 : i < k;
}

/* Heap with the greatest item on top: puts v into the hole at `at` of n. */
static void sift_down(const struct rg_unique *a, const struct rg_tensor *x, int64_t *heap, int64_t n, int64_t at,
		      int64_t v)
{
	for (;;) {
		int64_t child = 2 * at + 1;

		if (child >= n)
			break;
		if (child + 1 < n && before(a, x, heap[child], heap[child + 1]))
			child++;
		if (!before(a, x, v, heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = v;
}

static void sort(const struct rg_unique *a, const struct rg_tensor *x, int64_t *order)
{
	for (int64_t i = 0; i < a->items; i++)
		order[i] = i;
	for (int64_t i = a->items / 2 - 1; i >= 0; i--)
		sift_down(a, x, order, a->items, i, order[i]);
	for (int64_t left = a->items - 1; left > 0; left--) {
		int64_t greatest = order[0];

		sift_down(a, x, order, left, 0, order[left]);
		order[left] = greatest;
	}
}

size_t rg_unique_scratch_bytes(const struct rg_unique *a)
{
	return a->blank ? 0 : 3 * (size_t)a->items * sizeof(int64_t);
}

int64_t rg_unique_run(const struct rg_unique *a, const struct rg_tensor *x, void *scratch, const int64_t **first,
		      const int64_t **place)
{
	int64_t *order = scratch, *group, *at, count = 0;

	if (a->blank)
		return a->items > 0;
	if (a->items == 0) { /* and no scratch */
		*first = *place = NULL;
		return 0;
	}
	group = order + a->items;
	at = group + a->items;
	*first = group;
	*place = at;
	sort(a, x, order);
	for (int64_t i = 0; i < a->items; i++) {
		int64_t item = order[i];

		if (i > 0 && compare(a, x, order[i - 1], item) == 0) {
			group[item] = group[order[i - 1]];
			continue;
		}
		group[item] = item;
		at[item] = count++;
	}
	if (!a->sorted) {
		count = 0;
		for (int64_t item = 0; item < a->items; item++)
			if (group[item] == item)
				at[item] = count++;
	}
	return count;
}
