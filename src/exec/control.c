/*
 * If, Loop, Scan and SequenceMap: subgraphs run as ONNX defines them (operator
 * documents of If-25, Loop-25, Scan-8 and Scan-25, SequenceMap-17).
 */
#include <string.h>

#include "base/alloc.h"
#include "exec/dynamic-internal.h"
#include "graph/op.h"

/* ---- a growing list of items ---- */

struct list {
	struct rg_item **v;
	size_t n, cap;
	int64_t bytes;
};

/* Takes the reference, also on failure. */
static int push(struct list *l, struct rg_item *item, struct rg_error *err)
{
	struct rg_item **p = rg_grow(l->v, &l->cap, l->n + 1, sizeof(*p));

	if (!p) {
		rg_item_unref(item);
		return rg_error_nomem(err, (l->n + 1) * sizeof(*p));
	}
	l->v = p;
	p[l->n++] = item;
	if (__builtin_add_overflow(l->bytes, rg_item_bytes(item), &l->bytes))
		l->bytes = INT64_MAX;
	return 0;
}

static void drop(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		rg_item_unref(l->v[i]);
	rg_free(l->v);
	memset(l, 0, sizeof(*l));
}

static void drop_items(struct rg_item **v, int n)
{
	for (int i = 0; i < n; i++) {
		rg_item_unref(v[i]);
		v[i] = NULL;
	}
}

static int read_bool(const struct rg_item *i, bool *out, struct rg_error *err)
{
	if (i->kind != RG_ITEM_TENSOR || i->t.dtype != RG_BOOL || rg_shape_count(&i->t.shape) != 1)
		return rg_error_set(err, -EINVAL, "the condition must be one bool");
	*out = *(const uint8_t *)i->t.data != 0;
	return 0;
}

/* What stacking nothing gives: 0 of what the body declares, as far as it does. */
static struct rg_item *stack_nothing(const struct rg_graph *g, int output, int axis, struct rg_error *err)
{
	const struct rg_value *v = &g->values[g->outputs[output]];
	struct rg_shape s = { .rank = 1 };

	if (v->declared_rank > 0 && v->declared_rank < RG_MAX_RANK) {
		s.rank = v->declared_rank + 1;
		for (int i = 0, k = 0; i < s.rank; i++)
			s.dim[i] = i == axis ? 0 : v->declared[k++].value;
		for (int i = 0; i < s.rank; i++)
			s.dim[i] = s.dim[i] < 0 ? 0 : s.dim[i];
	}
	if (rg_dtype_bits(v->declared_dtype) == 0) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "no iteration ran, and the body does not say of what type its "
			     "output '%s' is", v->name);
		return NULL;
	}
	return rg_item_new(v->declared_dtype, &s, 0, err);
}

static struct rg_item *stack(const struct list *l, const struct rg_graph *g, int output, int axis,
			     struct rg_error *err)
{
	if (l->n == 0)
		return stack_nothing(g, output, axis, err);
	if (l->n > INT32_MAX) {
		rg_error_set(err, -E2BIG, "more than %d iterations to stack", INT32_MAX);
		return NULL;
	}
	return rg_item_join(l->v, (int)l->n, axis, false, err);
}

/* ---- If ---- */

static int run_if(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item **out, *item;
	struct rg_body *b;
	bool yes = false;
	int rc;

	item = rg_site_item(s, 0, err);
	if (!item)
		return err->code;
	rc = read_bool(item, &yes, err);
	rg_item_unref(item);
	if (rc)
		return rc;
	b = rg_site_body(s, yes ? "then_branch" : "else_branch", err);
	if (!b)
		return err->code;
	if (rg_body_graph(b)->n_outputs != s->n->n_out)
		return rg_error_set(err, -EINVAL, "it has %d outputs, its branch %d", s->n->n_out,
				    rg_body_graph(b)->n_outputs);
	out = rg_calloc((size_t)s->n->n_out + 1, sizeof(*out));
	if (!out)
		return rg_error_nomem(err, (size_t)s->n->n_out * sizeof(*out));
	rc = rg_body_run(s, b, 0, NULL, out, err);
	for (int k = 0; k < s->n->n_out && !rc; k++) {
		rc = rg_site_give(s, k, out[k], err);
		out[k] = NULL;
	}
	drop_items(out, s->n->n_out);
	rg_free(out);
	return rc;
}

