/*
 * Runs many small models of one container and writes what they give to another,
 * for tests/diff/differ.py:
 *
 *   run-graphs IN OUT [LANES [LEVEL]]
 *
 * IN holds for each graph (numbers little-endian, as this machine must be):
 *   "RGIN", u32 inputs, u64 bytes of the model, the model, each input as
 *   u32 bytes of its name, the name, and a tensor: u32 type, u32 rank,
 *   i64 dimensions, u64 bytes, the bytes; strings each with a NUL behind.
 * OUT gets for each, in order:
 *   "RGUT", u32 status (enum below), u32 bytes of a text, the text, u32 outputs,
 *   the tensors.
 *
 * A child does the work and appends to OUT; where it dies, that graph is
 * recorded as crashed and another child goes on behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compile/plan.h"
#include "exec/exec.h"
#include "graph/text.h"
#include "models/onnx.h"
#include "sys/cpu.h"

#define LIMIT_S 60
#define MAX_INPUTS 64

enum status { RAN, REFUSED, FAILED, CRASHED };

struct input {
	char name[128];
	struct rg_tensor t;
};

struct job {
	const uint8_t *model;
	size_t model_bytes;
	int n;
	struct input in[MAX_INPUTS];
};

/* ---- reading ---- */

struct cursor {
	const uint8_t *p, *end;
};

static void die(const char *what)
{
	fprintf(stderr, "run-graphs: %s: %s\n", what, strerror(errno));
	exit(1);
}

static const void *take(struct cursor *c, size_t n)
{
	const uint8_t *p = c->p;

	if ((size_t)(c->end - c->p) < n) {
		errno = EINVAL;
		die("the container is cut short");
	}
	c->p += n;
	return p;
}

static uint32_t take_u32(struct cursor *c)
{
	uint32_t v;

	memcpy(&v, take(c, sizeof(v)), sizeof(v));
	return v;
}

static uint64_t take_u64(struct cursor *c)
{
	uint64_t v;

	memcpy(&v, take(c, sizeof(v)), sizeof(v));
	return v;
}

static void take_input(struct cursor *c, struct input *in)
{
	uint32_t len = take_u32(c);
	const void *name = take(c, len);
	uint64_t bytes;

	snprintf(in->name, sizeof(in->name), "%.*s", (int)len, (const char *)name);
	in->t.dtype = (enum rg_dtype)take_u32(c);
	in->t.shape.rank = (int)take_u32(c);
	if (in->t.shape.rank > RG_MAX_RANK) {
		errno = ERANGE;
		die("rank");
	}
	for (int d = 0; d < in->t.shape.rank; d++)
		in->t.shape.dim[d] = (int64_t)take_u64(c);
	bytes = take_u64(c);
	in->t.data = (void *)take(c, bytes);
	if (in->t.dtype == RG_STRING && (int64_t)bytes < rg_shape_count(&in->t.shape)) {
		errno = EINVAL;
		die("strings");
	}
}

static void take_job(struct cursor *c, struct job *j)
{
	if (memcmp(take(c, 4), "RGIN", 4) != 0) {
		errno = EINVAL;
		die("not a container");
	}
	j->n = (int)take_u32(c);
	j->model_bytes = take_u64(c);
	j->model = take(c, j->model_bytes);
	if (j->n > MAX_INPUTS) {
		errno = E2BIG;
		die("inputs");
	}
	for (int i = 0; i < j->n; i++)
		take_input(c, &j->in[i]);
}

/* ---- writing ---- */

struct buffer {
	uint8_t *p;
	size_t n, cap;
};

