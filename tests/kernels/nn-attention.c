/*
 * Attention of every variant against the reference: layouts, heads that share keys,
 * caches, every kind of mask, sizes around tiles and blocks, long sequences, and
 * special values.
 *
 * Tolerance: averages of numbers below 1, weights off by some 1e-6.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/contrib.h"
#include "nn-case.h"
#include "sys/cpu.h"

#define D(...) ((const int64_t[]){ __VA_ARGS__ })
#define COUNT(A) (sizeof(A) / sizeof((A)[0]))

enum mask { NO_MASK, FLOAT_ROWS, FLOAT_ALL, FLOAT_KEYS, FLOAT_ONE, BOOL_ROWS, BOOL_ALL, SHORT_ROWS, N_MASKS };

struct shape {
	int64_t batch, q_heads, kv_heads, q_seq, kv_seq, past, head, v_head;
};

static void heads_first(struct nn_case *t, enum nn_fill fill, int64_t batch, int64_t heads, int64_t seq,
			int64_t width)
{
	nn_input(t, fill, 4, D(batch, heads, seq, width));
}

/* Some of it -inf, and a row or two of nothing else. */
static void fill_mask(struct nn_case *t, enum mask kind, const struct shape *s)
{
	int64_t total = s->past + s->kv_seq, width = kind == SHORT_ROWS ? total - total / 3 : total;
	const int64_t dims[N_MASKS][4] = {
		[FLOAT_ROWS] = { 1, 1, s->q_seq, width },  [FLOAT_ALL] = { s->batch, s->q_heads, s->q_seq, width },
		[FLOAT_KEYS] = { s->batch, 1, 1, width },  [FLOAT_ONE] = { s->batch, 1, s->q_seq, 1 },
		[BOOL_ROWS] = { 1, 1, s->q_seq, width },   [BOOL_ALL] = { s->batch, s->q_heads, s->q_seq, width },
		[SHORT_ROWS] = { 1, 1, s->q_seq, width },
	};
	const int64_t *d = dims[kind];
	bool two = kind == FLOAT_ROWS || kind == BOOL_ROWS || kind == SHORT_ROWS;
	int rank = two ? 2 : 4, skip = two ? 2 : 0;
	int64_t n = d[0] * d[1] * d[2] * d[3];

	if (kind == NO_MASK) {
		nn_absent(t);
	} else if (kind == BOOL_ROWS || kind == BOOL_ALL) {
		uint8_t *keep = nn_input_typed(t, RG_BOOL, rank, d + skip);

		for (int64_t i = 0; i < n; i++)
			keep[i] = (i * 7 + i / 3) % 5 != 0 && i / d[3] % 9 != 4;
	} else {
		float *add = nn_input(t, NN_UNIFORM, rank, d + skip);

		for (int64_t i = 0; i < n; i++)
			add[i] = (i * 7 + i / 3) % 11 == 0 || i / d[3] % 9 == 4 ? -INFINITY : add[i] * 2;
	}
}

struct options {
	bool flat, causal, presents;
	enum mask mask;
	float softcap, scale;
	const int64_t *lengths;
	enum nn_fill fill;
	int version;
};

