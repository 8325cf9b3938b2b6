/*
 * The normalisations. Means and variances are summed in double, in two passes;
 * elements are computed in double and rounded once, except BatchNormalization
 * on float, which is a plain loop.
 */
#include <math.h>

#include "graph/op-norm.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static int64_t chunk(int64_t left)
{
	return left < RG_REF_CHUNK ? left : RG_REF_CHUNK;
}

/* Mean and variance of n elements from `first` on, contiguous. */
static void moments(const struct rg_tensor *x, int64_t first, int64_t n, double *mean, double *var)
{
	double buf[RG_REF_CHUNK], sum = 0;
	int64_t m;

	for (int64_t i = 0; i < n; i += m) {
		m = chunk(n - i);
		rg_ref_load(x, first + i, 1, m, buf);
		sum += rg_ref_sum(buf, m);
	}
	*mean = sum / (double)n;
	sum = 0;
	for (int64_t i = 0; i < n; i += m) {
		m = chunk(n - i);
		rg_ref_load(x, first + i, 1, m, buf);
		for (int64_t j = 0; j < m; j++)
			buf[j] = (buf[j] - *mean) * (buf[j] - *mean);
		sum += rg_ref_sum(buf, m);
	}
	*var = sum / (double)n;
}

/* y = (x - mean) * factor * scale + bias, scale and bias broadcast to x. */
static void apply_affine(const struct rg_call *c, int64_t first, int64_t n, double mean, double factor,
			 const struct rg_tensor *scale, const struct rg_tensor *bias)
{
	double buf[RG_REF_CHUNK], s[RG_REF_CHUNK], b[RG_REF_CHUNK] = { 0 };
	const struct rg_shape *shape = &c->in[0].shape;
	int64_t m;

	for (int64_t i = 0; i < n; i += m) {
		m = chunk(n - i);
		rg_ref_load(&c->in[0], first + i, 1, m, buf);
		rg_ref_load_broadcast(scale, shape, first + i, m, s);
		if (bias)
			rg_ref_load_broadcast(bias, shape, first + i, m, b);
		for (int64_t j = 0; j < m; j++)
			buf[j] = (buf[j] - mean) * factor * s[j] + b[j];
		rg_ref_store(&c->out[0], first + i, 1, m, buf);
	}
}

static const struct rg_tensor *optional_in(const struct rg_call *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED ? &c->in[i] : NULL;
}

static bool wanted(const struct rg_call *c, int i)
{
	return i < c->node->n_out && c->out[i].dtype != RG_UNDEFINED && c->out[i].data;
}

static int run_layernorm(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	double eps = rg_node_float(c->node, "epsilon", 1e-5f), mean, var, inv;
	const struct rg_tensor *bias = optional_in(c, 2);
	struct rg_rows rows;
	int axis;

	if (!rg_layernorm_rows(c->node, &c->in[0].shape, &rows, &axis))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	for (int64_t r = 0; r < rows.outer; r++) {
		moments(&c->in[0], r * rows.n, rows.n, &mean, &var);
		inv = 1 / sqrt(var + eps);
		apply_affine(c, r * rows.n, rows.n, mean, inv, &c->in[1], bias);
		if (wanted(c, 1))
			rg_ref_set(&c->out[1], r, mean);
		if (wanted(c, 2))
			rg_ref_set(&c->out[2], r, inv);
	}
	return 0;
}

static int run_rmsnorm(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	double eps = rg_node_float(c->node, "epsilon", 1e-5f), buf[RG_REF_CHUNK], sum;
	struct rg_rows rows;
	int64_t m;
	int axis;

	if (!rg_layernorm_rows(c->node, &c->in[0].shape, &rows, &axis))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	for (int64_t r = 0; r < rows.outer; r++) {
		sum = 0;
		for (int64_t i = 0; i < rows.n; i += m) {
			m = chunk(rows.n - i);
			rg_ref_load(&c->in[0], r * rows.n + i, 1, m, buf);
			for (int64_t j = 0; j < m; j++)
				buf[j] *= buf[j];
			sum += rg_ref_sum(buf, m);
		}
		apply_affine(c, r * rows.n, rows.n, 0, 1 / sqrt(sum / (double)rows.n + eps), &c->in[1], NULL);
	}
	return 0;
}

