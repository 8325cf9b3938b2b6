/* NonMaxSuppression: arguments and selection; see nms.h. */
#include "graph/nms.h"

#include <math.h>
#include <string.h>

#include "graph/op-args.h"

static const struct rg_tensor *present(const struct rg_node *n, const struct rg_tensor *in, int i)
{
	return i < n->n_in && in[i].dtype != RG_UNDEFINED ? &in[i] : NULL;
}

static int check(const struct rg_node *n, const struct rg_tensor *in, int i, enum rg_dtype t, int rank,
		 struct rg_error *err)
{
	const struct rg_tensor *x = present(n, in, i);

	if (!x && i > 1)
		return 0;
	if (!x)
		return rg_error_set(err, -EINVAL, "%s: input %d is missing", n->op_type, i);
	if (x->dtype != t)
		return rg_error_set(err, -EINVAL, "%s: input %d must be %s, not %s", n->op_type, i,
				    rg_dtype_name(t), rg_dtype_name(x->dtype));
	if (rank >= 0 ? x->shape.rank != rank : rg_shape_count(&x->shape) != 1)
		return rg_error_set(err, -EINVAL, rank >= 0 ? "%s: input %d must have %d dimensions" :
				    "%s: input %d must be one number", n->op_type, i, rank);
	return 0;
}

static int check_all(const struct rg_node *n, const struct rg_tensor *in, int *need_value, struct rg_error *err)
{
	static const struct {
		enum rg_dtype t;
		int rank;
	} want[] = {{RG_F32, 3}, {RG_F32, 3}, {RG_I64, -1}, {RG_F32, -1}, {RG_F32, -1}};

	for (int i = 0; i < 5; i++) {
		int rc = check(n, in, i, want[i].t, want[i].rank, err);

		if (rc)
			return rc;
	}
	for (int i = 0; i < 5; i++) {
		const struct rg_tensor *x = present(n, in, i);

		if (!x || x->data || rg_shape_count(&x->shape) == 0)
			continue;
		*need_value = i;
		return rg_error_set(err, RG_ENEED_VALUE, "%s: the output shape depends on the value of input %d",
				    n->op_type, i);
	}
	return 0;
}

int rg_nms_resolve(const struct rg_node *n, const struct rg_tensor *in, struct rg_nms *a, int *need_value,
		   struct rg_error *err)
{
	int64_t centre = rg_node_int(n, "center_point_box", 0);
	const struct rg_shape *b, *s;
	int rc;

	memset(a, 0, sizeof(*a));
	if (centre != 0 && centre != 1)
		return rg_error_set(err, -EINVAL, "%s: center_point_box is %lld, not 0 or 1", n->op_type,
				    (long long)centre);
	rc = check_all(n, in, need_value, err);
	if (rc)
		return rc;
	b = &in[0].shape;
	s = &in[1].shape;
	if (b->dim[2] != 4 || s->dim[0] != b->dim[0] || s->dim[2] != b->dim[1])
		return rg_error_set(err, -EINVAL,
				    "%s: boxes must be batches x boxes x 4, scores batches x classes x "
				    "boxes",
				    n->op_type);
	a->batches = b->dim[0];
	a->boxes = b->dim[1];
	a->classes = s->dim[1];
	a->box = in[0].data;
	a->score = in[1].data;
	a->centre = centre == 1;
	a->most = present(n, in, 2) ? *(const int64_t *)in[2].data : 0;
	a->iou = present(n, in, 3) ? *(const float *)in[3].data : 0;
	a->has_floor = present(n, in, 4) != NULL;
	a->floor = a->has_floor ? *(const float *)in[4].data : 0;
	if (!(a->iou >= 0 && a->iou <= 1))
		return rg_error_set(err, -EINVAL, "%s: iou_threshold is %g, not in [0, 1]", n->op_type,
				    (double)a->iou);
	return 0;
}

/* ---- the selection ---- */

struct candidate {
	float score;
	int64_t index;
};

/* Whether b is to be looked at before a. */
static bool later(const struct candidate *a, const struct candidate *b)
{
	if (isnan(a->score) || isnan(b->score))
		return isnan(a->score) && (!isnan(b->score) || b->index < a->index);
	return a->score != b->score ? b->score > a->score : b->index < a->index;
}

/* Heap with the best on top: puts v into the hole at `at` of n. */
static void sift_down(struct candidate *heap, int64_t n, int64_t at, struct candidate v)
{
	for (;;) {
		int64_t child = 2 * at + 1;

		if (child >= n)
			break;
		if (child + 1 < n && later(&heap[child], &heap[child + 1]))
			child++;
		if (!later(&v, &heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = v;
}

static void span(const float *box, bool centre, int axis, float *low, float *high)
{
	if (centre) { /* axis 0 is y: entries 1 and 3 */
		float middle = box[axis ? 0 : 1], half = box[axis ? 2 : 3] / 2;

		*low = middle - half;
		*high = middle + half;
	} else {
		float a = box[axis], b = box[axis + 2];

		*low = a < b ? a : b;
		*high = a < b ? b : a;
	}
}

static bool overlap(const struct rg_nms *p, const float *a, const float *b)
{
	float both = 1, area_a = 1, area_b = 1, all;

	for (int axis = 0; axis < 2; axis++) {
		float a0, a1, b0, b1, low, high;

		span(a, p->centre, axis, &a0, &a1);
		span(b, p->centre, axis, &b0, &b1);
		low = a0 > b0 ? a0 : b0;
		high = a1 < b1 ? a1 : b1;
		if (!(high > low))
			return false;
		both *= high - low;
		area_a *= a1 - a0;
		area_b *= b1 - b0;
	}
	all = area_a + area_b - both;
	if (!(both > 0 && area_a > 0 && area_b > 0 && all > 0))
		return false;
	return both / all > p->iou;
}

/* One batch and class; the kept indices go into `kept`. */
static int64_t select_class(const struct rg_nms *a, const float *box, const float *score, struct candidate *heap,
			    int64_t *kept)
{
	int64_t n = 0, count = 0;

	for (int64_t i = 0; i < a->boxes; i++)
		if (!a->has_floor || score[i] > a->floor)
			heap[n++] = (struct candidate){ score[i], i };
	for (int64_t i = n / 2 - 1; i >= 0; i--)
		sift_down(heap, n, i, heap[i]);
	while (n > 0 && count < a->most) {
		int64_t best = heap[0].index;
		bool out = false;

		n--;
		sift_down(heap, n, 0, heap[n]);
		for (int64_t k = 0; k < count && !out; k++)
			out = overlap(a, box + 4 * best, box + 4 * kept[k]);
		if (!out)
			kept[count++] = best;
	}
	return count;
}

size_t rg_nms_scratch_bytes(int64_t boxes)
{
	return (size_t)boxes * (sizeof(struct candidate) + sizeof(int64_t));
}

int64_t rg_nms_run(const struct rg_nms *a, void *scratch, int64_t *out, int64_t cap)
{
	struct candidate *heap = scratch;
	int64_t *kept = (int64_t *)(heap + a->boxes), total = 0;

	if (a->boxes == 0 || a->most <= 0)
		return 0;
	for (int64_t i = 0; i < a->batches * a->classes; i++) {
		int64_t batch = i / a->classes;
		int64_t n = select_class(a, a->box + batch * a->boxes * 4, a->score + i * a->boxes, heap, kept);

		for (int64_t k = 0; out && k < n && total + k < cap; k++) {
			out[(total + k) * 3] = batch;
			out[(total + k) * 3 + 1] = i % a->classes;
			out[(total + k) * 3 + 2] = kept[k];
		}
		total += n;
	}
	return total;
}
