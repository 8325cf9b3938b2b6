/* Small graphs for tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/compile/make-graph.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "sys/cpu.h"

static void must(int rc, const struct rg_error *err)
{
	if (rc < 0)
		fail_msg("%s: %s (%s)", err->where, err->message, err->hint);
}

static struct rg_shape shape_of(const char *text)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape s = { 0 };

	if (text[0])
		must(rg_shape_parse(text, &s, &err), &err);
	return s;
}

static int value_of(struct rg_graph *g, const char *name)
{
	struct rg_error err = RG_ERROR_INIT;
	int v = rg_graph_value(g, name, &err);

	must(v, &err);
	return v;
}

struct rg_graph *make_graph(void)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = rg_graph_new(NULL);

	assert_non_null(g);
	must(rg_graph_set_opset(g, "", 17, &err), &err);
	return g;
}

void make_input(struct rg_graph *g, const char *name, enum rg_dtype t, const char *shape)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape s = shape_of(shape);
	struct rg_dim dims[RG_MAX_RANK];
	int i, v = value_of(g, name);

	for (i = 0; i < s.rank; i++)
		dims[i] = (struct rg_dim){ s.dim[i], NULL };
	must(rg_graph_declare(g, v, t, s.rank, dims, &err), &err);
	must(rg_graph_add_input(g, v, &err), &err);
}

void make_floats(struct rg_graph *g, const char *name, const char *shape, const float *values)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape s = shape_of(shape);
	int64_t i, n = rg_shape_count(&s);
	float *data = n ? rg_alloc_aligned(64, (size_t)n * sizeof(float)) : NULL;

	assert_true(n == 0 || data);
	for (i = 0; i < n; i++)
		data[i] = values ? values[i] : (float)i;
	must(rg_graph_add_const(g, value_of(g, name), RG_CONST_INITIALIZER, RG_F32, &s, data, &err), &err);
}

void make_ints(struct rg_graph *g, const char *name, int n, const int64_t *values)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_shape s = { 1, { n } };
	int64_t *data = rg_alloc_aligned(64, (size_t)n * sizeof(int64_t));

	assert_non_null(data);
	memcpy(data, values, (size_t)n * sizeof(int64_t));
	must(rg_graph_add_const(g, value_of(g, name), RG_CONST_INITIALIZER, RG_I64, &s, data, &err), &err);
}

static int split(struct rg_graph *g, const char *names, int *out, int cap)
{
	char word[64];
	int n = 0;

	while (*names) {
		size_t len = strcspn(names, ",");

		assert_true(n < cap && len < sizeof(word));
		memcpy(word, names, len);
		word[len] = '\0';
		out[n++] = len ? value_of(g, word) : -1;
		names += len;
		if (*names == ',')
			names++;
	}
	return n;
}

void make_node_attrs(struct rg_graph *g, const char *op, const char *in, const char *out, int n_attrs,
		     const struct rg_attr *attrs)
{
	struct rg_error err = RG_ERROR_INIT;
	int ins[16], outs[16], n_in = split(g, in, ins, 16), n_out = split(g, out, outs, 16);
	char name[80];

	snprintf(name, sizeof(name), "n:%.*s", (int)strcspn(out, ","), out);
	must(rg_graph_add_node(g, "", op, name, n_in, ins, n_out, outs, n_attrs, attrs, &err), &err);
}

void make_node(struct rg_graph *g, const char *op, const char *in, const char *out)
{
	make_node_attrs(g, op, in, out, 0, NULL);
}

void make_output(struct rg_graph *g, const char *name)
{
	struct rg_error err = RG_ERROR_INIT;

	must(rg_graph_add_output(g, value_of(g, name), &err), &err);
}

void make_finish(struct rg_graph *g)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_bindings none = { 0 };

	must(rg_graph_finish(g, &err), &err);
	must(rg_graph_bind(g, &none, &err), &err);
}

struct rg_plan *make_plan(struct rg_graph *g, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_plan_options opt = { .lanes = lanes };
	struct rg_plan *p;
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	must(rg_plan_make(g, &opt, &p, &err), &err);
	must(rg_plan_check(p, &err), &err);
	return p;
}

const struct rg_plan_tensor *plan_value(const struct rg_plan *p, const char *name)
{
	int v = rg_graph_find_value(p->graph, name);

	assert_true(v >= 0);
	return &p->tensors[v];
}

int plan_step(const struct rg_plan *p, const char *out)
{
	int s, v = rg_graph_find_value(p->graph, out);

	for (s = 0; s < p->n_steps; s++)
		if (p->steps[s].out[0] == v)
			return s;
	return -1;
}

/* ---- random graphs ---- */

