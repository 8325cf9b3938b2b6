/* See nn-case.h. */
#include "nn-case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "fake-par.h"
#include "sys/cpu.h"

enum { CANARY_BYTES = 256 };

static void *keep(struct nn_case *t, size_t size_bytes, size_t align_bytes, size_t margin_bytes)
{
	struct guard *g = &t->blocks[t->n_blocks];

	assert_true(t->n_blocks < NN_MAX_BLOCKS);
	assert_true(guard_new(g, size_bytes, align_bytes, margin_bytes, t->side));
	t->n_blocks++;
	return g->data;
}

/* What a kernel writes to. */
static void *keep_output(struct nn_case *t, size_t size_bytes)
{
	return keep(t, size_bytes, 64, CANARY_BYTES);
}

static void check_canaries(const struct nn_case *t, const char *kernel)
{
	int64_t at;

	for (int i = 0; i < t->n_blocks; i++)
		if (!guard_intact(&t->blocks[i], &at))
			fail_msg("%s with %s wrote outside its memory", t->what, kernel);
}

void nn_start(struct nn_case *t, const char *op_type, int version)
{
	nn_start_in(t, "", op_type, version);
}

void nn_start_in(struct nn_case *t, const char *domain, const char *op_type, int version)
{
	memset(t, 0, sizeof(*t));
	t->node.op = rg_op_find(domain, op_type);
	assert_non_null(t->node.op);
	t->node.op_type = op_type;
	t->node.name = op_type;
	t->node.domain = domain;
	t->node.version = version;
	t->node.attrs = t->attrs;
	snprintf(t->what, sizeof(t->what), "%s", op_type);
}

static struct rg_attr *attr(struct nn_case *t, const char *name, enum rg_attr_type type)
{
	struct rg_attr *a = &t->attrs[t->node.n_attrs++];

	assert_true(t->node.n_attrs <= NN_MAX_ATTRS);
	a->name = name;
	a->type = type;
	return a;
}

static void say(struct nn_case *t, const char *fmt, ...)
{
	size_t len = strlen(t->what);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->what + len, sizeof(t->what) - len, fmt, ap);
	va_end(ap);
}

void nn_int(struct nn_case *t, const char *name, int64_t v)
{
	attr(t, name, RG_ATTR_INT)->i = v;
	say(t, " %s=%lld", name, (long long)v);
}

void nn_float(struct nn_case *t, const char *name, float v)
{
	attr(t, name, RG_ATTR_FLOAT)->f = v;
	say(t, " %s=%g", name, (double)v);
}

void nn_floats(struct nn_case *t, const char *name, int n, const float *v)
{
	struct rg_attr *a = attr(t, name, RG_ATTR_FLOATS);

	a->floats = v;
	a->count = n;
	say(t, " %s=%g,...", name, (double)v[0]);
}

void nn_string(struct nn_case *t, const char *name, const char *v)
{
	struct rg_attr *a = attr(t, name, RG_ATTR_STRING);

	a->s = v;
	a->s_len = strlen(v);
	say(t, " %s=%s", name, v);
}

void nn_graph(struct nn_case *t, const char *name, struct rg_graph *g)
{
	attr(t, name, RG_ATTR_GRAPH)->g = g;
	for (int i = 0; i < g->n_nodes; i++)
		say(t, " %s", g->nodes[i].op_type);
}

void nn_ints(struct nn_case *t, const char *name, int n, const int64_t *v)
{
	int64_t *list = t->ints[t->node.n_attrs];
	struct rg_attr *a = attr(t, name, RG_ATTR_INTS);

	assert_true(n <= NN_MAX_LIST);
	say(t, " %s=", name);
	for (int i = 0; i < n; i++) {
		list[i] = v[i];
		say(t, i ? ",%lld" : "%lld", (long long)v[i]);
	}
	a->ints = list;
	a->count = n;
}

