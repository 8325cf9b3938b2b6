/*
 * A data set: samples, each one tensor a model input. Either a folder of .npy files or generated from the seed.
 *
 * A folder holds one sub-folder a sample, with INPUT.npy for each input, named as ridge run --output-dir names outputs
 * (characters that are no good in a file name are '_'); or, for a model of one input, one .npy file a sample.
 * Samples are in the order of their names, numbers by their value.
 */
#ifndef RG_SESSION_SAMPLES_H
#define RG_SESSION_SAMPLES_H

#include "graph/graph.h"
#include "session/session.h"

struct rg_samples {
	int n, n_inputs;
	char **path;                /* n * n_inputs; NULL: this input is generated */
	const char *folder;         /* NULL: generated */
};

/*
 * Finds the samples of a folder and checks their names against the inputs. RG_EUSAGE: there is no folder, no sample, a
 * file that fits no input, an input without a file.
 */
int rg_samples_find(const char *folder, const struct rg_graph *g, struct rg_samples *out, struct rg_error *err);
/* n samples from the seed. */
int rg_samples_seeded(int n, const struct rg_graph *g, struct rg_samples *out, struct rg_error *err);
void rg_samples_free(struct rg_samples *s);
/*
 * Reads sample i: t[n_inputs], data the caller's to rg_free (rg_samples_drop). A file must have the type of the
 * input, fit the shape that it declares, and hold finite numbers. For generated ones the graph is bound.
 */
int rg_samples_read(const struct rg_samples *s, int i, const struct rg_graph *g,
		    const struct rg_session_options *o, struct rg_tensor *t, struct rg_error *err);
void rg_samples_drop(struct rg_tensor *t, int n);

#endif
