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
		assert_true(!rg_roof_at(i)->flops != !rg_roof_at(i)->read);
		for (k = 0; k < i; k++)
			assert_string_not_equal(rg_roof_at(i)->name, rg_roof_at(k)->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_peak),
		cmocka_unit_test(test_read),
	};
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	isa = cpu.isa;
	return cmocka_run_group_tests_name("roof", tests, NULL, NULL);
}
