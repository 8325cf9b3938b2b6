/*
 * CPU features. cpuid says what the silicon has, XCR0 what the operating
 * system saves over a context switch; only both together make a feature.
 */
#include "sys/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/procfs.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#include <asm/hwcap.h>
#endif

#define XCR0_AVX 0x6u       /* SSE and the upper halves of YMM */
#define XCR0_AVX512 0xe6u   /* also opmask, upper ZMM, ZMM16-31 */
#define XCR0_AMX 0x60000u   /* tile configuration and tile data */

static bool bit(uint32_t reg, int n)
{
	return (reg >> n) & 1;
}

uint32_t rg_cpu_decode_isa(const struct rg_cpuid_source *src)
{
	struct rg_cpuid_regs r0 = src->cpuid(src->ctx, 0, 0), r1, r7, r71 = { 0, 0, 0, 0 };
	uint64_t xcr0 = 0;
	uint32_t isa = 0;

	if (r0.eax < 1)
		return 0;
	r1 = src->cpuid(src->ctx, 1, 0);
	if (bit(r1.edx, 26))
		isa |= RG_ISA_SSE2;
	/* XGETBV itself faults unless OSXSAVE says that the system has set it up. */
	if (bit(r1.ecx, 27))
		xcr0 = src->xgetbv(src->ctx);
	if ((xcr0 & XCR0_AVX) != XCR0_AVX || !bit(r1.ecx, 28))
		return isa;
	isa |= RG_ISA_AVX;
	if (bit(r1.ecx, 12))
		isa |= RG_ISA_FMA;
	if (bit(r1.ecx, 29))
		isa |= RG_ISA_F16C;
	if (r0.eax < 7)
		return isa;
	r7 = src->cpuid(src->ctx, 7, 0);
	if (r7.eax >= 1)
		r71 = src->cpuid(src->ctx, 7, 1);
	if (bit(r7.ebx, 5))
		isa |= RG_ISA_AVX2;
	if (bit(r71.eax, 4))
		isa |= RG_ISA_AVX_VNNI;
	if ((xcr0 & XCR0_AMX) == XCR0_AMX && bit(r7.edx, 24))
		isa |= RG_ISA_AMX_TILE;
	if ((xcr0 & XCR0_AVX512) != XCR0_AVX512 || !bit(r7.ebx, 16))
		return isa;
	isa |= RG_ISA_AVX512F;
	if (bit(r7.ebx, 17))
		isa |= RG_ISA_AVX512DQ;
	if (bit(r7.ebx, 30))
		isa |= RG_ISA_AVX512BW;
	if (bit(r7.ebx, 31))
		isa |= RG_ISA_AVX512VL;
	if (bit(r7.ecx, 11))
		isa |= RG_ISA_AVX512_VNNI;
	if (bit(r71.eax, 5))
		isa |= RG_ISA_AVX512_BF16;
	if (bit(r7.edx, 23))
		isa |= RG_ISA_AVX512_FP16;
	return isa;
}

#if defined(__x86_64__) || defined(__i386__)
static struct rg_cpuid_regs real_cpuid(void *ctx, uint32_t leaf, uint32_t subleaf)
{
	struct rg_cpuid_regs r = { 0, 0, 0, 0 };

	__cpuid_count(leaf, subleaf, r.eax, r.ebx, r.ecx, r.edx);
	return r;
}

static uint64_t real_xgetbv(void *ctx)
{
	uint32_t lo, hi;

	__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}
#endif

/* Points at the value behind "key<blanks>:<blanks>" of a cpuinfo text; NULL: no such line. */
static const char *cpuinfo_value(const char *text, const char *key)
{
	size_t len = strlen(key);
	const char *line, *at;

	for (line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, len) != 0)
			continue;
		at = line + len;
		while (*at == ' ' || *at == '\t')
			at++;
		if (*at != ':')
			continue;
		at++;
		while (*at == ' ' || *at == '\t')
			at++;
		return at;
	}
	return NULL;
}

static void copy_line(char *out, size_t cap, const char *at)
{
	size_t len = at ? strcspn(at, "\n") : 0;

	if (len >= cap)
		len = cap - 1;
	if (len)
		memcpy(out, at, len);
	out[len] = '\0';
}

static int line_int(const char *text, const char *key)
{
	const char *at = cpuinfo_value(text, key);
	char *end;
	long v;

	if (!at)
		return -1;
	v = strtol(at, &end, 0);
	return end == at || v < 0 || v > 1000000 ? -1 : (int)v;
}

