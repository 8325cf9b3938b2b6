/* Calls of ONNX Runtime's fused operators. See check.h. */
#include "check.h"

#include <string.h>

#include "graph/contrib.h"

#define DIMS(...) ((const int64_t[]){ __VA_ARGS__ })

static double deep(const struct nn_case *t)
{
	const struct rg_shape *a = &t->in[0].shape;
	int64_t k = 1;

	/* whichever way it lies: the dimension that the output lacks is one of the two */
	for (int d = a->rank - 1; d >= 0 && d >= a->rank - 2; d--)
		k = a->dim[d] > k ? a->dim[d] : k;
	return (double)(a->rank > 2 && a->dim[0] > k ? a->dim[0] : k);
}

static enum nn_fill fill(struct ck_gen *g)
{
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_UNIFORM, NN_WHOLE, NN_BIG, NN_TINY, NN_NAN, NN_INF };

	return CK_PICK(g, fills);
}

static void fused_gemm(struct nn_case *t, struct ck_gen *g)
{
	static const char *const activations[] = { "Relu", "Relu", "Relu", "LeakyRelu", "Tanh", "Sigmoid", "HardSigmoid" };
	int64_t m = ck_some(g, 60), n = ck_some(g, 60), k = ck_some(g, 200);
	int ta = ck_chance(g, 30), tb = ck_chance(g, 50);
	enum nn_fill f = fill(g), others = f == NN_WHOLE ? f : NN_UNIFORM;
	const char *activation = CK_PICK(g, activations);

	nn_int(t, "transA", ta);
	nn_int(t, "transB", tb);
	nn_string(t, "activation", activation);
	nn_input(t, f, 2, ta ? DIMS(k, m) : DIMS(m, k));
	nn_input(t, others, 2, tb ? DIMS(n, k) : DIMS(k, n));
	if (ck_chance(g, 60))
		nn_input(t, others, 1, ck_chance(g, 50) ? &n : DIMS(1));
	t->whole = t->whole && !strcmp(activation, "Relu");
	t->weights = 6;
}

static void fused_matmul(struct nn_case *t, struct ck_gen *g)
{
	bool fused = !strcmp(t->node.op_type, "FusedMatMul");
	int64_t m = ck_some(g, 40), n = ck_some(g, 40), k = ck_some(g, 100), batch = ck_between(g, 1, 4), a[4], b[4];
	int ta = fused && ck_chance(g, 40), tb = fused && ck_chance(g, 40), rank = (int)ck_between(g, 2, 3);
	int batch_a = fused && rank == 3 && ck_chance(g, 20), batch_b = fused && rank == 3 && ck_chance(g, 20);
	enum nn_fill f = fill(g);

	if (fused) {
		nn_int(t, "transA", ta);
		nn_int(t, "transB", tb);
		nn_int(t, "transBatchA", batch_a);
		nn_int(t, "transBatchB", batch_b);
		if (ck_chance(g, 40))
			nn_float(t, "alpha", 0.125f);
	}
	a[0] = b[0] = batch;
	a[rank - 2] = ta ? k : m;
	a[rank - 1] = ta ? m : k;
	b[rank - 2] = tb ? n : k;
	b[rank - 1] = tb ? k : n;
	/* the batch lies between the two */
	if (batch_a) {
		a[0] = a[1];
		a[1] = batch;
	}
	if (batch_b) {
		b[0] = b[1];
		b[1] = batch;
	}
	nn_input(t, f, rank, a);
	nn_input(t, f == NN_WHOLE ? f : NN_UNIFORM, rank, b);
	t->weights = 2;
}

#define SUM(OP, MAKE) \
	{ .domain = RG_CONTRIB_DOMAIN, .op_type = OP, .make = MAKE, .measure = CK_SUM, .terms = deep, .ulps = 8, \
	  .whole_is_exact = true }

static const struct ck_family families[] = {
	SUM("FusedGemm", fused_gemm),
	SUM("FusedMatMul", fused_matmul),
	SUM("TransposeMatMul", fused_matmul),
};
CK_FAMILY_TABLE(ck_families_fused, families);
