/*
 * LSTM, GRU and RNN in float32: the input of all steps and directions is one
 * product, each step then one with the state (two where GRU resets the state before),
 * and the gates are vectorised. Weights are packed once, at plan time when they are
 * constant. Equations: ONNX operator documents; what is beyond a sequence's length is
 * as the reference has it.
 *
 * Directions and sequences are independent, so they are what lanes share. Where there
 * are too few of them and the weights of a step do not fit L2, the product of each step
 * is shared instead.
 *
 * Activations: the operators' defaults, and Relu for RNN; others are left to the
 * reference.
 */
#include "kernels/generic/multiply.h"

#include <strings.h>

#include "graph/rnn.h"
#include "kernels/cache.h"
#include "kernels/generic/vmath.h"
#include "kernels/tables.h"

/* Gates of one step that are one product with the state: columns [first, first + n). */
struct part {
	int64_t first, n, packed; /* packed: where they begin among the packed ones of a direction */
};

struct rnn {
	struct rg_rnn n;
	int64_t width;               /* columns of all gates of one direction */
	bool couple, linear, relu;   /* input_forget; linear_before_reset; RNN's function */
	float clip;                  /* 0: none */
	int parts;
	struct part part[2];
	int64_t w_floats, r_floats;  /* packed: of all directions; of one */
	int64_t groups, rows, items; /* of sequences; rows of a group; directions x groups */
	bool share_steps;            /* lanes share products, not items */
	struct rg_multiply_plan step[2][2], input; /* of each part, for rows and rows - 1 sequences */
	/* scratch, in floats: bias, input product; weights packed in this call; of an item */
	int64_t x_floats, bias_floats, pack_floats, item_floats, step_floats;
};

static int64_t round_up(int64_t n)
{
	return (n + 15) / 16 * 16;
}

static const struct rg_tensor *input(const struct rg_call *c, int i)
{
	return i < c->node->n_in && c->in[i].dtype != RG_UNDEFINED ? &c->in[i] : NULL;
}

static const float *data_of(const struct rg_call *c, int i)
{
	return input(c, i) ? c->in[i].data : NULL;
}

static float *wanted(const struct rg_call *c, int i)
{
	return i < c->node->n_out && c->out[i].dtype != RG_UNDEFINED ? c->out[i].data : NULL;
}

/* ---- the plan ---- */

/* Only the functions that the loops have, the same in both directions. */
static bool known_functions(const struct rg_node *node, int gates, int directions, bool *relu)
{
	static const char *const lstm[] = { "Sigmoid", "Tanh", "Tanh" };
	const struct rg_attr *names = rg_node_attr(node, "activations");
	int per = gates == 4 ? 3 : gates == 3 ? 2 : 1;

	*relu = false;
	if (!names || names->count == 0)
		return true;
	if (names->count != per * directions)
		return false;
	for (int i = 0; i < names->count; i++) {
		if (gates == 1 &&
		    !strcasecmp(names->strings[i], strcasecmp(names->strings[0], "Relu") ? "Tanh" : "Relu"))
			continue;
		if (gates == 1 || strcasecmp(names->strings[i], lstm[i % per]))
			return false;
	}
	*relu = gates == 1 && !strcasecmp(names->strings[0], "Relu");
	return true;
}

/* Both are constant, or both are packed in the call. */
static bool is_constant(const struct rg_call *c)
{
	return c->in[1].data && c->in[2].data;
}

static bool plan_products(struct rnn *p, bool packed, int lanes)
{
	const struct rg_rnn *n = &p->n;
	struct rg_matrix x = { .row = n->input, .col = 1 }, w = { .row = 1, .col = n->input };
	struct rg_matrix h = { .row = n->hidden, .col = 1 }, r = { .row = p->width, .col = 1 };

	if (!rg_multiply_plan_make(&p->input, n->seq * n->batch, n->directions * p->width, n->input, 1, &x,
				   false, &w, packed, lanes))
		return false;
	p->step_floats = 0;
	for (int i = 0; i < 2 * p->parts; i++) {
		struct rg_multiply_plan *plan = &p->step[i / 2][i % 2];
		int64_t rows = p->rows > 0 ? p->rows - i % 2 : 0, floats;

		if (!rg_multiply_plan_make(plan, rows, p->part[i / 2].n, n->hidden, 1, &h, false, &r, true,
					   p->share_steps ? lanes : 1))
			return false;
		floats = round_up((int64_t)(rg_multiply_scratch_bytes(plan) / sizeof(float)));
		p->step_floats = floats > p->step_floats ? floats : p->step_floats;
	}
	return true;
}

