/*
 * "m=128,k=768,n=3072": keys with numbers, one table of keys a kind, so that
 * reading, refusing and explaining cannot disagree.
 */
#include "session/bench-text.h"

#include <stddef.h>
#include <string.h>

#define MAX_NUMBERS 4
#define MAX_DIM (INT64_C(1) << 24) /* of one dimension: what any memory could hold of two */

struct key {
	const char *name;
	const char *help;
	int64_t low, high;  /* of each number */
	unsigned counts;    /* bit i: i numbers joined by 'x' are taken */
	bool needed;
};

/* A word of the text: key, and the numbers behind '='. */
struct word {
	int key;
	int n;
	int64_t v[MAX_NUMBERS];
};

static int complain(const char *text, const struct key *keys, int n_keys, struct rg_error *err)
{
	struct rg_str list = { 0 };

	for (int i = 0; i < n_keys; i++)
		rg_str_printf(&list, "%s%s", i ? ", " : "", keys[i].help);
	rg_error_hint(err, "%s", rg_str_text(&list));
	rg_str_free(&list);
	return rg_error_at(err, "%s", text);
}

/* "3" or "3x3": *n numbers, each in range. */
static bool numbers(const char *text, size_t len, const struct key *k, struct word *w)
{
	char buf[80], *p = buf;

	w->n = 0;
	if (len == 0 || len >= sizeof(buf))
		return false;
	memcpy(buf, text, len);
	buf[len] = '\0';
	while (p) {
		char *x = strchr(p, 'x');

		if (x)
			*x = '\0';
		if (w->n == MAX_NUMBERS || !rg_parse_i64(p, k->low, k->high, &w->v[w->n]))
			return false;
		w->n++;
		p = x ? x + 1 : NULL;
	}
	return k->counts >> w->n & 1;
}

/* Reads the word at *at and moves on behind its comma. */
static int next(const char *text, const char **at, const struct key *keys, int n_keys, uint64_t *seen,
		struct word *w, struct rg_error *err)
{
	size_t len = strcspn(*at, ","), name = strcspn(*at, "=,");
	const char *word = *at;

	*at += len + (word[len] == ',');
	for (w->key = 0; w->key < n_keys; w->key++)
		if (strlen(keys[w->key].name) == name && strncmp(keys[w->key].name, word, name) == 0)
			break;
	if (w->key == n_keys || name == len) {
		rg_error_set(err, RG_EUSAGE, "'%.*s' is no part of this shape", (int)(len > 60 ? 60 : len),
			     word);
		return complain(text, keys, n_keys, err);
	}
	if (*seen >> w->key & 1) {
		rg_error_set(err, RG_EUSAGE, "%s= is there twice", keys[w->key].name);
		return complain(text, keys, n_keys, err);
	}
	*seen |= UINT64_C(1) << w->key;
	if (!numbers(word + name + 1, len - name - 1, &keys[w->key], w)) {
		rg_error_set(err, RG_EUSAGE, "'%.*s': not %s", (int)(len > 60 ? 60 : len), word,
			     keys[w->key].help);
		return complain(text, keys, n_keys, err);
	}
	return 0;
}

static int all_needed(const char *text, const struct key *keys, int n_keys, uint64_t seen,
		      struct rg_error *err)
{
	for (int i = 0; i < n_keys; i++) {
		if (!keys[i].needed || seen >> i & 1)
			continue;
		rg_error_set(err, RG_EUSAGE, "%s= is missing", keys[i].name);
		return complain(text, keys, n_keys, err);
	}
	return 0;
}

/* ---- gemm ---- */

enum { GEMM_M, GEMM_K, GEMM_N, GEMM_B, GEMM_TA, GEMM_TB, GEMM_BIAS, GEMM_BATCH, GEMM_KEYS };
static const struct key gemm_keys[GEMM_KEYS] = {
	[GEMM_M] = { "m", "m=ROWS", 1, MAX_DIM, 1 << 1, true },
	[GEMM_K] = { "k", "k=INNER", 1, MAX_DIM, 1 << 1, true },
	[GEMM_N] = { "n", "n=COLUMNS", 1, MAX_DIM, 1 << 1, true },
	[GEMM_B] = { "b", "b=var|const", 0, 1, 1 << 1, false },
	[GEMM_TA] = { "ta", "ta=0|1", 0, 1, 1 << 1, false },
	[GEMM_TB] = { "tb", "tb=0|1", 0, 1, 1 << 1, false },
	[GEMM_BIAS] = { "bias", "bias=0|1", 0, 1, 1 << 1, false },
	[GEMM_BATCH] = { "batch", "batch=N", 1, MAX_DIM, 1 << 1, false },
};

