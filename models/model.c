/* Opens models by name: ONNX files, and the built-in ones. */
#include "models/model.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "models/builtin.h"
#include "models/onnx.h"

#define BUILTIN "builtin:"
#define HASH_CHUNK_BYTES ((size_t)1 << 20)

static bool is_builtin(const char *name)
{
	return strncmp(name, BUILTIN, strlen(BUILTIN)) == 0;
}

int rg_model_looks_like(const char *name)
{
	return is_builtin(name) || access(name, F_OK) == 0;
}

/* ---- built-in ---- */

/* Whether the built-in model has a dimension of that name. */
static bool has_dim(const struct rg_builtin *m, const char *symbol)
{
	size_t n = strlen(symbol);

	for (const char *p = m->dims; *p; p += strspn(p, " ")) {
		if (n && strncmp(p, symbol, n) == 0 && p[n] == '=')
			return true;
		p += strcspn(p, " ");
	}
	return false;
}

static int unknown_builtin(const char *name, struct rg_error *err)
{
	char known[256] = "";

	for (int i = 0; i < rg_builtin_count(); i++) {
		strncat(known, i ? ", " BUILTIN : BUILTIN, sizeof(known) - strlen(known) - 1);
		strncat(known, rg_builtin_at(i)->name, sizeof(known) - strlen(known) - 1);
	}
	rg_error_set(err, -ENOENT, "there is no built-in model '%.60s'", name);
	return rg_error_hint(err, "there are %s", known);
}

static int open_builtin(struct rg_model *m, const char *name, const struct rg_bindings *b,
			struct rg_error *err)
{
	const struct rg_builtin *builtin = rg_builtin_find(name);
	uint64_t start = rg_clock_now_ns();
	int rc;

	if (!builtin)
		return unknown_builtin(name, err);
	/* Told now, not after hundreds of megabytes of weights were made. */
	for (int i = 0; b && i < b->n_dims; i++) {
		if (has_dim(builtin, b->dims[i].symbol)) {
			/* Nothing may lie in the past, but an empty batch is no inference. */
			if (b->dims[i].value > 0 || strcmp(b->dims[i].symbol, "past") == 0)
				continue;
			rg_error_set(err, RG_EUSAGE, "--dim %.60s=%lld: builtin:%s needs at least 1",
				     b->dims[i].symbol, (long long)b->dims[i].value, name);
			return rg_error_hint(err, "its dimensions and their defaults: %s", builtin->dims);
		}
		rg_error_set(err, RG_EUSAGE, "builtin:%s has no dimension '%.60s'", name, b->dims[i].symbol);
		return rg_error_hint(err, "its dimensions and their defaults: %s", builtin->dims);
	}
	m->graph = rg_graph_new(NULL);
	if (!m->graph)
		return rg_error_nomem(err, sizeof(struct rg_graph));
	rc = builtin->build(m->graph, err);
	if (!rc)
		rc = rg_graph_finish(m->graph, err);
	m->read_ns = rg_clock_now_ns() - start;
	return rc ? rg_error_at(err, "builtin:%s", name) : 0;
}

/* ---- files ---- */

