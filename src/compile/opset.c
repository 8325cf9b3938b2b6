/*
 * An operator's versions are those at which its definition was published anew. Most add
 * types, or an attribute whose default keeps the old meaning: nothing has to be done. The
 * table below lists the others, from opset 7 on (before it broadcasting was another one),
 * as the operator changelog of ONNX tells them. A node is carried from version to version.
 */
#include "compile/opset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/op.h"

enum { OLDEST = 7 };

/* One node on its way to a newer version. */
struct move {
	struct rg_graph *g;
	struct rg_node *n;
	int64_t target;
	bool dry;                   /* only asked whether it can be done: nothing is changed */
	struct rg_error *err;       /* set by what fails for another reason than the node itself */
};

/* Takes the node over one version; NULL, or why it cannot be. */
typedef const char *step_fn(struct move *m);

/* ---- what steps are made of ---- */

static void drop_attr(struct move *m, const char *name)
{
	int kept = 0;

	if (m->dry)
		return;
	for (int i = 0; i < m->n->n_attrs; i++)
		if (strcmp(m->n->attrs[i].name, name) != 0)
			m->n->attrs[kept++] = m->n->attrs[i];
	m->n->n_attrs = kept;
}

/* Replaces an attribute, or adds it. */
static void set_attr(struct move *m, struct rg_attr a)
{
	struct rg_attr *all;

	if (m->dry)
		return;
	drop_attr(m, a.name);
	all = rg_arena_alloc(m->g->arena, (size_t)m->n->n_attrs + 1, sizeof(*all));
	if (!all) {
		rg_error_nomem(m->err, sizeof(*all));
		return;
	}
	if (m->n->n_attrs)
		memcpy(all, m->n->attrs, (size_t)m->n->n_attrs * sizeof(*all));
	all[m->n->n_attrs++] = a;
	m->n->attrs = all;
}

static void set_int(struct move *m, const char *name, int64_t i)
{
	set_attr(m, (struct rg_attr){ .name = name, .type = RG_ATTR_INT, .i = i });
}

static void set_string(struct move *m, const char *name, const char *s)
{
	set_attr(m, (struct rg_attr){ .name = name, .type = RG_ATTR_STRING, .s = s, .s_len = strlen(s) });
}

static bool name_is_free(const struct rg_graph *g, const char *name)
{
	for (; g; g = g->outer)
		if (rg_graph_find_value(g, name) >= 0)
			return false;
	return true;
}

static void set_input(struct move *m, int at, int value)
{
	struct rg_node *n = m->n;
	int count = at + 1 > n->n_in ? at + 1 : n->n_in;
	int *in = rg_arena_alloc(m->g->arena, (size_t)count, sizeof(*in));

	if (!in) {
		rg_error_nomem(m->err, (size_t)count * sizeof(*in));
		return;
	}
	for (int i = 0; i < count; i++)
		in[i] = i < n->n_in ? n->in[i] : -1;
	in[at] = value;
	n->in = in;
	n->n_in = count;
}

/* A constant of the graph that is the same already; -1: none. Models have the same axes many times. */
static int find_constant(const struct rg_graph *g, enum rg_dtype t, const struct rg_shape *shape,
			 const void *data, size_t bytes)
{
	for (int i = 0; i < g->n_values; i++) {
		const struct rg_value *v = &g->values[i];

		if (v->origin != RG_CONST_NONE && v->origin != RG_CONST_BOUND && v->producer < 0 &&
		    !v->from_outer && !v->is_output && v->data && v->dtype == t &&
		    rg_shape_equal(&v->shape, shape) && memcmp(v->data, data, bytes) == 0)
			return i;
	}
	return -1;
}

/* Makes input `at` a constant, named after node and parameter where it is new. */
static void set_constant(struct move *m, int at, const char *what, enum rg_dtype t,
			 const struct rg_shape *shape, const void *data)
{
	int64_t bytes = rg_tensor_bytes(t, shape);
	size_t size = strlen(m->n->name) + strlen(what) + 16;
	char *name;
	void *copy;
	int value = -1;

	if (m->dry || m->err->code)
		return;
	value = find_constant(m->g, t, shape, data, (size_t)bytes);
	if (value >= 0) {
		set_input(m, at, value);
		return;
	}
	name = rg_alloc(size);
	copy = rg_alloc_aligned(64, bytes ? (size_t)bytes : 64);
	if (name && copy) {
		snprintf(name, size, "%s:%s", m->n->name, what);
		for (int i = 2; !name_is_free(m->g, name); i++)
			snprintf(name, size, "%s:%s%d", m->n->name, what, i);
		value = rg_graph_value(m->g, name, m->err);
	} else {
		rg_error_nomem(m->err, size + (size_t)bytes);
	}
	rg_free(name);
	if (value < 0) {
		rg_free(copy);
		return;
	}
	if (bytes)
		memcpy(copy, data, (size_t)bytes);
	if (!rg_graph_add_const(m->g, value, RG_CONST_FOLDED, t, shape, copy, m->err))
		set_input(m, at, value);
}

