/* Programs of elementwise operations: building them, and walking the output. */
#include "kernels/ewise.h"

#include <errno.h>
#include <string.h>

#include "kernels/tables.h"

enum {
	SHORT = 16,    /* an innermost dimension below this is walked flat */
	LONG = 8192,   /* elements of a piece where nothing is buffered */
};

/* ---- building ---- */

/* Appends a dimension, merged with the one before where every input goes on
 * where that one ends. */
static void add_dim(struct rg_ew *e, int64_t dim, const int64_t *stride)
{
	int r = e->rank;
	bool merge = r > 0;

	for (int k = 0; merge && k < e->n_in; k++)
		merge = e->stride[k][r - 1] == stride[k] * dim;
	if (merge)
		r--;
	else
		e->dim[r] = 1;
	e->dim[r] *= dim;
	for (int k = 0; k < e->n_in; k++)
		e->stride[k][r] = stride[k];
	e->rank = r + 1;
}

/* How the flat walk reads input k. */
static int64_t find_period(const struct rg_ew *e, int k)
{
	int64_t at = 1, period = 1, whole = e->step[k];
	bool contiguous = e->step[k] || e->inner == 1;

	if (e->step[k])
		period = e->inner;
	at = e->inner;
	for (int d = e->rank - 1; d >= 0; d--) {
		contiguous = contiguous && e->stride[k][d] == at;
		at *= e->dim[d];
		if (e->stride[k][d])
			period = at;
		whole = whole || e->stride[k][d];
	}
	return contiguous ? 0 : whole ? period : 1;
}

bool rg_ew_start(struct rg_ew *e, const struct rg_shape *out, int n, const struct rg_shape *const *shapes,
		 const int *bytes)
{
	int64_t strides[RG_EW_MAX_IN][RG_MAX_RANK], at[RG_EW_MAX_IN];

	memset(e, 0, sizeof(*e));
	if (n > RG_EW_MAX_IN)
		return false;
	e->n_in = n;
	e->count = rg_shape_count(out);
	for (int k = 0; k < n; k++) {
		rg_shape_broadcast_strides(shapes[k], out, strides[k]);
		e->bytes[k] = (uint8_t)bytes[k];
	}
	for (int d = 0; d < out->rank; d++) {
		if (out->dim[d] == 1)
			continue;
		for (int k = 0; k < n; k++)
			at[k] = strides[k][d];
		add_dim(e, out->dim[d], at);
	}
	e->inner = 1;
	if (e->rank) {
		e->inner = e->dim[--e->rank];
		for (int k = 0; k < n; k++) {
			/* nothing but dimensions of 1 stands behind it, so it is contiguous or repeated */
			e->step[k] = e->stride[k][e->rank] != 0;
		}
	}
	e->flat = e->rank > 0 && e->inner < SHORT;
	for (int k = 0; k < n; k++)
		e->period[k] = find_period(e, k);
	return true;
}

int rg_ew_constant(struct rg_ew *e, float value)
{
	if (e->n_const == RG_EW_MAX_CONST)
		return -ENOSPC;
	e->constant[e->n_const] = value;
	return RG_EW_CONST + e->n_const++;
}

/*
 * Which buffer the next result goes to: one that no earlier result holds. Who will
 * read what is not known yet, so a result keeps its buffer until it has been read
 * once, and the latest one always has its own: true of trees, which chains are.
 */
static int free_temp(const struct rg_ew *e, const int *in, int n_in)
{
	bool taken[RG_EW_MAX_TEMPS] = { false };

	for (int o = 0; o < e->n_ops; o++) {
		bool is_read = false, now = false;

		for (int p = o + 1; p < e->n_ops; p++)
			for (int k = 0; k < e->op[p].n_in; k++)
				is_read = is_read || e->op[p].in[k] == RG_EW_RESULT + o;
		for (int k = 0; k < n_in; k++)
			now = now || in[k] == RG_EW_RESULT + o;
		if (!is_read || now)
			taken[e->op[o].temp] = true;
	}
	for (int i = 0; i < RG_EW_MAX_TEMPS; i++)
		if (!taken[i])
			return i;
	return -ENOSPC;
}

