/*
 * The OpenBLAS side of scripts/bench-peers: one sgemm, with as many threads as
 * OPENBLAS_NUM_THREADS says, in the process's own way of choosing kernels.
 *
 *   about               version and configuration, core name, threads
 *   open A.npy B.npy    row-major A (m x k) and B (k x n) of float32
 *   compare DIR         greatest difference to DIR/out0.npy, over its greatest magnitude, and
 *                       the difference itself
 *   close
 *
 * A product of one row may go to sgemm or to sgemv: both are timed when it is
 * opened and the faster one is measured; about and open name it.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "models/npy.h"
#include "serve.h"

#define LIBRARY "libopenblas.so.0"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 }; /* of cblas.h */

struct openblas {
	void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
		      int lda, const float *b, int ldb, float beta, float *c, int ldc);
	void (*sgemv)(int order, int trans, int m, int n, float alpha, const float *a, int lda,
		      const float *x, int incx, float beta, float *y, int incy);
	char *(*config)(void);
	char *(*core)(void);
	int (*threads)(void);
	struct rg_tensor a, b, c;
	bool vector; /* by sgemv */
};

static int load(struct openblas *o, struct rg_error *err)
{
	void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return rg_error_set(err, -ENOENT, "OpenBLAS is not installed: %s", dlerror());
	*(void **)&o->sgemm = dlsym(lib, "cblas_sgemm");
	*(void **)&o->sgemv = dlsym(lib, "cblas_sgemv");
	*(void **)&o->config = dlsym(lib, "openblas_get_config");
	*(void **)&o->core = dlsym(lib, "openblas_get_corename");
	*(void **)&o->threads = dlsym(lib, "openblas_get_num_threads");
	if (!o->sgemm || !o->sgemv || !o->config || !o->core || !o->threads)
		return rg_error_set(err, -ENOENT, "%s is not OpenBLAS: a function is missing", LIBRARY);
	return 0;
}

static int call(void *ctx, struct rg_error *err)
{
	struct openblas *o = ctx;
	int m, k, n;

	if (!o->c.data)
		return rg_error_set(err, RG_EUSAGE, "nothing is open");
	m = (int)o->a.shape.dim[0];
	k = (int)o->a.shape.dim[1];
	n = (int)o->b.shape.dim[1];
	if (o->vector)
		o->sgemv(ROW_MAJOR, TRANS, k, n, 1, o->b.data, n, o->a.data, 1, 0, o->c.data, 1);
	else
		o->sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k, 1, o->a.data, k, o->b.data, n, 0, o->c.data,
			 n);
	return 0;
}

static int about(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct openblas *o = ctx;

	rg_str_printf(answer, "\t%s\t%s\t%d", o->config(), o->core(), o->threads());
	return 0;
}

static int close_(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct openblas *o = ctx;

	rg_free(o->a.data);
	rg_free(o->b.data);
	rg_free(o->c.data);
	o->a.data = o->b.data = o->c.data = NULL;
	o->vector = false;
	return 0;
}

static bool is_matrix(const struct rg_tensor *t)
{
	return t->dtype == RG_F32 && t->shape.rank == 2 && t->shape.dim[0] > 0 && t->shape.dim[1] > 0 &&
	       t->shape.dim[0] <= INT32_MAX && t->shape.dim[1] <= INT32_MAX;
}

/* The least of a few calls. */
static double least_ns(struct openblas *o)
{
	struct rg_error ignored = RG_ERROR_INIT;
	double least = INFINITY;

	for (int i = 0; i < 20; i++) {
		uint64_t start = rg_clock_now_ns();

		call(o, &ignored);
		least = fmin(least, (double)(rg_clock_now_ns() - start));
	}
	return least;
}

static int open_(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct openblas *o = ctx;
	int64_t dims[2];
	size_t bytes;
	int rc = close_(ctx, 0, NULL, NULL, err);

	if (!rc)
		rc = rg_npy_read(words[0], &o->a, err);
	if (!rc)
		rc = rg_npy_read(words[1], &o->b, err);
	if (rc)
		return rc;
	if (!is_matrix(&o->a) || !is_matrix(&o->b) || o->a.shape.dim[1] != o->b.shape.dim[0])
		return rg_error_set(err, RG_EUSAGE, "these are no two matrices that can be multiplied");
	dims[0] = o->a.shape.dim[0];
	dims[1] = o->b.shape.dim[1];
	o->c.dtype = RG_F32;
	o->c.shape = rg_shape_of(2, dims);
	bytes = (size_t)rg_tensor_bytes(RG_F32, &o->c.shape);
	o->c.data = rg_alloc_aligned(64, bytes);
	if (!o->c.data)
		return rg_error_nomem(err, bytes);
	memset(o->c.data, 0, bytes);
	if (dims[0] == 1) {
		double by_gemm = least_ns(o);

		o->vector = true;
		o->vector = least_ns(o) < by_gemm;
	}
	rg_str_printf(answer, "\t%s", o->vector ? "sgemv" : "sgemm");
	return 0;
}

static int compare(void *ctx, int n, char **words, struct rg_str *answer, struct rg_error *err)
{
	struct openblas *o = ctx;
	struct rg_tensor t = { 0 };
	char *path = rg_asprintf("%s/out0.npy", words[0]);
	double most = 0, difference = 0;
	int rc = path ? rg_npy_read(path, &t, err) : rg_error_nomem(err, strlen(words[0]));
	const float *ours = t.data, *theirs = o->c.data;

	if (!rc && (!theirs || t.dtype != RG_F32 || !rg_shape_equal(&t.shape, &o->c.shape)))
		rc = rg_error_set(err, RG_EUSAGE, "the outputs are of different shapes");
	for (int64_t i = 0; !rc && i < rg_shape_count(&t.shape); i++) {
		double d = fabs((double)ours[i] - (double)theirs[i]);

		if (!isnan(difference) && !(d <= difference))
			difference = d; /* NaN too, and then for good */
		most = fmax(most, fabs((double)theirs[i]));
	}
	if (!rc)
		rg_str_printf(answer, "\t%.3g\t%.3g", most > 0 ? difference / most : difference, difference);
	rg_free(t.data);
	rg_free(path);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct serve_verb verbs[] = {
	    {"about", 0, about},
	    {"open", 2, open_},
	    {"compare", 1, compare},
	    {"close", 0, close_},
	};
	static struct openblas o;
	struct serve s = {
	    .ctx = &o, .verbs = verbs, .n_verbs = sizeof(verbs) / sizeof(verbs[0]), .call = call};
	struct rg_error err = RG_ERROR_INIT;
	int code;

	if (load(&o, &err)) {
		fprintf(stderr, "serve-openblas: %s\n", err.message);
		return 3;
	}
	code = serve_run(&s);
	close_(&o, 0, NULL, NULL, &err);
	return code;
}
