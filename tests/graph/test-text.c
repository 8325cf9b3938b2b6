/*
 * Text: UTF-8 that is whole or damaged, letter case, cutting, and patterns that
 * mean harm. What patterns mean is held against ONNX Runtime (tests/contrib).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "graph/regex.h"
#include "graph/text.h"

/* Every character comes back as the same bytes, damaged ones too. */
static void test_utf8(void **state)
{
	static const struct { const char *text; unsigned want[5]; } t[] = {
		{ "", { 0 } },
		{ "a\x7f", { 'a', 0x7f } },
		{ "\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80", { 0xe9, 0x65e5, 0x1f600 } },
		{ "\xf4\x8f\xbf\xbf", { 0x10ffff } },
		{ "\x80z", { RG_TEXT_BYTE + 0x80, 'z' } },                   /* a continuation alone */
		{ "\xc3", { RG_TEXT_BYTE + 0xc3 } },                         /* cut short */
		{ "\xe6\x97", { RG_TEXT_BYTE + 0xe6, RG_TEXT_BYTE + 0x97 } },
		{ "\xc0\xaf", { RG_TEXT_BYTE + 0xc0, RG_TEXT_BYTE + 0xaf } }, /* longer than need be */
		{ "\xe0\x80\x80", { RG_TEXT_BYTE + 0xe0, RG_TEXT_BYTE + 0x80, RG_TEXT_BYTE + 0x80 } },
		{ "\xed\xa0\x80", { RG_TEXT_BYTE + 0xed, RG_TEXT_BYTE + 0xa0, RG_TEXT_BYTE + 0x80 } }, /* a surrogate */
		{ "\xf4\x90\x80\x80", { RG_TEXT_BYTE + 0xf4, RG_TEXT_BYTE + 0x90, RG_TEXT_BYTE + 0x80,
				       RG_TEXT_BYTE + 0x80 } },              /* beyond Unicode */
		{ "\xff", { RG_TEXT_BYTE + 0xff } },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const char *s = t[i].text;
		char back[16];
		int n = 0;
		unsigned c;

		for (int k = 0; (c = rg_text_next(&s)); k++) {
			assert_int_equal(c, t[i].want[k]);
			n += rg_text_put(back + n, c);
		}
		back[n] = '\0';
		assert_string_equal(back, t[i].text);
		assert_int_equal(rg_text_next(&s), 0); /* and stays there */
	}
}

static void test_case(void **state)
{
	assert_int_equal(rg_text_map('a', RG_CASE_UPPER, true), 'A');
	assert_int_equal(rg_text_map('[', RG_CASE_UPPER, false), '[');
	assert_int_equal(rg_text_map(0xe9, RG_CASE_UPPER, true), 0xe9);
	assert_int_equal(rg_text_map(0xe9, RG_CASE_UPPER, false), 0xc9);
	assert_int_equal(rg_text_map(0xf7, RG_CASE_UPPER, false), 0xf7);   /* a division sign among letters */
	assert_int_equal(rg_text_map(0xdf, RG_CASE_UPPER, false), 0xdf);   /* no single letter */
	assert_int_equal(rg_text_map(0x100, RG_CASE_LOWER, false), 0x101); /* every other one */
	assert_int_equal(rg_text_map(0x101, RG_CASE_LOWER, false), 0x101);
	assert_int_equal(rg_text_map(0x416, RG_CASE_LOWER, false), 0x436);
	assert_int_equal(rg_text_map(0x1c5, RG_CASE_UPPER, false), 0x1c4); /* a letter of title case */
	assert_int_equal(rg_text_map(0x1e943, RG_CASE_UPPER, false), 0x1e921); /* the last range */
	assert_int_equal(rg_text_map(0x10ffff, RG_CASE_LOWER, false), 0x10ffff);
	assert_int_equal(rg_text_map(RG_TEXT_BYTE + 0xe9, RG_CASE_UPPER, false), RG_TEXT_BYTE + 0xe9);
	for (unsigned c = 1; c < 0x11000; c++) { /* there and back, where there is a way back */
		unsigned up = rg_text_map(c, RG_CASE_UPPER, false), down = rg_text_map(up, RG_CASE_LOWER, false);

		assert_int_equal(rg_text_map(up, RG_CASE_UPPER, false), up);
		assert_int_equal(rg_text_map(down, RG_CASE_LOWER, false), down);
	}
}

