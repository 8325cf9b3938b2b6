/*
 * MatMul and Gemm, ONNX Runtime's FusedMatMul and FusedGemm, and ridge's own FusedGemm,
 * on multiply.h: any strides, batches that broadcast, constant operands packed at plan
 * time, bias, residual and activations before the sums are stored or as they are.
 */
#include "kernels/generic/generic.h"

#include "graph/op-gemm.h"
#include "graph/own.h"
#include "kernels/generic/batch.h"
#include "kernels/generic/multiply.h"
#include "kernels/tables.h"

/* A node as a product. */
struct product {
	int64_t m, n, k;
	struct rg_batch batch;
	struct rg_matrix a, b;      /* strides only */
	struct rg_epilogue e;       /* without pointers */
	bool has_bias;
};

static bool f32(const struct rg_call *c)
{
	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_UNDEFINED)
			return false;
	return true;
}

static void no_epilogue(struct product *p)
{
	p->e = (struct rg_epilogue){ .alpha = 1, .beta = 1 };
}

static bool describe_gemm(const struct rg_call *c, struct product *p)
{
	const struct rg_shape *a = &c->in[0].shape, *b = &c->in[1].shape;
	bool ta = rg_node_int(c->node, "transA", 0), tb = rg_node_int(c->node, "transB", 0);
	int64_t strides[RG_MAX_RANK];

	memset(p, 0, sizeof(*p));
	no_epilogue(p);
	if (!rg_gemm_shape(c->node, a, b, &p->m, &p->n, &p->k))
		return false;
	p->batch.count = 1;
	p->a.row = ta ? 1 : p->k;
	p->a.col = ta ? p->m : 1;
	p->b.row = tb ? 1 : p->n;
	p->b.col = tb ? p->k : 1;
	p->e.alpha = rg_node_float(c->node, "alpha", 1);
	p->e.beta = rg_node_float(c->node, "beta", 1);
	/* beta 0 means that C is not read: it may hold NaN */
	p->has_bias = c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED && p->e.beta != 0;
	if (p->has_bias) {
		struct rg_shape out = rg_shape_of(2, (const int64_t[]){ p->m, p->n });

		rg_shape_broadcast_strides(&c->in[2].shape, &out, strides);
		p->e.bias_row = strides[0];
		p->e.bias_col = strides[1];
	}
	return true;
}

/* Only what is done on the way to memory. */
static bool describe_fused_gemm(const struct rg_call *c, struct product *p)
{
	struct rg_finish f = { .scale = 1 };

	if (!describe_gemm(c, p))
		return false;
	if (strcmp(c->node->domain, RG_OWN_DOMAIN) == 0 ? rg_own_finish(c->node, &f) : rg_gemm_activation(c->node, &f.act))
		return false;
	p->e.residual_row = p->n;
	return rg_epilogue_activate(&p->e, &f);
}

static bool describe_matmul(const struct rg_call *c, struct product *p)
{
	int64_t sa[RG_MAX_RANK], sb[RG_MAX_RANK];
	struct rg_matmul s;

	memset(p, 0, sizeof(*p));
	no_epilogue(p);
	if (!rg_matmul_shape(&c->in[0].shape, &c->in[1].shape, &s))
		return false;
	p->m = s.m, p->n = s.n, p->k = s.k;
	p->a.row = s.k, p->a.col = 1;
	p->b.row = s.n, p->b.col = 1;
	p->batch.count = rg_shape_count(&s.batch);
	p->batch.rank = s.batch.rank;
	rg_shape_broadcast_strides(&s.batch_a, &s.batch, sa);
	rg_shape_broadcast_strides(&s.batch_b, &s.batch, sb);
	for (int d = 0; d < p->batch.rank; d++) {
		p->batch.dim[d] = s.batch.dim[d];
		p->batch.a_step[d] = sa[d] * s.m * s.k;
		p->batch.b_step[d] = sb[d] * s.k * s.n;
	}
	rg_batch_join(&p->batch, &p->m, p->a.row, p->a.col);
	return true;
}

static bool describe_fused_matmul(const struct rg_call *c, struct product *p)
{
	struct rg_fused_matmul s;

	memset(p, 0, sizeof(*p));
	no_epilogue(p);
	if (!rg_fused_matmul_shape(c->node, &c->in[0].shape, &c->in[1].shape, &s))
		return false;
	p->m = s.p.m, p->n = s.p.n, p->k = s.p.k;
	p->a.row = s.a_row, p->a.col = s.a_col;
	p->b.row = s.b_row, p->b.col = s.b_col;
	p->e.alpha = rg_node_float(c->node, "alpha", 1);
	p->batch.count = rg_shape_count(&s.p.batch);
	p->batch.rank = s.p.batch.rank;
	for (int d = 0; d < p->batch.rank; d++) {
		p->batch.dim[d] = s.p.batch.dim[d];
		p->batch.a_step[d] = s.a_batch[d];
		p->batch.b_step[d] = s.b_batch[d];
	}
	rg_batch_join(&p->batch, &p->m, p->a.row, p->a.col);
	return true;
}

typedef bool describe_fn(const struct rg_call *c, struct product *p);

static describe_fn *describe_of(const struct rg_call *c)
{
	switch (c->node->op_type[0]) {
	case 'G':
		return describe_gemm;
	case 'M':
		return describe_matmul;
	default:
		return strcmp(c->node->op_type, "FusedGemm") == 0 ? describe_fused_gemm : describe_fused_matmul;
	}
}

