/* NonMaxSuppression and Unique: outputs as long as the data says. */
#include "base/alloc.h"
#include "graph/nms.h"
#include "graph/op-families.h"
#include "graph/op-types.h"
#include "graph/unique.h"

enum { MAX_IN = 5 };

static void as_tensors(const struct rg_infer *c, struct rg_tensor *t)
{
	for (int i = 0; i < MAX_IN; i++) {
		const struct rg_value *v = rg_infer_in(c, i);

		t[i] = (struct rg_tensor){ .dtype = RG_UNDEFINED };
		if (v)
			t[i] = (struct rg_tensor){ v->dtype, v->shape, (void *)v->data };
	}
}

/* Scratch for the search that inference runs; never of no size. */
static void *scratch_of(size_t bytes, struct rg_error *err)
{
	void *p = rg_alloc_aligned(64, bytes ? bytes : 64);

	if (!p)
		rg_error_nomem(err, bytes);
	return p;
}

static int infer_nms(struct rg_infer *c, struct rg_error *err)
{
	struct rg_shape s = { .rank = 2, .dim = { 0, 3 } };
	struct rg_tensor in[MAX_IN];
	struct rg_nms a;
	void *scratch;
	int rc;

	as_tensors(c, in);
	rc = rg_nms_resolve(c->node, in, &a, &c->need_value, err);
	if (rc)
		return rc;
	scratch = scratch_of(a.batches > 0 && a.classes > 0 ? rg_nms_scratch_bytes(a.boxes) : 0, err);
	if (!scratch)
		return err->code;
	s.dim[0] = rg_nms_run(&a, scratch, NULL, 0);
	rg_free(scratch);
	rg_infer_out(c, 0, RG_I64, &s);
	return 0;
}

static int infer_unique(struct rg_infer *c, struct rg_error *err)
{
	const struct rg_value *v = c->in[0];
	const int64_t *first = NULL, *place = NULL;
	struct rg_shape y, n = { .rank = 1 }, items = { .rank = 1 };
	struct rg_tensor x;
	struct rg_unique a;
	void *scratch;
	int rc;

	if (!v)
		return rg_infer_fail(c, err, "input 0 is missing");
	x = (struct rg_tensor){ v->dtype, v->shape, (void *)v->data };
	rc = rg_unique_resolve(c->node, &x, &a, err);
	if (rc)
		return rc;
	if (!rg_infer_known(c, 0) && a.items > 0 && !a.blank) {
		c->need_value = 0;
		return rg_error_set(err, RG_ENEED_VALUE,
				    "Unique: the output shape depends on the value of input 0 ('%s')",
				    v->name);
	}
	scratch = scratch_of(rg_unique_scratch_bytes(&a), err);
	if (!scratch)
		return err->code;
	n.dim[0] = rg_unique_run(&a, &x, scratch, &first, &place);
	rg_free(scratch);
	items.dim[0] = a.items;
	y = a.axis < 0 ? n : v->shape;
	if (a.axis >= 0)
		y.dim[a.axis] = n.dim[0];
	rg_infer_out(c, 0, v->dtype, &y);
	rg_infer_out(c, 1, RG_I64, &n);
	rg_infer_out(c, 2, RG_I64, &items);
	rg_infer_out(c, 3, RG_I64, &n);
	return 0;
}

const struct rg_op rg_ops_distinct[] = {
	{ "", "NonMaxSuppression", RG_KIND_OTHER, 0, 2, 5, 1, 1, { 10, 11 }, 10, 11, infer_nms, NULL },
	{ "", "Unique", RG_KIND_OTHER, 0, 1, 1, 1, 4, { 11 }, 11, 11, infer_unique, NULL },
};
RG_OP_FAMILY_END(distinct);
