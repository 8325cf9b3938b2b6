/*
 * builtin:vgg16: Simonyan, Zisserman, "Very Deep Convolutional Networks for
 * Large-Scale Image Recognition" (ICLR 2015), configuration D, as torchvision
 * builds it without batch normalisation. Its adaptive pooling to 7x7 changes
 * nothing at 224x224 and is left out, as are the dropouts.
 */
#include "models/builtin-list.h"
#include "models/builder.h"

static int relu(struct rg_builder *b, int x, const char *scope)
{
	return rg_b_node(b, "Relu", rg_b_name(b, "/%s/Relu", scope), RG_B_IN(x), RG_B_NO_ATTRS);
}

static int conv3x3(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t out)
{
	int w = rg_b_he(b, rg_b_name(b, "%s.weight", scope), rg_shape_of(4, (int64_t[]){ out, in, 3, 3 }),
			in * 9);
	int bias = rg_b_weight(b, rg_b_name(b, "%s.bias", scope), rg_shape_of(1, &out), -0.1f, 0.1f);

	return rg_b_node(b, "Conv", rg_b_name(b, "/%s/Conv", scope), RG_B_IN(x, w, bias),
			 RG_B_ATTRS(RG_B_INTS("dilations", 1, 1), RG_B_INT("group", 1),
				    RG_B_INTS("kernel_shape", 3, 3), RG_B_INTS("pads", 1, 1, 1, 1),
				    RG_B_INTS("strides", 1, 1)));
}

static int linear(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t out)
{
	int w = rg_b_he(b, rg_b_name(b, "%s.weight", scope), rg_shape_of(2, (int64_t[]){ out, in }), in);
	int bias = rg_b_weight(b, rg_b_name(b, "%s.bias", scope), rg_shape_of(1, &out), -0.1f, 0.1f);

	return rg_b_node(b, "Gemm", rg_b_name(b, "/%s/Gemm", scope), RG_B_IN(x, w, bias),
			 RG_B_ATTRS(RG_B_FLOAT("alpha", 1.0f), RG_B_FLOAT("beta", 1.0f),
				    RG_B_INT("transB", 1)));
}

int rg_builtin_vgg16(struct rg_graph *g, struct rg_error *err)
{
	/* Channels of the convolutions; 0 is a 2x2 maximum. */
	static const int64_t layers[] = { 64, 64, 0, 128, 128, 0, 256, 256, 256, 0,
					  512, 512, 512, 0, 512, 512, 512, 0 };
	struct rg_dim dims[] = { RG_B_OPEN("batch"), RG_B_DIM(3), RG_B_DIM(224), RG_B_DIM(224) };
	struct rg_builder b;
	int64_t channels = 3;
	int x, at = 0; /* torchvision numbers the layers, a ReLU being one */

	rg_b_start(&b, g, "vgg16", 17, err);
	x = rg_b_input(&b, "input", RG_F32, 4, dims);
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		if (!layers[i]) {
			x = rg_b_node(&b, "MaxPool", rg_b_name(&b, "/features.%d/MaxPool", at++), RG_B_IN(x),
				      RG_B_ATTRS(RG_B_INTS("kernel_shape", 2, 2), RG_B_INTS("strides", 2, 2)));
			continue;
		}
		x = conv3x3(&b, x, rg_b_name(&b, "features.%d", at), channels, layers[i]);
		x = relu(&b, x, rg_b_name(&b, "features.%d", at + 1));
		channels = layers[i];
		at += 2;
	}
	x = rg_b_node(&b, "Flatten", "/Flatten", RG_B_IN(x), RG_B_ATTRS(RG_B_INT("axis", 1)));
	x = relu(&b, linear(&b, x, "classifier.0", 512 * 7 * 7, 4096), "classifier.1");
	x = relu(&b, linear(&b, x, "classifier.3", 4096, 4096), "classifier.4");
	rg_b_output(&b, linear(&b, x, "classifier.6", 4096, 1000),
		    RG_B_DIMS(RG_B_OPEN("batch"), RG_B_DIM(1000)));
	return rg_b_done(&b);
}
