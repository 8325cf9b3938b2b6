/*
 * Loads OpenBLAS and proves that it computes before anything may select it.
 *
 * Which of its kernels OpenBLAS uses is set here from our own CPU features:
 * OpenBLAS 0.3.21 (Debian 12) does not know CPUs that are newer than itself and
 * falls back to its SSE2 "Prescott" kernels on them. Measured on a Sapphire
 * Rapids core, sgemm: Prescott 32 GFLOP/s, Haswell 73, SkylakeX 101,
 * Cooperlake 147. An OPENBLAS_CORETYPE that is already set wins.
 */
#include "kernels/blas/blas.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/cpu.h"

#ifndef RG_WITH_OPENBLAS
#define RG_WITH_OPENBLAS 0
#endif

#define LIBRARY "libopenblas.so.0"

/* Values of CBLAS (netlib, CBLAS_LAYOUT and CBLAS_TRANSPOSE). */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void sgemm_fn(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
		      const float *b, int ldb, float beta, float *c, int ldc);
typedef void sgemv_fn(int layout, int trans, int m, int n, float alpha, const float *a, int lda, const float *x,
		      int incx, float beta, float *y, int incy);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sgemm_fn *sgemm;
static sgemv_fn *sgemv;
static bool available;
static char description[160];

void rg_blas_sgemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
		   int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
	/* Scaling by 0 keeps NaN in some versions of the matrix-vector routine. */
	if ((m == 1 || n == 1) && beta == 0)
		for (int64_t i = 0; i < m * n; i++)
			c[m == 1 ? i : i * ldc] = 0;
	/* A vector that is a column of a row-major matrix lies a stride apart. */
	if (m == 1)
		sgemv(ROW_MAJOR, trans_b ? NO_TRANS : TRANS, (int)(trans_b ? n : k), (int)(trans_b ? k : n), alpha, b,
		      (int)ldb, a, (int)(trans_a ? lda : 1), beta, c, 1);
	else if (n == 1)
		sgemv(ROW_MAJOR, trans_a ? TRANS : NO_TRANS, (int)(trans_a ? k : m), (int)(trans_a ? m : k), alpha, a,
		      (int)lda, b, (int)(trans_b ? 1 : ldb), beta, c, (int)ldc);
	else
		sgemm(ROW_MAJOR, trans_a ? TRANS : NO_TRANS, trans_b ? TRANS : NO_TRANS, (int)m, (int)n, (int)k, alpha,
		      a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}

int64_t rg_blas_grain(int64_t units, double unit_flops, int lanes)
{
	int64_t share = (units + lanes - 1) / lanes, worth = (int64_t)(1e6 / (unit_flops + 1)) + 1;

	return share > worth ? share : worth;
}

#if RG_WITH_OPENBLAS

static const char *core_type(uint32_t isa)
{
	if ((isa & RG_ISA_AVX512_ALL) == RG_ISA_AVX512_ALL)
		return isa & RG_ISA_AVX512_BF16 ? "Cooperlake" : "SkylakeX";
	if ((isa & RG_ISA_AVX2) && (isa & RG_ISA_FMA))
		return "Haswell"; /* "Zen" has the same kernels */
	return NULL;
}

/* Loads with the environment that we want it to see, and takes that back, so
 * that no child process inherits it. */
static void *load(void)
{
	bool had_core = getenv("OPENBLAS_CORETYPE") != NULL, had_threads = getenv("OPENBLAS_NUM_THREADS") != NULL;
	struct rg_cpu cpu;
	const char *core;
	void *lib;

	rg_cpu_detect("", &cpu);
	core = core_type(cpu.isa);
	if (!had_core && core)
		setenv("OPENBLAS_CORETYPE", core, 1);
	if (!had_threads) /* or it would start a thread a CPU while loading */
		setenv("OPENBLAS_NUM_THREADS", "1", 1);
	lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!had_core)
		unsetenv("OPENBLAS_CORETYPE");
	if (!had_threads)
		unsetenv("OPENBLAS_NUM_THREADS");
	return lib;
}

