/* Operators that move or reshape data and compute nothing: shapes and costs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/op-args.h"
#include "graph/op-families.h"

enum { MAX_ARG_IN = 5 }; /* inputs that rg_args_* look at */

/* Inputs as tensors, for rg_args_*. An input without elements is always known. */
static const struct rg_tensor *tensors(const struct rg_infer *c, struct rg_tensor t[MAX_ARG_IN])
{
	memset(t, 0, MAX_ARG_IN * sizeof(*t));
	for (int i = 0; i < c->node->n_in && i < MAX_ARG_IN; i++) {
		if (!c->in[i])
			continue;
		t[i].dtype = c->in[i]->dtype;
		t[i].shape = c->in[i]->shape;
		if (rg_infer_known(c, i))
			t[i].data = (void *)c->in[i]->data;
	}
	return t;
}

/* A list that is an attribute in old versions and input 1 in new ones. -1: not given. */
static int list_arg(struct rg_infer *c, const char *attr, int input_since, int64_t *vals, int cap,
		    struct rg_error *err)
{
	const int64_t *list;
	int n;

	if (c->node->version >= input_since) {
		if (c->node->n_in < 2 || !c->in[1])
			return -1;
		return rg_infer_ints(c, 1, vals, cap, err);
	}
	n = rg_node_ints(c->node, attr, &list);
	if (n > cap)
		return rg_infer_fail(c, err, "attribute '%s' has %d entries, at most %d make sense", attr, n, cap);
	if (n > 0)
		memcpy(vals, list, (size_t)n * sizeof(*vals));
	return n;
}

/* ---- views ---- */