/* ---- Loop ---- */

struct loop {
	struct rg_body *body;
	const struct rg_graph *g;
	int n_state, n_scan;
	struct rg_item **state;      /* n_state */
	struct rg_item **in, **out;  /* of one iteration */
	struct list *scans;          /* n_scan */
};

static void loop_free(struct loop *l)
{
	if (l->state)
		drop_items(l->state, l->n_state);
	if (l->out)
		drop_items(l->out, l->g->n_outputs);
	for (int k = 0; l->scans && k < l->n_scan; k++)
		drop(&l->scans[k]);
	rg_free(l->state);
	rg_free(l->in);
	rg_free(l->out);
	rg_free(l->scans);
}

static int loop_room(struct loop *l, struct rg_error *err)
{
	size_t in = (size_t)l->g->n_inputs + 1, out = (size_t)l->g->n_outputs + 1;

	l->state = rg_calloc((size_t)l->n_state + 1, sizeof(*l->state));
	l->in = rg_calloc(in, sizeof(*l->in));
	l->out = rg_calloc(out, sizeof(*l->out));
	l->scans = rg_calloc((size_t)l->n_scan + 1, sizeof(*l->scans));
	if (!l->state || !l->in || !l->out || !l->scans)
		return rg_error_nomem(err, (in + out) * sizeof(*l->in));
	return 0;
}

/* Runs the body once; then state and scans hold what it gave. */
static int iterate(const struct rg_site *s, struct loop *l, int first_state, int first_scan, struct rg_error *err)
{
	int rc = rg_body_run(s, l->body, l->g->n_inputs, l->in, l->out, err);

	for (int k = 0; k < l->n_state && !rc; k++) {
		rg_item_unref(l->state[k]);
		l->state[k] = l->out[first_state + k];
		l->out[first_state + k] = NULL;
	}
	for (int k = 0; k < l->n_scan && !rc; k++) {
		struct rg_item *item = l->out[first_scan + k];

		l->out[first_scan + k] = NULL;
		rc = push(&l->scans[k], item, err);
		if (!rc)
			rc = rg_site_room(s, l->scans[k].bytes, err);
	}
	return rc;
}

static int loop_begin(const struct rg_site *s, struct loop *l, struct rg_error *err)
{
	l->body = rg_site_body(s, "body", err);
	if (!l->body)
		return err->code;
	l->g = rg_body_graph(l->body);
	l->n_state = s->n->n_in > 2 ? s->n->n_in - 2 : 0;
	l->n_scan = l->g->n_outputs - 1 - l->n_state;
	if (l->g->n_inputs != l->n_state + 2 || l->n_scan < 0 || s->n->n_out > l->n_state + l->n_scan)
		return rg_error_set(err, -EINVAL, "%d inputs and %d outputs do not go with a body of %d and %d",
				    s->n->n_in, s->n->n_out, l->g->n_inputs, l->g->n_outputs);
	if (loop_room(l, err))
		return err->code;
	for (int k = 0; k < l->n_state; k++) {
		l->state[k] = rg_site_has(s, k + 2) ? rg_site_item(s, k + 2, err) : rg_item_none(err);
		if (!l->state[k])
			return err->code;
	}
	return 0;
}

static int loop_round(const struct rg_site *s, struct loop *l, int64_t i, bool *go_on, struct rg_error *err)
{
	int rc;

	l->in[0] = rg_item_scalar(RG_I64, i, err);
	l->in[1] = l->in[0] ? rg_item_scalar(RG_BOOL, *go_on, err) : NULL;
	if (!l->in[1]) {
		rg_item_unref(l->in[0]);
		return err->code;
	}
	for (int k = 0; k < l->n_state; k++)
		l->in[k + 2] = rg_item_ref(l->state[k]);
	rc = iterate(s, l, 1, 1 + l->n_state, err);
	if (!rc)
		rc = read_bool(l->out[0], go_on, err);
	if (l->out[0])
		drop_items(l->out, 1);
	return rc;
}