/* A result that was read before is still in its buffer: nothing was put there since. */
static bool still_there(const struct rg_ew *e, int reg)
{
	int o = reg - RG_EW_RESULT;

	for (int p = o + 1; p < e->n_ops; p++)
		if (e->op[p].temp == e->op[o].temp)
			return false;
	return true;
}

int rg_ew_apply(struct rg_ew *e, rg_ew_fn *fn, unsigned accepts, int n_in, const int *in, float a, float b,
		int bytes, int cost)
{
	struct rg_ew_op *op = &e->op[e->n_ops];
	int temp;

	if (e->n_ops == RG_EW_MAX_OPS)
		return -ENOSPC;
	for (int k = 0; k < n_in; k++)
		if (in[k] < 0 || (in[k] >= RG_EW_RESULT && !still_there(e, in[k])))
			return in[k] < 0 ? in[k] : -ENOSPC;
	temp = free_temp(e, in, n_in);
	if (temp < 0)
		return temp;
	*op = (struct rg_ew_op){ .fn = fn, .accepts = (uint8_t)(accepts | 1), .n_in = (uint8_t)n_in,
				 .temp = (uint8_t)temp, .cost = (uint8_t)cost, .bytes = (uint8_t)bytes, .a = a, .b = b };
	for (int k = 0; k < n_in; k++)
		op->in[k] = (int8_t)in[k];
	if (temp >= e->n_temps)
		e->n_temps = temp + 1;
	return RG_EW_RESULT + e->n_ops++;
}

/* ---- running ---- */

/* A piece of elements of any size. */
typedef struct {
	_Alignas(64) char bytes[RG_EW_TILE * 8];
} buffer;

struct run {
	const struct rg_ew *e;
	const void *const *data;
	char *out;
	int64_t piece, pieces; /* elements of a piece; pieces a row (flat: in all) */
	int out_bytes;
};

/* One piece: where each input's elements are, and whether it is one element. */
struct piece {
	const char *in[RG_EW_MAX_IN];
	bool single[RG_EW_MAX_IN];
	int64_t n;
	char *out;
};

#define FILL(TYPE) do { \
		TYPE *t = to, v; \
		memcpy(&v, from, sizeof(v)); \
		for (int64_t i = 0; i < n; i++) \
			t[i] = v; \
	} while (0)

static void fill(void *to, const void *from, int64_t n, int bytes)
{
	switch (bytes) {
	case 1: memset(to, *(const uint8_t *)from, (size_t)n); break;
	case 2: FILL(uint16_t); break;
	case 4: FILL(uint32_t); break;
	default: FILL(uint64_t); break;
	}
}

static int operand_bytes(const struct rg_ew *e, int reg)
{
	return reg >= RG_EW_RESULT ? e->op[reg - RG_EW_RESULT].bytes : reg >= RG_EW_CONST ? 4 : e->bytes[reg];
}

static void run_piece(const struct rg_ew *e, const struct piece *p, buffer *temps, buffer *wide)
{
	for (int o = 0; o < e->n_ops; o++) {
		const struct rg_ew_op *op = &e->op[o];
		struct rg_ew_args args = { .a = op->a, .b = op->b };

		for (int k = 0; k < op->n_in; k++) {
			int reg = op->in[k];

			if (reg >= RG_EW_RESULT) {
				args.in[k] = temps[e->op[reg - RG_EW_RESULT].temp].bytes;
			} else if (reg >= RG_EW_CONST) {
				args.in[k] = &e->constant[reg - RG_EW_CONST];
				args.single |= 1u << k;
			} else {
				args.in[k] = p->in[reg];
				args.single |= p->single[reg] ? 1u << k : 0;
			}
		}
		/* what the function does not take as one element is laid out, from the first on */
		for (int k = 0; k < op->n_in && !(op->accepts >> args.single & 1); k++) {
			if (!(args.single >> k & 1))
				continue;
			fill(wide[k].bytes, args.in[k], p->n, operand_bytes(e, op->in[k]));
			args.in[k] = wide[k].bytes;
			args.single &= ~(1u << k);
		}
		op->fn(o == e->n_ops - 1 ? (void *)p->out : (void *)temps[op->temp].bytes, &args, p->n);
	}
}