static const char *const random_shapes[3][2] = {
	{ "128", "1x128" }, { "1000", "10x100" }, { "37", "37x1" },
};

struct random_value {
	int size, form; /* indices into random_shapes */
};

struct rg_graph *make_random(uint64_t seed, int n)
{
	static const char *const unary[] = { "Relu", "Neg", "Abs", "Identity" };
	static const char *const binary[] = { "Add", "Sub", "Max" };
	struct rg_graph *g = make_graph();
	uint64_t s = rg_rng_stream(seed, "graph"), k = 0;
	struct random_value v[512];
	char in[64], out[32], name[32];
	int i, f, count = 0;

	assert_true(n + 6 <= 512);
	for (i = 0; i < 3; i++) {
		for (f = 0; f < 2; f++) {
			struct rg_shape sh = shape_of(random_shapes[i][f]);

			snprintf(name, sizeof(name), "shape%d%d", i, f);
			make_ints(g, name, sh.rank, sh.dim);
		}
		snprintf(name, sizeof(name), "in%d", i);
		make_input(g, name, RG_F32, random_shapes[i][0]);
		snprintf(name, sizeof(name), "const%d", i);
		make_floats(g, name, random_shapes[i][0], NULL);
	}
	for (i = 0; i < n; i++) {
		/* -3..-1 are the inputs, -6..-4 the constants, else an earlier node, mostly a late one */
		int a = (int)rg_rng_integer(s, k++, i > 12 ? i - 12 : -6, i - 1), b, tries;
		int kind = (int)rg_rng_integer(s, k++, 0, 9);
		char from[32], other[32] = "";
		struct random_value va;

#define NAME_OF(buf, x) ((x) >= 0 ? snprintf(buf, sizeof(buf), "v%d", x) : \
			 (x) >= -3 ? snprintf(buf, sizeof(buf), "in%d", (x) + 3) : \
				     snprintf(buf, sizeof(buf), "const%d", (x) + 6))
#define VALUE_OF(x) ((x) >= 0 ? v[x] : (x) >= -3 ? (struct random_value){ (x) + 3, 0 } : \
						   (struct random_value){ (x) + 6, 0 })
		NAME_OF(from, a);
		va = VALUE_OF(a);
		snprintf(out, sizeof(out), "v%d", i);
		if (kind < 4) {
			make_node(g, unary[kind], from, out);
		} else if (kind < 7) {
			for (b = a, tries = 0; tries < 20; tries++) {
				int c = (int)rg_rng_integer(s, k++, -6, i - 1);

				if (VALUE_OF(c).size == va.size && VALUE_OF(c).form == va.form)
					b = c;
			}
			NAME_OF(other, b);
			snprintf(in, sizeof(in), "%s,%s", from, other);
			make_node(g, binary[kind - 4], in, out);
		} else {
			va.form = 1 - va.form;
			snprintf(in, sizeof(in), "%s,shape%d%d", from, va.size, va.form);
			make_node(g, "Reshape", in, out);
		}
		v[i] = va;
#undef NAME_OF
#undef VALUE_OF
	}
	for (i = n - 1; i >= 0 && count < 4; i -= (int)rg_rng_integer(s, k++, 1, 9), count++) {
		snprintf(out, sizeof(out), "v%d", i);
		make_output(g, out);
	}
	make_finish(g);
	return g;
}
