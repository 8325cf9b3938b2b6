/*
 * Depthwise convolutions of bytes: QLinearConv and ConvInteger where every output channel looks at one
 * input channel. Sums are made in float32, which is exact: a product of differences of bytes is at
 * most 255 * 255, and 258 of them are less than 2^24. They are then as fast as those of floats (one
 * multiply-add an element; exact 16-bit ones need three instructions for a tap of two vectors).
 */
#include "kernels/generic/byte-args.h"
#include "kernels/generic/byte-finish.h"

#include "graph/contrib.h"
#include "kernels/generic/depthwise.h"
#include "kernels/tables.h"

enum { MOST_TAPS = (1 << 24) / (255 * 255), MAX_MULTIPLIER = 4 };

struct job {
	const struct rg_call *c;
	bool to_bytes;
	int w_at, x_zero_at, w_zero_at, bias_at; /* inputs; -1: none */
	struct rg_window w;
	struct rg_plane p;
	int64_t multiplier;      /* output channels an input channel */
	int64_t room;            /* floats of a lane: input, plane, output, weights, taps */
	struct rg_byte_round round;
	char *scratch;
};

/* One of them serves all. */
static int32_t zero_of(const struct rg_call *c, int i, int64_t m)
{
	return rg_arg_given(c, i) ? rg_arg_byte(&c->in[i], rg_arg_count(c, i) == 1 ? 0 : m) : 0;
}

static int64_t in_room(const struct job *j)
{
	return rg_lane_room(j->w.in_count + RG_VEC);
}

static int64_t out_room(const struct job *j)
{
	return rg_lane_room(j->w.out_count + RG_VEC);
}

static int64_t tap_room(const struct job *j)
{
	return rg_lane_room(j->w.kernel_count);
}

static bool setup(const struct rg_call *c, struct job *j)
{
	struct rg_error err = RG_ERROR_INIT;
	const struct rg_window *w = &j->w;

	memset(j, 0, sizeof(*j));
	j->c = c;
	j->to_bytes = c->node->op_type[0] == 'Q';
	j->w_at = j->to_bytes ? 3 : 1;
	j->x_zero_at = 2;
	j->w_zero_at = j->to_bytes ? 5 : 3;
	j->bias_at = j->to_bytes ? 8 : -1;
	if (rg_window_conv(c->node, &c->in[0].shape, &c->in[j->w_at].shape, &j->w, &err))
		return false;
	if (w->group != w->c_in || w->group < 1 || w->c_out / w->group > MAX_MULTIPLIER || w->kernel_count > MOST_TAPS)
		return false;
	j->multiplier = w->c_out / w->group;
	if (rg_plane_setup(w, &j->p, &err) || w->in_count > INT32_MAX || w->out_count > INT32_MAX)
		return false;
	j->room = in_room(j) + rg_lane_room(j->p.floats) + out_room(j) + 3 * tap_room(j);
	return true;
}

static bool supports(const struct rg_call *c)
{
	struct job j;

	if (!rg_is_bytes(c->in[0].dtype) || !setup(c, &j) || !rg_is_bytes(c->in[j.w_at].dtype) ||
	    rg_node_int(c->node, "channels_last", 0))
		return false;
	for (int i = 1; i < c->node->n_in; i++)
		if (rg_arg_given(c, i) && !rg_is_bytes(c->in[i].dtype) && c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_I32)
			return false;
	return !j.to_bytes || (rg_arg_count(c, 1) == 1 && rg_arg_count(c, 6) == 1);
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct job j;

	return setup(c, &j) ? (size_t)j.room * sizeof(float) * (size_t)lanes : 0;
}

/* Bytes less their zero point. */
static void to_floats(const struct rg_tensor *t, int64_t from, int64_t n, int32_t zero, float *restrict to)
{
	const uint8_t *u = (const uint8_t *)t->data + from;
	const int8_t *s = (const int8_t *)t->data + from;

	if (t->dtype == RG_I8)
		for (int64_t i = 0; i < n; i++)
			to[i] = (float)(s[i] - zero);
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = (float)(u[i] - zero);
}

