/* The ONNX reader's memory: bounded by the size of the file, and every failed
 * allocation an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "expect.h"
#include "folder.h"
#include "models/onnx.h"
#include "wire.h"

#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_IS_OURS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY_IS_OURS 0
#endif
#endif
#ifndef MEMORY_IS_OURS
#define MEMORY_IS_OURS 1 /* no sanitizer keeps shadow and quarantine beside ours */
#endif

struct outcome {
	int rc;
	long grown_kib;
	char text[256];
};

/* Loads in a child of its own, so that the peak is this load's alone. */
static struct outcome load_measured(const struct wire *m)
{
	const char *path = folder_write("big.onnx", m->p, m->len);
	struct outcome *o = mmap(NULL, sizeof(*o), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		       r;
	int status;
	pid_t pid;

	assert_true(o != MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		struct rg_error err = RG_ERROR_INIT;
		struct rusage before, after;
		struct rg_graph *g = NULL;

		getrusage(RUSAGE_SELF, &before);
		o->rc = rg_onnx_load(path, NULL, &g, &err);
		getrusage(RUSAGE_SELF, &after);
		o->grown_kib = after.ru_maxrss - before.ru_maxrss;
		snprintf(o->text, sizeof(o->text), "%.250s", err.message);
		rg_graph_free(g);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	r = *o;
	munmap(o, sizeof(*o));
	return r;
}

/* Peaks grow from what the process already held, so a bound is in tens of MB. */
static void expect_peak(struct wire *m, int code, const char *part, long limit_mib)
{
	struct outcome o = load_measured(m);

	print_message("# %zu bytes: peak grew by %ld KiB: %s\n", m->len, o.grown_kib, o.text);
	wire_free(m);
	assert_int_equal(o.rc, code);
	expect_in(o.text, part);
	if (MEMORY_IS_OURS)
		assert_true(o.grown_kib <= limit_mib * 1024);
}

enum { TEN_MB = 10 * 1000 * 1000 };

static void ten_mb_of_empty_nodes(void **state)
{
	struct wire g = { 0 }, m;

	while (g.len < TEN_MB)
		wire_bytes(&g, GRAPH_NODE, "", 0);
	m = wire_model(8, 13, &g);
	expect_peak(&m, -EINVAL, "op_type is missing", 4);
}

static void ten_mb_of_small_nodes(void **state)
{
	struct wire g = { 0 }, m;

	while (g.len < TEN_MB)
		wire_bytes(&g, GRAPH_NODE, "\x22\x01" "A", 3);
	m = wire_model(8, 13, &g);
	expect_peak(&m, -EINVAL, "neither inputs nor outputs", 4);
	/* The smallest that passes, with one output that nobody wants. */
	while (g.len < TEN_MB)
		wire_bytes(&g, GRAPH_NODE, "\x12\x00\x22\x01" "A", 5);
	m = wire_model(8, 13, &g);
	expect_peak(&m, RG_ENOTSUP_MODEL, "operator A", 500);
}

static void ten_mb_of_names(void **state)
{
	struct wire g = { 0 }, m, n = { 0 };
	uint32_t i = 0;
	char name[16];

	/* As many distinct names as the bytes allow. */
	while (g.len < TEN_MB) {
		for (int k = 0; k < 60000; k++, i++) {
			size_t len = 0;

			for (uint32_t v = i; v || !len; v /= 64)
				name[len++] = (char)('0' + v % 64);
			wire_bytes(&n, NODE_OUTPUT, name, len);
		}
		wire_str(&n, NODE_OP, "A");
		wire_msg(&g, GRAPH_NODE, &n);
	}
	m = wire_model(8, 13, &g);
	expect_peak(&m, -E2BIG, "values in a file of", 500);
}

static void ten_mb_of_attributes(void **state)
{
	struct wire g = { 0 }, m, n = { 0 };
	char attr[16];

	while (g.len < TEN_MB) {
		for (int k = 0; k < 250; k++) {
			int len = snprintf(attr, sizeof(attr), "\x0a\x03%03d\x18", k); /* name, i */

			attr[len++] = 1;
			wire_bytes(&n, NODE_ATTR, attr, (size_t)len);
		}
		wire_str(&n, NODE_OP, "A");
		wire_str(&n, NODE_OUTPUT, "");
		wire_msg(&g, GRAPH_NODE, &n);
	}
	m = wire_model(8, 13, &g);
	expect_peak(&m, RG_ENOTSUP_MODEL, "operator A", 500);
}

static void ten_mb_of_subgraphs(void **state)
{
	struct wire g = { 0 }, m, n = { 0 }, a = { 0 };

	while (g.len < TEN_MB) {
		wire_str(&a, ATTR_NAME, "g");
		wire_bytes(&a, ATTR_G, "\x0a\x05\x12\x00\x22\x01" "A", 7); /* one node */
		wire_msg(&n, NODE_ATTR, &a);
		wire_str(&n, NODE_OP, "A");
		wire_str(&n, NODE_OUTPUT, "");
		wire_msg(&g, GRAPH_NODE, &n);
	}
	m = wire_model(8, 13, &g);
	expect_peak(&m, RG_ENOTSUP_MODEL, "more than 4096 subgraphs", 300);
}

/* Weights go from the file to where kernels read them, with no copy between. */
static void weights_are_held_once(void **state)
{
	enum { BYTES = 64 << 20 };
	const int64_t dims[] = { BYTES / 4 };
	uint8_t *data = calloc(1, BYTES);
	struct wire t = wire_tensor("w", RG_F32, 1, dims), m;
	struct outcome o;

	wire_bytes(&t, TENSOR_RAW, data, BYTES);
	free(data);
	m = model_with_tensor(&t);
	o = load_measured(&m);
	wire_free(&m);
	print_message("# 64 MiB of weights: peak grew by %ld KiB\n", o.grown_kib);
	assert_int_equal(o.rc, 0);
	assert_true(o.grown_kib >= 60 * 1024);
	if (MEMORY_IS_OURS)
		assert_true(o.grown_kib <= 68 * 1024);
}

/* By the allocator's own count: the most that is held at once while loading. */
static int64_t peak_of_load(struct wire *m, int64_t *kept_bytes)
{
	const char *path = folder_write("big.onnx", m->p, m->len);
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;
	int64_t before, peak;

	wire_free(m);
	rg_alloc_peak_bytes(true);
	before = rg_alloc_live_bytes();
	if (rg_onnx_load(path, NULL, &g, &err))
		fail_msg("%s", err.message);
	peak = rg_alloc_peak_bytes(false) - before;
	*kept_bytes = rg_alloc_live_bytes() - before;
	rg_graph_free(g);
	assert_int_equal(rg_alloc_live_bytes(), before);
	return peak;
}

/* Under 1 KB a node, and twice the weights. */
static void a_node_takes_less_than_1_kb(void **state)
{
	enum { NODES = 100000, BYTES = 32 << 20 };
	const int64_t dims[] = { BYTES / 4 };
	uint8_t *data = calloc(1, BYTES);
	struct wire g = { 0 }, v = wire_value("v0", RG_F32, -1, NULL), m, n, t;
	char in[16], out[16];
	int64_t peak, kept;

	wire_msg(&g, GRAPH_INPUT, &v);
	for (int i = 1; i <= NODES; i++) {
		snprintf(in, sizeof(in), "v%d", i - 1);
		snprintf(out, sizeof(out), "v%d", i);
		n = wire_node("Relu", in, NULL, out);
		wire_msg(&g, GRAPH_NODE, &n);
	}
	v = wire_value(out, RG_F32, -1, NULL);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 13, &g);
	peak = peak_of_load(&m, &kept);
	print_message("# a chain of %d nodes: %d bytes a node at most, %d kept\n", NODES, (int)(peak / NODES),
		      (int)(kept / NODES));
	assert_true(peak < (int64_t)NODES * 1024);

	t = wire_tensor("w", RG_F32, 1, dims);
	wire_bytes(&t, TENSOR_RAW, data, BYTES);
	free(data);
	m = model_with_tensor(&t);
	peak = peak_of_load(&m, &kept);
	assert_true(kept >= BYTES);
	assert_true(peak < BYTES + (1 << 20));
}

/* A claim of 2 GiB in a file of 76 bytes. */
static void claims_take_nothing(void **state)
{
	const int64_t two_gib[] = { 1 << 29 };
	struct wire t = wire_tensor("w", RG_F32, 1, two_gib), m;

	wire_bytes(&t, TENSOR_RAW, "tiny", 4);
	m = model_with_tensor(&t);
	assert_true(m.len < 1024);
	expect_peak(&m, -EINVAL, "needs 2147483648", 2);
}

static void every_allocation_fails_once(void **state)
{
	struct wire m = wire_small_model();
	const char *path = folder_write("m.onnx", m.p, m.len);
	uint64_t n = 1;

	wire_free(&m);
	for (;; n++) {
		struct rg_error err = RG_ERROR_INIT;
		struct rg_graph *g = NULL;
		int rc;
		bool failed;

		rg_alloc_fail_at(n);
		rc = rg_onnx_load(path, NULL, &g, &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		rg_graph_free(g);
		if (!failed) {
			assert_int_equal(rc, 0);
			break;
		}
		if (rc != -ENOMEM)
			fail_msg("allocation %d failed: code %d, %s", (int)n, rc, err.message);
		assert_null(g);
	}
	assert_true(n > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
		TEST(ten_mb_of_empty_nodes),
		TEST(ten_mb_of_small_nodes),
		TEST(ten_mb_of_names),
		TEST(ten_mb_of_attributes),
		TEST(ten_mb_of_subgraphs),
		TEST(weights_are_held_once),
		TEST(a_node_takes_less_than_1_kb),
		TEST(claims_take_nothing),
		TEST(every_allocation_fails_once),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
