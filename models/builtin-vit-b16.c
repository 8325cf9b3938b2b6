/*
 * builtin:vit-b16: Dosovitskiy and others, "An Image is Worth 16x16 Words"
 * (ICLR 2021), ViT-B/16 as torchvision builds it: 12 layers that normalise
 * before each half, hidden size 768, 12 heads, 197 tokens from a 224x224 image.
 * The three projections of attention are one product, as there.
 */
#include "models/builtin-layers.h"
#include "models/builtin-list.h"

#define HIDDEN 768
#define HEADS 12
#define INNER 3072
#define LAYERS 12
#define TOKENS 197
#define EPSILON 1e-6f

struct vit {
	struct rg_builder b;
	int split_shape, merge_shape; /* into query, key, value and heads, and back */
	int pick[3], scale;
	struct rg_b_gelu gelu;
};

static int add(struct rg_builder *b, const char *name, int x, int y)
{
	return rg_b_node(b, "Add", name, RG_B_IN(x, y), RG_B_NO_ATTRS);
}

/* [batch, 3, 224, 224] to [batch, 197, 768]: patches, the class token before
 * them, positions added. */
static int embed(struct rg_builder *b, int image)
{
	int64_t hidden = HIDDEN;
	int w = rg_b_glorot(b, "conv_proj.weight", rg_shape_of(4, (int64_t[]){ HIDDEN, 3, 16, 16 }),
			    3 * 16 * 16, HIDDEN);
	int bias = rg_b_weight(b, "conv_proj.bias", rg_shape_of(1, &hidden), -0.02f, 0.02f);
	int class_token = rg_b_weight(b, "class_token", rg_shape_of(3, (int64_t[]){ 1, 1, HIDDEN }), -0.5f, 0.5f);
	int positions = rg_b_weight(b, "encoder.pos_embedding", rg_shape_of(3, (int64_t[]){ 1, TOKENS, HIDDEN }),
				    -0.05f, 0.05f);
	int zero = rg_b_const_i64(b, "batch_axis", 1, 1, (int64_t[]){ 0 });
	int rest = rg_b_const_i64(b, "class_token_shape", 1, 2, (int64_t[]){ 1, HIDDEN });
	/* 0 keeps a dimension (Reshape). */
	int flat = rg_b_const_i64(b, "patches_shape", 1, 3, (int64_t[]){ 0, HIDDEN, -1 });
	int x, shape;

	x = rg_b_node(b, "Conv", "/conv_proj/Conv", RG_B_IN(image, w, bias),
		      RG_B_ATTRS(RG_B_INTS("dilations", 1, 1), RG_B_INT("group", 1),
				 RG_B_INTS("kernel_shape", 16, 16), RG_B_INTS("pads", 0, 0, 0, 0),
				 RG_B_INTS("strides", 16, 16)));
	x = rg_b_node(b, "Reshape", "/Reshape", RG_B_IN(x, flat), RG_B_NO_ATTRS);
	x = rg_b_node(b, "Transpose", "/Transpose", RG_B_IN(x), RG_B_ATTRS(RG_B_INTS("perm", 0, 2, 1)));
	shape = rg_b_node(b, "Shape", "/Shape", RG_B_IN(image), RG_B_NO_ATTRS);
	shape = rg_b_node(b, "Gather", "/Gather", RG_B_IN(shape, zero), RG_B_ATTRS(RG_B_INT("axis", 0)));
	shape = rg_b_node(b, "Concat", "/Concat", RG_B_IN(shape, rest), RG_B_ATTRS(RG_B_INT("axis", 0)));
	class_token = rg_b_node(b, "Expand", "/Expand", RG_B_IN(class_token, shape), RG_B_NO_ATTRS);
	x = rg_b_node(b, "Concat", "/Concat_1", RG_B_IN(class_token, x), RG_B_ATTRS(RG_B_INT("axis", 1)));
	return add(b, "/encoder/Add", x, positions);
}