/* y = (x - mean) * a + b over one channel, contiguous. */
static void scale_channel(const struct rg_call *c, int64_t first, int64_t n, double mean, double a, double b)
{
	double buf[RG_REF_CHUNK];
	int64_t m;

	if (c->in[0].dtype == RG_F32) {
		const float *x = (const float *)c->in[0].data + first;
		float *restrict y = (float *)c->out[0].data + first;
		const float fm = (float)mean, fa = (float)a, fb = (float)b;

		for (int64_t i = 0; i < n; i++)
			y[i] = (x[i] - fm) * fa + fb;
		return;
	}
	for (int64_t i = 0; i < n; i += m) {
		m = chunk(n - i);
		rg_ref_load(&c->in[0], first + i, 1, m, buf);
		for (int64_t j = 0; j < m; j++)
			buf[j] = (buf[j] - mean) * a + b;
		rg_ref_store(&c->out[0], first + i, 1, m, buf);
	}
}

/* Mean and variance of every image's channel k. */
static void channel_moments(const struct rg_tensor *x, int64_t batch, int64_t channels, int64_t inner, int64_t k,
			    double *mean, double *var)
{
	double sum = 0, m, v;

	for (int64_t b = 0; b < batch; b++) {
		moments(x, (b * channels + k) * inner, inner, &m, &v);
		sum += m;
	}
	*mean = sum / (double)batch;
	sum = 0;
	/* the variance around the common mean, image by image */
	for (int64_t b = 0; b < batch; b++) {
		moments(x, (b * channels + k) * inner, inner, &m, &v);
		sum += v + (m - *mean) * (m - *mean);
	}
	*var = sum / (double)batch;
}

static int run_batch_training(const struct rg_call *c)
{
	const struct rg_shape *s = &c->in[0].shape;
	double eps = (double)rg_node_float(c->node, "epsilon", 1e-5f);
	double momentum = (double)rg_node_float(c->node, "momentum", 0.9f);
	int64_t batch = s->dim[0], channels = rg_shape_count(&c->in[1].shape), inner;

	if (channels == 0)
		return 0;
	inner = s->rank > 2 ? rg_shape_count_range(s, 2, s->rank) : 1;
	for (int64_t k = 0; k < channels; k++) {
		const double weight[] = { momentum, 1 - momentum };
		double now[2], a;

		channel_moments(&c->in[0], batch, channels, inner, k, &now[0], &now[1]);
		for (int i = 0; i < 2; i++)
			if (wanted(c, 1 + i))
				rg_ref_set(&c->out[1 + i], k,
					   rg_ref_get(&c->in[3 + i], k) * weight[0] + now[i] * weight[1]);
		a = rg_ref_get(&c->in[1], k) / sqrt(now[1] + eps);
		for (int64_t b = 0; b < batch; b++)
			scale_channel(c, (b * channels + k) * inner, inner, now[0], a, rg_ref_get(&c->in[2], k));
	}
	return 0;
}

static int run_batch(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	double eps = rg_node_float(c->node, "epsilon", 1e-5f), a;
	/* one channel where there is one dimension; every activation is its own
	 * channel where the parameters have more than one */
	int64_t batch = s->dim[0], channels = rg_shape_count(&c->in[1].shape), inner;

	if (rg_batchnorm_trains(c->node))
		return run_batch_training(c);
	if (channels == 0 || batch == 0)
		return 0;
	inner = rg_shape_count_range(s, 1, s->rank) / channels;
	for (int64_t b = 0; b < batch; b++) {
		for (int64_t k = 0; k < channels; k++) {
			a = rg_ref_get(&c->in[1], k) / sqrt(rg_ref_get(&c->in[4], k) + eps);
			scale_channel(c, (b * channels + k) * inner, inner, rg_ref_get(&c->in[3], k), a,
				      rg_ref_get(&c->in[2], k));
		}
	}
	return 0;
}

