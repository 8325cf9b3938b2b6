/* Arguments of movement operators, read the same by inference and kernels. */
#include "graph/op-args.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int rg_args_ints(const struct rg_tensor *t, int64_t *vals, int cap)
{
	int64_t n = rg_shape_count(&t->shape);

	if (t->dtype != RG_I32 && t->dtype != RG_I64)
		return -EINVAL;
	if (n > 0 && !t->data)
		return RG_ENEED_VALUE;
	if (n < 0 || n > cap)
		return -E2BIG;
	for (int64_t i = 0; i < n; i++)
		vals[i] = t->dtype == RG_I64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
	return (int)n;
}

int rg_args_axis(int64_t axis, int rank)
{
	if (axis < -rank || axis >= rank)
		return -1;
	return (int)(axis < 0 ? axis + rank : axis);
}

static int scalar_of_float(double v, int64_t *out)
{
	if (!(fabs(v) < 0x1p53) || v != floor(v))
		return -EINVAL;
	*out = (int64_t)v;
	return 0;
}

int rg_args_scalar(const struct rg_tensor *t, int64_t *out)
{
	if (rg_shape_count(&t->shape) != 1)
		return -EINVAL;
	if (!t->data)
		return RG_ENEED_VALUE;
	switch (t->dtype) {
	case RG_I64: *out = *(const int64_t *)t->data; return 0;
	case RG_I32: *out = *(const int32_t *)t->data; return 0;
	case RG_I16: *out = *(const int16_t *)t->data; return 0;
	case RG_I8: *out = *(const int8_t *)t->data; return 0;
	case RG_U32: *out = *(const uint32_t *)t->data; return 0;
	case RG_U16: *out = *(const uint16_t *)t->data; return 0;
	case RG_U8: *out = *(const uint8_t *)t->data; return 0;
	case RG_U64:
		if (*(const uint64_t *)t->data > INT64_MAX)
			return -EINVAL;
		*out = (int64_t)*(const uint64_t *)t->data;
		return 0;
	case RG_F32: return scalar_of_float(*(const float *)t->data, out);
	case RG_F64: return scalar_of_float(*(const double *)t->data, out);
	case RG_F16: return scalar_of_float(rg_f16_to_f32(*(const uint16_t *)t->data), out);
	case RG_BF16: return scalar_of_float(rg_bf16_to_f32(*(const uint16_t *)t->data), out);
	default: return -EINVAL;
	}
}

static bool present(const struct rg_node *n, const struct rg_tensor *in, int i)
{
	return i < n->n_in && in[i].dtype != RG_UNDEFINED;
}

/* Input i as integers; the error says what is wrong with it. */
static int ints(const struct rg_node *n, const struct rg_tensor *in, int i, int64_t *vals, int cap, int *need,
		struct rg_error *err)
{
	int count;

	if (!present(n, in, i))
		return rg_error_set(err, -EINVAL, "%s: input %d is missing", n->op_type, i);
	count = rg_args_ints(&in[i], vals, cap);
	if (count >= 0)
		return count;
	if (count == RG_ENEED_VALUE) {
		*need = i;
		return rg_error_set(err, count, "%s: the output shape depends on the value of input %d", n->op_type, i);
	}
	if (count == -E2BIG)
		return rg_error_set(err, -EINVAL, "%s: input %d has more elements than the %d that make sense",
				    n->op_type, i, cap);
	return rg_error_set(err, -EINVAL, "%s: input %d must be int32 or int64, not %s", n->op_type, i,
			    rg_dtype_name(in[i].dtype));
}

static int attr_ints(const struct rg_node *n, const char *name, int64_t *vals, int cap, struct rg_error *err)
{
	const int64_t *list;
	int count = rg_node_ints(n, name, &list);

	if (count > cap)
		return rg_error_set(err, -EINVAL, "%s: attribute '%s' has %d entries, at most %d make sense",
				    n->op_type, name, count, cap);
	if (count > 0)
		memcpy(vals, list, (size_t)count * sizeof(*vals));
	return count;
}

