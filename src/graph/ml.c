/* Lists, label maps and post-transforms of ai.onnx.ml; see ml.h. */
#include "graph/ml.h"

#include <string.h>

#include "graph/op-types.h"

#define TENSOR_TYPES (RG_SET_INT | RG_BIT(RG_F32) | RG_BIT(RG_F64) | RG_BIT(RG_F16))

struct rg_ml_list rg_ml_list(const struct rg_node *n, const char *name)
{
	const struct rg_attr *a = rg_node_attr(n, name);
	struct rg_ml_list l = { .dtype = RG_UNDEFINED };

	if (a && a->type == RG_ATTR_FLOATS)
		l = (struct rg_ml_list){ RG_F32, a->count, a->floats };
	else if (a && a->type == RG_ATTR_INTS)
		l = (struct rg_ml_list){ RG_I64, a->count, a->ints };
	else if (a && a->type == RG_ATTR_TENSOR && rg_in_set(a->t.dtype, TENSOR_TYPES))
		l = (struct rg_ml_list){ a->t.dtype, rg_shape_count(&a->t.shape), a->t.data };
	return l;
}

struct rg_ml_list rg_ml_list_or_tensor(const struct rg_node *n, const char *name)
{
	struct rg_ml_list l = rg_ml_list(n, name);
	char other[64];
	size_t len = strlen(name);

	if (l.n > 0 || len + sizeof("_as_tensor") > sizeof(other))
		return l;
	memcpy(other, name, len);
	memcpy(other + len, "_as_tensor", sizeof("_as_tensor"));
	return rg_ml_list(n, other);
}

bool rg_ml_strings(const struct rg_node *n, const char *name)
{
	const struct rg_attr *a = rg_node_attr(n, name);

	return a && a->type == RG_ATTR_STRINGS && a->count > 0;
}

double rg_ml_at(const struct rg_ml_list *l, int64_t i)
{
	switch (l->dtype) {
	case RG_F32: return (double)((const float *)l->data)[i];
	case RG_F64: return ((const double *)l->data)[i];
	case RG_F16: return (double)rg_f16_to_f32(((const uint16_t *)l->data)[i]);
	case RG_I64: return (double)((const int64_t *)l->data)[i];
	case RG_I32: return ((const int32_t *)l->data)[i];
	case RG_I16: return ((const int16_t *)l->data)[i];
	case RG_I8: return ((const int8_t *)l->data)[i];
	case RG_U8: return ((const uint8_t *)l->data)[i];
	case RG_U16: return ((const uint16_t *)l->data)[i];
	case RG_U32: return ((const uint32_t *)l->data)[i];
	case RG_U64: return (double)((const uint64_t *)l->data)[i];
	default: return 0;
	}
}

/* keys_floats, keys_int64s, keys_tensor or keys_strings. */
static int one_of(const struct rg_node *n, const char *const names[3], const char *strings,
		  struct rg_ml_list *out, struct rg_error *err)
{
	const uint32_t types = RG_BIT(RG_F32) | RG_BIT(RG_F64) | RG_BIT(RG_I64) | RG_BIT(RG_I32) | RG_BIT(RG_I16);
	const struct rg_attr *a = rg_node_attr(n, strings);

	if (rg_ml_strings(n, strings)) {
		*out = (struct rg_ml_list){ RG_STRING, a->count, a->strings };
		return 0;
	}
	for (int i = 0; i < 3; i++) {
		*out = rg_ml_list(n, names[i]);
		if (out->n > 0 && rg_in_set(out->dtype, types))
			return 0;
		a = rg_node_attr(n, names[i]);
		if (a && a->type == RG_ATTR_TENSOR && a->t.dtype == RG_STRING) {
			*out = (struct rg_ml_list){ RG_STRING, rg_shape_count(&a->t.shape), a->t.data };
			return 0;
		}
		if (a && a->type == RG_ATTR_TENSOR)
			return rg_error_set(err, RG_ENOTSUP_MODEL, "%s with %s of %s is not supported",
					    n->op_type, names[i], rg_dtype_name(a->t.dtype));
	}
	return rg_error_set(err, -EINVAL, "%s has neither %s, %s, %s nor %s", n->op_type, names[0], names[1],
			    names[2], strings);
}

