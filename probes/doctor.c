/* The survey: every check in the order in which a person reads them. */
#include "probes/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "probes/survey.h"

static const struct {
	const char *name;
	survey_fn *check;
} checks[] = {
	{ "perf cycles", rg_survey_cycles },
	{ "perf instructions", rg_survey_instructions },
	{ "perf cache misses", rg_survey_cache_misses },
	{ "perf task clock", rg_survey_task_clock },
	{ "perf context switches", rg_survey_context_switches },
	{ "DRAM counters", rg_survey_dram },
	{ "NMI watchdog", rg_survey_watchdog },
	{ "libpfm4", rg_survey_pfm },
	{ "PAPI", rg_survey_papi },
	{ "RAPL energy", rg_survey_rapl },
	{ "clock", rg_survey_clock },
	{ "CPU frequency", rg_survey_frequency },
	{ "governor", rg_survey_governor },
	{ "huge pages", rg_survey_thp },
	{ "cgroup quota", rg_survey_quota },
	{ "hypervisor", rg_survey_hypervisor },
	{ "steal time", rg_survey_steal },
	{ "valgrind", rg_survey_valgrind },
	{ "gnuplot", rg_survey_gnuplot },
	{ "NVML", rg_survey_nvml },
	{ "CUPTI", rg_survey_cupti },
};

void rg_survey_say(struct rg_probe_state *s, int state, const char *fmt, ...)
{
	va_list ap;

	s->state = state;
	va_start(ap, fmt);
	vsnprintf(s->detail, sizeof(s->detail), fmt, ap);
	va_end(ap);
}

void rg_survey_hint(struct rg_probe_state *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->hint, sizeof(s->hint), fmt, ap);
	va_end(ap);
}

int rg_probe_survey(struct rg_probe_state *out, int cap)
{
	int n = (int)(sizeof(checks) / sizeof(checks[0])), i;

	if (n > cap)
		n = cap;
	for (i = 0; i < n; i++) {
		memset(&out[i], 0, sizeof(out[i]));
		snprintf(out[i].name, sizeof(out[i].name), "%s", checks[i].name);
		checks[i].check(&out[i]);
	}
	return n;
}
