/*
 * DFT and STFT: what a node means, resolved once for shape inference and
 * kernels alike.
 *
 * Formulas: ONNX operator documents. DFT-17 takes the axis as an attribute,
 * DFT-20 as an input. The inverse is scaled by 1/n.
 */
#ifndef RG_GRAPH_SIGNAL_H
#define RG_GRAPH_SIGNAL_H

#include <stdbool.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/tensor.h"

struct rg_dft {
	int axis;
	int64_t outer, inner;  /* lines: outer x inner of them; inner does not count the last dimension */
	int64_t in_len;        /* along the axis */
	int64_t length;        /* of the transform: shorter signals are padded with zeros, longer ones cut */
	int64_t out_len;       /* length, or length / 2 + 1 */
	int in_parts, out_parts; /* last dimension: 1 real, 2 complex */
	bool inverse, onesided;
	struct rg_shape out;
};

/*
 * `in` has node->n_in entries; absent ones are RG_UNDEFINED. When the value of
 * input i is needed and its data is NULL: RG_ENEED_VALUE and *need_value = i.
 */
int rg_dft_resolve(const struct rg_node *node, const struct rg_tensor *in, struct rg_dft *out, int *need_value,
		   struct rg_error *err);

struct rg_stft {
	int64_t batch, signal, step, length, frames, bins;
	int parts;             /* of the signal: 1 real, 2 complex */
	struct rg_shape out;   /* batch x frames x bins x 2 */
};
int rg_stft_resolve(const struct rg_node *node, const struct rg_tensor *in, struct rg_stft *out, int *need_value,
		    struct rg_error *err);

#endif