/* b= has words for values. */
static bool take_b(const char **at, uint64_t *seen, struct rg_bench_gemm *g)
{
	size_t len = strcspn(*at, ",");
	bool is_const = len == 7 && strncmp(*at, "b=const", 7) == 0;

	if (!is_const && !(len == 5 && strncmp(*at, "b=var", 5) == 0))
		return false;
	if (*seen >> GEMM_B & 1)
		return false; /* next() says that it is there twice */
	*seen |= UINT64_C(1) << GEMM_B;
	g->b_const = is_const;
	*at += len + ((*at)[len] == ',');
	return true;
}

int rg_bench_gemm_parse(const char *text, struct rg_bench_gemm *g, struct rg_error *err)
{
	static const struct key mkn = { "", "MxKxN", 1, MAX_DIM, 1 << 3, false };
	const char *at = text;
	uint64_t seen = 0;
	struct word w;

	*g = (struct rg_bench_gemm){ .b_const = -1 };
	if (numbers(text, strcspn(text, ","), &mkn, &w)) {
		g->m = w.v[0];
		g->k = w.v[1];
		g->n = w.v[2];
		seen = 1 << GEMM_M | 1 << GEMM_K | 1 << GEMM_N;
		at += strcspn(text, ",");
		at += *at == ',';
	}
	while (*at) {
		if (take_b(&at, &seen, g))
			continue;
		if (next(text, &at, gemm_keys, GEMM_KEYS, &seen, &w, err))
			return err->code;
		switch (w.key) {
		case GEMM_M: g->m = w.v[0]; break;
		case GEMM_K: g->k = w.v[0]; break;
		case GEMM_N: g->n = w.v[0]; break;
		case GEMM_TA: g->trans_a = w.v[0]; break;
		case GEMM_TB: g->trans_b = w.v[0]; break;
		case GEMM_BIAS: g->bias = w.v[0]; break;
		case GEMM_BATCH: g->batch = w.v[0]; break;
		default:
			rg_error_set(err, RG_EUSAGE, "b= is var or const");
			return complain(text, gemm_keys, GEMM_KEYS, err);
		}
	}
	if (all_needed(text, gemm_keys, GEMM_KEYS, seen, err))
		return err->code;
	if (g->batch && (g->trans_a || g->trans_b || g->bias)) {
		rg_error_set(err, RG_EUSAGE, "ta, tb and bias are of Gemm, which has no batch");
		return complain(text, gemm_keys, GEMM_KEYS, err);
	}
	return 0;
}

void rg_bench_gemm_text(struct rg_str *s, const struct rg_bench_gemm *g)
{
	rg_str_printf(s, "m=%lld,k=%lld,n=%lld", (long long)g->m, (long long)g->k, (long long)g->n);
	if (g->batch)
		rg_str_printf(s, ",batch=%lld", (long long)g->batch);
	if (g->trans_a)
		rg_str_add(s, ",ta=1");
	if (g->trans_b)
		rg_str_add(s, ",tb=1");
	if (g->bias)
		rg_str_add(s, ",bias=1");
	if (g->b_const >= 0)
		rg_str_add(s, g->b_const ? ",b=const" : ",b=var");
}

/* ---- conv ---- */

enum {
	CONV_C,
	CONV_H,
	CONV_W,
	CONV_M,
	CONV_K,
	CONV_STRIDE,
	CONV_PAD,
	CONV_DILATION,
	CONV_GROUP,
	CONV_N,
	CONV_BIAS,
	CONV_KEYS
};
static const struct key conv_keys[CONV_KEYS] = {
	[CONV_C] = {"c", "c=CHANNELS", 1, MAX_DIM, 1 << 1, true},
	[CONV_H] = {"h", "h=HEIGHT", 1, MAX_DIM, 1 << 1, true},
	[CONV_W] = {"w", "w=WIDTH", 1, MAX_DIM, 1 << 1, true},
	[CONV_M] = {"m", "m=OUTPUT CHANNELS", 1, MAX_DIM, 1 << 1, true},
	[CONV_K] = {"k", "k=N or k=HxW", 1, 4096, 1 << 1 | 1 << 2, true},
	[CONV_STRIDE] = {"stride", "stride=N or HxW", 1, 4096, 1 << 1 | 1 << 2, false},
	[CONV_PAD] = {"pad", "pad=N, HxW or TOPxLEFTxBOTTOMxRIGHT", 0, 4096, 1 << 1 | 1 << 2 | 1 << 4, false},
	[CONV_DILATION] = {"dilation", "dilation=N or HxW", 1, 4096, 1 << 1 | 1 << 2, false},
	[CONV_GROUP] = {"group", "group=N", 1, MAX_DIM, 1 << 1, false},
	[CONV_N] = {"n", "n=BATCH", 1, MAX_DIM, 1 << 1, false},
	[CONV_BIAS] = {"bias", "bias=0|1", 0, 1, 1 << 1, false},
};