/* The index of a row, and where each input's row starts. */
struct place {
	int64_t index[RG_MAX_RANK], at[RG_EW_MAX_IN];
};

static void place_start(const struct rg_ew *e, int64_t row, struct place *p)
{
	for (int k = 0; k < e->n_in; k++)
		p->at[k] = 0;
	for (int d = e->rank - 1; d >= 0; d--) {
		p->index[d] = row % e->dim[d];
		row /= e->dim[d];
		for (int k = 0; k < e->n_in; k++)
			p->at[k] += p->index[d] * e->stride[k][d];
	}
}

static inline void place_next(const struct rg_ew *e, struct place *p)
{
	for (int d = e->rank - 1; d >= 0; d--) {
		for (int k = 0; k < e->n_in; k++)
			p->at[k] += e->stride[k][d];
		if (++p->index[d] < e->dim[d])
			break;
		for (int k = 0; k < e->n_in; k++)
			p->at[k] -= e->stride[k][d] * e->dim[d];
		p->index[d] = 0;
	}
}

/* Rows cut into pieces. */
static void work_rows(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct run *r = arg;
	const struct rg_ew *e = r->e;
	int64_t row = begin / r->pieces, cut = begin % r->pieces;
	buffer temps[RG_EW_MAX_TEMPS], wide[3];
	struct place at;
	struct piece p;

	(void)lane;
	place_start(e, row, &at);
	for (int k = 0; k < e->n_in; k++)
		p.single[k] = !e->step[k];
	for (int64_t i = begin; i < end; i++) {
		int64_t first = cut * r->piece;

		p.n = e->inner - first < r->piece ? e->inner - first : r->piece;
		p.out = r->out + (row * e->inner + first) * r->out_bytes;
		for (int k = 0; k < e->n_in; k++)
			p.in[k] = (const char *)r->data[k] + (at.at[k] + (e->step[k] ? first : 0)) * e->bytes[k];
		run_piece(e, &p, temps, wide);
		if (++cut < r->pieces)
			continue;
		cut = 0;
		row++;
		place_next(e, &at);
	}
}

/* The same for one operation that takes its operands as they are. */
static void work_plain(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct run *r = arg;
	const struct rg_ew *e = r->e;
	const struct rg_ew_op *op = &e->op[0];
	int64_t row = begin / r->pieces, cut = begin % r->pieces;
	struct rg_ew_args args = { .a = op->a, .b = op->b };
	struct place at;

	(void)lane;
	place_start(e, row, &at);
	for (int k = 0; k < op->n_in; k++) {
		bool is_const = op->in[k] >= RG_EW_CONST;

		if (is_const)
			args.in[k] = &e->constant[op->in[k] - RG_EW_CONST];
		args.single |= is_const || !e->step[op->in[k]] ? 1u << k : 0;
	}
	for (int64_t i = begin; i < end; i++) {
		int64_t first = cut * r->piece, left = e->inner - first;

		for (int k = 0; k < op->n_in; k++) {
			int reg = op->in[k];

			if (reg < RG_EW_CONST)
				args.in[k] = (const char *)r->data[reg] +
					     (at.at[reg] + (e->step[reg] ? first : 0)) * e->bytes[reg];
		}
		op->fn(r->out + (row * e->inner + first) * r->out_bytes, &args, left < r->piece ? left : r->piece);
		if (++cut < r->pieces)
			continue;
		cut = 0;
		row++;
		place_next(e, &at);
	}
}

#define LAY_ROWS(TYPE) do { \
		const TYPE *from = (const TYPE *)r->data[k] + at.at[k]; \
		TYPE *t = (TYPE *)to; \
\
		for (int64_t i = 0; i < rows; i++, from += stride) \
			for (int64_t c = 0; c < e->inner; c++) \
				*t++ = step ? from[c] : *from; \
	} while (0)

