/*
 * Constants behind a product with constant weights go into it:
 *
 *	f (x W + b) + s  =  x (W f) + (b f + s)
 *
 * by column: Add, Sub, Mul and Div of one number or one a column, as many as follow each other, behind
 * MatMul with weights of rank 2 or Gemm. What is added makes a Gemm of a MatMul. Gemm takes two dimensions; a
 * MatMul of more becomes Reshape, Gemm, Reshape (a pass of its own, at level 2: the shapes are written into
 * the model).
 *
 * f and s are gathered in double over the whole chain, and rounded once. Where nothing is multiplied the
 * weights stay.
 */
#include <string.h>

#include "base/alloc.h"
#include "compile/affine.h"
#include "compile/passes.h"
#include "compile/rewrite.h"

/* A product, and what of the chain behind it was taken. */
struct chain {
	int product, last;          /* nodes; last == product: nothing yet */
	bool gemm;
	int64_t rows, columns;      /* of the weights as they are multiplied: K x N */
	bool transposed;            /* they are N x K */
	bool scaled;                /* something was multiplied */
	bool shifted;
	struct rg_affine by;        /* by column */
};

static bool is_scaling(const struct rg_node *n)
{
	return n->op_type[0] == 'M' || n->op_type[0] == 'D';
}

/* Takes node `at` into the factors, or leaves them as they are. */
static enum rg_decline apply(const struct rg_match *m, int at, struct chain *c)
{
	const struct rg_graph *g = m->g;
	bool scaling = is_scaling(&g->nodes[at]);
	enum rg_decline why;

	/* other readers need the weights as they are: there would be two of them */
	if (scaling && m->n_uses[g->nodes[c->product].in[1]] > 1)
		return RG_DECLINE_SECOND_CONSUMER;
	why = rg_affine_take(m, at, g->nodes[c->last].out[0], &c->by);
	c->scaled = c->scaled || (!why && scaling);
	c->shifted = c->shifted || (!why && !scaling);
	return why;
}

/* The next node of the chain that the pass knows; -1 where it ends. */
static int find_next(const struct rg_match *m, const struct chain *c, enum rg_decline *why)
{
	static const char *const known[] = { "Add", "Mul", "Sub", "Div" };

	for (int k = 0; k < 4; k++) {
		int at = rg_match_reader(m, c->last, known[k], true, why);
		const struct rg_node *n = at >= 0 ? &m->g->nodes[at] : NULL;
		int64_t count;

		/* two tensors: another pass's matter */
		if (n && n->in[0] != n->in[1] &&
		    rg_match_floats(m->g, n->in[n->in[0] == m->g->nodes[c->last].out[0]], &count))
			return at;
	}
	return -1;
}

static int new_weights(struct rg_graph *g, const struct rg_node *n, const struct chain *c,
		       struct rg_error *err)
{
	const struct rg_value *w = &g->values[n->in[1]];
	struct rg_shape shape = w->shape;
	const float *from = w->data;
	float *to;

	if (!c->scaled)
		return n->in[1];
	to = rg_alloc_aligned(64, (size_t)(c->rows * c->columns) * sizeof(*to));
	if (!to)
		return rg_error_nomem(err, (size_t)(c->rows * c->columns) * sizeof(*to));
	for (int64_t i = 0; i < c->rows * c->columns; i++)
		to[i] = (float)(c->by.f[c->transposed ? i / c->rows : i % c->columns] * (double)from[i]);
	return rg_rewrite_const(g, n->name, ":weights", RG_F32, &shape, to, err);
}

static int new_bias(struct rg_graph *g, const struct rg_node *n, const struct chain *c, struct rg_error *err)
{
	struct rg_shape list = { .rank = 1, .dim = { c->columns } };
	float *to = rg_alloc_aligned(64, (size_t)c->columns * sizeof(*to));

	if (!to)
		return rg_error_nomem(err, (size_t)c->columns * sizeof(*to));
	for (int64_t i = 0; i < c->columns; i++)
		to[i] = (float)c->by.s[i];
	return rg_rewrite_const(g, n->name, ":bias", RG_F32, &list, to, err);
}

/* Gemm of more than two dimensions: the leading ones are one for its time. */
static int add_around(struct rg_graph *g, const struct rg_node *n, int last_out, int *in, int *out,
		      struct rg_error *err)
{
	const struct rg_shape x = g->values[n->in[0]].shape, y = g->values[last_out].shape;
	int64_t flat[2] = { -1, x.dim[x.rank - 1] }, full[RG_MAX_RANK];
	struct rg_shape rows = { 2, { rg_shape_count_range(&x, 0, x.rank - 1), flat[1] } }, result = rows;
	int list[2], rc;

	list[0] = n->in[0];
	list[1] = rg_rewrite_ints(g, n->name, ":rows", flat, 2, err);
	*in = list[1] < 0 ? list[1] : rg_rewrite_value(g, n->name, ":flat", RG_F32, &rows, err);
	if (*in < 0)
		return *in;
	rc = rg_graph_add_node(g, "", "Reshape", NULL, 2, list, 1, in, 0, NULL, err);
	if (rc < 0)
		return rc;
	g->nodes[rc].opset = rg_rewrite_opset(g, n, 5);
	for (int i = 0; i < y.rank; i++)
		full[i] = i == y.rank - 2 ? -1 : y.dim[i];
	result.dim[1] = y.dim[y.rank - 1];
	*out = rg_rewrite_value(g, n->name, ":sums", RG_F32, &result, err);
	list[0] = *out;
	list[1] = *out < 0 ? *out : rg_rewrite_ints(g, n->name, ":shape", full, y.rank, err);
	if (list[1] < 0)
		return list[1];
	rc = rg_graph_add_node(g, "", "Reshape", NULL, 2, list, 1, &last_out, 0, NULL, err);
	if (rc >= 0)
		g->nodes[rc].opset = rg_rewrite_opset(g, n, 5);
	return rc < 0 ? rc : 0;
}

