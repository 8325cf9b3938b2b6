/*
 * TopK, CumSum, CumProd: along one axis, line by line.
 *
 * TopK keeps the k best seen so far in a heap with the worst on top, in
 * scratch, and takes it apart into order. Elements become 64-bit keys that
 * order as the elements do; NaN orders above everything, as numpy sorts it.
 * Among equals the lower index wins.
 */
#include <string.h>

#include "graph/op-args.h"
#include "kernels/ref/copy.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

struct item {
	uint64_t key;
	int64_t index;
};

static uint64_t key_of(const struct rg_tensor *t, int64_t i, bool largest)
{
	const uint64_t sign = UINT64_C(1) << 63;
	uint64_t u;

	if (rg_dtype_is_float(t->dtype)) {
		double v = rg_ref_get(t, i) + 0.0; /* -0 becomes 0: they are equal */

		memcpy(&u, &v, sizeof(u));
		if (v != v)
			u = UINT64_MAX;
		else
			u = u & sign ? ~u : u | sign;
	} else if (t->dtype == RG_U64) {
		u = ((const uint64_t *)t->data)[i];
	} else if (t->dtype == RG_I64) {
		u = (uint64_t)((const int64_t *)t->data)[i] ^ sign;
	} else { /* narrower integers are exact in double */
		u = (uint64_t)(int64_t)rg_ref_get(t, i) ^ sign;
	}
	return largest ? u : ~u;
}

static bool better(const struct item *a, const struct item *b)
{
	return a->key != b->key ? a->key > b->key : a->index < b->index;
}

