/* See move.h. Transpose, Slice, Expand, Tile, DepthToSpace and SpaceToDepth. */
#include "kernels/generic/move.h"

#include "graph/op-args.h"
#include "kernels/tables.h"

enum { BLOCK = 16, COLUMNS = 32, CUT = 256, PIECE = 1 << 16 };

/*
 * One task: `lines` of n elements. Element i of line l is read at l * from_line +
 * i * from_step and written at l * to_line + i.
 */
struct lines {
	int64_t lines, n, from_line, from_step, to_line;
};

/* The dimension of the lines, the innermost one, and what is outside of both. */
struct job {
	struct lines inner;
	int rank;
	int64_t dim[RG_COPY_MAX_RANK], from_stride[RG_COPY_MAX_RANK], to_stride[RG_COPY_MAX_RANK];
	size_t size;
	const char *from;
	char *to;
	int64_t bytes; /* of one copy */
};

struct wide { /* 16 bytes, of any alignment */
	uint64_t low, high;
};

/* ---- lines that lie as they are, or repeat one element ---- */

#define STRAIGHT(TYPE, FROM) do { \
		const TYPE *restrict f = (const TYPE *)from; \
		TYPE *restrict t = (TYPE *)to; \
\
		for (int64_t l = 0; l < s->lines; l++, f += s->from_line, t += s->to_line) \
			for (int64_t i = 0; i < s->n; i++) \
				t[i] = f[FROM]; \
	} while (0)
#define BY_SIZE(MACRO, ...) do { \
		switch (size) { \
		case 1: MACRO(uint8_t, __VA_ARGS__); break; \
		case 2: MACRO(uint16_t, __VA_ARGS__); break; \
		case 4: MACRO(uint32_t, __VA_ARGS__); break; \
		case 8: MACRO(uint64_t, __VA_ARGS__); break; \
		default: MACRO(struct wide, __VA_ARGS__); break; \
		} \
	} while (0)

static void copy_lines(const struct lines *s, const char *from, char *to, size_t size)
{
	size_t bytes = (size_t)s->n * size;

	if (bytes < 64) {
		BY_SIZE(STRAIGHT, i);
		return;
	}
	for (int64_t l = 0; l < s->lines; l++)
		memcpy(to + (size_t)(l * s->to_line) * size, from + l * s->from_line * (int64_t)size, bytes);
}

static void repeat_lines(const struct lines *s, const char *from, char *to, size_t size)
{
	BY_SIZE(STRAIGHT, 0);
}

static void strided_lines(const struct lines *s, const char *from, char *to, size_t size)
{
	if (size == 4 && s->from_step == 2) {
		STRAIGHT(uint32_t, 2 * i);
		return;
	}
	BY_SIZE(STRAIGHT, i * s->from_step);
}

/* ---- lines across: neighbours in the input are neighbouring lines ---- */

typedef uint32_t quad __attribute__((vector_size(16), aligned(4), may_alias));

/* 4x4 elements of 4 bytes: rows of x become columns of y. */
RG_INLINE void turn_4(const uint32_t *x, int64_t from, uint32_t *y, int64_t to)
{
	quad a = *(const quad *)x, b = *(const quad *)(x + from);
	quad c = *(const quad *)(x + 2 * from), d = *(const quad *)(x + 3 * from);
	quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);

	*(quad *)y = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
	*(quad *)(y + to) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
	ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
	cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
	*(quad *)(y + 2 * to) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
	*(quad *)(y + 3 * to) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

static void turn_block_4(const uint32_t *x, int64_t from, uint32_t *y, int64_t to, int64_t lines, int64_t n)
{
	int64_t l = 0, i;

	for (; l + 4 <= lines; l += 4) {
		for (i = 0; i + 4 <= n; i += 4)
			turn_4(x + i * from + l, from, y + l * to + i, to);
		for (; i < n; i++)
			for (int k = 0; k < 4; k++)
				y[(l + k) * to + i] = x[i * from + l + k];
	}
	for (; l < lines; l++)
		for (i = 0; i < n; i++)
			y[l * to + i] = x[i * from + l];
}

/* By way of a buffer, so that lines of x are read and lines of y written once and
 * whole: for strides that put them all into one set of a cache. */
