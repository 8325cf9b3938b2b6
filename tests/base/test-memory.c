/*
 * Allocation through the one door, arenas, and errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/provenance.h"

static void products_that_overflow_are_refused(void **state)
{
	void *p = rg_alloc(8);

	assert_null(rg_calloc(SIZE_MAX / 2, 3));
	assert_null(rg_realloc_array(p, SIZE_MAX / 2, 3));
	rg_free(p); /* still ours */
	assert_non_null(p = rg_alloc(0));
	rg_free(p);
	assert_non_null(p = rg_calloc(0, 8));
	rg_free(p);
	rg_free(NULL);
}

static void the_planned_allocation_fails_once(void **state)
{
	void *a, *b, *c;
	uint64_t before = rg_alloc_count();

	rg_alloc_fail_at(2);
	a = rg_alloc(1);
	b = rg_alloc(1);
	c = rg_alloc(1);
	assert_non_null(a);
	assert_null(b);
	assert_non_null(c);
	assert_true(rg_alloc_did_fail());
	assert_int_equal(rg_alloc_fail_at(0), 3); /* three were seen since */
	assert_false(rg_alloc_did_fail());
	assert_int_equal(rg_alloc_count() - before, 3);
	rg_free(a);
	rg_free(c);
	/* Each kind of allocation passes the same door. */
	rg_alloc_fail_at(1);
	assert_null(rg_calloc(1, 1));
	rg_alloc_fail_at(1);
	assert_null(rg_realloc_array(NULL, 1, 1));
	rg_alloc_fail_at(1);
	assert_null(rg_strdup("x"));
	rg_alloc_fail_at(1);
	assert_null(rg_asprintf("%d", 1));
	rg_alloc_fail_at(1);
	assert_null(rg_alloc_aligned(64, 1));
	rg_alloc_fail_at(0);
}

static void alignment_and_strings(void **state)
{
	char *s;

	for (size_t align = 1; align <= 4096; align *= 2) {
		void *p = rg_alloc_aligned(align, 3);

		assert_int_equal((uintptr_t)p % align, 0);
		rg_free(p);
	}
	s = rg_strndup("ridge", 3);
	assert_string_equal(s, "rid");
	rg_free(s);
	s = rg_asprintf("%s-%d", "a", 7);
	assert_string_equal(s, "a-7");
	rg_free(s);
}

static void growing_keeps_the_old_block_on_failure(void **state)
{
	size_t cap = 0;
	int *v = NULL, *more;

	for (int i = 0; i < 1000; i++) {
		v = rg_grow(v, &cap, (size_t)i + 1, sizeof(*v));
		assert_non_null(v);
		v[i] = i;
	}
	assert_true(cap >= 1000 && cap < 2000);
	rg_alloc_fail_at(1);
	more = rg_grow(v, &cap, cap + 1, sizeof(*v));
	rg_alloc_fail_at(0);
	assert_null(more);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(v[i], i);
	assert_null(rg_grow(v, &cap, SIZE_MAX / 2, sizeof(*v)));
	rg_free(v);
}

static void arenas_give_zeroed_memory_that_does_not_overlap(void **state)
{
	enum { N = 3000 };
	struct rg_arena *a = rg_arena_new();
	unsigned char *piece[N];
	size_t size[N], total = 0;

	assert_non_null(a);
	for (int i = 0; i < N; i++) {
		/* Small ones, with some larger than a block between them. */
		size[i] = i % 97 == 0 ? 100000 + (size_t)i : (size_t)(i * 7 % 200);
		piece[i] = rg_arena_alloc(a, size[i], 1);
		assert_non_null(piece[i]);
		assert_int_equal((uintptr_t)piece[i] % _Alignof(max_align_t), 0);
		for (size_t k = 0; k < size[i]; k++)
			assert_int_equal(piece[i][k], 0);
		memset(piece[i], i % 255 + 1, size[i]);
		total += size[i];
	}
	for (int i = 0; i < N; i++)
		for (size_t k = 0; k < size[i]; k++)
			assert_int_equal(piece[i][k], i % 255 + 1);
	assert_true(rg_arena_bytes(a) >= total);
	assert_true(rg_arena_bytes(a) < 2 * total); /* big pieces do not waste the block in use */
	rg_arena_free(a);
	rg_arena_free(NULL);
}

