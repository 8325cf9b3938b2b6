/* See math-case.h. */
#include "math-case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/narrow.h"

enum { CANARY_BYTES = 64, CANARY = 0xa5 };

static void *keep(struct math_case *t, size_t size_bytes)
{
	unsigned char *p = rg_alloc_aligned(64, size_bytes + 2 * CANARY_BYTES);

	assert_non_null(p);
	assert_true(t->n_blocks < 4 * MC_MAX_IO);
	t->blocks[t->n_blocks++] = p;
	memset(p, CANARY, size_bytes + 2 * CANARY_BYTES);
	return p + CANARY_BYTES;
}

static void check_canary(const struct math_case *t, const void *data, size_t size_bytes)
{
	const unsigned char *p = data;

	for (int i = 1; i <= CANARY_BYTES; i++)
		if (p[-i] != CANARY || p[size_bytes + (size_t)i - 1] != CANARY)
			fail_msg("%s wrote outside its memory", t->what);
}

static void say(struct math_case *t, const char *fmt, ...)
{
	size_t len = strlen(t->what);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->what + len, sizeof(t->what) - len, fmt, ap);
	va_end(ap);
}

void mc_start(struct math_case *t, const char *op_type, int version)
{
	mc_start_in(t, "", op_type, version);
}

void mc_start_in(struct math_case *t, const char *domain, const char *op_type, int version)
{
	memset(t, 0, sizeof(*t));
	t->node.op = rg_op_find(domain, op_type);
	if (!t->node.op)
		fail_msg("%s is not in the operator table", op_type);
	if (rg_op_version(t->node.op, version) != version)
		fail_msg("%s has no version %d", op_type, version);
	t->node.op_type = t->node.name = op_type;
	t->node.domain = domain;
	t->node.version = version;
	t->node.attrs = t->attrs;
	say(t, "%s-%d", op_type, version);
}

static struct rg_attr *attr(struct math_case *t, const char *name, enum rg_attr_type type)
{
	struct rg_attr *a = &t->attrs[t->node.n_attrs++];

	assert_true(t->node.n_attrs <= MC_MAX_ATTRS);
	a->name = name;
	a->type = type;
	return a;
}

void mc_int(struct math_case *t, const char *name, int64_t v)
{
	attr(t, name, RG_ATTR_INT)->i = v;
	say(t, " %s=%lld", name, (long long)v);
}

void mc_float(struct math_case *t, const char *name, float v)
{
	attr(t, name, RG_ATTR_FLOAT)->f = v;
	say(t, " %s=%g", name, (double)v);
}

void mc_string(struct math_case *t, const char *name, const char *v)
{
	struct rg_attr *a = attr(t, name, RG_ATTR_STRING);

	a->s = v;
	a->s_len = strlen(v);
	say(t, " %s=%s", name, v);
}

void mc_ints(struct math_case *t, const char *name, int n, const int64_t *v)
{
	int64_t *list = t->ints[t->node.n_attrs];
	struct rg_attr *a = attr(t, name, RG_ATTR_INTS);

	assert_true(n <= MC_MAX_LIST);
	for (int i = 0; i < n; i++)
		list[i] = v[i];
	a->ints = list;
	a->count = n;
	say(t, " %s", name);
}

void mc_floats(struct math_case *t, const char *name, int n, const float *v)
{
	float *list = t->floats[t->node.n_attrs];
	struct rg_attr *a = attr(t, name, RG_ATTR_FLOATS);

	assert_true(n <= MC_MAX_LIST);
	for (int i = 0; i < n; i++)
		list[i] = v[i];
	a->floats = list;
	a->count = n;
	say(t, " %s", name);
}

void mc_tensor(struct math_case *t, const char *name, enum rg_dtype dtype, int64_t n, const double *v)
{
	struct rg_tensor x = { dtype, { .rank = 1, .dim = { n } }, NULL };

	x.data = keep(t, (size_t)rg_tensor_bytes(dtype, &x.shape));
	for (int64_t i = 0; i < n; i++)
		mc_set(&x, i, v[i]);
	attr(t, name, RG_ATTR_TENSOR)->t = x;
	say(t, " %s", name);
}

void mc_strings(struct math_case *t, const char *name, int n, const char *const *v)
{
	struct rg_attr *a = attr(t, name, RG_ATTR_STRINGS);

	a->strings = v;
	a->count = n;
	say(t, " %s", name);
}

int mc_in(struct math_case *t, enum rg_dtype dtype, int rank, const int64_t *dims)
{
	struct rg_tensor *x = &t->in[t->node.n_in++];
	char text[160];
	size_t bytes;

	assert_true(t->node.n_in <= MC_MAX_IO);
	x->dtype = dtype;
	x->shape = rg_shape_of(rank, dims);
	bytes = (size_t)rg_tensor_bytes(dtype, &x->shape);
	x->data = keep(t, bytes);
	memset(x->data, 0, bytes);
	say(t, " %s[%s]", rg_dtype_name(dtype), rg_shape_text(text, &x->shape));
	return t->node.n_in - 1;
}