static void turn_block_4_apart(const uint32_t *x, int64_t from, uint32_t *restrict y, int64_t to, int64_t lines,
			       int64_t n)
{
	uint32_t room[COLUMNS * BLOCK];

	if (lines % 4 || n % 4) {
		for (int64_t i = 0; i < n; i++)
			for (int64_t l = 0; l < lines; l++)
				room[l * BLOCK + i] = x[i * from + l];
	} else {
		for (int64_t i = 0; i < n; i += 4)
			for (int64_t l = 0; l < lines; l += 4)
				turn_4(x + i * from + l, from, room + l * BLOCK + i, BLOCK);
	}
	for (int64_t l = 0; l < lines; l++)
		for (int64_t i = 0; i < n; i++)
			y[l * to + i] = room[l * BLOCK + i];
}

#define TURN(TYPE, LINE) do { \
		const TYPE *x = (const TYPE *)from + i * s->from_step + l; \
		TYPE *y = (TYPE *)to + l * s->to_line + i; \
\
		for (int64_t r = 0; r < lines; r++) \
			for (int64_t c = 0; c < n; c++) \
				y[r * (LINE) + c] = x[c * s->from_step + r]; \
	} while (0)

/* Few long rows woven into pixels, and pixels parted into rows: group loads and
 * stores of a constant number vectorise. */
RG_INLINE void weave(const uint32_t *restrict x, int64_t step, uint32_t *restrict y, int64_t n, const int parts)
{
	for (int64_t l = 0; l < n; l++)
		for (int p = 0; p < parts; p++)
			y[l * parts + p] = x[p * step + l];
}

RG_INLINE void part(const uint32_t *restrict x, uint32_t *restrict y, int64_t line, int64_t n, const int parts)
{
	for (int64_t i = 0; i < n; i++)
		for (int p = 0; p < parts; p++)
			y[p * line + i] = x[i * parts + p];
}

static bool turn_few(const struct lines *s, const uint32_t *x, uint32_t *y)
{
	if (s->n == 2 && s->to_line == 2)
		weave(x, s->from_step, y, s->lines, 2);
	else if (s->n == 3 && s->to_line == 3)
		weave(x, s->from_step, y, s->lines, 3);
	else if (s->lines == 2 && s->from_step == 2)
		part(x, y, s->to_line, s->n, 2);
	else if (s->lines == 3 && s->from_step == 3)
		part(x, y, s->to_line, s->n, 3);
	else
		return false;
	return true;
}

static void turn_lines(const struct lines *s, const char *from, char *to, size_t size)
{
	bool is_aliased = s->from_step % 512 == 0 || s->to_line % 512 == 0;

	if (size == 4 && turn_few(s, (const uint32_t *)from, (uint32_t *)to))
		return;
	for (int64_t l = 0; l < s->lines; l += COLUMNS) {
		int64_t lines = s->lines - l < COLUMNS ? s->lines - l : COLUMNS;

		for (int64_t i = 0; i < s->n; i += BLOCK) {
			int64_t n = s->n - i < BLOCK ? s->n - i : BLOCK;

			if (size == 4 && is_aliased)
				turn_block_4_apart((const uint32_t *)from + i * s->from_step + l, s->from_step,
						   (uint32_t *)to + l * s->to_line + i, s->to_line, lines, n);
			else if (size == 4)
				turn_block_4((const uint32_t *)from + i * s->from_step + l, s->from_step,
					     (uint32_t *)to + l * s->to_line + i, s->to_line, lines, n);
			else
				BY_SIZE(TURN, s->to_line);
		}
	}
}

/* ---- all of them ---- */

static void run_lines(const struct lines *s, const char *from, char *to, size_t size)
{
	if (s->from_step == 1)
		copy_lines(s, from, to, size);
	else if (s->from_step == 0)
		repeat_lines(s, from, to, size);
	else if (s->from_line == 1 && s->lines > 1)
		turn_lines(s, from, to, size);
	else
		strided_lines(s, from, to, size);
}