void *nn_input_typed(struct nn_case *t, enum rg_dtype dtype, int rank, const int64_t *dims)
{
	struct rg_tensor *x = &t->in[t->node.n_in++];
	size_t bytes;
	char text[160];

	assert_true(t->node.n_in <= NN_MAX_IO);
	x->dtype = dtype;
	x->shape = rg_shape_of(rank, dims);
	bytes = (size_t)rg_tensor_bytes(dtype, &x->shape);
	x->data = keep(t, bytes, rg_dtype_bytes(dtype) > 0 ? rg_dtype_bytes(dtype) : 1, 0);
	memset(x->data, 0, bytes);
	say(t, " [%s]", rg_shape_text(text, &x->shape));
	return x->data;
}

/* What is put among the uniform ones, and how the others are scaled. */
static const struct {
	float lo, hi, scale;
	int n;
	float special[14];
} fills[] = {
	[NN_UNIFORM] = { -1, 1, 1 },
	[NN_SPECIAL] = { -1, 1, 1, 14, { 3e38f, -3e38f, 1e-30f, 1e-41f, -1e-41f, NAN, INFINITY, -INFINITY, 0.0f, -0.0f,
					 88.0f, -88.0f, 104.0f, -104.0f } },
	[NN_POSITIVE] = { 0.1f, 1.1f, 1 },
	[NN_WHOLE] = { -4.5f, 4.5f, 1 },
	[NN_WIDE] = { -20, 20, 1 },
	[NN_BIG] = { -1, 1, 0x1p55f },
	[NN_TINY] = { -1, 1, 0x1p-70f },
	[NN_DENORMAL] = { -1, 1, 0x1p-127f },
	[NN_HUGE] = { -1, 1, 1, 2, { 3e38f, -3e38f } },
	[NN_NAN] = { -1, 1, 1, 1, { NAN } },
	[NN_INF] = { -1, 1, 1, 2, { INFINITY, -INFINITY } },
};

float *nn_input(struct nn_case *t, enum nn_fill fill, int rank, const int64_t *dims)
{
	float *x = nn_input_typed(t, RG_F32, rank, dims);
	int64_t n = rg_shape_count(&t->in[t->node.n_in - 1].shape);
	uint64_t stream = rg_rng_stream(++t->salt, "nn");

	rg_rng_fill_f32(stream, fills[fill].lo, fills[fill].hi, x, (size_t)n);
	for (int64_t i = 0; i < n && fill == NN_WHOLE; i++)
		x[i] = rintf(x[i]);
	for (int64_t i = 0; i < n && fills[fill].scale != 1; i++)
		x[i] *= fills[fill].scale;
	for (int64_t i = 3; fills[fill].n && i < n; i += 7)
		x[i] = fills[fill].special[rg_rng_u64(stream, (uint64_t)(n + i)) % (uint64_t)fills[fill].n];
	t->overflows = t->overflows || fill == NN_HUGE || fill == NN_SPECIAL;
	t->whole = fill == NN_WHOLE && (t->whole || t->node.n_in == 1);
	return x;
}

void *nn_input_bytes(struct nn_case *t, enum rg_dtype dtype, int rank, const int64_t *dims)
{
	unsigned char *x = nn_input_typed(t, dtype, rank, dims);
	int64_t n = rg_tensor_bytes(dtype, &t->in[t->node.n_in - 1].shape);
	uint64_t stream = rg_rng_stream(++t->salt, "nn bytes");

	for (int64_t i = 0; i < n; i++)
		x[i] = (unsigned char)(rg_rng_u64(stream, (uint64_t)i) & (dtype == RG_BOOL ? 1 : 255));
	return x;
}

void nn_input_ints(struct nn_case *t, int n, const int64_t *v)
{
	int64_t *x = nn_input_typed(t, RG_I64, 1, (const int64_t[]){ n });

	for (int i = 0; i < n; i++) {
		x[i] = v[i];
		say(t, i ? ",%lld" : "=%lld", (long long)v[i]);
	}
	t->known |= 1u << (t->node.n_in - 1);
}

void nn_absent(struct nn_case *t)
{
	t->node.n_in++;
}