static int run_loop(const struct rg_site *s, struct rg_error *err)
{
	int64_t trips = INT64_MAX, cond = 1;
	struct loop l = { 0 };
	int rc = loop_begin(s, &l, err);
	bool go_on;

	if (!rc && rg_site_has(s, 0))
		rc = rg_site_int(s, 0, &trips, err);
	if (!rc && rg_site_has(s, 1))
		rc = rg_site_int(s, 1, &cond, err);
	go_on = cond != 0;
	for (int64_t i = 0; !rc && go_on && i < trips; i++) {
		rc = loop_round(s, &l, i, &go_on, err);
		if (rc)
			rg_error_at(err, "iteration %lld", (long long)i);
	}
	for (int k = 0; k < l.n_state && !rc; k++) {
		rc = rg_site_give(s, k, l.state[k], err);
		l.state[k] = NULL;
	}
	for (int k = 0; k < l.n_scan && !rc; k++)
		if (l.n_state + k < s->n->n_out)
			rc = rg_site_give(s, l.n_state + k, stack(&l.scans[k], l.g, 1 + l.n_state + k, 0, err), err);
	loop_free(&l);
	return rc;
}

/* ---- Scan ---- */

/* Attribute lists of Scan-9: one entry a scan input or output, 0 by default. */
static int64_t entry(const struct rg_node *n, const char *attr, int k)
{
	const int64_t *v;
	int count = rg_node_ints(n, attr, &v);

	return k < count ? v[k] : 0;
}

struct scan {
	struct loop l;
	int first;                /* node input of the first state: Scan-8 has sequence_lens before */
	struct rg_tensor *xs;     /* what is scanned: l.g->n_inputs - l.n_state of them */
	int n_xs;
	int64_t length;
	bool batched;             /* Scan-8: everything has a batch dimension in front */
};

static int scan_begin(const struct rg_site *s, struct scan *c, struct rg_error *err)
{
	struct loop *l = &c->l;
	int64_t n_xs = rg_node_int(s->n, "num_scan_inputs", 0);

	l->body = rg_site_body(s, "body", err);
	if (!l->body)
		return err->code;
	l->g = rg_body_graph(l->body);
	c->batched = s->n->version == 8;
	c->first = c->batched ? 1 : 0;
	if (n_xs < 1 || n_xs > l->g->n_inputs || s->n->n_in - c->first != l->g->n_inputs)
		return rg_error_set(err, -EINVAL, "%d inputs, %lld of them scanned, do not go with a body of %d",
				    s->n->n_in - c->first, (long long)n_xs, l->g->n_inputs);
	c->n_xs = (int)n_xs;
	l->n_state = l->g->n_inputs - c->n_xs;
	l->n_scan = l->g->n_outputs - l->n_state;
	if (l->n_scan < 0 || s->n->n_out != l->g->n_outputs)
		return rg_error_set(err, -EINVAL, "%d outputs do not go with a body of %d", s->n->n_out,
				    l->g->n_outputs);
	for (int k = c->first; k < s->n->n_in; k++)
		if (s->n->in[k] < 0)
			return rg_error_set(err, -EINVAL, "input %d is missing", k);
	c->xs = rg_calloc((size_t)c->n_xs, sizeof(*c->xs));
	if (!c->xs)
		return rg_error_nomem(err, (size_t)c->n_xs * sizeof(*c->xs));
	return loop_room(l, err);
}

/* The scanned tensors, and how long they are along their axes. */
static int scan_inputs(const struct rg_site *s, struct scan *c, struct rg_error *err)
{
	for (int k = 0; k < c->n_xs; k++) {
		int axis, lead = c->batched ? 1 : 0;
		int64_t n;

		if (rg_site_tensor(s, c->first + c->l.n_state + k, &c->xs[k], err))
			return err->code;
		if (c->xs[k].shape.rank < lead + 1)
			return rg_error_set(err, -EINVAL, "scan input %d has rank %d", k, c->xs[k].shape.rank);
		axis = c->batched ? 1 : rg_item_axis(entry(s->n, "scan_input_axes", k), c->xs[k].shape.rank, err);
		if (axis < 0)
			return err->code;
		n = c->xs[k].shape.dim[axis];
		if (k > 0 && n != c->length)
			return rg_error_set(err, -EINVAL, "the scan inputs differ in length: %lld and %lld",
					    (long long)c->length, (long long)n);
		c->length = n;
	}
	return 0;
}

