/* NonMaxSuppression and Unique: what src/graph selects, written out. */
#include <string.h>

#include "graph/nms.h"
#include "graph/unique.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

static int changed(struct rg_error *err)
{
	return rg_error_set(err, -EINVAL, "the data changed after the shapes were planned");
}

static int nms(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	int64_t planned = c->out[0].shape.dim[0];
	struct rg_nms a;
	int need = -1, rc = rg_nms_resolve(c->node, c->in, &a, &need, err);

	if (rc || planned == 0)
		return rc;
	return rg_nms_run(&a, c->scratch, c->out[0].data, planned) == planned ? 0 : changed(err);
}

static size_t nms_scratch(const struct rg_call *c, int lanes)
{
	return c->out[0].shape.dim[0] ? rg_nms_scratch_bytes(c->in[0].shape.dim[1]) : 0;
}

/* ---- Unique ---- */

static bool wanted(const struct rg_call *c, int i)
{
	return i < c->node->n_out && c->out[i].dtype != RG_UNDEFINED;
}

/* Slices of no elements are all the first one. */
static void unique_blank(const struct rg_call *c, const struct rg_unique *a)
{
	if (wanted(c, 1) && a->items)
		*(int64_t *)c->out[1].data = 0;
	if (wanted(c, 2) && a->items)
		memset(c->out[2].data, 0, (size_t)a->items * sizeof(int64_t));
	if (wanted(c, 3) && a->items)
		*(int64_t *)c->out[3].data = a->items;
}

/* The first of each kind, in the order of the output. */
static void copy_item(const struct rg_call *c, const struct rg_unique *a, int64_t item, int64_t place,
		      int64_t count)
{
	int64_t size = (int64_t)rg_dtype_bytes(c->in[0].dtype), run = a->inner * size;

	for (int64_t o = 0; o < a->outer; o++)
		memcpy((char *)c->out[0].data + (o * count + place) * run,
		       (const char *)c->in[0].data + (o * a->items + item) * run, (size_t)run);
}

static int unique(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const int64_t *first = NULL, *place = NULL;
	struct rg_unique a;
	int64_t count;
	int rc = rg_unique_resolve(c->node, &c->in[0], &a, err);

	if (rc)
		return rc;
	count = rg_unique_run(&a, &c->in[0], c->scratch, &first, &place);
	for (int i = 0; i < c->node->n_out; i++) {
		const struct rg_shape *s = &c->out[i].shape;

		if (wanted(c, i) && s->dim[i == 0 && a.axis >= 0 ? a.axis : 0] != (i == 2 ? a.items : count))
			return changed(err);
	}
	if (a.blank) {
		unique_blank(c, &a);
		return 0;
	}
	for (int64_t i = 0; wanted(c, 3) && i < count; i++)
		((int64_t *)c->out[3].data)[i] = 0;
	for (int64_t item = 0; item < a.items; item++) {
		int64_t at = place[first[item]];

		if (wanted(c, 2))
			((int64_t *)c->out[2].data)[item] = at;
		if (wanted(c, 3))
			((int64_t *)c->out[3].data)[at]++;
		if (first[item] != item)
			continue;
		if (wanted(c, 0))
			copy_item(c, &a, item, at, count);
		if (wanted(c, 1))
			((int64_t *)c->out[1].data)[at] = item;
	}
	return 0;
}

static size_t unique_scratch(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_unique a;

	return rg_unique_resolve(c->node, &c->in[0], &a, &err) ? 0 : rg_unique_scratch_bytes(&a);
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "NonMaxSuppression", .domain = "", .name = "ref", .scratch_bytes = nms_scratch, .run = nms },
	{ .op_type = "Unique", .domain = "", .name = "ref", .scratch_bytes = unique_scratch, .run = unique },
};
RG_KERNEL_TABLE(rg_kernels_ref_distinct, kernels);