/* `sums` has a vector more than n. */
static void finish(const struct job *j, const float *sums, int64_t n, int64_t m, char *y)
{
	const struct rg_call *c = j->c;
	int32_t bias = rg_arg_given(c, j->bias_at) ? ((const int32_t *)c->in[j->bias_at].data)[m] : 0;
	float scale = 1;

	if (j->to_bytes) /* in the order of the reference */
		scale = *(const float *)c->in[1].data * ((const float *)c->in[4].data)[rg_arg_count(c, 4) == 1 ? 0 : m] /
			*(const float *)c->in[6].data;
	for (int64_t i = 0; i < n; i += RG_VEC) {
		rg_ivec x = rg_vec_to_ints(rg_vec_load(sums + i));
		int64_t left = rg_min(n - i, RG_VEC);
		uint8_t last[RG_VEC];

		x = rg_ivec_add(x, rg_ivec_all(bias));
		if (!j->to_bytes) {
			memcpy((int32_t *)y + i, &x, (size_t)left * sizeof(int32_t));
			continue;
		}
		x = rg_byte_requantize(x, rg_vec_all(scale), &j->round);
		if (left == RG_VEC) {
			rg_ivec_store_bytes((uint8_t *)y + i, x);
		} else {
			rg_ivec_store_bytes(last, x);
			memcpy(y + i, last, (size_t)left);
		}
	}
}

/* Items are output planes: image * c_out + channel. */
static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	static const struct rg_epilogue nothing = { .alpha = 1, .beta = 1 };
	const struct job *j = arg;
	const struct rg_call *c = j->c;
	float *in = (float *)j->scratch + lane * j->room, *plane = in + in_room(j), *out = plane + rg_lane_room(j->p.floats);
	float *wt = out + out_room(j);
	int64_t *taps = (int64_t *)(wt + tap_room(j));
	int64_t have = -1; /* the input plane that scratch holds */
	const int64_t size = j->to_bytes ? 1 : 4;

	for (int64_t t = 0; t < j->w.kernel_count; t++)
		taps[t] = rg_plane_tap(&j->p, t / j->p.kw, t % j->p.kw);
	for (int64_t i = begin; i < end; i++) {
		int64_t m = i % j->w.c_out, from = i / j->multiplier;

		if (from != have) {
			to_floats(&c->in[0], from * j->w.in_count, j->w.in_count, zero_of(c, j->x_zero_at, 0), in);
			rg_plane_copy(&j->p, in, plane);
		}
		have = from;
		to_floats(&c->in[j->w_at], m * j->w.kernel_count, j->w.kernel_count, zero_of(c, j->w_zero_at, m), wt);
		rg_depthwise_rows(&j->p, taps, plane, wt, 0, out, &nothing);
		finish(j, out, j->w.out_count, m, (char *)c->out[0].data + i * j->w.out_count * size);
	}
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	struct job j;

	if (!setup(c, &j))
		return rg_error_set(err, -EOVERFLOW, "the convolution is too large");
	if (rg_shape_count(&c->out[0].shape) == 0)
		return 0;
	if (j.to_bytes)
		j.round = rg_byte_round_of(c->out[0].dtype == RG_I8, zero_of(c, 7, 0));
	j.scratch = c->scratch;
	par->run(par, j.w.batch * j.w.c_out, rg_grain(j.p.floats + j.w.out_count * j.w.kernel_count / 4), work, &j);
	return 0;
}

#define K(OP, DOMAIN) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("bytes-depthwise"), .isa = RG_LEVEL_ISA, \
	  .rank = 50 + RG_LEVEL_RANK, .supports = supports, .scratch_bytes = scratch_bytes, .run = run }
static const struct rg_kernel kernels[] = {
	K("ConvInteger", ""),
	K("QLinearConv", ""),
	K("QLinearConv", RG_CONTRIB_DOMAIN),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(byte_depthwise), kernels);
