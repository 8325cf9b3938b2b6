/*
 * What this CPU is and what it can execute: cpuid and XGETBV on x86, HWCAP on
 * Arm. A feature counts only when the operating system saves its registers.
 */
#ifndef RG_SYS_CPU_H
#define RG_SYS_CPU_H

#include <stdbool.h>
#include <stdint.h>

enum rg_isa {
	RG_ISA_SSE2 = 1u << 0,
	RG_ISA_AVX = 1u << 1,
	RG_ISA_AVX2 = 1u << 2,
	RG_ISA_FMA = 1u << 3,
	RG_ISA_F16C = 1u << 4,
	RG_ISA_AVX_VNNI = 1u << 5,
	RG_ISA_AVX512F = 1u << 6,
	RG_ISA_AVX512BW = 1u << 7,
	RG_ISA_AVX512DQ = 1u << 8,
	RG_ISA_AVX512VL = 1u << 9,
	RG_ISA_AVX512_VNNI = 1u << 10,
	RG_ISA_AVX512_BF16 = 1u << 11,
	RG_ISA_AVX512_FP16 = 1u << 12,
	RG_ISA_AMX_TILE = 1u << 13,
	RG_ISA_NEON = 1u << 16,
};
#define RG_ISA_AVX512_ALL (RG_ISA_AVX512F | RG_ISA_AVX512BW | RG_ISA_AVX512DQ | RG_ISA_AVX512VL)

struct rg_cpu {
	char vendor[16];   /* "GenuineIntel" */
	char model[96];    /* as /proc/cpuinfo says; "" unknown */
	int family, model_number, stepping; /* -1 unknown */
	char microcode[24];
	uint32_t isa;      /* bits of enum rg_isa */
	bool hypervisor;   /* runs under one, as cpuid says */
};

/* The registers that one cpuid call returns. */
struct rg_cpuid_regs {
	uint32_t eax, ebx, ecx, edx;
};
/* Where cpuid comes from: the CPU, or a recorded dump in tests. */
struct rg_cpuid_source {
	struct rg_cpuid_regs (*cpuid)(void *ctx, uint32_t leaf, uint32_t subleaf);
	uint64_t (*xgetbv)(void *ctx); /* XCR0 */
	void *ctx;
};

/* Decodes features from a cpuid source; no other input. */
uint32_t rg_cpu_decode_isa(const struct rg_cpuid_source *src);
/* This machine. `root` is "" for the real one, or a folder that holds proc/
 * and sys/ (tests). Never fails: what cannot be read stays unknown. */
void rg_cpu_detect(const char *root, struct rg_cpu *out);
/* "avx2", "avx512", ...: the name of the best vector level in `isa`. */
const char *rg_isa_level_name(uint32_t isa);
/* The bits that `--isa NAME` allows ("sse2", "avx2", "avx512", "native");
 * false for an unknown name. */
bool rg_isa_cap_parse(const char *name, uint32_t *mask);

#endif