void mc_in_list(struct math_case *t, enum rg_dtype dtype, int rank, const int64_t *dims, const double *v)
{
	const struct rg_tensor *x = &t->in[mc_in(t, dtype, rank, dims)];

	for (int64_t i = 0; i < rg_shape_count(&x->shape); i++)
		mc_set(x, i, v[i]);
}

void mc_in_random(struct math_case *t, enum rg_dtype dtype, int rank, const int64_t *dims, double lo,
		  double hi)
{
	int k = mc_in(t, dtype, rank, dims);
	uint64_t stream = rg_rng_stream((uint64_t)k + 1, t->what);

	for (int64_t i = 0; i < rg_shape_count(&t->in[k].shape); i++) {
		double v = lo + (hi - lo) * (double)rg_rng_unit(stream, (uint64_t)i);

		mc_set(&t->in[k], i, rg_dtype_is_float(dtype) ? v : floor(v));
	}
}

void mc_special(struct math_case *t, int input)
{
	static const double special[] = {NAN,  INFINITY, -INFINITY, 0.0,   -0.0,
					 3e38, -3e38,    1e-30,     1e-41, -1e-41};

	for (int64_t i = 1; i < rg_shape_count(&t->in[input].shape); i += 3)
		mc_set(&t->in[input], i, special[(i / 3 + input * 3) % 10]);
}

void mc_absent(struct math_case *t)
{
	t->node.n_in++;
}

static int infer(struct math_case *t)
{
	struct rg_value values[MC_MAX_IO];
	const struct rg_value *in[MC_MAX_IO];
	struct rg_infer c = { .node = &t->node, .in = in, .out = t->out, .need_value = -1 };
	static int slots[MC_MAX_IO];

	memset(values, 0, sizeof(values));
	for (int i = 0; i < t->node.n_in; i++) {
		values[i].name = "x";
		values[i].shaped = true;
		values[i].dtype = t->in[i].dtype;
		values[i].shape = t->in[i].shape;
		values[i].data = t->variable[i] ? NULL : t->in[i].data;
		values[i].origin = t->variable[i] ? RG_CONST_NONE : RG_CONST_INITIALIZER;
		in[i] = t->in[i].dtype == RG_UNDEFINED ? NULL : &values[i];
	}
	t->node.in = t->node.out = slots;
	return t->node.op->infer(&c, &t->err);
}

/* Runs over outputs that hold `fill`. */
static int run_over(struct math_case *t, const struct rg_kernel *k, int fill, struct rg_tensor *out)
{
	struct rg_call c = { .node = &t->node, .in = t->in, .out = out };
	size_t bytes[MC_MAX_IO] = { 0 }, scratch = 0;
	int rc;

	for (int i = 0; i < t->node.n_out; i++) {
		out[i] = t->out[i];
		bytes[i] = (size_t)rg_tensor_bytes(out[i].dtype, &out[i].shape);
		out[i].data = keep(t, bytes[i]);
		memset(out[i].data, fill, bytes[i]);
	}
	if (k->scratch_bytes && (scratch = k->scratch_bytes(&c, 1)) > 0)
		c.scratch = keep(t, scratch);
	rc = k->run(&c, &rg_par_serial, &t->err);
	for (int i = 0; i < t->node.n_out; i++)
		check_canary(t, out[i].data, bytes[i]);
	if (scratch)
		check_canary(t, c.scratch, scratch);
	return rc;
}

int mc_run(struct math_case *t, int n_out)
{
	const struct rg_kernel *k = rg_kernel_find(t->node.domain, t->node.op_type, "ref");
	struct rg_call c = { .node = &t->node, .in = t->in, .out = t->out };
	struct rg_tensor again[MC_MAX_IO];
	int rc;

	assert_non_null(k);
	t->node.n_out = n_out;
	rc = infer(t);
	if (rc)
		return rc;
	if (k->supports && !k->supports(&c))
		return -ENOSYS;
	rc = run_over(t, k, 0xff, again);
	if (rc)
		return rc;
	rc = run_over(t, k, 0x11, t->out);
	for (int i = 0; i < n_out; i++)
		if (memcmp(again[i].data, t->out[i].data,
			   (size_t)rg_tensor_bytes(t->out[i].dtype, &t->out[i].shape)))
			fail_msg("%s: output %d depends on what was in its memory", t->what, i);
	return rc;
}

void mc_must_run(struct math_case *t, int n_out)
{
	int rc = mc_run(t, n_out);

	if (rc)
		fail_msg("%s: %d %s", t->what, rc, t->err.message);
}

void mc_free(struct math_case *t)
{
	while (t->n_blocks)
		rg_free(t->blocks[--t->n_blocks]);
}

