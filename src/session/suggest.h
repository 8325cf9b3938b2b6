/*
 * What to suggest when a model leaves dimensions open.
 */
#ifndef RG_SESSION_SUGGEST_H
#define RG_SESSION_SUGGEST_H

#include "models/model.h"
#include "session/session.h"

/*
 * After rg_model_bind failed with `b`: where open dimensions are the reason,
 * tries sizes that models of pictures, text and sound take, until one lets the
 * model be planned, and puts those options into err's hint. The hint stays as
 * it was when none does.
 */
void rg_suggest_shapes(const struct rg_session_options *o, struct rg_model *m, const struct rg_bindings *b,
		       struct rg_error *err);

/* Sizes of examples, the commonest first. */
const struct rg_example_sizes *rg_suggest_sizes(int *n);

#endif
