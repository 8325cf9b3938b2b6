/*
 * The reader of planner instances: what it takes, what it refuses, and that each
 * refusal says which line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "compile/buffers-csv.h"

static void accept(const char *text, int n)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_buffer_table t;

	if (rg_buffers_csv_parse(text, strlen(text), &t, &err))
		fail_msg("'%s': %s", text, err.message);
	assert_int_equal(t.n, n);
	rg_buffers_csv_free(&t);
}

static void refuse(const char *text, int code, const char *why)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_buffer_table t;

	assert_int_equal(rg_buffers_csv_parse(text, strlen(text), &t, &err), code);
	if (!strstr(err.message, why))
		fail_msg("'%s': no '%s' in '%s'", text, why, err.message);
	assert_null(t.buffers);
	assert_null(t.text);
	rg_buffers_csv_free(&t);
}

static void test_values(void **state)
{
	static const char text[] = "size,alignment,id,note,lower,upper\r\n\r\n 7 , 4 ,a b,x,-3,9\r\n8,1,b,,0,1";
	struct rg_error err = RG_ERROR_INIT;
	struct rg_buffer_table t;

	assert_int_equal(rg_buffers_csv_parse(text, strlen(text), &t, &err), 0);
	assert_int_equal(t.n, 2);
	assert_string_equal(t.ids[0], "a b");
	assert_string_equal(t.ids[1], "b");
	assert_int_equal(t.buffers[0].lower, -3);
	assert_int_equal(t.buffers[0].upper, 9);
	assert_int_equal(t.buffers[0].size_bytes, 7);
	assert_int_equal(t.buffers[0].align_bytes, 4);
	assert_int_equal(t.buffers[0].offset_bytes, -1);
	assert_int_equal(t.buffers[1].align_bytes, 1);
	rg_buffers_csv_free(&t);
}

static void test_accepted(void **state)
{
	accept("id,lower,upper,size\n", 0);
	accept("id,lower,upper,size", 0);
	accept("id,lower,upper,size\n1,0,1,5", 1);
	accept("id,lower,upper,size\n1,0,1,5\n\n \n2,0,1,0\n", 2);
	accept("id,lower,upper,size,alignment\n1,0,1,5,64\n", 1);
}

static void test_refused(void **state)
{
	refuse("", -EINVAL, "no column 'id'");
	refuse("\n", -EINVAL, "no column 'id'");
	refuse("1,0,1,5\n", -EINVAL, "no column 'id'");
	refuse("id,lower,upper\n1,0,1\n", -EINVAL, "no column 'size'");
	refuse("id,lower,upper,size,lower\n", -EINVAL, "'lower' twice");
	refuse("id,lower,upper,size\n1,0,1\n", -EINVAL, "line 2 has no 'size'");
	refuse("id,lower,upper,size\n1,0,1,5\n,0,1,5\n", -EINVAL, "line 3 has no 'id'");
	refuse("id,lower,upper,size,alignment\n1,0,1,5\n", -EINVAL, "line 2 has no 'alignment'");
	refuse("id,lower,upper,size\n1,0,1,-5\n", -EINVAL, "line 2: 'size' is negative");
	refuse("id,lower,upper,size\n1,1,1,5\n", -EINVAL, "line 2: 'upper'");
	refuse("id,lower,upper,size\n1,2,1,5\n", -EINVAL, "line 2: 'upper'");
	refuse("id,lower,upper,size\n1,0,1,5x\n", -EINVAL, "'5x' is no whole number");
	refuse("id,lower,upper,size\n1,0,1,1.5\n", -EINVAL, "'1.5' is no whole number");
	refuse("id,lower,upper,size\n1,0,1,99999999999999999999\n", -EINVAL, "no whole number");
	refuse("id,lower,upper,size\n1,0,1,9223372036854775807\n", -EOVERFLOW, "exceed");
	refuse("id,lower,upper,size\n1,0,1,2000000000000000000\n2,0,1,2000000000000000000\n", -EOVERFLOW, "exceed");
	refuse("id,lower,upper,size,alignment\n1,0,1,5,0\n", -EINVAL, "'alignment' must be");
	refuse("id,lower,upper,size\n7,0,1,5\n8,0,1,5\n7,2,3,1\n", -EINVAL, "id '7'");
}

static void test_zero_byte(void **state)
{
	static const char text[] = "id,lower,upper,size\n1,0,1,5\0\n";
	struct rg_error err = RG_ERROR_INIT;
	struct rg_buffer_table t;

	assert_int_equal(rg_buffers_csv_parse(text, sizeof(text) - 1, &t, &err), -EINVAL);
}

static void test_files(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_buffer_table t;

	assert_int_equal(rg_buffers_csv_load("/nonexistent/buffers.csv", &t, &err), -ENOENT);
	assert_string_equal(err.where, "/nonexistent/buffers.csv");
	assert_int_equal(rg_buffers_csv_load("/", &t, &err), -EIO);
	rg_buffers_csv_free(&t);
}

static void test_no_memory(void **state)
{
	static const char text[] = "id,lower,upper,size\n1,0,1,5\n2,0,1,5\n";
	struct rg_error err = RG_ERROR_INIT;
	struct rg_buffer_table t;
	int fails, rc = 0;

	for (fails = 1; fails < 50; fails++) {
		rg_alloc_fail_at((uint64_t)fails);
		rc = rg_buffers_csv_parse(text, sizeof(text) - 1, &t, &err);
		if (!rg_alloc_did_fail())
			break;
		assert_int_equal(rc, -ENOMEM);
		assert_null(t.text);
	}
	rg_alloc_fail_at(0);
	assert_int_equal(rc, 0);
	assert_true(fails > 1 && fails < 50);
	rg_buffers_csv_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	  cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_zero_byte), cmocka_unit_test(test_files),	   cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("buffers-csv", tests, NULL, NULL);
}
