/*
 * ONNX Runtime's pools on bytes, with the channels in the second or the last
 * dimension. A mean with padding counts the whole window, also the part of it
 * that ceil_mode lets stand beyond the padding.
 */
#include "graph/contrib.h"
#include "kernels/ref/byte.h"
#include "kernels/ref/odometer.h"
#include "kernels/tables.h"

/* Element of channel ch and position p: at first + ch * channel + p * position. */
struct layout {
	int64_t channel, position;
};

static struct layout layout_of(bool channels_last, int64_t channels, int64_t count)
{
	return channels_last ? (struct layout){ 1, channels } : (struct layout){ count, 1 };
}

/* The position that tap k of window o reads, -1 for padding. */
static int64_t tap_at(const struct rg_window *w, const int64_t *o, const int64_t *k)
{
	int64_t at = 0;

	for (int d = 0; d < w->n; d++) {
		int64_t i = o[d] * w->stride[d] - w->pad_begin[d] + k[d] * w->dilation[d];

		if (i < 0 || i >= w->in[d])
			return -1;
		at = at * w->in[d] + i;
	}
	return at;
}

/* Parameters of the mean. */
struct mean {
	float scale, y_scale;
	int32_t zero, y_zero;
	bool with_pad;
};

static float mean_of(const struct rg_call *c, const struct rg_window *w, const struct mean *m, int64_t first,
		     int64_t step, const int64_t *o)
{
	int64_t k[RG_MAX_SPATIAL] = { 0 }, count = 0;
	float sum = 0;

	for (int64_t q = 0; q < w->kernel_count; q++) {
		int64_t at = tap_at(w, o, k);

		if (at >= 0) {
			sum += m->scale * (float)(rg_byte_at(&c->in[0], first + at * step) - m->zero);
			count++;
		}
		rg_odometer_next(w->n, w->kernel, k);
	}
	sum /= (float)(m->with_pad ? w->kernel_count : count);
	return rintf(sum / m->y_scale + (float)m->y_zero);
}

static float most_of(const struct rg_call *c, const struct rg_window *w, int64_t first, int64_t step,
		     const int64_t *o)
{
	int32_t most = c->in[0].dtype == RG_I8 ? -128 : 0;
	int64_t k[RG_MAX_SPATIAL] = { 0 };

	for (int64_t q = 0; q < w->kernel_count; q++) {
		int64_t at = tap_at(w, o, k);
		int32_t v = at < 0 ? most : rg_byte_at(&c->in[0], first + at * step);

		most = v > most ? v : most;
		rg_odometer_next(w->n, w->kernel, k);
	}
	return (float)most;
}

/* Every window; m NULL: the maximum. */
static int run_windows(const struct rg_call *c, bool channels_last, const struct mean *m, struct rg_error *err)
{
	struct rg_window w;
	struct rg_shape out;
	struct layout from, to;
	int rc = rg_byte_pool_window(c->node, &c->in[0].shape, channels_last, &w, &out, err);

	if (rc)
		return rc;
	from = layout_of(channels_last, w.c_in, w.in_count);
	to = layout_of(channels_last, w.c_in, w.out_count);
	for (int64_t b = 0; b < w.batch; b++)
		for (int64_t ch = 0; ch < w.c_in; ch++) {
			int64_t first = b * w.c_in * w.in_count + ch * from.channel;
			int64_t o[RG_MAX_SPATIAL] = { 0 };

			for (int64_t p = 0; p < w.out_count; p++) {
				int64_t at = b * w.c_in * w.out_count + ch * to.channel + p * to.position;

				rg_byte_set(&c->out[0], at,
					    m ? mean_of(c, &w, m, first, from.position, o) :
						most_of(c, &w, first, from.position, o));
				rg_odometer_next(w.n, w.out, o);
			}
		}
	return 0;
}

static int run_max(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return run_windows(c, true, NULL, err);
}

/* The mean of whole planes: sums in integers, scaled once. */
static int run_global(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool last = rg_node_int(c->node, "channels_last", 0) != 0;
	const struct rg_shape *s = &c->in[0].shape;
	int64_t channels = s->dim[last ? s->rank - 1 : 1];
	int64_t n = rg_shape_count_range(s, last ? 1 : 2, last ? s->rank - 1 : s->rank);
	float scale = rg_byte_scale(c, 1, 0) / (rg_byte_scale(c, 3, 0) * (float)n);
	int32_t zero = rg_byte_zero(c, 2, 0), y_zero = rg_byte_zero(c, 4, 0);
	struct layout from = layout_of(last, channels, n);

	for (int64_t b = 0; b < s->dim[0]; b++)
		for (int64_t ch = 0; ch < channels; ch++) {
			int64_t first = b * channels * n + ch * from.channel, sum = 0;

			for (int64_t p = 0; p < n; p++)
				sum += rg_byte_at(&c->in[0], first + p * from.position) - zero;
			rg_byte_set(&c->out[0], b * channels + ch, rintf((float)sum * scale) + (float)y_zero);
		}
	return 0;
}

/* One window that is the whole plane. */
static bool is_global(const struct rg_window *w)
{
	for (int d = 0; d < w->n; d++)
		if (w->out[d] != 1 || w->kernel[d] != w->in[d] || w->pad_begin[d] + w->pad_end[d] != 0)
			return false;
	return true;
}

/* Of whole planes the runtime makes a global pool, which adds the zero point after rounding. */
static int run_average(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct mean m = { rg_byte_scale(c, 1, 0), rg_byte_scale(c, 3, 0), rg_byte_zero(c, 2, 0),
			  rg_byte_zero(c, 4, 0), rg_node_int(c->node, "count_include_pad", 0) != 0 };
	bool last = rg_node_int(c->node, "channels_last", 0) != 0;
	struct rg_window w;
	struct rg_shape out;
	int rc = rg_byte_pool_window(c->node, &c->in[0].shape, last, &w, &out, err);

	if (rc)
		return rc;
	return is_global(&w) ? run_global(c, par, err) : run_windows(c, last, &m, err);
}

#define K(OP, RUN) { .op_type = OP, .domain = RG_CONTRIB_DOMAIN, .name = "ref", .run = RUN }
static const struct rg_kernel kernels[] = {
	K("NhwcMaxPool", run_max),
	K("QLinearAveragePool", run_average),
	K("QLinearGlobalAveragePool", run_global),
};
RG_KERNEL_TABLE(rg_kernels_ref_contrib_qpool, kernels);
