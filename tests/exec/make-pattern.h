/*
 * What tests of patterns share: graphs in many orders, told by a number; what became of
 * them; planted declines.
 */
#ifndef RG_TESTS_EXEC_MAKE_PATTERN_H
#define RG_TESTS_EXEC_MAKE_PATTERN_H

#include "base/alloc.h"
#include "compile/fold.h"
#include "make-pass.h"

/* "y = op(a, b)", the operands swapped where the operator does not mind and `swap` is set. */
static inline void make_pair(struct rg_graph *g, const char *op, const char *a, const char *b, const char *y, bool swap)
{
	char in[160];

	snprintf(in, sizeof(in), "%s,%s", swap ? b : a, swap ? a : b);
	make_node(g, op, in, y);
}

static inline void make_number(struct rg_graph *g, const char *name, float f)
{
	if (rg_graph_find_value(g, name) < 0)
		make_floats(g, name, "", &f);
}

/* The next of a handful of choices that a number holds. */
static inline int choose(uint64_t *how, int n)
{
	int c = (int)(*how % (uint64_t)n);

	*how /= (uint64_t)n;
	return c;
}

static inline int count_op(const struct rg_plan *p, const char *op_type)
{
	int n = 0;

	for (int i = 0; i < p->n_steps; i++)
		n += !strcmp(p->graph->nodes[p->steps[i].node].op_type, op_type);
	return n;
}

static inline const struct rg_node *node_of(const struct rg_plan *p, const char *op_type)
{
	for (int i = 0; i < p->n_steps; i++)
		if (!strcmp(p->graph->nodes[p->steps[i].node].op_type, op_type))
			return &p->graph->nodes[p->steps[i].node];
	fail_msg("no step %s", op_type);
	return NULL;
}

static inline void check_settles(make_fn *make, uint64_t how)
{
	static const struct rg_plan_options po = { .lanes = 1 };
	static const struct rg_pass_options o = { .level = RG_PASS_LEVELS };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = make(how);
	struct rg_pass_log log[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		assert_int_equal(rg_fold_graph(g, &po, &err), 0);
		assert_int_equal(rg_passes_run(g, &o, &log[i], &err), 0);
	}
	if (log[1].n_rewritten)
		fail_msg("order %d: %s of %s again", (int)how, log[1].notes[0].pass, log[1].notes[0].node);
	rg_pass_log_free(&log[0]);
	rg_pass_log_free(&log[1]);
	rg_graph_free(g);
}

static inline void check_allocations(make_fn *make, uint64_t how)
{
	int fails = 0, rc;

	do {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_plan_options opt = { .lanes = 1, .passes = { .level = 3 } };
		struct rg_graph *g = make(how);
		struct rg_plan *p = NULL;

		rg_alloc_fail_at((uint64_t)++fails);
		rc = rg_plan_make(g, &opt, &p, &err);
		rg_alloc_fail_at(0);
		if (rc)
			assert_int_equal(rc, -ENOMEM);
		rg_plan_free(p);
		rg_graph_free(g);
	} while (rc && fails < 5000);
	assert_int_equal(rc, 0);
	assert_true(fails > 20);
}

struct planted {
	struct rg_graph *g;
	const char *pass, *node;    /* output of the node that is noted */
	enum rg_decline why;        /* none: nobody may say a word */
};

/* The pass says that, of that node, and nothing else; at that level the outputs are those of no pass. */
static inline void check_planted(struct planted t, int i, int level, make_fn *again)
{
	struct rg_plan *p = plan_at(t.g, level, 0, NULL);
	int found = 0;
	char name[32];

	snprintf(name, sizeof(name), "n:%s", t.node);
	for (int k = 0; k < p->passes.n_notes; k++) {
		const struct rg_pass_note *n = &p->passes.notes[k];

		if (strcmp(n->pass, t.pass))
			continue;
		found++;
		if (strcmp(n->node, name) || n->decline != t.why)
			fail_msg("graph %d: %s %s, not %s %s", i, n->node, rg_decline_name(n->decline), name,
				 rg_decline_name(t.why));
	}
	if (found != (t.why ? 1 : 0))
		fail_msg("graph %d: %d notes of pass %s", i, found, t.pass);
	rg_plan_free(p);
	rg_graph_free(t.g);
	compare(again, (uint64_t)i, level, 0, NULL);
}

#endif