/* Whole short rows: as many as the last outer dimension has left. */
static void lay_rows(const struct run *r, int k, const struct place *p, int64_t rows, char *to)
{
	const struct rg_ew *e = r->e;
	int64_t stride = e->stride[k][e->rank - 1];
	bool step = e->step[k];
	struct place at = *p;

	switch (e->bytes[k]) {
	case 1: LAY_ROWS(uint8_t); break;
	case 2: LAY_ROWS(uint16_t); break;
	case 4: LAY_ROWS(uint32_t); break;
	default: LAY_ROWS(uint64_t); break;
	}
}

/* n elements of input k from flat index `first` of the output on, side by side. */
static void lay_out(const struct run *r, int k, int64_t first, int64_t n, char *to)
{
	const struct rg_ew *e = r->e;
	int64_t col = first % e->inner, bytes = e->bytes[k];
	int last = e->rank - 1;
	struct place p;

	place_start(e, first / e->inner, &p);
	while (n > 0) {
		int64_t rows = 1, m = e->inner - col < n ? e->inner - col : n;
		const char *from = (const char *)r->data[k] + (p.at[k] + (e->step[k] ? col : 0)) * bytes;

		if (m == e->inner) {
			rows = e->dim[last] - p.index[last];
			rows = rows < n / m ? rows : n / m;
			lay_rows(r, k, &p, rows, to);
			m *= rows;
		} else if (e->step[k]) {
			memcpy(to, from, (size_t)(m * bytes));
		} else {
			fill(to, from, m, (int)bytes);
		}
		to += m * bytes;
		n -= m;
		col = 0;
		/* to the end of the last outer dimension at once */
		for (int i = 0; i < e->n_in; i++)
			p.at[i] += (rows - 1) * e->stride[i][last];
		p.index[last] += rows - 1;
		place_next(e, &p);
	}
}

static void work_flat(void *arg, int64_t begin, int64_t end, int lane)
{
	const struct run *r = arg;
	const struct rg_ew *e = r->e;
	buffer temps[RG_EW_MAX_TEMPS], wide[3], laid[RG_EW_MAX_IN];
	struct piece p;

	(void)lane;
	for (int64_t i = begin; i < end; i++) {
		int64_t first = i * r->piece;

		p.n = e->count - first < r->piece ? e->count - first : r->piece;
		p.out = r->out + first * r->out_bytes;
		for (int k = 0; k < e->n_in; k++) {
			p.single[k] = e->period[k] == 1;
			p.in[k] = r->data[k];
			if (e->period[k] == 1)
				continue;
			if (e->period[k] == 0) {
				p.in[k] += first * e->bytes[k];
				continue;
			}
			p.in[k] = laid[k].bytes;
			if (i == begin || r->piece % e->period[k])
				lay_out(r, k, first, p.n, laid[k].bytes);
		}
		run_piece(e, &p, temps, wide);
	}
}

/* A piece that holds whole periods, if there is one. */
static int64_t flat_piece(const struct rg_ew *e)
{
	int64_t longest = 1;

	for (int k = 0; k < e->n_in; k++)
		longest = e->period[k] > longest ? e->period[k] : longest;
	return longest <= RG_EW_TILE ? RG_EW_TILE / longest * longest : RG_EW_TILE;
}

static bool needs_buffers(const struct rg_ew *e)
{
	const struct rg_ew_op *op = &e->op[0];
	unsigned single = 0;

	if (e->n_ops > 1 || e->flat)
		return true;
	for (int k = 0; k < op->n_in; k++)
		single |= (op->in[k] >= RG_EW_CONST || !e->step[op->in[k]]) ? 1u << k : 0;
	return !(op->accepts >> single & 1);
}

