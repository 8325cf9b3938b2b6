/*
 * The survey on this machine, whatever it is: complete sentences, a hint where
 * something can be done, agreement with what can be checked independently, and
 * nothing left open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/doctor.h"

#define CAP 64

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static const struct rg_probe_state *find(const struct rg_probe_state *s, int n, const char *name)
{
	int i;

	for (i = 0; i < n; i++)
		if (strcmp(s[i].name, name) == 0)
			return &s[i];
	fail_msg("no check '%s'", name);
	return NULL;
}

static void test_complete(void **state)
{
	static struct rg_probe_state s[CAP], again[CAP];
	int n, before, i, k;

	n = rg_probe_survey(s, CAP); /* libraries may keep what they open the first time */
	before = open_files();
	assert_int_equal(rg_probe_survey(again, CAP), n);
	assert_int_equal(open_files(), before);
	assert_true(n >= 15 && n < CAP);
	for (i = 0; i < n; i++) {
		print_message("# %-22s %d %s%s%s\n", s[i].name, s[i].state, s[i].detail,
			      s[i].hint[0] ? " -> " : "", s[i].hint);
		assert_true(s[i].name[0] && s[i].detail[0]);
		assert_true(s[i].state >= 0 && s[i].state <= 2);
		if (s[i].state == 1 || strncmp(s[i].name, "perf ", 5) == 0)
			assert_true(s[i].state == 0 || s[i].hint[0]);
		if (s[i].state == 0)
			assert_string_equal(s[i].hint, "");
		assert_null(strchr(s[i].detail, '\n'));
		for (k = 0; k < i; k++)
			assert_string_not_equal(s[i].name, s[k].name);
	}
}

static void test_capacity(void **state)
{
	struct rg_probe_state s[3];

	memset(s, 0x5a, sizeof(s));
	assert_int_equal(rg_probe_survey(s, 2), 2);
	assert_int_equal((unsigned char)s[2].name[0], 0x5a);
	assert_int_equal(rg_probe_survey(s, 0), 0);
}

/* An empty PATH must be told, not guessed. */
static void test_no_programs(void **state)
{
	static struct rg_probe_state s[CAP];
	char *path = strdup(getenv("PATH"));
	int n;

	assert_non_null(path);
	setenv("PATH", "/nonexistent", 1);
	n = rg_probe_survey(s, CAP);
	setenv("PATH", path, 1);
	free(path);
	assert_int_equal(find(s, n, "gnuplot")->state, 2);
	assert_int_equal(find(s, n, "valgrind")->state, 2);
	assert_true(find(s, n, "valgrind")->hint[0]);
}

static void test_agrees(void **state)
{
	static struct rg_probe_state s[CAP];
	int n = rg_probe_survey(s, CAP);

	assert_int_equal(find(s, n, "governor")->state == 2,
			 access("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", R_OK) != 0);
	assert_int_equal(find(s, n, "huge pages")->state == 2,
			 access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0);
	if (access("/sys/class/powercap/intel-rapl:0/energy_uj", R_OK) == 0)
		assert_int_equal(find(s, n, "RAPL energy")->state, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_no_programs),
		cmocka_unit_test(test_agrees),
	};

	return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