static void put(struct buffer *b, const void *p, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = (b->n + n) * 2;
		b->p = realloc(b->p, b->cap);
		if (!b->p)
			die("memory");
	}
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void put_u32(struct buffer *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

/* Each with a NUL behind; the number of bytes in front. */
static void put_strings(struct buffer *b, const struct rg_tensor *t)
{
	int64_t n = rg_shape_count(&t->shape);
	uint64_t bytes = 0;

	for (int64_t i = 0; i < n; i++)
		bytes += strlen(rg_text_at(t, i)) + 1;
	put(b, &bytes, sizeof(bytes));
	for (int64_t i = 0; i < n; i++)
		put(b, rg_text_at(t, i), strlen(rg_text_at(t, i)) + 1);
}

static void put_tensor(struct buffer *b, const struct rg_tensor *t)
{
	uint64_t bytes = t->data ? (uint64_t)rg_tensor_bytes(t->dtype, &t->shape) : 0;

	put_u32(b, t->dtype);
	put_u32(b, (uint32_t)t->shape.rank);
	put(b, t->shape.dim, sizeof(int64_t) * (size_t)t->shape.rank);
	if (t->dtype == RG_STRING) {
		put_strings(b, t);
		return;
	}
	put(b, &bytes, sizeof(bytes));
	put(b, t->data, bytes);
}

static void put_status(struct buffer *b, enum status s, const char *text)
{
	b->n = 0;
	put(b, "RGUT", 4);
	put_u32(b, s);
	put_u32(b, (uint32_t)strlen(text));
	put(b, text, strlen(text));
}

static void flush(struct buffer *b, int fd)
{
	/* One write, so that a graph is recorded wholly or not at all. */
	if (write(fd, b->p, b->n) != (ssize_t)b->n)
		die("writing");
}

/* ---- one graph ---- */

/* Strings of the container become pointers to them. */
static void point_at_strings(struct job *j)
{
	for (int i = 0; i < j->n; i++) {
		struct rg_tensor *t = &j->in[i].t;
		int64_t n = rg_shape_count(&t->shape);
		const char *s = t->data, **at;

		if (t->dtype != RG_STRING)
			continue;
		at = calloc((size_t)n + 1, sizeof(*at));
		if (!at)
			die("memory");
		t->data = at;
		for (int64_t k = 0; k < n; k++, s += strlen(s) + 1)
			at[k] = s;
	}
}

static void free_strings(struct job *j)
{
	for (int i = 0; i < j->n; i++)
		if (j->in[i].t.dtype == RG_STRING)
			free(j->in[i].t.data);
}

static const struct rg_tensor *input_value(void *ctx, const char *name)
{
	const struct job *j = ctx;

	for (int i = 0; i < j->n; i++)
		if (!strcmp(j->in[i].name, name))
			return &j->in[i].t;
	return NULL;
}

static int bind(struct rg_graph *g, const struct job *j, struct rg_error *err)
{
	struct rg_bindings b = { 0 };
	int rc;

	b.shapes = calloc((size_t)j->n + 1, sizeof(*b.shapes));
	if (!b.shapes)
		die("memory");
	for (int i = 0; i < j->n; i++) {
		b.shapes[i].input = j->in[i].name;
		b.shapes[i].shape = j->in[i].t.shape;
	}
	b.n_shapes = j->n;
	rc = rg_graph_bind(g, &b, err);
	free(b.shapes);
	return rc;
}

static int fill(struct rg_exec *e, const struct rg_graph *g, const struct job *j, struct rg_error *err)
{
	for (int i = 0; i < g->n_inputs; i++) {
		const char *name = g->values[g->inputs[i]].name;
		const struct rg_tensor *have = input_value((void *)j, name);
		struct rg_tensor want = rg_exec_input(e, i);

		if (!have || want.dtype != have->dtype || !rg_shape_equal(&want.shape, &have->shape))
			return rg_error_set(err, -EINVAL, "input '%s' is not as given", name);
		if (want.data)
			memcpy(want.data, have->data, (size_t)rg_tensor_bytes(have->dtype, &have->shape));
	}
	return 0;
}

static void run_job(struct job *j, int lanes, int level, struct buffer *b)
{
	struct rg_plan_options opt = { .lanes = lanes, .passes = { .level = level }, .input_value = input_value,
				       .input_ctx = j };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;
	struct rg_plan *p = NULL;
	struct rg_exec *e = NULL;
	struct rg_cpu cpu;
	char text[1200];
	int rc;

	point_at_strings(j);
	rg_cpu_detect("", &cpu);
	opt.isa = cpu.isa;
	rc = rg_onnx_load_memory(j->model, j->model_bytes, "graph", &g, &err);
	if (!rc)
		rc = bind(g, j, &err);
	if (!rc)
		rc = rg_plan_make(g, &opt, &p, &err);
	if (!rc)
		rc = rg_plan_check(p, &err);
	if (!rc)
		rc = rg_exec_new(p, NULL, &e, &err);
	if (!rc)
		rc = fill(e, g, j, &err);
	/* Twice: the second run must not see what the first left behind. */
	for (int i = 0; i < 2 && !rc; i++)
		rc = rg_exec_run(e, &err);
	if (rc) {
		snprintf(text, sizeof(text), "%s: %s", err.where, err.message);
		put_status(b, rc == RG_ENOTSUP_MODEL || rc == RG_ENEED_VALUE ? REFUSED : FAILED, text);
		put_u32(b, 0);
	} else {
		put_status(b, RAN, "");
		put_u32(b, (uint32_t)g->n_outputs);
		for (int i = 0; i < g->n_outputs; i++) {
			struct rg_tensor t = rg_exec_output(e, i);

			put_tensor(b, &t);
		}
	}
	rg_exec_free(e);
	rg_plan_free(p);
	rg_graph_free(g);
	free_strings(j);
}

/* Does what is left, counting in *done (shared with the parent). */
static void work(struct cursor c, int lanes, int level, int out, volatile uint64_t *done)
{
	struct buffer b = { 0 };
	struct job j;

	for (uint64_t i = 0; c.p < c.end; i++) {
		take_job(&c, &j);
		if (i < *done)
			continue;
		alarm(LIMIT_S);
		run_job(&j, lanes, level, &b);
		flush(&b, out);
		*done = i + 1;
	}
	free(b.p);
}

static uint64_t count_jobs(struct cursor c)
{
	uint64_t n = 0;
	struct job j;

	for (; c.p < c.end; n++)
		take_job(&c, &j);
	return n;
}

int main(int argc, char **argv)
{
	uint64_t jobs;
	int in, out, status, lanes = argc > 3 ? atoi(argv[3]) : 1, level = argc > 4 ? atoi(argv[4]) : 0;
	volatile uint64_t *done;
	struct buffer b = { 0 };
	struct cursor c;
	struct stat st;
	char text[128];

	if (argc < 3 || lanes < 1) {
		fprintf(stderr, "usage: run-graphs IN OUT [LANES [LEVEL]]\n");
		return 2;
	}
	in = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (in < 0 || fstat(in, &st) < 0)
		die(argv[1]);
	out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (out < 0)
		die(argv[2]);
	if (st.st_size == 0)
		return 0;
	c.p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, in, 0);
	done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c.p == MAP_FAILED || done == MAP_FAILED)
		die("mmap");
	c.end = c.p + st.st_size;
	jobs = count_jobs(c);
	for (;;) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			work(c, lanes, level, out, done);
			exit(0);
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (status == 0)
			break;
		if (*done >= jobs) {
			fprintf(stderr, "run-graphs: all graphs ran, then the end failed (leaks?)\n");
			return 1;
		}
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
			snprintf(text, sizeof(text), "took longer than %d s", LIMIT_S);
		else if (WIFSIGNALED(status))
			snprintf(text, sizeof(text), "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
		else
			snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(status));
		put_status(&b, CRASHED, text);
		put_u32(&b, 0);
		flush(&b, out);
		++*done;
	}
	free(b.p);
	return 0;
}
