/*
 * `ridge plan MODEL`: what a plan does with memory.
 */
#include "compile/memory.h"
#include "session/prepare.h"

int rg_session_memory(const struct rg_session_options *o, const struct rg_memory_options *mo, struct rg_memory **out,
		      struct rg_error *err)
{
	struct rg_session_options lenient = *o;
	struct rg_prepared p;
	int rc;

	*out = NULL;
	lenient.lenient = true;
	rc = rg_prepare(&lenient, &p, err);
	if (rc)
		return rc;
	rc = rg_memory_of(p.plan, mo, out, err);
	if (rc)
		rg_error_at(err, "%s", o->model);
	rg_prepared_free(&p);
	return rc;
}