static int attention(struct vit *m, int x, const char *scope)
{
	struct rg_builder *b = &m->b;
	int part[3], y;

	x = rg_b_linear(b, x, rg_b_name(b, "%s.in_proj", scope), HIDDEN, 3 * HIDDEN);
	x = rg_b_node(b, "Reshape", rg_b_name(b, "/%s/Reshape", scope), RG_B_IN(x, m->split_shape),
		      RG_B_NO_ATTRS);
	x = rg_b_node(b, "Transpose", rg_b_name(b, "/%s/Transpose", scope), RG_B_IN(x),
		      RG_B_ATTRS(RG_B_INTS("perm", 2, 0, 3, 1, 4)));
	for (int i = 0; i < 3; i++)
		part[i] = rg_b_node(b, "Gather", rg_b_name(b, "/%s/Gather_%d", scope, i), RG_B_IN(x, m->pick[i]),
				    RG_B_ATTRS(RG_B_INT("axis", 0)));
	y = rg_b_node(b, "Transpose", rg_b_name(b, "/%s/Transpose_1", scope), RG_B_IN(part[1]),
		      RG_B_ATTRS(RG_B_INTS("perm", 0, 1, 3, 2)));
	x = rg_b_node(b, "Mul", rg_b_name(b, "/%s/Mul", scope), RG_B_IN(part[0], m->scale), RG_B_NO_ATTRS);
	y = rg_b_node(b, "MatMul", rg_b_name(b, "/%s/MatMul", scope), RG_B_IN(x, y), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Softmax", rg_b_name(b, "/%s/Softmax", scope), RG_B_IN(y),
		      RG_B_ATTRS(RG_B_INT("axis", -1)));
	y = rg_b_node(b, "MatMul", rg_b_name(b, "/%s/MatMul_1", scope), RG_B_IN(y, part[2]), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Transpose", rg_b_name(b, "/%s/Transpose_2", scope), RG_B_IN(y),
		      RG_B_ATTRS(RG_B_INTS("perm", 0, 2, 1, 3)));
	y = rg_b_node(b, "Reshape", rg_b_name(b, "/%s/Reshape_1", scope), RG_B_IN(y, m->merge_shape),
		      RG_B_NO_ATTRS);
	return rg_b_linear(b, y, rg_b_name(b, "%s.out_proj", scope), HIDDEN, HIDDEN);
}

static int layer(struct vit *m, int x, const char *scope)
{
	struct rg_builder *b = &m->b;
	int y;

	y = rg_b_layer_norm(b, x, rg_b_name(b, "%s.ln_1", scope), HIDDEN, EPSILON);
	y = attention(m, y, rg_b_name(b, "%s.self_attention", scope));
	x = add(b, rg_b_name(b, "/%s/Add", scope), y, x);
	y = rg_b_layer_norm(b, x, rg_b_name(b, "%s.ln_2", scope), HIDDEN, EPSILON);
	y = rg_b_linear(b, y, rg_b_name(b, "%s.mlp.0", scope), HIDDEN, INNER);
	y = rg_b_gelu(b, &m->gelu, y, rg_b_name(b, "%s.mlp.1", scope));
	y = rg_b_linear(b, y, rg_b_name(b, "%s.mlp.3", scope), INNER, HIDDEN);
	return add(b, rg_b_name(b, "/%s/Add_1", scope), x, y);
}

static int head(struct rg_builder *b, int x)
{
	int64_t classes = 1000;
	int w = rg_b_glorot(b, "heads.head.weight", rg_shape_of(2, (int64_t[]){ classes, HIDDEN }), HIDDEN, classes);
	int bias = rg_b_weight(b, "heads.head.bias", rg_shape_of(1, &classes), -0.1f, 0.1f);
	int first = rg_b_const_i64(b, "class_token_index", 0, 1, (int64_t[]){ 0 });

	x = rg_b_node(b, "Gather", "/Gather_1", RG_B_IN(x, first), RG_B_ATTRS(RG_B_INT("axis", 1)));
	return rg_b_node(b, "Gemm", "/heads.head/Gemm", RG_B_IN(x, w, bias),
			 RG_B_ATTRS(RG_B_FLOAT("alpha", 1.0f), RG_B_FLOAT("beta", 1.0f),
				    RG_B_INT("transB", 1)));
}

int rg_builtin_vit_b16(struct rg_graph *g, struct rg_error *err)
{
	struct rg_dim dims[] = { RG_B_OPEN("batch"), RG_B_DIM(3), RG_B_DIM(224), RG_B_DIM(224) };
	struct vit m;
	struct rg_builder *b = &m.b;
	int x;

	rg_b_start(b, g, "vit-b16", 17, err);
	x = rg_b_input(b, "input", RG_F32, 4, dims);
	m.split_shape = rg_b_const_i64(b, "split_heads", 1, 5, (int64_t[]){ 0, 0, 3, HEADS, HIDDEN / HEADS });
	m.merge_shape = rg_b_const_i64(b, "merge_heads", 1, 3, (int64_t[]){ 0, 0, HIDDEN });
	for (int64_t i = 0; i < 3; i++)
		m.pick[i] = rg_b_const_i64(b, rg_b_name(b, "pick_%d", (int)i), 0, 1, &i);
	m.scale = rg_b_const_f32(b, "scale", 0.125f); /* one over the root of the head's size */
	rg_b_gelu_start(b, &m.gelu);

	x = embed(b, x);
	for (int i = 0; i < LAYERS; i++)
		x = layer(&m, x, rg_b_name(b, "encoder.layers.encoder_layer_%d", i));
	x = rg_b_layer_norm(b, x, "encoder.ln", HIDDEN, EPSILON);
	rg_b_output(b, head(b, x), RG_B_DIMS(RG_B_OPEN("batch"), RG_B_DIM(1000)));
	return rg_b_done(b);
}