/* All iterations over `length` elements of xs. */
static int scan_all(const struct rg_site *s, struct scan *c, const struct rg_tensor *xs, int64_t length,
		    struct rg_error *err)
{
	const char *directions = c->batched ? "directions" : "scan_input_directions";
	int rc = 0;

	for (int64_t i = 0; i < length && !rc; i++) {
		for (int k = 0; k < c->n_xs && !rc; k++) {
			int axis = c->batched ? 0 : rg_item_axis(entry(s->n, "scan_input_axes", k), xs[k].shape.rank, err);
			int64_t at = entry(s->n, directions, k) ? length - 1 - i : i;
			struct rg_item *x = axis < 0 ? NULL : rg_item_slice(&xs[k], axis, at, 1, false, err);

			c->l.in[c->l.n_state + k] = x;
			if (!x) {
				drop_items(c->l.in + c->l.n_state, k);
				rc = err->code;
			}
		}
		for (int k = 0; k < c->l.n_state && !rc; k++)
			c->l.in[k] = rg_item_ref(c->l.state[k]);
		if (!rc)
			rc = iterate(s, &c->l, 0, c->l.n_state, err);
		if (rc)
			rg_error_at(err, "iteration %lld", (long long)i);
	}
	return rc;
}

/* Scan output k, in the direction that the node asks for. */
static struct rg_item *scan_output(const struct rg_site *s, struct scan *c, int k, int rank_axis, struct rg_error *err)
{
	struct list *l = &c->l.scans[k];

	if (!c->batched && entry(s->n, "scan_output_directions", k))
		for (size_t i = 0; i < l->n / 2; i++) {
			struct rg_item *t = l->v[i];

			l->v[i] = l->v[l->n - 1 - i];
			l->v[l->n - 1 - i] = t;
		}
	return stack(l, c->l.g, c->l.n_state + k, rank_axis, err);
}

static int scan_plain(const struct rg_site *s, struct scan *c, struct rg_error *err)
{
	struct loop *l = &c->l;
	int rc = 0;

	for (int k = 0; k < l->n_state; k++) {
		l->state[k] = rg_site_item(s, k, err);
		if (!l->state[k])
			return err->code;
	}
	rc = scan_all(s, c, c->xs, c->length, err);
	for (int k = 0; k < l->n_state && !rc; k++) {
		rc = rg_site_give(s, k, l->state[k], err);
		l->state[k] = NULL;
	}
	for (int k = 0; k < l->n_scan && !rc; k++) {
		const struct rg_value *v = &l->g->values[l->g->outputs[l->n_state + k]];
		int rank = l->scans[k].n ? l->scans[k].v[0]->t.shape.rank : v->declared_rank > 0 ? v->declared_rank : 0;
		int axis = rg_item_axis(entry(s->n, "scan_output_axes", k), rank + 1, err);

		rc = axis < 0 ? axis : rg_site_give(s, l->n_state + k, scan_output(s, c, k, axis, err), err);
	}
	return rc;
}

/* Fills up to `length` elements along axis 0 with zeros: shorter sequences of Scan-8. */
static struct rg_item *pad(struct rg_item *item, int64_t length, struct rg_error *err)
{
	struct rg_shape shape = item->t.shape;
	struct rg_item *to;
	size_t bytes;

	if (shape.dim[0] >= length)
		return item;
	bytes = (size_t)rg_tensor_bytes(item->t.dtype, &shape);
	shape.dim[0] = length;
	to = rg_item_new(item->t.dtype, &shape, 0, err);
	if (to && to->memory) {
		memset(to->memory, 0, (size_t)rg_tensor_bytes(item->t.dtype, &shape));
		if (bytes)
			memcpy(to->memory, item->t.data, bytes);
	}
	rg_item_unref(item);
	return to;
}

