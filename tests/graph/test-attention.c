/* Costs of attention and its neighbours, counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "graph/op.h"

struct call {
	struct rg_attr attrs[8];
	struct rg_tensor in[18], out[1];
	int values[19];
	struct rg_node node;
};

static void start(struct call *c, const char *domain, const char *op, int version)
{
	memset(c, 0, sizeof(*c));
	c->node.op_type = op;
	c->node.domain = domain;
	c->node.op = rg_op_find(domain, op);
	assert_non_null(c->node.op);
	c->node.attrs = c->attrs;
	c->node.version = version;
	c->node.n_out = 1;
	for (int i = 0; i < 19; i++)
		c->values[i] = i;
	c->node.in = c->values;
	c->node.out = c->values + 18;
}

static void tensor(struct call *c, enum rg_dtype t, int rank, const int64_t *dims)
{
	c->in[c->node.n_in].dtype = t;
	c->in[c->node.n_in++].shape = rg_shape_of(rank, dims);
}

static void set_int(struct call *c, const char *name, int64_t v)
{
	c->attrs[c->node.n_attrs++] = (struct rg_attr){ .name = name, .type = RG_ATTR_INT, .i = v };
}

static struct rg_cost cost(struct call *c)
{
	struct rg_cost_in in = { .node = &c->node, .in = c->in, .out = c->out };
	struct rg_cost r;

	c->out[0] = c->in[0];
	rg_op_cost(c->node.op, &in, &r);
	return r;
}

#define DIMS(...) (int)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (const int64_t[]){ __VA_ARGS__ }

static void expect(struct call *c, int64_t flops, int64_t sfu)
{
	struct rg_cost r = cost(c);

	assert_int_equal(r.flops, flops);
	assert_int_equal(r.iops, 0);
	assert_int_equal(r.sfu, sfu);
}

/* A query and a key, heads of 4: 2 * 4 + 2 * 4 for the products, 4 for scale and softmax. */
enum { PAIR = 20 };

static void test_attention(void **state)
{
	struct call c;

	start(&c, "", "Attention", 24); /* two heads, 3 queries and keys */
	for (int i = 0; i < 3; i++)
		tensor(&c, RG_F32, DIMS(1, 2, 3, 4));
	expect(&c, 2 * 9 * PAIR, 2 * 9 * 2);
	set_int(&c, "is_causal", 1); /* rows see 1, 2 and 3 keys */
	expect(&c, 2 * 6 * PAIR, 2 * 6 * 2);
	c.attrs[1] = (struct rg_attr){ .name = "softcap", .type = RG_ATTR_FLOAT, .f = 1 };
	c.node.n_attrs++;
	expect(&c, 2 * 6 * (PAIR + 2), 2 * 6 * 3);
	tensor(&c, RG_BOOL, DIMS(3, 5));
	tensor(&c, RG_F32, DIMS(1, 2, 2, 4)); /* and two cached ones */
	tensor(&c, RG_F32, DIMS(1, 2, 2, 4));
	expect(&c, 2 * (3 + 4 + 5) * (PAIR + 3), 2 * 12 * 3);
}