static int infer_reshape(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *from = &c->in[0]->shape;
	bool allow_zero = c->node->version >= 14 && rg_node_int(c->node, "allowzero", 0) != 0;
	struct rg_shape to = { 0 };
	int64_t want[RG_MAX_RANK], count = rg_shape_count(from), rest;
	int open = -1, n = list_arg(c, "shape", 5, want, RG_MAX_RANK, err);
	char a[160], b[160];

	if (n == -1)
		return rg_infer_fail(c, err, "the new shape is missing");
	if (n < 0)
		return n;
	to.rank = n;
	for (int i = 0; i < n; i++) {
		to.dim[i] = want[i];
		if (want[i] == 0 && !allow_zero) {
			if (i >= from->rank)
				return rg_infer_fail(c, err, "dimension %d is to be copied from an input of rank %d", i,
						     from->rank);
			to.dim[i] = from->dim[i];
		} else if (want[i] == -1) {
			if (open >= 0)
				return rg_infer_fail(c, err, "two dimensions are -1");
			open = i;
			to.dim[i] = 1;
		} else if (want[i] < 0) {
			return rg_infer_fail(c, err, "dimension %d is %" PRId64, i, want[i]);
		}
	}
	rest = rg_shape_count(&to);
	if (open >= 0 && rest >= 0) {
		if (rest == 0 ? count != 0 : count % rest != 0)
			return rg_infer_fail(c, err, "%" PRId64 " elements do not divide into %" PRId64, count, rest);
		to.dim[open] = rest ? count / rest : 0;
	}
	if (rg_shape_count(&to) != count)
		return rg_infer_fail(c, err, "shape %s does not have the elements of %s", rg_shape_text(b, &to),
				     rg_shape_text(a, from));
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

static int infer_flatten(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape;
	int64_t axis = rg_node_int(c->node, "axis", 1);
	struct rg_shape to = { .rank = 2 };

	if (axis < 0 && c->node->version >= 11)
		axis += s->rank;
	if (axis < 0 || axis > s->rank)
		return rg_infer_fail(c, err, "axis %" PRId64 " is outside of a tensor of rank %d", axis, s->rank);
	to.dim[0] = rg_shape_count_range(s, 0, (int)axis);
	to.dim[1] = rg_shape_count_range(s, (int)axis, s->rank);
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

static int axes_mask(struct rg_infer *c, const int64_t *axes, int n, int rank, unsigned *mask,
		     struct rg_error *err)
{
	*mask = 0;
	for (int i = 0; i < n; i++) {
		int a = rg_infer_axis(c, axes[i], rank, err);

		if (a < 0)
			return a;
		if (*mask >> a & 1)
			return rg_infer_fail(c, err, "axis %d is given twice", a);
		*mask |= 1u << a;
	}
	return 0;
}

static int infer_squeeze(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape;
	struct rg_shape to = { 0 };
	int64_t axes[RG_MAX_RANK];
	unsigned mask = 0;
	int n = list_arg(c, "axes", 13, axes, RG_MAX_RANK, err);

	if (n < -1 || (n > 0 && axes_mask(c, axes, n, s->rank, &mask, err)))
		return err->code;
	for (int i = 0; i < s->rank; i++) {
		bool drop = n < 0 ? s->dim[i] == 1 : mask >> i & 1;

		if (drop && s->dim[i] != 1)
			return rg_infer_fail(c, err, "dimension %d is %" PRId64 ", not 1", i, s->dim[i]);
		if (!drop)
			to.dim[to.rank++] = s->dim[i];
	}
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

static int infer_unsqueeze(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape;
	struct rg_shape to = { 0 };
	int64_t axes[RG_MAX_RANK];
	unsigned mask;
	int n = list_arg(c, "axes", 13, axes, RG_MAX_RANK, err), from = 0;

	if (n == -1)
		return rg_infer_fail(c, err, "the axes are missing");
	if (n < 0)
		return n;
	to.rank = s->rank + n;
	if (to.rank > RG_MAX_RANK)
		return rg_infer_fail(c, err, "the output would have %d dimensions, at most %d are supported", to.rank,
				     RG_MAX_RANK);
	if (axes_mask(c, axes, n, to.rank, &mask, err))
		return err->code;
	for (int i = 0; i < to.rank; i++)
		to.dim[i] = mask >> i & 1 ? 1 : s->dim[from++];
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

/* ---- permuting and repeating ---- */

static int infer_transpose(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0]->shape;
	struct rg_shape to = { .rank = s->rank };
	const int64_t *perm;
	unsigned mask;
	int n = rg_node_ints(c->node, "perm", &perm);

	if (n >= 0 && n != s->rank)
		return rg_infer_fail(c, err, "perm has %d entries for %d dimensions", n, s->rank);
	if (n > 0 && axes_mask(c, perm, n, s->rank, &mask, err))
		return err->code;
	for (int i = 0; i < s->rank; i++)
		to.dim[i] = s->dim[n > 0 ? rg_args_axis(perm[i], s->rank) : s->rank - 1 - i];
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

static int infer_expand(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape want = { 0 }, to;
	char a[160], b[160];
	int n = rg_infer_ints(c, 1, want.dim, RG_MAX_RANK, err);

	if (n < 0)
		return n;
	want.rank = n;
	for (int i = 0; i < n; i++)
		if (want.dim[i] < 0)
			return rg_infer_fail(c, err, "dimension %d of the shape is %" PRId64, i, want.dim[i]);
	if (!rg_shape_broadcast(&c->in[0]->shape, &want, &to))
		return rg_infer_fail(c, err, "shape %s does not broadcast to %s", rg_shape_text(a, &c->in[0]->shape),
				     rg_shape_text(b, &want));
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

static int infer_tile(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor t[MAX_ARG_IN];
	struct rg_shape to = c->in[0]->shape;
	int64_t repeats[RG_MAX_RANK];
	int rc = rg_args_tile(c->node, tensors(c, t), repeats, &c->need_value, err);

	if (rc)
		return rc;
	for (int i = 0; i < to.rank; i++)
		if (__builtin_mul_overflow(to.dim[i], repeats[i], &to.dim[i]))
			return rg_infer_fail(c, err, "dimension %d overflows", i);
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

static int block_size(struct rg_infer *c, int64_t *block, struct rg_error *err)
{
	*block = rg_node_int(c->node, "blocksize", 0);
	if (c->in[0]->shape.rank != 4)
		return rg_infer_fail(c, err, "the input must have 4 dimensions, not %d", c->in[0]->shape.rank);
	if (*block < 1 || *block > 1 << 20)
		return rg_infer_fail(c, err, "block size %" PRId64 " is not possible", *block);
	return 0;
}

static int check_mode(struct rg_infer *c, struct rg_error *err)
{
	const char *mode = rg_node_string(c->node, "mode", "DCR");

	if (strcmp(mode, "DCR") == 0 || strcmp(mode, "CRD") == 0)
		return 0;
	return rg_infer_fail(c, err, "mode '%s' is not known", mode);
}

static int infer_depth_to_space(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = c->in[0]->shape;
	int64_t b;

	if (block_size(c, &b, err) || check_mode(c, err))
		return err->code;
	if (s.dim[1] % (b * b))
		return rg_infer_fail(c, err, "%" PRId64 " channels do not divide by %" PRId64, s.dim[1], b * b);
	s.dim[1] /= b * b;
	if (__builtin_mul_overflow(s.dim[2], b, &s.dim[2]) || __builtin_mul_overflow(s.dim[3], b, &s.dim[3]))
		return rg_infer_fail(c, err, "the output overflows");
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	return 0;
}

static int infer_space_to_depth(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = c->in[0]->shape;
	int64_t b;

	if (block_size(c, &b, err) || check_mode(c, err))
		return err->code;
	if (s.dim[2] % b || s.dim[3] % b)
		return rg_infer_fail(c, err, "%" PRId64 "x%" PRId64 " does not divide by %" PRId64, s.dim[2], s.dim[3], b);
	if (__builtin_mul_overflow(s.dim[1], b * b, &s.dim[1]))
		return rg_infer_fail(c, err, "the output overflows");
	s.dim[2] /= b;
	s.dim[3] /= b;
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	return 0;
}

/* ---- joining and cutting ---- */

static int infer_concat(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape to;
	int axis;

	for (int i = 0; i < c->node->n_in; i++)
		if (!c->in[i])
			return rg_infer_fail(c, err, "input %d is missing", i);
	to = c->in[0]->shape;
	axis = rg_infer_axis(c, rg_node_int(c->node, "axis", 1), to.rank, err);
	if (axis < 0)
		return axis;
	for (int i = 1; i < c->node->n_in; i++) {
		const struct rg_value *v = c->in[i];
		struct rg_shape other = v->shape;
		char a[160], b[160];

		if (v->dtype != c->in[0]->dtype)
			return rg_infer_fail(c, err, "inputs 0 and %d differ in type: %s and %s", i,
					     rg_dtype_name(c->in[0]->dtype), rg_dtype_name(v->dtype));
		if (other.rank == to.rank)
			other.dim[axis] = to.dim[axis];
		if (!rg_shape_equal(&other, &to))
			return rg_infer_fail(c, err, "shapes %s and %s do not join along axis %d",
					     rg_shape_text(a, &c->in[0]->shape), rg_shape_text(b, &v->shape), axis);
		if (__builtin_add_overflow(to.dim[axis], v->shape.dim[axis], &to.dim[axis]))
			return rg_infer_fail(c, err, "axis %d overflows", axis);
	}
	rg_infer_out(c, 0, c->in[0]->dtype, &to);
	return 0;
}

static int infer_split(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor t[MAX_ARG_IN];
	int64_t length[RG_ARGS_MAX_SPLIT];
	struct rg_shape s = c->in[0]->shape;
	int axis, rc;

	rc = rg_args_split(c->node, tensors(c, t), &axis, length, &c->need_value, err);
	if (rc)
		return rc;
	for (int i = 0; i < c->node->n_out; i++) {
		s.dim[axis] = length[i];
		rg_infer_out(c, i, c->in[0]->dtype, &s);
	}
	return 0;
}

static void cost_reads_output(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t all = rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape);
	int64_t taken = rg_tensor_bytes(c->out[0].dtype, &c->out[0].shape);

	if (taken >= 0 && all > taken && out->read_bytes >= all)
		out->read_bytes -= all - taken;
}

static int infer_slice(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor t[MAX_ARG_IN];
	struct rg_slice_args a;
	struct rg_shape s = c->in[0]->shape;
	int rc = rg_args_slice(c->node, tensors(c, t), &a, &c->need_value, err);

	if (rc)
		return rc;
	memcpy(s.dim, a.count, (size_t)s.rank * sizeof(s.dim[0]));
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	return 0;
}

static int infer_pad(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor t[MAX_ARG_IN];
	struct rg_pad_args a;
	struct rg_shape s = c->in[0]->shape;
	int rc = rg_args_pad(c->node, tensors(c, t), &a, &c->need_value, err);

	if (rc)
		return rc;
	if (c->node->version >= 11 && c->node->n_in > 2 && c->in[2] &&
	    (c->in[2]->dtype != c->in[0]->dtype || rg_shape_count(&c->in[2]->shape) != 1))
		return rg_infer_fail(c, err, "the constant value must be one element of the type of the data");
	for (int i = 0; i < s.rank; i++)
		s.dim[i] += a.before[i] + a.after[i];
	rg_infer_out(c, 0, c->in[0]->dtype, &s);
	return 0;
}

/* ---- conversion ---- */

static int check_round_mode(struct rg_infer *c, struct rg_error *err)
{
	const char *mode = rg_node_string(c->node, "round_mode", "up");

	if (strcmp(mode, "up") == 0 || strcmp(mode, "down") == 0 || strcmp(mode, "nearest") == 0)
		return 0;
	return rg_infer_fail(c, err, "round_mode '%s' is not known", mode);
}

static int infer_cast(struct rg_infer *c, struct rg_error *err)
{
	enum rg_dtype to;

	if (check_round_mode(c, err))
		return err->code;
	if (c->node->version < 6) {
		to = rg_dtype_parse(rg_node_string(c->node, "to", ""));
	} else {
		int64_t n = rg_node_int(c->node, "to", 0);

		to = n > 0 && n < RG_DTYPE_COUNT ? (enum rg_dtype)n : RG_UNDEFINED;
	}
	if (to == RG_UNDEFINED)
		return rg_infer_fail(c, err, "the target type is missing or not known");
	rg_infer_out(c, 0, to, &c->in[0]->shape);
	return 0;
}

static int infer_cast_like(struct rg_infer *c, struct rg_error *err)
{
	if (check_round_mode(c, err))
		return err->code;
	rg_infer_out(c, 0, c->in[1]->dtype, &c->in[0]->shape);
	return 0;
}

/* The bits stay, and so does the shape: both types have as many. */
static int infer_bit_cast(struct rg_infer *c, struct rg_error *err)
{
	int64_t n = rg_node_int(c->node, "to", 0);
	enum rg_dtype from = c->in[0]->dtype, to = n > 0 && n < RG_DTYPE_COUNT ? (enum rg_dtype)n : RG_UNDEFINED;

	if (rg_dtype_bits(to) == 0 || rg_dtype_bits(from) != rg_dtype_bits(to))
		return rg_infer_fail(c, err, "%s and %s have not the same number of bits", rg_dtype_name(from),
				     rg_dtype_name(to));
	rg_infer_out(c, 0, to, &c->in[0]->shape);
	return 0;
}

static void cost_cast_like(const struct rg_cost_in *c, struct rg_cost *out)
{
	/* The target is read for its type only. */
	out->read_bytes = rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape);
}

/* ---- shapes as data, and data from shapes ---- */

static int infer_shape(struct rg_infer *c, struct rg_error *err)
{
	int rank = c->in[0]->shape.rank;
	int64_t start = 0, end = rank;
	struct rg_shape to = { .rank = 1 };

	rg_args_shape_range(c->node, rank, &start, &end);
	to.dim[0] = end > start ? end - start : 0;
	rg_infer_out(c, 0, RG_I64, &to);
	return 0;
}

static int infer_size(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape scalar = { 0 };

	rg_infer_out(c, 0, RG_I64, &scalar);
	return 0;
}

static int infer_constant_of_shape(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_attr *a = rg_node_attr(c->node, "value");
	struct rg_shape to = { 0 };
	int n = rg_infer_ints(c, 0, to.dim, RG_MAX_RANK, err);

	if (n < 0)
		return n;
	to.rank = n;
	for (int i = 0; i < n; i++)
		if (to.dim[i] < 0)
			return rg_infer_fail(c, err, "dimension %d is %" PRId64, i, to.dim[i]);
	if (a && (a->type != RG_ATTR_TENSOR || rg_shape_count(&a->t.shape) != 1))
		return rg_infer_fail(c, err, "the value must be a tensor of one element");
	rg_infer_out(c, 0, a ? a->t.dtype : RG_F32, &to);
	return 0;
}

static int infer_eye_like(struct rg_infer *c, struct rg_error *err)
{
	int64_t to = rg_node_int(c->node, "dtype", c->in[0]->dtype);

	if (c->in[0]->shape.rank != 2)
		return rg_infer_fail(c, err, "the input must have 2 dimensions, not %d", c->in[0]->shape.rank);
	if (to <= 0 || to >= RG_DTYPE_COUNT)
		return rg_infer_fail(c, err, "type %" PRId64 " is not known", to);
	rg_infer_out(c, 0, (enum rg_dtype)to, &c->in[0]->shape);
	return 0;
}

static double number(const struct rg_value *v)
{
	switch (v->dtype) {
	case RG_F32: return *(const float *)v->data;
	case RG_F64: return *(const double *)v->data;
	case RG_F16: return rg_f16_to_f32(*(const uint16_t *)v->data);
	case RG_BF16: return rg_bf16_to_f32(*(const uint16_t *)v->data);
	default: return NAN;
	}
}

/* Exact in integers: a range near the ends of int64 must not round. */
static int64_t range_count(int64_t start, int64_t limit, int64_t delta)
{
	uint64_t span, step;

	if (delta == 0 || (delta > 0 ? limit <= start : limit >= start))
		return 0;
	span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
	step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
	span = (span - 1) / step + 1;
	return span > INT64_MAX ? -1 : (int64_t)span;
}

static int infer_range(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape to = { .rank = 1 };
	enum rg_dtype t = c->in[0]->dtype;
	struct rg_tensor in[MAX_ARG_IN];

	for (int i = 0; i < 3; i++) {
		if (c->in[i]->dtype != t || rg_shape_count(&c->in[i]->shape) != 1)
			return rg_infer_fail(c, err, "start, limit and delta must be single numbers of one type");
		if (!rg_infer_known(c, i)) {
			c->need_value = i;
			return rg_error_set(err, RG_ENEED_VALUE, "Range: the output shape depends on the value of "
					    "input %d ('%s')", i, c->in[i]->name);
		}
	}
	if (rg_dtype_is_float(t)) {
		double n = ceil((number(c->in[1]) - number(c->in[0])) / number(c->in[2]));

		if (!(n < 0x1p53))
			return rg_infer_fail(c, err, "the range has no end");
		to.dim[0] = n > 0 ? (int64_t)n : 0;
	} else {
		int64_t v[3];

		tensors(c, in);
		for (int i = 0; i < 3; i++)
			if (rg_args_scalar(&in[i], &v[i]))
				return rg_infer_fail(c, err, "type %s is not supported", rg_dtype_name(t));
		if (v[2] == 0)
			return rg_infer_fail(c, err, "delta is 0");
		to.dim[0] = range_count(v[0], v[1], v[2]);
		if (to.dim[0] < 0)
			return rg_infer_fail(c, err, "the range is too long");
	}
	rg_infer_out(c, 0, t, &to);
	return 0;
}

static int infer_trilu(struct rg_infer *c, struct rg_error *err)
{
	if (c->in[0]->shape.rank < 2)
		return rg_infer_fail(c, err, "the input must have 2 dimensions or more");
	return rg_infer_same(c, err);
}

#define MOVE RG_KIND_MOVE
#define VIEW RG_OP_VIEW
#define SHAPE_ONLY RG_OP_SHAPE_ONLY

const struct rg_op rg_ops_move[] = {
	{ "", "Identity", MOVE, VIEW, 1, 1, 1, 1, { 1, 13, 14, 16, 19, 21, 23, 24, 25 }, 1, 25,
	  rg_infer_same, NULL },
	{ "", "Reshape", MOVE, VIEW, 1, 2, 1, 1, { 1, 5, 13, 14, 19, 21, 23, 24, 25 }, 1, 25,
	  infer_reshape, NULL },
	{ "", "Flatten", MOVE, VIEW, 1, 1, 1, 1, { 1, 9, 11, 13, 21, 23, 24, 25 }, 1, 25, infer_flatten, NULL },
	{ "", "Squeeze", MOVE, VIEW, 1, 2, 1, 1, { 1, 11, 13, 21, 23, 24, 25 }, 1, 25, infer_squeeze, NULL },
	{ "", "Unsqueeze", MOVE, VIEW, 1, 2, 1, 1, { 1, 11, 13, 21, 23, 24, 25 }, 1, 25,
	  infer_unsqueeze, NULL },
	{ "", "Transpose", MOVE, 0, 1, 1, 1, 1, { 1, 13, 21, 23, 24, 25 }, 1, 25, infer_transpose, NULL },
	{ "", "Expand", MOVE, 0, 2, 2, 1, 1, { 8, 13 }, 8, 13, infer_expand, NULL },
	{ "", "Tile", MOVE, 0, 2, 3, 1, 1, { 1, 6, 13 }, 1, 13, infer_tile, NULL },
	{ "", "DepthToSpace", MOVE, 0, 1, 1, 1, 1, { 1, 11, 13, 28 }, 1, 28, infer_depth_to_space, NULL },
	{ "", "SpaceToDepth", MOVE, 0, 1, 1, 1, 1, { 1, 13, 28 }, 1, 28, infer_space_to_depth, NULL },
	{ "", "Concat", MOVE, 0, 1, -1, 1, 1, { 1, 4, 11, 13 }, 1, 13, infer_concat, NULL },
	{ "", "Split", MOVE, 0, 1, 2, 1, RG_ARGS_MAX_SPLIT, { 1, 2, 11, 13, 18 }, 1, 18, infer_split, NULL },
	{ "", "Slice", MOVE, 0, 1, 5, 1, 1, { 1, 10, 11, 13 }, 1, 13, infer_slice, cost_reads_output },
	{ "", "Pad", MOVE, 0, 1, 4, 1, 1, { 1, 2, 11, 13, 18, 19, 21, 23, 24, 25 }, 1, 25, infer_pad, NULL },
	{ "", "BitCast", MOVE, 0, 1, 1, 1, 1, { 26 }, 26, 26, infer_bit_cast, NULL },
	{ "", "Cast", MOVE, 0, 1, 1, 1, 1, { 1, 6, 9, 13, 19, 21, 23, 24, 25, 28 }, 1, 28, infer_cast, NULL },
	{ "", "CastLike", MOVE, 0, 2, 2, 1, 1, { 15, 19, 21, 23, 24, 25 }, 15, 25, infer_cast_like,
	  cost_cast_like },
	{ "", "Shape", MOVE, SHAPE_ONLY, 1, 1, 1, 1, { 1, 13, 15, 19, 21, 23, 24, 25 }, 1, 25,
	  infer_shape, NULL },
	{ "", "Size", MOVE, SHAPE_ONLY, 1, 1, 1, 1, { 1, 13, 19, 21, 23, 24, 25 }, 1, 25, infer_size, NULL },
	{ "", "ConstantOfShape", MOVE, 0, 1, 1, 1, 1, { 9, 20, 21, 23, 24, 25 }, 9, 25,
	  infer_constant_of_shape, NULL },
	{ "", "EyeLike", MOVE, SHAPE_ONLY, 1, 1, 1, 1, { 9, 22 }, 9, 22, infer_eye_like, NULL },
	{ "", "Range", MOVE, 0, 3, 3, 1, 1, { 11, 27 }, 11, 27, infer_range, NULL },
	{ "", "Trilu", MOVE, 0, 1, 2, 1, 1, { 14 }, 14, 14, infer_trilu, NULL },
};
RG_OP_FAMILY_END(move);
