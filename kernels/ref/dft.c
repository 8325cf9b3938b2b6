/*
 * DFT and STFT as their definition says: every bin is one sum, in double, over
 * a table of the roots of unity.
 */
#include <math.h>
#include <string.h>

#include "graph/signal.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

struct transform {
	int64_t n;
	bool inverse;
	double *cosine, *sine; /* of 2 pi i / n */
	double *re, *im;       /* the signal, n of each */
};

/* The table is exact at the quarters, and symmetric. */
static void fill_table(struct transform *t)
{
	const double step = 2 * M_PI / (double)t->n;

	for (int64_t i = 0; i < t->n; i++) {
		bool quarter = 4 * i % t->n == 0;
		int64_t q = 4 * i / t->n;

		t->cosine[i] = quarter ? (q == 0) - (q == 2) : cos(step * (double)i);
		t->sine[i] = quarter ? (q == 1) - (q == 3) : sin(step * (double)i);
	}
}

static void make_transform(struct transform *t, int64_t n, bool inverse, double *scratch)
{
	t->n = n;
	t->inverse = inverse;
	t->cosine = scratch;
	t->sine = scratch + n;
	t->re = scratch + 2 * n;
	t->im = scratch + 3 * n;
	fill_table(t);
}

static size_t scratch_of(int64_t n)
{
	return 4 * (size_t)n * sizeof(double);
}

/* Bin k: the sum of x[i] exp(-2 pi j i k / n), of the conjugate for the inverse. */
static void bin(const struct transform *t, int64_t k, double *re, double *im)
{
	double r = 0, m = 0;

	for (int64_t i = 0, at = 0; i < t->n; i++) {
		double c = t->cosine[at], s = t->inverse ? t->sine[at] : -t->sine[at];

		r += t->re[i] * c - t->im[i] * s;
		m += t->re[i] * s + t->im[i] * c;
		at += k;
		at -= at >= t->n ? t->n : 0;
	}
	*re = t->inverse ? r / (double)t->n : r;
	*im = t->inverse ? m / (double)t->n : m;
}

/* Up to n elements of a line, the rest zero. */
static void load(struct transform *t, const struct rg_tensor *x, int64_t first, int64_t stride, int64_t len,
		 int parts)
{
	int64_t n = len < t->n ? len : t->n;

	memset(t->re, 0, 2 * (size_t)t->n * sizeof(double));
	rg_ref_load(x, first, stride, n, t->re);
	if (parts == 2)
		rg_ref_load(x, first + 1, stride, n, t->im);
}

/* The half of the spectrum that a onesided inverse is given, completed by its
 * conjugate; bins that are their own conjugate are real. */
static void complete(struct transform *t, int64_t len)
{
	t->im[0] = 0;
	for (int64_t k = 1; 2 * k <= t->n; k++) {
		double re = k < len ? t->re[k] : 0, im = k < len ? t->im[k] : 0;

		t->re[k] = t->re[t->n - k] = re;
		t->im[t->n - k] = -im;
		t->im[k] = 2 * k == t->n ? 0 : im;
	}
}

static int dft(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct transform t;
	struct rg_dft d;
	int need = -1, rc = rg_dft_resolve(c->node, c->in, &d, &need, err);

	if (rc)
		return rc;
	if (!rg_shape_equal(&d.out, &c->out[0].shape))
		return rg_error_set(err, -EINVAL, "the arguments changed after the shapes were planned");
	if (rg_shape_count(&d.out) == 0)
		return 0;
	make_transform(&t, d.length, d.inverse, c->scratch);
	for (int64_t line = 0; line < d.outer * d.inner; line++) {
		int64_t o = line / d.inner, i = line % d.inner;

		load(&t, &c->in[0], (o * d.in_len * d.inner + i) * d.in_parts, d.inner * d.in_parts, d.in_len,
		     d.in_parts);
		if (d.onesided && d.inverse)
			complete(&t, d.in_len);
		for (int64_t k = 0; k < d.out_len; k++) {
			int64_t at = ((o * d.out_len + k) * d.inner + i) * d.out_parts;
			double re, im;

			bin(&t, k, &re, &im);
			rg_ref_set(&c->out[0], at, re);
			if (d.out_parts == 2)
				rg_ref_set(&c->out[0], at + 1, im);
		}
	}
	return 0;
}

static size_t dft_scratch(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_dft d;
	int need;

	/* The output says the length: values of inputs may come later. */
	if (rg_shape_count(&c->out[0].shape) == 0 || rg_dft_resolve(c->node, c->in, &d, &need, &err))
		return 0;
	return scratch_of(d.length);
}

static int stft(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool windowed = c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED;
	struct transform t;
	struct rg_stft d;
	int need = -1, rc = rg_stft_resolve(c->node, c->in, &d, &need, err);

	if (rc)
		return rc;
	if (!rg_shape_equal(&d.out, &c->out[0].shape))
		return rg_error_set(err, -EINVAL, "the arguments changed after the shapes were planned");
	if (rg_shape_count(&d.out) == 0)
		return 0;
	make_transform(&t, d.length, false, c->scratch);
	for (int64_t frame = 0; frame < d.batch * d.frames; frame++) {
		int64_t first = frame / d.frames * d.signal + frame % d.frames * d.step;

		load(&t, &c->in[0], first * d.parts, d.parts, d.length, d.parts);
		for (int64_t i = 0; windowed && i < d.length; i++) {
			double w = rg_ref_get(&c->in[2], i);

			t.re[i] *= w;
			t.im[i] *= w;
		}
		for (int64_t k = 0; k < d.bins; k++) {
			double re, im;

			bin(&t, k, &re, &im);
			rg_ref_set(&c->out[0], (frame * d.bins + k) * 2, re);
			rg_ref_set(&c->out[0], (frame * d.bins + k) * 2 + 1, im);
		}
	}
	return 0;
}

static size_t stft_scratch(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_stft d;
	int need;

	if (rg_shape_count(&c->out[0].shape) == 0 || rg_stft_resolve(c->node, c->in, &d, &need, &err))
		return 0;
	return scratch_of(d.length);
}

static bool supports(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "DFT", .domain = "", .name = "ref", .supports = supports, .scratch_bytes = dft_scratch,
	  .run = dft },
	{ .op_type = "STFT", .domain = "", .name = "ref", .supports = supports, .scratch_bytes = stft_scratch,
	  .run = stft },
};
RG_KERNEL_TABLE(rg_kernels_ref_dft, kernels);
