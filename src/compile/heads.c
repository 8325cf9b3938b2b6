/* See heads.h. */
#include "compile/heads.h"

#include <math.h>
#include <string.h>

bool rg_heads_turns(const struct rg_match *m, int node, int rank, const int64_t *perm)
{
	const int64_t *have;

	return rg_match_is(m, node, "Transpose") && rg_node_ints(&m->g->nodes[node], "perm", &have) == rank &&
	       !memcmp(have, perm, (size_t)rank * sizeof(*perm));
}
#define TURNS(M, NODE, ...) \
	rg_heads_turns(M, NODE, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ })

static bool has_dims(const struct rg_match *m, int value, int rank, const int64_t *dims)
{
	const struct rg_value *v = &m->g->values[value];
	struct rg_shape want = rg_shape_of(rank, dims);

	return v->shaped && !v->dynamic && v->dtype == RG_F32 && rg_shape_equal(&v->shape, &want);
}
#define HAS_DIMS(M, VALUE, ...) \
	has_dims(M, VALUE, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ })

static int maker(const struct rg_match *m, int value)
{
	return value >= 0 ? m->g->values[value].producer : -1;
}

int rg_heads_unscale(const struct rg_match *m, int value, double *scale, struct rg_region *nodes)
{
	for (;;) {
		int at = rg_match_maker(m, value, "Mul"), by = 1;
		const struct rg_node *n;
		float f;

		if (at < 0)
			at = rg_match_maker(m, value, "Div");
		if (at < 0)
			return value;
		n = &m->g->nodes[at];
		if (n->op_type[0] == 'M' && rg_match_number(m->g, n->in[0], &f))
			by = 0;
		if (!rg_match_number(m->g, n->in[by], &f) || !isfinite(f) || f == 0 ||
		    !rg_shape_equal(&m->g->values[n->in[1 - by]].shape, &m->g->values[value].shape) ||
		    !rg_region_add(nodes, at))
			return value;
		*scale *= n->op_type[0] == 'M' ? (double)f : 1 / (double)f;
		value = n->in[1 - by];
	}
}

/* A constant list of integers, from an input or, before that was one, an attribute. */
static int64_t integer(const struct rg_match *m, const struct rg_node *n, int input, const char *attr, int64_t none)
{
	const struct rg_value *v = input < n->n_in && n->in[input] >= 0 ? &m->g->values[n->in[input]] : NULL;
	const int64_t *list;

	if (v && v->origin != RG_CONST_NONE && v->origin != RG_CONST_BOUND && v->data &&
	    rg_shape_count(&v->shape) == 1)
		return v->dtype == RG_I64 ? *(const int64_t *)v->data :
		       v->dtype == RG_I32 ? *(const int32_t *)v->data : none;
	return !v && attr && rg_node_ints(n, attr, &list) == 1 ? list[0] : none;
}

/* Squeeze of axis 0: what it squeezes, or -1. */
static int squeezed(const struct rg_match *m, int value, struct rg_region *nodes)
{
	int at = rg_match_maker(m, value, "Squeeze");

	if (at < 0 || integer(m, &m->g->nodes[at], 1, "axes", -1) != 0 || !rg_region_add(nodes, at))
		return -1;
	return m->g->nodes[at].in[0];
}

/* One of several along the first dimension: the value that it is one of, or -1. *part: which one. */
static int picked(const struct rg_match *m, int value, int *part, struct rg_region *nodes)
{
	int at = rg_match_maker(m, value, "Gather"), from;
	const struct rg_node *n;
	int64_t index;

	if (at >= 0) {
		n = &m->g->nodes[at];
		index = integer(m, n, 1, NULL, -1);
		if (rg_node_int(n, "axis", 0) != 0 || index < 0 || index > 2 || !rg_region_add(nodes, at))
			return -1;
		*part = (int)index;
		return n->in[0];
	}
	from = squeezed(m, value, nodes);
	at = maker(m, from);
	if (from < 0 || at < 0)
		return -1;
	n = &m->g->nodes[at];
	if (rg_match_is(m, at, "Slice") && rg_region_add(nodes, at)) {
		index = integer(m, n, 1, "starts", -1);
		if (index < 0 || index > 2 || integer(m, n, 2, "ends", -1) != index + 1 ||
		    integer(m, n, 3, "axes", 0) != 0 || integer(m, n, 4, NULL, 1) != 1)
			return -1;
		*part = (int)index;
		return n->in[0];
	}
	if (!rg_match_is(m, at, "Split") || rg_node_int(n, "axis", 0) != 0 || n->n_out != 3 ||
	    !rg_region_add(nodes, at))
		return -1;
	for (int k = 0; k < n->n_out; k++) {
		if (n->out[k] < 0 || m->g->values[n->out[k]].shape.dim[0] != 1)
			return -1;
		if (n->out[k] == from)
			*part = k;
	}
	return n->in[0];
}