/* Small integers, so that sums are exact in float and any order of summation
 * gives the same result. */
static float pattern(int i, int salt)
{
	return (float)((i * 7 + salt * 13) % 11 - 5);
}

enum { CHECK_M = 19, CHECK_N = 37, CHECK_K = 45, CHECK_LD = 53 };

static bool check_one(int m, int n, int k, bool ta, bool tb, float beta)
{
	static float a[CHECK_LD * CHECK_LD], b[CHECK_LD * CHECK_LD], c[CHECK_M * CHECK_LD];

	for (int i = 0; i < CHECK_LD * CHECK_LD; i++) {
		a[i] = pattern(i, 1);
		b[i] = pattern(i, 2);
	}
	for (int i = 0; i < CHECK_M * CHECK_LD; i++)
		c[i] = beta == 0 && i / CHECK_LD < m && i % CHECK_LD < n ? NAN : pattern(i, 3);
	rg_blas_sgemm(ta, tb, m, n, k, 2.0f, a, CHECK_LD, b, CHECK_LD, beta, c, CHECK_LD);
	for (int i = 0; i < CHECK_M; i++) {
		for (int j = 0; j < CHECK_LD; j++) {
			float want = pattern(i * CHECK_LD + j, 3);

			if (i < m && j < n) {
				want *= beta;
				for (int l = 0; l < k; l++)
					want += 2.0f * a[ta ? l * CHECK_LD + i : i * CHECK_LD + l] *
						b[tb ? j * CHECK_LD + l : l * CHECK_LD + j];
			}
			if (!(c[i * CHECK_LD + j] == want))
				return false;
		}
	}
	return true;
}

static bool self_check(void)
{
	static const int sizes[][3] = { { CHECK_M, CHECK_N, CHECK_K }, { 1, CHECK_N, CHECK_K }, { CHECK_M, 1, CHECK_K },
					{ 17, 33, 1 }, { 3, 5, 7 } };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int t = 0; t < 8; t++)
			if (!check_one(sizes[i][0], sizes[i][1], sizes[i][2], t & 1, t & 2, t & 4 ? 1.0f : 0.0f))
				return false;
	return true;
}

static void init(void)
{
	void (*set_threads)(int);
	char *(*get_config)(void);
	char *(*get_core)(void);
	char version[48] = "";
	void *lib = load();

	if (!lib) {
		snprintf(description, sizeof(description), "OpenBLAS is not available: %.120s", dlerror());
		return;
	}
	/* POSIX lets a pointer from dlsym be used as a function. */
	*(void **)&sgemm = dlsym(lib, "cblas_sgemm");
	*(void **)&sgemv = dlsym(lib, "cblas_sgemv");
	*(void **)&set_threads = dlsym(lib, "openblas_set_num_threads");
	*(void **)&get_config = dlsym(lib, "openblas_get_config");
	*(void **)&get_core = dlsym(lib, "openblas_get_corename");
	if (!sgemm || !sgemv || !set_threads || !get_config || !get_core) {
		snprintf(description, sizeof(description), "OpenBLAS is not available: " LIBRARY " lacks a function");
		dlclose(lib);
		return;
	}
	set_threads(1);
	/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...": the version is the second word. */
	if (sscanf(get_config(), "OpenBLAS %40s", version) != 1)
		snprintf(version, sizeof(version), "unknown version");
	if (!self_check()) {
		snprintf(description, sizeof(description),
			 "OpenBLAS %s %s computes wrong products here and is not used", version, get_core());
		return;
	}
	snprintf(description, sizeof(description), "OpenBLAS %s %s", version, get_core());
	available = true;
}

#else

static void init(void)
{
	snprintf(description, sizeof(description), "OpenBLAS is not available: built with -Dopenblas=disabled");
}

#endif

bool rg_blas_available(void)
{
	pthread_once(&once, init);
	return available;
}

const char *rg_blas_describe(void)
{
	pthread_once(&once, init);
	return description;
}
