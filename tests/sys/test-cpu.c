/*
 * CPU feature decoding against CPUID dumps and cpuinfo texts of real machines
 * (tests/sys/machines.h) and against register values made up here: a feature
 * without its saved registers must not count.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/cpu.h"
#include "sys/procfs.h"
#include "tests/sys/machines.h"

#define MAX_LINES 256

/* A dump: lines "mask eax ebx ecx edx => eax ebx ecx edx"; mask bit 0 is eax, bit 2 is ecx. */
struct dump {
	int n;
	uint32_t in[MAX_LINES][2], out[MAX_LINES][4];
	bool has_sub[MAX_LINES];
	bool os_saves_nothing;
};

static struct rg_cpuid_regs dump_cpuid(void *ctx, uint32_t leaf, uint32_t subleaf)
{
	const struct dump *d = ctx;
	struct rg_cpuid_regs r = { 0, 0, 0, 0 };
	int i;

	for (i = 0; i < d->n; i++) {
		if (d->in[i][0] != leaf || (d->has_sub[i] && d->in[i][1] != subleaf))
			continue;
		r.eax = d->out[i][0];
		r.ebx = d->out[i][1];
		r.ecx = d->out[i][2];
		r.edx = d->out[i][3];
		break;
	}
	return r;
}

/* Leaf 0xd says which parts of XCR0 the CPU has; Linux switches all of them on. */
static uint64_t dump_xgetbv(void *ctx)
{
	const struct dump *d = ctx;
	struct rg_cpuid_regs r = dump_cpuid(ctx, 0xd, 0);

	return d->os_saves_nothing ? 0 : r.eax | (uint64_t)r.edx << 32;
}

static bool load(const char *archive, const char *folder, struct dump *d)
{
	char path[4096], line[256];
	unsigned mask, v[8];
	FILE *f;

	memset(d, 0, sizeof(*d));
	if (!machine_unpack(archive, path, sizeof(path)))
		return false;
	strncat(path, "/", sizeof(path) - strlen(path) - 1);
	strncat(path, folder, sizeof(path) - strlen(path) - 1);
	strncat(path, "/pu0", sizeof(path) - strlen(path) - 1);
	f = fopen(path, "r");
	assert_non_null(f);
	while (d->n < MAX_LINES && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%x %x %x %x %x => %x %x %x %x", &mask, &v[0], &v[1], &v[2], &v[3], &v[4],
			   &v[5], &v[6], &v[7]) != 9)
			continue;
		d->in[d->n][0] = v[0];
		d->in[d->n][1] = v[2];
		d->has_sub[d->n] = mask & 4;
		memcpy(d->out[d->n], v + 4, 4 * sizeof(uint32_t));
		d->n++;
	}
	fclose(f);
	assert_true(d->n > 10);
	return true;
}

#define AVX2_LEVEL (RG_ISA_SSE2 | RG_ISA_AVX | RG_ISA_AVX2 | RG_ISA_FMA | RG_ISA_F16C)

static const struct {
	const char *archive, *folder;
	uint32_t isa;
	const char *level;
} recorded[] = {
	{ "hwloc__x86_Intel-Haswell-2xXeon-E5-2680v3", "Intel-Haswell-2xXeon-E5-2680v3", AVX2_LEVEL, "avx2" },
	{ "hwloc__x86_AMD-17h-Zen-2xEpyc-7451", "AMD-17h-Zen-2xEpyc-7451", AVX2_LEVEL, "avx2" },
	{ "hwloc__x86_AMD-19h-Zen3-2xEpyc-7763", "AMD-19h-Zen3-2xEpyc-7763", AVX2_LEVEL, "avx2" },
	{ "hwloc__x86_Hygon-Dhyana-32cores", "Hygon-Dhyana-32cores", AVX2_LEVEL, "avx2" },
	{ "hwloc__x86_Intel-KnightsLanding-XeonPhi-7210", "Intel-KnightsLanding-XeonPhi-7210",
	  AVX2_LEVEL | RG_ISA_AVX512F, "avx2" },
	{ "hwloc__x86_Intel-Skylake-2xXeon6140", "Intel-Skylake-2xXeon6140", AVX2_LEVEL | RG_ISA_AVX512_ALL,
	  "avx512" },
	{ "hwloc__x86_Intel-CascadeLake-2xXeon6230", "Intel-CascadeLake-2xXeon6230",
	  AVX2_LEVEL | RG_ISA_AVX512_ALL | RG_ISA_AVX512_VNNI, "avx512" },
	{ "hwloc__x86_AMD-19h-Zen4-2xEpyc-9654", "AMD-19h-Zen4-2xEpyc-9654",
	  AVX2_LEVEL | RG_ISA_AVX512_ALL | RG_ISA_AVX512_VNNI | RG_ISA_AVX512_BF16, "avx512" },
	{ "hwloc__x86_AMD-1Ah-Zen5StrixPoint-RyzenAI9HX370", "AMD-1Ah-Zen5StrixPoint-RyzenAI9HX370",
	  AVX2_LEVEL | RG_ISA_AVX512_ALL | RG_ISA_AVX512_VNNI | RG_ISA_AVX512_BF16 | RG_ISA_AVX_VNNI,
	  "avx512" },
	{ "hwloc__x86_Intel-SapphireRapids-2xXeonMax9460", "Intel-SapphireRapids-2xXeonMax9460",
	  AVX2_LEVEL | RG_ISA_AVX512_ALL | RG_ISA_AVX512_VNNI | RG_ISA_AVX512_BF16 | RG_ISA_AVX512_FP16 |
	  RG_ISA_AVX_VNNI | RG_ISA_AMX_TILE, "avx512" },
	{ "hwloc__x86_Intel-RaptorLake-Corei7-1370P", "Intel-RaptorLake-Corei7-1370P",
	  AVX2_LEVEL | RG_ISA_AVX_VNNI, "avx2" },
	{ "hwloc__x86_Intel-ArrowLake-CoreUltra5-225U", "Intel-ArrowLake-CoreUltra5-225U",
	  AVX2_LEVEL | RG_ISA_AVX_VNNI, "avx2" },
};

