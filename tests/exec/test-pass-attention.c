/*
 * Attention that an exporter has taken apart (pass-attention.c): ways to split heads, to
 * scale, to mask and to append, each with each, against the graph as it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "make-pattern.h"

enum { BATCH = 2, SEQ = 5, HEADS = 3, SIZE = 4, WIDTH = HEADS * SIZE, PAST = 2 };

enum source {
	SEPARATE, PAST_TOO, GATHERED, SLICED, SPLIT, N_SOURCES
};
enum scale {
	NO_SCALE, QUOTIENT, PRODUCT, OF_Q, OF_BOTH, BEFORE, N_SCALES
};
enum mask {
	NO_MASK, KEYS, SQUARE, CHOSEN, CHOSEN_NOT, CAUSAL, CAUSAL_SUM, N_MASKS
};
enum { N_ORDERS = N_SOURCES * N_SCALES * N_MASKS * 2 * 2 };

struct choice {
	enum source source;
	enum scale scale;
	enum mask mask;
	int product, rows;          /* what makes it: an input or a product; rows as in Gemm */
};

static struct choice choice_of(uint64_t how)
{
	struct choice c;

	c.source = (enum source)choose(&how, N_SOURCES);
	c.mask = (enum mask)choose(&how, N_MASKS);
	c.scale = (enum scale)choose(&how, N_SCALES);
	c.product = choose(&how, 2);
	c.rows = choose(&how, 2);
	return c;
}

static void turn(struct rg_graph *g, const char *in, const char *out, int n, const int64_t *perm)
{
	struct rg_attr attr = ints_attr("perm", n, perm);

	make_node_attrs(g, "Transpose", in, out, 1, &attr);
}

static void reshape(struct rg_graph *g, const char *in, const char *out, int n, const int64_t *dims)
{
	char shape[32], both[80];

	snprintf(shape, sizeof(shape), "%s-shape", out);
	make_ints(g, shape, n, dims);
	snprintf(both, sizeof(both), "%s,%s", in, shape);
	make_node(g, "Reshape", both, out);
}

/* A source of rows: an input, or a product of one with constant weights and a bias. */
static void make_rows(struct rg_graph *g, const char *name, int width, const struct choice *c)
{
	char dims[40], in[80], x[32], w[32], b[32], y[32];

	snprintf(x, sizeof(x), c->product ? "%s-in" : "%s", name);
	snprintf(dims, sizeof(dims), "%dx%dx%d", BATCH, SEQ, c->product ? 6 : width);
	make_input(g, x, RG_F32, dims);
	if (!c->product)
		return;
	snprintf(w, sizeof(w), "%s-w", name);
	snprintf(b, sizeof(b), "%s-b", name);
	snprintf(y, sizeof(y), "%s-xw", name);
	snprintf(dims, sizeof(dims), "6x%d", width);
	random_floats(g, w, dims, 6 * width, 1, -0.5f);
	snprintf(dims, sizeof(dims), "%d", width);
	random_floats(g, b, dims, width, 1, -0.5f);
	snprintf(in, sizeof(in), "%s,%s", x, w);
	make_node(g, "MatMul", in, y);
	snprintf(in, sizeof(in), "%s,%s", b, y);
	make_node(g, "Add", in, name);
}

/* A number that is an index: Gather drops the dimension. */
static void make_index(struct rg_graph *g, const char *name, int64_t index)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t *data = rg_alloc_aligned(64, sizeof(*data));
	struct rg_shape scalar = { 0 };

	assert_non_null(data);
	*data = index;
	assert_int_equal(rg_graph_add_const(g, rg_graph_value(g, name, &err), RG_CONST_INITIALIZER, RG_I64, &scalar, data,
					    &err), 0);
}

