/* Fourier transforms, windows and the mel filter bank: versions, shapes, costs. */
#include <inttypes.h>

#include "graph/op-args.h"
#include "graph/op-families.h"
#include "graph/op-types.h"
#include "graph/signal.h"

enum { MAX_IN = 4 };

static void as_tensors(const struct rg_infer *c, struct rg_tensor *t)
{
	for (int i = 0; i < MAX_IN; i++) {
		const struct rg_value *v = rg_infer_in(c, i);

		t[i] = (struct rg_tensor){ .dtype = RG_UNDEFINED };
		if (v)
			t[i] = (struct rg_tensor){ v->dtype, v->shape, (void *)v->data };
	}
}

/*
 * Useful operations of transforms of n points: 5 n log2 n for complex ones, half
 * of it where input or output is real, as benchmarks of FFTs count (Frigo and
 * Johnson, benchFFT), whatever the kernel does. The logarithm is rounded up.
 */
static int64_t fft_flops(int64_t transforms, int64_t n, bool real)
{
	int64_t log2n = n > 1 ? 64 - __builtin_clzll((unsigned long long)n - 1) : 0;
	int64_t one = rg_cost_mul(rg_cost_mul(5, n), log2n);

	return rg_cost_mul(transforms, one >= 0 && real ? one / 2 : one);
}

static int infer_dft(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor in[MAX_IN];
	struct rg_dft d;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	as_tensors(c, in);
	if (rc || (rc = rg_dft_resolve(c->node, in, &d, &c->need_value, err)))
		return rc;
	rg_infer_out(c, 0, in[0].dtype, &d.out);
	return 0;
}

static void cost_dft(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_dft d;
	int need;

	if (rg_dft_resolve(c->node, c->in, &d, &need, &err))
		return;
	out->flops = fft_flops(rg_cost_mul(d.outer, d.inner), d.length, d.in_parts == 1 || d.out_parts == 1);
	if (d.inverse) /* the division by n, as one product */
		out->flops = rg_cost_add(out->flops, rg_shape_count(&d.out));
	out->iops = out->sfu = 0;
}

static int infer_stft(struct rg_infer *c, struct rg_error *err)
{
	struct rg_tensor in[MAX_IN];
	struct rg_stft d;
	int rc = rg_infer_type(c, 0, RG_SET_FLOAT, err);

	as_tensors(c, in);
	if (rc)
		return rc;
	if (!rg_infer_in(c, 1))
		return rg_infer_fail(c, err, "input 1, the frame_step, is missing");
	if ((rc = rg_stft_resolve(c->node, in, &d, &c->need_value, err)))
		return rc;
	rg_infer_out(c, 0, in[0].dtype, &d.out);
	return 0;
}

static void cost_stft(const struct rg_cost_in *c, struct rg_cost *out)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_stft d;
	int64_t frames;
	int need;

	if (rg_stft_resolve(c->node, c->in, &d, &need, &err))
		return;
	frames = rg_cost_mul(d.batch, d.frames);
	out->flops = fft_flops(frames, d.length, d.parts == 1);
	if (c->node->n_in > 2 && c->in[2].dtype != RG_UNDEFINED)
		out->flops = rg_cost_add(out->flops, rg_cost_mul(frames, rg_cost_mul(d.length, d.parts)));
	out->iops = out->sfu = 0;
}

/* ---- made from numbers ---- */

static int output_type(struct rg_infer *c, enum rg_dtype *out, struct rg_error *err)
{
	int64_t t = rg_node_int(c->node, "output_datatype", RG_F32);

	if (t < 0 || t >= RG_DTYPE_COUNT || !rg_in_set((enum rg_dtype)t, RG_SET_NUM))
		return rg_infer_fail(c, err, "output_datatype %" PRId64 " is no numeric type", t);
	*out = (enum rg_dtype)t;
	return 0;
}

/* A size that an input gives. */
static int size_of(struct rg_infer *c, int i, int64_t *out, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);
	int64_t n;
	int rc;

	if (!v || rg_shape_count(&v->shape) != 1)
		return rg_infer_fail(c, err, "input %d must be one number", i);
	rc = rg_infer_ints(c, i, &n, 1, err);
	if (rc < 0)
		return rc;
	if (n < 0 || n > INT32_MAX)
		return rg_infer_fail(c, err, "input %d ('%s') is %" PRId64, i, v->name, n);
	*out = n;
	return 0;
}

static int infer_window(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = { .rank = 1 };
	enum rg_dtype t;
	int rc = output_type(c, &t, err);

	if (rc || (rc = size_of(c, 0, &s.dim[0], err)))
		return rc;
	rg_infer_out(c, 0, t, &s);
	return 0;
}

static void cost_window(const struct rg_cost_in *c, struct rg_cost *out, int flops, int cosines)
{
	int64_t n = rg_shape_count(&c->out[0].shape);

	out->flops = rg_cost_mul(n, flops);
	out->sfu = rg_cost_mul(n, cosines);
	out->iops = 0;
}

/* a - b * cos(i * step) */
static void cost_two_terms(const struct rg_cost_in *c, struct rg_cost *out)
{
	cost_window(c, out, 3, 1);
}

/* a - b * cos(i * step) + c * cos(i * 2 step) */
static void cost_three_terms(const struct rg_cost_in *c, struct rg_cost *out)
{
	cost_window(c, out, 6, 2);
}

static int infer_mel(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = { .rank = 2 };
	int64_t length = 0;
	enum rg_dtype t;
	int rc = output_type(c, &t, err);

	if (rc || (rc = size_of(c, 0, &s.dim[1], err)) || (rc = size_of(c, 1, &length, err)) ||
	    (rc = rg_infer_type(c, 2, RG_BIT(RG_I32) | RG_BIT(RG_I64), err)) ||
	    (rc = rg_infer_type(c, 3, RG_SET_FLOAT, err)) || (rc = rg_infer_type(c, 4, RG_SET_FLOAT, err)))
		return rc;
	for (int i = 2; i < 5; i++)
		if ((rc = rg_infer_scalar(c, i, err)))
			return rc;
	s.dim[0] = length / 2 + 1;
	rg_infer_out(c, 0, t, &s);
	return 0;
}

const struct rg_op rg_ops_signal[] = {
	{ "", "BlackmanWindow", RG_KIND_OTHER, 0, 1, 1, 1, 1, { 17 }, 17, 17, infer_window, cost_three_terms },
	{ "", "DFT", RG_KIND_OTHER, 0, 1, 3, 1, 1, { 17, 20 }, 17, 20, infer_dft, cost_dft },
	{ "", "HammingWindow", RG_KIND_OTHER, 0, 1, 1, 1, 1, { 17 }, 17, 17, infer_window, cost_two_terms },
	{ "", "HannWindow", RG_KIND_OTHER, 0, 1, 1, 1, 1, { 17 }, 17, 17, infer_window, cost_two_terms },
	{ "", "MelWeightMatrix", RG_KIND_OTHER, 0, 5, 5, 1, 1, { 17 }, 17, 17, infer_mel, NULL },
	{ "", "STFT", RG_KIND_OTHER, 0, 2, 4, 1, 1, { 17 }, 17, 17, infer_stft, cost_stft },
};
RG_OP_FAMILY_END(signal);
