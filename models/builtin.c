/* The list of built-in models, and the defaults of their open dimensions. */
#include "models/builtin.h"

#include <string.h>

#include "base/str.h"
#include "models/builtin-list.h"

static const struct rg_builtin builtins[] = {
	{ "resnet50", "ResNet-50 v1.5, image classification at 224x224", 25557032, "batch=1", NULL,
	  rg_builtin_resnet50 },
	{ "mobilenet-v2", "MobileNet v2, image classification at 224x224", 3504872, "batch=1", NULL,
	  rg_builtin_mobilenet_v2 },
	{ "vgg16", "VGG-16, image classification at 224x224", 138357544, "batch=1", NULL,
	  rg_builtin_vgg16 },
	{ "vit-b16", "ViT-B/16, image classification at 224x224", 86567656, "batch=1", NULL,
	  rg_builtin_vit_b16 },
	{ "unet", "U-Net of 32 features, image segmentation", 7763041, "batch=1 height=256 width=256", NULL,
	  rg_builtin_unet },
	{ "bert-base", "BERT base uncased, encoder with pooler", 109482240, "batch=1 seq=128", NULL,
	  rg_builtin_bert_base },
	{ "gpt2", "GPT-2 small, decoder with key-value cache", 124439808, "batch=1 seq=128 past=0",
	  "batch=1 seq=1 past=512", rg_builtin_gpt2 },
	{ "lstm", "predicts the next word, two LSTM layers of 650", 19780400, "batch=1 seq=35", NULL,
	  rg_builtin_lstm },
	{ "mlp", "multi-layer perceptron, 784-2048-2048-10", 5824522, "batch=1", NULL,
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
static const char *const dim_names[] = { "batch", "seq", "past", "height", "width" };

static const char *dim_name(const char *text, size_t n)
{
	for (size_t i = 0; i < sizeof(dim_names) / sizeof(dim_names[0]); i++)
		if (strlen(dim_names[i]) == n && !memcmp(dim_names[i], text, n))
			return dim_names[i];
	return NULL;
}

/* What a person gave for a dimension: as --dim, or by the --shape of an input
 * that has it. -1: nothing. */
static int64_t given(const struct rg_graph *g, const struct rg_bindings *b, const char *symbol, bool *by_name)
{
	*by_name = false;
	for (int i = 0; i < b->n_dims; i++) {
		if (!strcmp(b->dims[i].symbol, symbol)) {
			*by_name = true;
			return b->dims[i].value;
		}
	}
	for (int i = 0; i < b->n_shapes; i++) {
		int at = rg_graph_find_value(g, b->shapes[i].input);
		const struct rg_value *v = at < 0 ? NULL : &g->values[at];

		for (int d = 0; v && d < v->declared_rank && d < b->shapes[i].shape.rank; d++)
			if (v->declared[d].value < 0 && v->declared[d].symbol &&
			    !strcmp(v->declared[d].symbol, symbol))
				return b->shapes[i].shape.dim[d];
	}
	return -1;
}

int rg_builtin_default_dims(const struct rg_builtin *m, const struct rg_graph *g, const struct rg_bindings *b,
			    struct rg_bindings *out, struct rg_error *err)
{
	static const struct rg_bindings none;
	const char *p = m->dims;
	bool by_name;

	if (!b)
		b = &none;
	if (m->decode_dims && given(g, b, "past", &by_name) > 0)
		p = m->decode_dims;
	out->n_shapes = b->n_shapes;
	out->shapes = b->shapes;
	out->n_dims = 0;
	for (int i = 0; i < b->n_dims; i++)
		out->dims[out->n_dims++] = b->dims[i];
	while (*p) {
		size_t n = strcspn(p, " ");
		const char *eq = memchr(p, '=', n);
		const char *name = eq ? dim_name(p, (size_t)(eq - p)) : NULL;
		char number[24] = "";
		int64_t value, mine;

		if (name && n - (size_t)(eq - p) <= sizeof(number))
			memcpy(number, eq + 1, n - (size_t)(eq - p) - 1);
		if (!name || !rg_parse_i64(number, 0, INT64_MAX, &value))
			return rg_error_set(err, -EINVAL, "built-in model '%s': malformed dimensions '%s'",
					    m->name, m->dims);
		mine = given(g, b, name, &by_name);
		if (!by_name) {
			out->dims[out->n_dims].symbol = name;
			out->dims[out->n_dims++].value = mine < 0 ? value : mine;
		}
		p += n;
		p += strspn(p, " ");
	}
	return 0;
}