static void test_recorded_dumps(void **state)
{
	struct rg_cpuid_source src = { dump_cpuid, dump_xgetbv, NULL };
	struct dump d;
	size_t i;

	src.ctx = &d;
	for (i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
		uint32_t isa;

		if (!load(recorded[i].archive, recorded[i].folder, &d))
			skip();
		isa = rg_cpu_decode_isa(&src);
		if (isa != recorded[i].isa)
			fail_msg("%s: got %#x, expected %#x", recorded[i].folder, isa, recorded[i].isa);
		assert_string_equal(rg_isa_level_name(isa), recorded[i].level);
		/* The same silicon under a system that saves no vector state. */
		d.os_saves_nothing = true;
		assert_int_equal(rg_cpu_decode_isa(&src), RG_ISA_SSE2);
	}
}

/* Everything set, for a CPU of the number of leaves and the XCR0 under test. */
struct made_up {
	uint32_t max_leaf;
	uint64_t xcr0;
	bool osxsave, xgetbv_called;
};

static struct rg_cpuid_regs all_ones(void *ctx, uint32_t leaf, uint32_t subleaf)
{
	const struct made_up *m = ctx;
	struct rg_cpuid_regs r = { ~0u, ~0u, ~0u, ~0u };

	if (leaf == 0)
		r.eax = m->max_leaf;
	if (leaf == 1 && !m->osxsave)
		r.ecx &= ~(1u << 27);
	assert_true(leaf <= m->max_leaf);
	return r;
}

static uint64_t made_up_xcr0(void *ctx)
{
	struct made_up *m = ctx;

	m->xgetbv_called = true;
	return m->xcr0;
}

static void test_xcr0_gates(void **state)
{
	struct made_up m = { 7, 0xe7, true, false };
	struct rg_cpuid_source src = { all_ones, made_up_xcr0, &m };

	assert_true(rg_cpu_decode_isa(&src) & RG_ISA_AVX512F);
	assert_false(rg_cpu_decode_isa(&src) & RG_ISA_AMX_TILE);
	m.xcr0 = 0x600e7;
	assert_true(rg_cpu_decode_isa(&src) & RG_ISA_AMX_TILE);
	m.xcr0 = 0x67; /* upper ZMM halves not saved in full */
	assert_true(rg_cpu_decode_isa(&src) & RG_ISA_AVX2);
	assert_false(rg_cpu_decode_isa(&src) & (RG_ISA_AVX512_ALL | RG_ISA_AVX512_BF16));
	m.xcr0 = 0x2; /* SSE only */
	assert_int_equal(rg_cpu_decode_isa(&src), RG_ISA_SSE2);
	m.xcr0 = 0xe7;
	m.max_leaf = 1; /* no leaf 7 to ask */
	assert_int_equal(rg_cpu_decode_isa(&src), RG_ISA_SSE2 | RG_ISA_AVX | RG_ISA_FMA | RG_ISA_F16C);
	m.osxsave = false;
	m.xgetbv_called = false;
	assert_int_equal(rg_cpu_decode_isa(&src), RG_ISA_SSE2);
	assert_false(m.xgetbv_called); /* the instruction would fault */
	m.max_leaf = 0;
	assert_int_equal(rg_cpu_decode_isa(&src), 0);
}