/* Items are lines, in order. */
static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t index[RG_COPY_MAX_RANK], rest = begin / j->inner.lines, line = begin % j->inner.lines, f = 0, t = 0;
	int64_t size = (int64_t)j->size;

	for (int d = j->rank - 1; d >= 0; d--) {
		index[d] = rest % j->dim[d];
		rest /= j->dim[d];
		f += index[d] * j->from_stride[d];
		t += index[d] * j->to_stride[d];
	}
	while (begin < end) {
		struct lines s = j->inner;

		s.lines = s.lines - line < end - begin ? s.lines - line : end - begin;
		run_lines(&s, j->from + (f + line * s.from_line) * size, j->to + (t + line * s.to_line) * size, j->size);
		begin += s.lines;
		line = 0;
		for (int d = j->rank - 1; d >= 0; d--) {
			f += j->from_stride[d];
			t += j->to_stride[d];
			if (++index[d] < j->dim[d])
				break;
			f -= j->from_stride[d] * j->dim[d];
			t -= j->to_stride[d] * j->dim[d];
			index[d] = 0;
		}
	}
}

/* One copy, in pieces. */
static void work_bytes(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t first = begin * PIECE, last = end * PIECE < j->bytes ? end * PIECE : j->bytes;

	memcpy(j->to + first, j->from + first, (size_t)(last - first));
}

/* The dimension whose lines follow each other best: the input's innermost, where the
 * innermost of the output is read across, else the next one. */
static int choose_lines(const struct rg_copy *c)
{
	int last = c->rank - 1;

	if (c->from[last] != 0 && c->from[last] != 1)
		for (int d = last - 1; d >= 0; d--)
			if (c->from[d] == 1)
				return d;
	return last - 1;
}

void rg_move_run(const struct rg_copy *c, const void *from, void *to, size_t size_bytes, const struct rg_par *par)
{
	struct job j = { .size = size_bytes, .from = from, .to = to };
	int last = c->rank - 1, chosen;
	int64_t items = 1;

	for (int d = 0; d < c->rank; d++)
		if (c->dim[d] == 0)
			return;
	if (last < 0) {
		memcpy(to, from, size_bytes);
		return;
	}
	chosen = choose_lines(c);
	j.inner = (struct lines){ 1, c->dim[last], 0, c->from[last], 0 };
	if (chosen >= 0) {
		j.inner.lines = c->dim[chosen];
		j.inner.from_line = c->from[chosen];
		j.inner.to_line = c->to[chosen];
	} else if (j.inner.from_step == 1) {
		j.bytes = j.inner.n * (int64_t)size_bytes;
		par->run(par, (j.bytes + PIECE - 1) / PIECE, rg_move_grain(PIECE), work_bytes, &j);
		return;
	} else if (j.inner.n % CUT == 0) {
		/* one line: cut, so that it can be shared */
		j.inner = (struct lines){ j.inner.n / CUT, CUT, CUT * c->from[last], c->from[last], CUT };
	}
	for (int d = 0; d < last; d++) {
		if (d == chosen)
			continue;
		j.dim[j.rank] = c->dim[d];
		j.from_stride[j.rank] = c->from[d];
		j.to_stride[j.rank++] = c->to[d];
		items *= c->dim[d];
	}
	items *= j.inner.lines;
	par->run(par, items, rg_move_grain(j.inner.n * (int64_t)size_bytes * (j.inner.from_step > 1 ? 3 : 1)), work, &j);
}

/* ---- the operators: what the reference does, by another engine ---- */

static int move(const struct rg_copy *k, const struct rg_call *c, int64_t first, const struct rg_par *par)
{
	size_t size = rg_dtype_bytes(c->out[0].dtype);

	if (rg_shape_count(&c->out[0].shape) > 0)
		rg_move_run(k, (const char *)c->in[0].data + first * (int64_t)size, c->out[0].data, size, par);
	return 0;
}

static int run_transpose(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK];
	const int64_t *perm;
	struct rg_copy k = { 0 };
	int n = rg_node_ints(c->node, "perm", &perm);

	rg_shape_strides(s, from);
	rg_shape_strides(&c->out[0].shape, to);
	for (int i = 0; i < s->rank; i++) {
		int src = n > 0 ? rg_args_axis(perm[i], s->rank) : s->rank - 1 - i;

		rg_copy_dim(&k, s->dim[src], from[src], to[i]);
	}
	return move(&k, c, 0, par);
}

