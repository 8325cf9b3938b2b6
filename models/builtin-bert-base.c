/*
 * builtin:bert-base: Devlin, Chang, Lee, Toutanova, "BERT" (NAACL 2019), base,
 * uncased: 12 layers, hidden size 768, 12 heads, vocabulary 30,522, with the
 * embeddings and the pooler. Written with the operators that an exporter at
 * opset 17 writes: linear layers as MatMul and Add, GELU taken apart around
 * Erf, the mask as (1 - mask) * lowest.
 */
#include <float.h>

#include "models/builtin-layers.h"
#include "models/builtin-list.h"

#define HIDDEN 768
#define HEADS 12
#define INNER 3072
#define LAYERS 12
#define VOCABULARY 30522
#define POSITIONS 512
#define EPSILON 1e-12f

struct bert {
	struct rg_builder b;
	int mask;                          /* 0 or lowest, [batch, 1, 1, seq] */
	int split_shape, merge_shape;      /* into heads and back */
	int sqrt_head;
	struct rg_b_gelu gelu;
};

static int add(struct rg_builder *b, const char *name, int x, int y)
{
	return rg_b_node(b, "Add", name, RG_B_IN(x, y), RG_B_NO_ATTRS);
}

static int embedding(struct rg_builder *b, const char *name, int64_t rows, int indices)
{
	const char *scope = rg_b_name(b, "embeddings.%s", name);
	int table = rg_b_weight(b, rg_b_name(b, "%s.weight", scope),
				rg_shape_of(2, (int64_t[]){ rows, HIDDEN }), -0.05f, 0.05f);

	return rg_b_node(b, "Gather", rg_b_name(b, "/%s/Gather", scope), RG_B_IN(table, indices),
			 RG_B_NO_ATTRS);
}

/* The first seq of 0, 1, ..., 511, as [1, seq]: sliced by the shape of the input. */
static int positions(struct rg_builder *b, int input_ids)
{
	int64_t ids[POSITIONS];
	int table, zero, one, start, axis, all, shape, seq;

	for (int i = 0; i < POSITIONS; i++)
		ids[i] = i;
	table = rg_b_const_i64(b, "embeddings.position_ids", 1, POSITIONS, ids);
	zero = rg_b_const_i64(b, "embeddings.axis_0", 1, 1, (int64_t[]){ 0 });
	one = rg_b_const_i64(b, "embeddings.seq_axis", 0, 1, (int64_t[]){ 1 });
	start = rg_b_const_i64(b, "embeddings.start", 1, 1, (int64_t[]){ 0 });
	axis = rg_b_const_i64(b, "embeddings.axis_1", 1, 1, (int64_t[]){ 1 });

	all = rg_b_node(b, "Unsqueeze", "/embeddings/Unsqueeze", RG_B_IN(table, zero), RG_B_NO_ATTRS);
	shape = rg_b_node(b, "Shape", "/Shape", RG_B_IN(input_ids), RG_B_NO_ATTRS);
	seq = rg_b_node(b, "Gather", "/Gather", RG_B_IN(shape, one), RG_B_ATTRS(RG_B_INT("axis", 0)));
	seq = rg_b_node(b, "Unsqueeze", "/embeddings/Unsqueeze_1", RG_B_IN(seq, zero), RG_B_NO_ATTRS);
	return rg_b_node(b, "Slice", "/embeddings/Slice", RG_B_IN(all, start, seq, axis), RG_B_NO_ATTRS);
}

