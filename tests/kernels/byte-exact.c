/*
 * Products of bytes against sums in 64 bits, with the loops built so that each 16-bit sum is held against
 * what it should be (RG_BYTE_COUNT): nothing saturates, for random operands, for the ends of both types, and
 * for weights at the edge of the proof in byte-tile.h. Built once for every level whose proof it is.
 */
#include "kernels/generic/byte-multiply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sys/cpu.h"

int64_t rg_byte_sums, rg_byte_saturated;

static uint64_t state = 1;

static uint32_t random_bits(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

enum fill { RANDOM, ENDS, LOW, HIGH, SMALL, EDGE };

/* As bytes of either type. EDGE: four of one sign whose sum is at the edge of the proof, or one beyond. */
static void fill(uint8_t *x, int64_t n, enum fill how, bool is_signed)
{
	uint8_t low = is_signed ? 0x80 : 0, high = is_signed ? 0x7f : 0xff;

	for (int64_t i = 0; i < n; i++)
		switch (how) {
		case RANDOM:
			x[i] = (uint8_t)random_bits();
			break;
		case ENDS:
			x[i] = random_bits() & 1 ? low : high;
			break;
		case LOW:
			x[i] = low;
			break;
		case HIGH:
			x[i] = high;
			break;
		case SMALL:
			x[i] = (uint8_t)((int)(random_bits() % 31) - 15 + (is_signed ? 0 : 128));
			break;
		case EDGE:
			x[i] = (uint8_t)((random_bits() & 1 ? 63 : -64) + (random_bits() % 16 == 0) + (is_signed ? 0 : 128));
			break;
		}
}

static void keep(const struct rg_byte_multiply *mul, int64_t i, int64_t row, int64_t col, int64_t rows, int64_t cols,
		 int32_t *sums, int64_t pitch)
{
	int32_t *y = (int32_t *)mul->out + row * mul->plan.n + col;

	for (int64_t r = 0; r < rows; r++)
		memcpy(y + r * mul->plan.n, sums + r * pitch, (size_t)cols * sizeof(*y));
}

struct operands {
	int64_t m, n, k;
	bool a_signed, b_signed;
	uint8_t *a, *b;
	int32_t a_zero, b_zero;
};

static int64_t at(const uint8_t *x, int64_t i, bool is_signed)
{
	return is_signed ? (int8_t)x[i] : x[i];
}

static void *room(size_t bytes)
{
	void *p = aligned_alloc(128, (bytes + 255) / 128 * 128);

	assert_non_null(p);
	return p;
}

static void multiply(const struct operands *o, const void *packed, int32_t *y)
{
	struct rg_byte_multiply mul = { .a = { .data = o->a, .row = o->k, .col = 1, .is_signed = o->a_signed },
					.b = { .data = o->b, .row = o->n, .col = 1, .is_signed = o->b_signed },
					.packed = packed, .a_zero = o->a_zero, .b_zero = o->b_zero, .finish = keep,
					.out = (char *)y, .out_size = sizeof(*y) };

	assert_true(rg_byte_plan_make(&mul.plan, o->m, o->n, o->k, 1, packed != NULL, 1));
	mul.scratch = room(rg_byte_multiply_scratch_bytes(&mul.plan));
	rg_byte_multiply_run(&mul, &rg_par_serial);
	free(mul.scratch);
}

static void check(const struct operands *o)
{
	int32_t *y = room((size_t)(o->m * o->n) * sizeof(*y));

	multiply(o, NULL, y);
	for (int64_t i = 0; i < o->m; i++)
		for (int64_t j = 0; j < o->n; j++) {
			int64_t sum = 0;

			for (int64_t l = 0; l < o->k; l++)
				sum += (at(o->a, i * o->k + l, o->a_signed) - o->a_zero) *
				       (at(o->b, l * o->n + j, o->b_signed) - o->b_zero);
			if (y[i * o->n + j] != (int32_t)(uint32_t)sum)
				fail_msg("%dx%dx%d: element %d, %d is %d, not %lld", (int)o->m, (int)o->k, (int)o->n, (int)i, (int)j,
					 y[i * o->n + j], (long long)sum);
		}
	free(y);
}

static void run_filled(int64_t m, int64_t n, int64_t k, enum fill a, enum fill b, int types)
{
	struct operands o = { .m = m, .n = n, .k = k, .a_signed = types & 1, .b_signed = types & 2 };

	o.a = room((size_t)(m * k));
	o.b = room((size_t)(n * k));
	fill(o.a, m * k, a, o.a_signed);
	fill(o.b, n * k, b, o.b_signed);
	o.a_zero = o.a_signed ? -3 : 130;
	o.b_zero = types & 4 ? 0 : o.b_signed ? 5 : 127;
	check(&o);
	free(o.a);
	free(o.b);
}

static bool can_run(void)
{
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	if (!(RG_LEVEL_ISA & ~cpu.isa))
		return true;
	print_message("# this CPU does not have the instructions\n");
	return false;
}

/* All sizes from 1 to 70 in each of the three, and around the edges of blocks. */
static void test_sizes(void **unused)
{
	if (!can_run())
		skip();
	for (int64_t s = 1; s <= 70; s++) {
		run_filled(s, 19, 33, RANDOM, RANDOM, (int)(s % 8));
		run_filled(5, s, 40, RANDOM, RANDOM, (int)(s % 8));
		run_filled(7, 35, s, RANDOM, RANDOM, (int)(s % 8));
		run_filled(s, s, s, RANDOM, SMALL, (int)(s % 8));
	}
	for (int64_t d = -1; d <= 1; d++) {
		run_filled(512 + d, 33, 64, RANDOM, RANDOM, 2);
		run_filled(3, 2048 + d, 16, RANDOM, RANDOM, 2);
		run_filled(13, 37, 4096 + d, RANDOM, SMALL, 2);
	}
	assert_int_equal(rg_byte_saturated, 0);
}

static void test_ends(void **unused)
{
	if (!can_run())
		skip();
	rg_byte_sums = rg_byte_saturated = 0;
	for (int types = 0; types < 8; types++)
		for (enum fill a = RANDOM; a <= EDGE; a++)
			for (enum fill b = RANDOM; b <= EDGE; b++) {
				run_filled(9, 35, 67, a, b, types);
				run_filled(1, 16, 1024, a, b, types);
			}
	print_message("# %lld sums of 16 bits checked, %lld saturated\n", (long long)rg_byte_sums, (long long)rg_byte_saturated);
	assert_true(rg_byte_sums > 1000000);
	assert_int_equal(rg_byte_saturated, 0);
}

/* The edge of the proof: up to which weights sums of four are taken. */
static void test_edge(void **unused)
{
	static const int8_t cases[][4] = {
		{ 63, 63, 63, 63 },     { 64, 63, 63, 63 },   { 127, 125, 0, 0 },   { 127, 126, 0, 0 },  { 127, 126, -1, -1 },
		{ 127, 127, -1, -1 },   { 127, 127, 0, -1 },  { 127, 127, 0, 0 },   { -64, -64, -64, -64 }, { -65, -64, -64, -64 },
		{ -65, -65, -65, -65 }, { -128, -128, 0, 0 }, { -128, -128, -1, 0 }, { -128, -128, -3, 0 }, { -128, -128, -5, 0 },
		{ 0, 0, 0, 0 },
	};
	int n_two = 0, n = (int)(sizeof(cases) / sizeof(cases[0]));
	static const int places[4] = { 0, 1, 4, 5 };

	for (int i = 0; i < n; i++) {
		struct operands o = { .m = 3, .n = 7, .k = 8, .b_signed = true };
		struct rg_byte_matrix b = { .row = 7, .col = 1, .is_signed = true };
		struct rg_bytes_packed *packed = room(rg_byte_pack_bytes(7, 8));
		uint8_t w[8 * 7] = { 0 }, a[3 * 8];
		int32_t up = 0, low = 0;

		for (int q = 0; q < 4; q++) {
			int32_t v = cases[i][q], most = 0, least = 0;

			w[places[q] * 7 + 3] = (uint8_t)v;
			for (int32_t x = -128; x <= 127; x++) { /* what a product can be, by trying all */
				int32_t p = (x < 0 ? -x : x) * (x < 0 ? -v - 1 : v);

				most = p > most ? p : most;
				least = p < least ? p : least;
			}
			up += most;
			low += least;
		}
		b.data = w;
		rg_byte_pack_start(7, 8, packed);
		rg_byte_pack_panels(&b, 0, 1, packed);
		assert_int_equal(packed->panel[0].n_two, up <= INT16_MAX && low >= INT16_MIN);
		n_two += packed->panel[0].n_two;
		free(packed);
		if (!can_run())
			continue;
		o.a = a;
		o.b = w;
		rg_byte_saturated = 0;
		for (int r = 0; r < 256; r++) {
			memset(a, r, sizeof(a));
			a[1] = (uint8_t)random_bits();
			check(&o);
		}
		assert_int_equal(rg_byte_saturated, 0);
	}
	assert_in_range(n_two, 4, n - 4);
}

/* The counter counts: weights that were not proven, put where sums of four are taken. */
static void test_counter(void **unused)
{
	struct operands o = { .m = 1, .n = 1, .k = 8, .b_signed = true };
	struct rg_byte_matrix b = { .row = 1, .col = 1, .is_signed = true };
	struct rg_bytes_packed *packed = room(rg_byte_pack_bytes(1, 8));
	uint8_t w[8] = { 0 }, a[8];
	int32_t y;

	if (!can_run()) {
		free(packed);
		skip();
	}
	b.data = w;
	rg_byte_pack_start(1, 8, packed);
	rg_byte_pack_panels(&b, 0, 1, packed);
	assert_int_equal(packed->panel[0].n_two, 1);
	memset((char *)packed + packed->panel[0].data, 127, 4);
	memset((char *)packed + packed->panel[0].data + RG_BYTE_STEP, 127, 4);
	memset(a, 255, sizeof(a));
	o.a = a;
	rg_byte_saturated = 0;
	multiply(&o, packed, &y);
	assert_true(rg_byte_saturated > 0);
	free(packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_edge),
		cmocka_unit_test(test_counter),
	};

	return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
