/* Short ways to build graphs in tests. A failure ends the test. */
#ifndef RG_TESTS_GRAPH_BUILD_H
#define RG_TESTS_GRAPH_BUILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/op.h"

struct build {
	struct rg_graph *g;
	struct rg_error err;
};

static inline struct build build_new(int64_t opset)
{
	struct build b = { .g = rg_graph_new(NULL) };

	assert_non_null(b.g);
	assert_int_equal(rg_graph_set_opset(b.g, "", opset, &b.err), 0);
	return b;
}

static inline int build_value(struct build *b, const char *name)
{
	int v = rg_graph_value(b->g, name, &b->err);

	assert_true(v >= 0);
	return v;
}

/* An input of fixed shape. */
static inline int build_input(struct build *b, const char *name, enum rg_dtype t, int rank, const int64_t *dims)
{
	struct rg_dim d[RG_MAX_RANK] = { { 0 } };
	int v = build_value(b, name);

	for (int i = 0; i < rank; i++)
		d[i].value = dims[i];
	assert_int_equal(rg_graph_declare(b->g, v, t, rank, d, &b->err), 0);
	assert_int_equal(rg_graph_add_input(b->g, v, &b->err), 0);
	return v;
}

static inline int build_output(struct build *b, const char *name)
{
	int v = build_value(b, name);

	assert_int_equal(rg_graph_add_output(b->g, v, &b->err), 0);
	return v;
}

static inline void *build_copy(const void *data, size_t size_bytes)
{
	void *p = size_bytes ? rg_alloc_aligned(64, size_bytes) : NULL;

	if (size_bytes) {
		assert_non_null(p);
		memcpy(p, data, size_bytes);
	}
	return p;
}

static inline int build_const(struct build *b, const char *name, enum rg_dtype t, int rank, const int64_t *dims,
			      const void *data)
{
	struct rg_shape s = rg_shape_of(rank, dims);
	int v = build_value(b, name);

	assert_int_equal(rg_graph_add_const(b->g, v, RG_CONST_INITIALIZER, t, &s,
					    build_copy(data, (size_t)rg_tensor_bytes(t, &s)), &b->err), 0);
	return v;
}

/* A list of int64. */
static inline int build_ints(struct build *b, const char *name, int64_t n, const int64_t *vals)
{
	return build_const(b, name, RG_I64, 1, &n, vals);
}

/* A node named like its first output. ins and outs: names separated by spaces,
 * "-" for an absent one. */
static inline int build_node(struct build *b, const char *op, const char *ins, const char *outs, int n_attrs,
			     const struct rg_attr *attrs)
{
	int v[2][16], n[2] = { 0, 0 };
	char text[256], *save, *word;
	const char *lists[2] = { ins, outs };

	for (int k = 0; k < 2; k++) {
		assert_true(strlen(lists[k]) < sizeof(text));
		strcpy(text, lists[k]);
		for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
			assert_true(n[k] < 16);
			v[k][n[k]++] = strcmp(word, "-") == 0 ? -1 : build_value(b, word);
		}
	}
	strcpy(text, outs);
	return rg_graph_add_node(b->g, "", op, strtok_r(text, " ", &save), n[0], v[0], n[1], v[1], n_attrs, attrs,
				 &b->err);
}

static inline struct rg_attr attr_int(const char *name, int64_t i)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_INT, .i = i };
}

static inline struct rg_attr attr_ints(const char *name, int n, const int64_t *v)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_INTS, .count = n, .ints = v };
}

static inline struct rg_attr attr_string(const char *name, const char *s)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_STRING, .s = s, .s_len = strlen(s) };
}

static inline struct rg_attr attr_strings(const char *name, int n, const char *const *v)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_STRINGS, .count = n, .strings = v };
}

static inline const struct rg_value *build_get(const struct build *b, const char *name)
{
	int v = rg_graph_find_value(b->g, name);

	assert_true(v >= 0);
	return &b->g->values[v];
}

static inline void assert_shape(const struct build *b, const char *name, const char *want)
{
	char text[160];

	assert_true(build_get(b, name)->shaped);
	assert_string_equal(rg_shape_text(text, &build_get(b, name)->shape), want);
}

#define assert_contains(text, part) \
	do { \
		if (!strstr(text, part)) \
			fail_msg("'%s' does not contain '%s'", text, part); \
	} while (0)

#define LIST(...) (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ }

#endif
