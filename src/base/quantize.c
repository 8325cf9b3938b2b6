/* See quantize.h. */
#include "base/quantize.h"

#include <float.h>
#include <math.h>

/* Below this, products of two scales would be denormal, and with them the scale of a bias. */
#define LEAST_SCALE 1e-18

static float usable(double scale)
{
	if (!(scale > 0))
		return 1;
	return (float)fmin(fmax(scale, LEAST_SCALE), (double)FLT_MAX);
}

struct rg_qparams rg_qparams_u8(double low, double high)
{
	struct rg_qparams p = { .least = 0, .most = 255 };

	low = fmin(low, 0);
	high = fmax(high, 0);
	p.scale = usable((high - low) / 255);
	p.zero = (int32_t)fmin(fmax(nearbyint(-low / (double)p.scale), 0), 255);
	return p;
}

struct rg_qparams rg_qparams_s8(double most)
{
	return (struct rg_qparams){ .scale = usable(fabs(most) / 127), .zero = 0, .least = -127, .most = 127 };
}

int32_t rg_quantize(float x, const struct rg_qparams *p)
{
	float q = nearbyintf(x / p->scale) + (float)p->zero;

	if (isnan(q))
		return p->zero;
	if (q < (float)p->least)
		return p->least;
	return q > (float)p->most ? p->most : (int32_t)q;
}

float rg_dequantize(int32_t q, const struct rg_qparams *p)
{
	return (float)(q - p->zero) * p->scale;
}

void rg_qparams_range(const struct rg_qparams *p, double *low, double *high)
{
	/* half a step further is still rounded to the last one */
	*low = ((double)(p->least - p->zero) - 0.5) * (double)p->scale;
	*high = ((double)(p->most - p->zero) + 0.5) * (double)p->scale;
}