static int attention_mask(struct rg_builder *b, int mask)
{
	int axis1 = rg_b_const_i64(b, "mask.axis_1", 1, 1, (int64_t[]){ 1 });
	int axis2 = rg_b_const_i64(b, "mask.axis_2", 1, 1, (int64_t[]){ 2 });
	int one = rg_b_const_f32(b, "mask.one", 1.0f);
	int lowest = rg_b_const_f32(b, "mask.lowest", -FLT_MAX);
	int x;

	x = rg_b_node(b, "Unsqueeze", "/Unsqueeze", RG_B_IN(mask, axis1), RG_B_NO_ATTRS);
	x = rg_b_node(b, "Unsqueeze", "/Unsqueeze_1", RG_B_IN(x, axis2), RG_B_NO_ATTRS);
	x = rg_b_node(b, "Cast", "/Cast", RG_B_IN(x), RG_B_ATTRS(RG_B_INT("to", RG_F32)));
	x = rg_b_node(b, "Sub", "/Sub", RG_B_IN(one, x), RG_B_NO_ATTRS);
	return rg_b_node(b, "Mul", "/Mul", RG_B_IN(x, lowest), RG_B_NO_ATTRS);
}

/* [batch, seq, 768] to [batch, heads, seq, 64], or the transposed of its last
 * two for the keys. */
static int heads(struct bert *m, int x, const char *scope, const char *which, bool transposed)
{
	struct rg_builder *b = &m->b;
	struct rg_attr perm = RG_B_INTS("perm", 0, 2, 1, 3);
	struct rg_attr perm_t = RG_B_INTS("perm", 0, 2, 3, 1);

	x = rg_b_linear(b, x, rg_b_name(b, "%s.%s", scope, which), HIDDEN, HIDDEN);
	x = rg_b_node(b, "Reshape", rg_b_name(b, "/%s/%s/Reshape", scope, which), RG_B_IN(x, m->split_shape),
		      RG_B_NO_ATTRS);
	return rg_b_node(b, "Transpose", rg_b_name(b, "/%s/%s/Transpose", scope, which), RG_B_IN(x),
			 (struct rg_b_attrs){ 1, transposed ? &perm_t : &perm });
}

