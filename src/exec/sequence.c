/* Sequences and optionals, and the cutting and joining of tensors that they and
 * control flow need. */
#include <string.h>

#include "base/alloc.h"
#include "exec/dynamic-internal.h"
#include "graph/op-args.h"
#include "graph/op.h"

/* ---- cutting and joining ---- */

static int need_bytes(enum rg_dtype t, struct rg_error *err)
{
	if (rg_dtype_bytes(t) > 0)
		return 0;
	return rg_error_set(err, RG_ENOTSUP_MODEL, "tensors of %s cannot be cut or joined", rg_dtype_name(t));
}

struct rg_item *rg_item_slice(const struct rg_tensor *t, int axis, int64_t at, int64_t count, bool keep,
			      struct rg_error *err)
{
	size_t size = rg_dtype_bytes(t->dtype);
	int64_t outer = rg_shape_count_range(&t->shape, 0, axis), dim = t->shape.dim[axis];
	int64_t inner = rg_shape_count_range(&t->shape, axis + 1, t->shape.rank);
	struct rg_shape shape = t->shape;
	struct rg_item *to;

	if (need_bytes(t->dtype, err))
		return NULL;
	shape.dim[axis] = count;
	if (!keep) {
		for (int i = axis; i + 1 < shape.rank; i++)
			shape.dim[i] = shape.dim[i + 1];
		shape.rank--;
	}
	to = rg_item_new(t->dtype, &shape, 0, err);
	if (!to || !to->memory)
		return to;
	size *= (size_t)inner;
	for (int64_t o = 0; o < outer; o++)
		memcpy((char *)to->memory + (size_t)(o * count) * size,
		       (const char *)t->data + (size_t)(o * dim + at) * size, (size_t)count * size);
	return to;
}

int rg_item_axis(int64_t axis, int rank, struct rg_error *err)
{
	int at = rg_args_axis(axis, rank);

	return at >= 0 ? at : rg_error_set(err, -EINVAL, "axis %lld is outside of a tensor of rank %d",
					   (long long)axis, rank);
}

/* Whether two tensors can be joined along an axis. */
static int check_alike(const struct rg_tensor *a, const struct rg_tensor *b, int axis, bool concat,
		       struct rg_error *err)
{
	char x[160], y[160];
	bool same = a->dtype == b->dtype && a->shape.rank == b->shape.rank;

	for (int i = 0; same && i < a->shape.rank; i++)
		same = a->shape.dim[i] == b->shape.dim[i] || (concat && i == axis);
	if (same)
		return 0;
	return rg_error_set(err, -EINVAL, "%s %s and %s %s cannot be joined", rg_dtype_name(a->dtype),
			    rg_shape_text(x, &a->shape), rg_dtype_name(b->dtype), rg_shape_text(y, &b->shape));
}

/* The joined shape. */
static int joined_shape(struct rg_item *const *v, int n, int axis, bool concat, struct rg_shape *out,
			struct rg_error *err)
{
	const struct rg_tensor *first = &v[0]->t;

	*out = first->shape;
	if (!concat) {
		if (out->rank >= RG_MAX_RANK)
			return rg_error_set(err, RG_ENOTSUP_MODEL, "joining would give more than %d dimensions", RG_MAX_RANK);
		for (int i = out->rank++; i > axis; i--)
			out->dim[i] = out->dim[i - 1];
		out->dim[axis] = n;
		return 0;
	}
	out->dim[axis] = 0;
	for (int i = 0; i < n; i++)
		if (__builtin_add_overflow(out->dim[axis], v[i]->t.shape.dim[axis], &out->dim[axis]))
			return rg_error_set(err, -EOVERFLOW, "the joined dimension overflows");
	return 0;
}

struct rg_item *rg_item_join(struct rg_item *const *v, int n, int axis, bool concat, struct rg_error *err)
{
	const struct rg_tensor *first = &v[0]->t;
	struct rg_shape shape;
	struct rg_item *to;
	int64_t outer;
	size_t size;
	char *p;

