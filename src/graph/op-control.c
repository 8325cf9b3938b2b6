/*
 * Control flow, sequences, optionals, and attention with subgraphs. The executor runs these itself
 * (exec/control.c, exec/sequence.c): what they give is known only then, so
 * inference says what it would need and the nodes land on the dynamic path.
 * An If whose condition is known before is inlined by the compiler.
 */
#include "graph/op-families.h"

/* Depends on data whatever is known. */
static int infer_exec(struct rg_infer *c, struct rg_error *err)
{
	c->need_value = -1;
	return rg_error_set(err, RG_ENEED_VALUE, "%s: its outputs are known only while the model runs",
			    c->node->op_type);
}

/* The condition would settle which branch it is. */
static int infer_if(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_attr *t = rg_node_attr(c->node, "then_branch"), *e = rg_node_attr(c->node, "else_branch");

	if (c->in[0]->dtype != RG_BOOL || rg_shape_count(&c->in[0]->shape) != 1)
		return rg_infer_fail(c, err, "the condition must be one bool");
	if (!t || !t->g || !e || !e->g)
		return rg_infer_fail(c, err, "then_branch or else_branch is missing");
	if (t->g->n_outputs != c->node->n_out || e->g->n_outputs != c->node->n_out)
		return rg_infer_fail(c, err, "it has %d outputs, its branches %d and %d", c->node->n_out,
				     t->g->n_outputs, e->g->n_outputs);
	infer_exec(c, err);
	c->need_value = 0;
	return err->code;
}

#define EXEC(nm, kd, lo_in, hi_in, lo_out, hi_out, first, last, ...) \
	{ .domain = "", .name = nm, .kind = kd, .flags = RG_OP_EXEC, .min_in = lo_in, .max_in = hi_in, \
	  .min_out = lo_out, .max_out = hi_out, .versions = { __VA_ARGS__ }, .supported_from = first, \
	  .supported_to = last, .infer = infer_exec }

const struct rg_op rg_ops_control[] = {
	{ .domain = "", .name = "If", .kind = RG_KIND_CONTROL, .flags = RG_OP_EXEC, .min_in = 1, .max_in = 1,
	  .min_out = 1, .max_out = -1, .versions = { 1, 11, 13, 16, 19, 21, 23, 24, 25 }, .supported_from = 1,
	  .supported_to = 25, .infer = infer_if },
	EXEC("Loop", RG_KIND_CONTROL, 0, -1, 1, -1, 1, 25, 1, 11, 13, 16, 19, 21, 23, 24, 25),
	EXEC("Scan", RG_KIND_CONTROL, 0, -1, 1, -1, 8, 25, 8, 9, 11, 16, 19, 21, 23, 24, 25),
	EXEC("SequenceEmpty", RG_KIND_MOVE, 0, 0, 1, 1, 11, 11, 11),
	EXEC("SequenceConstruct", RG_KIND_MOVE, 1, -1, 1, 1, 11, 11, 11),
	EXEC("SequenceAt", RG_KIND_MOVE, 2, 2, 1, 1, 11, 11, 11),
	EXEC("SequenceInsert", RG_KIND_MOVE, 2, 3, 1, 1, 11, 11, 11),
	EXEC("SequenceErase", RG_KIND_MOVE, 1, 2, 1, 1, 11, 11, 11),
	EXEC("SequenceLength", RG_KIND_MOVE, 1, 1, 1, 1, 11, 11, 11),
	EXEC("SequenceMap", RG_KIND_CONTROL, 1, -1, 1, -1, 17, 17, 17),
	EXEC("SplitToSequence", RG_KIND_MOVE, 1, 2, 1, 1, 11, 24, 11, 24),
	EXEC("ConcatFromSequence", RG_KIND_MOVE, 1, 1, 1, 1, 11, 11, 11),
	EXEC("Optional", RG_KIND_MOVE, 0, 1, 1, 1, 15, 15, 15),
	EXEC("OptionalGetElement", RG_KIND_MOVE, 1, 1, 1, 1, 15, 18, 15, 18),
	EXEC("OptionalHasElement", RG_KIND_MOVE, 0, 1, 1, 1, 15, 18, 15, 18),
	{ .domain = "ai.onnx.preview", .name = "FlexAttention", .kind = RG_KIND_ATTENTION, .flags = RG_OP_EXEC,
	  .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1, .versions = { 1 }, .supported_from = 1,
	  .supported_to = 1, .infer = infer_exec },
};
RG_OP_FAMILY_END(control);
