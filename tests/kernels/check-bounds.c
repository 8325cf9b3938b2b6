/*
 * How far a variant may be from the reference, element by element, and whether
 * it is. See check.h.
 *
 * The reference computes in double and rounds once, so its own error is half a
 * unit in the last place, which is in every bound below.
 */
#include "check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT 0x1p-24 /* of float: half a unit in the last place of 1 */

int ck_reference(struct nn_case *t, void **out, struct rg_error *err)
{
	const struct rg_kernel *k = rg_kernel_find(t->node.domain, t->node.op_type, "ref");
	struct rg_call c = { .node = &t->node, .in = t->in, .out = t->out };
	size_t scratch;
	int rc;

	if (!k || (k->supports && !k->supports(&c)))
		return rg_error_set(err, -ENOTSUP, "the reference does not support the call");
	for (int o = 0; o < t->node.n_out; o++) {
		size_t bytes = (size_t)rg_tensor_bytes(t->out[o].dtype, &t->out[o].shape);

		out[o] = aligned_alloc(64, (bytes + 64) / 64 * 64);
		t->out[o].data = out[o];
		if (!out[o])
			return rg_error_nomem(err, bytes);
	}
	scratch = k->scratch_bytes ? k->scratch_bytes(&c, 1) : 0;
	if (scratch)
		c.scratch = aligned_alloc(64, (scratch + 63) / 64 * 64);
	rc = k->run(&c, &rg_par_serial, err);
	free(c.scratch);
	return rc;
}

/* The activation becomes Relu, which leaves sums of absolute values as they are.
 * Returns what it was; NULL: there is none. */
static const char *set_activation(struct nn_case *t, const char *to)
{
	const char *was = NULL;

	for (int a = 0; a < t->node.n_attrs; a++) {
		if (strcmp(t->attrs[a].name, "activation"))
			continue;
		was = t->attrs[a].s;
		t->attrs[a].s = to;
		t->attrs[a].s_len = strlen(to);
	}
	return was;
}

/* sum|a||b| for every element of output o: the reference on absolute values. */
static int magnitudes(struct nn_case *t, int o, double *out, struct rg_error *err)
{
	void *saved[NN_MAX_IO] = { 0 }, *made[NN_MAX_IO] = { 0 };
	struct rg_tensor outputs[NN_MAX_IO];
	float factors[NN_MAX_ATTRS];
	int rc;

	memcpy(outputs, t->out, sizeof(outputs));
	for (int i = 0; i < t->node.n_in; i++) {
		int64_t n = rg_shape_count(&t->in[i].shape);
		float *x = t->in[i].data;

		if (t->in[i].dtype != RG_F32)
			continue;
		saved[i] = malloc((size_t)n * sizeof(float) + 1);
		if (!saved[i])
			abort();
		memcpy(saved[i], x, (size_t)n * sizeof(float));
		for (int64_t k = 0; k < n; k++)
			x[k] = fabsf(x[k]);
	}
	for (int a = 0; a < t->node.n_attrs; a++) {
		factors[a] = t->attrs[a].f;
		t->attrs[a].f = fabsf(factors[a]);
	}
	rc = ck_reference(t, made, err);
	for (int64_t i = 0; !rc && i < rg_shape_count(&t->out[o].shape); i++)
		out[i] = (double)((const float *)made[o])[i];
	for (int i = 0; i < t->node.n_in; i++)
		if (saved[i])
			memcpy(t->in[i].data, saved[i], (size_t)rg_tensor_bytes(RG_F32, &t->in[i].shape));
	for (int a = 0; a < t->node.n_attrs; a++)
		t->attrs[a].f = factors[a];
	for (int i = 0; i < NN_MAX_IO; i++) {
		free(saved[i]);
		free(made[i]);
	}
	memcpy(t->out, outputs, sizeof(outputs));
	return rc;
}

static bool sum_bound(const struct ck_family *f, struct nn_case *t, int o, const float *want, bool whole, double *out,
		      char *why, size_t why_size)
{
	struct rg_error err = RG_ERROR_INIT;
	double count = f->terms ? f->terms(t) : 1, terms = count + f->ulps;
	const char *activation = set_activation(t, "Relu");
	int rc = magnitudes(t, o, out, &err);

	if (activation)
		set_activation(t, activation);
	if (rc) {
		snprintf(why, why_size, "the reference on absolute values: %s", err.message);
		return false;
	}
	for (int64_t i = 0; i < rg_shape_count(&t->out[o].shape); i++) {
		double m = out[i];

		/* Partial sums may have left the range although the whole is in it, all the more
		 * before a factor (0.125 and more in the families) was applied. */
		if (t->overflows && !((f->mean ? count * m : m) < (double)FLT_MAX / 16)) {
			out[i] = NAN;
			continue;
		}
		if (whole && m < 0x1p24) {
			out[i] = 0;
			continue;
		}
		if (!isfinite(m))
			m = 0;
		/* each product may lose its tail below the smallest denormal number */
		out[i] = f->floor + terms * UNIT * m + (activation ? 8 : 1) * UNIT * fabs((double)want[i]) +
			 (terms + 1) * 0x1p-149;
	}
	return true;
}

