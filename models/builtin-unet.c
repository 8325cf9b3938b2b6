/*
 * builtin:unet: Ronneberger, Fischer, Brox, "U-Net" (MICCAI 2015), in the small
 * form with batch normalisation and padded convolutions that Buda, Saha and
 * Mazurowski (2019) published for brain MRI: 3 channels in, 1 out, 32 features
 * at full resolution, four halvings, and as many ConvTranspose 2x2 of stride 2
 * on the way up, each followed by a Concat with what the way down left.
 * Height and width must be multiples of 16.
 */
#include "models/builtin-conv.h"
#include "models/builtin-list.h"

#define LEVELS 4
#define FEATURES 32

/* Twice: 3x3 convolution, batch normalisation, ReLU. */
static int block(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t out)
{
	for (int i = 1; i <= 2; i++) {
		x = rg_b_conv2d(b, x, rg_b_name(b, "%s.conv%d", scope, i),
				&(struct rg_b_conv){ i == 1 ? in : out, out, 3, 1, 1, 1 });
		x = rg_b_batch_norm_plain(b, x, rg_b_name(b, "%s.norm%d", scope, i), out);
		x = rg_b_node(b, "Relu", rg_b_name(b, "/%s/Relu_%d", scope, i), RG_B_IN(x), RG_B_NO_ATTRS);
	}
	return x;
}

static int up(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t out)
{
	/* Stride and kernel are the same: each output element is a sum over `in`. */
	int w = rg_b_glorot(b, rg_b_name(b, "%s.weight", scope), rg_shape_of(4, (int64_t[]){ in, out, 2, 2 }),
			    in, in);
	int bias = rg_b_weight(b, rg_b_name(b, "%s.bias", scope), rg_shape_of(1, &out), -0.1f, 0.1f);

	return rg_b_node(b, "ConvTranspose", rg_b_name(b, "/%s/ConvTranspose", scope), RG_B_IN(x, w, bias),
			 RG_B_ATTRS(RG_B_INTS("dilations", 1, 1), RG_B_INT("group", 1),
				    RG_B_INTS("kernel_shape", 2, 2), RG_B_INTS("pads", 0, 0, 0, 0),
				    RG_B_INTS("strides", 2, 2)));
}

int rg_builtin_unet(struct rg_graph *g, struct rg_error *err)
{
	struct rg_dim dims[] = { RG_B_OPEN("batch"), RG_B_DIM(3), RG_B_OPEN("height"), RG_B_OPEN("width") };
	struct rg_builder b;
	int64_t in = 3, one = 1;
	int x, w, bias, skip[LEVELS];

	rg_b_start(&b, g, "unet", 17, err);
	x = rg_b_input(&b, "input", RG_F32, 4, dims);
	for (int i = 0; i < LEVELS; i++) {
		int64_t out = (int64_t)FEATURES << i;

		skip[i] = block(&b, x, rg_b_name(&b, "encoder%d", i + 1), in, out);
		x = rg_b_node(&b, "MaxPool", rg_b_name(&b, "/pool%d/MaxPool", i + 1), RG_B_IN(skip[i]),
			      RG_B_ATTRS(RG_B_INTS("kernel_shape", 2, 2), RG_B_INTS("strides", 2, 2)));
		in = out;
	}
	x = block(&b, x, "bottleneck", in, 2 * in);
	for (int i = LEVELS - 1; i >= 0; i--) {
		int64_t out = (int64_t)FEATURES << i;

		x = up(&b, x, rg_b_name(&b, "upconv%d", i + 1), 2 * out, out);
		x = rg_b_node(&b, "Concat", rg_b_name(&b, "/decoder%d/Concat", i + 1), RG_B_IN(x, skip[i]),
			      RG_B_ATTRS(RG_B_INT("axis", 1)));
		x = block(&b, x, rg_b_name(&b, "decoder%d", i + 1), 2 * out, out);
	}
	w = rg_b_glorot(&b, "conv.weight", rg_shape_of(4, (int64_t[]){ 1, FEATURES, 1, 1 }), FEATURES, 1);
	bias = rg_b_weight(&b, "conv.bias", rg_shape_of(1, &one), -0.1f, 0.1f);
	x = rg_b_node(&b, "Conv", "/conv/Conv", RG_B_IN(x, w, bias),
		      RG_B_ATTRS(RG_B_INTS("dilations", 1, 1), RG_B_INT("group", 1),
				 RG_B_INTS("kernel_shape", 1, 1), RG_B_INTS("pads", 0, 0, 0, 0),
				 RG_B_INTS("strides", 1, 1)));
	x = rg_b_node(&b, "Sigmoid", "/Sigmoid", RG_B_IN(x), RG_B_NO_ATTRS);
	rg_b_output(&b, x, RG_B_DIMS(RG_B_OPEN("batch"), RG_B_DIM(1), RG_B_OPEN("height"), RG_B_OPEN("width")));
	return rg_b_done(&b);
}
