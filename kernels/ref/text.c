/*
 * Operators on strings. Where an element is another one unchanged, the pointer is
 * passed on; new text lies in the call's arena.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "graph/regex.h"
#include "graph/text.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static const char **texts(const struct rg_tensor *t)
{
	return t->data;
}

/* Room for n characters and their end. */
static char *new_text(const struct rg_call *c, size_t n, struct rg_error *err)
{
	char *s = rg_arena_alloc(c->text, n + 1, 1);

	if (!s)
		rg_error_nomem(err, n + 1);
	return s;
}

static int changed(struct rg_error *err)
{
	return rg_error_set(err, -EINVAL, "the strings changed after the shapes were planned");
}

/* ---- Equal ---- */

static bool equal_supports(const struct rg_call *c)
{
	return c->in[0].dtype == RG_STRING && c->in[1].dtype == RG_STRING;
}

static void walk_pair(struct rg_walk *w, const struct rg_call *c)
{
	const struct rg_shape *shapes[] = { &c->in[0].shape, &c->in[1].shape };

	rg_walk_start(w, &c->out[0].shape, 2, shapes);
}

static int equal(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	uint8_t *y = c->out[0].data;
	struct rg_walk w;

	walk_pair(&w, c);
	while (rg_walk_next(&w))
		for (int64_t i = 0; i < w.inner; i++)
			y[w.out + i] = strcmp(rg_text_at(&c->in[0], w.at[0] + i * w.step[0]),
					      rg_text_at(&c->in[1], w.at[1] + i * w.step[1])) == 0;
	return 0;
}

/* ---- StringConcat ---- */

static int concat(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_walk w;

	walk_pair(&w, c);
	while (rg_walk_next(&w)) {
		for (int64_t i = 0; i < w.inner; i++) {
			const char *a = rg_text_at(&c->in[0], w.at[0] + i * w.step[0]);
			const char *b = rg_text_at(&c->in[1], w.at[1] + i * w.step[1]);
			const char **y = texts(&c->out[0]) + w.out + i;
			size_t m = strlen(a), n = strlen(b);
			char *s;

			if (m == 0 || n == 0) {
				*y = m ? a : b;
				continue;
			}
			s = new_text(c, m + n, err);
			if (!s)
				return err->code;
			memcpy(s, a, m);
			memcpy(s + m, b, n);
			*y = s;
		}
	}
	return 0;
}

/* ---- StringSplit ---- */

static int split(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t count = rg_shape_count(&c->in[0].shape), columns = c->out[0].shape.dim[c->in[0].shape.rank];
	const struct rg_tensor *n = c->node->n_out > 1 && c->out[1].dtype != RG_UNDEFINED ? &c->out[1] : NULL;
	bool wanted = c->out[0].dtype != RG_UNDEFINED;
	struct rg_text_split a;

	if (rg_text_split_resolve(c->node, &a, err))
		return err->code;
	for (int64_t i = 0; i < count; i++) {
		const char *at = rg_text_at(&c->in[0], i), *piece;
		const char **y = wanted ? texts(&c->out[0]) + i * columns : NULL;
		int64_t cuts = 0, k = 0;
		size_t len;

		for (; rg_text_split_next(&a, &at, &cuts, &piece, &len); k++) {
			char *s;

			if (!wanted)
				continue;
			if (k == columns)
				return changed(err);
			s = new_text(c, len, err);
			if (!s)
				return err->code;
			memcpy(s, piece, len);
			y[k] = s;
		}
		if (n)
			((int64_t *)n->data)[i] = k;
		for (; wanted && k < columns; k++)
			y[k] = NULL;
	}
	return 0;
}

/* ---- StringNormalizer ---- */

static int change_case(const struct rg_call *c, const struct rg_text_normal *a, const char *s, const char **y,
		       struct rg_error *err)
{
	const char *at = s;
	char buf[4], *to;
	size_t n = 0;
	unsigned ch;

	*y = s;
	if (a->change == RG_CASE_NONE)
		return 0;
	while ((ch = rg_text_next(&at)))
		n += (size_t)rg_text_put(buf, rg_text_map(ch, a->change, a->ascii));
	to = new_text(c, n, err);
	if (!to)
		return err->code;
	*y = to;
	while ((ch = rg_text_next(&s)))
		to += rg_text_put(to, rg_text_map(ch, a->change, a->ascii));
	*to = '\0';
	return 0;
}

static int normalize(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n = rg_shape_count(&c->in[0].shape), room = rg_shape_count(&c->out[0].shape), k = 0;
	struct rg_text_normal a;

	if (rg_text_normal_resolve(c->node, &a, err))
		return err->code;
	for (int64_t i = 0; i < n; i++) {
		const char *s = rg_text_at(&c->in[0], i);

		if (!rg_text_is_kept(&a, s))
			continue;
		if (k == room)
			return changed(err);
		if (change_case(c, &a, s, &texts(&c->out[0])[k++], err))
			return err->code;
	}
	if (k < room && (k > 0 || room > 1))
		return changed(err);
	if (k == 0)
		texts(&c->out[0])[0] = NULL;
	return 0;
}

/* ---- RegexFullMatch ---- */

static const char *pattern_of(const struct rg_call *c)
{
	return rg_node_string(c->node, "pattern", "");
}

/* The program is compiled once; before that, for its size only. */
static size_t regex_bytes(const struct rg_call *c)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_regex *r;
	size_t bytes;

	if (rg_regex_new(pattern_of(c), &r, &err))
		return 1; /* prepare() says why */
	bytes = rg_regex_bytes(r);
	rg_free(r);
	return bytes;
}

static int regex_prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	struct rg_regex *r;

	if (rg_regex_new(pattern_of(c), &r, err))
		return err->code;
	memcpy(prepared, r, rg_regex_bytes(r));
	rg_free(r);
	return 0;
}

static size_t regex_scratch(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_regex *r;
	size_t bytes;

	if (c->prepared)
		return rg_regex_scratch_bytes(c->prepared);
	if (rg_regex_new(pattern_of(c), &r, &err))
		return 0;
	bytes = rg_regex_scratch_bytes(r);
	rg_free(r);
	return bytes;
}

static int regex(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t n = rg_shape_count(&c->in[0].shape);

	for (int64_t i = 0; i < n; i++)
		((uint8_t *)c->out[0].data)[i] = rg_regex_match(c->prepared, rg_text_at(&c->in[0], i), c->scratch);
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Equal", .domain = "", .name = "text", .supports = equal_supports, .run = equal },
	{ .op_type = "StringConcat", .domain = "", .name = "ref", .run = concat },
	{ .op_type = "StringSplit", .domain = "", .name = "ref", .run = split },
	{ .op_type = "StringNormalizer", .domain = "", .name = "ref", .run = normalize },
	{ .op_type = "RegexFullMatch", .domain = "", .name = "ref", .prepared_bytes = regex_bytes,
	  .prepare = regex_prepare, .scratch_bytes = regex_scratch, .run = regex },
};
RG_KERNEL_TABLE(rg_kernels_ref_text, kernels);
