/* Operators that move data by index, or pick it: shapes and costs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/op-args.h"
#include "graph/op-families.h"

static bool is_index(const struct rg_value *v)
{
	return v->dtype == RG_I32 || v->dtype == RG_I64;
}

static int need_index(struct rg_infer *c, int i, struct rg_error *err)
{
	if (is_index(c->in[i]))
		return 0;
	return rg_infer_fail(c, err, "the indices must be int32 or int64, not %s", rg_dtype_name(c->in[i]->dtype));
}

/* A list of dimensions that may grow beyond what a shape holds. */
static int append(struct rg_infer *c, struct rg_shape *to, const struct rg_shape *s, int from, int end,
		  struct rg_error *err)
{
	for (int i = from; i < end; i++) {
		if (to->rank == RG_MAX_RANK)
			return rg_infer_fail(c, err, "the output would have more than %d dimensions", RG_MAX_RANK);
		to->dim[to->rank++] = s->dim[i];
	}
	return 0;
}

/* Value of an input that holds one number. */
static int one_number(struct rg_infer *c, int i, int64_t *v, struct rg_error *err)
{
	struct rg_tensor t = { c->in[i]->dtype, c->in[i]->shape, (void *)c->in[i]->data };
	int rc;

	if (!rg_infer_known(c, i)) {
		c->need_value = i;
		return rg_error_set(err, RG_ENEED_VALUE, "%s: the output shape depends on the value of input %d ('%s')",
				    c->node->op_type, i, c->in[i]->name);
	}
	rc = rg_args_scalar(&t, v);
	return rc ? rg_infer_fail(c, err, "input %d ('%s') must hold one whole number", i, c->in[i]->name) : 0;
}

/* ---- gathering ---- */

static int infer_gather(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape, *idx = &c->in[1]->shape;
	struct rg_shape to = { 0 };
	int axis = rg_infer_axis(c, rg_node_int(c->node, "axis", 0), s->rank, err);

	if (axis < 0 || need_index(c, 1, err) || append(c, &to, s, 0, axis, err) ||
	    append(c, &to, idx, 0, idx->rank, err) || append(c, &to, s, axis + 1, s->rank, err))
		return err->code;
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

static int compare_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Distinct rows that known indices name; -1 when there is no memory to tell. */
static int64_t distinct(const struct rg_tensor *t, int64_t n, int64_t dim)
{
	int64_t *v = rg_realloc_array(NULL, (size_t)n, sizeof(*v)), count = 0;

	if (!v)
		return -1;
	for (int64_t i = 0; i < n; i++) {
		v[i] = t->dtype == RG_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
		if (v[i] < 0)
			v[i] += dim;
	}
	qsort(v, (size_t)n, sizeof(*v), compare_i64);
	for (int64_t i = 0; i < n; i++)
		count += i == 0 || v[i] != v[i - 1];
	rg_free(v);
	return count;
}

/* Reads the rows it touches: known when the indices are, else at most one an index. */
static void cost_gather(const struct rg_cost_in *c, struct rg_cost *out)
{
	const struct rg_tensor *data = &c->in[0], *idx = &c->in[1];
	int axis = rg_args_axis(rg_node_int(c->node, "axis", 0), data->shape.rank);
	int64_t n = rg_shape_count(&idx->shape), all = rg_tensor_bytes(data->dtype, &data->shape);
	int64_t dim, rows;

	if (axis < 0 || n < 0 || all < 0)
		return;
	dim = data->shape.dim[axis];
	rows = n < dim ? n : dim;
	if (idx->data && n > 0) {
		int64_t exact = distinct(idx, n, dim);

		rows = exact >= 0 && exact < rows ? exact : rows;
	}
	/* all / dim is exact: dim is one of its factors (but for packed types). */
	out->read_bytes = rg_tensor_bytes(idx->dtype, &idx->shape) + (dim ? all / dim * rows : 0);
}

/* Indices may repeat, so at most what is written, and never more than there is. */
static void cost_gather_elements(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t all = rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape);
	int64_t taken = rg_tensor_bytes(c->out[0].dtype, &c->out[0].shape);
	int64_t idx = rg_tensor_bytes(c->in[1].dtype, &c->in[1].shape);

	if (all >= 0 && taken >= 0 && idx >= 0)
		out->read_bytes = idx + (taken < all ? taken : all);
}