/* Returns the runs compared. */
static int check_attention(const struct shape *s, const struct options *o)
{
	struct nn_case t;

	nn_start(&t, "Attention", o->version ? o->version : o->mask == SHORT_ROWS || o->lengths ? 24 : 23);
	nn_int(&t, "is_causal", o->causal);
	if (o->softcap > 0)
		nn_float(&t, "softcap", o->softcap);
	if (o->scale > 0)
		nn_float(&t, "scale", o->scale);
	if (o->flat) {
		nn_int(&t, "q_num_heads", s->q_heads);
		nn_int(&t, "kv_num_heads", s->kv_heads);
		nn_input(&t, o->fill, 3, D(s->batch, s->q_seq, s->q_heads * s->head));
		nn_input(&t, o->fill, 3, D(s->batch, s->kv_seq, s->kv_heads * s->head));
		nn_input(&t, o->fill, 3, D(s->batch, s->kv_seq, s->kv_heads * s->v_head));
	} else {
		heads_first(&t, o->fill, s->batch, s->q_heads, s->q_seq, s->head);
		heads_first(&t, o->fill, s->batch, s->kv_heads, s->kv_seq, s->head);
		heads_first(&t, o->fill, s->batch, s->kv_heads, s->kv_seq, s->v_head);
	}
	if (o->mask || s->past || o->lengths)
		fill_mask(&t, o->mask, s);
	if (s->past) {
		heads_first(&t, o->fill, s->batch, s->kv_heads, s->past, s->head);
		heads_first(&t, o->fill, s->batch, s->kv_heads, s->past, s->v_head);
	}
	if (o->lengths) {
		if (!s->past) {
			nn_absent(&t);
			nn_absent(&t);
		}
		memcpy(nn_input_typed(&t, RG_I64, 1, &s->batch), o->lengths, (size_t)s->batch * sizeof(int64_t));
	}
	t.variable = (1u << NN_MAX_IO) - 1;
	return nn_check_outputs(&t, o->presents ? 3 : 1, 2e-5, 4e-6, o->fill == NN_SPECIAL);
}

static const struct shape shapes[] = {
	{ 1, 1, 1, 1, 1, 0, 1, 1 },       { 2, 3, 3, 5, 7, 0, 8, 8 },       { 1, 4, 2, 13, 13, 0, 16, 16 },
	{ 2, 2, 1, 33, 17, 4, 20, 24 },   { 1, 8, 2, 1, 1, 300, 64, 64 },   { 1, 2, 2, 1, 1, 1500, 40, 33 },
	{ 1, 3, 1, 2, 2, 700, 24, 40 },   { 3, 2, 2, 130, 130, 0, 64, 64 }, { 1, 1, 1, 200, 300, 0, 7, 100 },
	{ 1, 6, 3, 50, 257, 31, 32, 48 }, { 1, 1, 1, 500, 520, 100, 80, 16 }, { 2, 12, 12, 12, 129, 0, 64, 64 },
	{ 1, 4, 1, 6, 128, 0, 65, 9 },    { 1, 5, 1, 25, 25, 0, 12, 12 },
};

static void test_masks(void **state)
{
	int runs = 0;

	for (size_t i = 0; i < COUNT(shapes); i++) {
		for (int v = 0; v < 2 * N_MASKS; v++) {
			const struct options o = {
				.flat = (i + (size_t)v / 2) % 2, .causal = v % 2, .mask = (enum mask)(v / 2),
				.presents = v % 3 != 1, .softcap = v % 5 == 2 ? 3 : 0, .scale = v % 7 == 3 ? 0.7f : 0,
			};
			int n = check_attention(&shapes[i], &o);

			assert_true(n >= 3);
			runs += n;
		}
	}
	print_message("# %d runs\n", runs);
}

static void test_lengths(void **state)
{
	static const struct shape s[] = {
		{ 3, 2, 1, 4, 40, 0, 16, 16 }, { 3, 2, 2, 1, 900, 0, 32, 32 }, { 3, 1, 1, 150, 150, 0, 24, 24 },
	};
	static const int64_t lengths[][3] = { { 40, 7, 0 }, { 900, 1, 333 }, { 149, 150, 20 } };

	for (size_t i = 0; i < COUNT(s); i++) {
		for (int v = 0; v < 4; v++) {
			const struct options o = {
				.causal = v % 2, .flat = v > 1, .mask = v > 1 ? FLOAT_ALL : NO_MASK, .lengths = lengths[i],
			};

			assert_true(check_attention(&s[i], &o) >= 3);
		}
	}
}

