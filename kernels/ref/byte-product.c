/* The inner loops of all products of bytes. */
#include "kernels/ref/byte-product.h"

#define STRIP(NAME, CTYPE) \
	static void strip_##NAME(const struct rg_byte_product *p, int64_t a_at, int32_t a_zero, const CTYPE *b, \
				 const int32_t *b_zero, int64_t w, uint32_t *sum) \
	{ \
		for (int64_t k = 0; k < p->k; k++, b += p->b_row) { \
			int32_t x = rg_byte_at(p->a, a_at + k * p->a_col) - a_zero; \
			if (p->b_col == 1) { \
				for (int64_t j = 0; j < w; j++) \
					sum[j] += (uint32_t)(x * (b[j] - b_zero[j])); \
			} else { \
				for (int64_t j = 0; j < w; j++) \
					sum[j] += (uint32_t)(x * (b[j * p->b_col] - b_zero[j])); \
			} \
		} \
	}
STRIP(i8, int8_t)
STRIP(u8, uint8_t)

void rg_byte_product_strip(const struct rg_byte_product *p, int64_t a_at, int32_t a_zero, int64_t b_at,
			   const int32_t *b_zero, int64_t w, int32_t *sum)
{
	uint32_t wrapping[RG_BYTE_STRIP] = { 0 };

	if (p->b->dtype == RG_I8)
		strip_i8(p, a_at, a_zero, (const int8_t *)p->b->data + b_at, b_zero, w, wrapping);
	else
		strip_u8(p, a_at, a_zero, (const uint8_t *)p->b->data + b_at, b_zero, w, wrapping);
	for (int64_t j = 0; j < w; j++)
		sum[j] = (int32_t)wrapping[j];
}

static void run_row(const struct rg_byte_matmul *m, const struct rg_byte_product *p, int64_t at, int64_t i,
		    int64_t a_at, int64_t b_at)
{
	int32_t a_zero = m->a_zero_input < 0 ? m->a_zero : rg_byte_zero(m->c, m->a_zero_input, i);
	int32_t sum[RG_BYTE_STRIP], b_zero[RG_BYTE_STRIP];

	for (int64_t j0 = 0; j0 < p->n; j0 += RG_BYTE_STRIP) {
		int64_t w = p->n - j0 < RG_BYTE_STRIP ? p->n - j0 : RG_BYTE_STRIP;

		for (int64_t j = 0; j < w; j++)
			b_zero[j] = rg_byte_zero(m->c, m->b_zero_input, j0 + j);
		rg_byte_product_strip(p, a_at, a_zero, b_at + j0, b_zero, w, sum);
		m->strip(m, at + j0, i, j0, w, sum);
	}
}

int rg_byte_matmul_run(const struct rg_byte_matmul *m, struct rg_error *err)
{
	struct rg_byte_product p = { .a = m->a, .b = m->b, .a_col = 1, .b_col = 1 };
	const struct rg_shape *shapes[2];
	struct rg_matmul s;
	struct rg_walk w;
	int64_t at = 0;

	if (!rg_matmul_shape(&m->a->shape, &m->b->shape, &s))
		return rg_error_set(err, -EINVAL, "the matrices do not multiply");
	p.n = s.n, p.k = s.k;
	p.a_row = s.k, p.b_row = s.n;
	shapes[0] = &s.batch_a, shapes[1] = &s.batch_b;
	rg_walk_start(&w, &s.batch, 2, shapes);
	while (rg_walk_next(&w))
		for (int64_t q = 0; q < w.inner; q++)
			for (int64_t i = 0; i < s.m; i++, at += s.n)
				run_row(m, &p, at, i, ((w.at[0] + q * w.step[0]) * s.m + i) * s.k,
					(w.at[1] + q * w.step[1]) * s.k * s.n);
	return 0;
}