/* One sequence of the batch: cut out, scanned, its results kept. */
static int scan_one(const struct rg_site *s, struct scan *c, int64_t at, int64_t length, struct rg_tensor *xs,
		    struct rg_item **cut, struct list *done, struct rg_error *err)
{
	struct loop *l = &c->l;
	struct rg_tensor t;
	int rc = 0;

	for (int k = 0; k < l->n_state && !rc; k++) {
		rc = rg_site_tensor(s, c->first + k, &t, err);
		if (!rc && t.shape.rank < 1)
			rc = rg_error_set(err, -EINVAL, "state %d has no batch dimension", k);
		if (!rc) {
			rg_item_unref(l->state[k]);
			l->state[k] = at < t.shape.dim[0] ? rg_item_slice(&t, 0, at, 1, false, err) : NULL;
			if (!l->state[k] && !err->code)
				rg_error_set(err, -EINVAL, "state %d has %lld batches", k, (long long)t.shape.dim[0]);
			rc = err->code;
		}
	}
	for (int k = 0; k < c->n_xs && !rc; k++) {
		if (at >= c->xs[k].shape.dim[0])
			rc = rg_error_set(err, -EINVAL, "scan input %d has too few batches", k);
		rg_item_unref(cut[k]);
		cut[k] = rc ? NULL : rg_item_slice(&c->xs[k], 0, at, 1, false, err);
		rc = err->code;
		if (cut[k])
			xs[k] = cut[k]->t;
	}
	if (!rc)
		rc = scan_all(s, c, xs, length, err);
	for (int k = 0; k < l->n_state && !rc; k++) {
		rc = push(&done[k], l->state[k], err);
		l->state[k] = NULL;
	}
	for (int k = 0; k < l->n_scan && !rc; k++) {
		struct rg_item *item = scan_output(s, c, k, 0, err);

		item = item ? pad(item, c->length, err) : NULL;
		rc = item ? push(&done[l->n_state + k], item, err) : err->code;
		drop(&l->scans[k]);
	}
	return rc;
}

static int sequence_length(const struct rg_site *s, const struct scan *c, int64_t at, int64_t *out,
			   struct rg_error *err)
{
	struct rg_tensor t;

	*out = c->length;
	if (!rg_site_has(s, 0))
		return 0;
	if (rg_site_tensor(s, 0, &t, err))
		return err->code;
	if (t.dtype != RG_I64 || rg_shape_count(&t.shape) <= at)
		return rg_error_set(err, -EINVAL, "sequence_lens must be one int64 a batch");
	*out = ((const int64_t *)t.data)[at];
	if (*out < 0 || *out > c->length)
		return rg_error_set(err, -EINVAL, "sequence_lens[%lld] is %lld, of %lld", (long long)at, (long long)*out,
				    (long long)c->length);
	return 0;
}

static int scan_batched(const struct rg_site *s, struct scan *c, struct rg_error *err)
{
	int n_out = c->l.g->n_outputs, rc = 0;
	struct rg_tensor *xs = rg_calloc((size_t)c->n_xs, sizeof(*xs));
	struct rg_item **cut = rg_calloc((size_t)c->n_xs, sizeof(*cut));
	struct list *done = rg_calloc((size_t)n_out + 1, sizeof(*done));
	int64_t length;

	if (!xs || !cut || !done)
		rc = rg_error_nomem(err, (size_t)n_out * sizeof(*done));
	if (!rc && c->xs[0].shape.dim[0] == 0)
		rc = rg_error_set(err, RG_ENOTSUP_MODEL, "a batch of no sequences");
	for (int64_t at = 0; !rc && at < c->xs[0].shape.dim[0]; at++) {
		rc = sequence_length(s, c, at, &length, err);
		if (!rc)
			rc = scan_one(s, c, at, length, xs, cut, done, err);
	}
	for (int k = 0; k < n_out && !rc; k++)
		rc = rg_site_give(s, k, stack(&done[k], c->l.g, k, 0, err), err);
	for (int k = 0; done && k < n_out; k++)
		drop(&done[k]);
	if (cut)
		drop_items(cut, c->n_xs);
	rg_free(done);
	rg_free(cut);
	rg_free(xs);
	return rc;
}

