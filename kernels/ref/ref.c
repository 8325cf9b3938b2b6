/*
 * Shared parts of the reference kernels: elements through double, and the walk
 * over broadcast operands.
 */
#include "kernels/ref/ref.h"

#include <string.h>

#include "graph/narrow.h"

double rg_ref_get(const struct rg_tensor *t, int64_t i)
{
	double v;

	rg_ref_load(t, i, 1, 1, &v);
	return v;
}

void rg_ref_set(const struct rg_tensor *t, int64_t i, double v)
{
	rg_ref_store(t, i, 1, 1, &v);
}

static void load_narrow(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, double *buf)
{
	int bits = rg_dtype_bits(t->dtype);

	for (int64_t i = 0; i < n; i++)
		buf[i] = (double)rg_narrow_decode(t->dtype, rg_narrow_get(t->data, bits, first + i * stride));
}

static void store_narrow(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, const double *buf)
{
	const struct rg_narrow_rule rule = { .saturate = true };
	int bits = rg_dtype_bits(t->dtype);

	for (int64_t i = 0; i < n; i++)
		rg_narrow_set(t->data, bits, first + i * stride, rg_narrow_encode(t->dtype, buf[i], rule));
}

void rg_ref_clear(const struct rg_tensor *t)
{
	int64_t bytes = rg_tensor_bytes(t->dtype, &t->shape);

	if (bytes > 0 && rg_dtype_bytes(t->dtype) == 0)
		memset(t->data, 0, (size_t)bytes);
}

#define LOAD(TYPE, CTYPE, EXPR) \
	case TYPE: { \
		const CTYPE *p = (const CTYPE *)t->data + first; \
		if (stride == 1) { \
			for (int64_t i = 0; i < n; i++) { \
				CTYPE v = p[i]; \
				buf[i] = (double)(EXPR); \
			} \
		} else { \
			for (int64_t i = 0; i < n; i++) { \
				CTYPE v = p[i * stride]; \
				buf[i] = (double)(EXPR); \
			} \
		} \
		break; \
	}
#define LOAD_INT(TYPE, CTYPE) LOAD(TYPE, CTYPE, v)

void rg_ref_load(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, double *buf)
{
	switch (t->dtype) {
	LOAD(RG_F32, float, v)
	LOAD(RG_F64, double, v)
	LOAD(RG_F16, uint16_t, rg_f16_to_f32(v))
	LOAD(RG_BF16, uint16_t, rg_bf16_to_f32(v))
	RG_FOR_INTS(LOAD_INT)
	LOAD(RG_BOOL, uint8_t, v)
	default:
		if (rg_dtype_is_narrow(t->dtype))
			load_narrow(t, first, stride, n, buf);
		else
			memset(buf, 0xff, (size_t)n * sizeof(*buf)); /* NaN: shows at once */
		break;
	}
}

#define STORE(TYPE, CTYPE, EXPR) \
	case TYPE: { \
		CTYPE *p = (CTYPE *)t->data + first; \
		for (int64_t i = 0; i < n; i++) { \
			double v = buf[i]; \
			p[i * stride] = (CTYPE)(EXPR); \
		} \
		break; \
	}
#define STORE_INT(TYPE, CTYPE) STORE(TYPE, CTYPE, v)

void rg_ref_store(const struct rg_tensor *t, int64_t first, int64_t stride, int64_t n, const double *buf)
{
	switch (t->dtype) {
	STORE(RG_F32, float, v)
	STORE(RG_F64, double, v)
	STORE(RG_F16, uint16_t, rg_f32_to_f16((float)v))
	STORE(RG_BF16, uint16_t, rg_f32_to_bf16((float)v))
	RG_FOR_INTS(STORE_INT)
	STORE(RG_BOOL, uint8_t, v != 0)
	default:
		if (rg_dtype_is_narrow(t->dtype))
			store_narrow(t, first, stride, n, buf);
		break;
	}
}

/* Whether s is a suffix of `out` behind ones: then it simply repeats. */
static bool repeats(const struct rg_shape *s, const struct rg_shape *out)
{
	int lead = 0;

	while (lead < s->rank && s->dim[lead] == 1)
		lead++;
	for (int d = lead; d < s->rank; d++)
		if (s->dim[d] != out->dim[out->rank - s->rank + d])
			return false;
	return true;
}