int nn_infer(struct nn_case *t, int n_out, struct rg_error *err)
{
	struct rg_value values[NN_MAX_IO];
	const struct rg_value *in[NN_MAX_IO];
	struct rg_infer c = { .node = &t->node, .in = in, .out = t->out, .need_value = -1 };
	static int slots[NN_MAX_IO];

	memset(values, 0, sizeof(values));
	for (int i = 0; i < t->node.n_in; i++) {
		values[i].shaped = true;
		values[i].dtype = t->in[i].dtype;
		values[i].shape = t->in[i].shape;
		values[i].data = t->in[i].data;
		values[i].origin = t->known >> i & 1 ? RG_CONST_INITIALIZER : RG_CONST_NONE;
		/* lists of integers are axes, sizes and the like, which shapes depend on */
		if (t->in[i].dtype == RG_I64 && t->in[i].shape.rank < 2)
			values[i].origin = RG_CONST_INITIALIZER;
		in[i] = t->in[i].dtype == RG_UNDEFINED ? NULL : &values[i];
	}
	t->node.n_out = n_out;
	t->node.in = t->node.out = slots;
	return t->node.op->infer(&c, err);
}

/* Runs it; the outputs are the last blocks that stay. */
static bool run_kept(struct nn_case *t, const char *kernel, int lanes, bool may_be_nan)
{
	const struct rg_kernel *k = rg_kernel_find(t->node.domain, t->node.op_type, kernel);
	struct rg_tensor in[NN_MAX_IO];
	struct rg_call c = { .node = &t->node, .in = in, .out = t->out };
	struct rg_error err = RG_ERROR_INIT;
	struct rg_par par = fake_par(lanes, 1);
	size_t scratch = 0, bytes, prepared = 0;
	int before = t->n_blocks;

	assert_non_null(k);
	memcpy(in, t->in, sizeof(in));
	for (int i = 0; i < t->node.n_in; i++)
		if (t->variable >> i & 1)
			in[i].data = NULL;
	if (k->supports && !k->supports(&c))
		return false;
	for (int i = 0; i < t->node.n_out; i++) {
		bytes = (size_t)rg_tensor_bytes(t->out[i].dtype, &t->out[i].shape);
		t->out[i].data = keep_output(t, bytes);
		memset(t->out[i].data, 0xff, bytes);
	}
	if (k->prepared_bytes && (prepared = k->prepared_bytes(&c)) > 0) {
		void *p = keep_output(t, prepared);

		assert_int_equal(k->prepare(&c, p, &err), 0);
		c.prepared = p;
	}
	if (k->scratch_bytes && (scratch = k->scratch_bytes(&c, lanes)) > 0)
		c.scratch = keep_output(t, scratch);
	for (int i = 0; i < t->node.n_in; i++)
		in[i].data = k->packs >> i & 1 && !(t->variable >> i & 1) && prepared ? NULL : t->in[i].data;
	if (k->run(&c, &par, &err))
		fail_msg("%s with %s: %s", t->what, kernel, err.message);
	check_canaries(t, kernel);
	for (int64_t i = 0; !may_be_nan && i < rg_shape_count(&t->out[0].shape); i++)
		if (t->out[0].dtype == RG_F32 && isnan(((float *)t->out[0].data)[i]))
			fail_msg("%s with %s on %d lanes: element %lld is NaN or was not written", t->what, kernel, lanes,
				 (long long)i);
	while (t->n_blocks > before + t->node.n_out)
		guard_free(&t->blocks[--t->n_blocks]);
	for (int i = 0; i < t->node.n_attrs; i++) {
		rg_graph_free(t->attrs[i].g);
		t->attrs[i].g = NULL;
	}
	return true;
}

static void drop(struct nn_case *t, int n)
{
	while (n-- > 0)
		guard_free(&t->blocks[--t->n_blocks]);
}

bool nn_run(struct nn_case *t, const char *kernel, int lanes, bool may_be_nan, float **out0)
{
	if (!run_kept(t, kernel, lanes, may_be_nan))
		return false;
	*out0 = t->out[0].data;
	drop(t, t->node.n_out - 1); /* everything but output 0 can go */
	return true;
}

