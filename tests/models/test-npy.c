/* .npy files: every type, both orders, all versions, and headers that lie. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "folder.h"
#include "models/npy.h"

/* A .npy file in memory: version, header text padded to 64, data. */
static size_t make_npy(uint8_t *out, int version, const char *dict, const void *data, size_t n)
{
	size_t at = version == 1 ? 10 : 12, len = strlen(dict), pad = (64 - (at + len + 1) % 64) % 64;

	memcpy(out, "\x93NUMPY", 6);
	out[6] = (uint8_t)version;
	out[7] = 0;
	out[8] = (uint8_t)(len + pad + 1);
	out[9] = (uint8_t)((len + pad + 1) >> 8);
	out[10] = out[11] = 0;
	memcpy(out + at, dict, len);
	memset(out + at + len, ' ', pad);
	out[at + len + pad] = '\n';
	if (n)
		memcpy(out + at + len + pad + 1, data, n);
	return at + len + pad + 1 + n;
}

static void round_trip_of_every_type(void **state)
{
	static const enum rg_dtype types[] = {
		RG_F32, RG_U8, RG_I8, RG_U16, RG_I16, RG_I32, RG_I64, RG_BOOL, RG_F16, RG_F64, RG_U32, RG_U64,
		RG_C64, RG_C128,
	};
	const int64_t dims[][3] = { { 2, 3, 5 }, { 7, 0, 0 }, { 0, 4, 0 }, { 0, 0, 0 } };
	const int ranks[] = { 3, 1, 2, 0 };
	uint8_t data[30 * 16];
	struct rg_error err = RG_ERROR_INIT;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (int s = 0; s < 4; s++) {
			struct rg_tensor t = { types[i], rg_shape_of(ranks[s], dims[s]), data }, got;
			const char *path = folder_path("t.npy");
			uint8_t ones[30];

			if (types[i] == RG_BOOL) {
				memset(ones, 1, sizeof(ones));
				t.data = ones;
			}
			if (rg_npy_write(path, &t, &err) || rg_npy_read(path, &got, &err))
				fail_msg("%s: %s", err.where, err.message);
			assert_int_equal(got.dtype, t.dtype);
			assert_true(rg_shape_equal(&got.shape, &t.shape));
			assert_int_equal((uintptr_t)got.data % 64, 0);
			assert_memory_equal(got.data, t.data, (size_t)rg_tensor_bytes(t.dtype, &t.shape));
			rg_free(got.data);
		}
	}
}

/* The very bytes that numpy.save writes for np.arange(6, dtype='<i4').reshape(2, 3). */
static void written_as_numpy_writes(void **state)
{
	const int64_t dims[] = { 2, 3 };
	int32_t data[6] = { 0, 1, 2, 3, 4, 5 };
	struct rg_tensor t = { RG_I32, rg_shape_of(2, dims), data };
	struct rg_error err = RG_ERROR_INIT;
	uint8_t got[512], want[512];
	const char *path = folder_path("t.npy");
	size_t n = make_npy(want, 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", data,
			    sizeof(data));
	FILE *f;

	assert_int_equal(rg_npy_write(path, &t, &err), 0);
	f = fopen(path, "rb");
	assert_int_equal(fread(got, 1, sizeof(got), f), n);
	fclose(f);
	assert_int_equal(n, 128 + sizeof(data));
	assert_memory_equal(got, want, n);
}

static void fortran_order(void **state)
{
	/* a[i][j][k] = 100 i + 10 j + k, of shape 2x3x2, first index fastest */
	int16_t data[12], want[12];
	uint8_t file[512];
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor t;
	size_t n;

	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++)
			for (int k = 0; k < 2; k++)
				data[i + 2 * j + 6 * k] = want[(i * 3 + j) * 2 + k] =
				    (int16_t)(100 * i + 10 * j + k);
	n = make_npy(file, 1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 2), }", data,
		     sizeof(data));
	assert_int_equal(rg_npy_parse(file, n, &t, &err), 0);
	assert_int_equal(t.shape.rank, 3);
	assert_memory_equal(t.data, want, sizeof(want));
	rg_free(t.data);
}

