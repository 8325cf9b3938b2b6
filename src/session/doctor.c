/* `ridge doctor`: what the probes found, for the layers above. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/blas/blas.h"
#include "kernels/proof.h"
#include "probes/doctor.h"
#include "session/session.h"
#include "sys/cpu.h"

#define MOST_ROWS 48

/* Kernels that no test machine has run check themselves before they are used. */
static void check_kernels(struct rg_doctor_row *row)
{
	struct rg_proof_summary s;
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	rg_proof_survey(cpu.isa, &s);
	snprintf(row->name, sizeof(row->name), "kernel self-checks");
	row->state = s.refused ? 1 : 0;
	if (!s.checked) {
		snprintf(row->detail, sizeof(row->detail), "every kernel for this CPU has been tested on a machine like it");
	} else if (!s.refused) {
		snprintf(row->detail, sizeof(row->detail), "%d kernels for this CPU have run on no test machine; here they "
			 "agree with the reference, their speed is not measured", s.checked);
	} else {
		snprintf(row->detail, sizeof(row->detail), "%d of %d kernels that no test machine has run are not used. "
			 "%s of %s: %.140s", s.refused, s.checked, s.first->name, s.first->op_type,
			 rg_kernel_refusal(s.first));
		snprintf(row->hint, sizeof(row->hint), "report it with  ridge machine ; other kernels run in their place");
	}
}

int rg_session_doctor(struct rg_doctor_row **rows, int *n, struct rg_error *err)
{
	struct rg_probe_state *found = rg_calloc(MOST_ROWS, sizeof(*found));
	struct rg_doctor_row *v = rg_calloc(MOST_ROWS + 2, sizeof(*v));
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
	check_kernels(&v[count + 1]);
	*rows = v;
	*n = count + 2;
	rg_free(found);
	return 0;
}