static bool has_word(const char *line, const char *word)
{
	size_t len = strlen(word);
	const char *end = line + strcspn(line, "\n");

	while (line < end) {
		size_t n;

		while (line < end && (*line == ' ' || *line == '\t'))
			line++;
		n = strcspn(line, " \t\n");
		if (n == len && memcmp(line, word, len) == 0)
			return true;
		line += n;
	}
	return false;
}

/* The flags that Linux prints are those it has enabled, so they need no XCR0. */
static uint32_t isa_from_flags(const char *text)
{
	static const struct { const char *word; uint32_t isa; } map[] = {
		{ "sse2", RG_ISA_SSE2 }, { "avx", RG_ISA_AVX }, { "avx2", RG_ISA_AVX2 },
		{ "fma", RG_ISA_FMA },
		{ "f16c", RG_ISA_F16C }, { "avx_vnni", RG_ISA_AVX_VNNI }, { "avx512f", RG_ISA_AVX512F },
		{ "avx512bw", RG_ISA_AVX512BW }, { "avx512dq", RG_ISA_AVX512DQ },
		{ "avx512vl", RG_ISA_AVX512VL }, { "avx512_vnni", RG_ISA_AVX512_VNNI },
		{ "avx512_bf16", RG_ISA_AVX512_BF16 }, { "avx512_fp16", RG_ISA_AVX512_FP16 },
		{ "amx_tile", RG_ISA_AMX_TILE },
	};
	const char *flags = cpuinfo_value(text, "flags"), *features = cpuinfo_value(text, "Features");
	uint32_t isa = 0;
	size_t i;

	for (i = 0; flags && i < sizeof(map) / sizeof(map[0]); i++)
		if (has_word(flags, map[i].word))
			isa |= map[i].isa;
	/* "neon" is the 32-bit name, where it is not the instruction set that our kernels use. */
	if (features && has_word(features, "asimd"))
		isa |= RG_ISA_NEON;
	return isa;
}

void rg_cpu_detect(const char *root, struct rg_cpu *out)
{
	char path[4096], text[16384];
	const char *at;

	memset(out, 0, sizeof(*out));
	snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
	if (!rg_read_small(path, text, sizeof(text)))
		text[0] = '\0';
	copy_line(out->vendor, sizeof(out->vendor), cpuinfo_value(text, "vendor_id"));
	at = cpuinfo_value(text, "model name");
	copy_line(out->model, sizeof(out->model), at ? at : cpuinfo_value(text, "cpu"));
	copy_line(out->microcode, sizeof(out->microcode), cpuinfo_value(text, "microcode"));
	out->family = line_int(text, "cpu family");
	out->model_number = line_int(text, "model");
	out->stepping = line_int(text, "stepping");
	if (root[0]) {
		at = cpuinfo_value(text, "flags");
		out->isa = isa_from_flags(text);
		out->hypervisor = at && has_word(at, "hypervisor");
		return;
	}
#if defined(__x86_64__) || defined(__i386__)
	{
		struct rg_cpuid_source src = { real_cpuid, real_xgetbv, NULL };

		out->isa = rg_cpu_decode_isa(&src);
		out->hypervisor = bit(real_cpuid(NULL, 1, 0).ecx, 31);
	}
#elif defined(__aarch64__)
	if (getauxval(AT_HWCAP) & HWCAP_ASIMD)
		out->isa |= RG_ISA_NEON;
#endif
}

static const uint32_t level_avx2 = RG_ISA_SSE2 | RG_ISA_AVX | RG_ISA_AVX2 | RG_ISA_FMA | RG_ISA_F16C;

const char *rg_isa_level_name(uint32_t isa)
{
	if ((isa & RG_ISA_AVX512_ALL) == RG_ISA_AVX512_ALL)
		return "avx512";
	if ((isa & (RG_ISA_AVX2 | RG_ISA_FMA)) == (RG_ISA_AVX2 | RG_ISA_FMA))
		return "avx2";
	if (isa & RG_ISA_AVX)
		return "avx";
	if (isa & RG_ISA_NEON)
		return "neon";
	if (isa & RG_ISA_SSE2)
		return "sse2";
	return "scalar";
}

bool rg_isa_cap_parse(const char *name, uint32_t *mask)
{
	if (strcmp(name, "scalar") == 0)
		*mask = 0;
	else if (strcmp(name, "sse2") == 0)
		*mask = RG_ISA_SSE2;
	else if (strcmp(name, "avx2") == 0)
		*mask = level_avx2;
	else if (strcmp(name, "avx512") == 0)
		*mask = level_avx2 | RG_ISA_AVX512_ALL;
	else if (strcmp(name, "neon") == 0)
		*mask = RG_ISA_NEON;
	else if (strcmp(name, "native") == 0)
		*mask = UINT32_MAX;
	else
		return false;
	return true;
}
