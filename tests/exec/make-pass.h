/*
 * What the tests of graph passes share: convolutions with random constants, a plan with passes, and
 * the comparison of a graph with and without them.
 */
#ifndef RG_TESTS_EXEC_MAKE_PASS_H
#define RG_TESTS_EXEC_MAKE_PASS_H

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "make-dynamic.h"
#include "sys/cpu.h"

enum { CHANNELS = 4 };

static inline void random_floats(struct rg_graph *g, const char *name, const char *shape, int n,
				 uint64_t seed, float low)
{
	uint64_t stream = rg_rng_stream(seed, name);
	float v[2048];

	assert_true(n <= 2048);
	for (int i = 0; i < n; i++)
		v[i] = low + (float)rg_rng_integer(stream, (uint64_t)i, 0, 1000) / 1000;
	make_floats(g, name, shape, v);
}

/* y = BatchNormalization(x) with parameters of its own. */
static inline void make_batchnorm(struct rg_graph *g, const char *x, const char *y, uint64_t seed)
{
	static const char *const parts[] = { "scale", "shift", "mean", "var" };
	char names[4][32], in[160];

	for (int i = 0; i < 4; i++) {
		snprintf(names[i], sizeof(names[i]), "%s-%s", y, parts[i]);
		random_floats(g, names[i], "4", CHANNELS, seed, i == 3 ? 0.1f : -0.5f);
	}
	snprintf(in, sizeof(in), "%s,%s,%s,%s,%s", x, names[0], names[1], names[2], names[3]);
	make_node(g, "BatchNormalization", in, y);
}

static inline void make_conv(struct rg_graph *g, const char *x, const char *y, bool bias, uint64_t seed)
{
	static const int64_t pads[] = { 1, 1, 1, 1 };
	struct rg_attr attr = ints_attr("pads", 4, pads);
	char w[32], b[32], in[100];

	snprintf(w, sizeof(w), "%s-w", y);
	snprintf(b, sizeof(b), "%s-b", y);
	random_floats(g, w, "4x4x3x3", CHANNELS * CHANNELS * 9, seed, -0.5f);
	if (bias)
		random_floats(g, b, "4", CHANNELS, seed, -0.5f);
	snprintf(in, sizeof(in), bias ? "%s,%s,%s" : "%s,%s", x, w, b);
	make_node_attrs(g, "Conv", in, y, 1, &attr);
}

static inline struct rg_plan *plan_at(struct rg_graph *g, int level, int n_disabled,
				      const char *const *disabled)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_plan_options opt = { .lanes = 2, .passes = { level, n_disabled, disabled } };
	struct rg_cpu cpu;
	struct rg_plan *p;

	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	if (rg_plan_make(g, &opt, &p, &err))
		fail_msg("%s: %s", err.where, err.message);
	assert_int_equal(rg_plan_check(p, &err), 0);
	return p;
}

/* Outputs of a plan, one after the other; the caller frees. */
static inline float *outputs_of(const struct rg_plan *p, int *count)
{
	struct rg_error err = RG_ERROR_INIT;
	const struct rg_graph *g = p->graph;
	struct rg_exec *e;
	float *all = calloc(1 << 16, sizeof(*all));

	assert_non_null(all);
	assert_int_equal(rg_exec_new(p, NULL, &e, &err), 0);
	for (int i = 0; i < g->n_inputs; i++) {
		struct rg_tensor t = rg_exec_input(e, i);

		for (int64_t k = 0; k < rg_shape_count(&t.shape); k++)
			((float *)t.data)[k] = (float)((k * 37 + i) % 101) / 50 - 1;
	}
	assert_int_equal(rg_exec_run(e, &err), 0);
	*count = 0;
	for (int i = 0; i < g->n_outputs; i++) {
		struct rg_tensor t = rg_exec_output(e, i);
		int64_t n = rg_shape_count(&t.shape);

		assert_true(*count + n <= 1 << 16);
		memcpy(all + *count, t.data, (size_t)n * sizeof(*all));
		*count += (int)n;
	}
	rg_exec_free(e);
	return all;
}

typedef struct rg_graph *make_fn(uint64_t seed);

/* Of every two steps that follow each other something says why they stayed two. */
static inline void check_accounted(const struct rg_plan *p)
{
	for (int i = 0; i < p->n_edges; i++) {
		const char *a = p->graph->nodes[p->steps[p->edges[i].from_step].node].name;
		const char *b = p->graph->nodes[p->steps[p->edges[i].to_step].node].name;
		bool said = false;

		for (int k = 0; k < p->passes.n_notes && !said; k++) {
			const struct rg_pass_note *n = &p->passes.notes[k];

			said = n->decline && ((!strcmp(n->node, a) && !strcmp(n->into, b)) ||
					      (!strcmp(n->node, b) && !strcmp(n->into, a)));
		}
		if (!said)
			fail_msg("nothing says why %s and %s are two steps", a, b);
	}
}

/* The same outputs with these passes as without. Returns the number of rewrites. */
static inline int compare(make_fn *make, uint64_t seed, int level, int n_disabled,
			  const char *const *disabled)
{
	struct rg_graph *plain = make(seed), *g = make(seed);
	struct rg_plan *before = plan_at(plain, 0, 0, NULL), *after = plan_at(g, level, n_disabled, disabled);
	int n, n_after, rewritten = after->passes.n_rewritten;
	float *want = outputs_of(before, &n), *got = outputs_of(after, &n_after);

	assert_int_equal(n, n_after);
	assert_int_equal(before->passes.n_notes, 0);
	assert_true(after->n_steps <= before->n_steps);
	assert_int_equal(before->n_steps_before, before->n_steps);
	if (level > 0) {
		assert_int_equal(after->n_steps_before, before->n_steps);
		check_accounted(after);
	}
	for (int i = 0; i < n; i++)
		if (!(fabsf(got[i] - want[i]) <= 1e-4f * (1 + fabsf(want[i]))) && got[i] != want[i] &&
		    !(isnan(got[i]) && isnan(want[i])))
			fail_msg("seed %d, level %d: output %d is %.9g, not %.9g", (int)seed, level, i,
				 got[i], want[i]);
	free(want);
	free(got);
	rg_plan_free(before);
	rg_plan_free(after);
	rg_graph_free(plain);
	rg_graph_free(g);
	return rewritten;
}

#endif
