/*
 * Concat, Split, Gather and Pad: copies of rows, split over the lanes. Compiled
 * once, like move.c.
 */
#include "kernels/generic/move.h"

#include "graph/op-args.h"
#include "kernels/ref/index.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

/* Short copies are loops: a call costs as much as 64 bytes. */
RG_INLINE void copy_short(char *restrict to, const char *restrict from, int64_t bytes)
{
	if (bytes >= 64 || bytes & 3) {
		memcpy(to, from, (size_t)bytes);
		return;
	}
	for (int64_t i = 0; i < bytes; i += 4)
		memcpy(to + i, from + i, 4);
}

/* ---- Concat and Split: rows of one tensor are made of rows of others ---- */

enum { PIECE = 1 << 16, L1 = 1 << 14 };

struct parts_job {
	char *whole;
	const struct rg_tensor *part;
	const int64_t *length; /* bytes of a part's row */
	int n;
	int64_t row, bytes;    /* of the whole: a row, all */
	bool to_whole;
};

/* Pieces of the whole, each from `first` bytes on. */
static void work_parts(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct parts_job *j = arg;
	int64_t at = begin * PIECE, last = end * PIECE < j->bytes ? end * PIECE : j->bytes;
	int64_t row = at / j->row, col = at % j->row;
	int p = 0;

	while (at < last) {
		int64_t m;

		while (p < j->n && col >= j->length[p])
			col -= j->length[p++];
		if (p == j->n) {
			p = 0;
			col = 0;
			row++;
			continue;
		}
		m = j->length[p] - col < last - at ? j->length[p] - col : last - at;
		if (j->part[p].data) { /* an output that nobody wants has none */
			char *other = (char *)j->part[p].data + row * j->length[p] + col;

			if (j->to_whole)
				copy_short(j->whole + at, other, m);
			else
				copy_short(other, j->whole + at, m);
		}
		at += m;
		col += m;
	}
}

/* Rows of a part that are short: `bytes` of each, in a loop over the rows. */
#define SHORT_ROWS(TYPE) do { \
		int64_t n = bytes / (int64_t)sizeof(TYPE); \
\
		for (int64_t r = 0; r < rows; r++, to += to_row, from += from_row) \
			for (int64_t i = 0; i < n; i++) \
				((TYPE *)to)[i] = ((const TYPE *)from)[i]; \
	} while (0)

static void copy_rows(char *restrict to, int64_t to_row, const char *restrict from, int64_t from_row, int64_t bytes,
		      int64_t rows)
{
	uintptr_t align = (uintptr_t)to | (uintptr_t)from | (uintptr_t)to_row | (uintptr_t)from_row | (uintptr_t)bytes;

	if (bytes > 128 || align % 4) {
		for (int64_t r = 0; r < rows; r++)
			memcpy(to + r * to_row, from + r * from_row, (size_t)bytes);
	} else if (bytes == 4) {
		for (int64_t r = 0; r < rows; r++)
			*(uint32_t *)(to + r * to_row) = *(const uint32_t *)(from + r * from_row);
	} else if (align % 8 == 0) {
		SHORT_ROWS(uint64_t);
	} else {
		SHORT_ROWS(uint32_t);
	}
}

/* Items are short rows: part by part over as many of them as stay in L1. */
static void work_short_rows(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct parts_job *j = arg;
	int64_t step = j->row < L1 ? L1 / j->row : 1;

	for (int64_t r = begin; r < end; r += step) {
		int64_t rows = end - r < step ? end - r : step, col = 0;

		for (int p = 0; p < j->n; col += j->length[p++]) {
			char *whole = j->whole + r * j->row + col, *other = (char *)j->part[p].data + r * j->length[p];

			if (!j->part[p].data || !j->length[p])
				continue;
			if (j->to_whole)
				copy_rows(whole, j->row, other, j->length[p], j->length[p], rows);
			else
				copy_rows(other, j->length[p], whole, j->row, j->length[p], rows);
		}
	}
}

static void run_parts(struct parts_job *j, const struct rg_par *par)
{
	if (j->bytes == 0)
		return;
	if (j->row <= PIECE / 4)
		par->run(par, j->bytes / j->row, rg_move_grain(j->row), work_short_rows, j);
	else
		par->run(par, (j->bytes + PIECE - 1) / PIECE, rg_move_grain(PIECE), work_parts, j);
}