static int run_instance(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	double eps = rg_node_float(c->node, "epsilon", 1e-5f), mean, var;
	int64_t channels = s->dim[1], inner = rg_shape_count_range(s, 2, s->rank);

	for (int64_t i = 0; i < s->dim[0] * channels; i++) {
		moments(&c->in[0], i * inner, inner, &mean, &var);
		scale_channel(c, i * inner, inner, mean,
			      rg_ref_get(&c->in[1], i % channels) / sqrt(var + eps),
			      rg_ref_get(&c->in[2], i % channels));
	}
	return 0;
}

static int run_group(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	double eps = rg_node_float(c->node, "epsilon", 1e-5f), mean, var;
	int64_t channels = s->dim[1], inner = rg_shape_count_range(s, 2, s->rank);
	int64_t groups = rg_node_int(c->node, "num_groups", 1), each = channels / groups;
	bool per_channel = c->node->version >= 21;

	for (int64_t g = 0; g < s->dim[0] * groups; g++) {
		moments(&c->in[0], g * each * inner, each * inner, &mean, &var);
		for (int64_t k = 0; k < each; k++) {
			int64_t p = per_channel ? g % groups * each + k : g % groups;

			scale_channel(c, (g * each + k) * inner, inner, mean,
				      rg_ref_get(&c->in[1], p) / sqrt(var + eps), rg_ref_get(&c->in[2], p));
		}
	}
	return 0;
}

static int run_lp(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool squares = rg_node_int(c->node, "p", 2) == 2;
	double buf[RG_REF_CHUNK], norm;
	struct rg_rows rows;
	int64_t first, m;

	if (!rg_axis_rows(c->node, &c->in[0].shape, -1, &rows))
		return rg_error_set(err, -EINVAL, "the axis is outside of the input");
	for (int64_t r = 0; r < rows.outer * rows.inner; r++) {
		first = r / rows.inner * rows.n * rows.inner + r % rows.inner;
		norm = 0;
		for (int64_t i = 0; i < rows.n; i += m) {
			m = chunk(rows.n - i);
			rg_ref_load(&c->in[0], first + i * rows.inner, rows.inner, m, buf);
			for (int64_t j = 0; j < m; j++)
				norm += squares ? buf[j] * buf[j] : fabs(buf[j]);
		}
		norm = squares ? sqrt(norm) : norm;
		for (int64_t i = 0; i < rows.n; i += m) {
			m = chunk(rows.n - i);
			rg_ref_load(&c->in[0], first + i * rows.inner, rows.inner, m, buf);
			for (int64_t j = 0; j < m; j++)
				buf[j] = norm == 0 ? 0 : buf[j] / norm;
			rg_ref_store(&c->out[0], first + i * rows.inner, rows.inner, m, buf);
		}
	}
	return 0;
}

/* ---- MeanVarianceNormalization over any set of axes ---- */

static double fold_set(const struct rg_tensor *x, const struct rg_ref_split *s, int64_t base, double mean,
		       bool squares)
{
	int64_t index[RG_MAX_RANK] = { 0 }, at = base, m;
	double buf[RG_REF_CHUNK], sum = 0;

	do {
		for (int64_t i = 0; i < s->run; i += m) {
			m = chunk(s->run - i);
			rg_ref_load(x, at + i * s->step, s->step, m, buf);
			for (int64_t j = 0; j < m; j++)
				sum += squares ? (buf[j] - mean) * (buf[j] - mean) : buf[j];
		}
	} while (rg_ref_dims_next(&s->reduced, index, &at));
	return sum / (double)s->reduced.count;
}