	for (int i = 0; i < n; i++) {
		if (v[i]->kind != RG_ITEM_TENSOR) {
			rg_error_set(err, RG_ENOTSUP_MODEL, "only tensors can be joined");
			return NULL;
		}
		if (check_alike(first, &v[i]->t, axis, concat, err))
			return NULL;
	}
	if (need_bytes(first->dtype, err) || joined_shape(v, n, axis, concat, &shape, err))
		return NULL;
	to = rg_item_new(first->dtype, &shape, 0, err);
	if (!to || !to->memory)
		return to;
	outer = rg_shape_count_range(&shape, 0, axis);
	size = rg_dtype_bytes(first->dtype) * (size_t)rg_shape_count_range(&shape, axis + 1, shape.rank);
	p = to->memory;
	for (int64_t o = 0; o < outer; o++) {
		for (int i = 0; i < n; i++) {
			size_t bytes = size * (size_t)(concat ? v[i]->t.shape.dim[axis] : 1);

			if (bytes)
				memcpy(p, (const char *)v[i]->t.data + (size_t)o * bytes, bytes);
			p += bytes;
		}
	}
	return to;
}

/* ---- sequences ---- */

/* Input k as a sequence, a new reference. */
static struct rg_item *sequence_in(const struct rg_site *s, int k, struct rg_error *err)
{
	struct rg_item *item = rg_site_item(s, k, err);

	if (item && item->kind != RG_ITEM_SEQUENCE) {
		rg_error_set(err, -EINVAL, "input %d is no sequence", k);
		rg_item_unref(item);
		return NULL;
	}
	return item;
}

static int run_empty(const struct rg_site *s, struct rg_error *err)
{
	int64_t t = rg_node_int(s->n, "dtype", RG_F32);

	if (t <= 0 || t >= RG_DTYPE_COUNT)
		return rg_error_set(err, -EINVAL, "dtype %lld is not known", (long long)t);
	return rg_site_give(s, 0, rg_item_sequence((enum rg_dtype)t, 0, NULL, err), err);
}

/* Input k, as a tensor that may be kept. */
static struct rg_item *element_in(const struct rg_site *s, int k, struct rg_error *err)
{
	struct rg_item *item = rg_site_item(s, k, err);

	if (item && item->kind != RG_ITEM_TENSOR) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "input %d is no tensor", k);
		rg_item_unref(item);
		return NULL;
	}
	return item ? rg_item_own(item, err) : NULL;
}

static int run_construct(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item *seq = rg_item_sequence(RG_UNDEFINED, s->n->n_in, NULL, err);

	for (int k = 0; seq && k < s->n->n_in; k++) {
		if (!rg_site_has(s, k))
			rg_error_set(err, -EINVAL, "input %d is missing", k);
		else
			seq->v[k] = element_in(s, k, err);
		if (!seq->v[k] || (k > 0 && seq->v[k]->t.dtype != seq->t.dtype)) {
			if (seq->v[k])
				rg_error_set(err, -EINVAL, "the inputs differ in type: %s and %s",
					     rg_dtype_name(seq->t.dtype), rg_dtype_name(seq->v[k]->t.dtype));
			rg_item_unref(seq);
			return err->code;
		}
		seq->t.dtype = seq->v[k]->t.dtype;
	}
	return rg_site_give(s, 0, seq, err);
}

/* Input k as a position among n, counted from the end where negative. */
static int position(const struct rg_site *s, int k, int n, int dflt, int *out, struct rg_error *err)
{
	int64_t at;

	*out = dflt;
	if (!rg_site_has(s, k))
		return 0;
	if (rg_site_int(s, k, &at, err))
		return err->code;
	if (at < -n || at >= n)
		return rg_error_set(err, -ERANGE, "position %lld is outside of %d", (long long)at, n);
	*out = (int)(at < 0 ? at + n : at);
	return 0;
}

static int run_at(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item *seq = sequence_in(s, 0, err);
	int at = 0, rc;

	if (!seq)
		return err->code;
	rc = position(s, 1, seq->n, 0, &at, err);
	if (!rc)
		rc = rg_site_give(s, 0, rg_item_ref(seq->v[at]), err);
	rg_item_unref(seq);
	return rc;
}

/* A copy of a sequence without element `skip` (-1: none), with room for `extra` at `gap`. */
static struct rg_item *edit(const struct rg_item *seq, int skip, int gap, struct rg_error *err)
{
	int n = seq->n - (skip >= 0 ? 1 : 0) + (gap >= 0 ? 1 : 0);
	struct rg_item *to = rg_item_sequence(seq->t.dtype, n, NULL, err);