static int run_concat(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->out[0].shape;
	int axis = rg_args_axis(rg_node_int(c->node, "axis", 1), s->rank);
	int64_t inner = rg_shape_count_range(s, axis + 1, s->rank) * (int64_t)rg_dtype_bytes(c->out[0].dtype);
	int64_t length[RG_ARGS_MAX_SPLIT];
	struct parts_job j = { .whole = c->out[0].data, .part = c->in, .length = length, .n = c->node->n_in,
			       .row = s->dim[axis] * inner, .to_whole = true };

	j.bytes = rg_shape_count_range(s, 0, axis) * j.row;
	for (int i = 0; i < j.n; i++)
		length[i] = c->in[i].shape.dim[axis] * inner;
	run_parts(&j, par);
	return 0;
}

static int run_split(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int axis = rg_args_axis(rg_node_int(c->node, "axis", 0), s->rank), need = -1, rc;
	int64_t length[RG_ARGS_MAX_SPLIT], inner;
	struct parts_job j = { .whole = c->in[0].data, .part = c->out, .length = length, .n = c->node->n_out };

	rc = rg_args_split(c->node, c->in, &axis, length, &need, err);
	if (rc)
		return rc;
	inner = rg_shape_count_range(s, axis + 1, s->rank) * (int64_t)rg_dtype_bytes(c->in[0].dtype);
	j.row = s->dim[axis] * inner;
	j.bytes = rg_shape_count_range(s, 0, axis) * j.row;
	for (int i = 0; i < j.n; i++) {
		if (c->out[i].dtype != RG_UNDEFINED && c->out[i].shape.dim[axis] != length[i])
			return rg_error_set(err, -EINVAL, "the lengths changed after the shapes were planned");
		length[i] *= inner;
	}
	run_parts(&j, par);
	return 0;
}

/* ---- Gather ---- */

struct gather_job {
	const struct rg_tensor *indices;
	int64_t n, dim, row;
	const char *from;
	char *to;
};

/* Indices were checked before. */
RG_INLINE int64_t index_of(const struct gather_job *j, int64_t i)
{
	int64_t v = j->indices->dtype == RG_I64 ? ((const int64_t *)j->indices->data)[i] :
						  ((const int32_t *)j->indices->data)[i];

	return v < 0 ? v + j->dim : v;
}

static void work_gather(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct gather_job *j = arg;
	int64_t o = begin / j->n, i = begin % j->n;

	for (int64_t k = begin; k < end; k++) {
		copy_short(j->to + k * j->row, j->from + (o * j->dim + index_of(j, i)) * j->row, j->row);
		if (++i == j->n) {
			i = 0;
			o++;
		}
	}
}

static int run_gather(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int axis = rg_args_axis(rg_node_int(c->node, "axis", 0), s->rank);
	struct gather_job j = {
		.indices = &c->in[1],
		.n = rg_shape_count(&c->in[1].shape),
		.dim = s->dim[axis],
		.row = rg_shape_count_range(s, axis + 1, s->rank) * (int64_t)rg_dtype_bytes(c->in[0].dtype),
		.from = c->in[0].data,
		.to = c->out[0].data,
	};
	int64_t at;

	if (rg_shape_count(&c->out[0].shape) == 0)
		return 0;
	for (int64_t i = 0; i < j.n; i++)
		if (rg_index_at(&c->in[1], i, j.dim, &at, err))
			return err->code;
	par->run(par, rg_shape_count_range(s, 0, axis) * j.n, rg_move_grain(j.row), work_gather, &j);
	return 0;
}

/* ---- Pad: lines of the last dimension that grows; what is behind it is one element ---- */

struct pad_job {
	struct rg_pad_args args;
	struct rg_shape in, out;     /* up to the last dimension that is padded */
	int64_t stride[RG_MAX_RANK]; /* of the input, in elements */
	int64_t size;                /* bytes of such an element */
	int64_t value_bytes;
	const char *value, *from;
	char *to;
};

/* The input index along a dimension that output index i shows; -1: the constant. */
static int64_t source(enum rg_pad_mode mode, int64_t i, int64_t dim)
{
	if (i >= 0 && i < dim)
		return i;
	switch (mode) {
	case RG_PAD_REFLECT:
		return i < 0 ? -i : 2 * (dim - 1) - i;
	case RG_PAD_EDGE:
		return i < 0 ? 0 : dim - 1;
	case RG_PAD_WRAP:
		i %= dim;
		return i < 0 ? i + dim : i;
	default:
		return -1;
	}
}

static void fill(char *to, int64_t bytes, const char *value, int64_t size)
{
	int64_t done = size < bytes ? size : bytes;

	/* doubled until it is all */
	memcpy(to, value, (size_t)done);
	while (done < bytes) {
		int64_t m = done < bytes - done ? done : bytes - done;

		memcpy(to + done, to, (size_t)m);
		done += m;
	}
}

