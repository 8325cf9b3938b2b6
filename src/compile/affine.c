/* See affine.h. */
#include "compile/affine.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

int rg_affine_init(struct rg_affine *a, int64_t channels, bool last, struct rg_error *err)
{
	size_t n = (size_t)channels;

	*a = (struct rg_affine){ channels, last, rg_calloc(n, sizeof(double)), rg_calloc(n, sizeof(double)),
				 rg_calloc(n, sizeof(double)), rg_calloc(n, sizeof(double)) };
	if (!a->f || !a->s || !a->f_before || !a->s_before) {
		rg_affine_free(a);
		return rg_error_nomem(err, n * sizeof(double));
	}
	for (int64_t i = 0; i < channels; i++)
		a->f[i] = 1;
	return 0;
}

void rg_affine_free(struct rg_affine *a)
{
	rg_free(a->f);
	rg_free(a->s);
	rg_free(a->f_before);
	rg_free(a->s_before);
	*a = (struct rg_affine){ 0 };
}

/* BatchNormalization: f = scale / sqrt(var + epsilon), s = shift - f mean. */
static enum rg_decline apply_batchnorm(const struct rg_match *m, const struct rg_node *n, struct rg_affine *c)
{
	const float *p[4];          /* scale, shift, mean, var */
	double epsilon = (double)rg_node_float(n, "epsilon", 1e-5f);

	if (n->n_in != 5 || rg_node_int(n, "training_mode", 0) || !rg_node_int(n, "spatial", 1) ||
	    n->version < 7)
		return RG_DECLINE_ATTRIBUTE;
	for (int k = 1; k < n->n_out; k++)
		if (n->out[k] >= 0)
			return RG_DECLINE_ATTRIBUTE;
	for (int k = 0; k < 4; k++) {
		int64_t count = 0;

		p[k] = rg_match_floats(m->g, n->in[k + 1], &count);
		if (!p[k])
			return RG_DECLINE_NOT_CONSTANT;
		if (count != c->channels)
			return RG_DECLINE_BROADCASTING;
	}
	for (int64_t i = 0; i < c->channels; i++) {
		double f = (double)p[0][i] / sqrt((double)p[3][i] + epsilon);

		c->f[i] *= f;
		c->s[i] = f * (c->s[i] - (double)p[2][i]) + (double)p[1][i];
	}
	return RG_DECLINE_NONE;
}

int rg_affine_step(const struct rg_affine *a, const struct rg_shape *s, int rank)
{
	int at = s->rank - (a->last ? 1 : rank - 1); /* the dimension that meets the channels */

	if (s->rank > rank)
		return -1;
	if (rg_shape_count(s) == 1)
		return 0;
	return at >= 0 && s->dim[at] == a->channels && rg_shape_count(s) == a->channels ? 1 : -1;
}

static enum rg_decline apply_constant(const struct rg_match *m, const struct rg_node *n, int from,
				      struct rg_affine *c)
{
	const struct rg_graph *g = m->g;
	int other = n->in[n->in[0] == from], step;
	int64_t count;
	const float *v = rg_match_floats(g, other, &count);

	step = v ? rg_affine_step(c, &g->values[other].shape, g->values[from].shape.rank) : -1;
	if (step < 0)
		return v ? RG_DECLINE_BROADCASTING : RG_DECLINE_NOT_CONSTANT;
	if (n->in[0] != from && (n->op_type[0] == 'D' || n->op_type[0] == 'S'))
		return RG_DECLINE_ATTRIBUTE;
	for (int64_t i = 0; i < c->channels; i++) {
		double x = (double)v[step * i];

		switch (n->op_type[0]) {
		case 'M': c->f[i] *= x, c->s[i] *= x; break;
		case 'D': c->f[i] /= x, c->s[i] /= x; break;
		case 'A': c->s[i] += x; break;
		default:  c->s[i] -= x; break;
		}
	}
	return RG_DECLINE_NONE;
}

static enum rg_decline negate(struct rg_affine *c)
{
	for (int64_t i = 0; i < c->channels; i++) {
		c->f[i] = -c->f[i];
		c->s[i] = -c->s[i];
	}
	return RG_DECLINE_NONE;
}

/* Products with weights must neither overflow nor vanish where the chain itself did not. */
static bool in_range(const struct rg_affine *c)
{
	for (int64_t i = 0; i < c->channels; i++) {
		double f = fabs(c->f[i]);

		if (!(f < 1e18) || !(f > 1e-18 || f == 0) || !(fabs(c->s[i]) < 1e30))
			return false;
	}
	return true;
}

enum rg_decline rg_affine_take(const struct rg_match *m, int at, int from, struct rg_affine *c)
{
	const struct rg_node *n = &m->g->nodes[at];
	size_t size = (size_t)c->channels * sizeof(*c->f);
	enum rg_decline why;

	memcpy(c->f_before, c->f, size);
	memcpy(c->s_before, c->s, size);
	why = n->op_type[0] == 'B' ? apply_batchnorm(m, n, c) :
	      n->op_type[0] == 'N' ? negate(c) : apply_constant(m, n, from, c);
	if (!why && !in_range(c))
		why = RG_DECLINE_RANGE;
	if (why) {
		memcpy(c->f, c->f_before, size);
		memcpy(c->s, c->s_before, size);
	}
	return why;
}

/* ---- finding ---- */

int rg_affine_input(const struct rg_match *m, int at)
{
	static const struct { const char *op_type; bool commutes; } known[] = {
		{ "BatchNormalization", false },
		{ "Mul", true }, { "Add", true }, { "Div", false }, { "Sub", false },
	};
	const struct rg_graph *g = m->g;

	for (int k = 0; k < 5; k++) {
		const struct rg_node *n = at >= 0 ? &g->nodes[at] : NULL;
		int64_t count;
		int from;

		if (!rg_match_is(m, at, known[k].op_type))
			continue;
		from = n->in[k > 0 && known[k].commutes && rg_match_floats(g, n->in[0], &count) != NULL];
		if (n->n_out < 1 || n->out[0] < 0 || !g->values[from].shaped ||
		    !g->values[n->out[0]].shaped || g->values[from].origin != RG_CONST_NONE ||
		    !rg_shape_equal(&g->values[from].shape, &g->values[n->out[0]].shape))
			return -1;
		if (k > 0 && !rg_match_floats(g, n->in[n->in[0] == from], &count))
			return -1;
		return from;
	}
	return -1;
}

int rg_affine_chain(const struct rg_match *m, int value, int chain[RG_AFFINE_CHAIN], int *first)
{
	int n = 0;

	while (n < RG_AFFINE_CHAIN) {
		int at = m->g->values[value].producer, from = rg_affine_input(m, at);

		if (from < 0 || (n > 0 && rg_match_inside(m, value)))
			break;
		chain[n++] = at;
		value = from;
	}
	*first = value;
	return n;
}

enum rg_decline rg_affine_gather(const struct rg_match *m, const int *chain, int n, struct rg_affine *a,
				 int *from)
{
	int value = *from = rg_affine_input(m, chain[n - 1]);

	for (int i = n - 1; i >= 0; i--) {
		enum rg_decline why = rg_affine_take(m, chain[i], value, a);

		if (why)
			return why;
		value = m->g->nodes[chain[i]].out[0];
	}
	return RG_DECLINE_NONE;
}