static void test_split(void **state)
{
	const struct rg_text_split comma = { ",", 1, INT64_MAX }, words = { "", 0, INT64_MAX }, two = { "", 0, 1 };

	assert_int_equal(rg_text_split_count(&comma, ""), 0);
	assert_int_equal(rg_text_split_count(&comma, ","), 2);
	assert_int_equal(rg_text_split_count(&comma, ",,a"), 3);
	assert_int_equal(rg_text_split_count(&words, " \t\n"), 0);
	assert_int_equal(rg_text_split_count(&words, " a\t b\n"), 2);
	assert_int_equal(rg_text_split_count(&two, " a b c "), 2);
}

static bool matches(const char *pattern, const char *s)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_regex *r;
	void *scratch;
	bool yes;

	if (rg_regex_new(pattern, &r, &err))
		fail_msg("%s: %s", pattern, err.message);
	scratch = rg_alloc(rg_regex_scratch_bytes(r));
	assert_non_null(scratch);
	yes = rg_regex_match(r, s, scratch);
	rg_free(scratch);
	rg_free(r);
	return yes;
}

static int refused(const char *pattern)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_regex *r = NULL;
	int rc = rg_regex_new(pattern, &r, &err);

	assert_int_equal(rc, err.code);
	assert_true(rc == 0 || !r);
	rg_free(r);
	return rc;
}

static void repeat(char *to, const char *part, int n)
{
	for (*to = '\0'; n > 0; n--)
		to += strlen(strcpy(to, part));
}

/* What takes others exponential time or a deep stack. */
static void test_hostile_patterns(void **state)
{
	static char pattern[200000], text[20001];

	memset(text, 'a', 20000);
	assert_true(matches("(a*)*(a*)*(a*)*", text));
	assert_false(matches("(a|aa)*(a|aa)*b", text));
	repeat(pattern, "a?", 200);
	assert_false(matches(pattern, text));
	repeat(pattern, "(", 1000);
	assert_int_equal(refused(pattern), RG_ENOTSUP_MODEL);
	repeat(pattern, "(a", 150);
	assert_int_equal(refused(pattern), -EINVAL);
	repeat(pattern, "a{1000}", 100);
	assert_int_equal(refused(pattern), RG_ENOTSUP_MODEL);
	repeat(pattern, "[a-z]", 30000);
	assert_int_equal(refused(pattern), 0);
	repeat(pattern, "a|", 50000);
	assert_int_equal(refused(pattern), RG_ENOTSUP_MODEL);
	assert_int_equal(refused("\xff"), -EINVAL);
	assert_int_equal(refused("[\xc3]"), -EINVAL);
	assert_false(matches(".", "\xff")); /* no character */
	assert_false(matches("[^a]", "\xc3"));
	assert_true(matches("(?:a{10}){10}", text + 20000 - 100));
	assert_true(matches("a{0,1000}", text + 20000 - 1000));
	assert_false(matches("a{0,999}", text + 20000 - 1000));
	assert_true(matches("(?:a{2,3}){2,}b?", "aaaaaaa"));
	assert_false(matches("(?:a{2,3}){2,}", "aaa"));
}

static void test_failing_allocations(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_regex *r;
	int n = 0;

	for (;;) {
		int rc;

		rg_alloc_fail_at((uint64_t)++n);
		rc = rg_regex_new("([a-z]|[0-9]{3,}x?)*|(b|c|d){5}", &r, &err);
		if (!rg_alloc_did_fail())
			break;
		rg_alloc_fail_at(0);
		assert_int_equal(rc, -ENOMEM);
		assert_null(r);
	}
	rg_alloc_fail_at(0);
	rg_free(r);
	assert_true(n > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_case),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_hostile_patterns),
		cmocka_unit_test(test_failing_allocations),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