/* q4, k4 and v4: batch x heads x seq x size. */
static void make_heads(struct rg_graph *g, const struct choice *c)
{
	static const char *const names[] = { "q", "k", "v" };
	char from[32], name[32], other[32], in[80];

	if (c->source >= GATHERED) {
		make_rows(g, "x", 3 * WIDTH, c);
		reshape(g, "x", "x5", 5, (const int64_t[]){ BATCH, SEQ, 3, HEADS, SIZE });
		turn(g, "x5", "x3", 5, (const int64_t[]){ 2, 0, 3, 1, 4 });
		make_ints(g, "zero", 1, (const int64_t[]){ 0 });
		if (c->source == SPLIT) {
			make_ints(g, "ones", 3, (const int64_t[]){ 1, 1, 1 });
			make_node_attrs(g, "Split", "x3,ones", "q5,k5,v5", 1, ATTRS(int_attr("axis", 0)));
		}
	}
	for (int i = 0; i < 3; i++) {
		const char *n = names[i];
		bool past = c->source == PAST_TOO && i;

		snprintf(name, sizeof(name), past ? "%s4-now" : "%s4", n);
		snprintf(from, sizeof(from), "%s5", n);
		switch (c->source) {
		case SEPARATE:
		case PAST_TOO:
			make_rows(g, n, WIDTH, c);
			strcpy(from, n);
			if (i == 0 && c->scale == BEFORE) {
				make_number(g, "f", 0.3f);
				make_pair(g, "Mul", "q", "f", "qf", false);
				strcpy(from, "qf");
			}
			snprintf(other, sizeof(other), "%s5", n);
			reshape(g, from, other, 4, (const int64_t[]){ BATCH, SEQ, HEADS, SIZE });
			turn(g, other, name, 4, (const int64_t[]){ 0, 2, 1, 3 });
			break;
		case GATHERED:
			snprintf(other, sizeof(other), "pick%d", i);
			make_index(g, other, i);
			snprintf(in, sizeof(in), "x3,%s", other);
			make_node_attrs(g, "Gather", in, name, 1, ATTRS(int_attr("axis", 0)));
			break;
		case SLICED:
			snprintf(other, sizeof(other), "begin%d", i);
			make_ints(g, other, 1, (const int64_t[]){ i });
			snprintf(in, sizeof(in), "end%d", i);
			make_ints(g, in, 1, (const int64_t[]){ i + 1 });
			snprintf(in, sizeof(in), "x3,%s,end%d,zero", other, i);
			make_node(g, "Slice", in, from);
			/* fall through */
		default:
			snprintf(in, sizeof(in), "%s,zero", from);
			make_node(g, "Squeeze", in, name);
		}
		if (past) {
			char dims[40];

			snprintf(dims, sizeof(dims), "%dx%dx%dx%d", BATCH, HEADS, PAST, SIZE);
			snprintf(in, sizeof(in), "%s-past", n);
			make_input(g, in, RG_F32, dims);
			snprintf(in, sizeof(in), "%s-past,%s4-now", n, n);
			snprintf(name, sizeof(name), "%s4", n);
			make_node_attrs(g, "Concat", in, name, 1, ATTRS(int_attr("axis", 2)));
			make_output(g, name);
		}
	}
}

/* "masked" out of "scores". */
static void make_mask(struct rg_graph *g, const struct choice *c, bool swap)
{
	int total = SEQ + (c->source == PAST_TOO ? PAST : 0), past = total - SEQ;
	float causal[SEQ * (SEQ + PAST)];
	char dims[40];

	for (int i = 0; i < SEQ; i++)
		for (int j = 0; j < total; j++)
			causal[i * total + j] = j <= i + past ? 0 : -3e38f;
	make_number(g, "lowest", -3.4e38f);
	if (c->mask == KEYS)
		snprintf(dims, sizeof(dims), "%dx1x1x%d", BATCH, total);
	else
		snprintf(dims, sizeof(dims), "%dx%d", SEQ, total);
	switch (c->mask) {
	case KEYS:
	case SQUARE:
		make_input(g, "bias", RG_F32, dims);
		make_pair(g, "Add", "scores", "bias", "masked", swap);
		return;
	case CHOSEN:
	case CHOSEN_NOT:
		make_input(g, "keep", RG_F32, dims);
		make_number(g, "little", -0.7f);
		make_node(g, c->mask == CHOSEN ? "Greater" : "LessOrEqual", "keep,little", "kept");
		make_node(g, "Where", c->mask == CHOSEN ? "kept,scores,lowest" : "kept,lowest,scores", "masked");
		return;
	case CAUSAL:
		make_number(g, "little", -1);
		make_floats(g, "causal", dims, causal);
		make_node(g, "Greater", "causal,little", "kept");
		make_node(g, "Where", "kept,scores,lowest", "masked");
		return;
	case CAUSAL_SUM:
		make_floats(g, "causal", dims, causal);
		make_pair(g, "Add", "scores", "causal", "masked", swap);
		return;
	default:
		fail_msg("who has no mask reads the scores");
	}
}

