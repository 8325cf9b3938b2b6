/*
 * SiLU that an exporter has taken apart (Hendrycks and Gimpel 2016; Ramachandran, Zoph
 * and Le 2017):
 *
 *	x sigmoid(a x)          Swish(x), alpha a
 *
 * in either order, a a product or a quotient before the sigmoid, or none.
 */
#include <math.h>

#include "compile/formula.h"
#include "compile/passes.h"

enum { VARIABLES = 4 };

static int look_at(struct rg_match *m, int at, struct rg_error *err)
{
	static const struct rg_formula want = { .t = { 0, 1 } };
	int u = m->g->nodes[at].in[0], t = m->g->nodes[at].out[0], x[VARIABLES];
	int n = rg_formula_variables(m, u, VARIABLES, x);

	for (int k = 0; k < n; k++) {
		struct rg_region r = { 0 }, behind = { 0 };
		struct rg_attr alpha = { .name = "alpha", .type = RG_ATTR_FLOAT };
		struct rg_formula f, inner = { 0 };
		enum rg_decline why;
		int last;

		if (!rg_formula_of(m, u, x[k], -1, &f, &r))
			continue;
		inner.p[1] = f.p[1];
		alpha.f = (float)f.p[1];
		if (!rg_formula_is(&f, &inner) || alpha.f == 0 || !isfinite(alpha.f))
			continue;
		last = rg_formula_find(m, x[k], t, &want, &behind);
		if (last < 0)
			continue;
		for (int i = 0; i < behind.n; i++)
			if (!rg_region_add(&r, behind.node[i]))
				return 0;
		if (!rg_region_add(&r, at))
			return 0;
		why = rg_region_closed(m, &r, last);
		if (why)
			return rg_match_note(m, at, last, why, err);
		return rg_region_replace(m, &r, last, &(struct rg_replacement){
			.domain = "", .op_type = "Swish", .opset = 24, .n_in = 1, .in = &x[k],
			.n_attrs = alpha.f != 1, .attrs = &alpha,
		}, err);
	}
	return 0;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_silu.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Sigmoid"))
			rc = look_at(&m, i, err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_silu = {
	.name = "silu",
	.what = "x sigmoid(a x) that was taken apart into one operator",
	.level = 1,
	.run = run,
};
