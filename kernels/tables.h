/*
 * Every table of kernels that is compiled in. A new file of kernels adds a
 * line here and one in registry.c, both in alphabetical order.
 */
#ifndef RG_KERNELS_TABLES_H
#define RG_KERNELS_TABLES_H

#include "kernels/ewise.h"
#include "kernels/kernel.h"

extern const struct rg_kernel_table rg_kernels_blas_conv;
extern const struct rg_kernel_table rg_kernels_blas_conv_transpose;
extern const struct rg_kernel_table rg_kernels_blas_gemm;
#if defined(__x86_64__)
#define RG_GENERIC_TABLE(name) \
	extern const struct rg_kernel_table rg_kernels_generic_##name, rg_kernels_generic_##name##_avx2, \
		rg_kernels_generic_##name##_avx512
#define RG_BYTE_TABLE(name) \
	extern const struct rg_kernel_table rg_kernels_generic_##name, rg_kernels_generic_##name##_avx2, \
		rg_kernels_generic_##name##_avx512, rg_kernels_generic_##name##_avxvnni, rg_kernels_generic_##name##_vnni
#define RG_BYTE_TABLE_LIST(name) \
	&rg_kernels_generic_##name, &rg_kernels_generic_##name##_avx2, &rg_kernels_generic_##name##_avx512, \
		&rg_kernels_generic_##name##_avxvnni, &rg_kernels_generic_##name##_vnni
#define RG_EWISE_FAMILY(name) \
	extern const struct rg_ew_family rg_ewise_##name, rg_ewise_##name##_avx2, rg_ewise_##name##_avx512
#define RG_EWISE_FAMILY_LIST(name) &rg_ewise_##name, &rg_ewise_##name##_avx2, &rg_ewise_##name##_avx512
#define RG_GENERIC_TABLE_LIST(name) \
	&rg_kernels_generic_##name, &rg_kernels_generic_##name##_avx2, &rg_kernels_generic_##name##_avx512
