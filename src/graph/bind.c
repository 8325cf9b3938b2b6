/* Closes the dimensions that a file left open, with what a person gives. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "graph/graph.h"
#include "graph/private.h"

static const struct rg_bindings none;

const struct rg_shape *rg_bind_shape(const struct rg_bindings *b, const char *input)
{
	for (int i = 0; i < b->n_shapes; i++)
		if (strcmp(b->shapes[i].input, input) == 0)
			return &b->shapes[i].shape;
	return NULL;
}

int64_t rg_bind_symbol(const struct rg_graph *g, const struct rg_bindings *b, const char *symbol)
{
	for (int i = 0; i < b->n_dims; i++)
		if (strcmp(b->dims[i].symbol, symbol) == 0)
			return b->dims[i].value;
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];
		const struct rg_shape *s = rg_bind_shape(b, v->name);

		for (int d = 0; s && d < v->declared_rank && d < s->rank; d++)
			if (v->declared[d].value < 0 && v->declared[d].symbol &&
			    strcmp(v->declared[d].symbol, symbol) == 0)
				return s->dim[d];
	}
	return -1;
}

static bool is_graph_input(const struct rg_graph *g, const char *name)
{
	int at = rg_graph_find_value(g, name);

	return at >= 0 && g->values[at].is_input;
}

static bool has_symbol(const struct rg_graph *g, const char *symbol)
{
	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];

		for (int d = 0; d < v->declared_rank; d++)
			if (v->declared[d].value < 0 && v->declared[d].symbol &&
			    strcmp(v->declared[d].symbol, symbol) == 0)
				return true;
	}
	return false;
}

/* Adds a name to a list for people, once. */
static void list_name(struct rg_str *s, const char *name)
{
	if (s->len > 300)
		return;
	rg_str_printf(s, "%s'%s'", s->len ? ", " : "", name);
}

static int unknown_input(const struct rg_graph *g, const char *name, struct rg_error *err)
{
	struct rg_str s = { 0 };

	for (int i = 0; i < g->n_inputs; i++)
		list_name(&s, g->values[g->inputs[i]].name);
	rg_error_set(err, RG_EUSAGE, "--shape %s=...: the model has no input of that name", name);
	rg_error_hint(err, "its inputs are: %s", s.len ? s.text : "none");
	rg_str_free(&s);
	return err->code;
}

static int unknown_symbol(const struct rg_graph *g, const char *symbol, struct rg_error *err)
{
	struct rg_str s = { 0 };

	for (int i = 0; i < g->n_inputs; i++) {
		const struct rg_value *v = &g->values[g->inputs[i]];

		for (int d = 0; d < v->declared_rank; d++) {
			const char *name = v->declared[d].symbol;

			if (v->declared[d].value < 0 && name && (!s.text || !strstr(s.text, name)))
				list_name(&s, name);
		}
	}
	rg_error_set(err, RG_EUSAGE, "--dim %s=...: no input has an open dimension of that name", symbol);
	if (s.len)
		rg_error_hint(err, "its open dimensions are: %s", s.text);
	else
		rg_error_hint(err, "the model has no named open dimensions; --shape NAME=... closes unnamed ones");
	rg_str_free(&s);
	return err->code;
}

static int check_bindings(const struct rg_graph *g, const struct rg_bindings *b, struct rg_error *err)
{
	for (int i = 0; i < b->n_shapes; i++) {
		if (!is_graph_input(g, b->shapes[i].input))
			return unknown_input(g, b->shapes[i].input, err);
		if (!rg_shape_equal(rg_bind_shape(b, b->shapes[i].input), &b->shapes[i].shape)) {
			rg_error_set(err, -EINVAL, "--shape of '%s' is given twice, differently", b->shapes[i].input);
			return rg_error_hint(err, "give it once");
		}
	}
	for (int i = 0; i < b->n_dims; i++) {
		if (!has_symbol(g, b->dims[i].symbol))
			return unknown_symbol(g, b->dims[i].symbol, err);
		if (b->dims[i].value < 0) {
			rg_error_set(err, -EINVAL, "--dim %s=%" PRId64 ": a size cannot be negative",
				     b->dims[i].symbol, b->dims[i].value);
			return rg_error_hint(err, "give a size of 0 or more");
		}
		if (rg_bind_symbol(g, b, b->dims[i].symbol) != b->dims[i].value) {
			rg_error_set(err, -EINVAL, "--dim %s is given twice, differently", b->dims[i].symbol);
			return rg_error_hint(err, "give it once");
		}
	}
	return 0;
}

