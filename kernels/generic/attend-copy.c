/* Caches of keys and values that grow. See attend.h. */
#include "kernels/generic/attend.h"

static float *row_at(const struct rg_attend_rows *r, int64_t b, int64_t h, int64_t s)
{
	return r->data + b * r->batch + h * r->head + s * r->seq;
}

static void copy_head(const struct rg_attend_rows *from, struct rg_attend_rows to, int64_t first, int64_t b,
		      int64_t h, int64_t seq, int64_t width)
{
	if (seq <= 0)
		return;
	if (from->seq == width && to.seq == width) {
		memcpy(row_at(&to, b, h, first), row_at(from, b, h, 0),
		       (size_t)(seq * width) * sizeof(float));
		return;
	}
	for (int64_t s = 0; s < seq; s++)
		memcpy(row_at(&to, b, h, first + s), row_at(from, b, h, s), (size_t)width * sizeof(float));
}

static void work_copy(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct rg_attend_copies *c = arg;

	(void)lane;
	for (int64_t i = begin; i < end; i++) {
		int64_t b = i / c->heads, h = i % c->heads;

		if (c->from.data)
			copy_head(&c->from, c->to, 0, b, h, c->from_seq, c->width);
		copy_head(&c->then, c->to, c->from_seq, b, h, c->then_seq, c->width);
	}
}

void rg_attend_copy(const struct rg_attend_copies *c, const struct rg_par *par)
{
	int64_t floats = (c->from_seq + c->then_seq) * c->width;

	par->run(par, c->batch * c->heads, rg_grain(floats / 2 + 16), work_copy, (void *)c);
}
