/*
 * The forms of the exact int8 product as loops on registers. A file includes this
 * once, for its width of register, after defining
 *   VEC, OP(name)     the type, and the intrinsic of that name
 *   ZERO, STORE(p, v) a register of zeros, a store to unaligned memory
 *   DOT(a, x, w)      a + the four products of each lane, without saturation
 *   REG               the constraint of an asm operand
 *   TARGET, TARGET_DOT
 *   FUNCTION(form)    the function's name
 *   CHAINS            10 or 16
 */
#define BYTES ((int)sizeof(VEC))
/* Hides a value, so that a step with the same factors is done again and not copied. */
#define HIDE(x) __asm__("" : "+" REG(x))

#if CHAINS == 10
#define MORE(macro)
#elif CHAINS == 16
#define MORE(macro) macro(a10) macro(a11) macro(a12) macro(a13) macro(a14) macro(a15)
#endif
#define EACH(macro) \
	macro(a0) macro(a1) macro(a2) macro(a3) macro(a4) macro(a5) macro(a6) macro(a7) macro(a8) macro(a9) \
	MORE(macro)

#define DECLARE(a) VEC a = ZERO;
/* The sum of all chains' lanes, modulo 2^32. */
#define ADD_UP(a) do { \
	uint32_t lanes[BYTES / 4]; \
	STORE(lanes, a); \
	for (int lane = 0; lane < BYTES / 4; lane++) \
		sum += lanes[lane]; \
} while (0);

/* `macs`: multiply-adds of a step. */
#define LOOP(step, macs) do { \
	uint32_t sum = 0; \
	EACH(DECLARE) \
	for (int64_t i = 0; i < rounds; i++) { \
		EACH(step) \
		EACH(step) \
	} \
	EACH(ADD_UP) \
	*sink = sum; \
	return rounds * 2 * CHAINS * (macs) * 2; \
} while (0)

/* Both factors are 16 bits wide already: half as many products in an instruction. */
#define WIDEN(a) do { \
	HIDE(w); \
	(a) = OP(add_epi32)(a, OP(madd_epi16)(x, w)); \
	HIDE(a); \
} while (0);

__attribute__((target(TARGET)))
int64_t FUNCTION(widen)(int64_t rounds, uint32_t *sink)
{
	VEC x = OP(set1_epi16)(rg_roof_byte), w = OP(set1_epi16)(rg_roof_weight_any);

	LOOP(WIDEN, BYTES / 2);
}

/* Two products meet in 16 bits, then two such sums in 32. */
#define PAIRS(a) do { \
	HIDE(w); \
	(a) = OP(add_epi32)(a, OP(madd_epi16)(OP(maddubs_epi16)(x, w), ones)); \
	HIDE(a); \
} while (0);

__attribute__((target(TARGET)))
int64_t FUNCTION(pairs)(int64_t rounds, uint32_t *sink)
{
	VEC x = OP(set1_epi8)((char)rg_roof_byte), w = OP(set1_epi8)(rg_roof_weight_pairs);
	VEC ones = OP(set1_epi16)(1);

	LOOP(PAIRS, BYTES);
}

/* Four products meet in 16 bits: the pairs of two instructions are added before they are widened. */
#define QUADS(a) do { \
	VEC pairs; \
	HIDE(w); \
	pairs = OP(maddubs_epi16)(x, w); \
	HIDE(w); \
	pairs = OP(add_epi16)(pairs, OP(maddubs_epi16)(x, w)); \
	(a) = OP(add_epi32)(a, OP(madd_epi16)(pairs, ones)); \
	HIDE(a); \
} while (0);

__attribute__((target(TARGET)))
int64_t FUNCTION(quads)(int64_t rounds, uint32_t *sink)
{
	VEC x = OP(set1_epi8)((char)rg_roof_byte), w = OP(set1_epi8)(rg_roof_weight_quads);
	VEC ones = OP(set1_epi16)(1);

	LOOP(QUADS, 2 * BYTES);
}

/* Four products and the addition in one instruction. */
#define VNNI(a) do { \
	HIDE(w); \
	(a) = DOT(a, x, w); \
	HIDE(a); \
} while (0);

__attribute__((target(TARGET_DOT)))
int64_t FUNCTION(vnni)(int64_t rounds, uint32_t *sink)
{
	VEC x = OP(set1_epi8)((char)rg_roof_byte), w = OP(set1_epi8)(rg_roof_weight_any);

	LOOP(VNNI, BYTES);
}
