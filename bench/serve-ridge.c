/*
 * Our side of scripts/bench-peers: opens a model, runs rounds of it, and measures
 * the machine. Options are those of ridge run: --threads N, --isa LEVEL,
 * --without-kernel NAME, --kernel OP=NAME.
 *
 *   about                   version, threads, isa, whether lanes are pinned, CPU
 *   list KIND [SHAPE...]    names of the cases (session/bench-case.h); the default
 *                           ones without a SHAPE
 *   write KIND NAME FILE    a case as an ONNX file
 *   export BUILTIN FILE     a built-in model as an ONNX file
 *   open MODEL [dim NAME N | shape NAME 1x3x8x8 | input NAME FILE | range NAME MOST]...
 *                           range: generated values from 0 to MOST
 *   inputs DIR              writes the inputs: DIR/inI.npy; answers with how many
 *   outputs DIR             the same for the outputs of the last call: DIR/outI.npy
 *   kernels                 "Conv=direct-avx2 x 20", one word a kernel
 *   shares                  of one inference, by steps: the time that is not in MatMul, Gemm,
 *                           Conv or attention; the part of it that could be done as an epilogue
 *   close
 *   roof                    peak in flop/s, DRAM bandwidth in byte/s, just measured
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cmd/cmd.h"
#include "models/npy.h"
#include "models/onnx-write.h"
#include "serve.h"
#include "session/bench-case.h"
#include "session/ceilings.h"
#include "session/prepare.h"

struct ridge {
	struct rg_session_options options;
	struct rg_cpu cpu;
	struct rg_topology topo; /* before any thread was pinned */
	struct rg_prepared p;
	bool is_open;
};

static int call(void *ctx, struct rg_error *err)
{
	struct ridge *r = ctx;

	if (!r->is_open)
		return rg_error_set(err, RG_EUSAGE, "nothing is open");
	return rg_exec_run(r->p.exec, err);
}

static int threads(const struct ridge *r)
{
	return r->options.threads ? r->options.threads : rg_topology_default_threads(&r->topo);
}

static int about(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct ridge *r = ctx;
	uint32_t isa = r->options.isa ? r->cpu.isa & r->options.isa : r->cpu.isa;

	rg_str_printf(answer, "\t%s\t%d\t%s\t%s\t%s", rg_cmd_version, threads(r), rg_isa_level_name(isa),
		      threads(r) <= r->topo.n_allowed ? "pinned" : "not pinned", r->cpu.model);
	return 0;
}

static int list(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct rg_bench_set s = { 0 };
	enum rg_bench_kind kind;
	int rc = rg_bench_kind_parse(words[0], &kind, err);

	if (!rc && n == 1)
		rc = rg_bench_add_default(&s, kind, err);
	for (int i = 1; i < n && !rc; i++)
		rc = rg_bench_add(&s, kind, words[i], err);
	for (size_t i = 0; i < s.n && !rc; i++)
		rg_str_printf(answer, "\t%s", s.v[i].name);
	rg_bench_set_free(&s);
	return rc;
}

static int write_case(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct rg_bench_set s = { 0 };
	enum rg_bench_kind kind;
	int rc = rg_bench_kind_parse(words[0], &kind, err);

	if (!rc)
		rc = rg_bench_add(&s, kind, words[1], err);
	if (!rc && s.n != 1)
		rc = rg_error_set(err, RG_EUSAGE, "%s means more than one case", words[1]);
	if (!rc)
		rc = rg_onnx_write(s.v[0].graph, words[2], err);
	rg_bench_set_free(&s);
	return rc;
}

static int export(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct rg_model *m = NULL;
	int rc = rg_model_open(words[0], NULL, &m, err);

	if (!rc)
		rc = rg_onnx_write(m->graph, words[1], err);
	rg_model_free(m);
	return rc;
}

static int close_(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct ridge *r = ctx;

	if (r->is_open)
		rg_prepared_free(&r->p);
	r->is_open = false;
	return 0;
}

/* One of "dim NAME N", "shape NAME 1x2", "input NAME FILE", "range NAME N" into the options. */
static int take_option(struct rg_session_options *o, char **w, struct rg_error *err)
{
	int64_t v;
	int rc;

	if (strcmp(w[0], "dim") == 0 && rg_parse_i64(w[2], 0, INT32_MAX, &v)) {
		o->bindings.dims[o->bindings.n_dims].symbol = w[1];
		o->bindings.dims[o->bindings.n_dims++].value = v;
		return 0;
	}
	if (strcmp(w[0], "shape") == 0) {
		o->bindings.shapes[o->bindings.n_shapes].input = w[1];
		rc = rg_shape_parse(w[2], &o->bindings.shapes[o->bindings.n_shapes].shape, err);
		o->bindings.n_shapes += !rc;
		return rc;
	}
	if (strcmp(w[0], "input") == 0) {
		o->inputs[o->n_inputs++] = (struct rg_input_file){ w[1], w[2] };
		return 0;
	}
	if (strcmp(w[0], "range") == 0 && rg_parse_i64(w[2], 0, INT32_MAX, &v)) {
		o->ranges[o->n_ranges++] = (struct rg_input_range){ w[1], 0, (double)v };
		return 0;
	}
	return rg_error_set(err, RG_EUSAGE, "%s %s %s is no option of open", w[0], w[1], w[2]);
}