static int rewrite(struct rg_match *m, const struct chain *c, struct rg_error *err)
{
	struct rg_graph *g = m->g;
	const struct rg_node n = g->nodes[c->product]; /* its array moves as nodes are added */
	int in[3] = { n.in[0], new_weights(g, &n, c, err), -1 }, out = g->nodes[c->last].out[0], rc = 0,
	    n_kept = 0;
	struct rg_attr kept[2] = { { 0 } };
	bool bias = c->shifted || (c->gemm && n.n_in > 2 && n.in[2] >= 0), gemm = c->gemm || c->shifted;

	if (in[1] < 0)
		return in[1];
	if (bias) {
		in[2] = new_bias(g, &n, c, err);
		if (in[2] < 0)
			return in[2];
	}
	if (gemm && g->values[n.in[0]].shape.rank > 2)
		rc = add_around(g, &n, out, &in[0], &out, err);
	for (int i = 0; i < n.n_attrs; i++)
		if (!strcmp(n.attrs[i].name, "transA") || !strcmp(n.attrs[i].name, "transB"))
			kept[n_kept++] = n.attrs[i];
	if (!rc)
		rc = rg_graph_add_node(g, "", gemm ? "Gemm" : "MatMul", n.name, bias ? 3 : 2, in, 1, &out,
				       n_kept, kept, err);
	if (rc < 0)
		return rc;
	g->nodes[rc].opset = c->gemm || !gemm ? n.opset : rg_rewrite_opset(g, &n, 11);
	m->gone[c->product] = 1;
	m->n_rewrites++;
	return 0;
}

/* Takes what follows, node by node, as long as it can. */
static int follow(struct rg_match *m, struct chain *c, struct rg_error *err)
{
	int rc = 0;

	while (!rc) {
		enum rg_decline why;
		int at = find_next(m, c, &why);

		if (at < 0)
			return 0;
		if (!why)
			why = apply(m, at, c);
		if (why)
			return c->last != c->product ? rg_match_note_settled(m, at, c->product, why, err) :
						       rg_match_note(m, at, c->product, why, err);
		rc = rg_match_note(m, at, c->product, RG_DECLINE_NONE, err);
		m->gone[at] = 1;
		c->last = at;
	}
	return rc;
}

/* What Gemm adds already, and its factors: alpha is one of all columns. */
static bool begin(const struct rg_match *m, struct chain *c)
{
	const struct rg_graph *g = m->g;
	const struct rg_node *n = &g->nodes[c->product];
	double alpha = c->gemm ? (double)rg_node_float(n, "alpha", 1) : 1,
	       beta = (double)rg_node_float(n, "beta", 1);
	const float *bias = NULL;
	int step = 0;
	int64_t count;

	if (c->gemm && n->n_in > 2 && n->in[2] >= 0) {
		bias = rg_match_floats(g, n->in[2], &count);
		step = bias ? rg_affine_step(&c->by, &g->values[n->in[2]].shape, 2) : -1;
		if (step < 0)
			return false;
	}
	for (int64_t i = 0; i < c->columns; i++) {
		c->by.f[i] = alpha;
		c->by.s[i] = bias ? beta * (double)bias[step * i] : 0;
	}
	c->scaled = alpha != 1;
	return true;
}

static int look_at(struct rg_match *m, int at, bool flat, struct rg_error *err)
{
	const struct rg_graph *g = m->g;
	const struct rg_node *n = &g->nodes[at];
	struct chain c = { .product = at, .last = at, .gemm = !strcmp(n->op_type, "Gemm") };
	const struct rg_shape *w;
	int64_t count;
	int rc;

	/* weights that are computed, and outputs of other types, are nobody's pattern */
	if (!rg_rewrite_is_plain(g, n) || g->values[n->out[0]].dtype != RG_F32 ||
	    !rg_match_floats(g, n->in[1], &count) || count == 0 || (c.gemm && n->version < 7))
		return 0;
	w = &g->values[n->in[1]].shape;
	if (w->rank != 2 || g->values[n->in[0]].shape.rank < 2 ||
	    flat != (g->values[n->in[0]].shape.rank > 2) || rg_shape_count(&g->values[n->out[0]].shape) == 0)
		return 0;
	c.transposed = c.gemm && rg_node_int(n, "transB", 0);
	c.rows = w->dim[c.transposed];
	c.columns = w->dim[!c.transposed];
	rc = rg_affine_init(&c.by, c.columns, true, err);
	if (!rc && begin(m, &c)) {
		rc = follow(m, &c, err);
		if (!rc && c.last != at)
			rc = rewrite(m, &c, err);
	}
	rg_affine_free(&c.by);
	return rc;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, const char *name, bool flat, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "MatMul") || (!flat && rg_match_is(&m, i, "Gemm")))
			rc = look_at(&m, i, flat, err);
	return rg_match_end(&m, rc, err);
}

static int run_matrices(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	return run(g, log, rg_pass_matmul_add.name, false, err);
}

static int run_flat(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	return run(g, log, rg_pass_matmul_flat.name, true, err);
}

const struct rg_pass rg_pass_matmul_add = {
	.name = "matmul-add",
	.what = "constants behind a product of two matrices into its weights and bias",
	.level = 1,
	.run = run_matrices,
};

const struct rg_pass rg_pass_matmul_flat = {
	.name = "matmul-flat",
	.what = "the same of more dimensions, with Reshape around it",
	.level = 2,
	.run = run_flat,
	.own_only = "ONNX Runtime takes longer with it (paraphrase-MiniLM 1.10 times), and has fusions of its own",
};
