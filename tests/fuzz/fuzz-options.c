/*
 * Any bytes as a command line, a word a line, and what it says about shapes as
 * a binding of a model with open dimensions. Each word is also read as a shape,
 * a number, a duration and a type. An error or a result, nothing else.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cmd/cmd.h"
#include "graph/tensor.h"
#include "models/onnx.h"
#include "sys/cpu.h"
#include "../models/wire.h"

#define MAX_WORDS 64

const char *const fuzz_suffix = ".options";

static void check_error(int rc, const struct rg_error *err)
{
	if (rc != err->code || (rc != 0) != (err->message[0] != '\0') ||
	    strnlen(err->message, sizeof(err->message)) == sizeof(err->message) ||
	    strnlen(err->hint, sizeof(err->hint)) == sizeof(err->hint))
		abort();
}

static void one_word(const char *word)
{
	struct rg_error err = RG_ERROR_INIT;
	char text[160], again[160];
	struct rg_shape s, back;
	uint64_t ns;
	uint32_t isa;
	int64_t i;
	double f;
	int rc = rg_shape_parse(word, &s, &err);

	check_error(rc, &err);
	if (rc == 0) {
		if (s.rank < 0 || s.rank > RG_MAX_RANK)
			abort();
		for (int d = 0; d < s.rank; d++)
			if (s.dim[d] < 0)
				abort();
		/* What it prints it reads back as the same. */
		rg_shape_text(text, &s);
		if (s.rank > 0 && strlen(text) < sizeof(text) - 1 &&
		    (rg_shape_parse(text, &back, &err) != 0 || !rg_shape_equal(&s, &back) ||
		     strcmp(text, rg_shape_text(again, &back)) != 0))
			abort();
	}
	if (rg_parse_i64(word, -5, 1000, &i) && (i < -5 || i > 1000))
		abort();
	if (rg_parse_f64(word, &f) && f != f)
		abort();
	rg_parse_duration_ns(word, &ns);
	rg_isa_cap_parse(word, &isa);
	rg_dtype_parse(word);
}

/* A model with an input x of (batch, 3, length) and one of no known rank. */
static struct rg_graph *open_model(void)
{
	static struct wire m;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;

	if (!m.p) {
		struct wire graph = { 0 }, v = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 }, dim = { 0 }, node;
		static const char *const names[] = { "batch", NULL, "length" };

		for (int d = 0; d < 3; d++) {
			if (names[d])
				wire_str(&dim, 2, names[d]);
			else
				wire_int(&dim, 1, 3);
			wire_msg(&shape, 1, &dim);
		}
		wire_int(&tensor, 1, RG_F32);
		wire_msg(&tensor, 2, &shape);
		wire_msg(&type, 1, &tensor);
		wire_str(&v, 1, "x");
		wire_msg(&v, 2, &type);
		wire_msg(&graph, GRAPH_INPUT, &v);
		v = (struct wire){ 0 };
		type = (struct wire){ 0 };
		tensor = (struct wire){ 0 };
		wire_int(&tensor, 1, RG_F32);
		wire_msg(&type, 1, &tensor);
		wire_str(&v, 1, "z");
		wire_msg(&v, 2, &type);
		wire_msg(&graph, GRAPH_INPUT, &v);
		node = wire_node("Add", "x", "z", "y");
		wire_msg(&graph, GRAPH_NODE, &node);
		v = wire_value("y", RG_F32, 0, NULL);
		wire_msg(&graph, GRAPH_OUTPUT, &v);
		m = wire_model(8, 17, &graph);
	}
	if (rg_onnx_load_memory(m.p, m.len, "open", &g, &err) != 0)
		abort();
	return g;
}

static void bind(const struct rg_args *a)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = open_model();
	int rc = rg_graph_bind(g, &a->session.bindings, &err);

	check_error(rc, &err);
	for (int i = 0; rc == 0 && i < g->n_inputs; i++)
		if (!g->values[g->inputs[i]].shaped)
			abort();
	rg_graph_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_args a = { 0 };
	char *argv[MAX_WORDS + 2] = { (char[]){ "ridge" } }, *text, *next;
	int argc = 1, rc;

	text = malloc(size + 1);
	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	for (next = text; argc < MAX_WORDS && next; argc++) {
		argv[argc] = next;
		next = strchr(next, '\n');
		if (next)
			*next++ = '\0';
		one_word(argv[argc]);
	}
	rc = rg_args_parse(&a, argc, argv, &err);
	check_error(rc, &err);
	if (rc == 0 && a.cmd && a.session.bindings.n_shapes + a.session.bindings.n_dims > 0)
		bind(&a);
	rg_args_free(&a);
	free(text);
	return 0;
}

uint8_t *fuzz_seed(int i, size_t *size)
{
	static const char *const seeds[] = {
		"record\nm.onnx\n--shape\nx=1x3x640\n--shape\nz=1,3,640\n--dim\nbatch=4\n--kernel\nConv=ref",
		"run\n--shape=x=2x3x5\n--shape=z=\n--dim=length=5\nm.onnx\n--input-range\nx=-1..1e3\n-i\nx=f.npy",
		"run\nm.onnx\n--dim\nbatch=2\n--dim\nlength=9\n--shape\nz=3x1",
		"plot\nroofline\nlast\n-o-\n--size\n800x600",
		"record\nbuiltin:mlp\n--duration\n200ms\n--threads\n2\n--seed\n7\n--tag\na\n--isa\navx2\n--warmup\n0",
		"whatif\n--op\nConv\n--speedup\ninf\n--format\njson\n--db\nx.db",
		"9223372036854775807x2\n0x0\n1x\nx1\n-1x3\nscalar\n1x2x3x4x5x6x7x8x9x10x11x12\nfloat32\n5s\n0.5",
	};
	size_t n;
	uint8_t *p;

	if (i >= (int)(sizeof(seeds) / sizeof(seeds[0])))
		return NULL;
	n = strlen(seeds[i]);
	p = malloc(n + 1);
	if (!p)
		abort();
	memcpy(p, seeds[i], n + 1);
	*size = n;
	return p;
}