void rg_ew_run(const struct rg_ew *e, const void *const *data, void *out, const struct rg_par *par)
{
	struct run r = { .e = e, .data = data, .out = out, .out_bytes = e->op[e->n_ops - 1].bytes };
	int64_t cost = 0, items, work;
	bool plain;

	if (e->count == 0)
		return;
	for (int o = 0; o < e->n_ops; o++)
		cost += e->op[o].cost;
	plain = !needs_buffers(e);
	r.piece = e->flat ? flat_piece(e) : plain ? LONG : RG_EW_TILE;
	if (!e->flat && r.piece > e->inner)
		r.piece = e->inner;
	r.pieces = ((e->flat ? e->count : e->inner) + r.piece - 1) / r.piece;
	items = e->flat ? r.pieces : e->count / e->inner * r.pieces;
	work = cost * r.piece + 20 * e->n_ops + (e->flat ? 4 * r.piece : 0); /* quarter-nanoseconds an item */
	par->run(par, items, 80000 / work + 1, e->flat ? work_flat : plain ? work_plain : work_rows, &r);
}

void rg_ew_traffic(const struct rg_ew *e, struct rg_traffic *out)
{
	out->executed_flops = -1;
	out->read_bytes = out->write_bytes = 0;
	for (int o = 0; o < e->n_ops; o++) {
		out->write_bytes += e->count * e->op[o].bytes;
		for (int k = 0; k < e->op[o].n_in; k++) {
			int reg = e->op[o].in[k];

			if (reg >= RG_EW_RESULT || (reg < RG_EW_CONST && (e->flat ? e->period[reg] != 1 : e->step[reg])))
				out->read_bytes += e->count * operand_bytes(e, reg);
		}
	}
}

/* ---- nodes ---- */

static const struct rg_ew_family *const families[] = {
	RG_EWISE_FAMILY_LIST(binary),
	RG_EWISE_FAMILY_LIST(cast),
	RG_EWISE_FAMILY_LIST(fused),
	RG_EWISE_FAMILY_LIST(logic),
	RG_EWISE_FAMILY_LIST(unary),
	RG_EWISE_FAMILY_LIST(variadic),
};

rg_ew_node *rg_ew_node_of(const struct rg_kernel *k)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const struct rg_kernel_table *t = families[i]->kernels;

		for (int n = 0; n < t->count; n++)
			if (&t->kernels[n] == k)
				return families[i]->nodes[n];
	}
	return NULL;
}

static int build(struct rg_ew *e, const struct rg_call *c, rg_ew_node *node)
{
	const struct rg_shape *shapes[RG_EW_MAX_IN];
	int bytes[RG_EW_MAX_IN], regs[RG_EW_MAX_IN], n = 0;

	if (c->node->n_in > RG_EW_MAX_IN)
		return -ENOSPC;
	for (int i = 0; i < c->node->n_in; i++) {
		regs[i] = -1;
		if (c->in[i].dtype == RG_UNDEFINED)
			continue;
		if (c->in[i].shape.rank > c->out[0].shape.rank)
			return -ENOTSUP;
		shapes[n] = &c->in[i].shape;
		bytes[n] = (int)rg_dtype_bytes(c->in[i].dtype);
		regs[i] = n++;
	}
	if (!rg_ew_start(e, &c->out[0].shape, n, shapes, bytes))
		return -ENOSPC;
	return node(e, c, regs);
}

bool rg_ew_call_supports(const struct rg_call *c, rg_ew_node *node)
{
	struct rg_ew e;

	return build(&e, c, node) >= 0;
}

int rg_ew_call_run(const struct rg_call *c, rg_ew_node *node, const struct rg_par *par, struct rg_error *err)
{
	const void *data[RG_EW_MAX_IN];
	struct rg_ew e;
	int n = 0, rc = build(&e, c, node);

	if (rc < 0)
		return rg_error_set(err, rc, "no loops for these types");
	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_UNDEFINED)
			data[n++] = c->in[i].data;
	rg_ew_run(&e, data, c->out[0].data, par);
	return 0;
}

void rg_ew_call_traffic(const struct rg_call *c, rg_ew_node *node, struct rg_traffic *out)
{
	struct rg_ew e;

	*out = (struct rg_traffic){ -1, -1, -1 };
	if (build(&e, c, node) >= 0)
		rg_ew_traffic(&e, out);
}
