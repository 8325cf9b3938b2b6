/*
 * Products of matrices of bytes, on byte-multiply.h: MatMulInteger, QLinearMatMul, and ONNX Runtime's
 * MatMulIntegerToFloat, DynamicQuantizeMatMul and QGemm. Any strides, batches that broadcast, any zero
 * points; a constant B is packed at plan time.
 */
#include "kernels/generic/generic.h"

#include "graph/contrib.h"
#include "graph/op-gemm.h"
#include "kernels/generic/batch.h"
#include "kernels/generic/byte-finish.h"
#include "kernels/generic/byte-multiply.h"
#include "kernels/tables.h"

/* The inputs of an operator by what they are; -1: it has none. */
struct places {
	int a, b, a_scale, b_scale, y_scale, a_zero, b_zero, y_zero, bias;
};

enum form { TO_INT, TO_BYTES, TO_FLOATS };

/* A node as a product. */
struct product {
	const struct places *at;
	enum form form;
	bool dynamic;               /* A is floats that are quantised here */
	int64_t m, n, k;
	struct rg_batch batch;
	struct rg_byte_matrix a, b; /* without data */
	float alpha;
};

static const struct places *places_of(const char *op)
{
	static const struct {
		const char *op;
		struct places at;
	} all[] = {
		/*                           a  b  as  bs  ys  az  bz  yz  bias */
		{ "MatMulInteger",         { 0, 1, -1, -1, -1, 2,  3,  -1, -1 } },
		{ "QLinearMatMul",         { 0, 3, 1,  4,  6,  2,  5,  7,  -1 } },
		{ "QGemm",                 { 0, 3, 1,  4,  7,  2,  5,  8,  6 } },
		{ "MatMulIntegerToFloat",  { 0, 1, 2,  3,  -1, 4,  5,  -1, 6 } },
		{ "DynamicQuantizeMatMul", { 0, 1, -1, 2,  -1, -1, 3,  -1, 4 } },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(op, all[i].op) == 0)
			return &all[i].at;
	return NULL;
}

static bool shape_matmul(const struct rg_call *c, struct product *p)
{
	int64_t sa[RG_MAX_RANK], sb[RG_MAX_RANK];
	struct rg_matmul s;

	if (!rg_matmul_shape(&c->in[p->at->a].shape, &c->in[p->at->b].shape, &s))
		return false;
	p->m = s.m, p->n = s.n, p->k = s.k;
	p->a.row = s.k, p->a.col = 1;
	p->b.row = s.n, p->b.col = 1;
	p->batch.count = rg_shape_count(&s.batch);
	p->batch.rank = s.batch.rank;
	rg_shape_broadcast_strides(&s.batch_a, &s.batch, sa);
	rg_shape_broadcast_strides(&s.batch_b, &s.batch, sb);
	for (int d = 0; d < p->batch.rank; d++) {
		p->batch.dim[d] = s.batch.dim[d];
		p->batch.a_step[d] = sa[d] * s.m * s.k;
		p->batch.b_step[d] = sb[d] * s.k * s.n;
	}
	/* a zero point a row of A is one a row of each product */
	if (rg_arg_count(c, p->at->a_zero) <= 1)
		rg_batch_join(&p->batch, &p->m, p->a.row, p->a.col);
	return true;
}

static bool shape_gemm(const struct rg_call *c, struct product *p)
{
	bool ta = rg_node_int(c->node, "transA", 0) != 0, tb = rg_node_int(c->node, "transB", 0) != 0;

	if (!rg_gemm_shape(c->node, &c->in[p->at->a].shape, &c->in[p->at->b].shape, &p->m, &p->n, &p->k))
		return false;
	p->batch.count = 1;
	p->a.row = ta ? 1 : p->k, p->a.col = ta ? p->m : 1;
	p->b.row = tb ? 1 : p->n, p->b.col = tb ? p->k : 1;
	p->alpha = rg_node_float(c->node, "alpha", 1);
	return true;
}