static void add_part(struct rnn *p, int64_t first, int64_t n)
{
	p->part[p->parts++] = (struct part){ first, n, p->r_floats };
	p->r_floats += rg_multiply_packed_b_floats(n, p->n.hidden);
}

/* All of it but what lanes and packing decide; false: not for these loops. */
static bool describe(const struct rg_call *c, struct rnn *p)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t all;

	memset(p, 0, sizeof(*p));
	if (rg_rnn_resolve(c->node, &c->in[0].shape, &c->in[1].shape, &c->in[2].shape, &p->n, &err) ||
	    !known_functions(c->node, p->n.gates, p->n.directions, &p->relu))
		return false;
	if (p->n.hidden < 1 || p->n.hidden > 1 << 20 || p->n.input < 0 || p->n.input > INT32_MAX ||
	    p->n.batch < 0 || p->n.seq < 0)
		return false;
	p->clip = rg_node_float(c->node, "clip", 0);
	p->couple = rg_node_int(c->node, "input_forget", 0) != 0;
	p->linear = rg_node_int(c->node, "linear_before_reset", 0) != 0;
	p->width = p->n.gates * p->n.hidden;
	if (p->n.gates == 3 && !p->linear) {
		add_part(p, 0, 2 * p->n.hidden);
		add_part(p, 2 * p->n.hidden, p->n.hidden);
	} else {
		add_part(p, 0, p->width);
	}
	p->w_floats = rg_multiply_packed_b_floats(p->n.directions * p->width, p->n.input);
	return !__builtin_mul_overflow(p->n.seq, p->n.batch, &all) &&
	       !__builtin_mul_overflow(all, p->n.directions * p->width * 64, &all);
}

static bool resolve(const struct rg_call *c, bool packed, int lanes, struct rnn *p)
{
	const struct rg_rnn *n = &p->n;
	int64_t most;

	if (!describe(c, p))
		return false;
	p->groups = (lanes + n->directions - 1) / n->directions;
	p->groups = n->batch < 1 ? 1 : p->groups > n->batch ? n->batch : p->groups;
	p->share_steps = n->directions * p->groups < lanes &&
			 p->width * n->hidden * (int64_t)sizeof(float) > rg_kernel_caches()->l2_bytes;
	p->groups = p->share_steps ? 1 : p->groups;
	p->rows = n->batch > 0 ? (n->batch + p->groups - 1) / p->groups : 0;
	p->items = n->directions * p->groups;
	if (!plan_products(p, packed, lanes))
		return false;
	p->bias_floats = round_up(n->directions * p->width);
	p->x_floats = round_up(n->seq * n->batch * n->directions * p->width);
	p->pack_floats = packed ? 0 : n->directions * p->r_floats;
	p->item_floats = round_up(p->rows * (3 * n->hidden + p->width)) + p->step_floats;
	return !__builtin_mul_overflow(p->item_floats + p->step_floats, p->items * 8, &most);
}

static bool supports(const struct rg_call *c)
{
	struct rnn p;

	for (int i = 0; i < 8; i++)
		if (i != 4 && input(c, i) && c->in[i].dtype != RG_F32)
			return false;
	return resolve(c, is_constant(c), 1, &p);
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	size_t floats, product;
	struct rnn p;

	if (!resolve(c, is_constant(c), lanes, &p))
		return 0;
	floats = (size_t)(p.items * p.item_floats);
	product = rg_multiply_scratch_bytes(&p.input) / sizeof(float);
	/* the product of the input is done before the items begin */
	floats = product > floats ? product : floats;
	return ((size_t)(p.bias_floats + p.x_floats + p.pack_floats) + floats) * sizeof(float);
}

static size_t prepared_bytes(const struct rg_call *c)
{
	struct rnn p;

	if (!is_constant(c) || !describe(c, &p))
		return 0;
	return (size_t)(p.w_floats + p.n.directions * p.r_floats) * sizeof(float);
}

/* The recurrence of one direction, gates in parts. */
static void pack_direction(const struct rnn *p, const float *r, float *to)
{
	for (int i = 0; i < p->parts; i++) {
		const struct part *part = &p->part[i];
		struct rg_matrix b = { .data = r + part->first * p->n.hidden, .row = 1, .col = p->n.hidden };

		rg_multiply_pack_b(&b, part->n, p->n.hidden, 0, (part->n + RG_TILE_COLS - 1) / RG_TILE_COLS,
				   to + part->packed);
	}
}

