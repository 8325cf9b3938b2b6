/*
 * builtin:gpt2: the smallest GPT-2 of Radford and others (2019): 12 layers, hidden size 768, 12 heads,
 * vocabulary 50,257, 1,024 positions. The word embedding is also the last
 * layer (tied), counted once.
 *
 * Keys and values of earlier tokens go in, those of all tokens come out, so the
 * same graph is prefill (past=0) and decode (seq=1): positions and the causal
 * mask are computed from the shapes, as an exporter writes it. Linear layers
 * are Gemm between two Reshape, as GPT-2's own come out of an exporter.
 */
#include <float.h>

#include "models/builtin-layers.h"
#include "models/builtin-list.h"

#define HIDDEN 768
#define HEADS 12
#define HEAD_SIZE 64
#define INNER 3072
#define LAYERS 12
#define VOCABULARY 50257
#define POSITIONS 1024
#define EPSILON 1e-5f

/* Lengths and shapes that the graph computes, and constants, made once. */
struct gpt2 {
	struct rg_builder b;
	int past[LAYERS][2], present[LAYERS][2]; /* key, value: [batch, heads, tokens, 64] */
	int positions;                  /* past, past + 1, ...: [seq] */
	int visible;                    /* [seq, past + seq]: not behind the token itself */
	int split_shape, merge_shape, split_sizes;
	int ids_shape;                  /* [2]: batch, seq */
	int sqrt_head, lowest;
	int three, cube, root, one, half; /* of GELU's tanh form */
};

static int add(struct rg_builder *b, const char *name, int x, int y)
{
	return rg_b_node(b, "Add", name, RG_B_IN(x, y), RG_B_NO_ATTRS);
}

/* Extent `axis` of a value's shape, as a scalar. */
static int extent(struct rg_builder *b, const char *scope, int shape, int64_t axis)
{
	int at = rg_b_const_i64(b, rg_b_name(b, "%s.axis", scope), 0, 1, &axis);

	return rg_b_node(b, "Gather", rg_b_name(b, "/%s/Gather", scope), RG_B_IN(shape, at),
			 RG_B_ATTRS(RG_B_INT("axis", 0)));
}

static void lengths(struct gpt2 *m, int input_ids)
{
	struct rg_builder *b = &m->b;
	int zero = rg_b_const_i64(b, "zero", 0, 1, (int64_t[]){ 0 });
	int one = rg_b_const_i64(b, "step", 0, 1, (int64_t[]){ 1 });
	int axis = rg_b_const_i64(b, "row_axis", 1, 1, (int64_t[]){ 1 });
	int shape, seq, past, total, columns, rows;

	m->ids_shape = rg_b_node(b, "Shape", "/Shape", RG_B_IN(input_ids), RG_B_NO_ATTRS);
	shape = rg_b_node(b, "Shape", "/Shape_1", RG_B_IN(m->past[0][0]), RG_B_NO_ATTRS);
	seq = extent(b, "seq", m->ids_shape, 1);
	past = extent(b, "past", shape, 2);
	total = add(b, "/Add", past, seq);
	m->positions = rg_b_node(b, "Range", "/Range", RG_B_IN(past, total, one), RG_B_NO_ATTRS);
	columns = rg_b_node(b, "Range", "/Range_1", RG_B_IN(zero, total, one), RG_B_NO_ATTRS);
	rows = rg_b_node(b, "Unsqueeze", "/Unsqueeze", RG_B_IN(m->positions, axis), RG_B_NO_ATTRS);
	m->visible = rg_b_node(b, "LessOrEqual", "/LessOrEqual", RG_B_IN(columns, rows), RG_B_NO_ATTRS);
}

/* [batch, seq, in] to [batch, seq, out] by a Gemm with w, bias (-1: none). */
static int gemm(struct gpt2 *m, int x, const char *scope, int64_t in, int64_t out, int w, int bias,
		bool w_is_out_by_in)
{
	struct rg_builder *b = &m->b;
	int rows = rg_b_const_i64(b, rg_b_name(b, "%s.rows", scope), 1, 2, (int64_t[]){ -1, in });
	int columns = rg_b_const_i64(b, rg_b_name(b, "%s.columns", scope), 1, 1, &out);
	int shape;

	shape = rg_b_node(b, "Concat", rg_b_name(b, "/%s/Concat", scope), RG_B_IN(m->ids_shape, columns),
			  RG_B_ATTRS(RG_B_INT("axis", 0)));
	x = rg_b_node(b, "Reshape", rg_b_name(b, "/%s/Reshape", scope), RG_B_IN(x, rows), RG_B_NO_ATTRS);
	x = rg_b_node(b, "Gemm", rg_b_name(b, "/%s/Gemm", scope),
		      bias < 0 ? RG_B_IN(x, w) : RG_B_IN(x, w, bias),
		      RG_B_ATTRS(RG_B_FLOAT("alpha", 1.0f), RG_B_FLOAT("beta", 1.0f),
				 RG_B_INT("transB", w_is_out_by_in)));
	return rg_b_node_as(b, "Reshape", rg_b_name(b, "/%s/Reshape_1", scope),
			    bias < 0 ? "logits" : rg_b_name(b, "/%s/Reshape_1_output_0", scope),
			    RG_B_IN(x, shape), RG_B_NO_ATTRS);
}

