/* Lays out the pixels that each tap of a convolution sees. See im2col.h. */
#include "kernels/im2col.h"

#include <string.h>

/*
 * `count` output pixels of one row from column `ox`, as one tap sees them: the
 * input row `in` (NULL: padding all over) from `base` on, `stride` apart.
 */
static void tap_row(float *to, const float *in, int64_t width, int64_t base, int64_t stride, int64_t count)
{
	int64_t left, right, i;

	if (!in) {
		memset(to, 0, (size_t)count * sizeof(*to));
		return;
	}
	/* pixels [left, right) fall inside the row */
	left = base < 0 ? (-base + stride - 1) / stride : 0;
	right = base >= width ? 0 : (width - base + stride - 1) / stride;
	left = left > count ? count : left;
	right = right > count ? count : right < left ? left : right;
	for (i = 0; i < left; i++)
		to[i] = 0;
	if (stride == 1)
		memcpy(to + left, in + base + left, (size_t)(right - left) * sizeof(*to));
	else
		for (i = left; i < right; i++)
			to[i] = in[base + i * stride];
	for (i = right; i < count; i++)
		to[i] = 0;
}

void rg_im2col(const struct rg_window *w, const float *x, int64_t row, int64_t end, int64_t p0, int64_t count,
	       int64_t ld, float *col)
{
	int last = w->n - 1;
	int64_t k[RG_MAX_SPATIAL], o[RG_MAX_SPATIAL];

	for (; row < end; row++) {
		int64_t rest = row, p = p0, done = 0, d;
		float *to = col + row * ld;

		for (d = last; d >= 0; d--) {
			k[d] = rest % w->kernel[d];
			rest /= w->kernel[d];
		}
		for (d = last; d >= 0; d--) {
			o[d] = p % w->out[d];
			p /= w->out[d];
		}
		while (done < count) {
			const float *in = x + rest * w->in_count;
			int64_t n = w->out[last] - o[last], at = 0;

			if (n > count - done)
				n = count - done;
			for (d = 0; d < last; d++) {
				int64_t i = o[d] * w->stride[d] - w->pad_begin[d] + k[d] * w->dilation[d];

				if (i < 0 || i >= w->in[d])
					in = NULL;
				at = at * w->in[d] + i;
			}
			tap_row(to + done, in ? in + at * w->in[last] : NULL, w->in[last],
				o[last] * w->stride[last] - w->pad_begin[last] + k[last] * w->dilation[last],
				w->stride[last], n);
			done += n;
			o[last] = 0;
			for (d = last - 1; d >= 0 && ++o[d] == w->out[d]; d--)
				o[d] = 0;
		}
	}
}