static void headers_that_are_fine(void **state)
{
	static const char *const dicts[] = {
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
		"{'shape': (2,), 'fortran_order': False, 'descr': '<f4'}",      /* another order, no comma */
		"{\"descr\": \"<f4\",\"fortran_order\":False,\"shape\":(2,)}",
		"{'descr': '=f4', 'fortran_order': True, 'shape': (2L,), }",    /* Python 2 */
		"  { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , ) , }  ",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }",
	};
	const float data[2] = { 1, 2 };
	uint8_t file[512];

	for (int version = 1; version <= 3; version++) {
		for (size_t i = 0; i < sizeof(dicts) / sizeof(dicts[0]); i++) {
			struct rg_error err = RG_ERROR_INIT;
			struct rg_tensor t;
			size_t n = make_npy(file, version, dicts[i], data, sizeof(data));

			if (rg_npy_parse(file, n, &t, &err))
				fail_msg("%s: %s", dicts[i], err.message);
			assert_memory_equal(t.data, data, sizeof(data));
			rg_free(t.data);
		}
	}
}

static void headers_that_lie(void **state)
{
	static const struct { const char *dict; int code; const char *what; } bad[] = {
		{ "", -EINVAL, "does not start with" },
		{ "{", -EINVAL, "malformed" },
		{ "{}", -EINVAL, "is missing" },
		{ "{'descr': '<f4', 'fortran_order': False}", -EINVAL, "is missing" },
		{ "{'descr': '<f4', 'shape': (2,)}", -EINVAL, "is missing" },
		{ "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", -EINVAL, "a comma is missing" },
		{ "{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}", -EINVAL, "neither True nor False" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': 2}", -EINVAL, "not a tuple" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", -EINVAL, "comma is missing in shape" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", -EINVAL, "not a number" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", -EINVAL, "not a number" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2,", -EINVAL, "not a number" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + open('x')", -EINVAL, "something follows" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", -EINVAL, "a key that no version knows" },
		{ "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", -EINVAL, "a key stands twice" },
		{ "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}", RG_ENOTSUP_MODEL, "'<f4, '" },
		{ "{'descr': '<f4", -EINVAL, "a string" }, /* the padding runs into it */
		{ "{'descr': 'abcdefghijklmnopq'}", -EINVAL, "too long" },
		{ "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2,)}", -EINVAL, "escapes" },
		{ "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", RG_ENOTSUP_MODEL, "big-endian" },
		{ "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", RG_ENOTSUP_MODEL, "'|O' is not supported" },
		{ "{'descr': '<U8', 'fortran_order': False, 'shape': (2,)}", RG_ENOTSUP_MODEL, "not supported" },
		{ "{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}", RG_ENOTSUP_MODEL, "not supported" },
		{ "{'descr': '', 'fortran_order': False, 'shape': (2,)}", RG_ENOTSUP_MODEL, "not supported" },
		{ "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", RG_ENOTSUP_MODEL, "records" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", -EINVAL, "needs 12 bytes, but 8 follow" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", -EINVAL, "needs 4 bytes, but 8 follow" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", -EINVAL, "too large" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", -EFBIG, "too large" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", -EFBIG, "too large" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,2)}", RG_ENOTSUP_MODEL,
		  "more than 12 dimensions" },
	};
	const float data[2] = { 1, 2 };
	uint8_t file[512];
	size_t n;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		n = make_npy(file, 1, bad[i].dict, data, sizeof(data));
		rg_error_clear(&err);
		if (rg_npy_parse(file, n, &t, &err) != bad[i].code || !strstr(err.message, bad[i].what))
			fail_msg("%s: %d %s", bad[i].dict, err.code, err.message);
		assert_null(t.data);
	}
	n = make_npy(file, 4, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", data, sizeof(data));
	assert_int_equal(rg_npy_parse(file, n, &t, &err), RG_ENOTSUP_MODEL);
	n = make_npy(file, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", data, sizeof(data));
	file[11] = 0xff; /* a header of 4 GiB */
	assert_int_equal(rg_npy_parse(file, n, &t, &err), -EINVAL);
	assert_non_null(strstr(err.message, "claims"));
	assert_int_equal(rg_npy_parse("\x93NUMPX\x01\0\x10\0", 10, &t, &err), -EINVAL);
	assert_non_null(strstr(err.message, "not a .npy file"));
}

static void truncated_and_mutated(void **state)
{
	const double data[2] = { 1, 2 };
	uint64_t stream = rg_rng_stream(1, "npy");
	uint8_t file[512];
	size_t n = make_npy(file, 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 1), }", data,
			    sizeof(data));
	int refused = 0;

	for (size_t len = 0; len < n; len++) {
		struct rg_error err = RG_ERROR_INIT;
		uint8_t *copy = malloc(len ? len : 1);
		struct rg_tensor t;

		memcpy(copy, file, len);
		assert_int_not_equal(rg_npy_parse(copy, len, &t, &err), 0);
		free(copy);
	}
	for (uint64_t i = 0; i < 20000; i++) {
		struct rg_error err = RG_ERROR_INIT;
		size_t at = (size_t)rg_rng_integer(stream, 2 * i, 0, (int64_t)n - 1);
		uint8_t old = file[at];
		struct rg_tensor t;

		file[at] = (uint8_t)rg_rng_u64(stream, 2 * i + 1);
		if (rg_npy_parse(file, n, &t, &err) == 0)
			rg_free(t.data);
		else
			refused++;
		file[at] = old;
	}
	assert_true(refused > 1000);
}