/* A list of integers that was an attribute and is an input now. */
static void ints_to_input(struct move *m, const char *name, int at)
{
	const int64_t *list;
	int count = rg_node_ints(m->n, name, &list);
	int64_t n = count;
	struct rg_shape shape = rg_shape_of(1, &n);

	if (count < 0)
		return;
	set_constant(m, at, name, RG_I64, &shape, list);
	drop_attr(m, name);
}

/* A number of the type of input 0. NULL, or why not. */
static const char *number_to_input(struct move *m, const char *name, const char *what, int at)
{
	const struct rg_value *v = &m->g->values[m->n->in[0]];
	enum rg_dtype t = v->shaped ? v->dtype : v->declared_dtype;
	const struct rg_attr *a = rg_node_attr(m->n, name);
	static const struct rg_shape scalar;
	float f;

	if (!a)
		return NULL;
	f = a->f;
	if (t == RG_F32)
		set_constant(m, at, what, t, &scalar, &f);
	else if (t == RG_F64)
		set_constant(m, at, what, t, &scalar, &(double){ (double)f });
	else if (t == RG_F16)
		set_constant(m, at, what, t, &scalar, &(uint16_t){ rg_f32_to_f16(f) });
	else
		return "the type of its input is not known";
	drop_attr(m, name);
	return NULL;
}

static bool has_input(const struct rg_node *n, int at)
{
	return at < n->n_in && n->in[at] >= 0;
}

static bool wants_output(const struct rg_node *n, int at)
{
	return at < n->n_out && n->out[at] >= 0;
}

/* ---- the steps ---- */

static const char *no_more(struct move *m)
{
	return "its meaning has changed since";
}

static const char *batchnorm_9(struct move *m)
{
	if (!rg_node_int(m->n, "spatial", 1))
		return "newer versions have no spatial=0";
	drop_attr(m, "spatial");
	return NULL;
}

static const char *batchnorm_14(struct move *m)
{
	for (int i = 1; i < m->n->n_out; i++)
		if (wants_output(m->n, i))
			return "newer versions have other outputs for training";
	return NULL;
}

static const char *clip_11(struct move *m)
{
	const char *why = number_to_input(m, "min", "min", 1);

	return why ? why : number_to_input(m, "max", "max", 2);
}

static const char *dropout_12(struct move *m)
{
	if (wants_output(m->n, 1))
		return "its mask has changed since";
	drop_attr(m, "ratio"); /* of training */
	return NULL;
}

static const char *float_only(struct move *m)
{
	const struct rg_value *v = &m->g->values[m->n->in[0]];

	return v->shaped && rg_dtype_is_float(v->dtype) ? NULL : "newer versions take no integers";
}

static const char *grid_sample_20(struct move *m)
{
	const char *mode = rg_node_string(m->n, "mode", "bilinear");

	if (strncmp(mode, "bi", 2) == 0)
		set_string(m, "mode", strcmp(mode, "bicubic") ? "linear" : "cubic");
	return NULL;
}

/* Up to version 11 all dimensions from the axis on were taken together. */
static const char *softmax_13(struct move *m)
{
	const struct rg_value *v = &m->g->values[m->n->in[0]];
	int64_t axis = rg_node_int(m->n, "axis", 1);
	int rank = v->shaped ? v->shape.rank : v->declared_rank;

	if (axis != -1 && rank < 0)
		return "the rank of its input is not known";
	if (axis != -1 && axis != rank - 1)
		return "it takes more than the last dimension together";
	set_int(m, "axis", -1);
	return NULL;
}

static const char *pad_11(struct move *m)
{
	const char *why = number_to_input(m, "value", "value", 2);

	if (!why)
		ints_to_input(m, "pads", 1);
	return why;
}

static const char *axes_to_input(struct move *m)
{
	ints_to_input(m, "axes", 1);
	return NULL;
}