static int infer_gather_elements(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape, *idx = &c->in[1]->shape;
	int axis = rg_infer_axis(c, rg_node_int(c->node, "axis", 0), s->rank, err);

	if (axis < 0 || need_index(c, 1, err))
		return err->code;
	if (idx->rank != s->rank)
		return rg_infer_fail(c, err, "data and indices differ in rank: %d and %d", s->rank, idx->rank);
	for (int i = 0; i < s->rank; i++)
		if (i != axis && idx->dim[i] > s->dim[i])
			return rg_infer_fail(c, err, "dimension %d of the indices is larger than that of the data", i);
	rg_infer_out(c, 0, c->in[0]->dtype, idx);
	return 0;
}

/* The last dimension of the indices of GatherND and ScatterND. */
static int nd_depth(struct rg_infer *c, int batch, int *depth, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape, *idx = &c->in[1]->shape;

	if (need_index(c, 1, err))
		return err->code;
	if (batch < 0 || idx->rank < batch + 1 || s->rank < batch ||
	    idx->dim[idx->rank - 1] > s->rank - batch || idx->dim[idx->rank - 1] < 1)
		return rg_infer_fail(c, err, "the indices do not fit data of rank %d", s->rank);
	for (int i = 0; i < batch; i++)
		if (s->dim[i] != idx->dim[i])
			return rg_infer_fail(c, err, "batch dimension %d differs between data and indices", i);
	*depth = (int)idx->dim[idx->rank - 1];
	return 0;
}