static void files_that_are_not_there(void **state)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor t;
	float one = 1;
	struct rg_tensor out = { RG_F32, { 0 }, &one }, packed = { RG_I4, { 0 }, &one };

	assert_int_equal(rg_npy_read(folder_path("no.npy"), &t, &err), -ENOENT);
	assert_non_null(strstr(err.where, "no.npy"));
	assert_int_equal(rg_npy_read(folder_path("."), &t, &err), -EINVAL);
	assert_int_equal(mkfifo(folder_path("fifo.npy"), 0600), 0);
	assert_int_equal(rg_npy_read(folder_path("fifo.npy"), &t, &err), -EINVAL);
	assert_int_equal(rg_npy_read(folder_write("e.npy", "", 0), &t, &err), -EINVAL);
	assert_int_equal(rg_npy_write(folder_path("no/where.npy"), &out, &err), -ENOENT);
	assert_true(err.hint[0]);
	assert_int_equal(rg_npy_write(folder_path("packed.npy"), &packed, &err), RG_ENOTSUP_MODEL);
}

/* A file that cannot be written to its end leaves the old one, and no rest. */
static void a_failed_write_leaves_nothing(void **state)
{
	static float big[100000];
	const int64_t dims[] = { 100000 };
	struct rg_tensor t = { RG_F32, rg_shape_of(1, dims), big }, got;
	struct rlimit old, limit;
	struct rg_error err = RG_ERROR_INIT;
	const char *path = folder_write("t.npy", "old", 3);
	char temporary[4200];
	struct stat st;
	int rc;

	getrlimit(RLIMIT_FSIZE, &old);
	limit = (struct rlimit){ 100000, old.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	rc = rg_npy_write(path, &t, &err);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(rc, -EFBIG);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 3);
	snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long)getpid());
	assert_int_not_equal(access(temporary, F_OK), 0);
	assert_int_equal(rg_npy_write(path, &t, &err), 0);
	assert_int_equal(rg_npy_read(path, &got, &err), 0);
	rg_free(got.data);
}

static void every_allocation_fails_once(void **state)
{
	const int64_t dims[] = { 2, 3 };
	int32_t data[6] = { 0, 1, 2, 3, 4, 5 };
	struct rg_tensor t = { RG_I32, rg_shape_of(2, dims), data }, got;
	const char *path = folder_path("a.npy");

	for (uint64_t n = 1;; n++) {
		struct rg_error err = RG_ERROR_INIT;
		int rc;
		bool failed;

		rg_alloc_fail_at(n);
		rc = rg_npy_write(path, &t, &err);
		if (!rc) {
			rc = rg_npy_read(path, &got, &err);
			if (!rc)
				rg_free(got.data);
		}
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		if (!failed) {
			assert_int_equal(rc, 0);
			assert_true(n > 3);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
		TEST(round_trip_of_every_type),
		TEST(written_as_numpy_writes),
		TEST(fortran_order),
		TEST(headers_that_are_fine),
		TEST(headers_that_lie),
		TEST(truncated_and_mutated),
		TEST(files_that_are_not_there),
		TEST(a_failed_write_leaves_nothing),
		TEST(every_allocation_fails_once),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