/* Whether an input holds what is not finite, or so large that sums of a few leave the range. */
static bool holds_extremes(const struct nn_case *t)
{
	for (int i = 0; i < t->node.n_in; i++) {
		const float *x = t->in[i].data;

		for (int64_t k = 0; t->in[i].dtype == RG_F32 && k < rg_shape_count(&t->in[i].shape); k++)
			if (!(fabsf(x[k]) < 1e36f))
				return true;
	}
	return false;
}

bool ck_tolerance(const struct ck_family *f, const struct rg_kernel *k, struct nn_case *t, int o,
		  const struct rg_tensor *want, double *out, char *why, size_t why_size)
{
	const struct ck_looser *looser = ck_looser_find(k);
	int64_t n = rg_shape_count(&want->shape);
	const float *w = want->data;

	for (int64_t i = 0; i < n; i++)
		out[i] = 0;
	if (want->dtype != RG_F32 || f->measure == CK_EXACT)
		return true;
	switch (f->measure) {
	case CK_ULPS:
		for (int64_t i = 0; i < n; i++) {
			float a = fabsf(w[i]);

			if (isfinite(a) && a < FLT_MAX)
				out[i] = f->floor + f->ulps * ((double)nextafterf(a, INFINITY) - (double)a);
		}
		break;
	case CK_SUM:
		if (!sum_bound(f, t, o, w, t->whole && f->whole_is_exact && !looser, out, why, why_size))
			return false;
		break;
	default:
		f->tolerance(t, w, out);
	}
	for (int64_t i = 0; looser && i < n; i++)
		out[i] *= looser->factor;
	/* Such a value spoils outputs that do not depend on it: those are not compared. Those that
	 * do may be infinite or not a number. */
	if (looser && looser->spreads && holds_extremes(t))
		for (int64_t i = 0; i < n; i++)
			out[i] = isfinite(w[i]) ? NAN : INFINITY;
	return true;
}

static bool compare_floats(const float *want, const float *got, int64_t n, const double *tolerance, double *worst,
			   char *why, size_t why_size)
{
	for (int64_t i = 0; i < n; i++) {
		double w = (double)want[i], g = (double)got[i], off;

		if (isnan(tolerance[i]) || w == g || (isnan(w) && isnan(g)) ||
		    (isinf(tolerance[i]) && !isfinite(w) && !isfinite(g)))
			continue;
		off = fabs(w - g);
		/* one rounds to the largest number, the other beyond it */
		if (isinf(g) && isfinite(w) && fabs(w) + tolerance[i] >= (double)FLT_MAX && (g > 0) == (w > 0))
			continue;
		if (isfinite(off) && off <= tolerance[i]) {
			if (off > *worst * tolerance[i])
				*worst = off / tolerance[i];
			continue;
		}
		snprintf(why, why_size, "element %lld of %lld is %.9g, the reference has %.9g; off by %.3g, allowed %.3g",
			 (long long)i, (long long)n, g, w, off, tolerance[i]);
		return false;
	}
	return true;
}

bool ck_compare(const struct ck_family *f, const struct rg_tensor *want, const struct rg_tensor *got,
		const double *tolerance, double *worst, char *why, size_t why_size)
{
	const unsigned char *w = want->data, *g = got->data;
	size_t bytes = (size_t)rg_tensor_bytes(want->dtype, &want->shape), size;

	if (want->dtype == RG_F32 && f->measure != CK_EXACT)
		return compare_floats(want->data, got->data, rg_shape_count(&want->shape), tolerance, worst, why,
				      why_size);
	if (bytes == 0 || memcmp(w, g, bytes) == 0)
		return true;
	size = rg_dtype_bytes(want->dtype) ? rg_dtype_bytes(want->dtype) : 1;
	for (size_t i = 0; i < bytes; i += size) {
		char hex[2][40] = { "", "" };

		if (memcmp(w + i, g + i, size) == 0)
			continue;
		for (size_t b = 0; b < size && b < 16; b++) {
			snprintf(hex[0] + 2 * b, 3, "%02x", g[i + b]);
			snprintf(hex[1] + 2 * b, 3, "%02x", w[i + b]);
		}
		snprintf(why, why_size, "element %zu of %zu has the bytes %s, the reference %s", i / size, bytes / size,
			 hex[0], hex[1]);
		return false;
	}
	return true;
}
