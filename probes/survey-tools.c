/*
 * Libraries and programs that may be installed. Libraries are opened with
 * dlopen: none of them is needed to run.
 */
#include "probes/survey.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Opened libraries stay mapped after dlclose: what their constructors allocated
 * (the emergency pool of a C++ runtime linked in) would otherwise be lost each
 * time that somebody asks.
 */
static void *open_first(const char *const *names)
{
	void *handle = NULL;

	for (; *names && !handle; names++)
		handle = dlopen(*names, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
	return handle;
}

/* The file that a library came from, links followed: its name holds the version. */
static void library_file(void *handle, char *out, size_t cap)
{
	struct link_map *map = NULL;
	char *real;

	snprintf(out, cap, "?");
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map)
		return;
	real = realpath(map->l_name, NULL);
	snprintf(out, cap, "%s", real ? real : map->l_name);
	free(real);
}

void rg_survey_papi(struct rg_probe_state *s)
{
	static const char *const names[] = { "libpapi.so", "libpapi.so.7.2", "libpapi.so.7.1",
					    "libpapi.so.7.0",
					     "libpapi.so.7", "libpapi.so.6.0", "libpapi.so.6", NULL };
	void *handle = open_first(names);
	char file[200];

	if (!handle) {
		rg_survey_say(s, UNAVAILABLE, "no libpapi");
		rg_survey_hint(s, "optional; Debian's package is libpapi-dev");
		return;
	}
	library_file(handle, file, sizeof(file));
	dlclose(handle);
	rg_survey_say(s, OK, "%s", file);
}

/* The first line that a program prints about its version. */
static bool first_line(const char *command, char *out, size_t cap)
{
	FILE *f = popen(command, "re");
	bool got;

	if (!f)
		return false;
	got = fgets(out, (int)cap, f) != NULL;
	if (got)
		out[strcspn(out, "\n")] = '\0';
	return pclose(f) == 0 && got && out[0];
}

void rg_survey_valgrind(struct rg_probe_state *s)
{
	char line[128];

	if (first_line("valgrind --version 2>/dev/null", line, sizeof(line))) {
		rg_survey_say(s, OK, "%s: simulated counters are possible", line);
		return;
	}
	rg_survey_say(s, UNAVAILABLE, "no valgrind in PATH: no simulated counters");
	rg_survey_hint(s, "run  sudo apt-get install valgrind");
}

void rg_survey_gnuplot(struct rg_probe_state *s)
{
	char line[128];

	if (first_line("gnuplot --version 2>/dev/null", line, sizeof(line))) {
		rg_survey_say(s, OK, "%s", line);
		return;
	}
	rg_survey_say(s, UNAVAILABLE, "no gnuplot in PATH: no plots");
	rg_survey_hint(s, "run  sudo apt-get install gnuplot-nox");
}

/* NVML's nvmlReturn_t is an enum, NVML_SUCCESS is 0. */
typedef int nvml_void_fn(void);
typedef int nvml_count_fn(unsigned int *count);

static void load_function(void *handle, const char *name, void *fn)
{
	void *p = dlsym(handle, name);

	memcpy(fn, &p, sizeof(p)); /* ISO C has no cast from an object to a function */
}

void rg_survey_nvml(struct rg_probe_state *s)
{
	static const char *const names[] = { "libnvidia-ml.so.1", NULL };
	void *handle = open_first(names);
	nvml_void_fn *init = NULL, *stop = NULL;
	nvml_count_fn *count = NULL;
	unsigned int devices = 0;
	int rc;

	if (!handle) {
		rg_survey_say(s, UNAVAILABLE, "no libnvidia-ml.so.1: no NVIDIA driver here");
		return;
	}
	load_function(handle, "nvmlInit_v2", &init);
	load_function(handle, "nvmlShutdown", &stop);
	load_function(handle, "nvmlDeviceGetCount_v2", &count);
	if (!init || !stop || !count) {
		rg_survey_say(s, UNAVAILABLE, "libnvidia-ml.so.1 lacks nvmlInit_v2 or nvmlDeviceGetCount_v2");
	} else if ((rc = init()) != 0) {
		rg_survey_say(s, UNAVAILABLE, "nvmlInit_v2 returned %d", rc);
		rg_survey_hint(s, "see whether  nvidia-smi  works");
	} else {
		rc = count(&devices);
		stop();
		if (rc == 0 && devices > 0)
			rg_survey_say(s, OK, "%u NVIDIA devices", devices);
		else
			rg_survey_say(s, UNAVAILABLE, "the driver sees no device (%d)", rc);
	}
	dlclose(handle);
}

void rg_survey_cupti(struct rg_probe_state *s)
{
	static const char *const names[] = { "libcupti.so", "libcupti.so.13", "libcupti.so.12",
					     "libcupti.so.11.0", NULL };
	void *handle = open_first(names);
	char file[200];

	if (!handle) {
		rg_survey_say(s, UNAVAILABLE, "no libcupti in the library path");
		return;
	}
	library_file(handle, file, sizeof(file));
	dlclose(handle);
	rg_survey_say(s, OK, "%s", file);
}