static int prepare(const struct rg_call *c, void *prepared, struct rg_error *err)
{
	struct rg_matrix w = { .data = c->in[1].data, .row = 1 };
	float *to = prepared;
	struct rnn p;
	int64_t n;

	if (!describe(c, &p))
		return rg_error_set(err, -EINVAL, "the inputs do not go together");
	w.col = p.n.input;
	n = p.n.directions * p.width;
	rg_multiply_pack_b(&w, n, p.n.input, 0, (n + RG_TILE_COLS - 1) / RG_TILE_COLS, to);
	for (int d = 0; d < p.n.directions; d++)
		pack_direction(&p, (const float *)c->in[2].data + d * p.width * p.n.hidden,
			       to + p.w_floats + d * p.r_floats);
	return 0;
}

/* ---- gates, of one sequence at one step ---- */

static void clip_row(float *restrict x, int64_t n, float clip)
{
	for (int64_t i = 0; i < n && clip > 0; i++) {
		float v = x[i] > -clip ? x[i] : -clip;

		x[i] = v < clip ? v : clip;
	}
}

static void sigmoid_row(float *restrict x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = rg_vsigmoidf(x[i]);
}

static void tanh_row(float *restrict x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = rg_vtanhf(x[i]);
}

static void add_row(float *restrict x, const float *restrict y, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] += y[i];
}

static void add_product_row(float *restrict x, const float *restrict a, const float *restrict b, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = rg_fma(a[i], b[i], x[i]);
}

/* gate: what the state gives; x: what the input gives, with the biases. */
static void lstm(const struct rnn *p, float *gate, const float *x, const float *peephole, float *restrict h,
		 float *restrict cell) /* gates: i, o, f, c */
{
	int64_t n = p->n.hidden;
	float *i = gate, *o = gate + n, *f = gate + 2 * n, *new = gate + 3 * n;

	add_row(gate, x, 4 * n);
	if (peephole) { /* i, o, f */
		add_product_row(i, peephole, cell, n);
		add_product_row(f, peephole + 2 * n, cell, n);
	}
	clip_row(i, n, p->clip);
	clip_row(f, 2 * n, p->clip);
	sigmoid_row(i, n);
	if (p->couple)
		for (int64_t j = 0; j < n; j++)
			f[j] = 1 - i[j];
	else
		sigmoid_row(f, n);
	tanh_row(new, n);
	for (int64_t j = 0; j < n; j++)
		cell[j] = f[j] * cell[j] + i[j] * new[j];
	if (peephole)
		add_product_row(o, peephole + n, cell, n);
	clip_row(o, n, p->clip);
	sigmoid_row(o, n);
	for (int64_t j = 0; j < n; j++)
		h[j] = o[j] * rg_vtanhf(cell[j]);
}

/* GRU, first half: z and r. */
static void gru_gates(const struct rnn *p, float *gate, const float *x)
{
	add_row(gate, x, 2 * p->n.hidden);
	clip_row(gate, 2 * p->n.hidden, p->clip);
	sigmoid_row(gate, 2 * p->n.hidden);
}

/* Second half, with what the (reset) state gives to h in gate[2n ..]. */
static void gru_state(const struct rnn *p, float *gate, const float *x, const float *bias, float *restrict h)
{
	int64_t n = p->n.hidden;
	float *z = gate, *r = gate + n, *new = gate + 2 * n;

	if (p->linear && bias)
		add_row(new, bias, n);
	if (p->linear)
		for (int64_t j = 0; j < n; j++)
			new[j] *= r[j];
	add_row(new, x + 2 * n, n);
	clip_row(new, n, p->clip);
	tanh_row(new, n);
	for (int64_t j = 0; j < n; j++)
		h[j] = (1 - z[j]) * new[j] + z[j] * h[j];
}

static void simple(const struct rnn *p, float *gate, const float *x, float *restrict h)
{
	int64_t n = p->n.hidden;

	add_row(gate, x, n);
	clip_row(gate, n, p->clip);
	if (p->relu)
		for (int64_t j = 0; j < n; j++)
			h[j] = gate[j] > 0 ? gate[j] : 0;
	else
		for (int64_t j = 0; j < n; j++)
			h[j] = rg_vtanhf(gate[j]);
}

/* ---- steps ---- */

struct job {
	const struct rg_call *c;
	const struct rnn *p;
	const int32_t *lens;         /* NULL: all steps */
	const float *x, *packed;     /* product of the input; packed recurrence */
	float *items;
	const struct rg_par *par;    /* of the products of steps */
};

