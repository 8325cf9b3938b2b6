/* Writes the strange and hostile files of strange-test into the current folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "wire.h"

static void write_file(const char *name, struct wire *m)
{
	FILE *f = fopen(name, "w");

	if (!f || fwrite(m->p, 1, m->len, f) != m->len || fclose(f)) {
		perror(name);
		exit(1);
	}
	wire_free(m);
}

static const int64_t six[] = { 2, 3 };

static void put_value(struct wire *g, uint32_t field, const char *name)
{
	struct wire v = wire_value(name, RG_F32, 2, six);

	wire_msg(g, field, &v);
}

static void put_node(struct wire *g, const char *op, const char *in0, const char *in1, const char *out)
{
	struct wire n = wire_node(op, in0, in1, out);

	wire_str(&n, NODE_NAME, out);
	wire_msg(g, GRAPH_NODE, &n);
}

/* x and y of shape 2x3; nodes and initialisers are the caller's. */
static struct wire graph_2x3(void)
{
	struct wire g = { 0 };

	put_value(&g, GRAPH_INPUT, "x");
	put_value(&g, GRAPH_OUTPUT, "y");
	return g;
}

static void finish(const char *name, struct wire *g)
{
	struct wire m = wire_model(8, 17, g);

	write_file(name, &m);
}

/* y = x + w, where w is the tensor (freed). */
static void with_tensor(const char *name, struct wire *t)
{
	struct wire g = graph_2x3();

	put_node(&g, "Add", "x", "w", "y");
	wire_msg(&g, GRAPH_INITIALIZER, t);
	finish(name, &g);
}

static void tensors(void)
{
	const int64_t huge[] = { INT64_MAX, 4 }, negative[] = { 2, -3 }, claim[] = { 1 << 29 };
	const float data[6] = { 1, 2, 3, 4, 5, 6 };
	struct wire t;

	t = wire_tensor("w", RG_F32, 2, huge);
	wire_bytes(&t, TENSOR_RAW, data, sizeof(data));
	with_tensor("dims-overflow.onnx", &t);
	t = wire_tensor("w", RG_F32, 2, negative);
	wire_bytes(&t, TENSOR_RAW, data, sizeof(data));
	with_tensor("dims-negative.onnx", &t);
	t = wire_tensor("w", RG_F32, 0, NULL);
	wire_bytes(&t, TENSOR_RAW, data, sizeof(data));
	with_tensor("dims-absent.onnx", &t);
	t = wire_tensor("w", RG_F32, 2, six);
	wire_bytes(&t, TENSOR_RAW, data, sizeof(data) - 4);
	with_tensor("data-short.onnx", &t);
	t = wire_tensor("w", RG_F32, 1, claim);
	wire_bytes(&t, TENSOR_RAW, data, sizeof(data));
	with_tensor("claim.onnx", &t);
}

static void external(const char *file, const char *location, const char *offset, const char *length)
{
	struct wire t = wire_tensor("w", RG_F32, 2, six);

	wire_external(&t, location, offset, length);
	with_tensor(file, &t);
}

static void graphs(void)
{
	const float data[6] = { 1, 2, 3, 4, 5, 6 };
	struct wire g, t;

	g = graph_2x3();
	put_node(&g, "Add", "x", "b", "a");
	put_node(&g, "Relu", "a", NULL, "b");
	put_node(&g, "Relu", "b", NULL, "y");
	finish("cycle.onnx", &g);
	g = graph_2x3();
	put_node(&g, "Add", "x", "y", "y");
	finish("feeds-itself.onnx", &g);
	g = graph_2x3();
	put_node(&g, "Relu", "x", NULL, "z");
	finish("no-producer.onnx", &g);
	g = graph_2x3();
	put_node(&g, "Add", "x", "ghost", "y");
	finish("reads-nothing.onnx", &g);
	g = graph_2x3();
	put_node(&g, "Add", "x", "w", "y");
	for (int i = 0; i < 2; i++) {
		t = wire_tensor("w", RG_F32, 2, six);
		wire_bytes(&t, TENSOR_RAW, data, sizeof(data));
		wire_msg(&g, GRAPH_INITIALIZER, &t);
	}
	finish("two-initialisers.onnx", &g);
	g = graph_2x3();
	t = wire_node("Relu", "x", NULL, "y");
	wire_str(&t, NODE_NAME, "a\x1b[31mb");
	wire_msg(&g, GRAPH_NODE, &t);
	finish("control.onnx", &g);

	/* Without nodes: y is the input, or a constant, or there is nothing at all. */
	memset(&g, 0, sizeof(g));
	put_value(&g, GRAPH_INPUT, "x");
	put_value(&g, GRAPH_OUTPUT, "x");
	finish("empty-input.onnx", &g);
	memset(&g, 0, sizeof(g));
	put_value(&g, GRAPH_OUTPUT, "w");
	t = wire_tensor("w", RG_F32, 2, six);
	wire_bytes(&t, TENSOR_RAW, data, sizeof(data));
	wire_msg(&g, GRAPH_INITIALIZER, &t);
	finish("empty-constant.onnx", &g);
	memset(&g, 0, sizeof(g));
	finish("empty.onnx", &g);
	memset(&g, 0, sizeof(g));
	put_value(&g, GRAPH_INPUT, "x");
	finish("no-output.onnx", &g);
}