static int bad_axis(const struct rg_node *n, int64_t axis, int rank, struct rg_error *err)
{
	return rg_error_set(err, -EINVAL, "%s: axis %" PRId64 " is outside of a tensor of rank %d", n->op_type,
			    axis, rank);
}

/* Marks an axis as used; an error when it is outside or comes twice. */
static int take_axis(const struct rg_node *n, int64_t axis, int rank, unsigned *seen, struct rg_error *err)
{
	int a = rg_args_axis(axis, rank);

	if (a < 0)
		return bad_axis(n, axis, rank, err);
	if (*seen >> a & 1)
		return rg_error_set(err, -EINVAL, "%s: axis %d is given twice", n->op_type, a);
	*seen |= 1u << a;
	return a;
}

/* ---- Slice ---- */

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

static int64_t from_end(int64_t v, int64_t dim)
{
	return v < 0 && v >= -dim ? v + dim : v;
}

static void slice_dim(int64_t dim, int64_t start, int64_t end, int64_t step, struct rg_slice_args *out, int d)
{
	uint64_t span, stride;

	start = from_end(start, dim);
	end = from_end(end, dim);
	if (step > 0) {
		start = clamp(start, 0, dim);
		end = clamp(end, 0, dim);
	} else {
		start = clamp(start, 0, dim - 1);
		end = clamp(end, -1, dim - 1);
	}
	out->start[d] = start;
	out->step[d] = step;
	out->count[d] = 0;
	if (dim == 0 || (step > 0 ? end <= start : end >= start)) {
		out->start[d] = 0;
		return;
	}
	span = (uint64_t)(step > 0 ? end - start : start - end);
	stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
	out->count[d] = (int64_t)((span - 1) / stride + 1);
	if (out->count[d] == 1) /* a huge step must not overflow an address */
		out->step[d] = 1;
}

int rg_args_slice(const struct rg_node *n, const struct rg_tensor *in, struct rg_slice_args *out,
		  int *need, struct rg_error *err)
{
	int64_t start[RG_MAX_RANK], end[RG_MAX_RANK], axes[RG_MAX_RANK], step[RG_MAX_RANK];
	int rank = in[0].shape.rank, n_start, n_end, n_axes = -1, n_step = -1;
	unsigned seen = 0;

	if (n->version < 10) {
		n_start = attr_ints(n, "starts", start, RG_MAX_RANK, err);
		n_end = attr_ints(n, "ends", end, RG_MAX_RANK, err);
		n_axes = attr_ints(n, "axes", axes, RG_MAX_RANK, err);
		if (n_start == -1 || n_end == -1)
			return rg_error_set(err, -EINVAL, "Slice: attribute 'starts' or 'ends' is missing");
		if (n_start < 0 || n_end < 0 || n_axes < -1)
			return err->code;
	} else {
		n_start = ints(n, in, 1, start, RG_MAX_RANK, need, err);
		if (n_start < 0)
			return n_start;
		n_end = ints(n, in, 2, end, RG_MAX_RANK, need, err);
		if (n_end < 0)
			return n_end;
		if (present(n, in, 3) && (n_axes = ints(n, in, 3, axes, RG_MAX_RANK, need, err)) < 0)
			return n_axes;
		if (present(n, in, 4) && (n_step = ints(n, in, 4, step, RG_MAX_RANK, need, err)) < 0)
			return n_step;
	}
	if (n_end != n_start || (n_axes >= 0 && n_axes != n_start) || (n_step >= 0 && n_step != n_start) ||
	    n_start > rank)
		return rg_error_set(err, -EINVAL, "Slice: starts, ends, axes and steps differ in length, or are more "
				    "than the %d dimensions", rank);
	for (int d = 0; d < rank; d++) {
		out->start[d] = 0;
		out->step[d] = 1;
		out->count[d] = in[0].shape.dim[d];
	}
	for (int i = 0; i < n_start; i++) {
		int d = take_axis(n, n_axes >= 0 ? axes[i] : i, rank, &seen, err);

		if (d < 0)
			return d;
		if (n_step >= 0 && step[i] == 0)
			return rg_error_set(err, -EINVAL, "Slice: the step of axis %d is 0", d);
		slice_dim(in[0].shape.dim[d], start[i], end[i], n_step >= 0 ? step[i] : 1, out, d);
	}
	return 0;
}