static int run_slice(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK], first = 0;
	struct rg_slice_args a;
	struct rg_copy k = { 0 };
	int need = -1, rc = rg_args_slice(c->node, c->in, &a, &need, err);

	if (rc)
		return rc;
	rg_shape_strides(s, from);
	rg_shape_strides(&c->out[0].shape, to);
	for (int i = 0; i < s->rank; i++) {
		if (a.count[i] != c->out[0].shape.dim[i])
			return rg_error_set(err, -EINVAL, "the bounds changed after the shapes were planned");
		first += a.start[i] * from[i];
		rg_copy_dim(&k, a.count[i], from[i] * a.step[i], to[i]);
	}
	return move(&k, c, first, par);
}

static int run_expand(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->out[0].shape;
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK];
	struct rg_copy k = { 0 };

	rg_shape_broadcast_strides(&c->in[0].shape, s, from);
	rg_shape_strides(s, to);
	for (int i = 0; i < s->rank; i++)
		rg_copy_dim(&k, s->dim[i], from[i], to[i]);
	return move(&k, c, 0, par);
}

/* Each dimension becomes two: the repeats, which read the same again, and the elements. */
static int run_tile(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t from[RG_MAX_RANK], to[RG_MAX_RANK];
	struct rg_copy k = { 0 };

	rg_shape_strides(s, from);
	rg_shape_strides(&c->out[0].shape, to);
	for (int i = 0; i < s->rank; i++) {
		int64_t d = s->dim[i];

		rg_copy_dim(&k, d ? c->out[0].shape.dim[i] / d : 0, 0, to[i] * d);
		rg_copy_dim(&k, d, from[i], to[i]);
	}
	return move(&k, c, 0, par);
}

/*
 * Both pair an array [batch, depth, h, w] with the image [batch, channels, h b, w b];
 * depth splits into (row of a block, column, channel), or (channel, row, column).
 */
static int move_blocks(const struct rg_call *c, const struct rg_shape *deep, bool to_image, const struct rg_par *par)
{
	int64_t b = rg_node_int(c->node, "blocksize", 1), plane = deep->dim[2] * deep->dim[3];
	int64_t channels = deep->dim[1] / (b * b), row = deep->dim[3] * b, image = row * deep->dim[2] * b;
	bool crd = !strcmp(rg_node_string(c->node, "mode", "DCR"), "CRD");
	int64_t column = crd ? plane : channels * plane;
	const int64_t dim[] = { deep->dim[0], channels, deep->dim[2], b, deep->dim[3], b };
	const int64_t in_deep[] = { deep->dim[1] * plane, crd ? b * b * plane : plane, deep->dim[3], column * b, 1, column };
	const int64_t in_image[] = { channels * image, image, row * b, row, b, 1 };
	/* in the order of the output: the image's, or the depth array's */
	static const int image_order[] = { 0, 1, 2, 3, 4, 5 }, dcr[] = { 0, 3, 5, 1, 2, 4 }, crd_order[] = { 0, 1, 3, 5, 2, 4 };
	const int *order = to_image ? image_order : crd ? crd_order : dcr;
	struct rg_copy k = { 0 };

	for (int i = 0; i < 6; i++) {
		int d = order[i];

		rg_copy_dim(&k, dim[d], to_image ? in_deep[d] : in_image[d], to_image ? in_image[d] : in_deep[d]);
	}
	return move(&k, c, 0, par);
}

static int run_depth_to_space(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return move_blocks(c, &c->in[0].shape, true, par);
}

static int run_space_to_depth(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return move_blocks(c, &c->out[0].shape, false, par);
}

/* Strings are pointers like any other; but a reader of this file need not think of them. */
static bool supports(const struct rg_call *c)
{
	return c->in[0].dtype != RG_STRING && rg_dtype_bytes(c->in[0].dtype) > 0;
}

#define K(OP, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = "loops", .rank = 20, .supports = supports, .traffic = rg_copy_traffic, \
	  .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("DepthToSpace", run_depth_to_space),
	K("Expand", run_expand),
	K("Slice", run_slice),
	K("SpaceToDepth", run_space_to_depth),
	K("Tile", run_tile),
	K("Transpose", run_transpose),
};
RG_KERNEL_TABLE(rg_kernels_generic_move, kernels);