/* One direction of some sequences. */
struct item {
	const struct job *j;
	int dir;
	int64_t first, rows;         /* sequences */
	float *h, *cell, *reset, *gate, *scratch;
};

static int64_t length(const struct job *j, int64_t b)
{
	return j->lens ? j->lens[b] : j->p->n.seq;
}

/* gate columns of a part = state times its weights, for all rows. */
static void multiply(const struct item *it, int part, const float *state)
{
	static const struct rg_epilogue none = { .alpha = 1, .beta = 1 };
	const struct rnn *p = it->j->p;
	struct rg_multiply mul = {
		.plan = p->step[part][it->rows != p->rows],
		.a = { .data = state, .row = p->n.hidden, .col = 1 },
		.b = { .row = p->width,
		       .col = 1,
		       .packed = it->j->packed + it->dir * p->r_floats + p->part[part].packed },
		.c = it->gate + p->part[part].first,
		.c_row = p->width,
		.e = &none,
		.scratch = it->scratch,
	};

	rg_multiply_run(&mul, it->j->par);
}

static void step_row(const struct item *it, int64_t r, const float *x, int half)
{
	const struct rnn *p = it->j->p;
	int64_t n = p->n.hidden;
	const float *peephole = data_of(it->j->c, 7), *bias = data_of(it->j->c, 3);
	float *gate = it->gate + r * p->width, *h = it->h + r * n;

	if (p->n.gates == 4) {
		lstm(p, gate, x, peephole ? peephole + it->dir * 3 * n : NULL, h, it->cell + r * n);
	} else if (p->n.gates == 1) {
		simple(p, gate, x, h);
	} else if (half == 0) {
		gru_gates(p, gate, x);
		for (int64_t k = 0; k < n; k++)
			it->reset[r * n + k] = gate[n + k] * h[k];
	} else {
		gru_state(p, gate, x, bias ? bias + (it->dir * 2 + 1) * p->width + 2 * n : NULL, h);
	}
}

/* Sequences that have ended, or not come to this step, keep their state. */
static void do_step(const struct item *it, int64_t i)
{
	const struct rnn *p = it->j->p;
	const struct rg_rnn *n = &p->n;
	bool backwards = n->reverse || it->dir == 1;
	float *y = wanted(it->j->c, 0);

	multiply(it, 0, it->h);
	for (int half = 0; half < (n->gates == 3 ? 2 : 1); half++) {
		if (half == 1 && !p->linear)
			multiply(it, 1, it->reset);
		for (int64_t r = 0; r < it->rows; r++) {
			int64_t b = it->first + r, len = length(it->j, b), t = backwards ? len - 1 - i : i;

			if (i < len)
				step_row(it, r,
					 it->j->x + ((n->batch_first ? b * n->seq + t : t * n->batch + b) *
							     n->directions +
						     it->dir) *
							    p->width,
					 half);
		}
	}
	for (int64_t r = 0; y && r < it->rows; r++) {
		int64_t b = it->first + r, len = length(it->j, b), t = backwards && i < len ? len - 1 - i : i;
		float *to = y + (n->batch_first ? (b * n->seq + t) * n->directions + it->dir :
						  (t * n->directions + it->dir) * n->batch + b) * n->hidden;

		if (i < len)
			memcpy(to, it->h + r * n->hidden, (size_t)n->hidden * sizeof(float));
		else
			memset(to, 0, (size_t)n->hidden * sizeof(float));
	}
}

/* The states' rows to (or from, when it begins) the operator's; absent: 0. */
static void load_state(const struct item *it, int input_index, float *to)
{
	const struct rg_rnn *n = &it->j->p->n;
	const float *from = data_of(it->j->c, input_index);

	for (int64_t r = 0; r < it->rows; r++, to += n->hidden) {
		int64_t b = it->first + r,
			at = n->batch_first ? b * n->directions + it->dir : it->dir * n->batch + b;

		if (from)
			memcpy(to, from + at * n->hidden, (size_t)n->hidden * sizeof(float));
		else
			memset(to, 0, (size_t)n->hidden * sizeof(float));
	}
}

static void store_state(const struct item *it, int output, const float *from)
{
	const struct rg_rnn *n = &it->j->p->n;
	float *to = wanted(it->j->c, output);

	for (int64_t r = 0; to && r < it->rows; r++, from += n->hidden) {
		int64_t b = it->first + r,
			at = n->batch_first ? b * n->directions + it->dir : it->dir * n->batch + b;

		memcpy(to + at * n->hidden, from, (size_t)n->hidden * sizeof(float));
	}
}