/* ---- Pad ---- */

static int pad_mode(const struct rg_node *n, enum rg_pad_mode *mode, struct rg_error *err)
{
	static const struct { const char *name; enum rg_pad_mode mode; } modes[] = {
		{ "constant", RG_PAD_CONSTANT }, { "reflect", RG_PAD_REFLECT },
		{ "edge", RG_PAD_EDGE }, { "wrap", RG_PAD_WRAP },
	};
	const char *s = rg_node_string(n, "mode", "constant");

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(s, modes[i].name) == 0) {
			*mode = modes[i].mode;
			return 0;
		}
	}
	return rg_error_set(err, RG_ENOTSUP_MODEL, "Pad: mode '%s' is not known", s);
}

static int check_pad(const struct rg_node *n, const struct rg_shape *s, const struct rg_pad_args *a,
		     struct rg_error *err)
{
	for (int d = 0; d < s->rank; d++) {
		int64_t total, most = a->before[d] > a->after[d] ? a->before[d] : a->after[d];

		if (__builtin_add_overflow(s->dim[d], a->before[d], &total) ||
		    __builtin_add_overflow(total, a->after[d], &total) || total < 0 ||
		    a->before[d] < -s->dim[d] || a->after[d] < -s->dim[d])
			return rg_error_set(err, -EINVAL, "%s: pads %" PRId64 " and %" PRId64 " do not fit "
					    "dimension %d of %" PRId64, n->op_type, a->before[d], a->after[d], d,
					    s->dim[d]);
		if (a->mode != RG_PAD_CONSTANT && s->dim[d] == 0 && total > 0)
			return rg_error_set(err, -EINVAL, "Pad: there is nothing to repeat along dimension %d, which "
					    "is empty", d);
		if (a->mode == RG_PAD_REFLECT && most > 0 && most >= s->dim[d])
			return rg_error_set(err, -EINVAL, "Pad: dimension %d of %" PRId64 " cannot be reflected by "
					    "%" PRId64, d, s->dim[d], most);
	}
	return 0;
}

int rg_args_pad(const struct rg_node *n, const struct rg_tensor *in, struct rg_pad_args *out,
		int *need, struct rg_error *err)
{
	int64_t pads[2 * RG_MAX_RANK], axes[RG_MAX_RANK];
	int rank = in[0].shape.rank, n_pads, n_axes = rank;
	unsigned seen = 0;

	memset(out, 0, sizeof(*out));
	if (pad_mode(n, &out->mode, err))
		return err->code;
	if (n->version < 11) {
		n_pads = attr_ints(n, n->version < 2 ? "paddings" : "pads", pads, 2 * RG_MAX_RANK, err);
		if (n_pads == -1)
			return rg_error_set(err, -EINVAL, "Pad: attribute 'pads' is missing");
	} else {
		n_pads = ints(n, in, 1, pads, 2 * RG_MAX_RANK, need, err);
	}
	if (n_pads < 0)
		return err->code;
	for (int i = 0; i < rank; i++)
		axes[i] = i;
	if (n->version >= 18 && present(n, in, 3)) {
		n_axes = ints(n, in, 3, axes, RG_MAX_RANK, need, err);
		if (n_axes < 0)
			return n_axes;
	}
	if (n_pads != 2 * n_axes)
		return rg_error_set(err, -EINVAL, "Pad: %d pads for %d axes, twice as many are needed", n_pads, n_axes);
	for (int i = 0; i < n_axes; i++) {
		int d = take_axis(n, axes[i], rank, &seen, err);

		if (d < 0)
			return d;
		out->before[d] = pads[i];
		out->after[d] = pads[n_axes + i];
	}
	return check_pad(n, &in[0].shape, out, err);
}

/* ---- Shape, NonZero ---- */

void rg_args_shape_range(const struct rg_node *n, int rank, int64_t *start, int64_t *end)
{
	*start = 0;
	*end = rank;
	if (n->version < 15)
		return;
	*start = clamp(from_end(rg_node_int(n, "start", 0), rank), 0, rank);
	*end = clamp(from_end(rg_node_int(n, "end", rank), rank), 0, rank);
}

