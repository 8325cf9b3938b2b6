/*
 * Add, Sub, Mul, Div with broadcasting, float32. Dimensions that both operands
 * walk in step are merged first, which leaves, in real models, one or two:
 * same shapes, a scalar, a bias along the last axis, a factor a channel.
 */
#include "kernels/generic/generic.h"

#include "kernels/tables.h"

struct job {
	const float *a, *b;
	float *y;
	int rank;                  /* outer dimensions */
	int64_t dim[RG_MAX_RANK], step_a[RG_MAX_RANK], step_b[RG_MAX_RANK];
	int64_t inner, inner_a, inner_b; /* last dimension; steps 0 or 1 */
	int64_t cut, cuts;         /* a row is worked on in pieces of `cut` */
};

#define ROW(NAME, OP) \
	static void row_##NAME(const float *restrict a, int64_t sa, const float *restrict b, int64_t sb, \
			       float *restrict y, int64_t n) \
	{ \
		if (sa && sb) { \
			for (int64_t i = 0; i < n; i++) \
				y[i] = a[i] OP b[i]; \
		} else if (sa) { \
			const float v = *b; \
\
			for (int64_t i = 0; i < n; i++) \
				y[i] = a[i] OP v; \
		} else if (sb) { \
			const float v = *a; \
\
			for (int64_t i = 0; i < n; i++) \
				y[i] = v OP b[i]; \
		} else { \
			const float v = *a OP *b; \
\
			for (int64_t i = 0; i < n; i++) \
				y[i] = v; \
		} \
	} \
	static void work_##NAME(void *arg, int64_t begin, int64_t end, int lane) \
	{ \
		const struct job *j = arg; \
\
		for (int64_t i = begin; i < end; i++) { \
			int64_t row = i / j->cuts, at = i % j->cuts * j->cut, rest = row, oa = 0, ob = 0; \
			int64_t n = j->inner - at < j->cut ? j->inner - at : j->cut; \
\
			for (int d = j->rank - 1; d >= 0; d--) { \
				oa += rest % j->dim[d] * j->step_a[d]; \
				ob += rest % j->dim[d] * j->step_b[d]; \
				rest /= j->dim[d]; \
			} \
			row_##NAME(j->a + oa + at * j->inner_a, j->inner_a, j->b + ob + at * j->inner_b, j->inner_b, \
				   j->y + row * j->inner + at, n); \
		} \
	}

ROW(add, +)
ROW(sub, -)
ROW(mul, *)
ROW(div, /)

enum { CUT = 4096 };

/* Merges neighbours that both operands walk in step; false: an odd stride. */
static bool setup(const struct rg_call *c, struct job *j)
{
	const struct rg_shape *out = &c->out[0].shape;
	int64_t sa[RG_MAX_RANK], sb[RG_MAX_RANK];

	memset(j, 0, sizeof(*j));
	rg_shape_broadcast_strides(&c->in[0].shape, out, sa);
	rg_shape_broadcast_strides(&c->in[1].shape, out, sb);
	for (int d = 0; d < out->rank; d++) {
		int r = j->rank;

		if (out->dim[d] == 1)
			continue;
		if (r && j->step_a[r - 1] == sa[d] * out->dim[d] && j->step_b[r - 1] == sb[d] * out->dim[d])
			r--;
		else
			j->dim[r] = 1;
		j->dim[r] *= out->dim[d];
		j->step_a[r] = sa[d];
		j->step_b[r] = sb[d];
		j->rank = r + 1;
	}
	j->inner = 1;
	if (j->rank) {
		j->rank--;
		j->inner = j->dim[j->rank];
		j->inner_a = j->step_a[j->rank];
		j->inner_b = j->step_b[j->rank];
	}
	j->cut = j->inner < CUT ? j->inner : CUT;
	j->cuts = j->cut ? (j->inner + j->cut - 1) / j->cut : 0;
	return j->inner_a <= 1 && j->inner_b <= 1;
}

static int run(const struct rg_call *c, const struct rg_par *par, rg_par_fn *fn)
{
	int64_t n = rg_shape_count(&c->out[0].shape);
	struct job j;

	setup(c, &j);
	if (n == 0)
		return 0;
	j.a = c->in[0].data;
	j.b = c->in[1].data;
	j.y = c->out[0].data;
	par->run(par, n / j.inner * j.cuts, rg_grain(j.cut + 20), fn, &j);
	return 0;
}

#define RUN(NAME) \
	static int run_##NAME(const struct rg_call *c, const struct rg_par *par, struct rg_error *err) \
	{ \
		return run(c, par, work_##NAME); \
	}
RUN(add)
RUN(sub)
RUN(mul)
RUN(div)

/* Before version 7 broadcasting was another one, by attributes. */
static bool supports(const struct rg_call *c)
{
	struct job j;

	return c->node->version >= 7 && c->in[0].dtype == RG_F32 && c->in[1].dtype == RG_F32 && setup(c, &j);
}

static void traffic(const struct rg_call *c, struct rg_traffic *out)
{
	int64_t bytes = rg_tensor_bytes(RG_F32, &c->out[0].shape);
	struct job j;

	setup(c, &j);
	out->executed_flops = rg_shape_count(&c->out[0].shape);
	out->write_bytes = bytes;
	out->read_bytes = (j.inner_a ? bytes : bytes / (j.cut ? j.cut : 1)) +
			  (j.inner_b ? bytes : bytes / (j.cut ? j.cut : 1));
}

#define K(OP, RUN_FN) \
	{ .op_type = OP, .domain = "", .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .supports = supports, .traffic = traffic, .run = RUN_FN }
static const struct rg_kernel kernels[] = {
	K("Add", run_add),
	K("Div", run_div),
	K("Mul", run_mul),
	K("Sub", run_sub),
};
RG_KERNEL_TABLE(RG_LEVEL_TABLE(binary), kernels);