/* Sizes of zero, and what the loops leave to the reference. */
static void test_edges(void **state)
{
	static const struct shape empty[] = {
		{ 0, 2, 2, 3, 4, 0, 8, 8 }, { 1, 2, 2, 0, 4, 0, 8, 8 }, { 2, 2, 2, 3, 0, 0, 8, 8 }, { 1, 2, 1, 3, 0, 5, 8, 8 },
	};
	struct nn_case t;

	for (size_t i = 0; i < COUNT(empty); i++)
		assert_true(check_attention(&empty[i], &(struct options){ .presents = true }) >= 3);
	nn_start(&t, "Attention", 23);
	for (int i = 0; i < 3; i++)
		heads_first(&t, NN_UNIFORM, 1, 2, 4, 8);
	assert_int_equal(nn_check_outputs(&t, 4, 0, 0, false), 0);
	nn_start(&t, "Attention", 23);
	nn_int(&t, "softmax_precision", RG_F64);
	for (int i = 0; i < 3; i++)
		heads_first(&t, NN_UNIFORM, 1, 2, 4, 8);
	assert_int_equal(nn_check_all(&t, 0, 0, false), 0);
}

/* Huge, tiny, NaN and infinite scores make the same NaN and the same numbers. */
static void test_special(void **state)
{
	int runs = 0;

	for (int v = 0; v < 48; v++) {
		const struct shape s = { 1, 2, 2, v % 4 ? 40 : 3, v % 3 ? 150 : 300, 0, 16, 16 };
		struct nn_case t;
		float *q, *k;

		nn_start(&t, "Attention", 23);
		q = nn_input(&t, NN_UNIFORM, 4, D(1, 2, s.q_seq, 16));
		k = nn_input(&t, NN_UNIFORM, 4, D(1, 2, s.kv_seq, 16));
		nn_input(&t, NN_UNIFORM, 4, D(1, 2, s.kv_seq, 16));
		if (v % 6 == 0)
			q[37] = NAN;
		if (v % 6 == 1)
			q[5] = INFINITY;
		if (v % 6 == 2)
			k[16 * 77 + 3] = -INFINITY;
		if (v % 6 == 3)
			k[16 * 140 + 1] = NAN;
		if (v % 6 == 4)
			for (int64_t i = 0; i < 32 * s.kv_seq; i++)
				k[i] *= 300; /* exponentials that vanish */
		if (v % 6 == 5)
			k[16 * 9] = 3e38f;
		/* a score of 1,000 is off by its own rounding, and the exponential by as much */
		runs += nn_check_all(&t, v % 6 == 4 ? 2e-3 : 2e-5, v % 6 == 4 ? 2e-4 : 4e-6, true);
	}
	assert_true(runs >= 48 * 3);
}

static bool runs_here(const struct rg_kernel *k)
{
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	return strcmp(k->name, "ref") && !(k->isa & ~cpu.isa);
}

static void check_unseen(const struct rg_kernel *k, int64_t n, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t unseen = n - 2;
	struct nn_case t;
	float *v, *y;

	nn_start(&t, "Attention", 23);
	nn_int(&t, "is_causal", 1);
	heads_first(&t, NN_UNIFORM, 1, 1, n, 8);
	heads_first(&t, NN_UNIFORM, 1, 1, n, 8);
	v = nn_input(&t, NN_UNIFORM, 4, D(1, 1, n, 8));
	v[unseen * 8 + 3] = NAN;
	v[(n - 1) * 8 + 5] = INFINITY;
	assert_int_equal(nn_infer(&t, 1, &err), 0);
	assert_true(nn_run(&t, k->name, lanes, true, &y));
	for (int64_t j = 0; j < unseen * 8; j++)
		assert_true(isfinite(y[j]));
	for (int64_t j = unseen; j < n; j++)
		assert_true(isnan(y[j * 8 + 3]));
	assert_true(isinf(y[(n - 1) * 8 + 5]));
	nn_free(&t);
}

/* What a causal row must not see, it does not see, even if it is not a number. */
static void test_future_is_unseen(void **state)
{
	static const int64_t sizes[] = { 5, 40, 300 };
	const struct rg_kernel *const *list;
	int count = rg_kernel_list("", "Attention", &list), runs = 0;

	for (int i = 0; i < count; i++)
		for (size_t s = 0; s < COUNT(sizes) && runs_here(list[i]); s++)
			for (int lanes = 1; lanes <= 3; lanes++, runs++)
				check_unseen(list[i], sizes[s], lanes);
	assert_true(runs >= 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_special),
		cmocka_unit_test(test_future_is_unseen),
	};

	return cmocka_run_group_tests_name("nn-attention", tests, NULL, NULL);
}
