/*
 * What perf_event_open lets us count. Each event is opened for this thread,
 * run over a short loop and read: an event that opens and never counts is as
 * good as none, and looks just like one that works until it is read.
 */
#include "probes/survey.h"

#include <errno.h>
#include <glob.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/cpu.h"
#include "sys/procfs.h"

#ifdef RG_HAVE_PFM
#include <perfmon/pfmlib.h>
#endif

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

static bool paranoid(char *out, size_t cap)
{
	return rg_read_small(PARANOID, out, cap);
}

static bool under_hypervisor(void)
{
	struct rg_cpu cpu;

	rg_cpu_detect("", &cpu);
	return cpu.hypervisor;
}

static void refused(struct rg_probe_state *s, int error)
{
	const char *name = strerrorname_np(error);
	char level[32];

	if (!paranoid(level, sizeof(level)))
		snprintf(level, sizeof(level), "unreadable");
	rg_survey_say(s, UNAVAILABLE, "perf_event_open: %s (%s); perf_event_paranoid is %s",
		      name ? name : "?", strerror(error), level);
	switch (error) {
	case EACCES:
	case EPERM:
		rg_survey_hint(s, "run  sudo sysctl kernel.perf_event_paranoid=1  or grant CAP_PERFMON; in a "
			       "container "
			       "its seccomp profile must allow perf_event_open as well");
		break;
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		if (under_hypervisor())
			rg_survey_hint(s, "this virtual machine has no virtual PMU: switch it on in the "
				       "hypervisor, measure on the host, or use simulated counters");
		else
			rg_survey_hint(s, "the kernel does not drive this CPU's PMU: try a newer kernel, or "
				       "use simulated counters");
		break;
	case ENOSYS:
		rg_survey_hint(s, "this kernel was built without CONFIG_PERF_EVENTS, or a sandbox hides the "
			       "call");
		break;
	case EMFILE:
		rg_survey_hint(s, "too many open files: raise  ulimit -n");
		break;
	default:
		rg_survey_hint(s, "see  man 2 perf_event_open");
	}
}

static int open_event(uint32_t type, uint64_t config, bool user_only)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = config;
	attr.disabled = 1;
	attr.exclude_kernel = attr.exclude_hv = user_only;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* may_be_zero: an event that need not happen in the loop. */
static void check_event(struct rg_probe_state *s, uint32_t type, uint64_t config, bool may_be_zero)
{
	static volatile unsigned char memory[1 << 16];
	bool user_only = type == PERF_TYPE_HARDWARE;
	int fd = open_event(type, config, user_only), i;
	uint64_t count = 0;
	ssize_t got;

	if (fd < 0) {
		refused(s, errno);
		return;
	}
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	for (i = 0; i < 1 << 20; i++)
		memory[(i * 64) & (sizeof(memory) - 1)]++;
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	got = read(fd, &count, sizeof(count));
	close(fd);
	if (got != (ssize_t)sizeof(count)) {
		rg_survey_say(s, UNAVAILABLE, "opens, but cannot be read");
	} else if (count == 0 && !may_be_zero) {
		rg_survey_say(s, LIMITED, "opens, but counts nothing");
		rg_survey_hint(s, "another user of the PMU holds its counters (NMI watchdog, another perf), "
			       "or the hypervisor does not count");
	} else {
		rg_survey_say(s, OK, "opens and counts%s", user_only ? " (user mode)" : "");
	}
}

void rg_survey_cycles(struct rg_probe_state *s)
{
	check_event(s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false);
}

void rg_survey_instructions(struct rg_probe_state *s)
{
	check_event(s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false);
}

void rg_survey_cache_misses(struct rg_probe_state *s)
{
	check_event(s, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, true);
}

void rg_survey_task_clock(struct rg_probe_state *s)
{
	check_event(s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false);
}

void rg_survey_context_switches(struct rg_probe_state *s)
{
	check_event(s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true);
}