static void arenas_refuse_what_cannot_be(void **state)
{
	struct rg_arena *a = rg_arena_new();
	void *p;

	assert_null(rg_arena_alloc(a, SIZE_MAX / 2, 3));
	assert_null(rg_arena_alloc(a, SIZE_MAX, 1));
	for (size_t align = 1; align <= 4096; align *= 2) {
		p = rg_arena_alloc_aligned(a, align, 10);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % align, 0);
	}
	assert_string_equal(rg_arena_strndup(a, "bandwidth", 4), "band");
	assert_string_equal(rg_arena_printf(a, "%d of %d", 3, 4), "3 of 4");
	rg_alloc_fail_at(1);
	assert_null(rg_arena_alloc(a, 1, 1 << 20));
	rg_alloc_fail_at(0);
	assert_non_null(rg_arena_strdup(a, "still good"));
	rg_arena_free(a);
	rg_alloc_fail_at(1);
	assert_null(rg_arena_new());
	rg_alloc_fail_at(0);
}

static void errors_keep_one_line(void **state)
{
	struct rg_error e = RG_ERROR_INIT;
	char big[2000];

	assert_int_equal(rg_error_set(&e, -EINVAL, "node '%s'", "a\n\x1b[31mb\x7f"), -EINVAL);
	assert_string_equal(e.message, "node 'a??[31mb?'");
	assert_int_equal(rg_error_hint(&e, "do\t%s", "this"), -EINVAL);
	assert_string_equal(e.hint, "do?this");
	rg_error_at(&e, "node '%s'", "x\n");
	rg_error_at(&e, "%s", "a.onnx");
	assert_string_equal(e.where, "a.onnx: node 'x?'");
	rg_error_set(&e, -EIO, "caf\xc3\xa9"); /* UTF-8 passes */
	assert_string_equal(e.message, "caf\xc3\xa9");
	assert_string_equal(e.where, "");        /* a new error starts anew */
	assert_string_equal(e.hint, "");
	memset(big, 'y', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	rg_error_set(&e, -EIO, "%s", big);
	assert_int_equal(strlen(e.message), sizeof(e.message) - 1);
	rg_error_hint(&e, "%s", big);
	assert_int_equal(strlen(e.hint), sizeof(e.hint) - 1);
	for (int i = 0; i < 5; i++)
		rg_error_at(&e, "%s", big);
	assert_int_equal(strlen(e.where), sizeof(e.where) - 1);
	assert_int_equal(rg_error_nomem(&e, 12345), -ENOMEM);
	assert_non_null(strstr(e.message, "12345"));
	rg_error_clear(&e);
	assert_int_equal(e.code, 0);
	assert_string_equal(e.message, "");
}

static void provenances_have_names(void **state)
{
	for (int p = RG_PROV_UNAVAILABLE; p <= RG_PROV_DECLARED; p++)
		assert_int_equal(rg_provenance_parse(rg_provenance_name((enum rg_provenance)p)), p);
	assert_int_equal(rg_provenance_parse("guessed"), RG_PROV_UNAVAILABLE);
	assert_string_equal(rg_provenance_name(RG_PROV_MEASURED), "measured");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_that_overflow_are_refused),
		cmocka_unit_test(the_planned_allocation_fails_once),
		cmocka_unit_test(alignment_and_strings),
		cmocka_unit_test(growing_keeps_the_old_block_on_failure),
		cmocka_unit_test(arenas_give_zeroed_memory_that_does_not_overlap),
		cmocka_unit_test(arenas_refuse_what_cannot_be),
		cmocka_unit_test(errors_keep_one_line),
		cmocka_unit_test(provenances_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
