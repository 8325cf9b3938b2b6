/*
 * ridge machine: the ceilings of this machine, beside what it says about itself.
 */
#include "base/alloc.h"
#include "cmd/verbs.h"
#include "session/facts.h"

int rg_cmd_machine(struct rg_args *a, struct rg_error *err)
{
	struct rg_style st = rg_cmd_style(a);
	struct rg_ceiling_row *rows = NULL;
	struct rg_topology *topology = rg_calloc(1, sizeof(*topology));
	struct rg_facts facts = { 0 };
	struct rg_str out = { 0 };
	struct rg_cpu cpu;
	int n = 0;

	if (!topology) {
		rg_error_nomem(err, sizeof(*topology));
		return rg_cmd_exit_code(err);
	}
	rg_cpu_detect("", &cpu);
	rg_topology_read("", topology);
	rg_facts_machine(&facts, &cpu, topology);
	rg_cmd_catch_interrupt();
	if (rg_session_ceilings(a->session.threads, a->session.isa, a->quick, rg_cmd_progress, a, &rows, &n,
				err) == 0) {
		rg_cmd_progress_end(a);
		if (facts.failed || rg_report_ceilings(&out, facts.v, (int)facts.n, rows, n, &st) != 0)
			rg_error_nomem(err, out.len);
		else
			rg_cmd_print(rg_str_text(&out), err);
	}
	rg_str_free(&out);
	rg_free(rows);
	rg_facts_free(&facts);
	rg_free(topology);
	return rg_cmd_exit_code(err);
}
