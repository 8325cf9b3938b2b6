/* Reads the attributes of ONNX Runtime's own operators. */
#include "graph/contrib.h"

#include <string.h>

#include "graph/op-args.h"
#include "graph/op-types.h"

/* ---- as a standard operator ---- */

int rg_infer_as(struct rg_infer *c, const char *op_type, int version, struct rg_error *err)
{
	const struct rg_op *op = rg_op_find("", op_type);
	struct rg_node node = *c->node;
	struct rg_infer standard = *c;
	int rc;

	node.version = version;
	standard.node = &node;
	rc = op->infer(&standard, err);
	c->need_value = standard.need_value;
	return rc;
}

void rg_cost_as(const struct rg_cost_in *c, struct rg_cost *out, const char *op_type, int version)
{
	const struct rg_op *op = rg_op_find("", op_type);
	struct rg_node node = *c->node;
	struct rg_cost_in standard = *c;

	node.version = version;
	standard.node = &node;
	if (op->cost)
		op->cost(&standard, out);
}

int rg_infer_conv_sum(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_as(c, "Conv", 11, err);
	struct rg_window w;
	struct rg_shape out;

	if (!rc)
		rc = rg_infer_like(c, 3, 0, err);
	if (rc || !rg_infer_in(c, 3))
		return rc;
	rc = rg_window_conv(c->node, &c->in[0]->shape, &c->in[1]->shape, &w, err);
	if (rc)
		return rc;
	rg_window_out_shape(&w, &out);
	return rg_infer_shape_is(c, 3, &out, err);
}

/* ---- activations ---- */

static const struct {
	const char *name;
	int n_params;        /* of FusedConv; -1: it does not know this one */
	int n_own;           /* of ridge's own operators; the same */
	bool of_gemm;
	float alpha, second; /* defaults of the operator of that name */
	int flops, sfu;      /* an element; see op-math.c for how they are counted */
} activations[RG_ACT_COUNT] = {
	[RG_ACT_NONE] = { "", 0, 0, false, 0, 0, 0, 0 },
	[RG_ACT_RELU] = { "Relu", 0, 0, true, 0, 0, 1, 0 },
	[RG_ACT_TANH] = { "Tanh", 0, 0, true, 0, 0, 0, 1 },
	[RG_ACT_SIGMOID] = { "Sigmoid", 0, 0, true, 0, 0, 2, 2 },
	[RG_ACT_SILU] = { "Silu", 0, 0, false, 0, 0, 3, 2 },
	[RG_ACT_LEAKY_RELU] = { "LeakyRelu", 1, 1, true, 0.01f, 0, 2, 0 },
	[RG_ACT_CLIP] = { "Clip", 2, 2, false, 0, 0, 2, 0 },
	[RG_ACT_HARD_SIGMOID] = { "HardSigmoid", 2, 2, true, 0.2f, 0.5f, 4, 0 },
	[RG_ACT_ELU] = { "Elu", -1, -1, true, 1, 0, 3, 1 },
	[RG_ACT_SELU] = { "Selu", -1, -1, true, 1.67326319217681884765625f, 1.05070102214813232421875f, 4, 1 },
	[RG_ACT_SOFTPLUS] = { "Softplus", -1, -1, true, 0, 0, 1, 2 },
	[RG_ACT_SOFTSIGN] = { "Softsign", -1, -1, true, 0, 0, 2, 1 },
	[RG_ACT_THRESHOLDED_RELU] = { "ThresholdedRelu", -1, -1, true, 1, 0, 1, 0 },
	[RG_ACT_PARAMETRIC_SOFTPLUS] = { "ParametricSoftplus", -1, -1, true, 1, 1, 3, 2 },
	[RG_ACT_SCALED_TANH] = { "ScaledTanh", -1, -1, true, 1, 1, 2, 1 },
	[RG_ACT_HARD_SWISH] = { "HardSwish", -1, 0, false, 0, 0, 5, 0 },
	[RG_ACT_GELU] = { "Gelu", -1, 0, false, 0, 0, 4, 1 },
	[RG_ACT_GELU_TANH] = { "GeluTanh", -1, 0, false, 0, 0, 8, 1 },
	[RG_ACT_SWISH] = { "Swish", -1, 1, false, 1, 0, 4, 2 },
};

