/*
 * builtin:mlp, a multi-layer perceptron with two hidden layers:
 *
 *   input [batch, 784] - Gemm 784x2048 - Relu - Gemm 2048x2048 - Relu -
 *   Gemm 2048x10 - output [batch, 10]
 *
 * 784*2048 + 2048 + 2048*2048 + 2048 + 2048*10 + 10 = 5,824,522 parameters.
 */
#include "models/builder.h"
#include "models/builtin-list.h"

static int linear(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t out)
{
	int w = rg_b_he(b, rg_b_name(b, "%s.weight", scope), rg_shape_of(2, (int64_t[]){ out, in }), in);
	int bias = rg_b_weight(b, rg_b_name(b, "%s.bias", scope), rg_shape_of(1, &out), -0.1f, 0.1f);

	return rg_b_node(b, "Gemm", rg_b_name(b, "/%s/Gemm", scope), RG_B_IN(x, w, bias),
			 RG_B_ATTRS(RG_B_INT("transB", 1)));
}

int rg_builtin_mlp(struct rg_graph *g, struct rg_error *err)
{
	struct rg_dim dims[] = { RG_B_OPEN("batch"), RG_B_DIM(784) };
	struct rg_builder b;
	int x;

	rg_b_start(&b, g, "mlp", 17, err);
	x = rg_b_input(&b, "input", RG_F32, 2, dims);
	x = linear(&b, x, "fc1", 784, 2048);
	x = rg_b_node(&b, "Relu", "/relu1/Relu", RG_B_IN(x), RG_B_NO_ATTRS);
	x = linear(&b, x, "fc2", 2048, 2048);
	x = rg_b_node(&b, "Relu", "/relu2/Relu", RG_B_IN(x), RG_B_NO_ATTRS);
	x = linear(&b, x, "fc3", 2048, 10);
	rg_b_output(&b, x, RG_B_DIMS(RG_B_OPEN("batch"), RG_B_DIM(10)));
	return rg_b_done(&b);
}