static void make_middle(struct rg_graph *g, const struct choice *c, bool swap)
{
	const char *q = "q4", *k = "kt", *s = "product";

	make_number(g, "root", 2.2f);
	make_number(g, "inverse", 0.4f);
	if (c->rows) {
		turn(g, "k4", "kt", 4, (const int64_t[]){ 0, 1, 3, 2 });
	} else if (c->source == SEPARATE) {
		turn(g, "k5", "kt", 4, (const int64_t[]){ 0, 2, 3, 1 });
	} else {
		turn(g, "k4", "kt", 4, (const int64_t[]){ 0, 1, 3, 2 });
	}
	if (c->scale == OF_Q || c->scale == OF_BOTH) {
		make_pair(g, "Mul", q, "inverse", "q4f", swap);
		q = "q4f";
	}
	if (c->scale == OF_BOTH) {
		make_pair(g, "Div", k, "root", "ktf", false);
		k = "ktf";
	}
	if (c->scale == NO_SCALE || c->scale > PRODUCT)
		s = c->mask == NO_MASK ? "masked" : "scores";
	make_pair(g, "MatMul", q, k, s, false);
	if (c->scale == QUOTIENT)
		make_pair(g, "Div", s, "root", c->mask == NO_MASK ? "masked" : "scores", false);
	else if (c->scale == PRODUCT)
		make_pair(g, "Mul", s, "inverse", c->mask == NO_MASK ? "masked" : "scores", swap);
	if (c->mask != NO_MASK)
		make_mask(g, c, swap);
}

static struct rg_graph *make_attention(uint64_t how)
{
	struct choice c = choice_of(how);
	struct rg_graph *g = make_graph();

	make_heads(g, &c);
	make_middle(g, &c, how & 1);
	make_node_attrs(g, "Softmax", "masked", "weights", 1, ATTRS(int_attr("axis", -1)));
	make_node(g, "MatMul", "weights,v4", "mixed");
	turn(g, "mixed", "joined", 4, (const int64_t[]){ 0, 2, 1, 3 });
	if (c.rows)
		reshape(g, "joined", "y", 2, (const int64_t[]){ BATCH * SEQ, WIDTH });
	else
		reshape(g, "joined", "y", 3, (const int64_t[]){ BATCH, SEQ, WIDTH });
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_orders(void **state)
{
	for (uint64_t how = 0; how < N_ORDERS; how++) {
		struct choice c = choice_of(how);
		bool projected = c.source >= GATHERED && c.product;
		struct rg_graph *g = make_attention(how);
		struct rg_plan *p = plan_at(g, 3, 0, NULL);
		const char *op = projected ? "Attention" : "MultiHeadAttention";
		const struct rg_node *n;

		if (count_op(p, op) != 1 || count_op(p, "Softmax") || count_op(p, "Transpose") || count_op(p, "Concat"))
			fail_msg("order %d: %d steps, %d of them %s", (int)how, p->n_steps, count_op(p, op), op);
		n = node_of(p, op);
		assert_int_equal(rg_node_int(n, "num_heads", 0), HEADS);
		assert_int_equal(rg_node_int(n, "unidirectional", 0), c.mask >= CAUSAL);
		assert_int_equal(count_op(p, "Split"), c.source >= GATHERED && !projected);
		if (projected)
			assert_int_equal(count_op(p, "MatMul"), 0);
		rg_plan_free(p);
		rg_graph_free(g);
		assert_true(compare(make_attention, how, 3, 0, NULL) > 0);
	}
}

/* ---- what is declined, and what is none ---- */

/* Inputs that are split into heads already would do, but for the queries. */
static void plant_middle(struct rg_graph *g, const char *scores, const char *weights)
{
	make_node_attrs(g, "Softmax", scores, "weights", 1, ATTRS(int_attr("axis", -1)));
	make_pair(g, "MatMul", weights, "v4", "mixed", false);
	turn(g, "mixed", "joined", 4, (const int64_t[]){ 0, 2, 1, 3 });
	reshape(g, "joined", "y", 3, (const int64_t[]){ BATCH, SEQ, WIDTH });
	make_output(g, "y");
}

static struct planted plant(int i)
{
	struct choice c = { .source = i == 4 ? PAST_TOO : SEPARATE, .product = 1 };
	struct planted p = { make_graph(), "attention", "weights", RG_DECLINE_NONE };
	struct rg_graph *g = p.g;