int rg_activation_find(enum rg_activation_of of, const char *name, enum rg_activation_kind *kind)
{
	for (int k = 0; k < RG_ACT_COUNT; k++) {
		if (strcmp(activations[k].name, name) != 0)
			continue;
		*kind = (enum rg_activation_kind)k;
		return of == RG_ACT_OF_CONV ? activations[k].n_params : of == RG_ACT_OF_OWN ? activations[k].n_own :
		       activations[k].of_gemm ? 0 : -1;
	}
	return -1;
}

const char *rg_activation_name(enum rg_activation_kind kind)
{
	return activations[kind].name;
}

const char *rg_activation_read(enum rg_activation_of of, const struct rg_node *node, struct rg_activation *out)
{
	enum rg_activation_kind kind;
	/* where there is no attribute the activation is the empty one, which is none */
	int n = rg_activation_find(of, rg_node_string(node, "activation", ""), &kind);
	const float *params = NULL;

	*out = (struct rg_activation){ RG_ACT_NONE, 0, 0 };
	if (n < 0)
		return "attribute activation names a function that is not supported here";
	out->kind = kind;
	if (n == 0)
		return NULL;
	if (rg_node_floats(node, "activation_params", &params) != n)
		return "attribute activation_params has not as many entries as the activation needs";
	out->a = (double)params[0];
	out->b = n > 1 ? (double)params[1] : 0;
	return NULL;
}

const char *rg_conv_activation(const struct rg_node *node, struct rg_activation *out)
{
	return rg_activation_read(RG_ACT_OF_CONV, node, out);
}

const char *rg_gemm_activation(const struct rg_node *node, struct rg_activation *out)
{
	enum rg_activation_kind k;

	*out = (struct rg_activation){ RG_ACT_NONE, 0, 0 };
	if (rg_activation_find(RG_ACT_OF_GEMM, rg_node_string(node, "activation", ""), &k) < 0)
		return "attribute activation names a function that is not supported here";
	out->kind = k;
	out->a = (double)rg_node_float(node, "activation_alpha", activations[k].alpha);
	out->b = (double)rg_node_float(node, k == RG_ACT_SELU ? "activation_gamma" : "activation_beta",
				       activations[k].second);
	return NULL;
}

void rg_activation_cost(const struct rg_activation *a, int64_t n, struct rg_cost *out)
{
	out->flops = rg_cost_add(out->flops, rg_cost_mul(n, activations[a->kind].flops));
	out->sfu = rg_cost_add(out->sfu, rg_cost_mul(n, activations[a->kind].sfu));
}

/* ---- FusedMatMul ---- */

/* The operand's shape as the product sees it, and the stride of each of its dimensions. */
static void read_transposed(const struct rg_shape *s, bool swap, bool batch_first, struct rg_shape *as,
			    int64_t stride[RG_MAX_RANK])
{
	int64_t own[RG_MAX_RANK];
	int from[RG_MAX_RANK];

	rg_shape_strides(s, own);
	for (int d = 0; d < s->rank; d++)
		from[d] = d;
	if (batch_first && s->rank > 2) { /* the rows are the first dimension, the batches come behind it */
		for (int d = 0; d + 2 < s->rank; d++)
			from[d] = d + 1;
		from[s->rank - 2] = 0;
	}
	if (swap && s->rank > 1) {
		int last = from[s->rank - 1];

		from[s->rank - 1] = from[s->rank - 2];
		from[s->rank - 2] = last;
	}
	as->rank = s->rank;
	for (int d = 0; d < s->rank; d++) {
		as->dim[d] = s->dim[from[d]];
		stride[d] = own[from[d]];
	}
}

