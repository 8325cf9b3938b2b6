/*
 * Every rung of the ladder against its oracle, over odd sizes, with guards around the
 * result; the oracles against the definition; the rows of a product done in parts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/ladder/ladder.h"
#include "sys/cpu.h"

#define GUARD 64 /* elements of C before and after */

static uint32_t isa;

struct operands {
	int64_t m, k, n;
	void *a, *b, *packed, *wide;
	double *want;
	int64_t *want_int;
};

static void *must(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	assert_non_null(p);
	return p;
}

static void make(struct operands *o, bool int8, int64_t m, int64_t k, int64_t n, bool extreme)
{
	uint64_t s = rg_rng_stream((uint64_t)(m * 10007 + k * 101 + n), "ladder");

	memset(o, 0, sizeof(*o));
	o->m = m, o->k = k, o->n = n;
	o->a = must((size_t)(m * k) * 4);
	o->b = must((size_t)(k * n) * 4);
	o->want = must((size_t)(m * n) * sizeof(double));
	o->want_int = must((size_t)(m * n) * sizeof(int64_t));
	if (!int8) {
		rg_rng_fill_f32(s, -1, 1, o->a, (size_t)(m * k));
		rg_rng_fill_f32(s + 1, -1, 1, o->b, (size_t)(k * n));
		rg_ladder_oracle_f32(m, k, n, o->a, o->b, o->want);
		return;
	}
	for (int64_t i = 0; i < m * k; i++)
		((uint8_t *)o->a)[i] = extreme ? 255 : (uint8_t)rg_rng_u64(s, (uint64_t)i);
	for (int64_t i = 0; i < k * n; i++)
		((int8_t *)o->b)[i] = extreme ? (i % 3 ? -128 : 127) : (int8_t)rg_rng_u64(s + 1, (uint64_t)i);
	rg_ladder_oracle_int8(m, k, n, o->a, o->b, o->want_int);
}

static void drop(struct operands *o)
{
	free(o->a);
	free(o->b);
	free(o->want);
	free(o->want_int);
}

/* `parts`: how many pieces the rows are done in, last one first. */
static void check(const struct rg_ladder_rung *r, struct operands *o, int parts)
{
	size_t bytes = (size_t)(o->m * o->n + 2 * GUARD) * 4;
	unsigned char *room = must(bytes);
	struct rg_ladder_product p = { .m = o->m, .k = o->k, .n = o->n, .a = o->a, .b = o->b,
				       .c = room + (size_t)GUARD * 4 };
	void *packed = NULL, *wide = NULL;

	memset(room, 0xa5, bytes);
	if (r->pack) {
		packed = must(r->pack_bytes(o->k, o->n));
		r->pack(o->k, o->n, o->b, packed);
	}
	if (r->wide_bytes)
		wide = must(r->wide_bytes(o->m, o->k));
	p.packed = packed;
	p.wide = wide;
	for (int i = parts - 1; i >= 0; i--)
		r->run(&p, o->m * i / parts, o->m * (i + 1) / parts);
	for (int64_t i = 0; i < o->m * o->n; i++) {
		if (r->int8 && ((int32_t *)p.c)[i] != o->want_int[i])
			fail_msg("%s int8 %s, %dx%dx%d: element %d is %d, not %d", r->name, r->level, (int)o->m, (int)o->k,
				 (int)o->n, (int)i, ((int32_t *)p.c)[i], (int)o->want_int[i]);
		/* k roundings of sums of at most k */
		if (!r->int8 && !(fabs(((float *)p.c)[i] - o->want[i]) <= 6e-8 * (double)(o->k * o->k + 1)))
			fail_msg("%s %s, %dx%dx%d: element %d is %g, not %g", r->name, r->level, (int)o->m, (int)o->k,
				 (int)o->n, (int)i, (double)((float *)p.c)[i], o->want[i]);
	}
	for (size_t i = 0; i < (size_t)GUARD * 4; i++) {
		assert_int_equal(room[i], 0xa5);
		assert_int_equal(room[bytes - 1 - i], 0xa5);
	}
	free(room);
	free(packed);
	free(wide);
}

