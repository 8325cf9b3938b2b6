/* Strided copies. */
#include "kernels/ref/copy.h"

#include <string.h>

#include "graph/narrow.h"

void rg_copy_dim(struct rg_copy *c, int64_t dim, int64_t from_stride, int64_t to_stride)
{
	int last = c->rank - 1;

	if (dim == 1)
		return;
	if (last >= 0 && dim != 0 && c->from[last] == from_stride * dim && c->to[last] == to_stride * dim) {
		c->dim[last] *= dim;
		c->from[last] = from_stride;
		c->to[last] = to_stride;
		return;
	}
	c->dim[c->rank] = dim;
	c->from[c->rank] = from_stride;
	c->to[c->rank] = to_stride;
	c->rank++;
}

struct wide { /* complex128 */
	uint64_t low, high;
};

#define LINE(TYPE) do { \
		const TYPE *f = (const TYPE *)from; \
		TYPE *t = (TYPE *)to; \
		for (int64_t i = 0; i < n; i++) \
			t[i * to_stride] = f[i * from_stride]; \
	} while (0)

static void copy_line(const void *from, void *to, int64_t n, int64_t from_stride, int64_t to_stride,
		      size_t size_bytes)
{
	if (from_stride == 1 && to_stride == 1) {
		memcpy(to, from, (size_t)n * size_bytes);
		return;
	}
	switch (size_bytes) {
	case 1: LINE(uint8_t); break;
	case 2: LINE(uint16_t); break;
	case 4: LINE(uint32_t); break;
	case 8: LINE(uint64_t); break;
	case 16: LINE(struct wide); break;
	}
}

void rg_copy_run(const struct rg_copy *c, const void *from, void *to, size_t size_bytes)
{
	int64_t at[RG_COPY_MAX_RANK] = { 0 }, f = 0, t = 0, size = (int64_t)size_bytes;
	int inner = c->rank - 1, d;

	for (d = 0; d < c->rank; d++)
		if (c->dim[d] == 0)
			return;
	if (inner < 0) {
		memcpy(to, from, size_bytes);
		return;
	}
	for (;;) {
		copy_line((const char *)from + f * size, (char *)to + t * size, c->dim[inner], c->from[inner],
			  c->to[inner], size_bytes);
		for (d = inner - 1; d >= 0; d--) {
			f += c->from[d];
			t += c->to[d];
			if (++at[d] < c->dim[d])
				break;
			f -= c->from[d] * c->dim[d];
			t -= c->to[d] * c->dim[d];
			at[d] = 0;
		}
		if (d < 0)
			return;
	}
}

void rg_copy_run_packed(const struct rg_copy *c, const void *from, void *to, int bits)
{
	int64_t index[RG_COPY_MAX_RANK] = { 0 }, f = 0, t = 0;
	int d;

	for (d = 0; d < c->rank; d++)
		if (c->dim[d] == 0)
			return;
	do {
		rg_narrow_set(to, bits, t, rg_narrow_get(from, bits, f));
		for (d = c->rank - 1; d >= 0; d--) {
			f += c->from[d];
			t += c->to[d];
			if (++index[d] < c->dim[d])
				break;
			f -= c->from[d] * c->dim[d];
			t -= c->to[d] * c->dim[d];
			index[d] = 0;
		}
	} while (d >= 0);
}

bool rg_copy_supports(const struct rg_call *c)
{
	for (int i = 0; i < c->node->n_in; i++)
		if (c->in[i].dtype != RG_UNDEFINED && rg_dtype_bytes(c->in[i].dtype) == 0)
			return false;
	for (int i = 0; i < c->node->n_out; i++)
		if (c->out[i].dtype != RG_UNDEFINED && rg_dtype_bytes(c->out[i].dtype) == 0)
			return false;
	return true;
}

void rg_copy_traffic(const struct rg_call *c, struct rg_traffic *out)
{
	out->executed_flops = 0;
	out->write_bytes = 0;
	for (int i = 0; i < c->node->n_out; i++)
		if (c->out[i].dtype != RG_UNDEFINED)
			out->write_bytes += rg_tensor_bytes(c->out[i].dtype, &c->out[i].shape);
	out->read_bytes = out->write_bytes;
}