static void batch_strides(const struct rg_shape *own, const int64_t *stride, const struct rg_shape *batch,
			  int64_t *out)
{
	int lead = batch->rank - own->rank;

	for (int d = 0; d < batch->rank; d++)
		out[d] = d < lead || own->dim[d - lead] == 1 ? 0 : stride[d - lead];
}

bool rg_fused_matmul_shape(const struct rg_node *node, const struct rg_shape *a, const struct rg_shape *b,
			   struct rg_fused_matmul *out)
{
	struct rg_shape as, bs;
	int64_t sa[RG_MAX_RANK], sb[RG_MAX_RANK];

	if (a->rank < 1 || b->rank < 1)
		return false;
	read_transposed(a, rg_node_int(node, "transA", 0) != 0, rg_node_int(node, "transBatchA", 0) != 0, &as, sa);
	read_transposed(b, rg_node_int(node, "transB", 0) != 0, rg_node_int(node, "transBatchB", 0) != 0, &bs, sb);
	if (!rg_matmul_shape(&as, &bs, &out->p))
		return false;
	out->a_row = a->rank > 1 ? sa[a->rank - 2] : 0;
	out->a_col = sa[a->rank - 1];
	out->b_row = sb[b->rank > 1 ? b->rank - 2 : 0];
	out->b_col = b->rank > 1 ? sb[b->rank - 1] : 0;
	batch_strides(&out->p.batch_a, sa, &out->p.batch, out->a_batch);
	batch_strides(&out->p.batch_b, sb, &out->p.batch, out->b_batch);
	return true;
}

/* ---- on bytes ---- */

int rg_byte_pool_window(const struct rg_node *node, const struct rg_shape *x, bool channels_last,
			struct rg_window *win, struct rg_shape *out, struct rg_error *err)
{
	struct rg_shape s = *x;
	int last = s.rank - 1;

	if (!channels_last || s.rank < 3) {
		int rc = rg_window_pool(node, x, win, err);

		if (!rc)
			rg_window_out_shape(win, out);
		return rc;
	}
	for (int d = last; d > 1; d--)
		s.dim[d] = x->dim[d - 1];
	s.dim[1] = x->dim[last];
	if (rg_window_pool(node, &s, win, err))
		return err->code;
	*out = *x;
	for (int d = 1; d < last; d++)
		out->dim[d] = win->out[d - 1];
	return 0;
}

bool rg_byte_softmax_rows(const struct rg_node *node, const struct rg_shape *s, struct rg_rows *out)
{
	int axis = rg_args_axis(rg_node_int(node, "axis", -1), s->rank), end;

	if (axis < 0)
		return false;
	end = rg_node_int(node, "opset", 13) < 13 ? s->rank : axis + 1;
	out->outer = rg_shape_count_range(s, 0, axis);
	out->n = rg_shape_count_range(s, axis, end);
	out->inner = rg_shape_count_range(s, end, s->rank);
	return true;
}

/* ---- blocks of a few bits ---- */

#define DIM_MAX ((int64_t)1 << 40) /* products of a dimension and the bits of an element stay far from overflow */

static bool is_block(int64_t v)
{
	return v >= 16 && v <= DIM_MAX && (v & (v - 1)) == 0;
}

const char *rg_nbits_layout(const struct rg_node *node, struct rg_nbits *out)
{
	struct rg_nbits l = { .k = rg_node_int(node, "K", -1), .n = rg_node_int(node, "N", -1),
			      .bits = rg_node_int(node, "bits", 4), .block = rg_node_int(node, "block_size", -1) };

	*out = l;
	if (l.k < 1 || l.n < 1 || l.k > DIM_MAX || l.n > DIM_MAX)
		return "attributes K and N must be given and positive";
	if (l.bits != 2 && l.bits != 4 && l.bits != 8)
		return "attribute bits is not 2, 4 or 8";
	if (!is_block(l.block))
		return "attribute block_size is not a power of two from 16 on";
	if (rg_node_int(node, "weight_prepacked", 0) != 0)
		return "weights that are packed for another device (weight_prepacked) are not supported";
	l.blocks = (l.k + l.block - 1) / l.block;
	l.blob_bytes = l.block * l.bits / 8;
	l.zero_row_bytes = (l.blocks * l.bits + 7) / 8;
	*out = l;
	return NULL;
}