static void test_runtime(void **state)
{
	int32_t total = 4;
	struct call c;

	start(&c, "com.microsoft", "Attention", 1); /* 2 tokens of 5, to 2 heads of 4 */
	tensor(&c, RG_F32, DIMS(1, 2, 5));
	tensor(&c, RG_F32, DIMS(5, 24));
	tensor(&c, RG_F32, DIMS(24));
	set_int(&c, "num_heads", 2);
	expect(&c, 2 * 24 * (2 * 5 + 1) + 2 * 4 * PAIR, 2 * 4 * 2);
	start(&c, "com.microsoft", "MultiHeadAttention", 1); /* keys and values of another length and width */
	tensor(&c, RG_F32, DIMS(1, 2, 8));
	tensor(&c, RG_F32, DIMS(1, 3, 8));
	tensor(&c, RG_F32, DIMS(1, 3, 12));
	set_int(&c, "num_heads", 2);
	expect(&c, 2 * 6 * (2 * 4 + 2 * 6 + 4), 2 * 6 * 2);
	start(&c, "com.microsoft", "GroupQueryAttention", 1); /* 4 queries that see 1, 2, 2 and 2 keys */
	tensor(&c, RG_F32, DIMS(1, 4, 8));
	tensor(&c, RG_F32, DIMS(1, 4, 4));
	tensor(&c, RG_F32, DIMS(1, 4, 4));
	c.node.n_in += 2;
	tensor(&c, RG_I32, DIMS(1));
	tensor(&c, RG_I32, DIMS(1));
	c.in[6].data = &total;
	set_int(&c, "num_heads", 2);
	set_int(&c, "kv_num_heads", 1);
	set_int(&c, "local_window_size", 2);
	expect(&c, 2 * 7 * PAIR, 2 * 7 * 2);
	tensor(&c, RG_F32, DIMS(9, 2)); /* and two pairs a head to rotate, of three heads */
	tensor(&c, RG_F32, DIMS(9, 2));
	set_int(&c, "do_rotary", 1);
	expect(&c, 2 * 7 * PAIR + 4 * 3 * 2 * 6, 2 * 7 * 2);
	c.in[6].data = NULL; /* how many keys there are is not known */
	assert_int_equal(cost(&c).flops, -1);
}

static void test_neighbours(void **state)
{
	struct rg_cost r;
	struct call c;

	start(&c, "", "RotaryEmbedding", 23);
	tensor(&c, RG_F32, DIMS(1, 2, 3, 8));
	tensor(&c, RG_F32, DIMS(1, 3, 4));
	tensor(&c, RG_F32, DIMS(1, 3, 4));
	expect(&c, 2 * 3 * 4 * 6, 0);
	start(&c, "com.microsoft", "SkipLayerNormalization", 1);
	tensor(&c, RG_F32, DIMS(2, 3, 8));
	tensor(&c, RG_F32, DIMS(2, 3, 8));
	tensor(&c, RG_F32, DIMS(8));
	expect(&c, 48 * 8, 6 * 4);
	start(&c, "com.microsoft", "SkipSimplifiedLayerNormalization", 1);
	tensor(&c, RG_F32, DIMS(2, 3, 8));
	tensor(&c, RG_F32, DIMS(2, 3, 8));
	tensor(&c, RG_F32, DIMS(8));
	tensor(&c, RG_F32, DIMS(8));
	expect(&c, 48 * 6, 6 * 3);
	start(&c, "", "LinearAttention", 27); /* 3 tokens; two heads of Q share a state of 4 x 5 */
	tensor(&c, RG_F32, DIMS(1, 3, 8));
	tensor(&c, RG_F32, DIMS(1, 3, 4));
	tensor(&c, RG_F32, DIMS(1, 3, 5));
	c.node.n_in++;
	tensor(&c, RG_F32, DIMS(1, 3, 1));
	tensor(&c, RG_F32, DIMS(1, 3, 1));
	set_int(&c, "q_num_heads", 2);
	set_int(&c, "kv_num_heads", 1);
	expect(&c, 3 * (5 * 20 + 2 * 5 + 2 * (2 * 20 + 5)), 3);
	start(&c, "", "CausalConvWithState", 27);
	tensor(&c, RG_F32, DIMS(2, 3, 4));
	tensor(&c, RG_F32, DIMS(3, 1, 3));
	tensor(&c, RG_F32, DIMS(3));
	expect(&c, 24 * 7, 0);
	start(&c, "com.microsoft", "EmbedLayerNormalization", 1); /* two rows of ten are read, and two of three */
	tensor(&c, RG_I32, DIMS(1, 2));
	c.node.n_in++;
	tensor(&c, RG_F32, DIMS(10, 4));
	tensor(&c, RG_F32, DIMS(3, 4));
	c.node.n_in++;
	tensor(&c, RG_F32, DIMS(4));
	tensor(&c, RG_F32, DIMS(4));
	r = cost(&c);
	assert_int_equal(r.read_bytes, 2 * 4 + 4 * 16 + 2 * 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_runtime),
		cmocka_unit_test(test_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
