/*
 * Matrix products, Einsum, determinant: types, shapes, costs.
 *
 * Costs: a product of m x k and k x n is 2 m n k flops (a multiply and an add
 * for each term, counted alike for integers as iops). Gemm adds 2 m n for
 * beta * C, or m n where beta is 1, and m n for an alpha other than 1. Einsum
 * counts every term of its sum: (operands - 1) multiplies and an add. A
 * determinant is 2/3 n^3 flops of elimination and n^2/2 divisions.
 */
#include "graph/op-gemm.h"

#include <string.h>

#include "graph/op-families.h"
#include "graph/op-types.h"

#define SET_MATMUL (RG_SET_FLOAT | RG_BIT(RG_I32) | RG_BIT(RG_I64) | RG_BIT(RG_U32) | RG_BIT(RG_U64))

bool rg_matmul_shape(const struct rg_shape *a, const struct rg_shape *b, struct rg_matmul *out)
{
	struct rg_matmul r = { 0 };
	int64_t kb;

	if (a->rank < 1 || b->rank < 1)
		return false;
	r.m = a->rank == 1 ? 1 : a->dim[a->rank - 2];
	r.k = a->dim[a->rank - 1];
	kb = b->rank == 1 ? b->dim[0] : b->dim[b->rank - 2];
	r.n = b->rank == 1 ? 1 : b->dim[b->rank - 1];
	if (r.k != kb)
		return false;
	r.batch_a = rg_shape_of(a->rank > 2 ? a->rank - 2 : 0, a->dim);
	r.batch_b = rg_shape_of(b->rank > 2 ? b->rank - 2 : 0, b->dim);
	if (!rg_shape_broadcast(&r.batch_a, &r.batch_b, &r.batch))
		return false;
	r.out = r.batch;
	if (a->rank > 1)
		r.out.dim[r.out.rank++] = r.m;
	if (b->rank > 1)
		r.out.dim[r.out.rank++] = r.n;
	*out = r;
	return true;
}

bool rg_gemm_shape(const struct rg_node *node, const struct rg_shape *a, const struct rg_shape *b,
		   int64_t *m, int64_t *n, int64_t *k)
{
	bool ta = rg_node_int(node, "transA", 0), tb = rg_node_int(node, "transB", 0);

	if (a->rank != 2 || b->rank != 2)
		return false;
	*m = a->dim[ta];
	*k = a->dim[!ta];
	*n = b->dim[!tb];
	return *k == b->dim[tb];
}

static int64_t product_ops(int64_t batch, int64_t m, int64_t n, int64_t k)
{
	return rg_cost_mul(2, rg_cost_mul(rg_cost_mul(batch, m), rg_cost_mul(n, k)));
}

/* Counts as flops or as iops by the type. */
static void set_ops(struct rg_cost *out, enum rg_dtype t, int64_t ops)
{
	bool is_float = rg_dtype_is_float(t);

	out->flops = is_float ? ops : 0;
	out->iops = is_float ? 0 : ops;
	out->sfu = 0;
}

/* ---- MatMul and its integer forms ---- */

static int infer_product(struct rg_infer *c, int ia, int ib, enum rg_dtype t, struct rg_error *err)
{
	struct rg_matmul p;
	char a[160], b[160];

	if (!rg_matmul_shape(&c->in[ia]->shape, &c->in[ib]->shape, &p))
		return rg_infer_fail(c, err, "shapes %s and %s do not multiply",
				     rg_shape_text(a, &c->in[ia]->shape),
				     rg_shape_text(b, &c->in[ib]->shape));
	rg_infer_out(c, 0, t, &p.out);
	return 0;
}

static int infer_matmul(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, SET_MATMUL, err);

	if (!rc)
		rc = rg_infer_type(c, 1, SET_MATMUL, err);
	if (!rc)
		rc = rg_infer_like(c, 1, 0, err);
	return rc ? rc : infer_product(c, 0, 1, c->in[0]->dtype, err);
}

