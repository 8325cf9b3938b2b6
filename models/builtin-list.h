/* The build functions of the built-in models, one file each; see builtin.h. */
#ifndef RG_MODELS_BUILTIN_LIST_H
#define RG_MODELS_BUILTIN_LIST_H

#include "graph/graph.h"

int rg_builtin_bert_base(struct rg_graph *g, struct rg_error *err);
int rg_builtin_gpt2(struct rg_graph *g, struct rg_error *err);
int rg_builtin_lstm(struct rg_graph *g, struct rg_error *err);
int rg_builtin_mlp(struct rg_graph *g, struct rg_error *err);
int rg_builtin_mobilenet_v2(struct rg_graph *g, struct rg_error *err);
int rg_builtin_resnet50(struct rg_graph *g, struct rg_error *err);
int rg_builtin_unet(struct rg_graph *g, struct rg_error *err);
int rg_builtin_vgg16(struct rg_graph *g, struct rg_error *err);
int rg_builtin_vit_b16(struct rg_graph *g, struct rg_error *err);

#endif
