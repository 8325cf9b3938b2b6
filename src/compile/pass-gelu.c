/*
 * GELU that an exporter has taken apart (Hendrycks and Gimpel 2016):
 *
 *	x/2 (1 + erf(x / sqrt 2))                           Gelu(x)
 *	x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))     Gelu(x), approximate "tanh"
 *
 * in any order of sums and products. Five to eight passes over a tensor become one, and
 * what lies between them needs no memory.
 */
#include <string.h>

#include "compile/formula.h"
#include "compile/passes.h"

#define ROOT_HALF 0.70710678118654752440
#define ROOT_2_OVER_PI 0.79788456080286535588
#define CUBE 0.044715

enum { VARIABLES = 16 };

static int look_at(struct rg_match *m, int at, bool by_tanh, struct rg_error *err)
{
	static const struct rg_formula want = { .p = { 0, 0.5 }, .t = { 0, 0.5 } };
	static const struct rg_attr approximate = {
		.name = "approximate", .type = RG_ATTR_STRING, .s = "tanh", .s_len = 4
	};
	const struct rg_formula inner = { .p = { 0, by_tanh ? ROOT_2_OVER_PI : ROOT_HALF, 0,
						 by_tanh ? ROOT_2_OVER_PI * CUBE : 0 } };
	int u = m->g->nodes[at].in[0], t = m->g->nodes[at].out[0], x[VARIABLES];
	int n = rg_formula_variables(m, u, VARIABLES, x);

	for (int k = 1; k < n; k++) {
		struct rg_region r = { 0 }, behind = { 0 };
		struct rg_formula f;
		enum rg_decline why;
		int last;

		if (!rg_formula_of(m, u, x[k], -1, &f, &r) || !rg_formula_is(&f, &inner))
			continue;
		last = rg_formula_find(m, x[k], t, &want, &behind);
		for (int i = 0; i < behind.n && last >= 0; i++)
			if (!rg_region_add(&r, behind.node[i]))
				last = -1;
		if (last < 0 || !rg_region_add(&r, at))
			return 0;
		why = rg_region_closed(m, &r, last);
		if (why)
			return rg_match_note(m, at, last, why, err);
		return rg_region_replace(m, &r, last, &(struct rg_replacement){
			.domain = "", .op_type = "Gelu", .opset = 20, .n_in = 1, .in = &x[k],
			.n_attrs = by_tanh, .attrs = &approximate,
		}, err);
	}
	return 0;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_gelu.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Erf") || rg_match_is(&m, i, "Tanh"))
			rc = look_at(&m, i, g->nodes[i].op_type[0] == 'T', err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_gelu = {
	.name = "gelu",
	.what = "GELU that was taken apart, around erf or tanh, into one operator",
	.level = 1,
	.run = run,
};
