/* From the text of a shape to a graph of one node, and from the nodes of a model to texts. */
#include "session/bench-case.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compile/fold.h"
#include "graph/op-gemm.h"
#include "graph/window.h"
#include "models/model.h"
#include "session/bench-text.h"

#define OPSET 17
#define MAX_TENSOR_BYTES (INT64_C(16) << 30)

int rg_bench_kind_parse(const char *word, enum rg_bench_kind *out, struct rg_error *err)
{
	if (strcmp(word, "gemm") == 0) {
		*out = RG_BENCH_GEMM;
	} else if (strcmp(word, "conv") == 0) {
		*out = RG_BENCH_CONV;
	} else {
		rg_error_set(err, RG_EUSAGE, "'%s' cannot be measured alone", word);
		return rg_error_hint(err, "gemm or conv, or the ladder of a matrix product: ladder");
	}
	return 0;
}

/* ---- graphs of one node ---- */

static struct rg_graph *new_graph(struct rg_error *err)
{
	struct rg_graph *g = rg_graph_new(NULL);

	if (!g) {
		rg_error_nomem(err, sizeof(*g));
		return NULL;
	}
	if (rg_graph_set_opset(g, "", OPSET, err)) {
		rg_graph_free(g);
		return NULL;
	}
	return g;
}

static int size_of(const char *name, const struct rg_shape *s, int64_t *bytes, struct rg_error *err)
{
	*bytes = rg_tensor_bytes(RG_F32, s);
	if (*bytes >= 0 && *bytes <= MAX_TENSOR_BYTES)
		return 0;
	rg_error_set(err, RG_EUSAGE, "%s would take more than 16 GiB", name);
	return rg_error_hint(err, "take a smaller shape");
}

/* A graph input, or a constant of seeded values. Its index, or an error. */
static int add_operand(struct rg_graph *g, const char *name, const struct rg_shape *s, bool constant,
		       struct rg_error *err)
{
	struct rg_dim dims[RG_MAX_RANK] = { { 0 } };
	int value = rg_graph_value(g, name, err), rc;
	int64_t bytes;
	float *data;

	if (value < 0 || size_of(name, s, &bytes, err))
		return err->code;
	if (!constant) {
		for (int i = 0; i < s->rank; i++)
			dims[i].value = s->dim[i];
		rc = rg_graph_declare(g, value, RG_F32, s->rank, dims, err);
		if (!rc)
			rc = rg_graph_add_input(g, value, err);
		return rc ? rc : value;
	}
	data = rg_alloc_aligned(64, (size_t)bytes);
	if (!data)
		return rg_error_nomem(err, (unsigned long)bytes);
	rg_rng_fill_f32(rg_rng_stream(1, name), -1, 1, data, (size_t)bytes / sizeof(*data));
	rc = rg_graph_add_const(g, value, RG_CONST_INITIALIZER, RG_F32, s, data, err);
	return rc ? rc : value;
}

static int finish(struct rg_graph *g, const char *op, int n_in, const int *in, int n_attrs,
		  const struct rg_attr *attrs, struct rg_error *err)
{
	int y = rg_graph_value(g, "y", err), rc;

	if (y < 0)
		return y;
	rc = rg_graph_declare(g, y, RG_F32, -1, NULL, err);
	if (!rc)
		rc = rg_graph_add_output(g, y, err);
	if (!rc)
		rc = rg_graph_add_node(g, "", op, "node", n_in, in, 1, &y, n_attrs, attrs, err);
	if (rc >= 0)
		rc = rg_graph_finish(g, err);
	return rc ? rc : rg_graph_bind(g, NULL, err);
}

static struct rg_attr int_attr(const char *name, int64_t v)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_INT, .i = v };
}

static struct rg_attr ints_attr(const char *name, const int64_t *v, int n)
{
	return (struct rg_attr){ .name = name, .type = RG_ATTR_INTS, .ints = v, .count = n };
}

/* The result must fit, too. */
static int check_output(int rank, const int64_t *dims, struct rg_error *err)
{
	struct rg_shape s = rg_shape_of(rank, dims);
	int64_t bytes;

	return size_of("the output", &s, &bytes, err);
}

