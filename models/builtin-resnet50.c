/*
 * builtin:resnet50: He, Zhang, Ren, Sun, "Deep Residual Learning for Image
 * Recognition" (CVPR 2016), 50 layers, in the form called v1.5: a bottleneck
 * that halves the image does so in its 3x3 convolution. Batch normalisation
 * stands by itself, as trained, so that folding it is left to the compiler.
 */
#include "models/builtin-conv.h"
#include "models/builtin-list.h"

static int conv_bn(struct rg_builder *b, int x, const char *conv, const char *bn, struct rg_b_conv c)
{
	x = rg_b_conv2d(b, x, conv, &c);
	return rg_b_batch_norm(b, x, bn, c.out);
}

static int relu(struct rg_builder *b, int x, const char *scope, const char *name)
{
	return rg_b_node(b, "Relu", rg_b_name(b, "/%s%s/Relu", scope, name), RG_B_IN(x), RG_B_NO_ATTRS);
}

/* 1x1 down to `width`, 3x3, 1x1 up to 4 * width, added to the input. */
static int bottleneck(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t width,
		      int64_t stride)
{
	int64_t out = 4 * width;
	int y;

	y = conv_bn(b, x, rg_b_name(b, "%s.conv1", scope), rg_b_name(b, "%s.bn1", scope),
		    (struct rg_b_conv){ in, width, 1, 1, 0, 1 });
	y = relu(b, y, scope, "/relu");
	y = conv_bn(b, y, rg_b_name(b, "%s.conv2", scope), rg_b_name(b, "%s.bn2", scope),
		    (struct rg_b_conv){ width, width, 3, stride, 1, 1 });
	y = relu(b, y, scope, "/relu_1");
	y = conv_bn(b, y, rg_b_name(b, "%s.conv3", scope), rg_b_name(b, "%s.bn3", scope),
		    (struct rg_b_conv){ width, out, 1, 1, 0, 1 });
	if (in != out || stride != 1)
		x = conv_bn(b, x, rg_b_name(b, "%s.downsample.0", scope),
			    rg_b_name(b, "%s.downsample.1", scope),
			    (struct rg_b_conv){ in, out, 1, stride, 0, 1 });
	y = rg_b_node(b, "Add", rg_b_name(b, "/%s/Add", scope), RG_B_IN(y, x), RG_B_NO_ATTRS);
	return relu(b, y, scope, "/relu_2");
}

int rg_builtin_resnet50(struct rg_graph *g, struct rg_error *err)
{
	static const int blocks[4] = { 3, 4, 6, 3 };
	struct rg_dim dims[] = { RG_B_OPEN("batch"), RG_B_DIM(3), RG_B_DIM(224), RG_B_DIM(224) };
	struct rg_builder b;
	int64_t in = 64;
	int x;

	rg_b_start(&b, g, "resnet50", 17, err);
	x = rg_b_input(&b, "input", RG_F32, 4, dims);
	x = conv_bn(&b, x, "conv1", "bn1", (struct rg_b_conv){ 3, 64, 7, 2, 3, 1 });
	x = relu(&b, x, "", "relu");
	x = rg_b_node(&b, "MaxPool", "/maxpool/MaxPool", RG_B_IN(x),
		      RG_B_ATTRS(RG_B_INT("ceil_mode", 0), RG_B_INTS("kernel_shape", 3, 3),
				 RG_B_INTS("pads", 1, 1, 1, 1), RG_B_INTS("strides", 2, 2)));
	for (int stage = 0; stage < 4; stage++) {
		int64_t width = (int64_t)64 << stage;

		for (int i = 0; i < blocks[stage]; i++) {
			x = bottleneck(&b, x, rg_b_name(&b, "layer%d.%d", stage + 1, i), in, width,
				       stage > 0 && i == 0 ? 2 : 1);
			in = 4 * width;
		}
	}
	x = rg_b_classifier(&b, x, "fc", 2048, 1000);
	rg_b_output(&b, x, RG_B_DIMS(RG_B_OPEN("batch"), RG_B_DIM(1000)));
	return rg_b_done(&b);
}