static void put_opset(struct wire *m, const char *domain, int64_t version)
{
	struct wire o = { 0 };

	wire_str(&o, 1, domain);
	wire_int(&o, 2, version);
	wire_msg(m, MODEL_OPSET, &o);
}

static void opset(const char *file, int64_t version, const char *domain2, int64_t version2)
{
	struct wire g = graph_2x3(), m;

	put_node(&g, "Relu", "x", NULL, "y");
	m = wire_model(8, version, &g);
	if (domain2)
		put_opset(&m, domain2, version2);
	write_file(file, &m);
}

static void attribute(const char *file, const char *op, const char *name, struct wire *value)
{
	struct wire g = graph_2x3(), n = wire_node(op, "x", NULL, "y"), a = { 0 };

	wire_str(&n, NODE_NAME, "it");
	wire_str(&a, ATTR_NAME, name);
	wire_raw(&a, value->p, value->len);
	wire_free(value);
	wire_msg(&n, NODE_ATTR, &a);
	wire_msg(&g, GRAPH_NODE, &n);
	finish(file, &g);
}

static void attributes(void)
{
	struct wire v = { 0 };

	wire_int(&v, ATTR_I, 1);
	attribute("attr-int.onnx", "LeakyRelu", "alpha", &v);
	wire_f32(&v, ATTR_F, 1);
	attribute("attr-float.onnx", "Softmax", "axis", &v);
	wire_str(&v, ATTR_S, "1");
	attribute("attr-string.onnx", "Transpose", "perm", &v);
	wire_int(&v, ATTR_I, 7);
	attribute("attr-range.onnx", "Softmax", "axis", &v);
}

/* A straight line of Relu. */
static void chain(const char *file, int length)
{
	struct wire g = { 0 };
	char in[16] = "x", out[16];

	put_value(&g, GRAPH_INPUT, "x");
	for (int i = 1; i <= length; i++) {
		snprintf(out, sizeof(out), "v%d", i);
		put_node(&g, "Relu", in, NULL, out);
		memcpy(in, out, sizeof(in));
	}
	put_value(&g, GRAPH_OUTPUT, out);
	finish(file, &g);
}

int main(void)
{
	struct wire m;

	tensors();
	external("outside.onnx", "../weights.bin", "0", "24");
	external("fifo.onnx", "pipe", "0", "24");
	external("itself.onnx", "itself.onnx", "0", "24");
	external("itself-past.onnx", "itself-past.onnx", "1000000", "24");
	external("past.onnx", "weights.bin", "8", "24");
	external("absent.onnx", "nowhere.bin", "0", "24");
	external("fits.onnx", "weights.bin", "0", "24");
	graphs();
	opset("opset-0.onnx", 0, NULL, 0);
	opset("opset-99.onnx", 99, NULL, 0);
	opset("two-domains.onnx", 17, "ai.onnx", 13);
	opset("same-domain.onnx", 17, "ai.onnx", 17);
	attributes();
	chain("chain-10000.onnx", 10000);
	chain("chain-100000.onnx", 100000);
	m = nested_model("If", "then_branch", 10000);
	write_file("nested.onnx", &m);
	return 0;
}
