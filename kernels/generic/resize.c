/*
 * Resize and Upsample of float32, one output row at a time. Taps of both axes
 * are tabled first.
 *
 * Linear and cubic: an input row is interpolated along its length once and kept
 * in a ring, as many rows as the vertical taps reach over; an output row is
 * their weighted sum. So growing by s costs 1/s of an interpolation a row.
 * Along the length the taps are gathered element by element, unless the size
 * grows by 2, 4 or 8: then phase p of every s elements has the same weights and
 * the next input, which vectorises. Where elements of a pixel are neighbours
 * (channels last), a pixel is one vector loop.
 *
 * Nearest copies: elements of any 4-byte type. An output row that comes from the
 * same input row as the one before is a copy of that.
 *
 * Interpolation is in float, the reference's in double. A tap of weight 0 is
 * left out along the height but not along the length: there 0 * infinity is NaN.
 */
#include "kernels/generic/generic.h"

#include "kernels/resize.h"
#include "kernels/tables.h"

/* Taps of an axis: tap k of coordinate o is at[k * out + o]. */
struct axis {
	int64_t in, out;
	int64_t room, taps;  /* allocated; the most that any coordinate has */
	int32_t *at;
	float *weight;
	bool same;           /* coordinate o is element o */
	int grow;            /* 2, 4, 8: coordinates [low, high) repeat their weights every so many */
	int64_t low, high;
};

struct job {
	struct axis h, w;
	int64_t outer, inner; /* images before the height; elements of a pixel */
	int64_t row;          /* elements of an output row */
	bool nearest;
	const float *x;
	float *y;
	float *ring;          /* h.room rows a lane */
};

/* ---- which dimensions are the height and the length ---- */

/*
 * At most two dimensions may change, neighbours but for dimensions of 1. One
 * that has elements behind it is a height whose rows stay as they are.
 */
static bool split(const struct rg_resize *r, struct job *j, int *height, int *length)
{
	int changed[RG_MAX_RANK], n = 0, last;

	*height = *length = -1;
	for (int d = 0; d < r->rank; d++)
		if (!r->axis_kept[d])
			changed[n++] = d;
	if (n == 0 || n > 2)
		return false;
	last = changed[n - 1];
	j->inner = 1;
	for (int d = last + 1; d < r->rank; d++)
		j->inner *= r->in[d];
	if (n == 2) {
		*height = changed[0];
		*length = last;
		for (int d = changed[0] + 1; d < last; d++)
			if (r->in[d] != 1)
				return false;
	} else if (j->inner > 1) {
		*height = last;
	} else {
		*length = last;
	}
	j->outer = 1;
	for (int d = 0; d < (*height >= 0 ? *height : *length); d++)
		j->outer *= r->in[d];
	j->h.in = *height < 0 ? 1 : r->in[*height];
	j->h.out = *height < 0 ? 1 : r->out[*height];
	j->w.in = *length < 0 ? 1 : r->in[*length];
	j->w.out = *length < 0 ? 1 : r->out[*length];
	j->row = j->w.out * j->inner;
	return j->w.in <= INT32_MAX && j->h.in <= INT32_MAX;
}

static bool resolve(const struct rg_call *c, struct rg_resize *r, struct job *j, int *height, int *length)
{
	struct rg_error err = RG_ERROR_INIT;
	int need;

	memset(j, 0, sizeof(*j));
	if (rg_resize_resolve(c->node, c->in, r, &need, &err) || r->coord == RG_COORD_TF_CROP_AND_RESIZE)
		return false;
	j->nearest = r->mode == RG_RESIZE_NEAREST;
	if (!split(r, j, height, length))
		return false;
	j->h.room = *height < 0 ? 1 : rg_resize_width(c->node, j->h.in, j->h.out);
	j->w.room = *length < 0 ? 1 : rg_resize_width(c->node, j->w.in, j->w.out);
	return true;
}

/* ---- tables ---- */