static int run_scan(const struct rg_site *s, struct rg_error *err)
{
	struct scan c = { 0 };
	int rc = scan_begin(s, &c, err);

	if (!rc)
		rc = scan_inputs(s, &c, err);
	if (!rc)
		rc = c.batched ? scan_batched(s, &c, err) : scan_plain(s, &c, err);
	loop_free(&c.l);
	rg_free(c.xs);
	return rc;
}

/* ---- SequenceMap ---- */

/* What the body gets of node input k in round i: an element of a sequence, a tensor as it is. */
static struct rg_item *map_input(const struct rg_site *s, int k, int i, struct rg_error *err)
{
	struct rg_item *item = rg_site_item(s, k, err), *element;

	if (!item || item->kind == RG_ITEM_TENSOR)
		return item;
	if (i >= item->n) {
		rg_error_set(err, -EINVAL, "input %d has %d elements, input 0 has more", k, item->n);
		rg_item_unref(item);
		return NULL;
	}
	element = rg_item_ref(item->v[i]);
	rg_item_unref(item);
	return element;
}

static int map_round(const struct rg_site *s, struct loop *l, int i, struct rg_error *err)
{
	for (int k = 0; k < s->n->n_in; k++) {
		l->in[k] = map_input(s, k, i, err);
		if (!l->in[k]) {
			drop_items(l->in, k);
			return err->code;
		}
	}
	return iterate(s, l, 0, 0, err);
}

static int run_sequence_map(const struct rg_site *s, struct rg_error *err)
{
	struct loop l = { 0 };
	struct rg_item *over = NULL;
	int rc = 0, n = 0;

	l.body = rg_site_body(s, "body", err);
	if (!l.body)
		return err->code;
	l.g = rg_body_graph(l.body);
	l.n_scan = l.g->n_outputs;
	if (l.g->n_inputs != s->n->n_in || l.g->n_outputs != s->n->n_out)
		return rg_error_set(err, -EINVAL, "%d inputs and %d outputs do not go with a body of %d and %d",
				    s->n->n_in, s->n->n_out, l.g->n_inputs, l.g->n_outputs);
	for (int k = 0; k < s->n->n_in; k++)
		if (!rg_site_has(s, k))
			return rg_error_set(err, -EINVAL, "input %d is missing", k);
	over = rg_site_item(s, 0, err);
	if (!over)
		return err->code;
	if (over->kind != RG_ITEM_SEQUENCE)
		rc = rg_error_set(err, -EINVAL, "input 0 is no sequence");
	n = over->n;
	rg_item_unref(over);
	if (!rc)
		rc = loop_room(&l, err);
	for (int i = 0; i < n && !rc; i++) {
		rc = map_round(s, &l, i, err);
		for (int k = 0; k < l.n_scan && !rc; k++)
			if (l.scans[k].v[i]->kind != RG_ITEM_TENSOR)
				rc = rg_error_set(err, RG_ENOTSUP_MODEL, "a sequence of what is no tensor");
		if (rc)
			rg_error_at(err, "element %d", i);
	}
	for (int k = 0; k < l.n_scan && !rc; k++) {
		struct list *list = &l.scans[k];
		struct rg_item *seq = rg_item_sequence(list->n ? list->v[0]->t.dtype :
						       l.g->values[l.g->outputs[k]].declared_dtype, (int)list->n,
						       list->v, err);

		list->n = 0; /* the references are the sequence's */
		rc = rg_site_give(s, k, seq, err);
	}
	loop_free(&l);
	return rc;
}

rg_exec_op_fn *rg_control_find(const char *op_type)
{
	static const struct { const char *name; rg_exec_op_fn *fn; } ops[] = {
		{ "If", run_if }, { "Loop", run_loop }, { "Scan", run_scan }, { "SequenceMap", run_sequence_map },
		{ "FlexAttention", rg_flex_attention_run },
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(op_type, ops[i].name) == 0)
			return ops[i].fn;
	return NULL;
}
