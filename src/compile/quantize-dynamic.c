/*
 * See quantize.h: ranges found as the model runs.
 *
 *	X, sx, zx = DynamicQuantizeLinear(x)        once, however many products read x
 *	y = Cast(MatMulInteger(X, W, zx)) * (sx * sw)   + bias
 *
 * which is what ONNX Runtime's quantize_dynamic writes and what runtimes know.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/quantize.h"

struct dynamic { int q, scale, zero; }; /* values; q -1: not made yet */

static int quantize_input(struct rg_graph *g, int value, struct dynamic *d, struct rg_error *err)
{
	const char *name = g->values[value].name;
	int out[3], rc;
	char *node;

	out[0] = rg_quantize_value(g, name, ":quantized", err);
	out[1] = out[0] < 0 ? out[0] : rg_quantize_value(g, name, ":scale", err);
	out[2] = out[1] < 0 ? out[1] : rg_quantize_value(g, name, ":zero", err);
	if (out[2] < 0)
		return out[2];
	node = rg_asprintf("%s/DynamicQuantizeLinear", name);
	if (!node)
		return rg_error_nomem(err, strlen(name));
	rc = rg_graph_add_node(g, "", "DynamicQuantizeLinear", node, 1, &value, 3, out, 0, NULL, err);
	rg_free(node);
	if (rc < 0)
		return rc;
	*d = (struct dynamic){ out[0], out[1], out[2] };
	return 0;
}

/* Cast has its type as an attribute of its own. */
static int add_cast(struct rg_graph *g, const char *name, int in, int out, struct rg_error *err)
{
	struct rg_attr attr = { .name = "to", .type = RG_ATTR_INT, .i = RG_F32 };
	char *node = rg_asprintf("%s/Cast", name);
	int rc;

	if (!node)
		return rg_error_nomem(err, strlen(name));
	rc = rg_graph_add_node(g, "", "Cast", node, 1, &in, 1, &out, 1, &attr, err);
	rg_free(node);
	return rc;
}

/* The alpha of a Gemm goes into the scales of its weights. */
static void multiply_scales(struct rg_graph *g, int scale, float by)
{
	float *v = (float *)(uintptr_t)g->values[scale].data; /* made here, read by nobody yet */

	for (int64_t i = 0; i < rg_shape_count(&g->values[scale].shape); i++)
		v[i] *= by;
}

static int rewrite(struct rg_graph *g, const struct rg_quantize_site *s, const struct dynamic *d, struct rg_error *err)
{
	struct rg_node n = g->nodes[s->node]; /* its array moves as nodes are added */
	bool gemm = strcmp(n.op_type, "Gemm") == 0;
	int bias = gemm && n.n_in > 2 ? n.in[2] : -1, sum, real, scale, product, rc;
	struct rg_quantize_site without = *s;
	struct rg_quantize_weight w;

	without.bias = -1;
	rc = rg_quantize_make_weight(g, &without, 0, gemm && rg_node_int(&n, "transB", 0), NULL, &w, err);
	if (rc)
		return rc;
	if (gemm)
		multiply_scales(g, w.scale, rg_node_float(&n, "alpha", 1));
	sum = rg_quantize_value(g, n.name, ":sum", err);
	real = sum < 0 ? sum : rg_quantize_value(g, n.name, ":float", err);
	scale = real < 0 ? real : rg_quantize_value(g, n.name, ":scales", err);
	product = scale < 0 ? scale : bias < 0 ? n.out[0] : rg_quantize_value(g, n.name, ":product", err);
	if (product < 0)
		return product;
	rc = rg_quantize_add_node(g, "MatMulInteger", n.name, 3, (int[]){ d->q, w.q, d->zero }, sum, -1, err);
	if (rc >= 0)
		rc = add_cast(g, n.name, sum, real, err);
	if (rc >= 0)
		rc = rg_quantize_add_node(g, "Mul", g->values[scale].name, 2, (int[]){ d->scale, w.scale }, scale, -1, err);
	if (rc >= 0)
		rc = rg_quantize_add_node(g, "Mul", n.name, 2, (int[]){ real, scale }, product, -1, err);
	if (rc >= 0 && bias >= 0)
		rc = rg_quantize_add_node(g, "Add", n.name, 2, (int[]){ product, bias }, n.out[0], -1, err);
	return rc < 0 ? rc : 0;
}

int rg_quantize_dynamic(struct rg_graph *g, const struct rg_quantize_options *o, const struct rg_quantize_sites *s,
			const bool *on, struct rg_error *err)
{
	int n_nodes = g->n_nodes, rc = 0;
	unsigned char *gone = rg_calloc((size_t)n_nodes + 1, 1);
	struct dynamic *inputs = rg_calloc((size_t)g->n_values + 1, sizeof(*inputs));

	if (!gone || !inputs)
		rc = rg_error_nomem(err, (size_t)g->n_values * sizeof(*inputs));
	for (int v = 0; v < g->n_values && !rc; v++)
		inputs[v].q = -1;
	for (int i = 0; i < s->n && !rc; i++) {
		int value = s->v[i].act[0];

		if (!on[i])
			continue;
		if (inputs[value].q < 0)
			rc = quantize_input(g, value, &inputs[value], err);
		if (!rc)
			rc = rewrite(g, &s->v[i], &inputs[value], err);
		gone[s->v[i].node] = 1;
	}
	if (!rc)
		rc = rg_graph_drop_nodes(g, gone, n_nodes, err);
	rg_free(gone);
	rg_free(inputs);
	return rc;
}
