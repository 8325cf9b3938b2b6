/*
 * A suggestion is worth something when following it works. Many models take
 * sizes of their own kind only (48 rows for text recognition, a multiple of 32,
 * at least one window of sound), and nothing in the file says so; so sizes are
 * tried on the model itself.
 */
#include "session/suggest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "session/prepare.h"

/* Reading a large model again and again would make a person wait for an error. */
#define MAX_READ_BYTES ((int64_t)2 << 30)

/* The commonest first. */
static const struct rg_example_sizes sizes[] = {
	{ 3, 224, 224, 128, 1 },
	{ 3, 48, 320, 576, 1 },     /* a line of text; a window of sound with its context */
	{ 3, 32, 320, 256, 128 },
	{ 1, 32, 320, 512, 512 },
	{ 3, 256, 256, 320, 80 },
	{ 3, 640, 640, 1024, 1024 },
	{ 1, 28, 28, 16000, 16000 },/* a digit; a second of sound */
	{ 1, 64, 64, 64, 64 },
};

const struct rg_example_sizes *rg_suggest_sizes(int *n)
{
	*n = sizeof(sizes) / sizeof(sizes[0]);
	return sizes;
}

/* Whether the model can be planned with these bindings. */
static bool works(const struct rg_session_options *o, const struct rg_bindings *b)
{
	struct rg_session_options trial = *o;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_prepared p;

	trial.bindings = *b;
	trial.warn = NULL;
	trial.progress = NULL;
	if (rg_prepare(&trial, &p, &err))
		return false;
	rg_prepared_free(&p);
	return true;
}

/* The first dimension that is open under `b`, and has a symbol. */
static const char *open_symbol(const struct rg_graph *g, const struct rg_bindings *b, const struct rg_bindings *example,
			       int64_t *size)
{
	const char *input = example->shapes[b->n_shapes].input;
	const struct rg_shape *s = &example->shapes[b->n_shapes].shape;
	const struct rg_value *v = &g->values[rg_graph_find_value(g, input)];

	for (int d = 0; d < v->declared_rank; d++) {
		bool given = false;

		if (v->declared[d].value >= 0 || !v->declared[d].symbol)
			continue;
		for (int i = 0; i < b->n_dims; i++)
			given |= strcmp(b->dims[i].symbol, v->declared[d].symbol) == 0;
		*size = s->dim[d];
		if (!given)
			return v->declared[d].symbol;
	}
	return NULL;
}

static void put_option(struct rg_str *s, const char *option, const char *name, const char *value)
{
	struct rg_str word = { 0 };

	rg_str_printf(&word, "%s=%s", name, value);
	rg_str_printf(s, "%s%s ", s->len ? " " : "", option);
	rg_str_shell(s, rg_str_text(&word));
	s->failed |= word.failed;
	rg_str_free(&word);
}

static void hint(const struct rg_graph *g, const struct rg_bindings *b, const struct rg_bindings *example,
		 struct rg_error *err)
{
	struct rg_str shapes = { 0 }, dim = { 0 };
	char text[160];
	int64_t size;
	const char *symbol = open_symbol(g, b, example, &size);

	for (int i = b->n_shapes; i < example->n_shapes; i++)
		put_option(&shapes, "--shape", example->shapes[i].input,
			   rg_shape_text(text, &example->shapes[i].shape));
	if (symbol) {
		snprintf(text, sizeof(text), "%" PRId64, size);
		put_option(&dim, " or --dim", symbol, text);
	}
	if (!shapes.failed && !dim.failed)
		rg_error_hint(err, "give its size, for example %s%s", rg_str_text(&shapes), rg_str_text(&dim));
	rg_str_free(&shapes);
	rg_str_free(&dim);
}

void rg_suggest_shapes(const struct rg_session_options *o, struct rg_model *m, const struct rg_bindings *b,
		       struct rg_error *err)
{
	struct rg_error ignored = RG_ERROR_INIT;
	struct rg_bindings example = { 0 };
	int64_t read_bytes = 0;

	example.shapes = rg_calloc((size_t)b->n_shapes + (size_t)m->graph->n_inputs + 1, sizeof(*example.shapes));
	if (!example.shapes)
		return;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		/* Binding fails for another reason than open dimensions: nothing to suggest. */
		if (rg_graph_example(m->graph, b, &sizes[i], &example) < 1 ||
		    rg_graph_bind(m->graph, &example, &ignored))
			break;
		if (works(o, &example)) {
			hint(m->graph, b, &example, err);
			break;
		}
		read_bytes += m->file_bytes;
		if (read_bytes > MAX_READ_BYTES)
			break;
	}
	rg_free(example.shapes);
}