static void cost_matmul(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_matmul p;

	if (rg_matmul_shape(&c->in[0].shape, &c->in[1].shape, &p))
		set_ops(out, c->in[0].dtype, product_ops(rg_shape_count(&p.batch), p.m, p.n, p.k));
}

/* A zero point or scale: one value, or one a row (`rows`) or column. */
static int check_quant_side(struct rg_infer *c, int i, int64_t length, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);
	char text[160];

	if (!v || rg_shape_count(&v->shape) == 1 || (v->shape.rank == 1 && v->shape.dim[0] == length))
		return 0;
	return rg_infer_fail(c, err, "input %d ('%s') of shape %s is neither one value nor %lld of them", i,
			     v->name, rg_shape_text(text, &v->shape), (long long)length);
}

static int infer_matmul_integer(struct rg_infer *c, struct rg_error *err)
{
	struct rg_matmul p;
	int rc = rg_infer_type(c, 0, RG_SET_INT8, err);

	if (!rc)
		rc = rg_infer_type(c, 1, RG_SET_INT8, err);
	if (!rc)
		rc = rg_infer_like(c, 2, 0, err);
	if (!rc)
		rc = rg_infer_like(c, 3, 1, err);
	if (!rc)
		rc = infer_product(c, 0, 1, RG_I32, err);
	if (rc || !rg_matmul_shape(&c->in[0]->shape, &c->in[1]->shape, &p))
		return rc;
	rc = check_quant_side(c, 2, p.m, err);
	return rc ? rc : check_quant_side(c, 3, p.n, err);
}

static int infer_qlinear(struct rg_infer *c, struct rg_error *err)
{
	static const int data[] = { 0, 3 }, scales[] = { 1, 4, 6 };
	struct rg_matmul p;
	int rc = 0;

	for (int i = 0; i < 2 && !rc; i++) {
		rc = rg_infer_type(c, data[i], RG_SET_INT8, err);
		if (!rc)
			rc = rg_infer_type(c, data[i] + 2, RG_SET_INT8, err);
		if (!rc)
			rc = rg_infer_like(c, data[i] + 2, data[i], err);
	}
	for (int i = 0; i < 3 && !rc; i++) {
		rc = rg_infer_type(c, scales[i], RG_BIT(RG_F32) | RG_BIT(RG_F16) | RG_BIT(RG_BF16), err);
		if (!rc)
			rc = rg_infer_like(c, scales[i], 1, err);
	}
	if (!rc)
		rc = rg_infer_type(c, 7, RG_SET_INT8, err);
	if (!rc)
		rc = rg_infer_scalar(c, 6, err);
	if (!rc)
		rc = rg_infer_scalar(c, 7, err);
	if (!rc)
		rc = infer_product(c, 0, 3, c->in[7]->dtype, err);
	if (rc || !rg_matmul_shape(&c->in[0]->shape, &c->in[3]->shape, &p))
		return rc;
	for (int i = 1; i <= 2 && !rc; i++)
		rc = check_quant_side(c, i, p.m, err);
	for (int i = 4; i <= 5 && !rc; i++)
		rc = check_quant_side(c, i, p.n, err);
	return rc;
}

static void cost_qlinear(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_matmul p;

	if (!rg_matmul_shape(&c->in[0].shape, &c->in[3].shape, &p))
		return;
	set_ops(out, RG_I32, product_ops(rg_shape_count(&p.batch), p.m, p.n, p.k));
	out->flops = rg_cost_mul(4, rg_shape_count(&c->out[0].shape)); /* scale, round, zero point, clamp */
}

/* ---- Gemm ---- */

