/* Layers that the built-in transformers share. */
#ifndef RG_MODELS_BUILTIN_LAYERS_H
#define RG_MODELS_BUILTIN_LAYERS_H

#include "models/builder.h"

/* y = x W + bias as MatMul and Add, with W as [in, out], the way an exporter
 * lays it out. Weights "SCOPE.weight", "SCOPE.bias". */
int rg_b_linear(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t out);
/* LayerNormalization over the last axis of `size`. */
int rg_b_layer_norm(struct rg_builder *b, int x, const char *scope, int64_t size, float epsilon);

/* GELU taken apart around Erf: its three constants, made once a model. */
struct rg_b_gelu {
	int sqrt_two, one, half;
};
void rg_b_gelu_start(struct rg_builder *b, struct rg_b_gelu *c);
int rg_b_gelu(struct rg_builder *b, const struct rg_b_gelu *c, int x, const char *scope);

#endif
