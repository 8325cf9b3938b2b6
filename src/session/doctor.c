/* `ridge doctor`: what the probes found, for the layers above. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/blas/blas.h"
#include "probes/doctor.h"
#include "session/session.h"

#define MOST_ROWS 48

int rg_session_doctor(struct rg_doctor_row **rows, int *n, struct rg_error *err)
{
	struct rg_probe_state *found = rg_calloc(MOST_ROWS, sizeof(*found));
	struct rg_doctor_row *v = rg_calloc(MOST_ROWS + 1, sizeof(*v));
	int count;

	if (!found || !v) {
		rg_free(found);
		rg_free(v);
		return rg_error_nomem(err, MOST_ROWS * (sizeof(*found) + sizeof(*v)));
	}
	count = rg_probe_survey(found, MOST_ROWS);
	for (int i = 0; i < count; i++) {
		memcpy(v[i].name, found[i].name, sizeof(v[i].name));
		v[i].state = found[i].state;
		memcpy(v[i].detail, found[i].detail, sizeof(v[i].detail));
		memcpy(v[i].hint, found[i].hint, sizeof(v[i].hint));
	}
	snprintf(v[count].name, sizeof(v[count].name), "OpenBLAS kernels");
	v[count].state = rg_blas_available() ? 0 : 1;
	snprintf(v[count].detail, sizeof(v[count].detail), "%s", rg_blas_describe());
	if (!rg_blas_available())
		snprintf(v[count].hint, sizeof(v[count].hint), "apt-get install libopenblas0-pthread");
	*rows = v;
	*n = count + 1;
	rg_free(found);
	return 0;
}
