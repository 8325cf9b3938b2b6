/*
 * Built-in models: real architectures with seeded weights (performance does
 * not depend on the values), so that there is something to measure on a
 * machine without any file. Published parameter counts, exactly:
 *
 *   resnet50      25,557,032   --dim batch=1
 *   mobilenet-v2   3,504,872   --dim batch=1
 *   vgg16        138,357,544   --dim batch=1
 *   vit-b16       86,567,656   --dim batch=1
 *   unet           7,763,041   --dim batch=1 --dim height=256 --dim width=256
 *   bert-base    109,482,240   --dim batch=1 --dim seq=128
 *   gpt2         124,439,808   --dim batch=1 --dim seq=128 --dim past=0
 *                              with --dim past=512 one token is decoded: seq=1
 *   lstm          19,780,400   --dim batch=1 --dim seq=35
 *   mlp           documented in builtin-mlp.c
 *
 * Weights come from base/rng.h, stream (seed 1, the initialiser's name), scaled
 * so that activations neither vanish nor overflow.
 */
#ifndef RG_MODELS_BUILTIN_H
#define RG_MODELS_BUILTIN_H

#include "graph/graph.h"

struct rg_builtin {
	const char *name;        /* "resnet50" */
	const char *summary;     /* one line */
	int64_t params;          /* published */
	const char *dims;        /* "batch=1 seq=128": names and defaults */
	const char *decode_dims; /* the defaults where a past that is not empty is given; or NULL */
	/* Builds the graph up to, not including, rg_graph_finish. Graph inputs are
	 * declared with symbols for the dims, so that rg_graph_bind closes them. */
	int (*build)(struct rg_graph *g, struct rg_error *err);
};

int rg_builtin_count(void);
const struct rg_builtin *rg_builtin_at(int i);
const struct rg_builtin *rg_builtin_find(const char *name); /* without "builtin:"; NULL: none */
/*
 * Adds each default of `dims` that `b` (may be NULL) does not give, by name or
 * by the shape of an input of `g`, the model's graph; `out` (caller's, with
 * room for b->n_dims + 8) keeps pointers into b and static storage.
 */
int rg_builtin_default_dims(const struct rg_builtin *m, const struct rg_graph *g, const struct rg_bindings *b,
			    struct rg_bindings *out, struct rg_error *err);

#endif