static int infer_gemm(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape out = { .rank = 2 }, both;
	const struct rg_value *bias;
	char a[160], b[160];
	int64_t k;
	int rc = rg_infer_type(c, 0, SET_MATMUL, err);

	if (!rc)
		rc = rg_infer_type(c, 1, SET_MATMUL, err);
	if (!rc)
		rc = rg_infer_like(c, 1, 0, err);
	if (!rc)
		rc = rg_infer_like(c, 2, 0, err);
	if (rc)
		return rc;
	if (!rg_gemm_shape(c->node, &c->in[0]->shape, &c->in[1]->shape, &out.dim[0], &out.dim[1], &k))
		return rg_infer_fail(c, err, "matrices %s and %s do not multiply",
				     rg_shape_text(a, &c->in[0]->shape), rg_shape_text(b, &c->in[1]->shape));
	bias = rg_infer_in(c, 2);
	if (!bias && c->node->version < 11)
		return rg_infer_fail(c, err, "input 2 is missing");
	if (bias && c->node->version < 7 && !rg_node_int(c->node, "broadcast", 0))
		rc = rg_infer_shape_is(c, 2, &out, err);
	else if (bias && (!rg_shape_broadcast(&bias->shape, &out, &both) || !rg_shape_equal(&both, &out)))
		rc = rg_infer_fail(c, err, "C of shape %s does not broadcast to %s",
				   rg_shape_text(a, &bias->shape), rg_shape_text(b, &out));
	if (!rc)
		rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return rc;
}

static void cost_gemm(const struct rg_cost_in *c, struct rg_cost *out)
{
	int64_t m, n, k, ops, mn;

	if (!rg_gemm_shape(c->node, &c->in[0].shape, &c->in[1].shape, &m, &n, &k))
		return;
	mn = rg_cost_mul(m, n);
	ops = product_ops(1, m, n, k);
	if (rg_node_float(c->node, "alpha", 1) != 1)
		ops = rg_cost_add(ops, mn);
	if (c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED)
		ops = rg_cost_add(ops, rg_cost_mul(rg_node_float(c->node, "beta", 1) != 1 ? 2 : 1, mn));
	set_ops(out, c->in[0].dtype, ops);
}

/* ---- Einsum ---- */

/* While reading an equation: which label a letter got. */
struct labels {
	int of[128];
	int ellipsis[RG_MAX_RANK]; /* right-aligned: [0] is the last dimension */
	int n_ellipsis;            /* -1 until one was seen */
	int uses[RG_EINSUM_MAX_LABELS];
};

