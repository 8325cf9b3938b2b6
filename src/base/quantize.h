/*
 * The arithmetic of affine quantisation to eight bits: x is stood for by the integer
 *
 *	q = clamp(round(x / scale) + zero, least, most)       x' = (q - zero) * scale
 *
 * with ties rounded to even, as ONNX QuantizeLinear does it. 0 is always represented
 * exactly: padding and Relu depend on that.
 */
#ifndef RG_BASE_QUANTIZE_H
#define RG_BASE_QUANTIZE_H

#include <stdint.h>

struct rg_qparams {
	float scale;            /* > 0 and normal */
	int32_t zero;           /* zero point */
	int32_t least, most;    /* of q */
};

/*
 * Unsigned 8 bits for values of [low, high], which is widened to hold 0. Both must be finite. A range of nothing but
 * 0 gets the scale 1: any would do.
 */
struct rg_qparams rg_qparams_u8(double low, double high);
/*
 * Signed 8 bits with the zero point 0 and -127 to 127 (not -128, so that -x is as good as x), for
 * values of magnitude up to `most`. 0 gets the scale 1.
 */
struct rg_qparams rg_qparams_s8(double most);

int32_t rg_quantize(float x, const struct rg_qparams *p); /* NaN gives the zero point */
float rg_dequantize(int32_t q, const struct rg_qparams *p);
/* The values that are not clipped: [*low, *high]. */
void rg_qparams_range(const struct rg_qparams *p, double *low, double *high);

#endif