/* "1x3x224x224": what the file fixes, and an example for what it does not. */
static void example_shape(const struct rg_value *v, struct rg_str *s)
{
	for (int d = 0; d < v->declared_rank; d++) {
		int64_t n = v->declared[d].value;

		if (n < 0)
			n = d == 0 ? 1 : v->declared_rank == 4 ? 224 : 128;
		rg_str_printf(s, "%s%" PRId64, d ? "x" : "", n);
	}
}

static int open_dimension(const struct rg_value *v, int d, struct rg_error *err)
{
	const char *symbol = v->declared[d].symbol;
	struct rg_str s = { 0 };

	example_shape(v, &s);
	if (symbol) {
		rg_error_set(err, -EINVAL, "input '%s': dimension %d ('%s') is open", v->name, d, symbol);
		rg_error_hint(err, "give its size, for example --shape %s=%s or --dim %s=%d", v->name,
			      rg_str_text(&s), symbol, d == 0 ? 1 : v->declared_rank == 4 ? 224 : 128);
	} else {
		rg_error_set(err, -EINVAL, "input '%s': dimension %d is open and has no name", v->name, d);
		rg_error_hint(err, "give the whole shape, for example --shape %s=%s", v->name, rg_str_text(&s));
	}
	rg_str_free(&s);
	return err->code;
}

static int from_option(const struct rg_value *v, const struct rg_shape *s, struct rg_error *err)
{
	char text[160];

	if (v->declared_rank >= 0 && v->declared_rank != s->rank) {
		struct rg_str example = { 0 };

		example_shape(v, &example);
		rg_error_set(err, -EINVAL, "--shape %s=%s has %d dimensions, the model declares %d", v->name,
			     rg_shape_text(text, s), s->rank, v->declared_rank);
		rg_error_hint(err, "for example --shape %s=%s", v->name, rg_str_text(&example));
		rg_str_free(&example);
		return err->code;
	}
	for (int d = 0; d < v->declared_rank; d++) {
		if (v->declared[d].value < 0 || v->declared[d].value == s->dim[d])
			continue;
		rg_error_set(err, -EINVAL, "--shape %s=%s: dimension %d is fixed to %" PRId64 " by the model", v->name,
			     rg_shape_text(text, s), d, v->declared[d].value);
		return rg_error_hint(err, "leave it at %" PRId64, v->declared[d].value);
	}
	return 0;
}

static int from_file(const struct rg_graph *g, const struct rg_bindings *b, const struct rg_value *v,
		     struct rg_shape *s, struct rg_error *err)
{
	if (v->declared_rank < 0) {
		rg_error_set(err, -EINVAL, "input '%s' has no declared shape", v->name);
		return rg_error_hint(err, "give it with --shape %s=1x3x224x224 (with its own sizes)", v->name);
	}
	s->rank = v->declared_rank;
	for (int d = 0; d < s->rank; d++) {
		s->dim[d] = v->declared[d].value;
		if (s->dim[d] < 0 && v->declared[d].symbol)
			s->dim[d] = rg_bind_symbol(g, b, v->declared[d].symbol);
		if (s->dim[d] < 0)
			return open_dimension(v, d, err);
	}
	return 0;
}

int rg_graph_bind(struct rg_graph *g, const struct rg_bindings *b, struct rg_error *err)
{
	if (!b)
		b = &none;
	if (check_bindings(g, b, err))
		return err->code;
	for (int i = 0; i < g->n_inputs; i++) {
		struct rg_value *v = &g->values[g->inputs[i]];
		const struct rg_shape *given = rg_bind_shape(b, v->name);
		struct rg_shape s = { 0 };

		if (v->origin != RG_CONST_NONE)
			continue;
		if (v->kind != RG_VALUE_TENSOR) { /* has no shape before it runs */
			if (!given)
				continue;
			rg_error_set(err, RG_EUSAGE, "--shape %s: the input is %s, which has no shape", v->name,
				     v->kind == RG_VALUE_SEQUENCE ? "a sequence" : "an optional");
			return rg_error_hint(err, "without the option the model is run with an empty one");
		}
		if (rg_dtype_bits(v->declared_dtype) == 0) {
			rg_error_set(err, RG_ENOTSUP_MODEL, "input '%s' has element type %s", v->name,
				     rg_dtype_name(v->declared_dtype));
			return rg_error_hint(err, "only tensors of numbers, booleans and strings are supported as inputs");
		}
		if (given ? from_option(v, given, err) : from_file(g, b, v, &s, err))
			return err->code;
		if (given)
			s = *given;
		if (rg_tensor_bytes(v->declared_dtype, &s) < 0) {
			rg_error_set(err, -EINVAL, "the size of input '%s' overflows", v->name);
			return rg_error_hint(err, "give smaller dimensions");
		}
		v->dtype = v->declared_dtype;
		v->shape = s;
		v->shaped = true;
	}
	return 0;
}