/* Element i of two tensors of one type: floats within the tolerance, others bit by bit. */
static bool is_close(enum rg_dtype dtype, const void *want, const void *got, int64_t i, double rtol, double atol)
{
	size_t size = rg_dtype_bytes(dtype);
	double w, g;

	if (dtype != RG_F32)
		return !memcmp((const char *)want + (size_t)i * size, (const char *)got + (size_t)i * size, size);
	w = (double)((const float *)want)[i];
	g = (double)((const float *)got)[i];
	if (!isfinite(w) || !isfinite(g)) /* an infinity is not near anything */
		return w == g || (isnan(w) && isnan(g));
	return w == g || fabs(w - g) <= atol + rtol * fabs(w);
}

static void compare(const struct nn_case *t, const char *kernel, int output, const void *want, const void *got,
		    double rtol, double atol)
{
	enum rg_dtype dtype = t->out[output].dtype;
	int64_t n = rg_shape_count(&t->out[output].shape);

	for (int64_t i = 0; i < n; i++) {
		if (is_close(dtype, want, got, i, rtol, atol))
			continue;
		if (dtype == RG_F32)
			fail_msg("%s with %s: element %lld of %lld of output %d is %.9g, the reference has %.9g", t->what,
				 kernel, (long long)i, (long long)n, output, (double)((const float *)got)[i],
				 (double)((const float *)want)[i]);
		fail_msg("%s with %s: element %lld of %lld of output %d is not what the reference has", t->what, kernel,
			 (long long)i, (long long)n, output);
	}
}

void nn_compare(const struct nn_case *t, const char *kernel, const float *want, const float *got, double rtol,
		double atol)
{
	compare(t, kernel, 0, want, got, rtol, atol);
}

/* The kernel against outputs of the reference, which stay the caller's. */
static int check_kernel(struct nn_case *t, const struct rg_kernel *k, const struct rg_tensor *want, double rtol,
			double atol, bool may_be_nan)
{
	struct rg_cpu cpu;
	int runs = 0;

	rg_cpu_detect("", &cpu);
	if (k->isa & ~cpu.isa)
		return 0;
	for (int lanes = 1; lanes <= 3; lanes++) {
		if (!run_kept(t, k->name, lanes, may_be_nan))
			break;
		for (int i = 0; i < t->node.n_out; i++)
			compare(t, k->name, i, want[i].data, t->out[i].data, rtol, atol);
		drop(t, t->node.n_out);
		runs++;
	}
	return runs;
}

static void run_reference(struct nn_case *t, int n_out, bool may_be_nan, struct rg_tensor *want)
{
	struct rg_error err = RG_ERROR_INIT;

	if (nn_infer(t, n_out, &err))
		fail_msg("%s: %s", t->what, err.message);
	assert_true(run_kept(t, "ref", 1, may_be_nan));
	memcpy(want, t->out, sizeof(t->out));
}

int nn_check(struct nn_case *t, const char *kernel, double rtol, double atol, bool may_be_nan)
{
	const struct rg_kernel *k = rg_kernel_find(t->node.domain, t->node.op_type, kernel);
	struct rg_tensor want[NN_MAX_IO];
	int runs;

	assert_non_null(k);
	run_reference(t, 1, may_be_nan, want);
	runs = check_kernel(t, k, want, rtol, atol, may_be_nan);
	drop(t, 1);
	return runs;
}

int nn_check_outputs(struct nn_case *t, int n_out, double rtol, double atol, bool may_be_nan)
{
	const struct rg_kernel *const *list;
	int runs = 0, n = rg_kernel_list(t->node.domain, t->node.op_type, &list);
	struct rg_tensor want[NN_MAX_IO];

	run_reference(t, n_out, may_be_nan, want);
	for (int i = 0; i < n; i++)
		if (strcmp(list[i]->name, "ref"))
			runs += check_kernel(t, list[i], want, rtol, atol, may_be_nan);
	nn_free(t);
	return runs;
}

int nn_check_all(struct nn_case *t, double rtol, double atol, bool may_be_nan)
{
	return nn_check_outputs(t, 1, rtol, atol, may_be_nan);
}

void nn_free(struct nn_case *t)
{
	while (t->n_blocks)
		guard_free(&t->blocks[--t->n_blocks]);
}