static int linear(struct gpt2 *m, int x, const char *scope, int64_t in, int64_t out)
{
	struct rg_builder *b = &m->b;
	int w = rg_b_glorot(b, rg_b_name(b, "%s.weight", scope), rg_shape_of(2, (int64_t[]){ in, out }), in, out);
	int bias = rg_b_weight(b, rg_b_name(b, "%s.bias", scope), rg_shape_of(1, &out), -0.02f, 0.02f);

	return gemm(m, x, scope, in, out, w, bias, false);
}

static int attention(struct gpt2 *m, int x, int l, const char *scope)
{
	static const char *const names[] = { "key", "value" };
	struct rg_builder *b = &m->b;
	int part[3], y;

	x = linear(m, x, rg_b_name(b, "%s.c_attn", scope), HIDDEN, 3 * HIDDEN);
	rg_b_nodes(b, "Split", rg_b_name(b, "/%s/Split", scope), RG_B_IN(x, m->split_sizes),
		   RG_B_ATTRS(RG_B_INT("axis", 2)), 3, part);
	for (int i = 0; i < 3; i++) {
		part[i] = rg_b_node(b, "Reshape", rg_b_name(b, "/%s/Reshape_%d", scope, i),
				    RG_B_IN(part[i], m->split_shape), RG_B_NO_ATTRS);
		part[i] = rg_b_node(b, "Transpose", rg_b_name(b, "/%s/Transpose_%d", scope, i), RG_B_IN(part[i]),
				    RG_B_ATTRS(RG_B_INTS("perm", 0, 2, 1, 3)));
	}
	for (int i = 0; i < 2; i++)
		m->present[l][i] = rg_b_node_as(b, "Concat", rg_b_name(b, "/%s/Concat_%d", scope, i),
						rg_b_name(b, "present.%d.%s", l, names[i]),
						RG_B_IN(m->past[l][i], part[1 + i]),
						RG_B_ATTRS(RG_B_INT("axis", 2)));
	y = rg_b_node(b, "Transpose", rg_b_name(b, "/%s/Transpose_3", scope), RG_B_IN(m->present[l][0]),
		      RG_B_ATTRS(RG_B_INTS("perm", 0, 1, 3, 2)));
	y = rg_b_node(b, "MatMul", rg_b_name(b, "/%s/MatMul", scope), RG_B_IN(part[0], y), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Div", rg_b_name(b, "/%s/Div", scope), RG_B_IN(y, m->sqrt_head), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Where", rg_b_name(b, "/%s/Where", scope), RG_B_IN(m->visible, y, m->lowest),
		      RG_B_NO_ATTRS);
	y = rg_b_node(b, "Softmax", rg_b_name(b, "/%s/Softmax", scope), RG_B_IN(y),
		      RG_B_ATTRS(RG_B_INT("axis", -1)));
	y = rg_b_node(b, "MatMul", rg_b_name(b, "/%s/MatMul_1", scope), RG_B_IN(y, m->present[l][1]),
		      RG_B_NO_ATTRS);
	y = rg_b_node(b, "Transpose", rg_b_name(b, "/%s/Transpose_4", scope), RG_B_IN(y),
		      RG_B_ATTRS(RG_B_INTS("perm", 0, 2, 1, 3)));
	y = rg_b_node(b, "Reshape", rg_b_name(b, "/%s/Reshape_3", scope), RG_B_IN(y, m->merge_shape),
		      RG_B_NO_ATTRS);
	return linear(m, y, rg_b_name(b, "%s.c_proj", scope), HIDDEN, HIDDEN);
}

/* x (1 + tanh(root (x + cube x^3))) / 2: Hendrycks and Gimpel 2016, the
 * approximation that GPT-2 was trained with. */