static void pair(const struct word *w, int64_t out[2])
{
	out[0] = w->v[0];
	out[1] = w->n > 1 ? w->v[1] : w->v[0];
}

static void pads(const struct word *w, int64_t out[4])
{
	for (int i = 0; i < 4; i++)
		out[i] = w->n == 4 ? w->v[i] : w->n == 2 ? w->v[i % 2] : w->v[0];
}

static void default_pads(const struct rg_bench_conv *c, int64_t out[4])
{
	for (int i = 0; i < 4; i++)
		out[i] = c->dilation[i % 2] * (c->kernel[i % 2] - 1) / 2;
}

/* What the numbers together must be. */
static const char *impossible(const struct rg_bench_conv *c)
{
	const int64_t in[2] = { c->h, c->w };

	if (c->c % c->group || c->m % c->group)
		return "group must divide c and m";
	for (int i = 0; i < 2; i++)
		if (in[i] + c->pad[i] + c->pad[i + 2] < c->dilation[i] * (c->kernel[i] - 1) + 1)
			return "the kernel is larger than the padded input";
	return NULL;
}

int rg_bench_conv_parse(const char *text, struct rg_bench_conv *c, struct rg_error *err)
{
	const char *at = text, *why;
	uint64_t seen = 0;
	struct word w;

	*c = (struct rg_bench_conv){ .n = 1, .group = 1, .stride = { 1, 1 }, .dilation = { 1, 1 } };
	while (*at) {
		if (next(text, &at, conv_keys, CONV_KEYS, &seen, &w, err))
			return err->code;
		switch (w.key) {
		case CONV_C: c->c = w.v[0]; break;
		case CONV_H: c->h = w.v[0]; break;
		case CONV_W: c->w = w.v[0]; break;
		case CONV_M: c->m = w.v[0]; break;
		case CONV_K: pair(&w, c->kernel); break;
		case CONV_STRIDE: pair(&w, c->stride); break;
		case CONV_PAD: pads(&w, c->pad); break;
		case CONV_DILATION: pair(&w, c->dilation); break;
		case CONV_GROUP: c->group = w.v[0]; break;
		case CONV_N: c->n = w.v[0]; break;
		default: c->bias = w.v[0]; break;
		}
	}
	if (all_needed(text, conv_keys, CONV_KEYS, seen, err))
		return err->code;
	if (!(seen >> CONV_PAD & 1))
		default_pads(c, c->pad);
	why = impossible(c);
	if (why) {
		rg_error_set(err, RG_EUSAGE, "%s", why);
		return complain(text, conv_keys, CONV_KEYS, err);
	}
	return 0;
}

static void put_pair(struct rg_str *s, const char *key, const int64_t v[2], int64_t dflt)
{
	if (v[0] == v[1] && v[0] == dflt)
		return;
	rg_str_printf(s, ",%s=%lld", key, (long long)v[0]);
	if (v[0] != v[1])
		rg_str_printf(s, "x%lld", (long long)v[1]);
}

void rg_bench_conv_text(struct rg_str *s, const struct rg_bench_conv *c)
{
	const int64_t *p = c->pad;
	int64_t dflt[4];

	rg_str_printf(s, "c=%lld,h=%lld,w=%lld,m=%lld", (long long)c->c, (long long)c->h, (long long)c->w,
		      (long long)c->m);
	put_pair(s, "k", c->kernel, 0);
	put_pair(s, "stride", c->stride, 1);
	default_pads(c, dflt);
	if (memcmp(p, dflt, sizeof(dflt)) != 0) {
		if (p[0] == p[1] && p[0] == p[2] && p[0] == p[3])
			rg_str_printf(s, ",pad=%lld", (long long)p[0]);
		else
			rg_str_printf(s, ",pad=%lldx%lldx%lldx%lld", (long long)p[0], (long long)p[1],
				      (long long)p[2], (long long)p[3]);
	}
	put_pair(s, "dilation", c->dilation, 1);
	if (c->group != 1)
		rg_str_printf(s, ",group=%lld", (long long)c->group);
	if (c->n != 1)
		rg_str_printf(s, ",n=%lld", (long long)c->n);
	if (c->bias)
		rg_str_add(s, ",bias=1");
}