static int gemm_graph(const struct rg_bench_gemm *c, struct rg_graph *g, struct rg_error *err)
{
	const bool gemm = c->trans_a || c->trans_b || c->bias;
	const int batched = c->batch > 0; /* the dimension in front */
	const int64_t a[3] = { c->batch, c->trans_a ? c->k : c->m, c->trans_a ? c->m : c->k };
	const int64_t b[3] = { c->batch, c->trans_b ? c->n : c->k, c->trans_b ? c->k : c->n };
	const int64_t y[3] = { c->batch, c->m, c->n };
	struct rg_shape shape = rg_shape_of(2 + batched, a + !batched);
	const struct rg_attr attrs[2] = { int_attr("transA", c->trans_a), int_attr("transB", c->trans_b) };
	int in[3];

	if (check_output(2 + batched, y + !batched, err))
		return err->code;
	in[0] = add_operand(g, "a", &shape, false, err);
	shape = rg_shape_of(2 + batched, b + !batched);
	in[1] = in[0] < 0 ? -1 : add_operand(g, "b", &shape, c->b_const > 0, err);
	shape = rg_shape_of(1, &c->n);
	in[2] = in[1] < 0 || !c->bias ? 0 : add_operand(g, "bias", &shape, true, err);
	if (in[0] < 0 || in[1] < 0 || in[2] < 0)
		return err->code;
	return finish(g, gemm ? "Gemm" : "MatMul", 2 + c->bias, in, gemm ? 2 : 0, attrs, err);
}

static int conv_graph(const struct rg_bench_conv *c, struct rg_graph *g, struct rg_error *err)
{
	const int64_t x[4] = { c->n, c->c, c->h, c->w };
	const int64_t w[4] = { c->m, c->c / c->group, c->kernel[0], c->kernel[1] };
	const int64_t y[4] = {
	    c->n, c->m,
	    (c->h + c->pad[0] + c->pad[2] - c->dilation[0] * (c->kernel[0] - 1) - 1) / c->stride[0] + 1,
	    (c->w + c->pad[1] + c->pad[3] - c->dilation[1] * (c->kernel[1] - 1) - 1) / c->stride[1] + 1};
	const struct rg_attr attrs[] = {
	    ints_attr("dilations", c->dilation, 2),  int_attr("group", c->group),
	    ints_attr("kernel_shape", c->kernel, 2), ints_attr("pads", c->pad, 4),
	    ints_attr("strides", c->stride, 2),
	};
	struct rg_shape shape = rg_shape_of(4, x);
	int in[3];

	if (check_output(4, y, err))
		return err->code;
	in[0] = add_operand(g, "x", &shape, false, err);
	shape = rg_shape_of(4, w);
	in[1] = in[0] < 0 ? -1 : add_operand(g, "w", &shape, true, err);
	shape = rg_shape_of(1, &c->m);
	in[2] = in[1] < 0 || !c->bias ? 0 : add_operand(g, "bias", &shape, true, err);
	if (in[0] < 0 || in[1] < 0 || in[2] < 0)
		return err->code;
	return finish(g, "Conv", 2 + c->bias, in, sizeof(attrs) / sizeof(attrs[0]), attrs, err);
}

/* ---- sets ---- */

void rg_bench_set_free(struct rg_bench_set *s)
{
	for (size_t i = 0; i < s->n; i++) {
		rg_free(s->v[i].name);
		rg_graph_free(s->v[i].graph);
	}
	rg_free(s->v);
	memset(s, 0, sizeof(*s));
}

/* The new case of that name, whose graph is still to be filled; *out NULL: it
 * is there already, and counted once more. Takes the text. */
static int new_case(struct rg_bench_set *s, struct rg_str *name, struct rg_bench_case **out,
		    struct rg_error *err)
{
	struct rg_bench_case *v;
	int rc = 0;

