/* Resolves DFT and STFT: axis, lengths, real and complex. */
#include "graph/signal.h"

#include <inttypes.h>
#include <string.h>

#include "graph/op-args.h"

/* Products of an index and a bin must fit. */
#define LENGTH_MAX INT32_MAX

static bool present(const struct rg_node *n, const struct rg_tensor *in, int i)
{
	return i < n->n_in && in[i].dtype != RG_UNDEFINED;
}

static int number(const struct rg_node *n, const struct rg_tensor *in, int i, const char *what, int64_t *out,
		  int *need_value, struct rg_error *err)
{
	int rc;

	if (in[i].dtype != RG_I32 && in[i].dtype != RG_I64)
		return rg_error_set(err, -EINVAL, "%s: input %d, the %s, must be int32 or int64, not %s",
				    n->op_type, i, what, rg_dtype_name(in[i].dtype));
	rc = rg_args_scalar(&in[i], out);
	if (rc == RG_ENEED_VALUE) {
		*need_value = i;
		return rg_error_set(err, rc, "%s: the output shape depends on input %d, the %s", n->op_type,
				    i, what);
	}
	if (rc)
		return rg_error_set(err, -EINVAL, "%s: input %d, the %s, must be one whole number",
				    n->op_type, i, what);
	return 0;
}

static int positive(const struct rg_node *n, const struct rg_tensor *in, int i, const char *what, int64_t *out,
		    int *need_value, struct rg_error *err)
{
	int rc = number(n, in, i, what, out, need_value, err);

	if (rc == 0 && (*out < 1 || *out > LENGTH_MAX))
		return rg_error_set(err, -EINVAL, "%s: the %s is %" PRId64, n->op_type, what, *out);
	return rc;
}

/* The last dimension tells real from complex. */
static int parts(const struct rg_node *n, const struct rg_shape *s, int *out, struct rg_error *err)
{
	int64_t last = s->rank > 0 ? s->dim[s->rank - 1] : 0;

	if (last != 1 && last != 2)
		return rg_error_set(err, -EINVAL, "%s: the last dimension of the signal must be 1 (real) or 2 "
				    "(complex)", n->op_type);
	*out = (int)last;
	return 0;
}

static int dft_axis(const struct rg_node *n, const struct rg_tensor *in, int *axis, int *need_value,
		    struct rg_error *err)
{
	int64_t v = n->version < 20 ? rg_node_int(n, "axis", 1) : -2;
	int rank = in[0].shape.rank, rc;

	if (n->version >= 20 && present(n, in, 2) && (rc = number(n, in, 2, "axis", &v, need_value, err)))
		return rc;
	*axis = rg_args_axis(v, rank);
	if (*axis < 0 || *axis == rank - 1)
		return rg_error_set(err, -EINVAL,
				    "%s: axis %" PRId64 " is no signal axis of a tensor of rank %d",
				    n->op_type, v, rank);
	return 0;
}

int rg_dft_resolve(const struct rg_node *n, const struct rg_tensor *in, struct rg_dft *d, int *need_value,
		   struct rg_error *err)
{
	const struct rg_shape *s = &in[0].shape;
	int rc;

	memset(d, 0, sizeof(*d));
	if ((rc = parts(n, s, &d->in_parts, err)) || (rc = dft_axis(n, in, &d->axis, need_value, err)))
		return rc;
	d->inverse = rg_node_int(n, "inverse", 0) != 0;
	d->onesided = rg_node_int(n, "onesided", 0) != 0;
	if (d->onesided && d->in_parts != (d->inverse ? 2 : 1))
		return rg_error_set(err, -EINVAL, "%s: a onesided %s takes a %s signal", n->op_type,
				    d->inverse ? "inverse" : "transform", d->inverse ? "complex" : "real");
	d->in_len = s->dim[d->axis];
	d->length = d->in_len;
	if (d->onesided && d->inverse && __builtin_mul_overflow(d->in_len - 1, 2, &d->length))
		d->length = INT64_MAX;
	if (present(n, in, 1) && (rc = positive(n, in, 1, "dft_length", &d->length, need_value, err)))
		return rc;
	if (d->length < 1 || d->length > LENGTH_MAX)
		return rg_error_set(err, -EINVAL, "%s: a transform over %" PRId64 " elements is not possible",
				    n->op_type, d->length);
	d->out_len = d->onesided && !d->inverse ? d->length / 2 + 1 : d->length;
	d->out_parts = d->onesided && d->inverse ? 1 : 2;
	d->outer = rg_shape_count_range(s, 0, d->axis);
	d->inner = rg_shape_count_range(s, d->axis + 1, s->rank - 1);
	d->out = *s;
	d->out.dim[d->axis] = d->out_len;
	d->out.dim[s->rank - 1] = d->out_parts;
	return 0;
}

int rg_stft_resolve(const struct rg_node *n, const struct rg_tensor *in, struct rg_stft *d, int *need_value,
		    struct rg_error *err)
{
	const struct rg_shape *s = &in[0].shape;
	bool onesided = rg_node_int(n, "onesided", 1) != 0;
	int rc;

	memset(d, 0, sizeof(*d));
	if (s->rank != 3)
		return rg_error_set(err, -EINVAL,
				    "%s: the signal must be batch x length x 1 or 2, its rank is %d",
				    n->op_type, s->rank);
	if ((rc = parts(n, s, &d->parts, err)))
		return rc;
	if (onesided && d->parts == 2)
		return rg_error_set(err, -EINVAL, "%s: a onesided transform takes a real signal", n->op_type);
	d->batch = s->dim[0];
	d->signal = d->length = s->dim[1];
	if ((rc = positive(n, in, 1, "frame_step", &d->step, need_value, err)))
		return rc;
	if (present(n, in, 2)) {
		if (in[2].shape.rank != 1 || in[2].dtype != in[0].dtype)
			return rg_error_set(err, -EINVAL, "%s: the window must be a list of the signal's type",
					    n->op_type);
		d->length = in[2].shape.dim[0];
	}
	if (present(n, in, 3) && (rc = positive(n, in, 3, "frame_length", &d->length, need_value, err)))
		return rc;
	if (present(n, in, 2) && in[2].shape.dim[0] != d->length)
		return rg_error_set(err, -EINVAL, "%s: a window of %" PRId64 " for frames of %" PRId64,
				    n->op_type, in[2].shape.dim[0], d->length);
	if (d->length < 1 || d->length > d->signal || d->length > LENGTH_MAX)
		return rg_error_set(err, -EINVAL, "%s: frames of %" PRId64 " in a signal of %" PRId64, n->op_type,
				    d->length, d->signal);
	d->frames = 1 + (d->signal - d->length) / d->step;
	d->bins = onesided ? d->length / 2 + 1 : d->length;
	d->out = (struct rg_shape){ .rank = 4, .dim = { d->batch, d->frames, d->bins, 2 } };
	return 0;
}