/* Puts `v` into the hole at `at` of a heap of n whose worst item is on top. */
static void sift_down(struct item *heap, int64_t n, int64_t at, struct item v)
{
	for (;;) {
		int64_t child = 2 * at + 1;

		if (child >= n)
			break;
		if (child + 1 < n && better(&heap[child], &heap[child + 1]))
			child++;
		if (!better(&v, &heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = v;
}

/* The k best of a line, best first. */
static void pick(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, bool largest,
		 struct item *heap, int64_t k)
{
	for (int64_t i = 0; i < n; i++) {
		struct item v = { key_of(t, first + i * stride, largest), i };

		if (i < k) {
			heap[i] = v;
			if (i == k - 1)
				for (int64_t h = k / 2 - 1; h >= 0; h--)
					sift_down(heap, k, h, heap[h]);
		} else if (better(&v, &heap[0])) {
			sift_down(heap, k, 0, v);
		}
	}
	for (int64_t left = k - 1; left > 0; left--) {
		struct item worst = heap[0];

		sift_down(heap, left, 0, heap[left]);
		heap[left] = worst;
	}
}

static int axis_of(const struct rg_call *c)
{
	return rg_args_axis(rg_node_int(c->node, "axis", -1), c->in[0].shape.rank);
}

/* k as planned: the output says it. */
static int64_t k_of(const struct rg_call *c)
{
	const struct rg_tensor *t = c->out[0].dtype != RG_UNDEFINED ? &c->out[0] : &c->out[1];

	return t->shape.dim[axis_of(c)];
}

static bool top_k_supports(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_NUM) &&
	       (c->out[0].dtype != RG_UNDEFINED || (c->node->n_out > 1 && c->out[1].dtype != RG_UNDEFINED));
}

static size_t top_k_scratch(const struct rg_call *c, int lanes)
{
	return (size_t)k_of(c) * sizeof(struct item);
}

static int top_k(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	bool largest = c->node->version < 11 || rg_node_int(c->node, "largest", 1) != 0;
	bool values = c->out[0].dtype != RG_UNDEFINED;
	bool indices = c->node->n_out > 1 && c->out[1].dtype != RG_UNDEFINED;
	int axis = axis_of(c);
	int64_t outer = rg_shape_count_range(s, 0, axis), inner = rg_shape_count_range(s, axis + 1, s->rank);
	int64_t n = s->dim[axis], k = k_of(c), size = (int64_t)rg_dtype_bytes(c->in[0].dtype);
	struct item *heap = c->scratch;

	for (int64_t line = 0; line < outer * inner && k > 0; line++) {
		int64_t from = line / inner * n * inner + line % inner, to = line / inner * k * inner + line % inner;

		pick(&c->in[0], from, inner, n, largest, heap, k);
		for (int64_t i = 0; i < k; i++) {
			int64_t at = to + i * inner;

			if (values)
				memcpy((char *)c->out[0].data + at * size, (const char *)c->in[0].data +
				       (from + heap[i].index * inner) * size, (size_t)size);
			if (indices)
				((int64_t *)c->out[1].data)[at] = heap[i].index;
		}
	}
	return 0;
}

/* ---- CumSum, CumProd ---- */

/* One line: integers wrap around, floats gather in double and round once each. */
static void fold_line(const struct rg_call *c, int64_t first, int64_t step, int64_t n, bool exclusive, bool product)
{
	bool is_float = rg_dtype_is_float(c->in[0].dtype), wide = rg_dtype_bytes(c->in[0].dtype) == 8;
	uint64_t itotal = product, ibefore, x;
	double total = product, before, v;

	for (int64_t i = 0; i < n; i++) {
		int64_t at = first + i * step;

		if (is_float) {
			before = total;
			v = rg_ref_get(&c->in[0], at);
			total = product ? total * v : total + v;
			rg_ref_set(&c->out[0], at, exclusive ? before : total);
			continue;
		}
		ibefore = itotal;
		x = wide ? ((const uint64_t *)c->in[0].data)[at] : ((const uint32_t *)c->in[0].data)[at];
		itotal = product ? itotal * x : itotal + x;
		if (wide)
			((uint64_t *)c->out[0].data)[at] = exclusive ? ibefore : itotal;
		else
			((uint32_t *)c->out[0].data)[at] = (uint32_t)(exclusive ? ibefore : itotal);
	}
}

static int cumulate(const struct rg_call *c, bool product, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	bool exclusive = rg_node_int(c->node, "exclusive", 0) != 0, reverse = rg_node_int(c->node, "reverse", 0) != 0;
	int64_t asked, outer, inner, n;
	int axis;

	if (s->rank == 0) { /* one element, no axis */
		fold_line(c, 0, 1, 1, exclusive, product);
		return 0;
	}
	if (rg_args_scalar(&c->in[1], &asked) || (axis = rg_args_axis(asked, s->rank)) < 0)
		return rg_error_set(err, -ERANGE, "the axis is outside of a tensor of rank %d", s->rank);
	outer = rg_shape_count_range(s, 0, axis);
	inner = rg_shape_count_range(s, axis + 1, s->rank);
	n = s->dim[axis];
	for (int64_t line = 0; line < outer * inner && n > 0; line++) {
		int64_t first = line / inner * n * inner + line % inner;

		if (reverse)
			fold_line(c, first + (n - 1) * inner, -inner, n, exclusive, product);
		else
			fold_line(c, first, inner, n, exclusive, product);
	}
	return 0;
}

static int cum_sum(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return cumulate(c, false, err);
}

static int cum_prod(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return cumulate(c, true, err);
}

static bool cumulate_supports(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT | RG_BIT(RG_I32) | RG_BIT(RG_I64) | RG_BIT(RG_U32) |
			 RG_BIT(RG_U64));
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "TopK", .domain = "", .name = "ref", .supports = top_k_supports,
	  .scratch_bytes = top_k_scratch, .run = top_k },
	{ .op_type = "CumSum", .domain = "", .name = "ref", .supports = cumulate_supports, .run = cum_sum },
	{ .op_type = "CumProd", .domain = "", .name = "ref", .supports = cumulate_supports, .run = cum_prod },
};
RG_KERNEL_TABLE(rg_kernels_ref_topk, kernels);
