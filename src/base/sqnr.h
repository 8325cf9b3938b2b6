/*
 * The signal-to-quantisation-noise ratio: how much power the exact numbers have for each
 * unit of power of what is off.
 *
 *	SQNR = 10 log10(sum x^2 / sum (x - x')^2)   in decibels
 *
 * 20 dB: the error is a tenth of the signal (root mean square), 40 dB a hundredth. A
 * uniform signal that fills its range has 6.02 dB for each bit (Widrow and Kollar,
 * Quantization Noise, 2008).
 */
#ifndef RG_BASE_SQNR_H
#define RG_BASE_SQNR_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise, then add. */
struct rg_sqnr {
	double signal, noise;   /* sums of squares */
	size_t count;           /* numbers that were compared: those that are finite exactly */
	bool broken;            /* an exact number is finite and what stands for it is not */
};

void rg_sqnr_add(struct rg_sqnr *s, const float *exact, const float *other, size_t n);
/* In dB: INFINITY without any noise, -INFINITY where it is broken or there is noise alone, NAN where nothing was
 * compared. */
double rg_sqnr_db(const struct rg_sqnr *s);

#endif
