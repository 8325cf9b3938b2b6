/*
 * Attention of every variant against the reference: layouts, heads that share keys,
 * caches, every kind of mask, sizes around tiles and blocks, long sequences, and
 * special values.
 *
 * Tolerance: averages of numbers below 1, weights off by some 1e-6. Where padding and
 * causality leave a row no key, each key has -10000 added, which leaves three decimals
 * of a score: its own rounding then decides the last of them.
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
		[FLOAT_ROWS] = { 1, 1, s->q_seq, width },
		[FLOAT_ALL] = { s->batch, s->q_heads, s->q_seq, width },
		[FLOAT_KEYS] = { s->batch, 1, 1, width },
		[FLOAT_ONE] = { s->batch, 1, s->q_seq, 1 },
		[BOOL_ROWS] = { 1, 1, s->q_seq, width },
		[BOOL_ALL] = { s->batch, s->q_heads, s->q_seq, width },
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
		memcpy(nn_input_typed(&t, RG_I64, 1, &s->batch), o->lengths,
		       (size_t)s->batch * sizeof(int64_t));
	}
	t.variable = (1u << NN_MAX_IO) - 1;
	return nn_check_outputs(&t, o->presents ? 3 : 1, 2e-5, 4e-6, o->fill == NN_SPECIAL);
}

static const struct shape shapes[] = {
	{ 1, 1, 1, 1, 1, 0, 1, 1 },         { 2, 3, 3, 5, 7, 0, 8, 8 },
	{ 1, 4, 2, 13, 13, 0, 16, 16 },     { 2, 2, 1, 33, 17, 4, 20, 24 },
	{ 1, 8, 2, 1, 1, 300, 64, 64 },     { 1, 2, 2, 1, 1, 1500, 40, 33 },
	{ 1, 3, 1, 2, 2, 700, 24, 40 },     { 3, 2, 2, 130, 130, 0, 64, 64 },
	{ 1, 1, 1, 200, 300, 0, 7, 100 },   { 1, 6, 3, 50, 257, 31, 32, 48 },
	{ 1, 1, 1, 500, 520, 100, 80, 16 }, { 2, 12, 12, 12, 129, 0, 64, 64 },
	{ 1, 4, 1, 6, 128, 0, 65, 9 },      { 1, 5, 1, 25, 25, 0, 12, 12 },
};

static void test_masks(void **state)
{
	int runs = 0;

	for (size_t i = 0; i < COUNT(shapes); i++) {
		for (int v = 0; v < 2 * N_MASKS; v++) {
			const struct options o = {
				.flat = (i + (size_t)v / 2) % 2,
				.causal = v % 2,
				.mask = (enum mask)(v / 2),
				.presents = v % 3 != 1,
				.softcap = v % 5 == 2 ? 3 : 0,
				.scale = v % 7 == 3 ? 0.7f : 0,
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
		{ 3, 2, 1, 4, 40, 0, 16, 16 },
		{ 3, 2, 2, 1, 900, 0, 32, 32 },
		{ 3, 1, 1, 150, 150, 0, 24, 24 },
	};
	static const int64_t lengths[][3] = { { 40, 7, 0 }, { 900, 1, 333 }, { 149, 150, 20 } };

	for (size_t i = 0; i < COUNT(s); i++) {
		for (int v = 0; v < 4; v++) {
			const struct options o = {
				.causal = v % 2,
				.flat = v > 1,
				.mask = v > 1 ? FLOAT_ALL : NO_MASK,
				.lengths = lengths[i],
			};

			assert_true(check_attention(&s[i], &o) >= 3);
		}
	}
}

/* Sizes of zero, and what the loops leave to the reference. */
static void test_edges(void **state)
{
	static const struct shape empty[] = {
		{ 0, 2, 2, 3, 4, 0, 8, 8 },
		{ 1, 2, 2, 0, 4, 0, 8, 8 },
		{ 2, 2, 2, 3, 0, 0, 8, 8 },
		{ 1, 2, 1, 3, 0, 5, 8, 8 },
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

/* ---- ONNX Runtime's ---- */

enum padding { NO_PADDING, LENGTHS, END_START, KEYS, ROWS, SQUARE, N_PADDINGS };

static void fill_padding(struct nn_case *t, enum padding kind, const struct shape *s, bool nothing_left)
{
	int64_t total = s->past + s->kv_seq;
	const int64_t n = kind == LENGTHS || kind == END_START ? (kind == LENGTHS ? 1 : 2) * s->batch :
			  kind == KEYS ? s->batch * total : kind == ROWS ? s->batch * s->q_seq * total :
					 s->batch * (total + 3) * (total + 3);
	int32_t *mask;

	if (kind == NO_PADDING) {
		nn_absent(t);
		return;
	}
	if (kind == LENGTHS || kind == END_START)
		mask = nn_input_typed(t, RG_I32, 1, &n);
	else if (kind == KEYS)
		mask = nn_input_typed(t, RG_I32, 2, D(s->batch, total));
	else if (kind == ROWS)
		mask = nn_input_typed(t, RG_I32, 3, D(s->batch, s->q_seq, total));
	else
		mask = nn_input_typed(t, RG_I32, 4, D(s->batch, 1, total + 3, total + 3));
	for (int64_t i = 0; i < n && !nothing_left; i++)
		mask[i] = kind > END_START
				  ? (i * 13 + i / 5) % 4 != 0
				  : (int32_t)(i < s->batch ? total - total / 3 * (i % 2) : total / 4);
}

struct variant {
	enum padding mask;
	bool bias, attention_bias, bias_all, causal, past, presents, variable, nothing_left;
};

static int check_projected(const struct shape *s, const struct variant *v)
{
	int64_t width = s->q_heads * s->head, all = 2 * width + s->q_heads * s->v_head,
		total = s->past + s->kv_seq;
	struct nn_case t;
	bool rough;

	nn_start_in(&t, RG_CONTRIB_DOMAIN, "Attention", 1);
	nn_int(&t, "num_heads", s->q_heads);
	nn_int(&t, "unidirectional", v->causal);
	if (s->head != s->v_head)
		nn_ints(&t, "qkv_hidden_sizes", 3, D(width, width, s->q_heads * s->v_head));
	nn_input(&t, NN_UNIFORM, 3, D(s->batch, s->q_seq, 19));
	nn_input(&t, NN_UNIFORM, 2, D(19, all));
	if (v->bias)
		nn_input(&t, NN_UNIFORM, 1, &all);
	else
		nn_absent(&t);
	fill_padding(&t, v->mask, s, v->nothing_left);
	if (s->past)
		nn_input(&t, NN_UNIFORM, 5, D(2, s->batch, s->q_heads, s->past, s->head));
	else
		nn_absent(&t);
	if (v->attention_bias)
		nn_input(&t, NN_UNIFORM, 4,
			 D(v->bias_all ? s->batch : 1, v->bias_all ? s->q_heads : 1, s->q_seq, total));
	t.variable = v->variable ? ~0u : ~2u;
	rough = v->nothing_left || (v->causal && v->mask);
	return nn_check_outputs(&t, v->presents && s->head == s->v_head ? 2 : 1, rough ? 4e-3 : 2e-5,
				rough ? 4e-3 : 1e-5, false);
}

static void test_projected(void **state)
{
	static const struct shape s[] = {
		{ 2, 3, 3, 5, 5, 0, 8, 8 },   { 1, 2, 2, 1, 1, 40, 16, 16 },  { 2, 2, 2, 33, 33, 7, 24, 24 },
		{ 1, 4, 4, 130, 130, 0, 9, 9 }, { 2, 2, 2, 20, 20, 0, 8, 12 }, { 1, 2, 2, 2, 2, 600, 32, 32 },
	};

	for (size_t i = 0; i < COUNT(s); i++) {
		for (int v = 0; v < 4 * N_PADDINGS; v++) {
			const struct variant o = {
				.mask = (enum padding)(v / 4),
				.bias = v % 4 != 1,
				.attention_bias = v % 4 > 1,
				.bias_all = v % 4 == 3,
				.causal = v % 3 == 1 && v / 4 != SQUARE,
				.presents = v % 2,
				.variable = v % 5 < 2,
				.nothing_left = v % 4 == 3 && v / 4 != NO_PADDING,
			};

			if (s[i].head != s[i].v_head && s[i].past)
				continue;
			assert_true(check_projected(&s[i], &o) >= 3);
		}
	}
}

enum layout { SEPARATE, HEADS_FIRST, PACKED_KV, PACKED_QKV, N_LAYOUTS };

static int check_multi_head(const struct shape *s, enum layout layout, const struct variant *v)
{
	int64_t q = s->q_heads * s->head, all = 2 * q + s->q_heads * s->v_head, total = s->past + s->kv_seq;
	struct nn_case t;
	bool rough;

	nn_start_in(&t, RG_CONTRIB_DOMAIN, "MultiHeadAttention", 1);
	nn_int(&t, "num_heads", s->q_heads);
	nn_int(&t, "unidirectional", v->causal);
	if (layout == PACKED_QKV)
		nn_input(&t, NN_UNIFORM, 5, D(s->batch, s->q_seq, s->q_heads, 3, s->head));
	else
		nn_input(&t, NN_UNIFORM, 3, D(s->batch, s->q_seq, q));
	if (layout == PACKED_KV)
		nn_input(&t, NN_UNIFORM, 5, D(s->batch, s->kv_seq, s->q_heads, 2, s->head));
	else if (layout == HEADS_FIRST)
		heads_first(&t, NN_UNIFORM, s->batch, s->q_heads, s->kv_seq, s->head);
	else if (layout == SEPARATE)
		nn_input(&t, NN_UNIFORM, 3, D(s->batch, s->kv_seq, q));
	else
		nn_absent(&t);
	if (layout == HEADS_FIRST)
		heads_first(&t, NN_UNIFORM, s->batch, s->q_heads, s->kv_seq, s->v_head);
	else if (layout == SEPARATE)
		nn_input(&t, NN_UNIFORM, 3, D(s->batch, s->kv_seq, s->q_heads * s->v_head));
	else
		nn_absent(&t);
	if (v->bias && layout != HEADS_FIRST)
		nn_input(&t, NN_UNIFORM, 1, &all);
	else
		nn_absent(&t);
	fill_padding(&t, v->mask, s, v->nothing_left);
	if (v->attention_bias)
		nn_input(&t, NN_UNIFORM, 4,
			 D(v->bias_all ? s->batch : 1, v->bias_all ? s->q_heads : 1, s->q_seq, total));
	else
		nn_absent(&t);
	if (s->past) {
		heads_first(&t, NN_UNIFORM, s->batch, s->q_heads, s->past, s->head);
		heads_first(&t, NN_UNIFORM, s->batch, s->q_heads, s->past, s->v_head);
	}
	t.variable = v->variable ? ~0u : 1;
	rough = v->nothing_left || (v->causal && v->mask);
	return nn_check_outputs(&t, v->presents ? 3 : 1, rough ? 4e-3 : 2e-5, rough ? 4e-3 : 1e-5, false);
}

static void test_multi_head(void **state)
{
	static const struct shape s[] = {
		{ 2, 3, 3, 5, 5, 0, 8, 8 },     { 1, 2, 2, 1, 1, 40, 16, 16 },
		{ 2, 2, 2, 33, 33, 7, 24, 24 }, { 1, 4, 4, 130, 130, 0, 64, 64 },
		{ 1, 2, 2, 1, 1, 900, 32, 32 },
	};

	for (size_t i = 0; i < COUNT(s); i++) {
		for (int v = 0; v < N_LAYOUTS * 4 * 3; v++) {
			static const enum padding masks[] = { NO_PADDING, LENGTHS, KEYS, ROWS };
			const struct variant o = {
				.mask = masks[v % 4],
				.bias = v % 3 != 1,
				.attention_bias = v % 5 > 1,
				.bias_all = v % 5 == 3,
				.causal = v % 7 > 3,
				.presents = v % 2,
				.variable = v % 3 == 0,
				.nothing_left = v % 4 && v % 9 == 4,
			};
			struct shape this = s[i];

			if (v / 12 == HEADS_FIRST)
				this.past = 0; /* not allowed there */
			assert_true(check_multi_head(&this, (enum layout)(v / 12), &o) >= 3);
		}
	}
}

struct group {
	struct shape s; /* kv_seq is not used; past: rows of the cache */
	int32_t total, lens[3], valid[3];
};

struct group_options {
	bool packed, rotary, interleaved, ids, bias, sink, smooth, lengths;
	int64_t window;
	int causal;
	float softcap;
};

static int check_group(const struct group *g, const struct group_options *o)
{
	const struct shape *s = &g->s;
	int64_t width = (s->q_heads + 2 * s->kv_heads) * s->head, half = (s->head / 2 + 7) / 8 * 8 / 2;
	struct nn_case t;

	nn_start_in(&t, RG_CONTRIB_DOMAIN, "GroupQueryAttention", 1);
	nn_int(&t, "num_heads", s->q_heads);
	nn_int(&t, "kv_num_heads", s->kv_heads);
	nn_int(&t, "do_rotary", o->rotary);
	nn_int(&t, "rotary_interleaved", o->interleaved);
	nn_int(&t, "smooth_softmax", o->smooth ? 1 : 0);
	nn_int(&t, "causal", o->causal);
	if (o->window)
		nn_int(&t, "local_window_size", o->window);
	if (o->softcap > 0)
		nn_float(&t, "softcap", o->softcap);
	if (o->packed) {
		nn_input(&t, NN_UNIFORM, 3, D(s->batch, s->q_seq, width));
		nn_absent(&t);
		nn_absent(&t);
	} else {
		nn_input(&t, NN_UNIFORM, 3, D(s->batch, s->q_seq, s->q_heads * s->head));
		nn_input(&t, NN_UNIFORM, 3, D(s->batch, s->q_seq, s->kv_heads * s->head));
		nn_input(&t, NN_UNIFORM, 3, D(s->batch, s->q_seq, s->kv_heads * s->head));
	}
	if (s->past) {
		heads_first(&t, NN_UNIFORM, s->batch, s->kv_heads, s->past, s->head);
		heads_first(&t, NN_UNIFORM, s->batch, s->kv_heads, s->past, s->head);
	} else {
		nn_absent(&t);
		nn_absent(&t);
	}
	memcpy(nn_input_typed(&t, RG_I32, 1, &s->batch), g->lens, (size_t)s->batch * sizeof(int32_t));
	*(int32_t *)nn_input_typed(&t, RG_I32, 0, NULL) = g->total;
	for (int i = 0; i < 2; i++) {
		if (o->rotary)
			nn_input(&t, NN_UNIFORM, 2, D(g->total + 5, half));
		else
			nn_absent(&t);
	}
	if (o->ids) {
		int64_t *ids = nn_input_typed(&t, RG_I64, 2, D(s->batch, s->q_seq));

		for (int64_t i = 0; i < s->batch * s->q_seq; i++)
			ids[i] = i * 3 % g->total;
	} else {
		nn_absent(&t);
	}
	if (o->bias)
		nn_input(&t, NN_UNIFORM, 4, D(1, s->q_heads, s->q_seq, g->total));
	else
		nn_absent(&t);
	if (o->sink)
		nn_input(&t, NN_UNIFORM, 1, &s->q_heads);
	else
		nn_absent(&t);
	for (int i = 12; i < 16; i++)
		nn_absent(&t);
	if (o->lengths)
		memcpy(nn_input_typed(&t, RG_I32, 1, &s->batch), g->valid,
		       (size_t)s->batch * sizeof(int32_t));
	t.known = 1u << 6;
	t.variable = ~t.known;
	return nn_check_outputs(&t, 3, 2e-5, 1e-5, false);
}

static void test_group(void **state)
{
	static const struct group groups[] = {
		{ { 2, 4, 2, 6, 0, 0, 16, 16 }, 6, { 5, 3 }, { 6, 4 } },
		{ { 2, 4, 2, 1, 0, 20, 16, 16 }, 21, { 20, 7 }, { 1, 0 } },
		{ { 1, 8, 1, 1, 0, 1300, 64, 64 }, 1301, { 1300 }, { 1 } },
		{ { 3, 6, 3, 5, 0, 300, 32, 32 }, 305, { 304, 200, 12 }, { 5, 2, 0 } },
		{ { 1, 4, 4, 200, 0, 0, 40, 40 }, 200, { 199 }, { 200 } },
		{ { 2, 4, 1, 70, 0, 90, 24, 24 }, 160, { 159, 99 }, { 70, 10 } },
	};

	for (size_t i = 0; i < COUNT(groups); i++) {
		for (int v = 0; v < 36; v++) {
			const struct group_options o = {
				.packed = v % 2,
				.rotary = v % 3 != 0,
				.interleaved = v % 3 == 2,
				.ids = v % 3 && v % 4 == 1,
				.bias = v % 5 == 1,
				.sink = v % 6 == 3,
				.smooth = v % 6 == 4,
				.lengths = v % 7 > 3,
				.window = v % 4 == 2 ? 1 + v : 0,
				.causal = v % 4 == 2 || v % 8 < 7,
				.softcap = v % 9 == 5 ? 5 : 0,
			};

			assert_true(check_group(&groups[i], &o) >= 3);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_special),
		cmocka_unit_test(test_future_is_unseen),
		cmocka_unit_test(test_projected),
		cmocka_unit_test(test_multi_head),
		cmocka_unit_test(test_group),
	};

	return cmocka_run_group_tests_name("nn-attention", tests, NULL, NULL);
}