	*out = NULL;
	for (size_t i = 0; i < s->n && !name->failed; i++) {
		if (strcmp(s->v[i].name, rg_str_text(name)) == 0) {
			s->v[i].times++;
			rg_str_free(name);
			return 0;
		}
	}
	v = rg_grow(s->v, &s->cap, s->n + 1, sizeof(*v));
	if (v) {
		s->v = v;
		v = &s->v[s->n];
		*v = (struct rg_bench_case){.name = name->failed ? NULL : rg_strdup(rg_str_text(name)),
					    .times = 1};
	}
	if (!v || !v->name) {
		rc = rg_error_nomem(err, (s->n + 1) * sizeof(*v));
	} else {
		s->n++;
		v->graph = new_graph(err);
		rc = v->graph ? 0 : err->code;
		*out = v;
	}
	rg_str_free(name);
	return rc;
}

static int add_gemm(struct rg_bench_set *s, const struct rg_bench_gemm *g, struct rg_error *err)
{
	struct rg_bench_case *c;
	struct rg_str name = { 0 };
	int rc;

	rg_bench_gemm_text(&name, g);
	rc = new_case(s, &name, &c, err);
	return rc || !c ? rc : gemm_graph(g, c->graph, err);
}

static int add_conv(struct rg_bench_set *s, const struct rg_bench_conv *v, struct rg_error *err)
{
	struct rg_bench_case *c;
	struct rg_str name = { 0 };
	int rc;

	rg_bench_conv_text(&name, v);
	rc = new_case(s, &name, &c, err);
	return rc || !c ? rc : conv_graph(v, c->graph, err);
}

int rg_bench_add(struct rg_bench_set *s, enum rg_bench_kind kind, const char *text, struct rg_error *err)
{
	struct rg_bench_conv conv;
	struct rg_bench_gemm gemm;
	int rc;

	if (kind == RG_BENCH_CONV) {
		rc = rg_bench_conv_parse(text, &conv, err);
		return rc ? rc : add_conv(s, &conv, err);
	}
	rc = rg_bench_gemm_parse(text, &gemm, err);
	if (rc || gemm.b_const >= 0)
		return rc ? rc : add_gemm(s, &gemm, err);
	for (gemm.b_const = 0; gemm.b_const < 2 && !rc; gemm.b_const++)
		rc = add_gemm(s, &gemm, err);
	return rc;
}

/* ---- from models ---- */

static bool is_f32(const struct rg_graph *g, int value)
{
	return value >= 0 && g->values[value].shaped && g->values[value].dtype == RG_F32;
}

static bool read_matmul(const struct rg_graph *g, const struct rg_node *n, struct rg_bench_gemm *out)
{
	const struct rg_value *a = &g->values[n->in[0]], *b = &g->values[n->in[1]];
	struct rg_matmul mm;

	if (!rg_matmul_shape(&a->shape, &b->shape, &mm))
		return false;
	*out = (struct rg_bench_gemm){.m = mm.m, .k = mm.k, .n = mm.n, .b_const = b->origin != RG_CONST_NONE};
	if (mm.batch_b.rank == 0)
		out->m *= rg_shape_count(&mm.batch_a); /* rows of A, batch after batch */
	else if (rg_shape_equal(&mm.batch_a, &mm.batch_b))
		out->batch = rg_shape_count(&mm.batch_a);
	else
		return false;
	return true;
}

static bool read_gemm(const struct rg_graph *g, const struct rg_node *n, struct rg_bench_gemm *out)
{
	const struct rg_value *a = &g->values[n->in[0]], *b = &g->values[n->in[1]];

	*out = (struct rg_bench_gemm){.b_const = b->origin != RG_CONST_NONE,
				      .bias = n->n_in > 2 && n->in[2] >= 0,
				      .trans_a = rg_node_int(n, "transA", 0),
				      .trans_b = rg_node_int(n, "transB", 0)};
	return rg_node_float(n, "alpha", 1) == 1 && rg_node_float(n, "beta", 1) == 1 &&
	       rg_gemm_shape(n, &a->shape, &b->shape, &out->m, &out->n, &out->k);
}

static bool read_conv(const struct rg_graph *g, const struct rg_node *n, struct rg_bench_conv *out,
		      struct rg_error *err)
{
	struct rg_window w;