static void do_item(const struct job *j, int64_t index)
{
	const struct rnn *p = j->p;
	const struct rg_rnn *n = &p->n;
	int64_t group = index % p->groups;
	struct item it = { .j = j, .dir = (int)(index / p->groups), .first = n->batch * group / p->groups };

	it.rows = n->batch * (group + 1) / p->groups - it.first;
	it.h = j->items + index * p->item_floats;
	it.cell = it.h + p->rows * n->hidden;
	it.reset = it.cell + p->rows * n->hidden;
	it.gate = it.reset + p->rows * n->hidden;
	it.scratch = j->items + (index + 1) * p->item_floats - p->step_floats;
	load_state(&it, 5, it.h);
	if (n->gates == 4)
		load_state(&it, 6, it.cell);
	for (int64_t i = 0; i < n->seq; i++)
		do_step(&it, i);
	store_state(&it, 1, it.h);
	if (n->gates == 4)
		store_state(&it, 2, it.cell);
}

static void work(void *arg, int64_t begin, int64_t end, int lane)
{
	(void)lane;
	for (int64_t i = begin; i < end; i++)
		do_item(arg, i);
}

/* ---- the whole ---- */

/* Both biases, but that of GRU's h which is multiplied by r. */
static void join_biases(const struct rnn *p, const float *bias, float *restrict to)
{
	for (int d = 0; d < p->n.directions; d++) {
		const float *restrict b = bias ? bias + d * 2 * p->width : NULL;

		for (int64_t i = 0; i < p->width; i++)
			to[d * p->width + i] = !b ? 0 : p->linear && p->n.gates == 3 && i >= 2 * p->n.hidden ?
							b[i] : b[i] + b[p->width + i];
	}
}

static void multiply_input(const struct rg_call *c, const struct rnn *p, const float *bias, float *x,
			   float *scratch, const struct rg_par *par)
{
	struct rg_epilogue e = { .alpha = 1, .beta = 1, .bias = bias, .bias_col = 1 };
	struct rg_multiply mul = {
		.plan = p->input, .a = { .data = c->in[0].data, .row = p->n.input, .col = 1 },
		.b = { .data = c->in[1].data, .row = 1, .col = p->n.input, .packed = c->prepared },
		.c = x, .c_row = p->n.directions * p->width, .e = &e, .scratch = scratch,
	};

	rg_multiply_run(&mul, par);
}

static int check_lengths(const struct rg_rnn *n, const int32_t *lens, struct rg_error *err)
{
	for (int64_t b = 0; lens && b < n->batch; b++)
		if (lens[b] < 0 || lens[b] > n->seq)
			return rg_error_set(err, -EINVAL, "sequence_lens[%lld] is %d; X has %lld steps",
					    (long long)b, lens[b], (long long)n->seq);
	return 0;
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	float *bias = c->scratch, *x, *packed;
	struct rnn p;
	struct job j = { .c = c, .p = &p, .par = &rg_par_serial };
	double ns;

	if (!resolve(c, c->prepared != NULL, par->lanes, &p))
		return rg_error_set(err, -EINVAL, "the inputs do not go together");
	j.lens = input(c, 4) ? c->in[4].data : NULL;
	if (check_lengths(&p.n, j.lens, err))
		return err->code;
	x = bias + p.bias_floats;
	packed = x + p.x_floats;
	j.items = packed + p.pack_floats;
	j.packed = c->prepared ? (const float *)c->prepared + p.w_floats : packed;
	for (int d = 0; d < p.n.directions && !c->prepared; d++)
		pack_direction(&p, (const float *)c->in[2].data + d * p.width * p.n.hidden,
			       packed + d * p.r_floats);
	join_biases(&p, data_of(c, 3), bias);
	multiply_input(c, &p, bias, x, j.items, par);
	j.x = x;
	if (p.n.batch == 0)
		return 0;
	if (p.share_steps) {
		j.par = par;
		work(&j, 0, p.items, 0);
		return 0;
	}
	/* a multiply-add of few rows is as fast as L2 gives weights */
	ns = (double)p.n.seq * (double)(p.width * p.n.hidden) * ((double)p.rows + 3) / 32;
	par->run(par, p.items, 1 + (int64_t)(20e3 / (ns + 1)), work, &j);
	return 0;
}

#define K(OP) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("steps"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .scratch_bytes = scratch_bytes, \
	  .prepared_bytes = prepared_bytes, .prepare = prepare, .packs = 1u << 1 | 1u << 2, .run = run }
static const struct rg_kernel kernels[] = {
	K("GRU"),
	K("LSTM"),
	K("RNN"),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(rnn), kernels);
