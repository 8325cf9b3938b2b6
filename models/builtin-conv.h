/* Layers that the convolutional built-in models share. Their names follow
 * torchvision's. */
#ifndef RG_MODELS_BUILTIN_CONV_H
#define RG_MODELS_BUILTIN_CONV_H

#include "models/builder.h"

struct rg_b_conv {
	int64_t in, out;   /* channels */
	int64_t kernel, stride, pad, groups;
};

/* Convolution without bias. Weights "SCOPE.weight". */
int rg_b_conv2d(struct rg_builder *b, int x, const char *scope, const struct rg_b_conv *c);
/* BatchNormalization for inference, four tensors of `channels`. Scales lie below
 * one, since each residual block adds to the second moment. */
int rg_b_batch_norm(struct rg_builder *b, int x, const char *scope, int64_t channels);
/* The same for a network without residuals: scales around one. */
int rg_b_batch_norm_plain(struct rg_builder *b, int x, const char *scope, int64_t channels);
/* Global average pool, flatten, fully connected: [n, in, h, w] to [n, out]. */
int rg_b_classifier(struct rg_builder *b, int x, const char *scope, int64_t in, int64_t out);

#endif
