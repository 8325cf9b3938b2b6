/*
 * A model and a data file beside it, in a folder with everything that external
 * data must not lead to. The first two bytes say how long the model is, the rest
 * is the data file. An error or a graph, and nothing else; nothing that comes
 * out of a tensor may be from outside the folder.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/onnx.h"
#include "../models/wire.h"

const char *const fuzz_suffix = ".external";

static char outer[64], folder[80], model[96], data_file[96];

/* Eight bytes that no input has but by being told: what a reader may not see. */
static const char secret[8] = "\xd7\x13SeCr\xe9\x02";

static void must(int rc)
{
	if (rc < 0) {
		perror("fuzz-external");
		exit(1);
	}
}

static void put(const char *path, const void *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd);
	if (write(fd, p, n) != (ssize_t)n)
		must(-1);
	close(fd);
}

static void clean(void)
{
	char path[128];

	if (outer[0]) {
		static const char *const names[] = { "in/m.onnx", "in/d", "in/fifo", "in/link", "in/up", "in/self", "in/sub/d",
						     "in/sub", "in", "secret" };

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			snprintf(path, sizeof(path), "%s/%s", outer, names[i]);
			remove(path);
		}
		rmdir(outer);
	}
}

static void make_folder(void)
{
	char path[128], inside[128];

	/* In memory where the system has such a place: there is a file for each run. */
	strcpy(outer, access("/dev/shm", W_OK) == 0 ? "/dev/shm/ridge-fuzz-XXXXXX" : "/tmp/ridge-fuzz-XXXXXX");
	if (!mkdtemp(outer))
		must(-1);
	atexit(clean);
	snprintf(folder, sizeof(folder), "%s/in", outer);
	must(mkdir(folder, 0700));
	snprintf(model, sizeof(model), "%s/m.onnx", folder);
	snprintf(data_file, sizeof(data_file), "%s/d", folder);
	snprintf(path, sizeof(path), "%s/secret", outer);
	for (int i = 0; i < 8; i++)
		memcpy(inside + 8 * i, secret, 8);
	put(path, inside, 64);
	snprintf(inside, sizeof(inside), "%s/fifo", folder);
	must(mkfifo(inside, 0600));
	snprintf(inside, sizeof(inside), "%s/link", folder);
	must(symlink("../secret", inside));
	snprintf(inside, sizeof(inside), "%s/up", folder);
	must(symlink("..", inside));
	snprintf(inside, sizeof(inside), "%s/self", folder);
	must(symlink("m.onnx", inside));
	snprintf(inside, sizeof(inside), "%s/sub", folder);
	must(mkdir(inside, 0700));
	snprintf(inside, sizeof(inside), "%s/sub/d", folder);
	put(inside, "0123456789abcdef", 16);
}

static void look_for_secret(const struct rg_graph *g, const uint8_t *data, size_t size)
{
	if (memmem(data, size, secret, sizeof(secret)))
		return;
	for (int i = 0; i < g->n_values; i++) {
		const struct rg_value *v = &g->values[i];
		int64_t bytes = v->data ? rg_tensor_bytes(v->dtype, &v->shape) : 0;

		if (bytes > 0 && memmem(v->data, (size_t)bytes, secret, sizeof(secret)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;
	size_t n;
	int rc;

	if (size < 2)
		return 0;
	if (!outer[0])
		make_folder();
	n = (size_t)data[0] | (size_t)data[1] << 8;
	n = n < size - 2 ? n : size - 2;
	put(model, data + 2, n);
	put(data_file, data + 2 + n, size - 2 - n);
	rc = rg_onnx_load(model, NULL, &g, &err);
	if ((rc == 0) != (g != NULL) || rc != err.code || (rc != 0) != (err.message[0] != '\0'))
		abort();
	if (g)
		look_for_secret(g, data, size);
	rg_graph_free(g);
	return 0;
}

uint8_t *fuzz_seed(int i, size_t *size)
{
	static const struct { const char *location, *offset, *length; } seeds[] = {
		{ "d", NULL, NULL }, { "d", "4", "8" }, { "sub/d", "0", "8" }, { "link", "0", "8" },
		{ "up/secret", "0", "8" }, { "../secret", "0", "8" }, { "fifo", "0", "8" }, { "self", "0", "8" },
		{ "sub/../d", "0", "8" }, { "m.onnx", "8", "8" }, { "/etc/passwd", "0", "8" },
	};
	const int64_t two[] = { 2 };
	struct wire t, g = { 0 }, m, v, all = { 0 }, node;
	uint8_t head[2];

	if (i >= (int)(sizeof(seeds) / sizeof(seeds[0])))
		return NULL;
	t = wire_tensor("w", RG_F32, 1, two);
	wire_external(&t, seeds[i].location, seeds[i].offset, seeds[i].length);
	wire_msg(&g, GRAPH_INITIALIZER, &t);
	node = wire_node("Add", "x", "w", "y");
	wire_msg(&g, GRAPH_NODE, &node);
	v = wire_value("x", RG_F32, 1, two);
	wire_msg(&g, GRAPH_INPUT, &v);
	v = wire_value("y", RG_F32, 1, two);
	wire_msg(&g, GRAPH_OUTPUT, &v);
	m = wire_model(8, 17, &g);
	head[0] = (uint8_t)m.len;
	head[1] = (uint8_t)(m.len >> 8);
	wire_raw(&all, head, 2);
	wire_raw(&all, m.p, m.len);
	wire_raw(&all, "ABCDEFGHIJKLMNOP", i == 0 ? 8 : 16);
	wire_free(&m);
	*size = all.len;
	return all.p;
}
