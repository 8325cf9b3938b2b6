/* Cast between the types that masks, token ids and one-hot rows have; the others are the reference's. */
#include "kernels/generic/ewise-kernel.h"
#include "kernels/tables.h"

#define CAST(NAME, FROM, TO, EXPR) \
	static void NAME(void *out, const struct rg_ew_args *p, int64_t n) \
	{ \
		const FROM *x = p->in[0]; \
		TO *y = out; \
\
		RG_EW_LOOP \
		for (int64_t i = 0; i < n; i++) { \
			const FROM v = x[i]; \
\
			y[i] = (TO)(EXPR); \
		} \
	}
/* Any byte but 0 is true, NaN is too. */
CAST(bool_f32, uint8_t, float, v != 0)
CAST(u8_f32, uint8_t, float, v)
CAST(i8_f32, int8_t, float, v)
CAST(i32_f32, int32_t, float, v)
CAST(i64_f32, int64_t, float, v)
CAST(i32_i64, int32_t, int64_t, v)
CAST(i64_i32, int64_t, int32_t, v)
CAST(bool_i32, uint8_t, int32_t, v != 0)
CAST(bool_i64, uint8_t, int64_t, v != 0)
CAST(f32_bool, float, uint8_t, v != 0)
CAST(i32_bool, int32_t, uint8_t, v != 0)
CAST(i64_bool, int64_t, uint8_t, v != 0)

static const struct {
	enum rg_dtype from, to;
	rg_ew_fn *fn;
} casts[] = {
	{ RG_BOOL, RG_F32, bool_f32 }, { RG_U8, RG_F32, u8_f32 },	{ RG_I8, RG_F32, i8_f32 },
	{ RG_I32, RG_F32, i32_f32 },   { RG_I64, RG_F32, i64_f32 },	{ RG_I32, RG_I64, i32_i64 },
	{ RG_I64, RG_I32, i64_i32 },   { RG_BOOL, RG_I32, bool_i32 },	{ RG_BOOL, RG_I64, bool_i64 },
	{ RG_F32, RG_BOOL, f32_bool }, { RG_I32, RG_BOOL, i32_bool },	{ RG_I64, RG_BOOL, i64_bool },
};

static int node_cast(struct rg_ew *e, const struct rg_call *c, const int *in)
{
	for (size_t i = 0; i < sizeof(casts) / sizeof(casts[0]); i++)
		if (casts[i].from == c->in[0].dtype && casts[i].to == c->out[0].dtype)
			return rg_ew_apply(e, casts[i].fn, RG_EW_ROWS, 1, in, 0, 0, (int)rg_dtype_bytes(casts[i].to), 2);
	return -ENOTSUP;
}

#define LIST(X) X("", "Cast", cast)
RG_EW_FAMILY(cast, LIST);
