/* See formula.h. */
#include "compile/formula.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 8 };

static bool is_arithmetic(const struct rg_match *m, int node)
{
	static const char *const types[] = { "Add", "Sub", "Mul", "Div", "Pow", "Neg" };

	for (int k = 0; k < 6; k++)
		if (rg_match_is(m, node, types[k]))
			return true;
	return false;
}

static bool is_number(const struct rg_formula *f)
{
	for (int i = 0; i < RG_FORMULA_TERMS; i++)
		if ((i && f->p[i] != 0) || f->t[i] != 0)
			return false;
	return true;
}

/* false: a power that has no place. */
static bool multiply(struct rg_formula *a, const struct rg_formula *b)
{
	struct rg_formula y = { 0 };

	for (int i = 0; i < RG_FORMULA_TERMS; i++)
		for (int k = 0; k < RG_FORMULA_TERMS; k++) {
			double p = a->p[i] * b->p[k], t = a->p[i] * b->t[k] + a->t[i] * b->p[k];

			if (a->t[i] * b->t[k] != 0)
				return false;
			if (p == 0 && t == 0)
				continue;
			if (i + k >= RG_FORMULA_TERMS)
				return false;
			y.p[i + k] += p;
			y.t[i + k] += t;
		}
	*a = y;
	return true;
}

static bool raise(struct rg_formula *a, const struct rg_formula *by)
{
	struct rg_formula base = *a;

	if (!is_number(by) || (by->p[0] != 2 && by->p[0] != 3))
		return false;
	for (int i = 1; i < (int)by->p[0]; i++)
		if (!multiply(a, &base))
			return false;
	return true;
}

static bool apply(const char *op_type, struct rg_formula *a, const struct rg_formula *b)
{
	switch (op_type[0]) {
	case 'A':
	case 'S':
		for (int i = 0; i < RG_FORMULA_TERMS; i++) {
			a->p[i] += op_type[0] == 'A' ? b->p[i] : -b->p[i];
			a->t[i] += op_type[0] == 'A' ? b->t[i] : -b->t[i];
		}
		return true;
	case 'M':
		return multiply(a, b);
	case 'D':
	{
		struct rg_formula inverse = { .p = { 1 / b->p[0] } };

		return is_number(b) && b->p[0] != 0 && multiply(a, &inverse);
	}
	default:
		return raise(a, b);
	}
}

static bool evaluate(const struct rg_match *m, int value, int x, int t, int depth, struct rg_formula *f,
		     struct rg_region *r)
{
	const struct rg_graph *g = m->g;
	const struct rg_value *v = &g->values[value];
	struct rg_formula b;
	const struct rg_node *n;
	float number;

	memset(f, 0, sizeof(*f));
	if (value == x || value == t) {
		*(value == x ? &f->p[1] : &f->t[0]) = 1;
		return true;
	}
	if (v->origin != RG_CONST_NONE) {
		if (!rg_match_number(g, value, &number) || !isfinite(number))
			return false;
		f->p[0] = (double)number;
		return true;
	}
	if (depth == DEPTH || !is_arithmetic(m, v->producer) || v->dtype != RG_F32 || !v->shaped || v->dynamic ||
	    !rg_shape_equal(&v->shape, &g->values[x].shape) || !rg_region_add(r, v->producer))
		return false;
	n = &g->nodes[v->producer];
	if (!evaluate(m, n->in[0], x, t, depth + 1, f, r))
		return false;
	if (n->op_type[0] == 'N') {
		b = (struct rg_formula){ .p = { -1 } };
		return multiply(f, &b);
	}
	return evaluate(m, n->in[1], x, t, depth + 1, &b, r) && apply(n->op_type, f, &b);
}

bool rg_formula_of(const struct rg_match *m, int value, int x, int t, struct rg_formula *f, struct rg_region *r)
{
	const struct rg_value *v = &m->g->values[x];

	return v->shaped && !v->dynamic && v->dtype == RG_F32 && evaluate(m, value, x, t, 0, f, r);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fabs(b);
}

bool rg_formula_is(const struct rg_formula *f, const struct rg_formula *want)
{
	for (int i = 0; i < RG_FORMULA_TERMS; i++)
		if (!near(f->p[i], want->p[i]) || !near(f->t[i], want->t[i]))
			return false;
	return true;
}

int rg_formula_variables(const struct rg_match *m, int value, int most, int *out)
{
	int n = 0;

	if (most > 0)
		out[n++] = value;
	for (int i = 0; i < n && i < 2 * DEPTH; i++) {
		int maker = m->g->values[out[i]].producer;
		const struct rg_node *node;

		if (!is_arithmetic(m, maker))
			continue;
		node = &m->g->nodes[maker];
		for (int k = 0; k < node->n_in && n < most; k++) {
			bool there = m->g->values[node->in[k]].origin != RG_CONST_NONE;

			for (int j = 0; j < n; j++)
				there = there || out[j] == node->in[k];
			if (!there)
				out[n++] = node->in[k];
		}
	}
	return n;
}

/* On from `at`, which t leads to; *budget: nodes still to be looked at. */
static int follow(const struct rg_match *m, int at, int x, int t, const struct rg_formula *want, int *budget,
		  struct rg_region *r)
{
	for (int u = m->first_use[at]; u >= 0 && *budget > 0; u = m->uses[u].next) {
		struct rg_region inside = { 0 };
		struct rg_formula f;
		int node = m->uses[u].node;

		if (!is_arithmetic(m, node))
			continue;
		(*budget)--;
		if (!rg_formula_of(m, m->g->nodes[node].out[0], x, t, &f, &inside))
			continue;
		if (rg_formula_is(&f, want)) {
			*r = inside;
			return node;
		}
		node = follow(m, m->g->nodes[node].out[0], x, t, want, budget, r);
		if (node >= 0)
			return node;
	}
	return -1;
}

int rg_formula_find(const struct rg_match *m, int x, int t, const struct rg_formula *want, struct rg_region *r)
{
	int budget = 32;

	return follow(m, t, x, t, want, &budget, r);
}
