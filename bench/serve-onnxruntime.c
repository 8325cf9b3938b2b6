/*
 * The ONNX Runtime side of scripts/bench-peers, through its C interface, so that a
 * call costs what it costs a C program. Options: LIBRARY THREADS SPIN(0|1).
 *
 *   about                    version
 *   open FILE DIR LEVEL      the model, with DIR/inI.npy for its inputs in their order;
 *                            LEVEL: its graph optimisations, all or none
 *   compare DIR              greatest difference of an output to DIR/outI.npy, over that
 *                            output's greatest magnitude, and the greatest difference itself;
 *                            what is not float32: 0 equal, 1 different
 *   close
 *
 * No header comes with the library, so what is needed of its interface is declared
 * here: the places of functions in OrtApi (onnxruntime_c_api.h). Those of versions
 * 1 to 5 never change; the library refuses a version that it does not have.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "models/npy.h"
#include "serve.h"

#define API_VERSION 5
#define MAX_IO 64

struct api_base {
	void *const *(*get_api)(uint32_t version);
	const char *(*version)(void);
};

enum { /* places in OrtApi */
	ERROR_MESSAGE = 2, CREATE_ENV = 3, CREATE_SESSION = 7, RUN = 9, CREATE_SESSION_OPTIONS = 10,
	SET_OPTIMIZATION_LEVEL = 23, SET_INTRA_THREADS = 24, SET_INTER_THREADS = 25, INPUT_COUNT = 30,
	OUTPUT_COUNT = 31, INPUT_NAME = 36, OUTPUT_NAME = 37, CREATE_TENSOR_WITH_DATA = 49, TENSOR_DATA = 51,
	ELEMENT_TYPE = 60, DIMENSIONS_COUNT = 61, DIMENSIONS = 62, TENSOR_TYPE_AND_SHAPE = 65,
	CREATE_CPU_MEMORY_INFO = 69, ALLOCATOR_FREE = 76, DEFAULT_ALLOCATOR = 78, RELEASE_STATUS = 93,
	RELEASE_MEMORY_INFO = 94, RELEASE_SESSION = 95, RELEASE_VALUE = 96, RELEASE_TYPE_AND_SHAPE = 99,
	RELEASE_SESSION_OPTIONS = 100, ADD_CONFIG_ENTRY = 130,
};

enum { LOG_ERROR = 3, ENABLE_ALL = 99, DISABLE_ALL = 0, ARENA_ALLOCATOR = 1, MEMORY_DEFAULT = 0 };

struct runtime {
	void *const *api;
	const char *version;
	int threads;
	const char *spin;
	void *env, *session, *allocator, *memory_info;
	size_t n_in, n_out;
	char *in_names[MAX_IO], *out_names[MAX_IO];
	struct rg_tensor in[MAX_IO];
	void *in_values[MAX_IO], *out_values[MAX_IO];
};

/* A function of the interface. */
#define ORT(r, place, type) ((type)(r)->api[place])

typedef void *(*fn_p)(void *);
typedef void (*fn_release)(void *);

/* Takes a status: NULL is success. */
static int check(const struct runtime *r, void *status, struct rg_error *err)
{
	if (!status)
		return 0;
	rg_error_set(err, -EIO, "%.400s", ORT(r, ERROR_MESSAGE, const char *(*)(void *))(status));
	ORT(r, RELEASE_STATUS, fn_release)(status);
	return err->code;
}

static int load(struct runtime *r, const char *path, struct rg_error *err)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct api_base *(*base)(void);

	if (!lib)
		return rg_error_set(err, -ENOENT, "ONNX Runtime cannot be loaded: %.300s", dlerror());
	*(void **)&base = dlsym(lib, "OrtGetApiBase");
	if (!base)
		return rg_error_set(err, -ENOENT, "%.300s is not ONNX Runtime", path);
	r->version = base()->version();
	r->api = base()->get_api(API_VERSION);
	if (!r->api)
		return rg_error_set(err, -ENOENT, "ONNX Runtime %.40s lacks this interface", r->version);
	if (check(r, ORT(r, CREATE_ENV, void *(*)(int, const char *, void **))(LOG_ERROR, "bench", &r->env),
		  err) ||
	    check(r, ORT(r, DEFAULT_ALLOCATOR, fn_p)(&r->allocator), err))
		return err->code;
	return check(r,
		     ORT(r, CREATE_CPU_MEMORY_INFO,
			 void *(*)(int, int, void **))(ARENA_ALLOCATOR, MEMORY_DEFAULT, &r->memory_info),
		     err);
}

static int call(void *ctx, struct rg_error *err)
{
	struct runtime *r = ctx;

	if (!r->session)
		return rg_error_set(err, RG_EUSAGE, "nothing is open");
	return check(
	    r,
	    ORT(r, RUN, void *(*)(void *, void *, char **, void **, size_t, char **, size_t, void **))(
		r->session, NULL, r->in_names, r->in_values, r->n_in, r->out_names, r->n_out, r->out_values),
	    err);
}