void rg_survey_dram(struct rg_probe_state *s)
{
	static const char *const patterns[] = {
		"/sys/bus/event_source/devices/uncore_imc*", /* Intel */
		"/sys/bus/event_source/devices/amd_umc*",    /* AMD Zen 4 and later */
		"/sys/bus/event_source/devices/amd_df",      /* AMD data fabric */
		"/sys/bus/event_source/devices/arm_cmn*",
		"/sys/bus/event_source/devices/nvidia_scf_pmu*",
	};
	char level[32] = "";
	size_t i, found = 0;
	glob_t g;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		if (glob(patterns[i], 0, NULL, &g) != 0)
			continue;
		found += g.gl_pathc;
		globfree(&g);
	}
	if (!found) {
		rg_survey_say(s, UNAVAILABLE, "no memory-controller PMU under /sys/bus/event_source/devices");
		rg_survey_hint(s, "%s", under_hypervisor() ?
			       "virtual machines do not get them: measure on the host" :
			       "load the uncore driver of this CPU, or use simulated traffic");
		return;
	}
	paranoid(level, sizeof(level));
	/* They count for the whole machine, which needs more than a thread's own events. */
	if (geteuid() != 0 && strcmp(level, "0") != 0 && strcmp(level, "-1") != 0) {
		rg_survey_say(s, LIMITED, "%zu memory-controller PMUs; perf_event_paranoid is %s", found,
			      level);
		rg_survey_hint(s, "run  sudo sysctl kernel.perf_event_paranoid=0");
		return;
	}
	rg_survey_say(s, OK, "%zu memory-controller PMUs", found);
}

void rg_survey_watchdog(struct rg_probe_state *s)
{
	char value[32];

	if (!rg_read_small("/proc/sys/kernel/nmi_watchdog", value, sizeof(value))) {
		rg_survey_say(s, OK, "none on this kernel");
	} else if (strcmp(value, "0") == 0) {
		rg_survey_say(s, OK, "off: all counters are free");
	} else {
		rg_survey_say(s, LIMITED, "on: it holds one hardware counter of each CPU");
		rg_survey_hint(s, "run  sudo sysctl kernel.nmi_watchdog=0  while counting");
	}
}

#ifdef RG_HAVE_PFM
void rg_survey_pfm(struct rg_probe_state *s)
{
	int version = pfm_get_version(), rc = pfm_initialize(), supported = 0, core = 0, i;
	char names[128] = "";

	if (rc != PFM_SUCCESS) {
		rg_survey_say(s, UNAVAILABLE, "pfm_initialize: %s", pfm_strerror(rc));
		return;
	}
	for (i = 0; i < PFM_PMU_MAX; i++) {
		pfm_pmu_info_t info;
		size_t len = strlen(names);

		memset(&info, 0, sizeof(info));
		info.size = sizeof(info);
		if (pfm_get_pmu_info((pfm_pmu_t)i, &info) != PFM_SUCCESS)
			continue;
		supported++;
		if (!info.is_present || info.type != PFM_PMU_TYPE_CORE)
			continue;
		core++;
		snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "", info.name);
	}
	pfm_terminate();
	if (core) {
		rg_survey_say(s, OK, "version %d.%d knows %d PMUs; this CPU's: %s", PFM_MAJ_VERSION(version),
			      PFM_MIN_VERSION(version), supported, names);
		return;
	}
	rg_survey_say(s, LIMITED, "version %d.%d knows %d PMUs, none of them is this CPU's core PMU",
		      PFM_MAJ_VERSION(version), PFM_MIN_VERSION(version), supported);
	rg_survey_hint(s, "events by name need a newer libpfm4; the kernel's generic events do not");
}
#else
void rg_survey_pfm(struct rg_probe_state *s)
{
	rg_survey_say(s, UNAVAILABLE, "built without it: events are limited to the kernel's generic ones");
	rg_survey_hint(s, "install libpfm4-dev and build with  -Dpfm=enabled");
}
#endif