const char *rg_bnb4_layout(const struct rg_node *node, struct rg_bnb4 *out)
{
	int64_t type = rg_node_int(node, "quant_type", -1);

	*out = (struct rg_bnb4){ rg_node_int(node, "K", -1), rg_node_int(node, "N", -1),
				 rg_node_int(node, "block_size", -1), type == 1,
				 rg_node_int(node, "transB", 1) != 0 };
	if (out->k < 1 || out->n < 1 || out->k > DIM_MAX || out->n > DIM_MAX)
		return "attributes K and N must be given and positive";
	if (type != 0 && type != 1)
		return "attribute quant_type is neither 0 (FP4) nor 1 (NF4)";
	if (!is_block(out->block))
		return "attribute block_size is not a power of two from 16 on";
	return NULL;
}

static void set_gathered(const struct rg_shape *indices, int axis, struct rg_gather_blocks *g)
{
	const struct rg_shape *s = &g->data;

	g->outer = rg_shape_count_range(s, 0, axis);
	g->dim = s->dim[axis];
	g->inner = rg_shape_count_range(s, axis + 1, s->rank);
	g->out = rg_shape_of(axis, s->dim);
	for (int d = 0; d < indices->rank; d++)
		g->out.dim[g->out.rank++] = indices->dim[d];
	for (int d = axis + 1; d < s->rank; d++)
		g->out.dim[g->out.rank++] = s->dim[d];
}

const char *rg_gather_blocks_layout(const struct rg_node *node, enum rg_dtype type, const struct rg_shape *data,
				    const struct rg_shape *indices, struct rg_gather_blocks *out)
{
	struct rg_gather_blocks g = { .data = *data, .is_signed = type == RG_I4 };
	int axis = rg_args_axis(rg_node_int(node, "gather_axis", 0), data->rank);
	int q = rg_args_axis(rg_node_int(node, "quantize_axis", 1), data->rank);
	int64_t bits = rg_node_int(node, "bits", 4), last;
	int per_byte;

	if (axis < 0 || q < 0)
		return "attribute gather_axis or quantize_axis is outside of the data";
	g.block = rg_node_int(node, "block_size", 128);
	if (!is_block(g.block))
		return "attribute block_size is not a power of two from 16 on";
	if (type == RG_U8 ? bits != 2 && bits != 4 && bits != 8 : bits != 4)
		return "attribute bits does not go with the type of the data";
	if (type == RG_U8 && (axis != 0 || q != data->rank - 1 || axis == q))
		return "uint8 data must be gathered along the first axis and quantised along the last";
	if (data->rank + indices->rank - 1 > RG_MAX_RANK)
		return "the output has too many dimensions";
	g.bits = (int)bits;
	per_byte = type == RG_U8 ? 8 / g.bits : 1; /* elements that one of the data's shape stands for */
	last = data->dim[data->rank - 1];
	if (last > DIM_MAX)
		return "the data is too large";
	g.data.dim[data->rank - 1] = last * per_byte;
	if (rg_shape_count(&g.data) < 0)
		return "the data is too large";
	set_gathered(indices, axis, &g);
	g.q_dim = g.data.dim[q];
	g.q_inner = rg_shape_count_range(&g.data, q + 1, data->rank);
	g.q_blocks = g.q_dim / g.block + (g.q_dim % g.block != 0);
	g.scales = g.data;
	g.scales.dim[q] = g.q_blocks;
	g.zeros = g.scales;
	if (per_byte > 1) {
		g.zeros.dim[q] = (g.q_blocks + per_byte - 1) / per_byte;
		g.zero_row = g.q_blocks;
	}
	g.zero = type == RG_U8 ? (double)(1 << (g.bits - 1)) : 0;
	*out = g;
	return NULL;
}
