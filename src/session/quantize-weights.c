/*
 * What rounding does to the weights of each operator, with one scale for all and with one a channel: where
 * channels differ much in size, one scale leaves small ones few steps.
 */
#include <math.h>

#include "base/alloc.h"
#include "base/sqnr.h"
#include "session/quantize-work.h"

struct walk {
	const float *w;
	int64_t outer, channels, inner;
};

static double channel_most(const struct walk *l, int64_t c)
{
	double most = 0;

	for (int64_t o = 0; o < l->outer; o++)
		for (int64_t i = 0; i < l->inner; i++)
			most = fmax(most, fabs((double)l->w[(o * l->channels + c) * l->inner + i]));
	return most;
}

static void add_channel(const struct walk *l, int64_t c, const struct rg_qparams *p, struct rg_sqnr *s)
{
	for (int64_t o = 0; o < l->outer; o++)
		for (int64_t i = 0; i < l->inner; i++) {
			const float *x = &l->w[(o * l->channels + c) * l->inner + i];
			float back = rg_dequantize(rg_quantize(*x, p), p);

			rg_sqnr_add(s, x, &back, 1);
		}
}

/* The axis of a weight's channels, whether they have scales of their own or not. */
static int channel_axis(const struct rg_graph *g, const struct rg_quantize_site *s)
{
	const struct rg_node *n = &g->nodes[s->node];
	int rank = g->values[s->weight].shape.rank;

	if (n->op_type[0] == 'C' || rank < 2) /* a convolution; a vector */
		return 0;
	if (n->op_type[0] == 'G' && rg_node_int(n, "transB", 0))
		return rank - 2;
	return rank - 1;
}

int rg_quantize_measure_weights(struct quantize_work *w, const struct rg_graph *g, struct rg_error *err)
{
	for (int i = 0; i < w->sites.n; i++) {
		const struct rg_quantize_site *s = &w->sites.v[i];
		struct rg_quantized_op *op = &w->r->ops[w->op[i]];
		struct rg_sqnr each = { 0 }, one = { 0 };
		double most = 0, least = INFINITY;
		struct rg_qparams all;
		struct walk l;
		int axis;

		if (s->weight < 0)
			continue;
		axis = channel_axis(g, s);
		l = (struct walk){ g->values[s->weight].data,
				   rg_shape_count_range(&g->values[s->weight].shape, 0, axis),
				   g->values[s->weight].shape.dim[axis],
				   rg_shape_count_range(&g->values[s->weight].shape, axis + 1,
							g->values[s->weight].shape.rank) };
		for (int64_t c = 0; c < l.channels; c++) {
			double m = channel_most(&l, c);

			most = fmax(most, m);
			least = m > 0 ? fmin(least, m) : least;
		}
		all = rg_qparams_s8(most);
		for (int64_t c = 0; c < l.channels; c++) {
			struct rg_qparams own = rg_qparams_s8(channel_most(&l, c));

			add_channel(&l, c, &own, &each);
			add_channel(&l, c, &all, &one);
		}
		op->channels = s->axis >= 0 ? l.channels : 1;
		op->spread = most > 0 ? most / least : (double)NAN;
		op->per_channel_db = rg_sqnr_db(&each);
		op->per_tensor_db = rg_sqnr_db(&one);
		op->weight_db = s->axis >= 0 ? op->per_channel_db : op->per_tensor_db;
		if (rg_session_interrupted())
			return rg_error_set(err, RG_EINTERRUPTED, "interrupted; nothing was written");
	}
	return 0;
}