static int attention(struct bert *m, int x, const char *layer)
{
	struct rg_builder *b = &m->b;
	const char *scope = rg_b_name(b, "%s.attention.self", layer);
	int q = heads(m, x, scope, "query", false);
	int k = heads(m, x, scope, "key", true);
	int v = heads(m, x, scope, "value", false);
	int y;

	y = rg_b_node(b, "MatMul", rg_b_name(b, "/%s/MatMul", scope), RG_B_IN(q, k), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Div", rg_b_name(b, "/%s/Div", scope), RG_B_IN(y, m->sqrt_head), RG_B_NO_ATTRS);
	y = add(b, rg_b_name(b, "/%s/Add", scope), y, m->mask);
	y = rg_b_node(b, "Softmax", rg_b_name(b, "/%s/Softmax", scope), RG_B_IN(y),
		      RG_B_ATTRS(RG_B_INT("axis", -1)));
	y = rg_b_node(b, "MatMul", rg_b_name(b, "/%s/MatMul_1", scope), RG_B_IN(y, v), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Transpose", rg_b_name(b, "/%s/Transpose", scope), RG_B_IN(y),
		      RG_B_ATTRS(RG_B_INTS("perm", 0, 2, 1, 3)));
	y = rg_b_node(b, "Reshape", rg_b_name(b, "/%s/Reshape", scope), RG_B_IN(y, m->merge_shape),
		      RG_B_NO_ATTRS);
	scope = rg_b_name(b, "%s.attention.output", layer);
	y = rg_b_linear(b, y, rg_b_name(b, "%s.dense", scope), HIDDEN, HIDDEN);
	y = add(b, rg_b_name(b, "/%s/Add", scope), y, x);
	return rg_b_layer_norm(b, y, rg_b_name(b, "%s.LayerNorm", scope), HIDDEN, EPSILON);
}

static int feed_forward(struct bert *m, int x, const char *layer)
{
	struct rg_builder *b = &m->b;
	int y;

	y = rg_b_linear(b, x, rg_b_name(b, "%s.intermediate.dense", layer), HIDDEN, INNER);
	y = rg_b_gelu(b, &m->gelu, y, rg_b_name(b, "%s.intermediate.intermediate_act_fn", layer));
	y = rg_b_linear(b, y, rg_b_name(b, "%s.output.dense", layer), INNER, HIDDEN);
	y = add(b, rg_b_name(b, "/%s.output/Add", layer), y, x);
	return rg_b_layer_norm(b, y, rg_b_name(b, "%s.output.LayerNorm", layer), HIDDEN, EPSILON);
}

/* The first token, through a dense layer and tanh. */
static int pooler(struct rg_builder *b, int x)
{
	int64_t hidden = HIDDEN;
	int w = rg_b_glorot(b, "pooler.dense.weight", rg_shape_of(2, (int64_t[]){ HIDDEN, HIDDEN }),
			    HIDDEN, HIDDEN);
	int bias = rg_b_weight(b, "pooler.dense.bias", rg_shape_of(1, &hidden), -0.02f, 0.02f);
	int first = rg_b_const_i64(b, "pooler.first", 0, 1, (int64_t[]){ 0 });

	x = rg_b_node(b, "Gather", "/pooler/Gather", RG_B_IN(x, first), RG_B_ATTRS(RG_B_INT("axis", 1)));
	x = rg_b_node(b, "Gemm", "/pooler/dense/Gemm", RG_B_IN(x, w, bias),
		      RG_B_ATTRS(RG_B_FLOAT("alpha", 1.0f), RG_B_FLOAT("beta", 1.0f),
				 RG_B_INT("transB", 1)));
	return rg_b_node(b, "Tanh", "/pooler/activation/Tanh", RG_B_IN(x), RG_B_NO_ATTRS);
}

int rg_builtin_bert_base(struct rg_graph *g, struct rg_error *err)
{
	struct rg_dim dims[] = { RG_B_OPEN("batch"), RG_B_OPEN("seq") };
	struct bert m;
	struct rg_builder *b = &m.b;
	int ids, mask, types, x, y;

	rg_b_start(b, g, "bert-base", 17, err);
	ids = rg_b_input(b, "input_ids", RG_I64, 2, dims);
	mask = rg_b_input(b, "attention_mask", RG_I64, 2, dims);
	types = rg_b_input(b, "token_type_ids", RG_I64, 2, dims);

	/* 0 keeps a dimension (Reshape). */
	m.split_shape = rg_b_const_i64(b, "split_heads", 1, 4, (int64_t[]){ 0, 0, HEADS, HIDDEN / HEADS });
	m.merge_shape = rg_b_const_i64(b, "merge_heads", 1, 3, (int64_t[]){ 0, 0, HIDDEN });
	m.sqrt_head = rg_b_const_f32(b, "sqrt_head_size", 8.0f);
	rg_b_gelu_start(b, &m.gelu);
	m.mask = attention_mask(b, mask);

	x = embedding(b, "word_embeddings", VOCABULARY, ids);
	y = embedding(b, "token_type_embeddings", 2, types);
	x = add(b, "/embeddings/Add", x, y);
	y = embedding(b, "position_embeddings", POSITIONS, positions(b, ids));
	x = add(b, "/embeddings/Add_1", x, y);
	x = rg_b_layer_norm(b, x, "embeddings.LayerNorm", HIDDEN, EPSILON);
	for (int i = 0; i < LAYERS; i++) {
		const char *layer = rg_b_name(b, "encoder.layer.%d", i);

		x = attention(&m, x, layer);
		x = feed_forward(&m, x, layer);
	}
	rg_b_output(b, x, RG_B_DIMS(RG_B_OPEN("batch"), RG_B_OPEN("seq"), RG_B_DIM(HIDDEN)));
	rg_b_output(b, pooler(b, x), RG_B_DIMS(RG_B_OPEN("batch"), RG_B_DIM(HIDDEN)));
	return rg_b_done(b);
}