static int infer_gather_nd(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape, *idx = &c->in[1]->shape;
	int64_t batch = c->node->version >= 12 ? rg_node_int(c->node, "batch_dims", 0) : 0;
	struct rg_shape to = { 0 };
	int depth = 0;

	if (batch < 0 || batch > RG_MAX_RANK)
		return rg_infer_fail(c, err, "batch_dims is %" PRId64, batch);
	if (nd_depth(c, (int)batch, &depth, err) || append(c, &to, idx, 0, idx->rank - 1, err) ||
	    append(c, &to, s, (int)batch + depth, s->rank, err))
		return err->code;
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

/* ---- scattering ---- */

static int check_reduction(struct rg_infer *c, struct rg_error *err)
{
	static const char *const known[] = { "none", "add", "mul", "max", "min" };
	const char *r = rg_node_string(c->node, "reduction", "none");
	size_t n = c->node->version < 16 ? 1 : c->node->version < 18 ? 3 : 5;

	for (size_t i = 0; i < n; i++)
		if (strcmp(r, known[i]) == 0)
			return 0;
	return rg_infer_fail(c, err, "reduction '%s' is not known to version %d", r, c->node->version);
}

static int infer_scatter_elements(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape, *idx = &c->in[1]->shape;
	int axis = rg_infer_axis(c, rg_node_int(c->node, "axis", 0), s->rank, err);

	if (axis < 0 || need_index(c, 1, err) || check_reduction(c, err))
		return err->code;
	if (c->in[2]->dtype != c->in[0]->dtype)
		return rg_infer_fail(c, err, "data and updates differ in type");
	if (idx->rank != s->rank || !rg_shape_equal(idx, &c->in[2]->shape))
		return rg_infer_fail(c, err, "indices and updates must have one shape, of the rank of the data");
	for (int i = 0; i < s->rank; i++)
		if (i != axis && idx->dim[i] > s->dim[i])
			return rg_infer_fail(c, err, "dimension %d of the indices is larger than that of the data", i);
	return rg_infer_same(c, err);
}

static int infer_scatter_nd(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape, *idx = &c->in[1]->shape;
	struct rg_shape want = { 0 };
	char a[160], b[160];
	int depth = 0;

	if (nd_depth(c, 0, &depth, err) || check_reduction(c, err) ||
	    append(c, &want, idx, 0, idx->rank - 1, err) || append(c, &want, s, depth, s->rank, err))
		return err->code;
	if (c->in[2]->dtype != c->in[0]->dtype)
		return rg_infer_fail(c, err, "data and updates differ in type");
	if (!rg_shape_equal(&want, &c->in[2]->shape))
		return rg_infer_fail(c, err, "updates have shape %s, %s is needed", rg_shape_text(a, &c->in[2]->shape),
				     rg_shape_text(b, &want));
	return rg_infer_same(c, err);
}

/* One operation for each update that is reduced. */
static void cost_scatter(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t n = rg_shape_count(&c->in[2].shape);

	if (strcmp(rg_node_string(c->node, "reduction", "none"), "none") == 0)
		return;
	if (rg_dtype_is_float(c->in[0].dtype))
		out->flops = n;
	else
		out->iops = n;
}

/* ---- picking ---- */

static int infer_one_hot(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape;
	struct rg_shape to = { 0 }, depth = { .rank = 1 };
	int axis = rg_infer_axis(c, rg_node_int(c->node, "axis", -1), s->rank + 1, err);
	int rc;

	if (axis < 0)
		return axis;
	if (c->in[2]->shape.rank != 1 || c->in[2]->shape.dim[0] != 2)
		return rg_infer_fail(c, err, "values must be the two numbers [off, on]");
	rc = one_number(c, 1, &depth.dim[0], err);
	if (rc)
		return rc;
	if (depth.dim[0] < 0)
		return rg_infer_fail(c, err, "the depth is %" PRId64, depth.dim[0]);
	if (append(c, &to, s, 0, axis, err) || append(c, &to, &depth, 0, 1, err) ||
	    append(c, &to, s, axis, s->rank, err))
		return err->code;
	rg_infer_out(c, 0, c->in[2]->dtype, &to);
	return 0;
}

static int infer_top_k(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = c->in[0]->shape;
	int axis = rg_infer_axis(c, rg_node_int(c->node, "axis", -1), s.rank, err), rc;
	int64_t k = rg_node_int(c->node, "k", -1);

	if (axis < 0)
		return axis;
	if (c->node->version >= 10) {
		if (c->node->n_in < 2 || !c->in[1])
			return rg_infer_fail(c, err, "input 1 is missing");
		rc = one_number(c, 1, &k, err);
		if (rc)
			return rc;
	}
	if (k < 0 || k > s.dim[axis])
		return rg_infer_fail(c, err, "the largest %" PRId64 " of %" PRId64 " are asked for", k, s.dim[axis]);
	s.dim[axis] = k;
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	rg_infer_out(c, 1, RG_I64, &s);
	return 0;
}

/* Compress and NonZero have outputs as long as their data says. */
static int need_data(struct rg_infer *c, int input, struct rg_error *err)
{
	if (rg_infer_known(c, input))
		return 0;
	c->need_value = input;
	return rg_error_set(err, RG_ENEED_VALUE, "%s: the output shape depends on the value of input %d ('%s')",
			    c->node->op_type, input, c->in[input]->name);
}

static int infer_compress(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = c->in[0]->shape;
	int64_t n = rg_shape_count(&c->in[1]->shape), kept = 0;
	const unsigned char *condition;
	int axis = 0;

	if (c->in[1]->dtype != RG_BOOL || c->in[1]->shape.rank != 1)
		return rg_infer_fail(c, err, "the condition must be a list of booleans");
	if (rg_node_attr(c->node, "axis")) {
		axis = rg_infer_axis(c, rg_node_int(c->node, "axis", 0), s.rank, err);
		if (axis < 0)
			return axis;
	} else {
		int64_t all = rg_shape_count(&s);

		s = rg_shape_of(1, &all);
	}
	if (need_data(c, 1, err))
		return err->code;
	condition = c->in[1]->data;
	for (int64_t i = 0; i < n && i < s.dim[axis]; i++)
		kept += condition[i] != 0;
	s.dim[axis] = kept;
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	return 0;
}

static int infer_non_zero(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_value *v = c->in[0];
	struct rg_shape to = { .rank = 2, .dim = { v->shape.rank, 0 } };
	size_t size = rg_dtype_bytes(v->dtype);
	int64_t n = rg_shape_count(&v->shape);

	if (size == 0 || size > 8 || v->dtype == RG_STRING)
		return rg_infer_fail(c, err, "type %s is not supported", rg_dtype_name(v->dtype));
	if (need_data(c, 0, err))
		return err->code;
	for (int64_t i = 0; i < n; i++)
		to.dim[1] += rg_args_is_nonzero(v->dtype, (const char *)v->data + i * (int64_t)size);
	rg_infer_out(c, 0, RG_I64, &to);
	return 0;
}

static int infer_reverse_sequence(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape, *len = &c->in[1]->shape;
	int64_t batch = rg_node_int(c->node, "batch_axis", 1), time = rg_node_int(c->node, "time_axis", 0);

	if (s->rank < 2 || !((batch == 0 && time == 1) || (batch == 1 && time == 0)))
		return rg_infer_fail(c, err, "batch and time axis must be 0 and 1, or 1 and 0");
	if (c->in[1]->dtype != RG_I64 || len->rank != 1 || len->dim[0] != s->dim[batch])
		return rg_infer_fail(c, err, "there must be one int64 length for each of the %" PRId64 " sequences",
				     s->dim[batch]);
	return rg_infer_same(c, err);
}

static int infer_cum_sum(struct rg_infer *c, struct rg_error *err)
{
	if (need_index(c, 1, err))
		return err->code;
	if (rg_shape_count(&c->in[1]->shape) != 1)
		return rg_infer_fail(c, err, "the axis must be one number");
	return rg_infer_same(c, err);
}

/* One operation an element but the first of each line; the axis may be unknown,
 * then one an element is the closest bound. */
static void cost_cum_sum(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t n = rg_shape_count(&c->in[0].shape), axis;
	int a = c->in[1].data && rg_args_scalar(&c->in[1], &axis) == 0 ?
		rg_args_axis(axis, c->in[0].shape.rank) : -1;

	if (a < 0 || c->in[0].shape.dim[a] == 0)
		return;
	n -= n / c->in[0].shape.dim[a];
	out->flops = rg_dtype_is_float(c->in[0].dtype) ? n : 0;
	out->iops = rg_dtype_is_float(c->in[0].dtype) ? 0 : n;
	out->sfu = 0;
}

#define MOVE RG_KIND_MOVE

const struct rg_op rg_ops_index[] = {
	{ "", "Gather", MOVE, 0, 2, 2, 1, 1, { 1, 11, 13 }, 1, 13, infer_gather, cost_gather },
	{ "", "GatherElements", MOVE, 0, 2, 2, 1, 1, { 11, 13 }, 11, 13, infer_gather_elements,
	  cost_gather_elements },
	{ "", "GatherND", MOVE, 0, 2, 2, 1, 1, { 11, 12, 13 }, 11, 13, infer_gather_nd, cost_gather_elements },
	{ "", "Scatter", MOVE, 0, 3, 3, 1, 1, { 9, 11 }, 9, 11, infer_scatter_elements, NULL },
	{ "", "ScatterElements", MOVE, 0, 3, 3, 1, 1, { 11, 13, 16, 18 }, 11, 18, infer_scatter_elements,
	  cost_scatter },
	{ "", "ScatterND", MOVE, 0, 3, 3, 1, 1, { 11, 13, 16, 18 }, 11, 18, infer_scatter_nd, cost_scatter },
	{ "", "OneHot", MOVE, 0, 3, 3, 1, 1, { 9, 11, 28 }, 9, 28, infer_one_hot, NULL },
	{ "", "TopK", RG_KIND_OTHER, 0, 1, 2, 1, 2, { 1, 10, 11, 24 }, 1, 24, infer_top_k, NULL },
	{ "", "Compress", MOVE, 0, 2, 2, 1, 1, { 9, 11, 28 }, 9, 28, infer_compress, cost_gather_elements },
	{ "", "NonZero", MOVE, 0, 1, 1, 1, 1, { 9, 13 }, 9, 13, infer_non_zero, NULL },
	{ "", "ReverseSequence", MOVE, 0, 2, 2, 1, 1, { 10, 28 }, 10, 28, infer_reverse_sequence, NULL },
	{ "", "CumSum", RG_KIND_OTHER, 0, 2, 2, 1, 1, { 11, 14 }, 11, 14, infer_cum_sum, cost_cum_sum },
	{ "", "CumProd", RG_KIND_OTHER, 0, 2, 2, 1, 1, { 26 }, 26, 26, infer_cum_sum, cost_cum_sum },
};
RG_OP_FAMILY_END(index);
