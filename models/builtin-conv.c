/* Layers that the convolutional built-in models share. */
#include "models/builtin-conv.h"

int rg_b_conv2d(struct rg_builder *b, int x, const char *scope, const struct rg_b_conv *c)
{
	int64_t dims[] = { c->out, c->in / c->groups, c->kernel, c->kernel };
	int w = rg_b_he(b, rg_b_name(b, "%s.weight", scope), rg_shape_of(4, dims),
			c->in / c->groups * c->kernel * c->kernel);

	return rg_b_node(b, "Conv", rg_b_name(b, "/%s/Conv", scope), RG_B_IN(x, w),
			 RG_B_ATTRS(RG_B_INTS("dilations", 1, 1), RG_B_INT("group", c->groups),
				    RG_B_INTS("kernel_shape", c->kernel, c->kernel),
				    RG_B_INTS("pads", c->pad, c->pad, c->pad, c->pad),
				    RG_B_INTS("strides", c->stride, c->stride)));
}

static int batch_norm(struct rg_builder *b, int x, const char *scope, int64_t channels, float lo, float hi)
{
	struct rg_shape s = rg_shape_of(1, &channels);
	int scale = rg_b_weight(b, rg_b_name(b, "%s.weight", scope), s, lo, hi);
	int bias = rg_b_weight(b, rg_b_name(b, "%s.bias", scope), s, -0.1f, 0.1f);
	int mean = rg_b_weight(b, rg_b_name(b, "%s.running_mean", scope), s, -0.1f, 0.1f);
	int var = rg_b_weight(b, rg_b_name(b, "%s.running_var", scope), s, 0.9f, 1.1f);

	return rg_b_node(b, "BatchNormalization", rg_b_name(b, "/%s/BatchNormalization", scope),
			 RG_B_IN(x, scale, bias, mean, var),
			 RG_B_ATTRS(RG_B_FLOAT("epsilon", 1e-5f), RG_B_FLOAT("momentum", 0.9f)));
}

int rg_b_batch_norm(struct rg_builder *b, int x, const char *scope, int64_t channels)
{
	return batch_norm(b, x, scope, channels, 0.5f, 1.0f);
}

int rg_b_batch_norm_plain(struct rg_builder *b, int x, const char *scope, int64_t channels)
{
	return batch_norm(b, x, scope, channels, 0.9f, 1.1f);
}

int rg_b_classifier(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t out)
{
	int w, bias;

	x = rg_b_node(b, "GlobalAveragePool", "/avgpool/GlobalAveragePool", RG_B_IN(x), RG_B_NO_ATTRS);
	x = rg_b_node(b, "Flatten", "/Flatten", RG_B_IN(x), RG_B_ATTRS(RG_B_INT("axis", 1)));
	w = rg_b_glorot(b, rg_b_name(b, "%s.weight", scope), rg_shape_of(2, (int64_t[]){ out, in }), in, out);
	bias = rg_b_weight(b, rg_b_name(b, "%s.bias", scope), rg_shape_of(1, &out), -0.1f, 0.1f);
	return rg_b_node(b, "Gemm", rg_b_name(b, "/%s/Gemm", scope), RG_B_IN(x, w, bias),
			 RG_B_ATTRS(RG_B_FLOAT("alpha", 1.0f), RG_B_FLOAT("beta", 1.0f),
				    RG_B_INT("transB", 1)));
}