double mc_get(const struct rg_tensor *t, int64_t i)
{
	switch (t->dtype) {
	case RG_F32:
		return (double)((const float *)t->data)[i];
	case RG_F64:
		return ((const double *)t->data)[i];
	case RG_F16:
		return (double)rg_f16_to_f32(((const uint16_t *)t->data)[i]);
	case RG_BF16:
		return (double)rg_bf16_to_f32(((const uint16_t *)t->data)[i]);
	case RG_I8:
		return ((const int8_t *)t->data)[i];
	case RG_U8:
	case RG_BOOL:
		return ((const uint8_t *)t->data)[i];
	case RG_I16:
		return ((const int16_t *)t->data)[i];
	case RG_U16:
		return ((const uint16_t *)t->data)[i];
	case RG_I32:
		return ((const int32_t *)t->data)[i];
	case RG_U32:
		return ((const uint32_t *)t->data)[i];
	case RG_I64:
		return (double)((const int64_t *)t->data)[i];
	case RG_U64:
		return (double)((const uint64_t *)t->data)[i];
	default:
		if (rg_dtype_is_narrow(t->dtype))
			return (double)rg_narrow_decode(t->dtype, rg_narrow_get(t->data, rg_dtype_bits(t->dtype), i));
		fail_msg("no such type in a test: %s", rg_dtype_name(t->dtype));
		return 0;
	}
}

void mc_set(const struct rg_tensor *t, int64_t i, double v)
{
	const struct rg_narrow_rule rule = { .saturate = true };

	switch (t->dtype) {
	case RG_F32:
		((float *)t->data)[i] = (float)v;
		break;
	case RG_F64:
		((double *)t->data)[i] = v;
		break;
	case RG_F16:
		((uint16_t *)t->data)[i] = rg_f32_to_f16((float)v);
		break;
	case RG_BF16:
		((uint16_t *)t->data)[i] = rg_f32_to_bf16((float)v);
		break;
	case RG_I8:
		((int8_t *)t->data)[i] = (int8_t)v;
		break;
	case RG_U8:
		((uint8_t *)t->data)[i] = (uint8_t)(int64_t)v;
		break;
	case RG_BOOL:
		((uint8_t *)t->data)[i] = v != 0;
		break;
	case RG_I16:
		((int16_t *)t->data)[i] = (int16_t)v;
		break;
	case RG_U16:
		((uint16_t *)t->data)[i] = (uint16_t)v;
		break;
	case RG_I32:
		((int32_t *)t->data)[i] = (int32_t)v;
		break;
	case RG_U32:
		((uint32_t *)t->data)[i] = (uint32_t)v;
		break;
	case RG_I64:
		((int64_t *)t->data)[i] = (int64_t)v;
		break;
	case RG_U64:
		((uint64_t *)t->data)[i] = (uint64_t)v;
		break;
	default:
		if (!rg_dtype_is_narrow(t->dtype))
			fail_msg("no such type in a test: %s", rg_dtype_name(t->dtype));
		rg_narrow_set(t->data, rg_dtype_bits(t->dtype), i, rg_narrow_encode(t->dtype, v, rule));
	}
}

double mc_tolerance(enum rg_dtype t)
{
	switch (t) {
	case RG_F32:
		return 1e-6;
	case RG_F64:
		return 1e-14;
	case RG_F16:
		return 0x1p-10;
	case RG_BF16:
		return 0x1p-7;
	default:
		return 0;
	}
}

void mc_expect(const struct math_case *t, int output, int64_t i, double want, double rtol, double atol)
{
	const struct rg_tensor *y = &t->out[output];
	double got = mc_get(y, i), w = want;

	/* what the type cannot hold becomes infinite, and so may what is near */
	if (y->dtype == RG_F32)
		w = (double)(float)want;
	else if (y->dtype == RG_F16)
		w = (double)rg_f16_to_f32(rg_f32_to_f16((float)want));
	else if (y->dtype == RG_BF16)
		w = (double)rg_bf16_to_f32(rg_f32_to_bf16((float)want));
	if ((isnan(got) && isnan(w)) || got == w || fabs(got - w) <= atol + rtol * fabs(w))
		return;
	fail_msg("%s: output %d element %lld is %.17g, not %.17g", t->what, output, (long long)i, got, w);
}

void mc_expect_shape(const struct math_case *t, int output, int rank, const int64_t *dims)
{
	struct rg_shape want = rg_shape_of(rank, dims);
	char a[160], b[160];

	if (!rg_shape_equal(&want, &t->out[output].shape))
		fail_msg("%s: output %d has shape %s, not %s", t->what, output,
			 rg_shape_text(a, &t->out[output].shape), rg_shape_text(b, &want));
}

int64_t mc_broadcast_index(const struct rg_shape *s, const struct rg_shape *out, int64_t flat)
{
	int64_t at = 0, step = 1;

	for (int d = out->rank - 1, k = s->rank - 1; d >= 0; d--, k--) {
		int64_t i = flat % out->dim[d];

		flat /= out->dim[d];
		if (k < 0)
			continue;
		at += s->dim[k] == 1 ? 0 : i * step;
		step *= s->dim[k];
	}
	return at;
}