static bool is_letter(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

static const char *use_label(struct rg_einsum *e, struct labels *l, int *slot, int64_t dim, bool broadcasts)
{
	if (*slot < 0) {
		if (e->n_labels == RG_EINSUM_MAX_LABELS)
			return "the equation has more labels than are supported";
		*slot = e->n_labels;
		e->dim[e->n_labels++] = dim;
	} else if (broadcasts && e->dim[*slot] == 1) {
		e->dim[*slot] = dim;
	} else if (e->dim[*slot] != dim && !(broadcasts && dim == 1)) {
		return "a label of the equation stands for two different sizes";
	}
	l->uses[*slot]++;
	return NULL;
}

/* One operand's term, from *p to the next ',' or '-' or the end. */
static const char *parse_term(const char **p, const struct rg_shape *s, int in, struct rg_einsum *e,
			      struct labels *l)
{
	int letters = 0, d = 0, n;
	const char *bad;

	for (const char *q = *p; *q && *q != ',' && *q != '-'; q++)
		letters += is_letter(*q);
	e->rank[in] = s->rank;
	for (; **p && **p != ',' && **p != '-'; (*p)++) {
		if (**p == ' ')
			continue;
		if (is_letter(**p)) {
			if (d >= s->rank)
				return "a term of the equation has more labels than its operand has "
				       "dimensions";
			bad = use_label(e, l, &l->of[(int)**p], s->dim[d], false);
			if (bad)
				return bad;
			e->label[in][d++] = l->of[(int)**p];
			continue;
		}
		if (strncmp(*p, "...", 3) != 0)
			return "the equation has a character that does not belong there";
		*p += 2;
		n = s->rank - letters;
		if (n < 0)
			return "a term of the equation has more labels than its operand has dimensions";
		l->n_ellipsis = n > l->n_ellipsis ? n : l->n_ellipsis;
		for (int i = n - 1; i >= 0; i--) {
			if (d >= s->rank)
				return "a term of the equation has two ellipses";
			bad = use_label(e, l, &l->ellipsis[i], s->dim[d], true);
			if (bad)
				return bad;
			e->label[in][d++] = l->ellipsis[i];
		}
	}
	return d == s->rank ? NULL
			    : "a term of the equation has fewer labels than its operand has dimensions";
}

static const char *add_out(struct rg_einsum *e, int label)
{
	if (label < 0)
		return "the output of the equation has a label that no operand has";
	for (int i = 0; i < e->n_out; i++)
		if (e->out[i] == label)
			return "the output of the equation has a label twice";
	if (e->n_out == RG_MAX_RANK)
		return "the output has too many dimensions";
	e->out[e->n_out++] = label;
	return NULL;
}

static const char *add_ellipsis(struct rg_einsum *e, const struct labels *l)
{
	const char *bad = NULL;

	for (int i = l->n_ellipsis - 1; i >= 0 && !bad; i--)
		bad = add_out(e, l->ellipsis[i]);
	return bad;
}

static const char *parse_output(const char *p, struct rg_einsum *e, const struct labels *l)
{
	const char *bad = NULL;

	for (; *p && !bad; p++) {
		if (*p == ' ')
			continue;
		if (is_letter(*p)) {
			bad = add_out(e, l->of[(int)*p]);
		} else if (strncmp(p, "...", 3) == 0) {
			p += 2;
			bad = add_ellipsis(e, l);
		} else {
			bad = "the equation has a character that does not belong there";
		}
	}
	return bad;
}

const char *rg_einsum_parse(const char *equation, int n_in, const struct rg_shape *const *shapes,
			    struct rg_einsum *out)
{
	struct labels l = { .n_ellipsis = -1 };
	const char *p = equation, *bad = NULL;

	memset(out, 0, sizeof(*out));
	memset(l.of, 0xff, sizeof(l.of));
	memset(l.ellipsis, 0xff, sizeof(l.ellipsis));
	if (n_in < 1 || n_in > RG_EINSUM_MAX_IN)
		return "the equation has more operands than are supported";
	out->n_in = n_in;
	for (int i = 0; i < n_in; i++) {
		bad = parse_term(&p, shapes[i], i, out, &l);
		if (bad)
			return bad;
		if (i + 1 < n_in && *p++ != ',')
			return "the equation has fewer terms than there are operands";
	}
	if (*p == ',')
		return "the equation has more terms than there are operands";
	if (*p == '-')
		return p[1] == '>' ? parse_output(p + 2, out, &l) : "the equation has a '-' without '>'";
	/* Without an arrow: the ellipsis, then what appears once, by letter. */
	bad = add_ellipsis(out, &l);
	for (int ch = 'A'; ch <= 'z' && !bad; ch++)
		if (is_letter((char)ch) && l.of[ch] >= 0 && l.uses[l.of[ch]] == 1)
			bad = add_out(out, l.of[ch]);
	return bad;
}

static int infer_einsum(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_shape *shapes[RG_EINSUM_MAX_IN];
	const char *equation = rg_node_string(c->node, "equation", NULL), *bad;
	struct rg_shape out;
	struct rg_einsum e;
	int64_t terms = 1;
	int rc = 0;

	if (!equation)
		return rg_infer_fail(c, err, "attribute equation is missing");
	if (c->node->n_in > RG_EINSUM_MAX_IN)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "Einsum of %d operands, at most %d are supported",
				    c->node->n_in, RG_EINSUM_MAX_IN);
	for (int i = 0; i < c->node->n_in && !rc; i++) {
		rc = rg_infer_type(c, i, RG_SET_NUM, err);
		if (!rc)
			rc = rg_infer_like(c, i, 0, err);
		if (!rc)
			shapes[i] = &c->in[i]->shape;
	}
	if (rc)
		return rc;
	bad = rg_einsum_parse(equation, c->node->n_in, shapes, &e);
	if (bad)
		return rg_infer_fail(c, err, "'%s': %s", equation, bad);
	for (int i = 0; i < e.n_labels; i++)
		terms = rg_cost_mul(terms, e.dim[i]);
	if (terms < 0)
		return rg_infer_fail(c, err, "'%s': there are too many terms to add up", equation);
	out.rank = e.n_out;
	for (int i = 0; i < e.n_out; i++)
		out.dim[i] = e.dim[e.out[i]];
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static void cost_einsum(const struct rg_cost_in *c, struct rg_cost *out)
{
	const struct rg_shape *shapes[RG_EINSUM_MAX_IN];
	const char *equation = rg_node_string(c->node, "equation", "");
	struct rg_einsum e;
	int64_t terms = 1;

	if (c->node->n_in > RG_EINSUM_MAX_IN)
		return;
	for (int i = 0; i < c->node->n_in; i++)
		shapes[i] = &c->in[i].shape;
	if (rg_einsum_parse(equation, c->node->n_in, shapes, &e))
		return;
	for (int i = 0; i < e.n_labels; i++)
		terms = rg_cost_mul(terms, e.dim[i]);
	/* nothing is added up when every label is in the output */
	set_ops(out, c->in[0].dtype, rg_cost_mul(terms, e.n_in - 1 + (e.n_labels > e.n_out)));
}

/* ---- Det ---- */

static int infer_det(struct rg_infer *c, struct rg_error *err)
{
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);
	const struct rg_shape *s;
	struct rg_shape out;
	char text[160];

	if (rc)
		return rc;
	s = &c->in[0]->shape;
	if (s->rank < 2 || s->dim[s->rank - 1] != s->dim[s->rank - 2])
		return rg_infer_fail(c, err, "a matrix of shape %s is not square", rg_shape_text(text, s));
	if (s->dim[s->rank - 1] > 128)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "Det of matrices beyond 128x128 is not supported");
	out = rg_shape_of(s->rank - 2, s->dim);
	rg_infer_out(c, 0, c->in[0]->dtype, &out);
	return 0;
}