	make_heads(g, &c);
	turn(g, "k4", "kt", 4, (const int64_t[]){ 0, 1, 3, 2 });
	make_node(g, "MatMul", "q4,kt", "scores");
	make_number(g, "few", -5);
	make_number(g, "lowest", -1e30f);
	switch (i) {
	case 0: /* the weights are an output */
		make_output(g, "weights");
		p.why = RG_DECLINE_GRAPH_OUTPUT;
		plant_middle(g, "scores", "weights");
		break;
	case 1: /* somebody else reads the scores */
		make_node(g, "Neg", "scores", "z");
		make_output(g, "z");
		p.why = RG_DECLINE_SECOND_CONSUMER;
		plant_middle(g, "scores", "weights");
		break;
	case 2: /* what Where puts there still has a weight */
		make_input(g, "keep", RG_F32, "5x5");
		make_node(g, "Greater", "keep,few", "kept");
		make_node(g, "Where", "kept,scores,few", "masked");
		p.why = RG_DECLINE_RANGE;
		plant_middle(g, "masked", "weights");
		break;
	case 3: /* a mask of more batches would be another shape */
		make_input(g, "bias", RG_F32, "1x1x1x1x5");
		make_node(g, "Add", "scores,bias", "masked5");
		reshape(g, "masked5", "masked", 4, (const int64_t[]){ BATCH, HEADS, SEQ, SEQ });
		plant_middle(g, "masked", "weights");
		break;
	case 4: /* keys are read before attention could make them */
		make_node(g, "Neg", "k4", "z");
		make_output(g, "z");
		p.why = RG_DECLINE_SECOND_CONSUMER;
		plant_middle(g, "scores", "weights");
		break;
	case 5: /* weights that are changed on the way */
		make_node_attrs(g, "Softmax", "scores", "weights0", 1, ATTRS(int_attr("axis", -1)));
		make_node(g, "Neg", "weights0", "weights1");
		plant_middle(g, "scores", "weights1");
		break;
	default: /* heads that stay where they are */
		make_node_attrs(g, "Softmax", "scores", "weights", 1, ATTRS(int_attr("axis", -1)));
		make_node(g, "MatMul", "weights,v4", "y");
		make_output(g, "y");
	}
	make_finish(g);
	return p;
}

enum { N_PLANTED = 7 };

static struct rg_graph *planted_graph(uint64_t i)
{
	return plant((int)i).g;
}

static void test_declines(void **state)
{
	for (int i = 0; i < N_PLANTED; i++)
		check_planted(plant(i), i, 3, planted_graph);
}

/* A batch of one and a mask of two: the sum has another shape than the scores. */
static struct rg_graph *make_grown(uint64_t seed)
{
	struct rg_graph *g = make_graph();

	make_input(g, "q", RG_F32, "1x5x12");
	make_input(g, "bias", RG_F32, "2x1x1x5");
	reshape(g, "q", "q5", 4, (const int64_t[]){ 1, SEQ, HEADS, SIZE });
	turn(g, "q5", "q4", 4, (const int64_t[]){ 0, 2, 1, 3 });
	turn(g, "q5", "kt", 4, (const int64_t[]){ 0, 2, 3, 1 });
	make_node(g, "MatMul", "q4,kt", "scores");
	make_node(g, "Add", "scores,bias", "masked");
	make_node_attrs(g, "Softmax", "masked", "weights", 1, ATTRS(int_attr("axis", -1)));
	make_node(g, "MatMul", "weights,q4", "mixed");
	turn(g, "mixed", "joined", 4, (const int64_t[]){ 0, 2, 1, 3 });
	reshape(g, "joined", "y", 3, (const int64_t[]){ BATCH, SEQ, WIDTH });
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_grown(void **state)
{
	check_planted((struct planted){ make_grown(0), "attention", "weights", RG_DECLINE_BROADCASTING }, 0, 3, make_grown);
}

/* Heads larger than the kernel takes. */
static struct rg_graph *make_large(uint64_t seed)
{
	struct rg_graph *g = make_graph();
	int64_t size = 4100;

	make_input(g, "q", RG_F32, "1x3x8200");
	reshape(g, "q", "q5", 4, (const int64_t[]){ 1, 3, 2, size });
	turn(g, "q5", "q4", 4, (const int64_t[]){ 0, 2, 1, 3 });
	turn(g, "q5", "kt", 4, (const int64_t[]){ 0, 2, 3, 1 });
	make_number(g, "scale", 1.0f / 64);
	make_node(g, "MatMul", "q4,kt", "product");
	make_node(g, "Mul", "product,scale", "scores");
	make_node_attrs(g, "Softmax", "scores", "weights", 1, ATTRS(int_attr("axis", -1)));
	make_node(g, "MatMul", "weights,q4", "mixed");
	turn(g, "mixed", "joined", 4, (const int64_t[]){ 0, 2, 1, 3 });
	reshape(g, "joined", "y", 3, (const int64_t[]){ 1, 3, 2 * size });
	make_output(g, "y");
	make_finish(g);
	return g;
}

static void test_large(void **state)
{
	check_planted((struct planted){ make_large(0), "attention", "weights", RG_DECLINE_KERNEL }, 0, 3, make_large);
}

static void test_idempotent(void **state)
{
	for (uint64_t how = 0; how < N_ORDERS; how += 11)
		check_settles(make_attention, how);
}

static void test_allocation_failures(void **state)
{
	check_allocations(make_attention, 1 + N_SOURCES * (KEYS + N_MASKS * QUOTIENT));
	check_allocations(make_attention, GATHERED + N_SOURCES * (CHOSEN + N_MASKS * OF_Q));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_declines),
		cmocka_unit_test(test_grown),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("pass-attention", tests, NULL, NULL);
}
