/* Reads of procfs, on this process and on files written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/procfs.h"
#include "tests/sys/machines.h"

static void test_read_small(void **state)
{
	char root[256], path[512], buf[8];

	machine_scratch(root, sizeof(root));
	machine_write(root, "a", "one\n");
	machine_write(root, "empty", "");
	machine_write(root, "long", "0123456789\n");
	snprintf(path, sizeof(path), "%s/a", root);
	assert_true(rg_read_small(path, buf, sizeof(buf)));
	assert_string_equal(buf, "one");
	snprintf(path, sizeof(path), "%s/empty", root);
	assert_true(rg_read_small(path, buf, sizeof(buf)));
	assert_string_equal(buf, "");
	snprintf(path, sizeof(path), "%s/long", root);
	assert_true(rg_read_small(path, buf, sizeof(buf)));
	assert_string_equal(buf, "0123456");
	assert_false(rg_read_small(path, buf, 0));
	assert_false(rg_read_small(root, buf, sizeof(buf))); /* a folder */
	snprintf(path, sizeof(path), "%s/none", root);
	assert_false(rg_read_small(path, buf, sizeof(buf)));
	assert_string_equal(buf, "");
}

static void test_rss(void **state)
{
	const size_t size = 64u << 20;
	int64_t before = rg_proc_rss_bytes(), peak;
	char *p;

	assert_true(before > 0);
	p = malloc(size);
	assert_non_null(p);
	memset(p, 1, size);
	assert_true(rg_proc_rss_bytes() >= before + (int64_t)size / 2);
	free(p);
	peak = rg_proc_peak_rss_bytes();
	assert_true(peak >= before + (int64_t)size / 2);
}

static void test_recorded(void **state)
{
	char root[256];
	uint64_t steal, total;

	machine_scratch(root, sizeof(root));
	assert_true(isnan(rg_proc_load1(root)));
	assert_false(rg_proc_steal_ticks(root, &steal, &total));
	machine_write(root, "proc/loadavg", "1.25 0.50 0.25 2/300 4711\n");
	machine_write(root, "proc/stat", "cpu  10 20 30 40 50 60 70 80 5 5\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
	assert_float_equal(rg_proc_load1(root), 1.25, 1e-12);
	assert_true(rg_proc_steal_ticks(root, &steal, &total));
	assert_int_equal(steal, 80);
	assert_int_equal(total, 360);
	machine_write(root, "proc/loadavg", "x\n");
	machine_write(root, "proc/stat", "cpu  10 20\n");
	assert_true(isnan(rg_proc_load1(root)));
	assert_false(rg_proc_steal_ticks(root, &steal, &total));
}

static void test_process(void **state)
{
	char id[40];
	uint64_t mine = rg_proc_start_ticks((int)getpid());

	assert_true(mine > 0);
	assert_int_equal(rg_proc_start_ticks((int)getpid()), mine);
	assert_int_equal(rg_proc_start_ticks(-1), 0);
	rg_proc_boot_id(id);
	assert_int_equal(strlen(id), 36);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_small),
		cmocka_unit_test(test_rss),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_process),
	};

	return cmocka_run_group_tests_name("procfs", tests, NULL, machine_cleanup);
}
