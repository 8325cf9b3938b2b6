/* The terse way to write a graph; see builder.h. */
#include "models/builder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

void rg_b_start(struct rg_builder *b, struct rg_graph *g, const char *name, int64_t opset,
		struct rg_error *err)
{
	*b = (struct rg_builder){ .g = g, .err = err, .seed = 1 };
	g->name = name;
	g->producer = "ridge built-in";
	b->code = rg_graph_set_opset(g, "", opset, err);
}

int rg_b_done(const struct rg_builder *b)
{
	return b->code;
}

const char *rg_b_name(struct rg_builder *b, const char *fmt, ...)
{
	char text[256];
	const char *copy;
	va_list ap;

	if (b->code)
		return "";
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	copy = rg_arena_strdup(b->g->arena, text);
	if (!copy) {
		b->code = rg_error_nomem(b->err, strlen(text) + 1);
		return "";
	}
	return copy;
}

/* A value of that name, or -1 with the error kept. */
static int value(struct rg_builder *b, const char *name)
{
	int v;

	if (b->code)
		return -1;
	v = rg_graph_value(b->g, name, b->err);
	if (v < 0) {
		b->code = v;
		return -1;
	}
	return v;
}

int rg_b_input(struct rg_builder *b, const char *name, enum rg_dtype t, int rank,
	       const struct rg_dim *dims)
{
	int v = value(b, name);

	if (v < 0)
		return -1;
	b->code = rg_graph_declare(b->g, v, t, rank, dims, b->err);
	if (!b->code)
		b->code = rg_graph_add_input(b->g, v, b->err);
	return b->code ? -1 : v;
}

void rg_b_output(struct rg_builder *b, int v, int rank, const struct rg_dim *dims)
{
	if (!b->code)
		b->code = rg_graph_declare(b->g, v, RG_F32, rank, dims, b->err);
	if (!b->code)
		b->code = rg_graph_add_output(b->g, v, b->err);
}

/* Memory for a constant of a built-in shape, which cannot overflow. */
static void *const_memory(struct rg_builder *b, enum rg_dtype t, const struct rg_shape *shape)
{
	int64_t bytes = rg_tensor_bytes(t, shape);
	void *data;

	if (bytes <= 0) {
		b->code = rg_error_set(b->err, -EINVAL, "a built-in model has a constant without elements");
		return NULL;
	}
	data = rg_alloc_aligned(64, (size_t)bytes);
	if (!data)
		b->code = rg_error_nomem(b->err, (unsigned long)bytes);
	return data;
}

static int add_const(struct rg_builder *b, int v, enum rg_const_origin origin, enum rg_dtype t,
		     const struct rg_shape *shape, void *data)
{
	b->code = rg_graph_add_const(b->g, v, origin, t, shape, data, b->err);
	return b->code ? -1 : v;
}

int rg_b_weight(struct rg_builder *b, const char *name, struct rg_shape shape, float lo, float hi)
{
	int v = value(b, name);
	float *data;

	if (v < 0)
		return -1;
	data = const_memory(b, RG_F32, &shape);
	if (!data)
		return -1;
	rg_rng_fill_f32(rg_rng_stream(b->seed, name), lo, hi, data, (size_t)rg_shape_count(&shape));
	return add_const(b, v, RG_CONST_INITIALIZER, RG_F32, &shape, data);
}

int rg_b_he(struct rg_builder *b, const char *name, struct rg_shape shape, int64_t fan_in)
{
	float bound = (float)sqrt(6.0 / (double)fan_in);

	return rg_b_weight(b, name, shape, -bound, bound);
}

int rg_b_glorot(struct rg_builder *b, const char *name, struct rg_shape shape, int64_t fan_in,
		int64_t fan_out)
{
	float bound = (float)sqrt(6.0 / (double)(fan_in + fan_out));

	return rg_b_weight(b, name, shape, -bound, bound);
}

int rg_b_const_i64(struct rg_builder *b, const char *name, int rank, int64_t count, const int64_t *vals)
{
	struct rg_shape shape = rg_shape_of(rank, &count);
	int v = value(b, name);
	int64_t *data;

	if (v < 0)
		return -1;
	data = const_memory(b, RG_I64, &shape);
	if (!data)
		return -1;
	memcpy(data, vals, (size_t)rg_shape_count(&shape) * sizeof(*data));
	return add_const(b, v, RG_CONST_NODE, RG_I64, &shape, data);
}

int rg_b_const_f32(struct rg_builder *b, const char *name, float f)
{
	struct rg_shape shape = rg_shape_of(0, NULL);
	int v = value(b, name);
	float *data;

	if (v < 0)
		return -1;
	data = const_memory(b, RG_F32, &shape);
	if (!data)
		return -1;
	*data = f;
	return add_const(b, v, RG_CONST_NODE, RG_F32, &shape, data);
}

int rg_b_node_as(struct rg_builder *b, const char *op, const char *name, const char *out_name,
		 struct rg_b_in in, struct rg_b_attrs attrs)
{
	int out = value(b, out_name);
	int node;

	if (out < 0)
		return -1;
	node = rg_graph_add_node(b->g, "", op, name, in.count, in.v, 1, &out, attrs.count, attrs.v, b->err);
	if (node < 0) {
		b->code = node;
		return -1;
	}
	return out;
}

int rg_b_node(struct rg_builder *b, const char *op, const char *name, struct rg_b_in in,
	      struct rg_b_attrs attrs)
{
	return rg_b_node_as(b, op, name, rg_b_name(b, "%s_output_0", name), in, attrs);
}

void rg_b_nodes(struct rg_builder *b, const char *op, const char *name, struct rg_b_in in,
		struct rg_b_attrs attrs, int n_out, int *out)
{
	int node;

	for (int i = 0; i < n_out; i++)
		out[i] = value(b, rg_b_name(b, "%s_output_%d", name, i));
	if (b->code)
		return;
	node = rg_graph_add_node(b->g, "", op, name, in.count, in.v, n_out, out, attrs.count, attrs.v, b->err);
	if (node < 0)
		b->code = node;
	for (int i = 0; b->code && i < n_out; i++)
		out[i] = -1;
}