static int about(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct runtime *r = ctx;

	rg_str_printf(answer, "\t%s", r->version);
	return 0;
}

static int close_(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct runtime *r = ctx;

	for (size_t i = 0; i < MAX_IO; i++) {
		ORT(r, RELEASE_VALUE, fn_release)(r->in_values[i]);
		ORT(r, RELEASE_VALUE, fn_release)(r->out_values[i]);
		if (r->in_names[i])
			ORT(r, ALLOCATOR_FREE, void *(*)(void *, void *))(r->allocator, r->in_names[i]);
		if (r->out_names[i])
			ORT(r, ALLOCATOR_FREE, void *(*)(void *, void *))(r->allocator, r->out_names[i]);
		rg_free(r->in[i].data);
		r->in_values[i] = r->out_values[i] = r->in[i].data = NULL;
		r->in_names[i] = r->out_names[i] = NULL;
	}
	ORT(r, RELEASE_SESSION, fn_release)(r->session);
	r->session = NULL;
	r->n_in = r->n_out = 0;
	return 0;
}

static int make_session(struct runtime *r, const char *path, const char *level, struct rg_error *err)
{
	void *o = NULL;
	typedef void *(*fn_int)(void *, int);
	typedef void *(*fn_entry)(void *, const char *, const char *);
	int rc = check(r, ORT(r, CREATE_SESSION_OPTIONS, fn_p)(&o), err);

	if (!rc)
		rc = check(r,
			   ORT(r, SET_OPTIMIZATION_LEVEL,
			       fn_int)(o, strcmp(level, "none") ? ENABLE_ALL : DISABLE_ALL),
			   err);
	if (!rc)
		rc = check(r, ORT(r, SET_INTRA_THREADS, fn_int)(o, r->threads), err);
	if (!rc)
		rc = check(r, ORT(r, SET_INTER_THREADS, fn_int)(o, 1), err);
	if (!rc)
		rc = check(r,
			   ORT(r, ADD_CONFIG_ENTRY, fn_entry)(o, "session.intra_op.allow_spinning", r->spin),
			   err);
	if (!rc)
		rc = check(r,
			   ORT(r, ADD_CONFIG_ENTRY, fn_entry)(o, "session.inter_op.allow_spinning", r->spin),
			   err);
	if (!rc)
		rc = check(r,
			   ORT(r, CREATE_SESSION, void *(*)(void *, const char *, void *, void **))(
			       r->env, path, o, &r->session),
			   err);
	ORT(r, RELEASE_SESSION_OPTIONS, fn_release)(o);
	return rc;
}

/* Counts and names of inputs or outputs. */
static int names(struct runtime *r, int count_at, int name_at, size_t *n, char **out, struct rg_error *err)
{
	int rc = check(r, ORT(r, count_at, void *(*)(void *, size_t *))(r->session, n), err);

	if (!rc && *n > MAX_IO)
		rc = rg_error_set(err, -E2BIG, "more than %d inputs or outputs", MAX_IO);
	for (size_t i = 0; i < *n && !rc; i++)
		rc = check(r,
			   ORT(r, name_at, void *(*)(void *, size_t, void *, char **))(r->session, i,
										       r->allocator, &out[i]),
			   err);
	return rc;
}

static int make_input(struct runtime *r, size_t i, const char *dir, struct rg_error *err)
{
	typedef void *(*fn)(void *, void *, size_t, const int64_t *, size_t, int, void **);
	char *path = rg_asprintf("%s/in%zu.npy", dir, i);
	struct rg_tensor *t = &r->in[i];
	int rc = path ? rg_npy_read(path, t, err) : rg_error_nomem(err, strlen(dir));

	/* rg_dtype has ONNX's numbers, and so has ONNX Runtime */
	if (!rc)
		rc = check(r,
			   ORT(r, CREATE_TENSOR_WITH_DATA,
			       fn)(r->memory_info, t->data, (size_t)rg_tensor_bytes(t->dtype, &t->shape),
				   t->shape.dim, (size_t)t->shape.rank, (int)t->dtype, &r->in_values[i]),
			   err);
	rg_free(path);
	return rc;
}

static int open_(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct runtime *r = ctx;
	int rc = close_(ctx, 0, NULL, NULL, err);

	if (!rc)
		rc = make_session(r, words[0], words[2], err);
	if (!rc)
		rc = names(r, INPUT_COUNT, INPUT_NAME, &r->n_in, r->in_names, err);
	if (!rc)
		rc = names(r, OUTPUT_COUNT, OUTPUT_NAME, &r->n_out, r->out_names, err);
	for (size_t i = 0; i < r->n_in && !rc; i++)
		rc = make_input(r, i, words[1], err);
	if (!rc)
		rc = call(r, err); /* makes the outputs, which later calls write again */
	if (rc)
		close_(ctx, 0, NULL, NULL, &(struct rg_error){ 0 });
	return rc;
}

