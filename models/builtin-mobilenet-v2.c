/*
 * builtin:mobilenet-v2: Sandler, Howard, Zhu, Zhmoginov, Chen, "MobileNetV2:
 * Inverted Residuals and Linear Bottlenecks" (CVPR 2018), width 1.0, table 2.
 * ReLU6 is written as Clip with its bounds as inputs, as exporters do.
 */
#include "models/builtin-conv.h"
#include "models/builtin-list.h"

struct relu6 {
	int lo, hi; /* the bounds, shared by all */
};

static int conv_bn(struct rg_builder *b, int x, const char *scope, int index, struct rg_b_conv c)
{
	x = rg_b_conv2d(b, x, rg_b_name(b, "%s.%d", scope, index), &c);
	return rg_b_batch_norm(b, x, rg_b_name(b, "%s.%d", scope, index + 1), c.out);
}

static int conv_bn_relu6(struct rg_builder *b, int x, const char *scope, struct rg_b_conv c,
			 const struct relu6 *r)
{
	x = conv_bn(b, x, scope, 0, c);
	return rg_b_node(b, "Clip", rg_b_name(b, "/%s.2/Clip", scope), RG_B_IN(x, r->lo, r->hi),
			 RG_B_NO_ATTRS);
}

/* 1x1 up by `expand`, depthwise 3x3, 1x1 down without activation. */
static int inverted_residual(struct rg_builder *b, int x, int block, int64_t in, int64_t out,
			     int64_t stride, int64_t expand, const struct relu6 *r)
{
	const char *scope = rg_b_name(b, "features.%d", block);
	int64_t mid = in * expand;
	int layer = 0;
	int y = x;

	if (expand != 1)
		y = conv_bn_relu6(b, y, rg_b_name(b, "%s.conv.%d", scope, layer++),
				  (struct rg_b_conv){ in, mid, 1, 1, 0, 1 }, r);
	y = conv_bn_relu6(b, y, rg_b_name(b, "%s.conv.%d", scope, layer++),
			  (struct rg_b_conv){ mid, mid, 3, stride, 1, mid }, r);
	y = conv_bn(b, y, rg_b_name(b, "%s.conv", scope), layer, (struct rg_b_conv){ mid, out, 1, 1, 0, 1 });
	if (stride == 1 && in == out)
		y = rg_b_node(b, "Add", rg_b_name(b, "/%s/Add", scope), RG_B_IN(x, y), RG_B_NO_ATTRS);
	return y;
}

int rg_builtin_mobilenet_v2(struct rg_graph *g, struct rg_error *err)
{
	/* t: expansion, c: channels, n: repeats, s: stride of the first (table 2) */
	static const struct { int t, c, n, s; } stages[] = {
		{ 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
		{ 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 },
	};
	struct rg_dim dims[] = { RG_B_OPEN("batch"), RG_B_DIM(3), RG_B_DIM(224), RG_B_DIM(224) };
	struct rg_builder b;
	struct relu6 r;
	int64_t in = 32;
	int block = 1;
	int x;

	rg_b_start(&b, g, "mobilenet-v2", 17, err);
	r.lo = rg_b_const_f32(&b, "relu6_min", 0.0f);
	r.hi = rg_b_const_f32(&b, "relu6_max", 6.0f);
	x = rg_b_input(&b, "input", RG_F32, 4, dims);
	x = conv_bn_relu6(&b, x, "features.0", (struct rg_b_conv){ 3, 32, 3, 2, 1, 1 }, &r);
	for (size_t s = 0; s < sizeof(stages) / sizeof(stages[0]); s++) {
		for (int i = 0; i < stages[s].n; i++) {
			x = inverted_residual(&b, x, block++, in, stages[s].c, i ? 1 : stages[s].s,
					      stages[s].t, &r);
			in = stages[s].c;
		}
	}
	x = conv_bn_relu6(&b, x, "features.18", (struct rg_b_conv){ 320, 1280, 1, 1, 0, 1 }, &r);
	x = rg_b_classifier(&b, x, "classifier.1", 1280, 1000);
	rg_b_output(&b, x, RG_B_DIMS(RG_B_OPEN("batch"), RG_B_DIM(1000)));
	return rg_b_done(&b);
}
