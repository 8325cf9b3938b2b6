/* Energy, clock and frequency, and what disturbs a measurement quietly. */
#include "probes/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/cpu.h"
#include "sys/procfs.h"
#include "sys/topology.h"

#define CPUFREQ "/sys/devices/system/cpu/cpu%d/cpufreq/%s"
/* A clock that costs more than this per read shows in short spans. */
#define DEAR_CLOCK_NS 150.0

void rg_survey_rapl(struct rg_probe_state *s)
{
	char names[160] = "", path[512], value[64];
	int readable = 0, denied = 0, error = 0;
	size_t i;
	glob_t g;

	if (glob("/sys/class/powercap/*-rapl:*", 0, NULL, &g) != 0) {
		rg_survey_say(s, UNAVAILABLE, "no RAPL domain under /sys/class/powercap");
		rg_survey_hint(s, "virtual machines have none; on bare metal load the module intel_rapl_msr");
		return;
	}
	for (i = 0; i < g.gl_pathc; i++) {
		size_t len = strlen(names);
		int fd;

		snprintf(path, sizeof(path), "%s/energy_uj", g.gl_pathv[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			error = errno;
			denied++;
			continue;
		}
		close(fd);
		readable++;
		snprintf(path, sizeof(path), "%s/name", g.gl_pathv[i]);
		if (rg_read_small(path, value, sizeof(value)))
			snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "", value);
	}
	globfree(&g);
	if (readable) {
		rg_survey_say(s, OK, "%d domains: %s", readable, names);
		return;
	}
	rg_survey_say(s, UNAVAILABLE, "%d domains, none readable: %s", denied, strerror(error));
	rg_survey_hint(s, "run as root, or  sudo chmod a+r /sys/class/powercap/*/energy_uj");
}

void rg_survey_clock(struct rg_probe_state *s)
{
	char source[64];
	double cost = rg_clock_cost_ns();

	if (!rg_read_small("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
			   sizeof(source)))
		snprintf(source, sizeof(source), "unknown source");
	rg_survey_say(s, cost > DEAR_CLOCK_NS ? LIMITED : OK, "%s, %.0f ns a read", source, cost);
	if (cost > DEAR_CLOCK_NS)
		rg_survey_hint(s, "the clock is read by a system call: see  dmesg | grep -i tsc  for why the "
			       "TSC is not trusted");
}

static int first_cpu(void)
{
	struct rg_topology t;

	rg_topology_read("", &t);
	return t.n_allowed ? t.allowed[0] : 0;
}

void rg_survey_frequency(struct rg_probe_state *s)
{
	char path[128], value[64];
	int cpu = first_cpu();

	snprintf(path, sizeof(path), CPUFREQ, cpu, "scaling_cur_freq");
	if (rg_read_small(path, value, sizeof(value)) && atol(value) > 0) {
		rg_survey_say(s, OK, "CPU %d runs at %.2f GHz now", cpu, (double)atol(value) / 1e6);
		return;
	}
	rg_survey_say(s, UNAVAILABLE, "no cpufreq for CPU %d: the true frequency during a run is not known",
		      cpu);
	rg_survey_hint(s, "virtual machines hide it; /proc/cpuinfo then shows a nominal value only");
}

void rg_survey_governor(struct rg_probe_state *s)
{
	struct rg_topology t;

	rg_topology_read("", &t);
	if (!t.governor[0]) {
		rg_survey_say(s, UNAVAILABLE, "no cpufreq: somebody else governs the frequency");
	} else if (strcmp(t.governor, "performance") == 0) {
		rg_survey_say(s, OK, "performance");
	} else {
		rg_survey_say(s, LIMITED, "%s: the frequency follows the load", t.governor);
		rg_survey_hint(s, "run  sudo cpupower frequency-set -g performance");
	}
}

void rg_survey_thp(struct rg_probe_state *s)
{
	struct rg_topology t;

	rg_topology_read("", &t);
	if (!t.thp[0]) {
		rg_survey_say(s, UNAVAILABLE, "this kernel has no transparent huge pages");
		return;
	}
	rg_survey_say(s, strcmp(t.thp, "never") == 0 ? LIMITED : OK, "transparent huge pages: %s", t.thp);
	if (s->state == LIMITED)
		rg_survey_hint(s, "large tensors pay for TLB misses: echo madvise | sudo tee "
			       "/sys/kernel/mm/transparent_hugepage/enabled");
}

void rg_survey_quota(struct rg_probe_state *s)
{
	struct rg_topology t;

	rg_topology_read("", &t);
	if (isnan(t.quota_cpus)) {
		rg_survey_say(s, OK, "no limit; %d CPUs allowed", t.n_allowed);
		return;
	}
	rg_survey_say(s, t.quota_cpus < t.n_allowed ? LIMITED : OK, "%.2f CPUs of %d allowed", t.quota_cpus,
		      t.n_allowed);
	if (s->state == LIMITED)
		rg_survey_hint(s, "threads are stopped when the quota of a period is used up: the tail shows "
			       "it; use at most %d threads", rg_topology_default_threads(&t));
}

void rg_survey_hypervisor(struct rg_probe_state *s)
{
	char vendor[64];
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	if (!cpu.hypervisor) {
		rg_survey_say(s, OK, "none seen");
		return;
	}
	if (!rg_read_small("/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor)) || !vendor[0])
		snprintf(vendor, sizeof(vendor), "unknown vendor");
	rg_survey_say(s, LIMITED, "runs under a hypervisor (%s)", vendor);
	rg_survey_hint(s, "neighbours share caches and memory bandwidth: repeat runs, and look at steal "
		       "time");
}

void rg_survey_steal(struct rg_probe_state *s)
{
	uint64_t steal, total;
	double share;

	if (!rg_proc_steal_ticks("", &steal, &total) || total == 0) {
		rg_survey_say(s, UNAVAILABLE, "/proc/stat does not tell");
		return;
	}
	share = (double)steal / (double)total;
	rg_survey_say(s, share > 0.01 ? LIMITED : OK, "%.2f %% of CPU time since boot", 100 * share);
	if (s->state == LIMITED)
		rg_survey_hint(s, "the host gives this machine's CPUs to others: expect a longer tail");
}