static bool describe(const struct rg_call *c, struct product *p)
{
	memset(p, 0, sizeof(*p));
	p->at = places_of(c->node->op_type);
	p->alpha = 1;
	p->dynamic = c->node->op_type[0] == 'D';
	p->a.is_signed = c->in[p->at->a].dtype == RG_I8;
	p->b.is_signed = c->in[p->at->b].dtype == RG_I8;
	p->form = c->out[0].dtype == RG_I32 ? TO_INT : c->out[0].dtype == RG_F32 ? TO_FLOATS : TO_BYTES;
	return strcmp(c->node->op_type, "QGemm") == 0 ? shape_gemm(c, p) : shape_matmul(c, p);
}

static bool packs_b(const struct rg_call *c, const struct product *p)
{
	return c->in[p->at->b].data && p->batch.count == 1;
}

static bool make_plan(const struct product *p, bool packed, int lanes, struct rg_byte_plan *plan)
{
	return rg_byte_plan_make(plan, p->m, p->n, p->k, p->batch.count, packed, lanes);
}

static bool supports(const struct rg_call *c)
{
	const struct places *at = places_of(c->node->op_type);
	struct rg_byte_plan plan;
	struct product p;
	int dynamic = c->node->op_type[0] == 'D';

	if (!(dynamic ? c->in[at->a].dtype == RG_F32 : rg_is_bytes(c->in[at->a].dtype)) || !rg_is_bytes(c->in[at->b].dtype) || !describe(c, &p) ||
	    !make_plan(&p, packs_b(c, &p), 1, &plan))
		return false;
	for (int i = 0; i < c->node->n_in; i++)
		if (i != at->a && rg_arg_given(c, i) && c->in[i].dtype != RG_F32 && c->in[i].dtype != RG_I8 && c->in[i].dtype != RG_U8 &&
		    c->in[i].dtype != RG_I32)
			return false;
	if (rg_arg_given(c, at->bias) && c->in[at->bias].dtype == RG_I32 && rg_arg_count(c, at->bias) != p.n)
		return false; /* the bias of QGemm may be a matrix */
	/* scales and zero points a matrix of a batch of its own are the reference's */
	return rg_arg_one_or(c, at->a_scale, 1) && rg_arg_one_or(c, at->y_scale, 1) && rg_arg_one_or(c, at->y_zero, 1) &&
	       rg_arg_one_or(c, at->b_scale, p.n) && rg_arg_one_or(c, at->b_zero, p.n) && rg_arg_one_or(c, at->a_zero, p.m) &&
	       (p.form != TO_INT || !rg_arg_given(c, at->bias)) && (!rg_arg_given(c, at->bias) || rg_arg_count(c, at->bias) == p.n);
}

/* ---- scratch: the scales of all columns, what is left of floats as bytes, then the product's own ---- */

static int64_t scale_bytes(const struct product *p)
{
	return p->form == TO_INT ? 0 : rg_scratch_bytes(rg_ceil_div(p->n, RG_BYTE_COLS) * RG_BYTE_COLS * (int64_t)sizeof(float));
}

static int64_t quantized_bytes(const struct rg_call *c, const struct product *p)
{
	return p->dynamic ? rg_scratch_bytes(rg_shape_count(&c->in[p->at->a].shape)) : 0;
}

/* Of the least and the largest of each lane's part. */
enum { RANGE_STRIDE = 32 };

static int64_t range_bytes(const struct product *p, int lanes)
{
	return p->dynamic ? RANGE_STRIDE * (int64_t)sizeof(float) * lanes : 0;
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	struct rg_byte_plan plan;
	struct product p;

	if (!describe(c, &p) || !make_plan(&p, packs_b(c, &p), lanes, &plan))
		return 0;
	return (size_t)(scale_bytes(&p) + quantized_bytes(c, &p) + range_bytes(&p, lanes)) + rg_byte_multiply_scratch_bytes(&plan);
}

static size_t prepared_bytes(const struct rg_call *c)
{
	struct product p;

	if (!describe(c, &p) || !packs_b(c, &p))
		return 0;
	return rg_byte_pack_bytes(p.n, p.k);
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	struct product p;

	(void)err;
	describe(c, &p);
	p.b.data = c->in[p.at->b].data;
	rg_byte_pack_start(p.n, p.k, prepared);
	rg_byte_pack_panels(&p.b, 0, rg_ceil_div(p.n, RG_BYTE_COLS), prepared);
	return 0;
}