/* What a value holds, as a view. */
static int view(const struct runtime *r, void *value, struct rg_tensor *t, struct rg_error *err)
{
	typedef void *(*fn_out)(void *, void *);
	void *info = NULL;
	size_t rank = 0;
	int type = 0,
	    rc = check(r, ORT(r, TENSOR_TYPE_AND_SHAPE, void *(*)(void *, void **))(value, &info), err);

	if (!rc)
		rc = check(r, ORT(r, ELEMENT_TYPE, fn_out)(info, &type), err);
	if (!rc)
		rc = check(r, ORT(r, DIMENSIONS_COUNT, fn_out)(info, &rank), err);
	if (!rc && rank > RG_MAX_RANK)
		rc = rg_error_set(err, -E2BIG, "an output has %zu dimensions", rank);
	if (!rc)
		rc = check(r,
			   ORT(r, DIMENSIONS, void *(*)(void *, int64_t *, size_t))(info, t->shape.dim, rank),
			   err);
	if (!rc)
		rc = check(r, ORT(r, TENSOR_DATA, void *(*)(void *, void **))(value, &t->data), err);
	t->dtype = (enum rg_dtype)type;
	t->shape.rank = (int)rank;
	ORT(r, RELEASE_TYPE_AND_SHAPE, fn_release)(info);
	return rc;
}

/* Raises both to what this output has. */
static void difference(const struct rg_tensor *ours, const struct rg_tensor *theirs, double *relative,
		       double *absolute)
{
	const float *a = ours->data, *b = theirs->data;
	double most = 0, worst = 0;
	int64_t bytes = rg_tensor_bytes(theirs->dtype, &theirs->shape);

	if (theirs->dtype != RG_F32) {
		worst = bytes > 0 && memcmp(a, b, (size_t)bytes) != 0;
		most = 1;
	}
	for (int64_t i = 0; theirs->dtype == RG_F32 && i < rg_shape_count(&theirs->shape); i++) {
		double d = fabs((double)a[i] - (double)b[i]);

		if (!isnan(worst) && !(d <= worst))
			worst = d; /* NaN too, and then for good */
		most = fmax(most, fabs((double)b[i]));
	}
	if (!isnan(*absolute) && !(worst <= *absolute))
		*absolute = worst;
	if (most > 0)
		worst /= most;
	if (!isnan(*relative) && !(worst <= *relative))
		*relative = worst;
}

static int compare(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct runtime *r = ctx;
	double relative = 0, absolute = 0;
	int rc = r->session ? 0 : rg_error_set(err, RG_EUSAGE, "nothing is open");

	for (size_t i = 0; i < r->n_out && !rc; i++) {
		struct rg_tensor ours = { 0 }, theirs = { 0 };
		char *path = rg_asprintf("%s/out%zu.npy", words[0], i);

		rc = path ? rg_npy_read(path, &ours, err) : rg_error_nomem(err, strlen(words[0]));
		if (!rc)
			rc = view(r, r->out_values[i], &theirs, err);
		if (!rc && (ours.dtype != theirs.dtype || !rg_shape_equal(&ours.shape, &theirs.shape)))
			rc = rg_error_set(err, RG_EUSAGE, "output %zu is of another type or shape", i);
		if (!rc)
			difference(&ours, &theirs, &relative, &absolute);
		rg_free(ours.data);
		rg_free(path);
	}
	rg_str_printf(answer, "\t%.3g\t%.3g", relative, absolute);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct serve_verb verbs[] = {
	    {"about", 0, about},
	    {"open", 3, open_},
	    {"compare", 1, compare},
	    {"close", 0, close_},
	};
	static struct runtime r;
	struct serve s = {
	    .ctx = &r, .verbs = verbs, .n_verbs = sizeof(verbs) / sizeof(verbs[0]), .call = call};
	struct rg_error err = RG_ERROR_INIT;
	int64_t threads;
	int code;

	if (argc != 4 || !rg_parse_i64(argv[2], 1, 4096, &threads)) {
		fprintf(stderr, "usage: serve-onnxruntime LIBRARY THREADS 0|1\n");
		return 2;
	}
	r.threads = (int)threads;
	r.spin = argv[3];
	if (load(&r, argv[1], &err)) {
		fprintf(stderr, "serve-onnxruntime: %s\n", err.message);
		return 3;
	}
	code = serve_run(&s);
	close_(&r, 0, NULL, NULL, &err);
	ORT(&r, RELEASE_MEMORY_INFO, fn_release)(r.memory_info);
	return code;
}