/* Steps back over a Reshape, which leaves the order of elements as it is. */
static int reshaped(const struct rg_match *m, int value, struct rg_region *nodes)
{
	int at = rg_match_maker(m, value, "Reshape");

	return at >= 0 && rg_region_add(nodes, at) ? m->g->nodes[at].in[0] : value;
}

static void take_whole(const struct rg_match *m, int value, struct rg_heads *h)
{
	h->x = rg_heads_unscale(m, reshaped(m, value, &h->nodes), &h->scale, &h->nodes);
}

/* Q, K or V out of one tensor: 3 x batch x heads x seq x size, before that batch x seq x 3 x heads x size. */
static bool take_part(const struct rg_match *m, int value, struct rg_heads *h)
{
	struct rg_region nodes = h->nodes;
	int part = -1, all = picked(m, value, &part, &nodes), at = maker(m, all);

	if (all < 0 || !HAS_DIMS(m, all, 3, h->batch, h->heads, h->seq, h->size) || !TURNS(m, at, 2, 0, 3, 1, 4) ||
	    !rg_region_add(&nodes, at))
		return false;
	h->nodes = nodes;
	h->part = part;
	h->parts = 3;
	h->x = reshaped(m, m->g->nodes[at].in[0], &h->nodes);
	return true;
}

/* The heads of now, which are what is past and what comes. */
static int behind_past(const struct rg_match *m, int value, struct rg_heads *h)
{
	int at = rg_match_maker(m, value, "Concat");
	const struct rg_node *n;
	int64_t axis;

	if (at < 0)
		return value;
	n = &m->g->nodes[at];
	axis = rg_node_int(n, "axis", 0);
	if (n->n_in != 2 || (axis != 2 && axis != -2) || m->g->values[n->in[0]].shape.rank != 4 ||
	    !rg_region_add(&h->nodes, at))
		return value;
	h->past = n->in[0];
	h->present = value;
	h->seq -= m->g->values[n->in[0]].shape.dim[2];
	return n->in[1];
}

bool rg_heads_of(const struct rg_match *m, int value, bool transposed, struct rg_heads *h)
{
	int at;

	h->scale = 1;
	h->part = 0;
	h->parts = 1;
	h->past = h->present = -1;
	h->heads_first = false;
	value = rg_heads_unscale(m, value, &h->scale, &h->nodes);
	at = maker(m, value);
	if (transposed) {
		if (!HAS_DIMS(m, value, h->batch, h->heads, h->size, h->seq))
			return false;
		if (TURNS(m, at, 0, 2, 3, 1) && rg_region_add(&h->nodes, at)) {
			take_whole(m, m->g->nodes[at].in[0], h);
			return true;
		}
		if (!TURNS(m, at, 0, 1, 3, 2) || !rg_region_add(&h->nodes, at))
			return false;
		value = rg_heads_unscale(m, m->g->nodes[at].in[0], &h->scale, &h->nodes);
	}
	if (!HAS_DIMS(m, value, h->batch, h->heads, h->seq, h->size))
		return false;
	value = behind_past(m, value, h);
	at = maker(m, value);
	if (TURNS(m, at, 0, 2, 1, 3) && rg_region_add(&h->nodes, at)) {
		/* a scale of what comes alone is not one of all */
		if (h->past >= 0)
			h->x = reshaped(m, m->g->nodes[at].in[0], &h->nodes);
		else
			take_whole(m, m->g->nodes[at].in[0], h);
		return true;
	}
	if (take_part(m, value, h))
		return true;
	h->x = value;
	h->heads_first = true;
	return true;
}