/* ---- finishing ---- */

struct finish {
	const struct product *p;
	void *y;
	const float *scale;         /* RG_BYTE_COLS more than n */
	const float *bias;          /* NULL: none */
	struct rg_byte_round round;
};

static void to_ints(const struct rg_byte_multiply *mul, int64_t i, int64_t row, int64_t col, int64_t rows, int64_t cols,
		    int32_t *sums, int64_t pitch)
{
	const struct finish *f = mul->ctx;
	int32_t *y = (int32_t *)f->y + (i * f->p->m + row) * f->p->n + col;

	for (int64_t r = 0; r < rows; r++, y += f->p->n, sums += pitch) {
		if (cols == RG_BYTE_COLS)
			for (int v = 0; v < RG_BYTE_VECS; v++)
				rg_ivec_store(y + v * RG_VEC, rg_ivec_load(sums + v * RG_VEC));
		else
			memcpy(y, sums, (size_t)cols * sizeof(*y));
	}
}

static void to_floats(const struct rg_byte_multiply *mul, int64_t i, int64_t row, int64_t col, int64_t rows, int64_t cols,
		      int32_t *sums, int64_t pitch)
{
	const struct finish *f = mul->ctx;
	float *y = (float *)f->y + (i * f->p->m + row) * f->p->n + col;
	const float *scale = f->scale + col, *bias = f->bias ? f->bias + col : NULL;

	for (int64_t r = 0; r < rows; r++, y += f->p->n, sums += pitch) {
		if (cols == RG_BYTE_COLS) {
			for (int v = 0; v < RG_BYTE_COLS; v += RG_VEC) {
				rg_vec x = rg_ivec_to_floats(rg_ivec_load(sums + v)) * rg_vec_load(scale + v);

				if (bias)
					x += rg_vec_load(bias + v);
				rg_vec_store(y + v, x);
			}
			continue;
		}
		for (int64_t j = 0; j < cols; j++) {
			float x = (float)sums[j] * scale[j];

			y[j] = bias ? x + bias[j] : x;
		}
	}
}

static void to_bytes(const struct rg_byte_multiply *mul, int64_t i, int64_t row, int64_t col, int64_t rows, int64_t cols,
		     int32_t *sums, int64_t pitch)
{
	const struct finish *f = mul->ctx;
	uint8_t *y = (uint8_t *)f->y + (i * f->p->m + row) * f->p->n + col, last[RG_BYTE_COLS];

	for (int64_t r = 0; r < rows; r++, y += f->p->n, sums += pitch) {
		uint8_t *to = cols == RG_BYTE_COLS ? y : last;

		for (int v = 0; v < rg_min(cols, RG_BYTE_COLS); v += RG_VEC)
			rg_ivec_store_bytes(to + v, rg_byte_requantize(rg_ivec_load(sums + v), rg_vec_load(f->scale + col + v), &f->round));
		if (to == last)
			memcpy(y, last, (size_t)cols);
	}
}

/* ---- floats that become bytes ---- */

struct dynamic {
	const float *x;
	uint8_t *to;
	float *ranges;
	float scale, zero;
};

static void work_range(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct dynamic *d = arg;
	float *range = d->ranges + lane * RANGE_STRIDE, low = range[0], high = range[1];
	rg_vec lows = rg_vec_all(low), highs = rg_vec_all(high);

	for (; begin + RG_VEC <= end; begin += RG_VEC) {
		rg_vec x = rg_vec_load(d->x + begin);

		lows = rg_vec_pick(x < lows, x, lows); /* NaN compares false */
		highs = rg_vec_pick(x > highs, x, highs);
	}
	for (int i = 0; i < RG_VEC; i++) {
		low = lows[i] < low ? lows[i] : low;
		high = highs[i] > high ? highs[i] : high;
	}
	for (; begin < end; begin++) {
		low = d->x[begin] < low ? d->x[begin] : low;
		high = d->x[begin] > high ? d->x[begin] : high;
	}
	range[0] = low;
	range[1] = high;
}