/* A constant B is packed at plan time where one product reads it. One row of A reads B
 * fastest as it lies, several rows of B side by side. */
static bool packs_b(const struct rg_call *c, const struct product *p)
{
	return c->in[1].data && p->batch.count == 1 && !(p->m == 1 && p->b.col == 1);
}

static bool make_plan(const struct product *p, bool b_packed, int lanes, struct rg_multiply_plan *plan)
{
	return rg_multiply_plan_make(plan, p->m, p->n, p->k, p->batch.count, &p->a, false, &p->b, b_packed, lanes);
}

static bool supports(const struct rg_call *c)
{
	struct rg_multiply_plan plan;
	struct product p;

	return f32(c) && describe_of(c)(c, &p) && make_plan(&p, packs_b(c, &p), 1, &plan);
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_multiply_plan plan;
	struct product p;

	if (!describe_of(c)(c, &p) || !make_plan(&p, packs_b(c, &p), lanes, &plan))
		return 0;
	return rg_multiply_scratch_bytes(&plan);
}

static size_t prepared_bytes(const struct rg_call *c)
{
	struct product p;

	if (!describe_of(c)(c, &p) || !packs_b(c, &p))
		return 0;
	return (size_t)rg_multiply_packed_b_floats(p.n, p.k) * sizeof(float);
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	struct product p;

	(void)err;
	describe_of(c)(c, &p);
	p.b.data = c->in[1].data;
	rg_multiply_pack_b(&p.b, p.n, p.k, 0, (p.n + RG_TILE_COLS - 1) / RG_TILE_COLS, prepared);
	return 0;
}

static void offsets(const struct rg_multiply *mul, int64_t i, int64_t *a, int64_t *b, int64_t *c)
{
	const struct product *p = mul->at_ctx;

	*c = i * p->m * p->n;
	rg_batch_at(&p->batch, i, a, b);
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct rg_multiply mul;
	struct product p;

	describe_of(c)(c, &p);
	if (!make_plan(&p, c->prepared != NULL, par->lanes, &mul.plan))
		return rg_error_set(err, -EOVERFLOW, "the product is too large");
	mul.a = p.a;
	mul.b = p.b;
	mul.a.data = c->in[0].data;
	mul.b.data = c->in[1].data;
	mul.b.packed = c->prepared;
	mul.c = c->out[0].data;
	mul.c_row = p.n;
	if (p.has_bias)
		p.e.bias = c->in[2].data;
	if (c->node->n_in > 3)
		p.e.residual = c->in[3].data;
	mul.e = &p.e;
	mul.at = offsets;
	mul.at_ctx = &p;
	mul.scratch = c->scratch;
	rg_multiply_run(&mul, par);
	return 0;
}

/* Executed: columns are multiplied in whole panels. Between registers and L1: a tile
 * reads its rows of A and its panel of B, and writes C once for each block of k. */
static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	struct rg_multiply_plan plan;
	double cols, tiles, blocks, flops, reads, writes;
	struct product p;

	out->executed_flops = out->read_bytes = out->write_bytes = -1;
	if (!describe_of(c)(c, &p) || !make_plan(&p, packs_b(c, &p), 1, &plan))
		return;
	cols = (double)((p.n + RG_VEC - 1) / RG_VEC * RG_VEC);
	tiles = (double)((p.n + RG_TILE_COLS - 1) / RG_TILE_COLS);
	blocks = p.k ? (double)((p.k + plan.kc - 1) / plan.kc) : 1;
	flops = 2.0 * (double)p.m * cols * (double)p.k;
	reads = (double)p.m * (double)p.k * tiles + cols * (double)p.k * (double)((p.m + plan.mr - 1) / plan.mr) +
		(double)p.m * (double)p.n * (blocks - 1 + (p.has_bias ? 1 : 0));
	writes = (double)p.m * (double)p.n * blocks;
	if (plan.pack_a) {
		double packs = (double)p.m * (double)p.k;

		reads += packs, writes += packs;
	}
	if (plan.pack_b) {
		double packs = cols * (double)p.k;

		reads += packs, writes += packs;
	}
	flops *= (double)p.batch.count, reads *= (double)p.batch.count * sizeof(float), writes *= (double)p.batch.count * sizeof(float);
	if (flops < 9e18 && reads < 9e18 && writes < 9e18) {
		out->executed_flops = (int64_t)flops;
		out->read_bytes = (int64_t)reads;
		out->write_bytes = (int64_t)writes;
	}
}

#define K(OP, DOMAIN) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("tiled"), .isa = RG_LEVEL_ISA, \
	  .rank = 54 + RG_LEVEL_RANK * 3, .supports = supports, .scratch_bytes = scratch_bytes, \
	  .prepared_bytes = prepared_bytes, .prepare = prepare, .packs = 1u << 1, .traffic = traffic, .run = run }
static const struct rg_kernel kernels[] = {
	K("Gemm", ""),
	K("MatMul", ""),
	K("FusedGemm", RG_CONTRIB_DOMAIN),
	K("FusedMatMul", RG_CONTRIB_DOMAIN),
	K("TransposeMatMul", RG_CONTRIB_DOMAIN),
	K("FusedGemm", RG_OWN_DOMAIN),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(gemm), kernels);
