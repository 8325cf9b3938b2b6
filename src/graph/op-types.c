/* Checks of inputs and sums of costs that the families of operators share. */
#include "graph/op-types.h"

const struct rg_value *rg_infer_in(const struct rg_infer *c, int i)
{
	return i < c->node->n_in ? c->in[i] : NULL;
}

int rg_infer_type(struct rg_infer *c, int i, uint32_t set, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);

	if (!v)
		return rg_infer_fail(c, err, "input %d is missing", i);
	if (!rg_in_set(v->dtype, set))
		return rg_infer_fail(c, err, "input %d ('%s') cannot be of type %s", i, v->name,
				     rg_dtype_name(v->dtype));
	return 0;
}

int rg_infer_like(struct rg_infer *c, int i, int like, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i), *first = rg_infer_in(c, like);

	if (!first)
		return rg_infer_fail(c, err, "input %d is missing", like);
	if (v && v->dtype != first->dtype)
		return rg_infer_fail(c, err, "inputs '%s' (%s) and '%s' (%s) differ in type", first->name,
				     rg_dtype_name(first->dtype), v->name, rg_dtype_name(v->dtype));
	return 0;
}

int rg_infer_scalar(struct rg_infer *c, int i, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);
	char text[160];

	if (v && rg_shape_count(&v->shape) != 1)
		return rg_infer_fail(c, err, "input %d ('%s') must have one element, its shape is %s", i,
				     v->name, rg_shape_text(text, &v->shape));
	return 0;
}

int rg_infer_shape_is(struct rg_infer *c, int i, const struct rg_shape *s, struct rg_error *err)
{
	const struct rg_value *v = rg_infer_in(c, i);
	char is[160], must[160];

	if (v && !rg_shape_equal(&v->shape, s))
		return rg_infer_fail(c, err, "input %d ('%s') has shape %s, not %s", i, v->name,
				     rg_shape_text(is, &v->shape), rg_shape_text(must, s));
	return 0;
}

int64_t rg_cost_mul(int64_t a, int64_t b)
{
	int64_t r;

	return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? -1 : r;
}

int64_t rg_cost_add(int64_t a, int64_t b)
{
	int64_t r;

	return a < 0 || b < 0 || __builtin_add_overflow(a, b, &r) ? -1 : r;
}

void rg_cost_elementwise(const struct rg_cost_in *c, struct rg_cost *out, int flops, int sfu)
{
	int64_t n;

	if (c->node->n_out < 1)
		return;
	n = rg_shape_count(&c->out[0].shape);
	if (rg_dtype_is_float(c->out[0].dtype)) {
		out->flops = rg_cost_mul(n, flops);
		out->sfu = rg_cost_mul(n, sfu);
		out->iops = 0;
	} else {
		out->iops = rg_cost_mul(n, flops + sfu);
		out->flops = out->sfu = 0;
	}
}