static void work_quantize(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct dynamic *d = arg;
	rg_vec scale = rg_vec_all(d->scale), low = rg_vec_all(-d->zero), high = rg_vec_all(255 - d->zero);
	rg_ivec zero = rg_ivec_all((int32_t)d->zero);
	uint8_t last[RG_VEC];

	(void)lane;
	for (; begin + RG_VEC <= end; begin += RG_VEC)
		rg_ivec_store_bytes(d->to + begin, rg_vec_to_ints(rg_vec_clip_to_low(rg_vec_load(d->x + begin) / scale, low, high)) + zero);
	if (begin < end) {
		float x[RG_VEC] = { 0 };

		memcpy(x, d->x + begin, (size_t)(end - begin) * sizeof(float));
		rg_ivec_store_bytes(last, rg_vec_to_ints(rg_vec_clip_to_low(rg_vec_load(x) / scale, low, high)) + zero);
		memcpy(d->to + begin, last, (size_t)(end - begin));
	}
}

/* The scale and the zero point of DynamicQuantizeLinear; nothing but zeros has the scale 1. */
static void quantize(struct dynamic *d, int64_t n, const struct rg_par *par)
{
	float low = 0, high = 0;

	for (int l = 0; l < par->lanes; l++)
		d->ranges[l * RANGE_STRIDE] = d->ranges[l * RANGE_STRIDE + 1] = 0;
	par->run(par, n, rg_grain(1), work_range, d);
	for (int l = 0; l < par->lanes; l++) {
		low = d->ranges[l * RANGE_STRIDE] < low ? d->ranges[l * RANGE_STRIDE] : low;
		high = d->ranges[l * RANGE_STRIDE + 1] > high ? d->ranges[l * RANGE_STRIDE + 1] : high;
	}
	d->scale = (high - low) / 255;
	d->scale = d->scale > 0 ? d->scale : 1;
	d->zero = -low / d->scale;
	d->zero = __builtin_rintf(d->zero < 255 ? d->zero : 255);
	par->run(par, n, rg_grain(2), work_quantize, d);
}

/* ---- running ---- */

static void offsets(const struct rg_byte_multiply *mul, int64_t i, int64_t *a, int64_t *b)
{
	rg_batch_at(&((const struct finish *)mul->ctx)->p->batch, i, a, b);
}

static void set_zeros(const struct rg_call *c, int i, int32_t *one, const void **all)
{
	if (rg_arg_count(c, i) == 1)
		*one = rg_arg_byte(&c->in[i], 0);
	else if (rg_arg_given(c, i))
		*all = c->in[i].data;
}