static void cost_det(const struct rg_cost_in *c, struct rg_cost *out)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t n = s->dim[s->rank - 1], batch = rg_shape_count_range(s, 0, s->rank - 2);

	out->flops = rg_cost_mul(batch, rg_cost_mul(n, rg_cost_mul(n, 2 * n)) / 3);
	out->sfu = rg_cost_mul(batch, rg_cost_mul(n, n) / 2);
	out->iops = 0;
}

#define OP(NAME, KIND, MIN, MAX, FROM, TO, INFER, COST_FN, ...) \
	{ "", NAME, KIND, 0, MIN, MAX, 1, 1, { __VA_ARGS__ }, FROM, TO, INFER, COST_FN }

const struct rg_op rg_ops_gemm[] = {
	OP("Det", RG_KIND_OTHER, 1, 1, 11, 22, infer_det, cost_det, 11, 22),
	OP("Einsum", RG_KIND_GEMM, 1, -1, 12, 28, infer_einsum, cost_einsum, 12, 28),
	OP("Gemm", RG_KIND_GEMM, 2, 3, 1, 13, infer_gemm, cost_gemm, 1, 6, 7, 9, 11, 13),
	OP("MatMul", RG_KIND_GEMM, 2, 2, 1, 13, infer_matmul, cost_matmul, 1, 9, 13),
	OP("MatMulInteger", RG_KIND_GEMM, 2, 4, 10, 10, infer_matmul_integer, cost_matmul, 10),
	OP("QLinearMatMul", RG_KIND_GEMM, 8, 8, 10, 21, infer_qlinear, cost_qlinear, 10, 21),
};
RG_OP_FAMILY_END(gemm);
