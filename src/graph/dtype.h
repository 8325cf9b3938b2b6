/*
 * Element types, with ONNX's numbers (onnx.proto, TensorProto.DataType, IR 14),
 * so that a number in a file needs no translation.
 */
#ifndef RG_GRAPH_DTYPE_H
#define RG_GRAPH_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rg_dtype {
	RG_UNDEFINED = 0,
	RG_F32 = 1,
	RG_U8 = 2,
	RG_I8 = 3,
	RG_U16 = 4,
	RG_I16 = 5,
	RG_I32 = 6,
	RG_I64 = 7,
	RG_STRING = 8, /* an element is a `const char *` to NUL-terminated UTF-8 that somebody
	                * else owns; NULL is the empty string */
	RG_BOOL = 9, /* one byte an element, 0 or 1 */
	RG_F16 = 10,
	RG_F64 = 11,
	RG_U32 = 12,
	RG_U64 = 13,
	RG_C64 = 14,
	RG_C128 = 15,
	RG_BF16 = 16,
	RG_F8E4M3FN = 17,
	RG_F8E4M3FNUZ = 18,
	RG_F8E5M2 = 19,
	RG_F8E5M2FNUZ = 20,
	RG_U4 = 21,
	RG_I4 = 22,
	RG_F4E2M1 = 23,
	RG_F8E8M0 = 24,
	RG_U2 = 25,
	RG_I2 = 26,
	RG_DTYPE_COUNT
};

/* "float32", "int64", ...; "undefined" for anything out of range. */
const char *rg_dtype_name(enum rg_dtype t);
/* The reverse, also accepting numpy and ONNX spellings; RG_UNDEFINED unknown. */
enum rg_dtype rg_dtype_parse(const char *name);
/* Bits an element: 4 or 2 for the packed ones, a pointer for STRING; 0 for UNDEFINED. */
int rg_dtype_bits(enum rg_dtype t);
/* Bytes an element for whole-byte types, 0 otherwise. */
size_t rg_dtype_bytes(enum rg_dtype t);
bool rg_dtype_is_float(enum rg_dtype t);  /* any floating-point type */
bool rg_dtype_is_int(enum rg_dtype t);    /* signed or unsigned integer, not bool */
bool rg_dtype_is_signed(enum rg_dtype t);

/* Bit-exact conversions, round to nearest even; NaN stays NaN. */
float rg_f16_to_f32(uint16_t h);
uint16_t rg_f32_to_f16(float f);
float rg_bf16_to_f32(uint16_t h);
uint16_t rg_f32_to_bf16(float f);

#endif