static void pad_part(const struct pad_job *j, const char *from, char *to, int64_t begin, int64_t end)
{
	int last = j->out.rank - 1;

	if (begin >= end)
		return;
	if (!from || j->args.mode == RG_PAD_CONSTANT) {
		fill(to + begin * j->size, (end - begin) * j->size, j->value, j->value_bytes);
		return;
	}
	for (int64_t i = begin; i < end; i++)
		copy_short(to + i * j->size, from + source(j->args.mode, i - j->args.before[last], j->in.dim[last]) * j->size,
			   j->size);
}

static void pad_line(const struct pad_job *j, const char *from, char *to)
{
	int last = j->out.rank - 1;
	int64_t n = j->out.dim[last], before = j->args.before[last], first = before > 0 ? before : 0;
	int64_t skip = before < 0 ? -before : 0, end = first + j->in.dim[last] - skip;

	if (!from) {
		pad_part(j, NULL, to, 0, n);
		return;
	}
	first = first < n ? first : n;
	end = end < n ? end : n;
	end = end > first ? end : first;
	if (end > first)
		memcpy(to + first * j->size, from + skip * j->size, (size_t)((end - first) * j->size));
	pad_part(j, from, to, 0, first);
	pad_part(j, from, to, end, n);
}

static void work_pad(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct pad_job *j = arg;
	int last = j->out.rank - 1;
	int64_t at[RG_MAX_RANK], rest = begin;

	for (int d = last - 1; d >= 0; d--) {
		at[d] = rest % j->out.dim[d];
		rest /= j->out.dim[d];
	}
	for (int64_t l = begin; l < end; l++) {
		int64_t offset = 0;

		for (int d = 0; d < last && offset >= 0; d++) {
			int64_t i = source(j->args.mode, at[d] - j->args.before[d], j->in.dim[d]);

			offset = i < 0 ? -1 : offset + i * j->stride[d];
		}
		pad_line(j, offset < 0 ? NULL : j->from + offset * j->size, j->to + l * j->out.dim[last] * j->size);
		for (int d = last - 1; d >= 0 && ++at[d] == j->out.dim[d]; d--)
			at[d] = 0;
	}
}

static const void *pad_value(const struct rg_call *c, unsigned char buf[16])
{
	memset(buf, 0, 16);
	if (c->node->version >= 11)
		return c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED ? c->in[2].data : buf;
	rg_ref_set(&(struct rg_tensor){ c->in[0].dtype, { 0 }, buf }, 0, (double)rg_node_float(c->node, "value", 0));
	return buf;
}

static int run_pad(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	_Alignas(16) unsigned char buf[16];
	struct pad_job j = { .in = c->in[0].shape, .out = c->out[0].shape, .value = pad_value(c, buf),
			     .value_bytes = (int64_t)rg_dtype_bytes(c->in[0].dtype), .from = c->in[0].data,
			     .to = c->out[0].data };
	int need = -1, rank = j.in.rank, rc = rg_args_pad(c->node, c->in, &j.args, &need, err);

	if (rc)
		return rc;
	for (int d = 0; d < rank; d++)
		if (j.out.dim[d] != j.in.dim[d] + j.args.before[d] + j.args.after[d])
			return rg_error_set(err, -EINVAL, "the pads changed after the shapes were planned");
	if (rg_shape_count(&j.out) == 0)
		return 0;
	j.size = j.value_bytes;
	while (rank > 1 && !j.args.before[rank - 1] && !j.args.after[rank - 1])
		j.size *= j.in.dim[--rank];
	j.in.rank = j.out.rank = rank;
	rg_shape_strides(&j.in, j.stride);
	par->run(par, rg_shape_count_range(&j.out, 0, rank - 1), rg_move_grain(j.out.dim[rank - 1] * j.size), work_pad, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	return c->in[0].dtype != RG_STRING && rg_copy_supports(c);
}

static bool supports_concat(const struct rg_call *c)
{
	return supports(c) && c->node->n_in <= RG_ARGS_MAX_SPLIT;
}

static bool supports_pad(const struct rg_call *c)
{
	return supports(c) && c->in[0].shape.rank > 0 &&
	       (c->node->version >= 11 || rg_in_set(c->in[0].dtype, RG_SET_NUM));
}

#define K(OP, SUPPORTS, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = "loops", .rank = 20, .supports = SUPPORTS, \
	  .traffic = rg_copy_traffic, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("Concat", supports_concat, run_concat),
	K("Gather", supports, run_gather),
	K("Pad", supports_pad, run_pad),
	K("Split", supports, run_split),
};
RG_KERNEL_TABLE(rg_kernels_generic_rows, kernels);