static int open_(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct ridge *r = ctx;
	struct rg_session_options o = r->options;
	size_t room = (size_t)n + 1;
	int rc = close_(ctx, 0, NULL, NULL, err);

	o.model = words[0];
	o.bindings.dims = rg_calloc(room, sizeof(*o.bindings.dims));
	o.bindings.shapes = rg_calloc(room, sizeof(*o.bindings.shapes));
	o.inputs = rg_calloc(room, sizeof(*o.inputs));
	o.ranges = rg_calloc(room, sizeof(*o.ranges));
	if (!o.bindings.dims || !o.bindings.shapes || !o.inputs || !o.ranges)
		rc = rg_error_nomem(err, room * sizeof(*o.bindings.shapes));
	if (!rc && n % 3 != 1)
		rc = rg_error_set(err, RG_EUSAGE, "options of open are three words each");
	for (int i = 1; i + 2 < n && !rc; i += 3)
		rc = take_option(&o, words + i, err);
	if (!rc)
		rc = rg_prepare(&o, &r->p, err);
	r->is_open = !rc;
	rg_free(o.bindings.dims);
	rg_free(o.bindings.shapes);
	rg_free(o.inputs);
	rg_free(o.ranges);
	return rc;
}

static int is_it_open(const struct ridge *r, struct rg_error *err)
{
	return r->is_open ? 0 : rg_error_set(err, RG_EUSAGE, "nothing is open");
}

static int write_npy(const char *dir, const char *what, int i, const struct rg_tensor *t,
		     struct rg_error *err)
{
	char *path = rg_asprintf("%s/%s%d.npy", dir, what, i);
	int rc = path ? rg_npy_write(path, t, err) : rg_error_nomem(err, strlen(dir));

	rg_free(path);
	return rc;
}

static int inputs(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct ridge *r = ctx;
	int rc = is_it_open(r, err), count = rc ? 0 : r->p.model->graph->n_inputs;

	for (int i = 0; i < count && !rc; i++)
		rc = write_npy(words[0], "in", i, &r->p.inputs[i], err);
	rg_str_printf(answer, "\t%d", count);
	return rc;
}

static int outputs(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct ridge *r = ctx;
	int rc = is_it_open(r, err), count = rc ? 0 : r->p.model->graph->n_outputs;

	for (int i = 0; i < count && !rc; i++) {
		struct rg_tensor t = rg_exec_output(r->p.exec, i);

		if (t.dtype == RG_UNDEFINED)
			rc = rg_error_set(err, RG_EUSAGE, "output %d is no tensor", i);
		else
			rc = write_npy(words[0], "out", i, &t, err);
	}
	rg_str_printf(answer, "\t%d", count);
	return rc;
}

static int kernels(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct ridge *r = ctx;
	const struct rg_plan *p = r->p.plan;
	int rc = is_it_open(r, err);

	for (int i = 0; !rc && i < p->n_steps; i++) {
		const char *op = p->graph->nodes[p->steps[i].node].op_type,
			   *name = rg_step_kernel_name(&p->steps[i]);
		int before = 0, all = 0;

		for (int k = 0; k < p->n_steps; k++) {
			if (strcmp(p->graph->nodes[p->steps[k].node].op_type, op) == 0 &&
			    strcmp(rg_step_kernel_name(&p->steps[k]), name) == 0) {
				before += k < i;
				all++;
			}
		}
		if (!before)
			rg_str_printf(answer, "\t%s=%s x %d", op, name, all);
	}
	return rc;
}

/* ---- where the time goes ---- */

struct shares {
	const struct rg_plan *plan;
	double *ns; /* by step */
};

static void on_span(void *ctx, int lane, int step, uint64_t start_ns, uint64_t end_ns)
{
	struct shares *s = ctx;

	if (lane < 0) /* the whole step */
		s->ns[step] += (double)(end_ns - start_ns);
}

static bool is_heavy(enum rg_op_kind k)
{
	return k == RG_KIND_GEMM || k == RG_KIND_CONV || k == RG_KIND_ATTENTION || k == RG_KIND_RNN;
}