/* The scale was applied at the corner, and the nearest was the one below. */
static void resize_as_before_11(struct move *m)
{
	int scales = m->n->n_in > 1 ? m->n->in[1] : -1;

	if (m->dry)
		return;
	set_input(m, 2, scales);
	set_input(m, 1, -1);
	if (strcmp(rg_node_string(m->n, "mode", "nearest"), "bilinear") == 0)
		set_string(m, "mode", "linear");
	set_string(m, "coordinate_transformation_mode", "asymmetric");
	set_string(m, "nearest_mode", "floor");
}

static const char *resize_11(struct move *m)
{
	if (m->target < 13)
		return "version 11 wants a region that it does not use";
	resize_as_before_11(m);
	return NULL;
}

static const char *resize_13(struct move *m)
{
	const char *mode = rg_node_string(m->n, "coordinate_transformation_mode", "");

	return strcmp(mode, "tf_half_pixel_for_nn") ? NULL : "newer versions have no tf_half_pixel_for_nn";
}

static const char *roi_align_16(struct move *m)
{
	set_string(m, "coordinate_transformation_mode", "output_half_pixel");
	return NULL;
}

static const char *scatter_11(struct move *m)
{
	if (!m->dry)
		m->n->op_type = "ScatterElements";
	return NULL;
}

static const char *slice_10(struct move *m)
{
	ints_to_input(m, "starts", 1);
	ints_to_input(m, "ends", 2);
	ints_to_input(m, "axes", 3);
	return NULL;
}

static const char *split_13(struct move *m)
{
	ints_to_input(m, "split", 1);
	return NULL;
}

static const char *split_18(struct move *m)
{
	if (!has_input(m->n, 1))
		set_int(m, "num_outputs", m->n->n_out);
	return NULL;
}

static const char *top_k_10(struct move *m)
{
	int64_t k = rg_node_int(m->n, "k", -1), one = 1;
	struct rg_shape shape = rg_shape_of(1, &one);

	if (k < 0)
		return "it has no k";
	set_constant(m, 1, "k", RG_I64, &shape, &k);
	drop_attr(m, "k");
	return NULL;
}

static const char *upsample_9(struct move *m)
{
	const float *scales;
	int count = rg_node_floats(m->n, "scales", &scales);
	int64_t n = count;
	struct rg_shape shape = rg_shape_of(1, &n);

	if (count < 0)
		return "it has no scales";
	set_constant(m, 1, "scales", RG_F32, &shape, scales);
	drop_attr(m, "scales");
	return NULL;
}

static const char *upsample_10(struct move *m)
{
	if (m->target < 13)
		return "version 11 of Resize wants a region that it does not use";
	if (!m->dry)
		m->n->op_type = "Resize";
	return NULL; /* version 10 of Resize is the same; the next step goes on from there */
}

/* In the order of the versions; an operator that changes its name goes on under the new one. */
static const struct { const char *op; int version; step_fn *run; const char *becomes; } steps[] = {
	{ "Attention", 24, no_more },
	{ "BatchNormalization", 9, batchnorm_9 },
	{ "BatchNormalization", 14, batchnorm_14 },
	{ "Clip", 11, clip_11 },
	{ "DFT", 20, no_more },
	{ "Dropout", 12, dropout_12 },
	{ "Erf", 13, float_only },
	{ "GridSample", 20, grid_sample_20 },
	{ "GroupNormalization", 21, no_more },
	{ "Hardmax", 13, softmax_13 },
	{ "LogSoftmax", 13, softmax_13 },
	{ "Pad", 11, pad_11 },
	{ "Range", 27, no_more },
	{ "ReduceL1", 18, axes_to_input },
	{ "ReduceL2", 18, axes_to_input },
	{ "ReduceLogSum", 18, axes_to_input },
	{ "ReduceLogSumExp", 18, axes_to_input },
	{ "ReduceMax", 18, axes_to_input },
	{ "ReduceMean", 18, axes_to_input },
	{ "ReduceMin", 18, axes_to_input },
	{ "ReduceProd", 18, axes_to_input },
	{ "ReduceSum", 13, axes_to_input },
	{ "ReduceSumSquare", 18, axes_to_input },
	{ "Resize", 11, resize_11 },
	{ "Resize", 13, resize_13 },
	{ "RoiAlign", 16, roi_align_16 },
	{ "Scan", 9, no_more },
	{ "Scatter", 11, scatter_11, "ScatterElements" },
	{ "Slice", 10, slice_10 },
	{ "Softmax", 13, softmax_13 },
	{ "Split", 13, split_13 },
	{ "Split", 18, split_18 },
	{ "Squeeze", 13, axes_to_input },
	{ "TopK", 10, top_k_10 },
	{ "Unsqueeze", 13, axes_to_input },
	{ "Upsample", 9, upsample_9 },
	{ "Upsample", 10, upsample_10, "Resize" },
};

