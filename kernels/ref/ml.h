/* What the reference kernels of ai.onnx.ml share. */
#ifndef RG_KERNELS_REF_ML_H
#define RG_KERNELS_REF_ML_H

#include "graph/ml.h"

/* Transforms n scores in place. */
void rg_ref_ml_post(enum rg_ml_post post, double *score, int64_t n);
/* The first of the greatest of n > 0 scores; NaN is none. */
int64_t rg_ref_ml_best(const double *score, int64_t n);

#endif