	for (int i = 0, k = 0; to && i < seq->n; i++) {
		if (k == gap)
			k++;
		if (i != skip)
			to->v[k++] = rg_item_ref(seq->v[i]);
	}
	return to;
}

static int run_insert(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item *seq = sequence_in(s, 0, err), *item = NULL, *to = NULL;
	int64_t at = seq ? seq->n : 0;

	if (!seq)
		return err->code;
	item = element_in(s, 1, err);
	if (item && rg_site_has(s, 2) && rg_site_int(s, 2, &at, err) == 0 && (at < -seq->n || at > seq->n))
		rg_error_set(err, -ERANGE, "position %lld is outside of %d", (long long)at, seq->n);
	else if (item && !err->code && seq->t.dtype != RG_UNDEFINED && seq->t.dtype != item->t.dtype)
		rg_error_set(err, -EINVAL, "a tensor of %s goes into a sequence of %s", rg_dtype_name(item->t.dtype),
			     rg_dtype_name(seq->t.dtype));
	if (at < 0)
		at += seq->n;
	if (!err->code && seq->n == INT32_MAX)
		rg_error_set(err, -E2BIG, "the sequence is full");
	if (!err->code && rg_site_room(s, rg_item_bytes(seq), err) == 0)
		to = edit(seq, -1, (int)at, err);
	if (to) {
		to->v[at] = item;
		to->t.dtype = item->t.dtype;
	} else {
		rg_item_unref(item);
	}
	rg_item_unref(seq);
	return to ? rg_site_give(s, 0, to, err) : err->code;
}

static int run_erase(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item *seq = sequence_in(s, 0, err);
	int at = 0, rc;

	if (!seq)
		return err->code;
	if (seq->n == 0)
		rc = rg_error_set(err, -ERANGE, "the sequence is empty");
	else
		rc = position(s, 1, seq->n, seq->n - 1, &at, err);
	if (!rc)
		rc = rg_site_give(s, 0, edit(seq, at, -1, err), err);
	rg_item_unref(seq);
	return rc;
}

static int run_length(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item *seq = sequence_in(s, 0, err);
	int n;

	if (!seq)
		return err->code;
	n = seq->n;
	rg_item_unref(seq);
	return rg_site_give(s, 0, rg_item_scalar(RG_I64, n, err), err);
}

/* Cuts x into pieces: `n` lengths, or equal ones of `each` (the last may be shorter). */
static int split_into(const struct rg_site *s, const struct rg_tensor *x, int axis, const int64_t *lengths, int n,
		      int64_t each, bool keep, struct rg_error *err)
{
	struct rg_item *seq = rg_item_sequence(x->dtype, n, NULL, err);
	int64_t at = 0, dim = x->shape.dim[axis];

	for (int k = 0; seq && k < n; k++) {
		int64_t length = lengths ? lengths[k] : each < dim - at ? each : dim - at;

		if (length < 0 || length > dim - at)
			rg_error_set(err, -EINVAL, "piece %d of %lld does not fit into %lld", k, (long long)length,
				     (long long)dim);
		else
			seq->v[k] = rg_item_slice(x, axis, at, length, keep, err);
		if (!seq->v[k]) {
			rg_item_unref(seq);
			return err->code;
		}
		at += length;
	}
	if (seq && at != dim) {
		rg_item_unref(seq);
		return rg_error_set(err, -EINVAL, "the pieces cover %lld of %lld", (long long)at, (long long)dim);
	}
	return rg_site_give(s, 0, seq, err);
}

/* A tensor without elements has dimensions as large as it likes. */
enum { MAX_PIECES = 1 << 20 };

static int too_many(int64_t pieces, struct rg_error *err)
{
	return rg_error_set(err, -E2BIG, "%lld pieces, at most %d are supported", (long long)pieces, MAX_PIECES);
}