static size_t round_64(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

static size_t axis_bytes(const struct axis *a)
{
	return round_64((size_t)(a->room * a->out) * sizeof(int32_t)) +
	       round_64((size_t)(a->room * a->out) * sizeof(float)) +
	       (size_t)a->room * sizeof(struct rg_resize_tap);
}

static size_t table_bytes(const struct job *j)
{
	return round_64(axis_bytes(&j->h)) + round_64(axis_bytes(&j->w));
}

static size_t ring_row(const struct job *j)
{
	return round_64((size_t)j->row * sizeof(float)) / sizeof(float);
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_resize r;
	int height, length;
	struct job j;

	if (!resolve(c, &r, &j, &height, &length))
		return 0;
	return table_bytes(&j) + (size_t)lanes * (size_t)j.h.room * ring_row(&j) * sizeof(float);
}

/* The range around the middle where taps move on by one element every `grow`. */
static void find_period(struct axis *a)
{
	int64_t s = a->out / a->in, low, high;

	if (a->out % a->in || (s != 2 && s != 4 && s != 8) || a->in < 8)
		return;
	low = a->out / 2 / s * s;
	for (high = low + s; high < a->out; high++)
		for (int64_t k = 0; k < a->taps; k++)
			if (a->at[k * a->out + high] != a->at[k * a->out + high - s] + 1 ||
			    a->weight[k * a->out + high] != a->weight[k * a->out + high - s])
				goto end;
end:
	high -= high % s;
	for (; low >= s; low -= s)
		for (int64_t o = low - s; o < low; o++)
			for (int64_t k = 0; k < a->taps; k++)
				if (a->at[k * a->out + o] != a->at[k * a->out + o + s] - 1 ||
				    a->weight[k * a->out + o] != a->weight[k * a->out + o + s])
					goto done;
done:
	a->grow = (int)s;
	a->low = low;
	a->high = high;
}

/* Coordinates with fewer taps than others repeat their last one with weight 0. */
static int fill_axis(const struct rg_resize *r, int d, struct axis *a, char *room, struct rg_error *err)
{
	struct rg_resize_tap *taps;

	a->at = (int32_t *)room;
	room += round_64((size_t)(a->room * a->out) * sizeof(int32_t));
	a->weight = (float *)room;
	taps = (struct rg_resize_tap *)(room + round_64((size_t)(a->room * a->out) * sizeof(float)));
	a->taps = 1;
	a->same = a->in == a->out;
	for (int64_t o = 0; o < a->out; o++) {
		int64_t n = 1;
		bool outside;

		if (d < 0)
			taps[0] = (struct rg_resize_tap){ o, 1 };
		else if ((n = rg_resize_taps(r, d, o, taps, a->room, &outside, err)) < 0)
			return (int)n;
		if (n == 0) /* exclude_outside left none: a sum of nothing */
			taps[0] = (struct rg_resize_tap){ 0, 0 };
		if (n > 1 || taps[0].at != o || taps[0].weight != 1)
			a->same = false;
		for (int64_t k = 0; k < a->room; k++) {
			a->at[k * a->out + o] = (int32_t)taps[k < n ? k : n ? n - 1 : 0].at;
			a->weight[k * a->out + o] = k < n ? (float)taps[k].weight : 0;
		}
		a->taps = n > a->taps ? n : a->taps;
	}
	if (a->in > 0 && !a->same)
		find_period(a);
	return 0;
}

/* ---- along the length ---- */

/* s outputs an input, k taps: all constants here, so that the loop unrolls. */
RG_INLINE void grow_row(const struct axis *a, const float *restrict x, float *restrict y, const int s, const int taps)
{
	float weight[8][4];
	int32_t at[8][4];
	int64_t n = (a->high - a->low) / s;

	for (int p = 0; p < s; p++) {
		for (int k = 0; k < taps; k++) {
			weight[p][k] = a->weight[k * a->out + a->low + p];
			at[p][k] = a->at[k * a->out + a->low + p];
		}
	}
	y += a->low;
	for (int64_t i = 0; i < n; i++) {
		for (int p = 0; p < s; p++) {
			float v = weight[p][0] * x[at[p][0] + i];

			for (int k = 1; k < taps; k++)
				v += weight[p][k] * x[at[p][k] + i];
			y[i * s + p] = v;
		}
	}
}

static bool grow(const struct axis *a, const float *restrict x, float *restrict y)
{
	if (a->taps == 2 && a->grow == 2)
		grow_row(a, x, y, 2, 2);
	else if (a->taps == 2 && a->grow == 4)
		grow_row(a, x, y, 4, 2);
	else if (a->taps == 2 && a->grow == 8)
		grow_row(a, x, y, 8, 2);
	else if (a->taps == 4 && a->grow == 2)
		grow_row(a, x, y, 2, 4);
	else
		return false;
	return true;
}

/* Coordinates [begin, end), each from taps of its own. */
static void gather_row(const struct axis *a, const float *restrict x, float *restrict y, int64_t begin, int64_t end)
{
	const int32_t *restrict at = a->at;
	const float *restrict w = a->weight;
	int64_t n = a->out;

	if (a->taps == 1) {
		for (int64_t o = begin; o < end; o++)
			y[o] = w[o] * x[at[o]];
	} else if (a->taps == 2) {
		for (int64_t o = begin; o < end; o++)
			y[o] = w[o] * x[at[o]] + w[n + o] * x[at[n + o]];
	} else if (a->taps == 4) {
		for (int64_t o = begin; o < end; o++)
			y[o] = w[o] * x[at[o]] + w[n + o] * x[at[n + o]] + w[2 * n + o] * x[at[2 * n + o]] +
			       w[3 * n + o] * x[at[3 * n + o]];
	} else {
		for (int64_t o = begin; o < end; o++) {
			float v = 0;

			for (int64_t k = 0; k < a->taps; k++)
				v += w[k * n + o] * x[at[k * n + o]];
			y[o] = v;
		}
	}
}

static void pixel_row(const struct axis *a, const float *x, float *restrict y, int64_t inner)
{
	for (int64_t o = 0; o < a->out; o++, y += inner) {
		for (int64_t k = 0; k < a->taps; k++) {
			const float *restrict from = x + a->at[k * a->out + o] * inner;
			float w = a->weight[k * a->out + o];

			if (k == 0)
				for (int64_t i = 0; i < inner; i++)
					y[i] = w * from[i];
			else if (w != 0)
				for (int64_t i = 0; i < inner; i++)
					y[i] += w * from[i];
		}
	}
}

static void stretch(const struct job *j, const float *x, float *y)
{
	const struct axis *a = &j->w;

	if (j->inner > 1) {
		pixel_row(a, x, y, j->inner);
	} else if (grow(a, x, y)) {
		gather_row(a, x, y, 0, a->low);
		gather_row(a, x, y, a->high, a->out);
	} else {
		gather_row(a, x, y, 0, a->out);
	}
}

/* ---- across rows ---- */

/* y = sum of n rows, 1 to 4 of them at once; added to what is there, or not. */
RG_INLINE void blend(float *restrict y, const float *const *rows, const float *w, int64_t n, const int count,
		     const bool add)
{
	const float *restrict a = rows[0], *restrict b = rows[count > 1], *restrict c = rows[count > 2 ? 2 : 0],
		    *restrict d = rows[count > 3 ? 3 : 0];
	const float wa = w[0], wb = w[count > 1], wc = w[count > 2 ? 2 : 0], wd = w[count > 3 ? 3 : 0];

	for (int64_t i = 0; i < n; i++) {
		float v = wa * a[i];

		if (count > 1)
			v += wb * b[i];
		if (count > 2)
			v += wc * c[i];
		if (count > 3)
			v += wd * d[i];
		y[i] = add ? y[i] + v : v;
	}
}

static void blend_rows(float *y, const float *const *rows, const float *w, int64_t n, int count, bool add)
{
	if (add) {
		for (int k = 0; k < count; k++)
			blend(y, rows + k, w + k, n, 1, true);
	} else if (count == 1 && w[0] == 1) {
		memcpy(y, rows[0], (size_t)n * sizeof(*y));
	} else if (count == 1) {
		blend(y, rows, w, n, 1, false);
	} else if (count == 2) {
		blend(y, rows, w, n, 2, false);
	} else if (count == 3) {
		blend(y, rows, w, n, 3, false);
	} else {
		blend(y, rows, w, n, 4, false);
	}
}

/* The stretched input row `at` of image `o`: in the ring, or made there now. */
static const float *ring_get(const struct job *j, float *ring, int64_t *held, int64_t o, int64_t at)
{
	int64_t row = o * j->h.in + at, slot = at % j->h.room;
	float *to = ring + slot * (int64_t)ring_row(j);

	if (j->w.same)
		return j->x + row * j->row;
	if (held[slot] != row) {
		stretch(j, j->x + row * j->w.in * j->inner, to);
		held[slot] = row;
	}
	return to;
}

/* One output row from the rows of its taps, up to 4 at a time. */
static void blend_row(const struct job *j, float *ring, int64_t *held, int64_t image, int64_t o)
{
	float *y = j->y + (image * j->h.out + o) * j->row;
	const float *rows[4];
	bool add = false;
	float w[4];
	int n = 0;

	for (int64_t k = 0; k < j->h.taps; k++) {
		float weight = j->h.weight[k * j->h.out + o];

		if (weight == 0)
			continue;
		w[n] = weight;
		rows[n++] = ring_get(j, ring, held, image, j->h.at[k * j->h.out + o]);
		if (n == 4) {
			blend_rows(y, rows, w, j->row, n, add);
			add = true;
			n = 0;
		}
	}
	if (n)
		blend_rows(y, rows, w, j->row, n, add);
	else if (!add)
		memset(y, 0, (size_t)j->row * sizeof(*y));
}

enum { MAX_RING = 64 };

static void work_blend(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	float *ring = j->ring + (size_t)lane * (size_t)j->h.room * ring_row(j);
	int64_t held[MAX_RING];

	for (int64_t i = 0; i < j->h.room; i++)
		held[i] = -1;
	for (int64_t i = begin; i < end; i++) {
		if (j->h.same && !j->w.same) /* nothing to blend: straight to its place */
			stretch(j, j->x + i * j->w.in * j->inner, j->y + i * j->row);
		else
			blend_row(j, ring, held, i / j->h.out, i % j->h.out);
	}
}

/* ---- nearest ---- */

RG_INLINE void repeat_row(const struct axis *a, const uint32_t *restrict x, uint32_t *restrict y, const int s)
{
	int64_t n = (a->high - a->low) / s;

	x += a->at[a->low];
	y += a->low;
	for (int64_t i = 0; i < n; i++)
		for (int p = 0; p < s; p++)
			y[i * s + p] = x[i];
}

/* Whether all of a period come from one element: not so when rounding is odd. */
static bool repeats(const struct axis *a)
{
	return a->grow && a->low < a->high && a->at[a->low] == a->at[a->low + a->grow - 1];
}

static void pick_row(const struct job *j, const uint32_t *restrict x, uint32_t *restrict y)
{
	const struct axis *a = &j->w;
	int64_t low = a->out;

	if (a->same) {
		memcpy(y, x, (size_t)j->row * sizeof(*y));
		return;
	}
	if (j->inner > 1) {
		for (int64_t o = 0; o < a->out; o++)
			for (int64_t i = 0; i < j->inner; i++)
				y[o * j->inner + i] = x[a->at[o] * j->inner + i];
		return;
	}
	if (repeats(a)) {
		low = a->low;
		if (a->grow == 2)
			repeat_row(a, x, y, 2);
		else if (a->grow == 4)
			repeat_row(a, x, y, 4);
		else
			repeat_row(a, x, y, 8);
	}
	for (int64_t o = 0; o < low; o++)
		y[o] = x[a->at[o]];
	for (int64_t o = low < a->out ? a->high : a->out; o < a->out; o++)
		y[o] = x[a->at[o]];
}

static void work_nearest(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct job *j = arg;
	int64_t held = -1;

	for (int64_t i = begin; i < end; i++) {
		int64_t row = i / j->h.out * j->h.in + j->h.at[i % j->h.out];
		uint32_t *y = (uint32_t *)j->y + i * j->row;

		if (row == held)
			memcpy(y, y - j->row, (size_t)j->row * sizeof(*y));
		else
			pick_row(j, (const uint32_t *)j->x + row * j->w.in * j->inner, y);
		held = row;
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int height, length, rc;
	char *room = c->scratch;
	struct rg_resize r;
	struct job j;

	if (!resolve(c, &r, &j, &height, &length))
		return rg_error_set(err, -EINVAL, "scales or sizes changed since the plan was made");
	for (int d = 0; d < r.rank; d++)
		if (r.out[d] != c->out[0].shape.dim[d])
			return rg_error_set(err, -EINVAL, "scales or sizes changed since the plan was made");
	if (rg_shape_count(&c->out[0].shape) == 0)
		return 0;
	if ((rc = fill_axis(&r, height, &j.h, room, err)) ||
	    (rc = fill_axis(&r, length, &j.w, room + round_64(axis_bytes(&j.h)), err)))
		return rc;
	j.ring = (float *)(room + table_bytes(&j));
	j.x = c->in[0].data;
	j.y = c->out[0].data;
	par->run(par, j.outer * j.h.out, rg_grain((j.nearest ? 1 : 3) * j.row + 40),
		 j.nearest ? work_nearest : work_blend, &j);
	return 0;
}

static bool supports(const struct rg_call *c)
{
	struct rg_resize r;
	int height, length;
	struct job j;

	if (rg_dtype_bytes(c->in[0].dtype) != 4 || !resolve(c, &r, &j, &height, &length))
		return false;
	return j.nearest || (c->in[0].dtype == RG_F32 && j.h.room <= MAX_RING);
}

/* Exact for nearest only: how often a row is stretched anew depends on the lanes. */
static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	struct rg_resize r;
	int height, length;
	struct job j;

	*out = (struct rg_traffic){ -1, -1, -1 };
	if (!resolve(c, &r, &j, &height, &length) || !j.nearest)
		return;
	out->executed_flops = 0;
	out->read_bytes = out->write_bytes = rg_tensor_bytes(c->out[0].dtype, &c->out[0].shape);
}

#define K(OP) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .scratch_bytes = scratch_bytes, .traffic = traffic, \
	  .run = run }
static const struct rg_kernel kernels[] = {
	K("Resize"),
	K("Upsample"),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(resize), kernels);
