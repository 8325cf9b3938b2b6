/* The list of built-in models, and the defaults of their open dimensions. */
#include "models/builtin.h"

#include <string.h>

#include "base/str.h"
#include "models/builtin-list.h"

static const struct rg_builtin builtins[] = {
	{ "resnet50", "ResNet-50 v1.5, image classification at 224x224", 25557032, "batch=1",
	  rg_builtin_resnet50 },
	{ "mobilenet-v2", "MobileNet v2, image classification at 224x224", 3504872, "batch=1",
	  rg_builtin_mobilenet_v2 },
	{ "bert-base", "BERT base uncased, encoder with pooler", 109482240, "batch=1 seq=128",
	  rg_builtin_bert_base },
	{ "mlp", "multi-layer perceptron, 784-2048-2048-10", 5824522, "batch=1",
	  rg_builtin_mlp },
};

int rg_builtin_count(void)
{
	return (int)(sizeof(builtins) / sizeof(builtins[0]));
}

const struct rg_builtin *rg_builtin_at(int i)
{
	return i >= 0 && i < rg_builtin_count() ? &builtins[i] : NULL;
}

const struct rg_builtin *rg_builtin_find(const char *name)
{
	for (int i = 0; i < rg_builtin_count(); i++)
		if (!strcmp(builtins[i].name, name))
			return &builtins[i];
	return NULL;
}

/* Names of dimensions, NUL-terminated, for bindings that must outlive the call. */
static const char *const dim_names[] = { "batch", "seq", "past" };

static const char *dim_name(const char *text, size_t n)
{
	for (size_t i = 0; i < sizeof(dim_names) / sizeof(dim_names[0]); i++)
		if (strlen(dim_names[i]) == n && !memcmp(dim_names[i], text, n))
			return dim_names[i];
	return NULL;
}

static bool named(const struct rg_bindings *b, const char *symbol)
{
	for (int i = 0; i < b->n_dims; i++)
		if (!strcmp(b->dims[i].symbol, symbol))
			return true;
	return false;
}

/* The extent that the shape of an input gives to this axis, or the default. */
static int64_t from_shapes(const struct rg_bindings *b, int axis, int64_t dflt)
{
	for (int i = 0; i < b->n_shapes; i++)
		if (b->shapes[i].shape.rank > axis)
			return b->shapes[i].shape.dim[axis];
	return dflt;
}

/*
 * Every built-in model names its open dimensions in the order of the leading
 * axes of all its inputs: batch is axis 0, seq is axis 1. So the shape of one
 * input, where it is given, also settles the others.
 */
int rg_builtin_default_dims(const struct rg_builtin *m, const struct rg_bindings *b,
			    struct rg_bindings *out, struct rg_error *err)
{
	static const struct rg_bindings none;
	const char *p = m->dims;

	if (!b)
		b = &none;
	out->n_shapes = b->n_shapes;
	out->shapes = b->shapes;
	out->n_dims = 0;
	for (int i = 0; i < b->n_dims; i++)
		out->dims[out->n_dims++] = b->dims[i];
	for (int axis = 0; *p; axis++) {
		size_t n = strcspn(p, " ");
		const char *eq = memchr(p, '=', n);
		const char *name = eq ? dim_name(p, (size_t)(eq - p)) : NULL;
		char number[24] = "";
		int64_t value;

		if (name && n - (size_t)(eq - p) <= sizeof(number))
			memcpy(number, eq + 1, n - (size_t)(eq - p) - 1);
		if (!name || !rg_parse_i64(number, 0, INT64_MAX, &value))
			return rg_error_set(err, -EINVAL, "built-in model '%s': malformed dimensions '%s'",
					    m->name, m->dims);
		if (!named(b, name)) {
			out->dims[out->n_dims].symbol = name;
			out->dims[out->n_dims++].value = from_shapes(b, axis, value);
		}
		p += n;
		p += strspn(p, " ");
	}
	return 0;
}