static void scale_set(const struct rg_call *c, const struct rg_ref_split *s, int64_t base, double mean,
		      double dev)
{
	int64_t index[RG_MAX_RANK] = { 0 }, at = base, m;
	double buf[RG_REF_CHUNK];

	do {
		for (int64_t i = 0; i < s->run; i += m) {
			m = chunk(s->run - i);
			rg_ref_load(&c->in[0], at + i * s->step, s->step, m, buf);
			for (int64_t j = 0; j < m; j++)
				buf[j] = (buf[j] - mean) / dev;
			rg_ref_store(&c->out[0], at + i * s->step, s->step, m, buf);
		}
	} while (rg_ref_dims_next(&s->reduced, index, &at));
}

static int run_mvn(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	static const int64_t dflt[] = { 0, 2, 3 };
	const int64_t *axes = dflt;
	int64_t index[RG_MAX_RANK] = { 0 }, at = 0;
	int rank = c->in[0].shape.rank, n = rg_node_ints(c->node, "axes", &axes);
	struct rg_ref_split s;
	uint32_t mask = 0;
	double mean, var;

	if (n < 0) {
		axes = dflt;
		n = 3;
	}
	for (int i = 0; i < n; i++)
		mask |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
	rg_ref_split(&c->in[0].shape, mask, &s);
	if (rg_shape_count(&c->in[0].shape) == 0)
		return 0;
	do {
		mean = fold_set(&c->in[0], &s, at, 0, false);
		var = fold_set(&c->in[0], &s, at, mean, true);
		/* the definition's guard against a deviation of 0 */
		scale_set(c, &s, at, mean, sqrt(var) + 1e-9);
	} while (rg_ref_dims_next(&s.kept, index, &at));
	return 0;
}

/* ---- LRN: squares of neighbouring channels ---- */

static int run_lrn(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_shape *s = &c->in[0].shape;
	int64_t channels = s->dim[1], inner = rg_shape_count_range(s, 2, s->rank);
	int64_t size = rg_node_int(c->node, "size", 1), before = (size - 1) / 2, after = size - 1 - before;
	double alpha = rg_node_float(c->node, "alpha", 1e-4f), beta = rg_node_float(c->node, "beta", 0.75f);
	double bias = rg_node_float(c->node, "bias", 1), buf[RG_REF_CHUNK], sum[RG_REF_CHUNK];
	int64_t base, from, to, m;

	for (int64_t i = 0; i < s->dim[0] * channels; i++) {
		base = i / channels * channels;
		from = i - base > before ? i - before : base;
		to = channels - 1 - (i - base) > after ? i + after : base + channels - 1;
		for (int64_t p = 0; p < inner; p += m) {
			m = chunk(inner - p);
			for (int64_t j = 0; j < m; j++)
				sum[j] = 0;
			for (int64_t k = from; k <= to; k++) {
				rg_ref_load(&c->in[0], k * inner + p, 1, m, buf);
				for (int64_t j = 0; j < m; j++)
					sum[j] += buf[j] * buf[j];
			}
			rg_ref_load(&c->in[0], i * inner + p, 1, m, buf);
			for (int64_t j = 0; j < m; j++)
				buf[j] /= pow(bias + alpha / (double)size * sum[j], beta);
			rg_ref_store(&c->out[0], i * inner + p, 1, m, buf);
		}
	}
	return 0;
}

static bool takes_float(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

#define K(OP, RUN) { .op_type = OP, .domain = "", .name = "ref", .supports = takes_float, .run = RUN }
static const struct rg_kernel kernels[] = {
	K("BatchNormalization", run_batch),
	K("GroupNormalization", run_group),
	K("InstanceNormalization", run_instance),
	K("LRN", run_lrn),
	K("LayerNormalization", run_layernorm),
	K("LpNormalization", run_lp),
	K("MeanVarianceNormalization", run_mvn),
	K("RMSNormalization", run_rmsnorm),
};
RG_KERNEL_TABLE(rg_kernels_ref_norm, kernels);
