/* External data: never outside the model's folder, never more than the files
 * hold, never from anything but a regular file. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "expect.h"
#include "folder.h"
#include "models/onnx.h"
#include "wire.h"

static void expect_external(const char *location, const char *offset, const char *length, int code,
			    const char *part)
{
	const int64_t four[] = { 4 };
	struct wire t = wire_tensor("w", RG_U8, 1, four), m;
	const char *path;

	wire_external(&t, location, offset, length);
	m = model_with_tensor(&t);
	path = folder_write("m.onnx", m.p, m.len);
	wire_free(&m);
	expect_file_error(path, code, part);
}

static void external_data_outside(void **state)
{
	folder_write("data.bin", "abcdefgh", 8);
	expect_external("../etc/passwd", "0", "4", -EACCES, "outside the model's folder");
	expect_external("sub/../../x", "0", "4", -EACCES, "outside the model's folder");
	expect_external("..", "0", "4", -EACCES, "outside the model's folder");
	expect_external("/etc/passwd", "0", "4", -EACCES, "outside the model's folder");
	assert_int_equal(symlink("/etc/passwd", folder_path("link")), 0);
	expect_external("link", "0", "4", -EACCES, "outside the model's folder");
	assert_int_equal(symlink("/etc", folder_path("dir")), 0);
	expect_external("dir/passwd", "0", "4", -EACCES, "outside the model's folder");
	assert_int_equal(symlink("/proc/self/fd/0", folder_path("magic")), 0);
	expect_external("magic", "0", "4", -EACCES, "outside the model's folder");
	assert_int_equal(symlink("loop", folder_path("loop")), 0);
	expect_external("loop", "0", "4", -EACCES, "outside the model's folder");
	expect_external("", "0", "4", -EINVAL, "empty location");
	expect_external(NULL, "0", "4", -EINVAL, "has no location");
	expect_external("missing.bin", "0", "4", -ENOENT, "'missing.bin' cannot be opened");
	expect_external(".", "0", "4", -EINVAL, "not a regular file");
	assert_int_equal(mkfifo(folder_path("fifo"), 0600), 0);
	expect_external("fifo", "0", "4", -EINVAL, "not a regular file");
	expect_external("data.bin", "8", "4", -EINVAL, "takes bytes 8 to 12 of 'data.bin', which ends at 8");
	expect_external("data.bin", "9", NULL, -EINVAL, "starts at byte 9");
	expect_external("data.bin", "9223372036854775807", "9223372036854775807", -EINVAL, "starts at byte");
	expect_external("data.bin", "0", "9223372036854775807", -EINVAL, "which ends at 8");
	expect_external("data.bin", "0", "5", -EINVAL, "holds 5 bytes, but type and shape need 4");
	expect_external("data.bin", "0", NULL, -EINVAL, "holds 8 bytes, but type and shape need 4");
	expect_external("data.bin", "-1", "4", -EINVAL, "offset is '-1'");
	expect_external("data.bin", "0x10", "4", -EINVAL, "offset is '0x10'");
	expect_external("data.bin", "99999999999999999999", "4", -EINVAL, "not a number of bytes");
}

/* Makes openat2 fail as on a kernel before 5.6. Cannot be undone. */
static int take_openat2_away(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Loads a model whose weights are at `location`; returns the code. */
static int load_external(const char *location)
{
	const int64_t four[] = { 4 };
	struct wire t = wire_tensor("w", RG_U8, 1, four), m;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;
	const char *path;
	int rc;

	wire_external(&t, location, "0", "4");
	m = model_with_tensor(&t);
	path = folder_write("m.onnx", m.p, m.len);
	wire_free(&m);
	rc = rg_onnx_load(path, NULL, &g, &err);
	if (rc == 0 && memcmp(g->values[rg_graph_find_value(g, "w")].data, "abcd", 4) != 0)
		rc = 1;
	rg_graph_free(g);
	return rc;
}

/* On an old kernel: plain files are found, also in folders, and no link is followed. */
static void external_data_without_openat2(void **state)
{
	int status;
	pid_t pid;

	assert_int_equal(mkdir(folder_path("sub"), 0700), 0);
	folder_write("data.bin", "abcd", 4);
	folder_write("sub/data.bin", "abcd", 4);
	assert_int_equal(symlink("/etc/passwd", folder_path("link")), 0);
	assert_int_equal(symlink("/etc", folder_path("dir")), 0);
	assert_int_equal(symlink("data.bin", folder_path("inner")), 0);
	assert_int_equal(load_external("inner"), 0); /* with openat2 */
	pid = fork();
	if (pid == 0) {
		if (take_openat2_away())
			_exit(77);
		_exit((load_external("data.bin") != 0) | (load_external("sub//./data.bin") != 0) << 1 |
		      (load_external("link") != -EACCES) << 2 |
		      (load_external("dir/passwd") != -ENOTDIR) << 3 |
		      (load_external("inner") != -EACCES) << 4 | (load_external("sub/") == 0) << 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* this machine allows no filter */
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The model itself is a file in its folder like others: harmless, so allowed. */
static void external_data_in_the_model_itself(void **state)
{
	const int64_t four[] = { 4 };
	struct wire t = wire_tensor("w", RG_U8, 1, four), m;
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g;
	const char *path;

	wire_external(&t, "m.onnx", "0", "4");
	m = model_with_tensor(&t);
	path = folder_write("m.onnx", m.p, m.len);
	assert_int_equal(rg_onnx_load(path, NULL, &g, &err), 0);
	assert_memory_equal(g->values[rg_graph_find_value(g, "w")].data, m.p, 4);
	rg_graph_free(g);
	wire_free(&m);
}

/* Many tensors over the same bytes, under two names of one file. */
static void external_data_is_not_multiplied(void **state)
{
	static uint8_t data[1 << 20];
	const int64_t dims[] = { sizeof(data) };
	struct wire g = relu_graph(), m;
	const char *path = folder_write("data.bin", data, sizeof(data));

	assert_int_equal(link(path, folder_path("other.bin")), 0);
	for (int i = 0; i < 100; i++) {
		char name[16];
		struct wire t;

		snprintf(name, sizeof(name), "w%d", i);
		t = wire_tensor(name, RG_U8, 1, dims);
		wire_external(&t, i % 2 ? "data.bin" : "other.bin", "0", NULL);
		wire_msg(&g, GRAPH_INITIALIZER, &t);
	}
	m = wire_model(8, 13, &g);
	path = folder_write("m.onnx", m.p, m.len);
	wire_free(&m);
	expect_file_error(path, -EINVAL, "more bytes from");
}

static void external_data_needs_a_folder(void **state)
{
	const int64_t four[] = { 4 };
	struct wire t = wire_tensor("w", RG_U8, 1, four);

	wire_external(&t, "data.bin", "0", "4");
	t = model_with_tensor(&t);
	expect_error(&t, -EACCES, "not read for a model in memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
		TEST(external_data_outside),
		TEST(external_data_without_openat2),
		TEST(external_data_in_the_model_itself),
		TEST(external_data_is_not_multiplied),
		TEST(external_data_needs_a_folder),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