	if (rg_window_conv(n, &g->values[n->in[0]].shape, &g->values[n->in[1]].shape, &w, err)) {
		rg_error_clear(err);
		return false;
	}
	if (w.n != 2 || g->values[n->in[1]].origin == RG_CONST_NONE)
		return false;
	*out = (struct rg_bench_conv){ .n = w.batch, .c = w.c_in, .h = w.in[0], .w = w.in[1], .m = w.c_out,
				       .group = w.group, .kernel = { w.kernel[0], w.kernel[1] },
				       .stride = { w.stride[0], w.stride[1] },
				       .dilation = { w.dilation[0], w.dilation[1] },
				       .pad = { w.pad_begin[0], w.pad_begin[1], w.pad_end[0], w.pad_end[1] },
				       .bias = n->n_in > 2 && n->in[2] >= 0 };
	return true;
}

/* Adds the shape of one node; *added says whether there is a text for it. */
static int add_node(struct rg_bench_set *s, const struct rg_graph *g, const struct rg_node *n, bool *added,
		    struct rg_error *err)
{
	struct rg_bench_gemm gemm;
	struct rg_bench_conv conv;

	*added = false;
	for (int i = 0; i < n->n_in; i++)
		if (n->in[i] >= 0 && !is_f32(g, n->in[i]))
			return 0;
	if (strcmp(n->op_type, "Conv") == 0) {
		*added = read_conv(g, n, &conv, err);
		return *added ? add_conv(s, &conv, err) : 0;
	}
	*added = strcmp(n->op_type, "Gemm") == 0 ? read_gemm(g, n, &gemm) : read_matmul(g, n, &gemm);
	if (*added && (gemm.m < 1 || gemm.k < 1 || gemm.n < 1))
		*added = false;
	return *added ? add_gemm(s, &gemm, err) : 0;
}

static bool wanted(enum rg_bench_kind kind, const struct rg_node *n)
{
	if (n->domain[0])
		return false;
	if (kind == RG_BENCH_CONV)
		return strcmp(n->op_type, "Conv") == 0;
	return strcmp(n->op_type, "MatMul") == 0 || strcmp(n->op_type, "Gemm") == 0;
}

int rg_bench_add_model(struct rg_bench_set *s, enum rg_bench_kind kind, const struct rg_session_options *o,
		       int *left_out, struct rg_error *err)
{
	const struct rg_plan_options po = { .lanes = 1 };
	struct rg_model *m = NULL;
	int rc = rg_model_open(o->model, &o->bindings, &m, err);

	*left_out = 0;
	if (!rc)
		rc = rg_model_bind(m, &o->bindings, err);
	if (!rc)
		rc = rg_fold_graph(m->graph, &po, err);
	for (int i = 0; !rc && i < m->graph->n_nodes; i++) {
		bool added;

		if (!wanted(kind, &m->graph->nodes[i]))
			continue;
		rc = add_node(s, m->graph, &m->graph->nodes[i], &added, err);
		*left_out += !added;
	}
	rg_model_free(m);
	return rc;
}

int rg_bench_add_default(struct rg_bench_set *s, enum rg_bench_kind kind, struct rg_error *err)
{
	static const char *const gemms[] = {"64x64x64",    "128x128x128",    "256x256x256",
					    "512x512x512", "1024x1024x1024", "128x768x3072"};
	static const char *const models[] = { "builtin:resnet50", "builtin:mobilenet-v2" };
	struct rg_session_options o;
	int rc = 0, left_out;

	for (size_t i = 0; kind == RG_BENCH_GEMM && i < sizeof(gemms) / sizeof(gemms[0]) && !rc; i++)
		rc = rg_bench_add(s, kind, gemms[i], err);
	rg_session_defaults(&o);
	for (size_t i = 0; kind == RG_BENCH_CONV && i < sizeof(models) / sizeof(models[0]) && !rc; i++) {
		o.model = models[i];
		rc = rg_bench_add_model(s, kind, &o, &left_out, err);
	}
	return rc;
}
