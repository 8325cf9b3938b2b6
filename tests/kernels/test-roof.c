/*
 * Roof kernels must do what they count: every chain must have run (it settles
 * at 2, so the sink counts the accumulators) and every byte must have been
 * read (the sink is a checksum).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/roof/roof.h"
#include "sys/cpu.h"

static uint32_t isa;

static void test_peak(void **state)
{
	int i, ran = 0;

	for (i = 0; i < rg_roof_count(); i++) {
		const struct rg_roof_kernel *k = rg_roof_at(i);
		float sink = -1;
		int64_t flops, accumulators;

		if (!k->flops || (k->isa & ~isa))
			continue;
		flops = k->flops(1000, &sink);
		accumulators = (int64_t)(sink / 2);
		assert_true(accumulators >= 8);
		/* whole multiply-adds of all accumulators, the same number each round */
		assert_int_equal(flops % (1000 * accumulators * 2), 0);
		assert_int_equal(k->flops(3000, &sink), 3 * flops);
		assert_int_equal(k->flops(0, &sink), 0);
		assert_float_equal(sink, 0, 0);
		ran++;
	}
	assert_true(ran >= 1);
}

/* Every int8 form at the edge of what it is exact for; what saturates gives another sum. */
static void test_int8(void **state)
{
	int ran = 0;

	for (int i = 0; i < rg_roof_count(); i++) {
		const struct rg_roof_kernel *k = rg_roof_at(i);
		const int most[] = { [RG_ROOF_ANY] = 128, [RG_ROOF_PAIRS] = 64, [RG_ROOF_QUADS] = 32 };
		uint32_t sink;
		int64_t once;

		if (!k->iops || (k->isa & ~isa))
			continue;
		assert_int_equal(k->factor[0], 255);
		assert_int_equal(k->factor[1], -most[k->weights]);
		once = k->iops(1, &sink);
		/* whole vectors of chains, two operations a product */
		assert_true(once >= 16 && once % 16 == 0);
		for (int64_t rounds = 0; rounds < 3000; rounds = rounds * 3 + 1) {
			assert_int_equal(k->iops(rounds, &sink), rounds * once);
			if (sink != (uint32_t)(rounds * once / 2 * k->factor[0] * k->factor[1]))
				fail_msg("%s: %u after %d rounds", k->name, sink, (int)rounds);
		}
		assert_true(rg_roof_check(k));
		ran++;
	}
	assert_true(ran >= 1);
}

static int64_t iops_that_saturate(int64_t rounds, uint32_t *sink)
{
	*sink = (uint32_t)(rounds * -32768);
	return rounds * 4;
}

static int64_t iops_that_do_nothing(int64_t rounds, uint32_t *sink)
{
	*sink = 0;
	return 0;
}

/* A kernel that is wrong must not pass the check that stands before its measurement. */
static void test_check(void **state)
{
	struct rg_roof_kernel k = { "wrong", "scalar", 0, .iops = iops_that_saturate, .factor = { 255, -128 } };

	assert_false(rg_roof_check(&k));
	k.iops = iops_that_do_nothing;
	assert_false(rg_roof_check(&k));
}

static void test_read(void **state)
{
	const size_t size = 3 * 4096;
	uint64_t *data = aligned_alloc(64, size), rng = rg_rng_stream(1, "roof");
	size_t i, word;
	int k, ran = 0;

	assert_non_null(data);
	for (i = 0; i < size / 8; i++)
		data[i] = rg_rng_u64(rng, i);
	for (k = 0; k < rg_roof_count(); k++) {
		const struct rg_roof_kernel *r = rg_roof_at(k);
		float sink = -1, changed, expect;
		uint64_t x = 0;

		if (!r->read || (r->isa & ~isa))
			continue;
		for (i = 0; i < size / 8; i++)
			x ^= data[i];
		expect = (float)((x ^ x >> 16 ^ x >> 32 ^ x >> 48) & 0xffff);
		assert_int_equal(r->read(data, size, &sink), size);
		assert_float_equal(sink, expect, 0);
		/* one bit anywhere must change the sink: no word is skipped */
		for (word = 0; word < size / 8; word++) {
			data[word] ^= 1;
			r->read(data, size, &changed);
			if (changed == sink)
				fail_msg("%s does not read word %zu", r->name, word);
			data[word] ^= 1;
		}
		ran++;
	}
	free(data);
	assert_true(ran >= 1);
}

static void test_table(void **state)
{
	int i, k;

	assert_null(rg_roof_at(-1));
	assert_null(rg_roof_at(rg_roof_count()));
	for (i = 0; i < rg_roof_count(); i++) {
		const struct rg_roof_kernel *r = rg_roof_at(i);

		assert_int_equal((r->flops != NULL) + (r->read != NULL) + (r->iops != NULL), 1);
		assert_int_equal(r->form && r->method, r->iops != NULL);
		for (k = 0; k < i; k++)
			assert_string_not_equal(rg_roof_at(i)->name, rg_roof_at(k)->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_peak),
		cmocka_unit_test(test_int8),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_read),
	};
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	isa = cpu.isa;
	return cmocka_run_group_tests_name("roof", tests, NULL, NULL);
}