int rg_ml_label_map(const struct rg_node *n, struct rg_ml_list *keys, struct rg_ml_list *values,
		    struct rg_ml_list *dflt, struct rg_error *err)
{
	static const char *const key_names[3] = { "keys_floats", "keys_int64s", "keys_tensor" };
	static const char *const value_names[3] = { "values_floats", "values_int64s", "values_tensor" };
	static const _Alignas(16) char minus_one_i16[2] = { -1, -1 }, minus_one_i32[4] = { -1, -1, -1, -1 };
	static const double minus_zero_f64 = -0.0;
	static const float minus_zero_f32 = -0.0f;
	static const int64_t minus_one_i64 = -1;
	static const char *const unused = "_Unused";
	const struct rg_attr *a;
	int rc;

	if ((rc = one_of(n, key_names, "keys_strings", keys, err)) ||
	    (rc = one_of(n, value_names, "values_strings", values, err)))
		return rc;
	if (keys->n != values->n)
		return rg_error_set(err, -EINVAL, "%s has %lld keys for %lld values", n->op_type,
				    (long long)keys->n, (long long)values->n);
	*dflt = (struct rg_ml_list){ values->dtype, 1, NULL };
	a = rg_node_attr(n, "default_tensor");
	if (a && (a->type != RG_ATTR_TENSOR || a->t.dtype != values->dtype || rg_shape_count(&a->t.shape) != 1))
		return rg_error_set(err, -EINVAL, "%s: default_tensor must be one value of the values' type",
				    n->op_type);
	if (a) {
		dflt->data = a->t.data;
		return 0;
	}
	switch (values->dtype) {
	case RG_F32:
		a = rg_node_attr(n, "default_float");
		dflt->data = a && a->type == RG_ATTR_FLOAT ? &a->f : &minus_zero_f32;
		break;
	case RG_I64:
		a = rg_node_attr(n, "default_int64");
		dflt->data = a && a->type == RG_ATTR_INT ? &a->i : &minus_one_i64;
		break;
	case RG_STRING:
		a = rg_node_attr(n, "default_string");
		dflt->data = a && a->type == RG_ATTR_STRING ? &a->s : &unused;
		break;
	case RG_F64: dflt->data = &minus_zero_f64; break;
	case RG_I32: dflt->data = minus_one_i32; break;
	default: dflt->data = minus_one_i16; break;
	}
	return 0;
}

int rg_ml_post(const struct rg_node *n, enum rg_ml_post *out, struct rg_error *err)
{
	static const char *const names[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT" };
	const struct rg_attr *a = rg_node_attr(n, "post_transform");
	const char *s = rg_node_string(n, "post_transform", "NONE");

	if (a && a->type == RG_ATTR_INT && a->i >= 0 && a->i <= RG_POST_PROBIT) { /* TreeEnsemble */
		*out = (enum rg_ml_post)a->i;
		return 0;
	}
	for (int i = 0; i <= RG_POST_PROBIT; i++) {
		if (strcmp(s, names[i]) == 0 && (!a || a->type == RG_ATTR_STRING)) {
			*out = (enum rg_ml_post)i;
			return 0;
		}
	}
	return rg_error_set(err, -EINVAL, "%s: the post_transform is none that the operator has", n->op_type);
}

bool rg_ml_rows(const struct rg_shape *s, int64_t *rows, int64_t *features)
{
	*rows = s->rank == 2 ? s->dim[0] : 1;
	*features = s->rank > 0 ? s->dim[s->rank - 1] : 0;
	return s->rank == 1 || s->rank == 2;
}
