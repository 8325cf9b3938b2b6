/*
 * RotaryEmbedding, standard and of ONNX Runtime, and TensorScatter: what
 * prepares queries, keys and the cache for attention.
 */
#include <string.h>

#include "kernels/ref/attention.h"
#include "kernels/tables.h"

/* The position of token s of batch b: a row of the caches, or an error. */
static int position(const struct rg_tensor *ids, const struct rg_rotary *r, int64_t b, int64_t s, int64_t *row,
		    struct rg_error *err)
{
	const int64_t *p = ids ? ids->data : NULL;

	if (!p) {
		*row = b * r->seq + s;
		return 0;
	}
	if (ids->shape.rank == 2)
		*row = p[b * r->seq + s];
	else if (__builtin_add_overflow(p[0], s, row))
		*row = -1;
	if (*row < 0 || *row >= r->cache)
		return rg_error_set(err, -EINVAL, "the position of token %lld of sequence %lld is %lld; the caches have %lld "
				    "rows", (long long)s, (long long)b, (long long)*row, (long long)r->cache);
	return 0;
}

/* The head of token s, copied behind the rotated part. */
static void rotate_head(const struct rg_call *c, const struct rg_rotary *r, int64_t at, const double *angles,
			double *x, bool interleaved)
{
	rg_ref_load(&c->in[0], at, 1, r->head, x);
	rg_attn_rotate(x, angles, angles + r->dim / 2, r->dim, interleaved);
	rg_ref_store(&c->out[0], at, 1, r->head, x);
}

static int run_rotary(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	bool is_own = c->node->domain[0] != '\0';
	const struct rg_tensor *ids = rg_attn_in(c, is_own ? 1 : 3);
	const struct rg_tensor *cosines = &c->in[is_own ? 2 : 1], *sines = &c->in[is_own ? 3 : 2];
	bool interleaved = rg_node_int(c->node, "interleaved", 0) != 0;
	double *x = c->scratch, *angles;
	struct rg_attn_rows rows;
	struct rg_in_shapes in;
	struct rg_rotary r;
	int64_t row;
	int rc;

	rg_shapes_of_tensors(c->node, c->in, &in);
	rc = rg_rotary_resolve(c->node, &in, &r, err);
	if (rc)
		return rc;
	angles = x + r.head;
	rows = rg_attn_rows_of(&c->in[0], r.heads, r.seq, r.head);
	for (int64_t b = 0; b < r.batch; b++) {
		for (int64_t s = 0; s < r.seq; s++) {
			rc = position(ids, &r, b, s, &row, err);
			if (rc)
				return rc;
			rg_ref_load(cosines, row * (r.dim / 2), 1, r.dim / 2, angles);
			rg_ref_load(sines, row * (r.dim / 2), 1, r.dim / 2, angles + r.dim / 2);
			for (int64_t h = 0; h < r.heads; h++)
				rotate_head(c, &r, rg_attn_at(&rows, b, h, s), angles, x, interleaved);
		}
	}
	return 0;
}

static size_t rotary_scratch(const struct rg_call *c, int lanes)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_in_shapes in;
	struct rg_rotary r;

	rg_shapes_of_tensors(c->node, c->in, &in);
	if (rg_rotary_resolve(c->node, &in, &r, &err) || r.head > INT64_MAX / 32)
		return 0;
	return (size_t)(r.head + r.dim) * sizeof(double);
}

static int run_tensor_scatter(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *indices = rg_attn_in(c, 2);
	size_t size = rg_dtype_bytes(c->in[0].dtype), row;
	const char *update = c->in[1].data;
	struct rg_tensor_scatter s;
	char *out = c->out[0].data;
	struct rg_in_shapes in;
	int64_t start, at;
	int rc;

	rg_shapes_of_tensors(c->node, c->in, &in);
	rc = rg_tensor_scatter_resolve(c->node, &in, &s, err);
	if (rc)
		return rc;
	row = (size_t)s.inner * size;
	if (c->in[0].data && out != c->in[0].data)
		memcpy(out, c->in[0].data, (size_t)rg_tensor_bytes(c->in[0].dtype, &c->in[0].shape));
	for (int64_t b = 0; b < s.batch; b++) {
		start = indices ? ((const int64_t *)indices->data)[b] : 0;
		if (start < 0 || (!s.circular && start > s.length - s.rows))
			return rg_error_set(err, -EINVAL, "write_indices[%lld] is %lld; %lld rows do not fit a cache of %lld "
					    "there", (long long)b, (long long)start, (long long)s.rows,
					    (long long)s.length);
		for (int64_t p = b * s.per_batch; p < (b + 1) * s.per_batch && row; p++) {
			for (int64_t i = 0; i < s.rows; i++) {
				at = s.circular ? (start % s.length + i) % s.length : start + i;
				memcpy(out + (size_t)(p * s.length + at) * row,
				       update + (size_t)(p * s.rows + i) * row, row);
			}
		}
	}
	return 0;
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "RotaryEmbedding", .domain = "", .name = "ref", .scratch_bytes = rotary_scratch,
	  .run = run_rotary },
	{ .op_type = "RotaryEmbedding", .domain = "com.microsoft", .name = "ref", .scratch_bytes = rotary_scratch,
	  .run = run_rotary },
	{ .op_type = "TensorScatter", .domain = "", .name = "ref", .run = run_tensor_scatter },
};
RG_KERNEL_TABLE(rg_kernels_ref_rotary, kernels);