static int all_rungs(bool int8, int64_t m, int64_t k, int64_t n, bool extreme)
{
	struct operands o;
	int ran = 0;

	make(&o, int8, m, k, n, extreme);
	for (int i = 0; i < rg_ladder_count(); i++) {
		const struct rg_ladder_rung *r = rg_ladder_at(i);

		if (r->int8 != int8 || (r->isa & ~isa))
			continue;
		check(r, &o, 1);
		check(r, &o, 3);
		ran++;
	}
	drop(&o);
	return ran;
}

/* All of 1 to 17 in each dimension, and around every block: 64, 512 pairs of k, 256 columns. */
static const int64_t more[][3] = { { 13, 31, 63 }, { 12, 32, 64 }, { 33, 33, 257 }, { 25, 255, 33 }, { 7, 256, 48 },
				   { 8, 257, 65 }, { 9, 515, 34 }, { 64, 1, 300 }, { 1, 700, 31 }, { 70, 70, 70 } };

static void sizes(bool int8, bool extreme)
{
	int ran = 0;

	for (int64_t m = 1; m <= 17; m += m < 6 ? 1 : 3)
		for (int64_t k = 1; k <= 17; k++)
			for (int64_t n = 1; n <= 17; n++)
				ran += all_rungs(int8, m, k, n, extreme);
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		ran += all_rungs(int8, more[i][0], more[i][1], more[i][2], extreme);
	assert_true(ran >= 17 * 17 * 5);
}

static void test_f32(void **state) { sizes(false, false); }
static void test_int8(void **state) { sizes(true, false); }
static void test_int8_extreme(void **state) { sizes(true, true); }

static void test_oracles(void **state)
{
	const float a[] = { 1, 2, 3, 4, 5, 6 }, b[] = { 1, 0, -1, 2, 1, 1 };
	const uint8_t x[] = { 255, 255, 0, 1 };
	const int8_t w[] = { -128, 127, -128, 1 };
	double c[4];
	int64_t d[4];

	rg_ladder_oracle_f32(2, 3, 2, a, b, c);
	assert_true(c[0] == 1 - 2 + 3 && c[1] == 4 + 3 && c[2] == 4 - 5 + 6 && c[3] == 10 + 6);
	rg_ladder_oracle_int8(2, 2, 2, x, w, d);
	assert_true(d[0] == -65280 && d[1] == 255 * 128 && d[2] == -128 && d[3] == 1);
}

static void test_table(void **state)
{
	const char *const f32[] = { "naive", "ikj", "tiled", "simd" }, *const int8[] = { "scalar", "simd", "blocked" };

	assert_null(rg_ladder_at(-1));
	assert_null(rg_ladder_at(rg_ladder_count()));
	assert_null(rg_ladder_find("nothing", false, UINT32_MAX));
	for (int i = 0; i < 4; i++)
		assert_non_null(rg_ladder_find(f32[i], false, isa));
	assert_non_null(rg_ladder_find(int8[0], true, 0));
	if (isa & RG_ISA_AVX2) {
		assert_string_equal(rg_ladder_find("simd", false, RG_ISA_SSE2)->level, "sse2");
		assert_string_equal(rg_ladder_find("simd", false, RG_ISA_AVX2 | RG_ISA_FMA)->level, "avx2");
		assert_null(rg_ladder_find("simd", false, 0));
		for (int i = 1; i < 3; i++)
			assert_string_equal(rg_ladder_find(int8[i], true, RG_ISA_SSE2 | RG_ISA_AVX2)->level, "avx2");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	     cmocka_unit_test(test_oracles), cmocka_unit_test(test_f32),
		cmocka_unit_test(test_int8), cmocka_unit_test(test_int8_extreme),
	};
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	isa = cpu.isa;
	return cmocka_run_group_tests_name("ladder", tests, NULL, NULL);
}
