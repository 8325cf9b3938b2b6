/* Shapes: counting with overflow checks, text, broadcasting, strides. */
#include "graph/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

int64_t rg_shape_count_range(const struct rg_shape *s, int from, int to)
{
	int64_t n = 1;
	bool empty = false;

	/* A zero does not excuse the others: strides of a shape that was counted
	 * must not overflow either. */
	for (int i = from; i < to; i++) {
		if (s->dim[i] < 0)
			return -1;
		if (s->dim[i] == 0)
			empty = true;
		else if (__builtin_mul_overflow(n, s->dim[i], &n))
			return -1;
	}
	return empty ? 0 : n;
}

int64_t rg_shape_count(const struct rg_shape *s)
{
	return rg_shape_count_range(s, 0, s->rank);
}

int64_t rg_tensor_bytes(enum rg_dtype t, const struct rg_shape *s)
{
	int64_t n = rg_shape_count(s);
	int bits = rg_dtype_bits(t);

	if (n < 0 || bits == 0)
		return -1;
	if (bits % 8 == 0)
		return __builtin_mul_overflow(n, bits / 8, &n) ? -1 : n;
	if (__builtin_mul_overflow(n, bits, &n) || __builtin_add_overflow(n, 7, &n))
		return -1;
	return n / 8;
}

static void *copy_strings(const struct rg_tensor *t, size_t count)
{
	const char *const *from = t->data;
	size_t bytes = count * sizeof(*from);
	const char **to;
	char *text;

	for (size_t i = 0; i < count; i++)
		bytes += from[i] ? strlen(from[i]) + 1 : 0;
	to = rg_alloc_aligned(64, bytes);
	text = (char *)(to + count);
	for (size_t i = 0; to && i < count; i++) {
		size_t n = from[i] ? strlen(from[i]) + 1 : 0;

		to[i] = n ? memcpy(text, from[i], n) : NULL;
		text += n;
	}
	return to;
}

void *rg_tensor_copy_data(const struct rg_tensor *t)
{
	int64_t bytes = rg_tensor_bytes(t->dtype, &t->shape);
	void *to;

	if (bytes <= 0 || !t->data)
		return NULL;
	if (t->dtype == RG_STRING)
		return copy_strings(t, (size_t)rg_shape_count(&t->shape));
	to = rg_alloc_aligned(64, (size_t)bytes);
	if (to)
		memcpy(to, t->data, (size_t)bytes);
	return to;
}

bool rg_shape_equal(const struct rg_shape *a, const struct rg_shape *b)
{
	return a->rank == b->rank &&
	       memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(a->dim[0])) == 0;
}

struct rg_shape rg_shape_of(int rank, const int64_t *dims)
{
	struct rg_shape s = { .rank = rank };

	if (rank)
		memcpy(s.dim, dims, (size_t)rank * sizeof(dims[0]));
	return s;
}

char *rg_shape_text(char *out, const struct rg_shape *s)
{
	enum { CAP = 160 };
	int at = 0;

	if (s->rank == 0) {
		strcpy(out, "scalar");
		return out;
	}
	for (int i = 0; i < s->rank; i++) {
		at += snprintf(out + at, (size_t)(CAP - at), "%s%" PRId64, i ? "x" : "", s->dim[i]);
		if (at > CAP - 24 && i + 1 < s->rank) { /* the next number might not fit */
			strcpy(out + at, "x..");
			break;
		}
	}
	return out;
}

int rg_shape_parse(const char *text, struct rg_shape *out, struct rg_error *err)
{
	const char *p = text;

	memset(out, 0, sizeof(*out));
	if (strcmp(text, "scalar") == 0)
		return 0;
	for (;;) {
		int64_t v = 0;

		if (*p < '0' || *p > '9')
			break;
		for (; *p >= '0' && *p <= '9'; p++)
			if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *p - '0', &v))
				goto bad;
		if (out->rank == RG_MAX_RANK) {
			rg_error_set(err, -EINVAL, "shape '%s' has more than %d dimensions", text, RG_MAX_RANK);
			return err->code;
		}
		out->dim[out->rank++] = v;
		if (*p == '\0')
			return 0;
		if (*p != 'x' && *p != 'X' && *p != ',')
			break;
		p++;
	}
bad:
	rg_error_set(err, -EINVAL, "'%s' is not a shape", text);
	return rg_error_hint(err, "write the dimensions as in 1x3x640x640");
}

bool rg_shape_broadcast(const struct rg_shape *a, const struct rg_shape *b, struct rg_shape *out)
{
	struct rg_shape r = { .rank = a->rank > b->rank ? a->rank : b->rank };

	for (int i = 1; i <= r.rank; i++) {
		int64_t da = i <= a->rank ? a->dim[a->rank - i] : 1;
		int64_t db = i <= b->rank ? b->dim[b->rank - i] : 1;

		if (da != db && da != 1 && db != 1)
			return false;
		r.dim[r.rank - i] = da == 1 ? db : da;
	}
	*out = r;
	return true;
}

void rg_shape_strides(const struct rg_shape *s, int64_t strides[RG_MAX_RANK])
{
	int64_t n = 1;

	for (int i = s->rank - 1; i >= 0; i--) {
		strides[i] = n;
		n *= s->dim[i] ? s->dim[i] : 1;
	}
}

void rg_shape_broadcast_strides(const struct rg_shape *s, const struct rg_shape *to,
				int64_t strides[RG_MAX_RANK])
{
	int64_t n = 1;

	for (int i = 1; i <= to->rank; i++) {
		int64_t d = i <= s->rank ? s->dim[s->rank - i] : 1;

		strides[to->rank - i] = d == 1 ? 0 : n;
		n *= d ? d : 1;
	}
}
