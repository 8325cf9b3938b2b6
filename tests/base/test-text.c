/*
 * Growing text, numbers for people, parsing numbers.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/str.h"

static void text_grows_and_survives_failure(void **state)
{
	struct rg_str s = { 0 };

	assert_string_equal(rg_str_text(&s), "");
	for (int i = 0; i < 500; i++)
		rg_str_printf(&s, "%d,", i);
	assert_int_equal(s.len, 10 * 2 + 90 * 3 + 400 * 4);
	assert_true(strncmp(rg_str_text(&s), "0,1,2,3,", 8) == 0);
	assert_int_equal(strlen(rg_str_text(&s)), s.len);
	rg_str_addn(&s, "abcdef", 3);
	assert_string_equal(rg_str_text(&s) + s.len - 3, "abc");
	while (s.len + 4 < s.cap)
		rg_str_add(&s, "x");
	rg_alloc_fail_at(1);
	rg_str_add(&s, "does not fit");
	rg_alloc_fail_at(0);
	assert_true(s.failed);
	{
		size_t len = s.len;

		rg_str_add(&s, "ignored");
		rg_str_printf(&s, "%d", 1);
		assert_int_equal(s.len, len);
		assert_int_equal(strlen(rg_str_text(&s)), len);
	}
	rg_str_free(&s);
	assert_null(s.text);
	assert_false(s.failed);
}

static void words_for_a_shell(void **state)
{
	struct rg_str s = { 0 };

	(void)state;
	rg_str_shell(&s, "a/b-1.db");
	rg_str_add(&s, " ");
	rg_str_shell(&s, "it's \"$x\"");
	rg_str_add(&s, " ");
	rg_str_shell(&s, "");
	assert_string_equal(rg_str_text(&s), "a/b-1.db 'it'\\''s \"$x\"' ''");
	rg_str_free(&s);
}

static void numbers_for_people(void **state)
{
	char b[32];

	assert_string_equal(rg_fmt_si(b, 4.11e9, ""), "4.11 G");
	assert_string_equal(rg_fmt_si(b, 812e6, ""), "812 M");
	assert_string_equal(rg_fmt_si(b, 999.6, ""), "1.00 k"); /* not "1000" */
	assert_string_equal(rg_fmt_si(b, 42, ""), "42");
	assert_string_equal(rg_fmt_si(b, 1.5e9, "B/s"), "1.50 GB/s");
	assert_string_equal(rg_fmt_si(b, 0, "flop"), "0 flop");
	assert_string_equal(rg_fmt_si(b, NAN, "flop"), "-");
	assert_true(strlen(rg_fmt_si(b, 1e300, "a very long unit")) < 32);
	assert_string_equal(rg_fmt_bytes(b, 97.5 * 1048576), "97.5 MiB");
	assert_string_equal(rg_fmt_bytes(b, 1023), "1023 B");
	assert_string_equal(rg_fmt_bytes(b, 1024), "1.00 KiB");
	assert_string_equal(rg_fmt_bytes(b, 1023.9 * 1024), "1.00 MiB");
	assert_string_equal(rg_fmt_bytes(b, NAN), "-");
	assert_string_equal(rg_fmt_ns(b, 1.2e6), "1.20 ms");
	assert_string_equal(rg_fmt_ns(b, 17), "17 ns");
	assert_string_equal(rg_fmt_ns(b, 999.9), "1.00 us");
	assert_string_equal(rg_fmt_ns(b, 60e9), "60.0 s");
	assert_string_equal(rg_fmt_ns(b, NAN), "-");
	assert_string_equal(rg_fmt_count(b, 25557032), "25,557,032");
	assert_string_equal(rg_fmt_count(b, 999), "999");
	assert_string_equal(rg_fmt_count(b, -1000), "-1,000");
	assert_string_equal(rg_fmt_count(b, INT64_MIN), "-9,223,372,036,854,775,808");
}

static void whole_numbers_only(void **state)
{
	int64_t v = 7;
	double d = 7;

	assert_true(rg_parse_i64("-12", -12, 12, &v));
	assert_int_equal(v, -12);
	assert_true(rg_parse_i64("9223372036854775807", 0, INT64_MAX, &v));
	assert_int_equal(v, INT64_MAX);
	v = 7;
	assert_false(rg_parse_i64("9223372036854775808", 0, INT64_MAX, &v));
	assert_false(rg_parse_i64("13", -12, 12, &v));
	assert_false(rg_parse_i64("", 0, 9, &v));
	assert_false(rg_parse_i64(" 1", 0, 9, &v));
	assert_false(rg_parse_i64("1 ", 0, 9, &v));
	assert_false(rg_parse_i64("1x", 0, 9, &v));
	assert_false(rg_parse_i64("1.5", 0, 9, &v));
	assert_int_equal(v, 7); /* untouched */
	assert_true(rg_parse_f64("-1.5e3", &d));
	assert_true(d == -1500);
	assert_false(rg_parse_f64("nan", &d));
	assert_false(rg_parse_f64("inf", &d));
	assert_false(rg_parse_f64("1e999", &d));
	assert_false(rg_parse_f64("1,5", &d));
	assert_false(rg_parse_f64(" 1", &d));
	assert_false(rg_parse_f64("", &d));
}

static void durations(void **state)
{
	uint64_t ns = 7;

	assert_true(rg_parse_duration_ns("5s", &ns));
	assert_int_equal(ns, 5000000000);
	assert_true(rg_parse_duration_ns("200ms", &ns));
	assert_int_equal(ns, 200000000);
	assert_true(rg_parse_duration_ns("2m", &ns));
	assert_int_equal(ns, 120000000000);
	assert_true(rg_parse_duration_ns("3", &ns));
	assert_int_equal(ns, 3000000000);
	assert_true(rg_parse_duration_ns("1.5us", &ns));
	assert_int_equal(ns, 1500);
	assert_true(rg_parse_duration_ns(".5s", &ns));
	assert_int_equal(ns, 500000000);
	ns = 7;
	assert_false(rg_parse_duration_ns("-1s", &ns));
	assert_false(rg_parse_duration_ns("5 s", &ns));
	assert_false(rg_parse_duration_ns("5h", &ns));
	assert_false(rg_parse_duration_ns("s", &ns));
	assert_false(rg_parse_duration_ns("", &ns));
	assert_false(rg_parse_duration_ns("1e30s", &ns));
	assert_false(rg_parse_duration_ns("nan", &ns));
	assert_int_equal(ns, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_grows_and_survives_failure),
		cmocka_unit_test(words_for_a_shell),
		cmocka_unit_test(numbers_for_people),
		cmocka_unit_test(whole_numbers_only),
		cmocka_unit_test(durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