/* Carries one node; NULL, or why it cannot be. */
static const char *carry(struct move *m)
{
	const char *op_type = m->n->op_type;
	const struct rg_op *op = m->n->op;
	int from = m->n->version, to = rg_op_version(op, m->target);

	if (from == to)
		return NULL;
	if (to < from)
		return "it is younger than that";
	if (from < rg_op_version(op, OLDEST))
		return "versions before opset 7 are not carried on";
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !m->err->code; i++) {
		const char *why;

		if (strcmp(steps[i].op, op_type) != 0 || steps[i].version <= from ||
		    steps[i].version > m->target)
			continue;
		why = steps[i].run(m);
		if (why)
			return why;
		if (steps[i].becomes) {
			op_type = steps[i].becomes;
			op = rg_op_find("", op_type);
			if (!op)
				return "its successor is not supported";
			from = rg_op_version(op, steps[i].version);
			to = rg_op_version(op, m->target);
			i = (size_t)-1; /* the steps of the new name may stand before */
		}
	}
	if (to > op->supported_to)
		return "its newer version is not supported";
	if (!m->dry && !m->err->code) {
		m->n->op = op;
		m->n->version = to;
	}
	return NULL;
}

/* Whether every node can be carried, or all of them done. */
static int carry_all(struct rg_graph *g, int64_t target, bool dry, struct rg_error *err)
{
	for (int i = 0; i < g->n_nodes; i++) {
		struct rg_node *n = &g->nodes[i];
		struct move m = { g, n, target, dry, err };
		const char *why;

		for (int k = 0; k < n->n_attrs; k++)
			if (n->attrs[k].g && carry_all(n->attrs[k].g, target, dry, err))
				return err->code;
		if (n->domain[0] || !n->op || n->unsupported)
			continue;
		why = carry(&m);
		if (err->code)
			return err->code;
		if (why) {
			rg_error_set(err, RG_ENOTSUP_MODEL,
				     "node '%s' (%s, version %d) cannot be written with opset %" PRId64
				     ": %s",
				     n->name, n->op_type, n->version, target, why);
			return rg_error_hint(err, "export the model with opset %" PRId64 " or newer", target);
		}
		if (!dry)
			n->opset = 0;
	}
	return 0;
}

static void find_needed(const struct rg_graph *g, int64_t *opset)
{
	for (int i = 0; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		for (int k = 0; k < n->n_attrs; k++)
			if (n->attrs[k].g)
				find_needed(n->attrs[k].g, opset);
		if (!n->domain[0] && n->op && !n->unsupported && rg_op_version(n->op, *opset) < n->version)
			*opset = n->version; /* a version is called after the opset that brought it */
	}
}

/* Whether a node is of another version than the opset selects. */
static bool differs(const struct rg_graph *g, int64_t opset)
{
	for (int i = 0; i < g->n_nodes; i++) {
		const struct rg_node *n = &g->nodes[i];

		for (int k = 0; k < n->n_attrs; k++)
			if (n->attrs[k].g && differs(n->attrs[k].g, opset))
				return true;
		if (!n->domain[0] && n->op && !n->unsupported && rg_op_version(n->op, opset) != n->version)
			return true;
	}
	return false;
}

int rg_opset_needed(const struct rg_graph *g, int64_t *opset, struct rg_error *err)
{
	*opset = rg_graph_opset(g, "");
	find_needed(g, opset);
	if (!differs(g, *opset))
		return 0;
	return carry_all((struct rg_graph *)(uintptr_t)g, *opset, true, err); /* dry: nothing is changed */
}

static int set_opset(struct rg_graph *g, int64_t opset, struct rg_error *err)
{
	for (int i = 0; i < g->n_opsets; i++) {
		if (g->opsets[i].domain[0])
			continue;
		g->opsets[i].version = opset;
		return 0;
	}
	return rg_graph_set_opset(g, "", opset, err);
}

int rg_opset_raise(struct rg_graph *g, int64_t least, struct rg_error *err)
{
	int64_t opset = rg_graph_opset(g, "");
	int rc;

	find_needed(g, &opset);
	opset = opset < least ? least : opset;
	rc = carry_all(g, opset, true, err);
	if (!rc)
		rc = carry_all(g, opset, false, err);
	if (!rc)
		rc = set_opset(g, opset, err);
	if (!rc) /* producers and consumers, of new constants too */
		rc = rg_graph_drop_nodes(g, NULL, 0, err);
	return rc;
}