#else
#define RG_GENERIC_TABLE(name) extern const struct rg_kernel_table rg_kernels_generic_##name
#define RG_BYTE_TABLE(name) RG_GENERIC_TABLE(name)
#define RG_BYTE_TABLE_LIST(name) RG_GENERIC_TABLE_LIST(name)
#define RG_EWISE_FAMILY(name) extern const struct rg_ew_family rg_ewise_##name
#define RG_EWISE_FAMILY_LIST(name) &rg_ewise_##name
#define RG_GENERIC_TABLE_LIST(name) &rg_kernels_generic_##name
#endif
RG_GENERIC_TABLE(argmax);
RG_GENERIC_TABLE(attention);
RG_GENERIC_TABLE(attention_gqa);
RG_GENERIC_TABLE(attention_mha);
RG_GENERIC_TABLE(binary);
RG_BYTE_TABLE(byte_conv);
RG_GENERIC_TABLE(byte_depthwise);
RG_GENERIC_TABLE(byte_ewise);
RG_BYTE_TABLE(byte_gemm);
RG_GENERIC_TABLE(cast);
RG_GENERIC_TABLE(chain);
RG_GENERIC_TABLE(channelnorm);
RG_GENERIC_TABLE(conv);
RG_GENERIC_TABLE(conv_transpose);
RG_GENERIC_TABLE(depthwise);
RG_GENERIC_TABLE(depthwise_channels);
RG_GENERIC_TABLE(direct);
RG_GENERIC_TABLE(fused);
RG_GENERIC_TABLE(gemm);
RG_GENERIC_TABLE(layernorm);
RG_GENERIC_TABLE(logic);
RG_GENERIC_TABLE(pool);
RG_GENERIC_TABLE(pool_byte);
RG_GENERIC_TABLE(quantize);
RG_GENERIC_TABLE(reduce);
RG_GENERIC_TABLE(resize);
RG_GENERIC_TABLE(rnn);
RG_GENERIC_TABLE(rotary);
RG_GENERIC_TABLE(softmax);
RG_GENERIC_TABLE(unary);
RG_GENERIC_TABLE(winograd);
RG_GENERIC_TABLE(variadic);
extern const struct rg_kernel_table rg_kernels_generic_move;
extern const struct rg_kernel_table rg_kernels_generic_rows;
RG_EWISE_FAMILY(binary);
RG_EWISE_FAMILY(cast);
RG_EWISE_FAMILY(fused);
RG_EWISE_FAMILY(logic);
RG_EWISE_FAMILY(unary);
RG_EWISE_FAMILY(variadic);
extern const struct rg_kernel_table rg_kernels_ref_attention;
extern const struct rg_kernel_table rg_kernels_ref_binary;
extern const struct rg_kernel_table rg_kernels_ref_cast;
extern const struct rg_kernel_table rg_kernels_ref_chain;
extern const struct rg_kernel_table rg_kernels_ref_contrib_fused;
extern const struct rg_kernel_table rg_kernels_ref_contrib_gelu;
extern const struct rg_kernel_table rg_kernels_ref_contrib_qattention;
extern const struct rg_kernel_table rg_kernels_ref_contrib_qgemm;
extern const struct rg_kernel_table rg_kernels_ref_contrib_qlinear;
extern const struct rg_kernel_table rg_kernels_ref_contrib_qpool;
extern const struct rg_kernel_table rg_kernels_ref_contrib_weights;
extern const struct rg_kernel_table rg_kernels_ref_conv;
extern const struct rg_kernel_table rg_kernels_ref_conv_integer;
extern const struct rg_kernel_table rg_kernels_ref_conv_transpose;
extern const struct rg_kernel_table rg_kernels_ref_deform_conv;
extern const struct rg_kernel_table rg_kernels_ref_dft;
extern const struct rg_kernel_table rg_kernels_ref_distinct;
extern const struct rg_kernel_table rg_kernels_ref_einsum;
extern const struct rg_kernel_table rg_kernels_ref_gather;
extern const struct rg_kernel_table rg_kernels_ref_geometry;
extern const struct rg_kernel_table rg_kernels_ref_gqa;
extern const struct rg_kernel_table rg_kernels_ref_grid_sample;
extern const struct rg_kernel_table rg_kernels_ref_linear_attention;
extern const struct rg_kernel_table rg_kernels_ref_look_up;
extern const struct rg_kernel_table rg_kernels_ref_loss;
extern const struct rg_kernel_table rg_kernels_ref_make;
extern const struct rg_kernel_table rg_kernels_ref_matmul;
extern const struct rg_kernel_table rg_kernels_ref_matmul_integer;
extern const struct rg_kernel_table rg_kernels_ref_mha;
extern const struct rg_kernel_table rg_kernels_ref_ml;
extern const struct rg_kernel_table rg_kernels_ref_ml_linear;
extern const struct rg_kernel_table rg_kernels_ref_norm;
extern const struct rg_kernel_table rg_kernels_ref_pad;
extern const struct rg_kernel_table rg_kernels_ref_pool;
extern const struct rg_kernel_table rg_kernels_ref_quant;
extern const struct rg_kernel_table rg_kernels_ref_random;
extern const struct rg_kernel_table rg_kernels_ref_reduce;
extern const struct rg_kernel_table rg_kernels_ref_resize;
extern const struct rg_kernel_table rg_kernels_ref_rnn;
extern const struct rg_kernel_table rg_kernels_ref_roi;
extern const struct rg_kernel_table rg_kernels_ref_rotary;
extern const struct rg_kernel_table rg_kernels_ref_scatter;
extern const struct rg_kernel_table rg_kernels_ref_select;
extern const struct rg_kernel_table rg_kernels_ref_skip_norm;
extern const struct rg_kernel_table rg_kernels_ref_slice;
extern const struct rg_kernel_table rg_kernels_ref_softmax;
extern const struct rg_kernel_table rg_kernels_ref_text;
extern const struct rg_kernel_table rg_kernels_ref_text_cast;
extern const struct rg_kernel_table rg_kernels_ref_tfidf;
extern const struct rg_kernel_table rg_kernels_ref_topk;
extern const struct rg_kernel_table rg_kernels_ref_train;
extern const struct rg_kernel_table rg_kernels_ref_transpose;
extern const struct rg_kernel_table rg_kernels_ref_trees;
extern const struct rg_kernel_table rg_kernels_ref_unary;
extern const struct rg_kernel_table rg_kernels_ref_variadic;
extern const struct rg_kernel_table rg_kernels_ref_view;
extern const struct rg_kernel_table rg_kernels_ref_window;

#endif
