/* What the files of the survey share. */
#ifndef RG_PROBES_SURVEY_H
#define RG_PROBES_SURVEY_H

#include "probes/doctor.h"

enum { OK = 0, LIMITED = 1, UNAVAILABLE = 2 };

/* One check: name is set; fills state, detail and hint. */
typedef void survey_fn(struct rg_probe_state *s);

void rg_survey_say(struct rg_probe_state *s, int state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void rg_survey_hint(struct rg_probe_state *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* survey-perf.c: what the kernel lets us count */
survey_fn rg_survey_cycles, rg_survey_instructions, rg_survey_cache_misses, rg_survey_task_clock,
	rg_survey_context_switches, rg_survey_dram, rg_survey_watchdog, rg_survey_pfm;
/* survey-tools.c: libraries and programs that may be installed */
survey_fn rg_survey_papi, rg_survey_valgrind, rg_survey_gnuplot, rg_survey_nvml, rg_survey_cupti;
/* survey-machine.c: energy, clock, and what disturbs a measurement */
survey_fn rg_survey_rapl, rg_survey_clock, rg_survey_frequency, rg_survey_governor, rg_survey_thp,
	rg_survey_quota, rg_survey_hypervisor, rg_survey_steal;

#endif