static void test_levels(void **state)
{
	uint32_t mask;

	assert_true(rg_isa_cap_parse("avx2", &mask));
	assert_string_equal(rg_isa_level_name(mask), "avx2");
	assert_true(rg_isa_cap_parse("avx512", &mask));
	assert_string_equal(rg_isa_level_name(mask), "avx512");
	assert_true(rg_isa_cap_parse("sse2", &mask));
	assert_string_equal(rg_isa_level_name(mask), "sse2");
	assert_true(rg_isa_cap_parse("native", &mask));
	assert_int_equal(mask, UINT32_MAX);
	assert_false(rg_isa_cap_parse("avx3", &mask));
	assert_false(rg_isa_cap_parse("", &mask));
	assert_string_equal(rg_isa_level_name(0), "scalar");
}

/* What cpuid tells must agree with what the kernel prints for this machine. */
static void test_this_machine(void **state)
{
	static const struct { const char *flag; uint32_t isa; } pairs[] = {
		{ " avx2 ", RG_ISA_AVX2 }, { " fma ", RG_ISA_FMA }, { " avx512f ", RG_ISA_AVX512F },
		{ " avx512_vnni ", RG_ISA_AVX512_VNNI }, { " avx512_fp16 ", RG_ISA_AVX512_FP16 },
	};
	char text[16384];
	struct rg_cpu cpu;
	size_t i;

	rg_cpu_detect("", &cpu);
	if (!rg_read_small("/proc/cpuinfo", text, sizeof(text)) || !strstr(text, "\nflags"))
		skip();
	assert_true(cpu.vendor[0] != '\0');
	assert_true(cpu.family >= 0);
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		assert_int_equal(!!strstr(text, pairs[i].flag), !!(cpu.isa & pairs[i].isa));
	assert_int_equal(!!strstr(text, " hypervisor "), cpu.hypervisor);
}

/* First stanzas of /proc/cpuinfo from real machines, read under a root. */
static const struct {
	const char *file, *vendor;
	int family;
	uint32_t has, lacks;
} stanzas[] = {
	{ "linux-rhel7-skylake_avx512", "GenuineIntel", 6, RG_ISA_AVX512_ALL,
	 RG_ISA_AVX512_VNNI | RG_ISA_NEON },
	{ "linux-centos7-cascadelake", "GenuineIntel", 6, RG_ISA_AVX512_ALL | RG_ISA_AVX512_VNNI,
	 RG_ISA_AVX512_BF16 },
	{ "linux-unknown-sapphirerapids", "GenuineIntel", 6, RG_ISA_AMX_TILE | RG_ISA_AVX512_FP16,
	 RG_ISA_NEON },
	{ "linux-rhel7-ivybridge", "GenuineIntel", 6, RG_ISA_AVX | RG_ISA_F16C, RG_ISA_AVX2 | RG_ISA_FMA },
	{ "linux-rocky8.5-zen4", "AuthenticAMD", 25, RG_ISA_AVX512_ALL | RG_ISA_AVX512_BF16,
	 RG_ISA_AVX512_FP16 },
	{ "linux-rhel6-piledriver", "AuthenticAMD", 21, RG_ISA_AVX | RG_ISA_FMA, RG_ISA_AVX2 },
	{ "linux-rhel8-neoverse_v1", "", -1, RG_ISA_NEON, RG_ISA_SSE2 | RG_ISA_AVX },
	{ "linux-rhel8-power9", "", -1, 0, RG_ISA_NEON | RG_ISA_SSE2 },
};

static void test_recorded_cpuinfo(void **state)
{
	char folder[4096], path[4608], root[256], text[16384];
	struct rg_cpu cpu;
	size_t i;

	if (!machine_folder(folder, sizeof(folder)))
		skip();
	for (i = 0; i < sizeof(stanzas) / sizeof(stanzas[0]); i++) {
		snprintf(path, sizeof(path), "%s/archspec__%s.cpuinfo.txt", folder, stanzas[i].file);
		assert_true(rg_read_small(path, text, sizeof(text)));
		machine_scratch(root, sizeof(root));
		machine_write(root, "proc/cpuinfo", text);
		rg_cpu_detect(root, &cpu);
		if (strcmp(cpu.vendor, stanzas[i].vendor) || cpu.family != stanzas[i].family ||
		    (cpu.isa & stanzas[i].has) != stanzas[i].has || (cpu.isa & stanzas[i].lacks))
			fail_msg("%s: vendor '%s', family %d, isa %#x", stanzas[i].file, cpu.vendor,
				 cpu.family, cpu.isa);
	}
}

static void test_missing_root(void **state)
{
	struct rg_cpu cpu;

	rg_cpu_detect("/nonexistent", &cpu);
	assert_string_equal(cpu.vendor, "");
	assert_string_equal(cpu.model, "");
	assert_int_equal(cpu.family, -1);
	assert_int_equal(cpu.isa, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded_dumps),
		cmocka_unit_test(test_xcr0_gates),
		cmocka_unit_test(test_recorded_cpuinfo),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_this_machine),
		cmocka_unit_test(test_missing_root),
	};

	return cmocka_run_group_tests_name("cpu", tests, NULL, machine_cleanup);
}