/* Whether a step only changes elements that a heavy step or such a step made, and
 * nobody else reads: then it could have been done where they were made. */
static bool is_epilogue(const struct rg_plan *p, int step, const bool *epilogue)
{
	const struct rg_node *n = &p->graph->nodes[p->steps[step].node];

	if (n->op->kind != RG_KIND_ELEMENTWISE && strcmp(n->op_type, "BatchNormalization") != 0)
		return false;
	for (int e = 0; e < p->n_edges; e++) {
		const struct rg_edge *in = &p->edges[e];
		int from;

		if (in->to_step != step || p->graph->values[in->value].n_consumers != 1)
			continue;
		from = in->from_step;
		if (is_heavy(p->graph->nodes[p->steps[from].node].op->kind) || epilogue[from])
			return true;
	}
	return false;
}

static int shares(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct ridge *r = ctx;
	struct shares s = { 0 };
	const struct rg_exec_hook hook = { on_span, &s };
	double all = 0, other = 0, epilogues = 0;
	bool *epilogue;
	int rc = is_it_open(r, err);

	if (rc)
		return rc;
	s.plan = r->p.plan;
	s.ns = rg_calloc((size_t)s.plan->n_steps + 1, sizeof(*s.ns));
	epilogue = rg_calloc((size_t)s.plan->n_steps + 1, sizeof(*epilogue));
	if (!s.ns || !epilogue)
		rc = rg_error_nomem(err, (size_t)s.plan->n_steps * sizeof(*s.ns));
	for (int i = 0; i < 6 && !rc; i++) {
		rg_exec_set_hook(r->p.exec, i ? &hook : NULL); /* the first run is thrown away */
		rc = rg_exec_run(r->p.exec, err);
	}
	rg_exec_set_hook(r->p.exec, NULL);
	for (int i = 0; i < s.plan->n_steps && !rc; i++) {
		const struct rg_op *op = s.plan->graph->nodes[s.plan->steps[i].node].op;

		epilogue[i] = is_epilogue(s.plan, i, epilogue);
		all += s.ns[i];
		other += is_heavy(op->kind) ? 0 : s.ns[i];
		epilogues += epilogue[i] ? s.ns[i] : 0;
	}
	if (!rc && all > 0)
		rg_str_printf(answer, "\t%.4f\t%.4f", other / all, epilogues / all);
	else if (!rc)
		rc = rg_error_set(err, -ENODATA, "the model has no steps");
	rg_free(s.ns);
	rg_free(epilogue);
	return rc;
}

/* ---- the machine ---- */

static int roof(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct ridge *r = ctx;
	struct rg_ceiling_row rows[RG_CEIL_MAX_ROWS];
	double peak = 0, dram = 0;
	int got, rc = rg_ceilings_measure(
		     &r->topo, threads(r), r->options.isa ? r->cpu.isa & r->options.isa : r->cpu.isa,
		     RG_CEIL_PEAK | RG_CEIL_DRAM, "bench", 50e6, NULL, NULL, rows, &got, err);

	for (int i = 0; i < got && !rc; i++) {
		if (strcmp(rows[i].level, "peak") == 0)
			peak = rows[i].value;
		else
			dram = rows[i].value;
	}
	rg_str_printf(answer, "\t%.6g\t%.6g", peak, dram);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct serve_verb verbs[] = {
	    {"about", 0, about},     {"list", 1, list},     {"write", 3, write_case}, {"export", 2, export},
	    {"open", 1, open_},      {"close", 0, close_},  {"inputs", 1, inputs},    {"outputs", 1, outputs},
	    {"kernels", 0, kernels}, {"shares", 0, shares}, {"roof", 0, roof},
	};
	static struct ridge r;
	struct serve s = {
	    .ctx = &r, .verbs = verbs, .n_verbs = sizeof(verbs) / sizeof(verbs[0]), .call = call};
	struct rg_args args = { 0 };
	struct rg_error err = RG_ERROR_INIT;
	char *line[64] = { argv[0], "run", "builtin:mlp" }; /* the options are those of this verb */
	int n = 3, code;

	for (int i = 1; i < argc && n < 63; i++)
		line[n++] = argv[i];
	if (rg_args_parse(&args, n, line, &err)) {
		fprintf(stderr, "serve-ridge: %s\n", err.message);
		rg_args_free(&args);
		return 2;
	}
	r.options = args.session;
	rg_cpu_detect("", &r.cpu);
	rg_topology_read("", &r.topo);
	code = serve_run(&s);
	close_(&r, 0, NULL, NULL, &err);
	rg_args_free(&args);
	return code;
}
