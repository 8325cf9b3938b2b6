/* One rung, two products: what runs under the simulator. See ladder-sim.h. */
#include "base/alloc.h"
#include "session/ladder-run.h"
#include "session/ladder-sim.h"

/* Its name is what callgrind is told: counting starts where it begins and stops where it ends. */
int rg_ladder_counted(struct rg_ladder_run *r, struct rg_error *err);

__attribute__((noinline)) int rg_ladder_counted(struct rg_ladder_run *r, struct rg_error *err)
{
	int rc = rg_ladder_run_call(r, err);

	__asm__ volatile("" ::: "memory"); /* no tail call: the end must be seen */
	return rc;
}

int rg_ladder_once(const char *rung, const char *kernel, const char *shape, const char *weights,
		   struct rg_error *err)
{
	const struct rg_ladder_name *name = rg_ladder_name_find(rung);
	struct rg_session_options o;
	struct rg_bench_machine *m;
	struct rg_ladder_shape s;
	struct rg_ladder_data d;
	struct rg_ladder_run r;
	enum rg_ladder_weights w;
	int rc;

	if (!name)
		return rg_error_set(err, RG_EUSAGE, "there is no rung '%s'", rung);
	rc = rg_ladder_shape_parse(shape, &s, err);
	if (!rc)
		rc = rg_ladder_weights_parse(weights, &w, err);
	if (rc)
		return rc;
	rg_session_defaults(&o);
	o.threads = 1;
	m = rg_calloc(1, sizeof(*m));
	if (!m)
		return rg_error_nomem(err, sizeof(*m));
	rc = rg_bench_machine(&o, m, err);
	if (!rc)
		rc = rg_ladder_data_new(&s, w, o.seed, false, &d, err);
	if (rc) {
		rg_free(m);
		return rc;
	}
	rc = rg_ladder_run_new(name, kernel, &d, m, &o, &rg_par_serial, &r, err);
	if (!rc && r.reason[0])
		rc = rg_error_set(err, -ENOTSUP, "%s", r.reason);
	if (!rc)
		rc = rg_ladder_run_call(&r, err);
	if (!rc)
		rc = rg_ladder_counted(&r, err);
	rg_ladder_run_free(&r);
	rg_ladder_data_free(&d);
	rg_free(m);
	return rc;
}
