/* Costs of ONNX Runtime's own operators, counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "graph/op.h"

struct call {
	struct rg_attr attrs[8];
	struct rg_tensor in[9], out[1];
	int values[10];
	struct rg_node node;
};

static void start(struct call *c, const char *op)
{
	memset(c, 0, sizeof(*c));
	c->node.op_type = op;
	c->node.op = rg_op_find("com.microsoft", op);
	assert_non_null(c->node.op);
	c->node.attrs = c->attrs;
	c->node.version = 1;
	c->node.n_out = 1;
	for (int i = 0; i < 10; i++)
		c->values[i] = i;
	c->node.in = c->values;
	c->node.out = c->values + 9;
}

static void tensor(struct call *c, enum rg_dtype t, int rank, const int64_t *dims)
{
	c->in[c->node.n_in].dtype = t;
	c->in[c->node.n_in++].shape = rg_shape_of(rank, dims);
}

static void absent(struct call *c)
{
	c->node.n_in++;
}

static void set(struct call *c, struct rg_attr a)
{
	c->attrs[c->node.n_attrs++] = a;
}

static void set_int(struct call *c, const char *name, int64_t v)
{
	set(c, (struct rg_attr){ .name = name, .type = RG_ATTR_INT, .i = v });
}

static struct rg_cost cost(struct call *c, enum rg_dtype t, int rank, const int64_t *dims)
{
	struct rg_cost_in in = { .node = &c->node, .in = c->in, .out = c->out };
	struct rg_cost r;

	c->out[0].dtype = t;
	c->out[0].shape = rg_shape_of(rank, dims);
	rg_op_cost(c->node.op, &in, &r);
	return r;
}

#define DIMS(...) (int)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (const int64_t[]){ __VA_ARGS__ }

static void expect(struct rg_cost r, int64_t flops, int64_t iops, int64_t sfu)
{
	assert_int_equal(r.flops, flops);
	assert_int_equal(r.iops, iops);
	assert_int_equal(r.sfu, sfu);
}

static void test_fused(void **state)
{
	static const int64_t pads[] = { 1, 1, 1, 1 };
	struct call c;

	start(&c, "FusedConv"); /* 3 x 16 sums of 18 products; bias, Z, Relu */
	tensor(&c, RG_F32, DIMS(1, 2, 4, 4));
	tensor(&c, RG_F32, DIMS(3, 2, 3, 3));
	tensor(&c, RG_F32, DIMS(3));
	tensor(&c, RG_F32, DIMS(1, 3, 4, 4));
	set(&c, (struct rg_attr){ .name = "pads", .type = RG_ATTR_INTS, .ints = pads, .count = 4 });
	set(&c, (struct rg_attr){ .name = "activation", .type = RG_ATTR_STRING, .s = "Relu", .s_len = 4 });
	expect(cost(&c, RG_F32, DIMS(1, 3, 4, 4)), 48 * 36 + 3 * 48, 0, 0);

	start(&c, "FusedMatMul");
	tensor(&c, RG_F32, DIMS(2, 3, 4));
	tensor(&c, RG_F32, DIMS(2, 5, 4));
	set_int(&c, "transB", 1);
	set(&c, (struct rg_attr){ .name = "alpha", .type = RG_ATTR_FLOAT, .f = 0.5f });
	expect(cost(&c, RG_F32, DIMS(2, 3, 5)), 30 * 8 + 30, 0, 0);
}

static void test_weights(void **state)
{
	struct rg_cost r;
	struct call c;

	start(&c, "MatMulNBits");
	tensor(&c, RG_F32, DIMS(3, 64));
	tensor(&c, RG_U8, DIMS(5, 2, 16));
	tensor(&c, RG_F32, DIMS(5, 2));
	set_int(&c, "K", 64);
	set_int(&c, "N", 5);
	set_int(&c, "block_size", 32);
	r = cost(&c, RG_F32, DIMS(3, 5));
	expect(r, 15 * 128 + 2 * 320, 0, 0);
	assert_int_equal(r.read_bytes, 3 * 64 * 4 + 5 * 32 + 5 * 2 * 4);

	start(&c, "GatherBlockQuantized"); /* two rows of ten: of data and of scales */
	tensor(&c, RG_U8, DIMS(10, 16));
	tensor(&c, RG_I64, DIMS(2));
	tensor(&c, RG_F32, DIMS(10, 2));
	set_int(&c, "block_size", 16);
	r = cost(&c, RG_F32, DIMS(2, 32));
	expect(r, 2 * 64, 0, 0);
	assert_int_equal(r.read_bytes, 2 * 16 + 2 * 8 + 2 * 8);
}

static void test_bytes(void **state)
{
	struct call c;

	start(&c, "QLinearAdd");
	tensor(&c, RG_U8, DIMS(10));
	expect(cost(&c, RG_U8, DIMS(10)), 90, 0, 10);

	start(&c, "QLinearMul");
	tensor(&c, RG_U8, DIMS(10));
	expect(cost(&c, RG_U8, DIMS(10)), 40, 30, 0);

	start(&c, "DynamicQuantizeMatMul"); /* 15 sums of 8 products; scale and bias; A to bytes */
	tensor(&c, RG_F32, DIMS(3, 8));
	tensor(&c, RG_I8, DIMS(8, 5));
	tensor(&c, RG_F32, DIMS(1));
	absent(&c);
	tensor(&c, RG_F32, DIMS(5));
	expect(cost(&c, RG_F32, DIMS(3, 5)), 2 * 15 + 6 * 24, 15 * 16, 24);

	start(&c, "QLinearGlobalAveragePool");
	tensor(&c, RG_U8, DIMS(1, 3, 4, 5));
	expect(cost(&c, RG_U8, DIMS(1, 3, 1, 1)), 12, 60, 0);
}

/* The product with the weights moves from flops to iops. */
static void test_qattention(void **state)
{
	struct rg_cost plain, bytes;
	struct call c;

	start(&c, "Attention");
	tensor(&c, RG_F32, DIMS(1, 2, 4));
	tensor(&c, RG_F32, DIMS(4, 12));
	tensor(&c, RG_F32, DIMS(12));
	set_int(&c, "num_heads", 2);
	plain = cost(&c, RG_F32, DIMS(1, 2, 4));
	start(&c, "QAttention");
	tensor(&c, RG_U8, DIMS(1, 2, 4));
	tensor(&c, RG_I8, DIMS(4, 12));
	tensor(&c, RG_F32, DIMS(12));
	tensor(&c, RG_F32, DIMS(1));
	tensor(&c, RG_F32, DIMS(1));
	set_int(&c, "num_heads", 2);
	bytes = cost(&c, RG_F32, DIMS(1, 2, 4));
	assert_true(plain.flops > 0);
	expect(bytes, plain.flops - 2 * 12 * 8 + 2 * 12, 2 * 12 * 8, plain.sfu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fused),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_qattention),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