static int hash_fd(int fd, char hex[65], struct rg_error *err)
{
	struct rg_sha256 *h = rg_sha256_new();
	uint8_t *chunk = rg_alloc(HASH_CHUNK_BYTES);
	ssize_t n = 0;
	int rc = 0;

	if (!h || !chunk)
		rc = rg_error_nomem(err, HASH_CHUNK_BYTES);
	while (!rc && (n = read(fd, chunk, HASH_CHUNK_BYTES)) != 0) {
		if (n > 0)
			rg_sha256_add(h, chunk, (size_t)n);
		else if (errno != EINTR)
			rc = rg_error_set(err, -errno, "reading failed: %s", strerror(errno));
	}
	rg_free(chunk);
	if (rc)
		rg_sha256_free(h);
	else
		rg_sha256_finish(h, hex);
	return rc;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The hash is taken after the graph was read, so that read_ns holds the true
 * cost of reading; a file that changed in between is refused, since hash and
 * graph would speak of two files. */
static int hash_file(struct rg_model *m, const char *path, const struct stat *before, struct rg_error *err)
{
	struct stat after;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	if (fd < 0)
		return rg_error_set(err, -errno, "cannot be opened: %s", strerror(errno));
	rc = hash_fd(fd, m->sha256, err);
	if (!rc && fstat(fd, &after) < 0)
		rc = rg_error_set(err, -errno, "cannot be examined: %s", strerror(errno));
	if (!rc && !same_file(before, &after)) {
		rg_error_set(err, -EAGAIN, "the file changed while it was read");
		rc = rg_error_hint(err, "try again when nothing writes to it");
	}
	close(fd);
	return rc;
}

static int open_file(struct rg_model *m, const char *path, bool lenient, struct rg_error *err)
{
	const struct rg_onnx_limits limits = { .lenient = lenient };
	uint64_t start = rg_clock_now_ns();
	struct stat st;
	int rc;

	/* A path that is not there is rg_onnx_load's to explain. */
	if (stat(path, &st) < 0)
		memset(&st, 0, sizeof(st));
	rc = rg_onnx_load(path, &limits, &m->graph, err);
	if (rc) {
		/* What to do about all that has no better word of its own. */
		if (err->hint[0])
			return rc;
		if (rc == -EACCES)
			return rg_error_hint(err, "change its permissions, or run as a user who may read it");
		return rg_error_hint(err, "fetch or export the file again");
	}
	m->read_ns = rg_clock_now_ns() - start;
	m->file_bytes = (int64_t)st.st_size;
	rc = hash_file(m, path, &st, err);
	return rc ? rg_error_at(err, "%s", path) : 0;
}

static int open_model(const char *name, const struct rg_bindings *b, bool lenient, struct rg_model **out,
		      struct rg_error *err)
{
	struct rg_model *m = rg_calloc(1, sizeof(*m));
	int rc = 0;

	*out = NULL;
	if (!m)
		return rg_error_nomem(err, sizeof(*m));
	m->file_bytes = -1;
	m->source = rg_strdup(name);
	if (!m->source)
		rc = rg_error_nomem(err, strlen(name));
	else if (is_builtin(name))
		rc = open_builtin(m, name + strlen(BUILTIN), b, err);
	else
		rc = open_file(m, name, lenient, err);
	if (rc)
		rg_model_free(m);
	else
		*out = m;
	return rc;
}

int rg_model_open(const char *name, const struct rg_bindings *b, struct rg_model **out, struct rg_error *err)
{
	return open_model(name, b, false, out, err);
}

int rg_model_open_lenient(const char *name, const struct rg_bindings *b, struct rg_model **out,
			  struct rg_error *err)
{
	return open_model(name, b, true, out, err);
}

int rg_model_bind(struct rg_model *m, const struct rg_bindings *b, struct rg_error *err)
{
	const struct rg_builtin *builtin;
	struct rg_bindings all = { 0 };
	int rc;

	if (!is_builtin(m->source))
		return rg_graph_bind(m->graph, b, err);
	builtin = rg_builtin_find(m->source + strlen(BUILTIN));
	all.dims = rg_calloc((b ? (size_t)b->n_dims : 0) + 8, sizeof(*all.dims));
	if (!all.dims)
		return rg_error_nomem(err, sizeof(*all.dims));
	/* rg_builtin_default_dims fills in what b leaves out. */
	rc = rg_builtin_default_dims(builtin, m->graph, b, &all, err);
	if (!rc)
		rc = rg_graph_bind(m->graph, &all, err);
	rg_free(all.dims);
	return rc;
}

void rg_model_free(struct rg_model *m)
{
	if (!m)
		return;
	rg_graph_free(m->graph);
	rg_free(m->source);
	rg_free(m);
}
