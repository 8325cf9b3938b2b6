/* Ceilings: which rows are measured, and which int8 roof is one for given weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "session/ceilings.h"
#include "sys/cpu.h"

static struct rg_topology topo;

static struct rg_ceiling_row row(const char *level, double value)
{
	return (struct rg_ceiling_row){ .kind = "compute", .level = level, .value = value };
}

static void test_int8_roof(void **state)
{
	struct rg_ceiling_row rows[] = { row("peak", 900), row("int8 widen", 50), row("int8 pairs", 60),
					 row("int8 quads", 80), row("L1", 1000), row("int8 vnni", 0) };
	enum rg_roof_weights needs = RG_ROOF_QUADS;

	/* the float32 peak and a bandwidth are none, however large */
	assert_ptr_equal(rg_ceilings_int8(rows, 6, RG_ROOF_ANY, &needs), &rows[1]);
	assert_int_equal(needs, RG_ROOF_ANY);
	assert_ptr_equal(rg_ceilings_int8(rows, 6, RG_ROOF_PAIRS, &needs), &rows[2]);
	assert_int_equal(needs, RG_ROOF_PAIRS);
	assert_ptr_equal(rg_ceilings_int8(rows, 6, RG_ROOF_QUADS, &needs), &rows[3]);
	assert_int_equal(needs, RG_ROOF_QUADS);
	/* a form that takes any weights is one for proven weights, too, where it is faster */
	rows[5].value = 100;
	assert_ptr_equal(rg_ceilings_int8(rows, 6, RG_ROOF_QUADS, &needs), &rows[5]);
	assert_int_equal(needs, RG_ROOF_ANY);
	assert_ptr_equal(rg_ceilings_int8(rows, 6, RG_ROOF_ANY, NULL), &rows[5]);
	assert_null(rg_ceilings_int8(rows, 1, RG_ROOF_QUADS, &needs));
}

/* Every form that the CPU has gets a row of its own, and only when it is asked for. */
static void test_measured(void **state)
{
	struct rg_ceiling_row rows[RG_CEIL_MAX_ROWS];
	struct rg_error err = { 0 };
	struct rg_cpu cpu;
	int n = 0, wide;

	rg_cpu_detect("", &cpu);
	assert_int_equal(rg_ceilings_measure(&topo, 1, cpu.isa, RG_CEIL_PEAK, "alone", 1e6, NULL, NULL, rows, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].dtype, "float32");
	for (int scalar = 0; scalar < 2; scalar++) {
		uint32_t isa = scalar ? 0 : cpu.isa;

		assert_int_equal(
		    rg_ceilings_measure(&topo, 1, isa, RG_CEIL_INT8, "alone", 1e6, NULL, NULL, rows, &n, &err), 0);
		wide = isa & RG_ISA_AVX2 ? 3 : 1;
		wide += (isa & RG_ISA_AVX512_VNNI) || (isa & RG_ISA_AVX_VNNI) ? 1 : 0;
		assert_int_equal(n, wide);
		for (int i = 0; i < n; i++) {
			assert_string_equal(rows[i].kind, "compute");
			assert_string_equal(rows[i].dtype, "int8");
			assert_string_equal(rows[i].unit, "op/s");
			assert_int_equal(rows[i].provenance, RG_PROV_MEASURED);
			assert_int_equal(rows[i].working_set_bytes, -1);
			assert_true(rows[i].value > 1e8 && rows[i].low > 0 && rows[i].low <= rows[i].value);
			assert_non_null(strstr(rows[i].method, "exact"));
		}
		assert_non_null(rg_ceilings_int8(rows, n, RG_ROOF_ANY, NULL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_int8_roof),
		cmocka_unit_test(test_measured),
	};

	rg_topology_read("", &topo);
	return cmocka_run_group_tests_name("ceilings", tests, NULL, NULL);
}