bool rg_args_is_nonzero(enum rg_dtype t, const void *element)
{
	const unsigned char *p = element;
	size_t n = rg_dtype_bytes(t);
	unsigned char bits = 0;

	for (size_t i = 0; i < n; i++) /* little-endian: the sign is in the last byte */
		bits |= i + 1 == n && rg_dtype_is_float(t) ? p[i] & 0x7f : p[i];
	return bits != 0;
}

/* ---- Split ---- */

static int split_evenly(const struct rg_node *n, int64_t dim, int64_t *length, struct rg_error *err)
{
	int64_t pieces = n->n_out, piece;

	if (n->version >= 18) {
		pieces = rg_node_int(n, "num_outputs", n->n_out);
		if (pieces != n->n_out)
			return rg_error_set(err, -EINVAL, "Split: num_outputs is %" PRId64 ", but there are %d outputs",
					    pieces, n->n_out);
	} else if (dim % pieces) {
		return rg_error_set(err, -EINVAL, "Split: a dimension of %" PRId64 " does not split evenly into %d",
				    dim, n->n_out);
	}
	piece = dim / pieces + (dim % pieces != 0);
	for (int i = 0; i < n->n_out; i++) {
		length[i] = piece < dim ? piece : dim;
		dim -= length[i];
	}
	return 0;
}

int rg_args_split(const struct rg_node *n, const struct rg_tensor *in, int *axis, int64_t *length,
		  int *need, struct rg_error *err)
{
	int64_t asked = rg_node_int(n, "axis", 0), dim, sum = 0;
	bool possible = true;
	int count = -1;

	*axis = rg_args_axis(asked, in[0].shape.rank);
	if (*axis < 0)
		return bad_axis(n, asked, in[0].shape.rank, err);
	dim = in[0].shape.dim[*axis];
	if (present(n, in, 1)) {
		count = ints(n, in, 1, length, n->n_out, need, err);
		if (count < 0)
			return count;
	} else if (n->version < 13) {
		count = attr_ints(n, "split", length, n->n_out, err);
		if (count < -1)
			return count;
	}
	if (count == -1)
		return split_evenly(n, dim, length, err);
	for (int i = 0; i < count && possible; i++)
		possible = length[i] >= 0 && !__builtin_add_overflow(sum, length[i], &sum);
	if (count != n->n_out || !possible || sum != dim)
		return rg_error_set(err, -EINVAL, "Split: the lengths do not make up a dimension of %" PRId64 " in %d "
				    "pieces", dim, n->n_out);
	return 0;
}

/* ---- Tile ---- */

int rg_args_tile(const struct rg_node *n, const struct rg_tensor *in, int64_t repeats[RG_MAX_RANK],
		 int *need, struct rg_error *err)
{
	int rank = in[0].shape.rank, count;

	if (n->version < 6) { /* two scalars: how often, and along which axis */
		int64_t v[2];

		for (int i = 0; i < rank; i++)
			repeats[i] = 1;
		for (int i = 0; i < 2; i++) {
			int rc = present(n, in, i + 1) ? rg_args_scalar(&in[i + 1], &v[i]) : -EINVAL;

			if (rc == RG_ENEED_VALUE)
				*need = i + 1;
			if (rc)
				return rg_error_set(err, rc, "Tile: input %d must be one known number", i + 1);
		}
		if (v[0] < 0 || rg_args_axis(v[1], rank) < 0)
			return rg_error_set(err, -EINVAL, "Tile: %" PRId64 " times along axis %" PRId64 " is not possible",
					    v[0], v[1]);
		repeats[rg_args_axis(v[1], rank)] = v[0];
		return 0;
	}
	count = ints(n, in, 1, repeats, RG_MAX_RANK, need, err);
	if (count < 0)
		return count;
	if (count != rank)
		return rg_error_set(err, -EINVAL, "Tile: %d repeats for %d dimensions", count, rank);
	for (int i = 0; i < rank; i++)
		if (repeats[i] < 0)
			return rg_error_set(err, -EINVAL, "Tile: %" PRId64 " repeats along dimension %d", repeats[i], i);
	return 0;
}