/* The products and the quotient of scales, in the order of the reference. */
static void make_scales(const struct rg_call *c, const struct product *p, float a_scale, float *to)
{
	const float *b = c->in[p->at->b_scale].data;
	bool one = rg_arg_count(c, p->at->b_scale) == 1;
	float y = p->form == TO_BYTES ? *(const float *)c->in[p->at->y_scale].data : 1;

	for (int64_t j = 0; j < p->n; j++)
		to[j] = p->alpha * a_scale * b[one ? 0 : j] / y;
	for (int64_t j = p->n; j < rg_ceil_div(p->n, RG_BYTE_COLS) * RG_BYTE_COLS; j++)
		to[j] = 0;
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	char *room = c->scratch;
	struct rg_byte_multiply mul = { 0 };
	struct finish f = { .y = c->out[0].data };
	float a_scale = 1;
	struct product p;

	describe(c, &p);
	if (!make_plan(&p, c->prepared != NULL, par->lanes, &mul.plan))
		return rg_error_set(err, -EOVERFLOW, "the product is too large");
	f.p = &p;
	mul.a = p.a;
	mul.b = p.b;
	mul.a.data = c->in[p.at->a].data;
	mul.b.data = c->in[p.at->b].data;
	mul.packed = c->prepared;
	mul.at = offsets;
	mul.ctx = &f;
	set_zeros(c, p.at->a_zero, &mul.a_zero, &mul.a_zeros);
	set_zeros(c, p.at->b_zero, &mul.b_zero, &mul.b_zeros);
	f.scale = (float *)room;
	room += scale_bytes(&p);
	if (p.dynamic) {
		struct dynamic d = { .x = mul.a.data, .to = (uint8_t *)room };

		room += quantized_bytes(c, &p);
		d.ranges = (float *)room;
		room += range_bytes(&p, par->lanes);
		quantize(&d, rg_shape_count(&c->in[p.at->a].shape), par);
		mul.a.data = d.to;
		mul.a_zero = (int32_t)d.zero;
		a_scale = d.scale;
	} else if (rg_arg_given(c, p.at->a_scale)) {
		a_scale = *(const float *)c->in[p.at->a_scale].data;
	}
	if (p.form != TO_INT)
		make_scales(c, &p, a_scale, (float *)f.scale);
	if (rg_arg_given(c, p.at->bias) && c->in[p.at->bias].dtype == RG_I32)
		mul.bias = c->in[p.at->bias].data;
	else if (rg_arg_given(c, p.at->bias))
		f.bias = c->in[p.at->bias].data;
	if (p.form == TO_BYTES)
		f.round = rg_byte_round_of(c->out[0].dtype == RG_I8, rg_arg_given(c, p.at->y_zero) ? rg_arg_byte(&c->in[p.at->y_zero], 0) : 0);
	mul.finish = p.form == TO_INT ? to_ints : p.form == TO_FLOATS ? to_floats : to_bytes;
	mul.out = c->out[0].data;
	mul.out_size = p.form == TO_BYTES ? 1 : 4;
	mul.scratch = room;
	rg_byte_multiply_run(&mul, par);
	return 0;
}

/* Between registers and L1: a tile reads its rows of A and its panel of B. What is multiplied are integers, no
 * floating-point operations. */
static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	struct rg_byte_plan plan;
	double cols, tiles, reads, writes;
	struct product p;

	out->executed_flops = out->read_bytes = out->write_bytes = -1;
	if (!describe(c, &p) || !make_plan(&p, packs_b(c, &p), 1, &plan))
		return;
	cols = (double)(rg_ceil_div(p.n, RG_VEC) * RG_VEC);
	tiles = (double)rg_ceil_div(p.n, RG_BYTE_COLS);
	/* A with its signs is twice as many bytes, weights of 16 bits are */
	reads = 4 * (double)plan.groups * ((double)p.m * (tiles * (RG_BYTE_SIGNS ? 2 : 1) + 1) +
					   cols * (double)rg_ceil_div(p.m, plan.mr) * (RG_BYTE_WIDE ? 2 : 1));
	writes = 4 * (double)plan.groups * (double)p.m * (RG_BYTE_SIGNS ? 2 : 1);
	if (plan.pack_b) {
		reads += (double)p.k * cols;
		writes += (double)p.k * cols;
	}
	reads *= (double)p.batch.count, writes *= (double)p.batch.count;
	writes += (double)p.m * (double)p.n * (double)p.batch.count * (p.form == TO_BYTES ? 1 : 4);
	if (reads < 9e18 && writes < 9e18) {
		out->read_bytes = (int64_t)reads;
		out->write_bytes = (int64_t)writes;
	}
}

#if defined(RG_GENERIC_AVXVNNI)
#define FLAGS RG_KERNEL_UNPROVEN
#else
#define FLAGS 0
#endif
#define K(OP, DOMAIN, B) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("bytes"), .isa = RG_LEVEL_ISA, \
	  .rank = 40 + RG_LEVEL_RANK, .flags = FLAGS, .supports = supports, .scratch_bytes = scratch_bytes, \
	  .prepared_bytes = prepared_bytes, .prepare = prepare, .packs = 1u << (B), .traffic = traffic, .run = run }
static const struct rg_kernel kernels[] = {
	K("MatMulInteger", "", 1),
	K("QLinearMatMul", "", 3),
	K("DynamicQuantizeMatMul", RG_CONTRIB_DOMAIN, 1),
	K("MatMulIntegerToFloat", RG_CONTRIB_DOMAIN, 1),
	K("QGemm", RG_CONTRIB_DOMAIN, 3),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(byte_gemm), kernels);
