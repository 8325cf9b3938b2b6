/* Layers that the built-in transformers share. */
#include "models/builtin-layers.h"

int rg_b_linear(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t out)
{
	int w = rg_b_glorot(b, rg_b_name(b, "%s.weight", scope), rg_shape_of(2, (int64_t[]){ in, out }),
			    in, out);
	int bias = rg_b_weight(b, rg_b_name(b, "%s.bias", scope), rg_shape_of(1, &out), -0.02f, 0.02f);

	x = rg_b_node(b, "MatMul", rg_b_name(b, "/%s/MatMul", scope), RG_B_IN(x, w), RG_B_NO_ATTRS);
	return rg_b_node(b, "Add", rg_b_name(b, "/%s/Add", scope), RG_B_IN(bias, x), RG_B_NO_ATTRS);
}

int rg_b_layer_norm(struct rg_builder *b, int x, const char *scope, int64_t size, float epsilon)
{
	struct rg_shape s = rg_shape_of(1, &size);
	int scale = rg_b_weight(b, rg_b_name(b, "%s.weight", scope), s, 0.9f, 1.1f);
	int bias = rg_b_weight(b, rg_b_name(b, "%s.bias", scope), s, -0.1f, 0.1f);

	return rg_b_node(b, "LayerNormalization", rg_b_name(b, "/%s/LayerNormalization", scope),
			 RG_B_IN(x, scale, bias),
			 RG_B_ATTRS(RG_B_INT("axis", -1), RG_B_FLOAT("epsilon", epsilon)));
}

void rg_b_gelu_start(struct rg_builder *b, struct rg_b_gelu *c)
{
	c->sqrt_two = rg_b_const_f32(b, "sqrt_two", 1.41421356f);
	c->one = rg_b_const_f32(b, "one", 1.0f);
	c->half = rg_b_const_f32(b, "half", 0.5f);
}

/* x * (1 + erf(x / sqrt 2)) / 2: Hendrycks and Gimpel 2016. */
int rg_b_gelu(struct rg_builder *b, const struct rg_b_gelu *c, int x, const char *scope)
{
	int y;

	y = rg_b_node(b, "Div", rg_b_name(b, "/%s/Div", scope), RG_B_IN(x, c->sqrt_two), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Erf", rg_b_name(b, "/%s/Erf", scope), RG_B_IN(y), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Add", rg_b_name(b, "/%s/Add", scope), RG_B_IN(y, c->one), RG_B_NO_ATTRS);
	y = rg_b_node(b, "Mul", rg_b_name(b, "/%s/Mul", scope), RG_B_IN(x, y), RG_B_NO_ATTRS);
	return rg_b_node(b, "Mul", rg_b_name(b, "/%s/Mul_1", scope), RG_B_IN(y, c->half), RG_B_NO_ATTRS);
}
