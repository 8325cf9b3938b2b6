/* Writing by index: ScatterElements, its old name Scatter, ScatterND. The
 * output is the data with the updates put in, in order, so later ones win. */
#include <string.h>

#include "graph/op-args.h"
#include "kernels/ref/copy.h"
#include "kernels/ref/index.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

enum reduction { NONE, ADD, MUL, MAX, MIN };

static enum reduction reduction_of(const struct rg_node *n)
{
	static const char *const names[] = { "none", "add", "mul", "max", "min" };
	const char *s = rg_node_string(n, "reduction", "none");

	for (int i = 0; i < 5; i++)
		if (strcmp(s, names[i]) == 0)
			return (enum reduction)i;
	return NONE;
}

/* Integers wrap around: as unsigned, where that is defined. */
#define REDUCE_INT(TYPE, CTYPE) \
	case TYPE: { \
		CTYPE a, b; \
		memcpy(&a, (const CTYPE *)to->data + at, sizeof(a)); \
		memcpy(&b, (const CTYPE *)from->data + i, sizeof(b)); \
		switch (r) { \
		case ADD: a = (CTYPE)((uint64_t)a + (uint64_t)b); break; \
		case MUL: a = (CTYPE)((uint64_t)a * (uint64_t)b); break; \
		case MAX: a = a > b ? a : b; break; \
		default: a = a < b ? a : b; break; \
		} \
		((CTYPE *)to->data)[at] = a; \
		break; \
	}

static double reduce_float(enum reduction r, double a, double b)
{
	switch (r) {
	case ADD: return a + b;
	case MUL: return a * b;
	case MAX: return a != a || a > b ? a : b; /* NaN stays */
	default: return a != a || a < b ? a : b;
	}
}

static void reduce(enum reduction r, const struct rg_tensor *from, int64_t i, const struct rg_tensor *to,
		   int64_t at)
{
	switch (to->dtype) {
	RG_FOR_INTS(REDUCE_INT)
	case RG_BOOL: {
		uint8_t *p = (uint8_t *)to->data + at, b = ((const uint8_t *)from->data)[i];

		*p = r == ADD || r == MAX ? *p | b : *p & b;
		break;
	}
	default:
		/* float in double: one rounding, the same as in float */
		rg_ref_set(to, at, reduce_float(r, rg_ref_get(to, at), rg_ref_get(from, i)));
		break;
	}
}

/* n updates from element i on to element `at` on. */
static void put(const struct rg_call *c, enum reduction r, int64_t i, int64_t at, int64_t n)
{
	int64_t size = (int64_t)rg_dtype_bytes(c->in[0].dtype);

	if (r == NONE) {
		memcpy((char *)c->out[0].data + at * size, (const char *)c->in[2].data + i * size,
		       (size_t)(n * size));
		return;
	}
	for (int64_t k = 0; k < n; k++)
		reduce(r, &c->in[2], i + k, &c->out[0], at + k);
}

static void copy_data(const struct rg_call *c)
{
	int64_t bytes = rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape);

	if (bytes > 0)
		memcpy(c->out[0].data, c->in[0].data, (size_t)bytes);
}

static int scatter_elements(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape, *idx = &c->in[1].shape;
	int axis = rg_args_axis(rg_node_int(c->node, "axis", 0), s->rank);
	int64_t stride[RG_MAX_RANK], pos[RG_MAX_RANK] = { 0 }, n = rg_shape_count(idx), at;
	enum reduction r = reduction_of(c->node);

	copy_data(c);
	rg_shape_strides(s, stride);
	for (int64_t i = 0; i < n; i++) {
		int64_t to = 0;

		if (rg_index_at(&c->in[1], i, s->dim[axis], &at, err))
			return err->code;
		for (int d = 0; d < s->rank; d++)
			to += (d == axis ? at : pos[d]) * stride[d];
		put(c, r, i, to, 1);
		rg_index_next(idx, pos);
	}
	return 0;
}

static int scatter_nd(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape, *idx = &c->in[1].shape;
	int depth = (int)idx->dim[idx->rank - 1];
	int64_t n = rg_shape_count_range(idx, 0, idx->rank - 1);
	int64_t row = rg_shape_count_range(s, depth, s->rank), to;
	enum reduction r = reduction_of(c->node);

	copy_data(c);
	if (row == 0)
		return 0;
	for (int64_t i = 0; i < n; i++) {
		if (rg_index_nd(&c->in[1], i * depth, depth, s, 0, &to, err))
			return err->code;
		put(c, r, i * row, to, row);
	}
	return 0;
}

static bool supports(const struct rg_call *c)
{
	if (!rg_copy_supports(c))
		return false;
	return reduction_of(c->node) == NONE || c->in[0].dtype == RG_BOOL ||
	       rg_in_set(c->in[0].dtype, RG_SET_NUM);
}

#define SCATTER(NAME, RUN) { .op_type = NAME, .domain = "", .name = "ref", .supports = supports, .run = RUN }

static const struct rg_kernel kernels[] = {
	SCATTER("Scatter", scatter_elements),
	SCATTER("ScatterElements", scatter_elements),
	SCATTER("ScatterND", scatter_nd),
};
RG_KERNEL_TABLE(rg_kernels_ref_scatter, kernels);