void rg_ref_load_broadcast(const struct rg_tensor *t, const struct rg_shape *out, int64_t first, int64_t n,
			   double *buf)
{
	int64_t strides[RG_MAX_RANK], index[RG_MAX_RANK], at = 0, count, m;

	if (repeats(&t->shape, out)) {
		count = rg_shape_count(&t->shape);
		for (at = first % count; n > 0; n -= m, buf += m, at = 0) {
			m = n < count - at ? n : count - at;
			rg_ref_load(t, at, 1, m, buf);
		}
		return;
	}
	rg_shape_broadcast_strides(&t->shape, out, strides);
	for (int d = out->rank - 1; d >= 0; d--) {
		index[d] = first % out->dim[d];
		first /= out->dim[d];
		at += index[d] * strides[d];
	}
	for (int64_t i = 0; i < n; i++) {
		buf[i] = rg_ref_get(t, at);
		for (int d = out->rank - 1; d >= 0; d--) {
			at += strides[d];
			if (++index[d] < out->dim[d])
				break;
			at -= strides[d] * out->dim[d];
			index[d] = 0;
		}
	}
}

double rg_ref_sum(const double *buf, int64_t n)
{
	double s[4] = { 0 };
	int64_t i = 0;

	for (; i + 4 <= n; i += 4)
		for (int j = 0; j < 4; j++)
			s[j] += buf[i + j];
	for (; i < n; i++)
		s[0] += buf[i];
	return (s[0] + s[1]) + (s[2] + s[3]);
}

void rg_ref_split(const struct rg_shape *s, uint32_t axes, struct rg_ref_split *out)
{
	int64_t strides[RG_MAX_RANK];
	struct rg_ref_dims *last = NULL;

	memset(out, 0, sizeof(*out));
	out->kept.count = out->reduced.count = 1;
	rg_shape_strides(s, strides);
	for (int d = 0; d < s->rank; d++) {
		struct rg_ref_dims *to = axes >> d & 1 ? &out->reduced : &out->kept;

		to->count *= s->dim[d];
		if (s->dim[d] == 1)
			continue;
		/* a neighbour of the same kind: one longer dimension */
		if (last == to) {
			to->dim[to->n - 1] *= s->dim[d];
			to->stride[to->n - 1] = strides[d];
		} else {
			to->dim[to->n] = s->dim[d];
			to->stride[to->n++] = strides[d];
		}
		last = to;
	}
	if (out->reduced.n) {
		out->reduced.n--;
		out->run = out->reduced.dim[out->reduced.n];
		out->step = out->reduced.stride[out->reduced.n];
	} else {
		out->run = out->step = 1;
	}
}

bool rg_ref_dims_next(const struct rg_ref_dims *d, int64_t *index, int64_t *at)
{
	for (int i = d->n - 1; i >= 0; i--) {
		*at += d->stride[i];
		if (++index[i] < d->dim[i])
			return true;
		*at -= d->stride[i] * d->dim[i];
		index[i] = 0;
	}
	return false;
}

/* Whether dimension d of the walk can be merged into the one outside it. */
static bool can_merge(const struct rg_walk *w, int outer, int64_t dim, const int64_t *stride)
{
	for (int k = 0; k < w->n; k++)
		if (w->stride[k][outer] != stride[k] * dim)
			return false;
	return true;
}

void rg_walk_start(struct rg_walk *w, const struct rg_shape *out, int n,
		   const struct rg_shape *const *shapes)
{
	int64_t strides[3][RG_MAX_RANK], stride[3];

	memset(w, 0, sizeof(*w));
	w->n = n;
	for (int k = 0; k < n; k++)
		rg_shape_broadcast_strides(shapes[k], out, strides[k]);
	for (int d = 0; d < out->rank; d++) {
		if (out->dim[d] == 0)
			w->empty = true;
		if (out->dim[d] == 1)
			continue;
		for (int k = 0; k < n; k++)
			stride[k] = strides[k][d];
		if (w->rank && can_merge(w, w->rank - 1, out->dim[d], stride)) {
			w->dim[w->rank - 1] *= out->dim[d];
		} else {
			w->dim[w->rank++] = out->dim[d];
		}
		for (int k = 0; k < n; k++)
			w->stride[k][w->rank - 1] = stride[k];
	}
	w->inner = 1;
	if (w->rank) {
		w->rank--;
		w->inner = w->dim[w->rank];
		for (int k = 0; k < n; k++)
			w->step[k] = w->stride[k][w->rank];
	}
}

bool rg_walk_next(struct rg_walk *w)
{
	if (w->empty)
		return false;
	if (!w->started) {
		w->started = true;
		return true;
	}
	w->out += w->inner;
	for (int d = w->rank - 1; d >= 0; d--) {
		for (int k = 0; k < w->n; k++)
			w->at[k] += w->stride[k][d];
		if (++w->index[d] < w->dim[d])
			return true;
		for (int k = 0; k < w->n; k++)
			w->at[k] -= w->stride[k][d] * w->dim[d];
		w->index[d] = 0;
	}
	return false;
}