static int gelu(struct gpt2 *m, int x, const char *scope)
{
	struct rg_builder *b = &m->b;
	int y, h;

	y = rg_b_node(b, "Pow", rg_b_name(b, "/%s/Pow", scope), RG_B_IN(x, m->three), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Mul", rg_b_name(b, "/%s/Mul", scope), RG_B_IN(y, m->cube), RG_B_NO_ATTRS);
	y = add(b, rg_b_name(b, "/%s/Add", scope), x, y);
	y = rg_b_node(b, "Mul", rg_b_name(b, "/%s/Mul_1", scope), RG_B_IN(y, m->root), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Tanh", rg_b_name(b, "/%s/Tanh", scope), RG_B_IN(y), RG_B_NO_ATTRS);
	y = add(b, rg_b_name(b, "/%s/Add_1", scope), y, m->one);
	h = rg_b_node(b, "Mul", rg_b_name(b, "/%s/Mul_2", scope), RG_B_IN(x, m->half), RG_B_NO_ATTRS);
	return rg_b_node(b, "Mul", rg_b_name(b, "/%s/Mul_3", scope), RG_B_IN(h, y), RG_B_NO_ATTRS);
}

static int layer(struct gpt2 *m, int x, int l)
{
	struct rg_builder *b = &m->b;
	const char *scope = rg_b_name(b, "h.%d", l);
	int y;

	y = rg_b_layer_norm(b, x, rg_b_name(b, "%s.ln_1", scope), HIDDEN, EPSILON);
	y = attention(m, y, l, rg_b_name(b, "%s.attn", scope));
	x = add(b, rg_b_name(b, "/%s/Add", scope), y, x);
	y = rg_b_layer_norm(b, x, rg_b_name(b, "%s.ln_2", scope), HIDDEN, EPSILON);
	y = linear(m, y, rg_b_name(b, "%s.mlp.c_fc", scope), HIDDEN, INNER);
	y = gelu(m, y, rg_b_name(b, "%s.mlp.act", scope));
	y = linear(m, y, rg_b_name(b, "%s.mlp.c_proj", scope), INNER, HIDDEN);
	return add(b, rg_b_name(b, "/%s/Add_1", scope), x, y);
}

static void constants(struct gpt2 *m)
{
	struct rg_builder *b = &m->b;

	/* 0 keeps a dimension (Reshape). */
	m->split_shape = rg_b_const_i64(b, "split_heads", 1, 4, (int64_t[]){ 0, 0, HEADS, HEAD_SIZE });
	m->merge_shape = rg_b_const_i64(b, "merge_heads", 1, 3, (int64_t[]){ 0, 0, HIDDEN });
	m->split_sizes = rg_b_const_i64(b, "split_sizes", 1, 3, (int64_t[]){ HIDDEN, HIDDEN, HIDDEN });
	m->sqrt_head = rg_b_const_f32(b, "sqrt_head_size", 8.0f);
	m->lowest = rg_b_const_f32(b, "lowest", -FLT_MAX);
	m->three = rg_b_const_f32(b, "three", 3.0f);
	m->cube = rg_b_const_f32(b, "cube", 0.044715f);
	m->root = rg_b_const_f32(b, "root_2_over_pi", 0.79788456f);
	m->one = rg_b_const_f32(b, "one", 1.0f);
	m->half = rg_b_const_f32(b, "half", 0.5f);
}

int rg_builtin_gpt2(struct rg_graph *g, struct rg_error *err)
{
	struct rg_dim ids_dims[] = { RG_B_OPEN("batch"), RG_B_OPEN("seq") };
	struct rg_dim past_dims[] = { RG_B_OPEN("batch"), RG_B_DIM(HEADS), RG_B_OPEN("past"), RG_B_DIM(HEAD_SIZE) };
	struct rg_dim present_dims[] = { RG_B_OPEN("batch"), RG_B_DIM(HEADS), RG_B_OPEN("past + seq"),
					 RG_B_DIM(HEAD_SIZE) };
	struct gpt2 m;
	struct rg_builder *b = &m.b;
	int ids, words, table, x, y;

	rg_b_start(b, g, "gpt2", 17, err);
	ids = rg_b_input(b, "input_ids", RG_I64, 2, ids_dims);
	for (int l = 0; l < LAYERS; l++) {
		m.past[l][0] = rg_b_input(b, rg_b_name(b, "past_key_values.%d.key", l), RG_F32, 4, past_dims);
		m.past[l][1] = rg_b_input(b, rg_b_name(b, "past_key_values.%d.value", l), RG_F32, 4, past_dims);
	}
	constants(&m);
	lengths(&m, ids);

	words = rg_b_weight(b, "wte.weight", rg_shape_of(2, (int64_t[]){ VOCABULARY, HIDDEN }), -0.05f, 0.05f);
	table = rg_b_weight(b, "wpe.weight", rg_shape_of(2, (int64_t[]){ POSITIONS, HIDDEN }), -0.02f, 0.02f);
	x = rg_b_node(b, "Gather", "/wte/Gather", RG_B_IN(words, ids), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Gather", "/wpe/Gather", RG_B_IN(table, m.positions), RG_B_NO_ATTRS);
	x = add(b, "/Add_1", x, y);
	for (int l = 0; l < LAYERS; l++)
		x = layer(&m, x, l);
	x = rg_b_layer_norm(b, x, "ln_f", HIDDEN, EPSILON);
	rg_b_output(b, gemm(&m, x, "lm_head", HIDDEN, VOCABULARY, words, -1, true),
		    RG_B_DIMS(RG_B_OPEN("batch"), RG_B_OPEN("seq"), RG_B_DIM(VOCABULARY)));
	for (int l = 0; l < LAYERS; l++) {
		rg_b_output(b, m.present[l][0], 4, present_dims);
		rg_b_output(b, m.present[l][1], 4, present_dims);
	}
	return rg_b_done(b);
}
