/*
 * Input values: from .npy files (strings from text files, one a line), or seeded ones that are valid for their use:
 * token ids inside the vocabulary (found from the Gather that reads the input),
 * masks of ones, position ids ascending, images uniform in [0, 1), other floats
 * uniform in [-1, 1); --input-range wins over all of them. The generator is
 * base/rng.h with stream (seed, input name), element order row-major.
 */
#ifndef RG_SESSION_INPUTS_H
#define RG_SESSION_INPUTS_H

#include "session/session.h"

/* One tensor a graph input, in graph order; data from rg_alloc_aligned. The
 * graph must be bound. `uses[i]`, when not NULL, says how each was made
 * (static storage). */
int rg_inputs_make(const struct rg_graph *g, const struct rg_session_options *o,
		   struct rg_tensor **out, const char ***uses, struct rg_error *err);
/* RG_EUSAGE: an option for an input that the model does not have, which is a typing error. */
int rg_inputs_check_names(const struct rg_graph *g, const struct rg_session_options *o, struct rg_error *err);
/* The file given for an input, type and shape as the file says. */
int rg_inputs_read(const struct rg_value *input, const char *path, struct rg_tensor *out, struct rg_error *err);
/* -EINVAL: its shape is not what the model declares of that input; the hint is the caller's. */
int rg_inputs_check_shape(const struct rg_value *input, const struct rg_tensor *t, struct rg_error *err);
void rg_inputs_free(struct rg_tensor *t, int n, const char **uses);

#endif