static int run_split(const struct rg_site *s, struct rg_error *err)
{
	struct rg_tensor x, split;
	int64_t *lengths, dim, each = 1, n;
	int axis, rc;

	if (rg_site_tensor(s, 0, &x, err))
		return err->code;
	axis = rg_item_axis(rg_node_int(s->n, "axis", 0), x.shape.rank, err);
	if (axis < 0)
		return axis;
	dim = x.shape.dim[axis];
	if (!rg_site_has(s, 1) && dim > MAX_PIECES)
		return too_many(dim, err);
	if (!rg_site_has(s, 1))
		return split_into(s, &x, axis, NULL, (int)dim, 1, rg_node_int(s->n, "keepdims", 1) != 0, err);
	if (rg_site_tensor(s, 1, &split, err))
		return err->code;
	if (split.shape.rank == 0) {
		if (rg_site_int(s, 1, &each, err))
			return err->code;
		if (each <= 0)
			return rg_error_set(err, -EINVAL, "pieces of %lld", (long long)each);
		if (dim / each >= MAX_PIECES)
			return too_many(dim / each, err);
		return split_into(s, &x, axis, NULL, (int)(dim / each + (dim % each != 0)), each, true, err);
	}
	n = rg_shape_count(&split.shape);
	if (split.shape.rank != 1 || (split.dtype != RG_I64 && split.dtype != RG_I32) )
		return rg_error_set(err, -EINVAL, "split must be a list of int32 or int64");
	if (n > MAX_PIECES)
		return too_many(n, err);
	lengths = rg_calloc((size_t)n + 1, sizeof(*lengths));
	if (!lengths)
		return rg_error_nomem(err, (size_t)n * sizeof(*lengths));
	for (int64_t i = 0; i < n; i++)
		lengths[i] = split.dtype == RG_I64 ? ((const int64_t *)split.data)[i] : ((const int32_t *)split.data)[i];
	rc = split_into(s, &x, axis, lengths, (int)n, 0, true, err);
	rg_free(lengths);
	return rc;
}

static int run_concat(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item *seq = sequence_in(s, 0, err), *to = NULL;
	bool stack = rg_node_int(s->n, "new_axis", 0) != 0;
	int axis;

	if (!seq)
		return err->code;
	if (seq->n == 0) {
		rg_error_set(err, -EINVAL, "the sequence is empty");
	} else {
		axis = rg_item_axis(rg_node_int(s->n, "axis", 0), seq->v[0]->t.shape.rank + (stack ? 1 : 0), err);
		if (axis >= 0)
			to = rg_item_join(seq->v, seq->n, axis, !stack, err);
	}
	rg_item_unref(seq);
	return to ? rg_site_give(s, 0, to, err) : err->code;
}

/* ---- optionals ---- */

static int run_optional(const struct rg_site *s, struct rg_error *err)
{
	return rg_site_give(s, 0, rg_site_has(s, 0) ? rg_site_item(s, 0, err) : rg_item_none(err), err);
}

static int run_get(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item *item = rg_site_item(s, 0, err);

	if (item && item->kind == RG_ITEM_NONE) {
		rg_item_unref(item);
		return rg_error_set(err, -EINVAL, "the optional is empty");
	}
	return rg_site_give(s, 0, item, err);
}

static int run_has(const struct rg_site *s, struct rg_error *err)
{
	struct rg_item *item;
	bool has = false;

	if (rg_site_has(s, 0)) {
		item = rg_site_item(s, 0, err);
		if (!item)
			return err->code;
		has = item->kind != RG_ITEM_NONE;
		rg_item_unref(item);
	}
	return rg_site_give(s, 0, rg_item_scalar(RG_BOOL, has, err), err);
}

rg_exec_op_fn *rg_sequence_find(const char *op_type)
{
	static const struct { const char *name; rg_exec_op_fn *fn; } ops[] = {
		{ "ConcatFromSequence", run_concat },
		{ "Optional", run_optional },
		{ "OptionalGetElement", run_get },
		{ "OptionalHasElement", run_has },
		{ "SequenceAt", run_at },
		{ "SequenceConstruct", run_construct },
		{ "SequenceEmpty", run_empty },
		{ "SequenceErase", run_erase },
		{ "SequenceInsert", run_insert },
		{ "SequenceLength", run_length },
		{ "SplitToSequence", run_split },
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(op_type, ops[i].name) == 0)
			return ops[i].fn;
	return NULL;
}
