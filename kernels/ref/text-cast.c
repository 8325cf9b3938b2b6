/*
 * Cast and CastLike between strings and numbers.
 *
 * Text of a number is what ONNX says: decimal, with or without a point and an
 * exponent, or INF, +INF, -INF, NaN in letters of any case; white space around it
 * does no harm, anything else is an error. Whole numbers keep all their digits on
 * the way to an integer type, where they wrap around as casts of integers do.
 *
 * A float becomes the shortest text that reads back as the same number, of
 * float32 for the narrower types. The layout is that of ONNX Runtime: an exponent
 * below 1e-4 and from 1e8 on, no point in whole numbers, INF, -INF, NaN.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "graph/text.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

#define NUMBERS (RG_SET_NUM | RG_SET_NARROW | RG_BIT(RG_BOOL))

/* ---- numbers to text ---- */

static bool reads_back(const char *s, double v, bool is_double)
{
	return is_double ? strtod(s, NULL) == v : strtof(s, NULL) == (float)v;
}

static void float_text(char *buf, size_t size, double v, bool is_double)
{
	int digits = 0, exponent;

	if (isnan(v) || isinf(v)) {
		snprintf(buf, size, "%s", isnan(v) ? "NaN" : v > 0 ? "INF" : "-INF");
		return;
	}
	do {
		snprintf(buf, size, "%.*e", digits, v);
	} while (!reads_back(buf, v, is_double) && ++digits < 17);
	exponent = atoi(strchr(buf, 'e') + 1);
	if (exponent >= -4 && exponent < 8)
		snprintf(buf, size, "%.*f", digits > exponent ? digits - exponent : 0, v);
}

/* A value of any type, as the cast to `as` (double, int64 or uint64) gives it. */
static int load(const struct rg_call *c, const struct rg_tensor *chunk, enum rg_dtype as, void *buf,
		struct rg_error *err)
{
	const struct rg_tensor to = { as, chunk->shape, buf };
	const struct rg_call cast = { .node = c->node, .in = chunk, .out = &to };

	return rg_ref_cast(&cast, NULL, err);
}

static int to_text(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *from = &c->in[0];
	enum rg_dtype as = rg_dtype_is_float(from->dtype) ? RG_F64 : from->dtype == RG_U64 ? RG_U64 : RG_I64;
	int64_t n = rg_shape_count(&from->shape), bits = rg_dtype_bits(from->dtype);
	union { double f[RG_REF_CHUNK]; int64_t i[RG_REF_CHUNK]; uint64_t u[RG_REF_CHUNK]; } buf;

	for (int64_t i = 0; i < n; i += RG_REF_CHUNK) {
		int64_t m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;
		struct rg_tensor chunk = { from->dtype, rg_shape_of(1, &m), (char *)from->data + i / 8 * bits };

		if (load(c, &chunk, as, buf.f, err))
			return err->code;
		for (int64_t k = 0; k < m; k++) {
			const char **y = (const char **)c->out[0].data + i + k;
			char text[64];

			if (as == RG_F64)
				float_text(text, sizeof(text), buf.f[k], from->dtype == RG_F64);
			else if (as == RG_U64)
				snprintf(text, sizeof(text), "%llu", (unsigned long long)buf.u[k]);
			else
				snprintf(text, sizeof(text), "%lld", (long long)buf.i[k]);
			*y = rg_arena_strdup(c->text, text);
			if (!*y)
				return rg_error_nomem(err, sizeof(text));
		}
	}
	return 0;
}

/* ---- text to numbers ---- */

static const char *skip_digits(const char *s)
{
	while (*s >= '0' && *s <= '9')
		s++;
	return s;
}

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \t\n\v\f\r");
}

enum form { NO_NUMBER, WHOLE, DECIMAL };

/* What s is, behind white space and a sign. *end: behind the number. */
static enum form form_of(const char *s, const char **end)
{
	const char *p = skip_digits(s);
	bool digits = p > s, whole = true;

	if (strncasecmp(s, "INF", 3) == 0 || strncasecmp(s, "NaN", 3) == 0) {
		*end = s + 3;
		return DECIMAL;
	}
	if (*p == '.') {
		s = ++p;
		p = skip_digits(p);
		digits = digits || p > s;
		whole = false;
	}
	if (!digits)
		return NO_NUMBER;
	*end = p;
	if (*p == 'e' || *p == 'E') {
		s = p + 1 + (p[1] == '+' || p[1] == '-');
		p = skip_digits(s);
		if (p > s) {
			*end = p;
			whole = false;
		}
	}
	return whole ? WHOLE : DECIMAL;
}

static int no_number(const char *s, struct rg_error *err)
{
	return rg_error_set(err, -EINVAL, "'%.60s' is no number", s);
}

/* One string as a tensor of one element, of whichever type keeps all of it. */
static int parse(const char *text, bool to_float, struct rg_tensor *t, struct rg_error *err)
{
	const char *s = skip_space(text), *number = s + (*s == '+' || *s == '-'), *end;
	enum form form = form_of(number, &end);

	if (form == NO_NUMBER || *skip_space(end))
		return no_number(text, err);
	if (to_float || form == DECIMAL) {
		t->dtype = RG_F64;
		*(double *)t->data = strtod(s, NULL);
		return 0;
	}
	errno = 0;
	if (*s == '-') {
		t->dtype = RG_I64;
		*(int64_t *)t->data = strtoll(s, NULL, 10);
	} else {
		t->dtype = RG_U64;
		*(uint64_t *)t->data = strtoull(s, NULL, 10);
	}
	return errno ? rg_error_set(err, -ERANGE, "'%.60s' is beyond 64 bits", text) : 0;
}

/* Of packed types an element is no whole byte, so they go by way of doubles. */
static int packed_from_text(const struct rg_call *c, struct rg_error *err)
{
	const struct rg_tensor *to = &c->out[0];
	int64_t n = rg_shape_count(&to->shape), bits = rg_dtype_bits(to->dtype);
	double buf[RG_REF_CHUNK];

	for (int64_t i = 0; i < n; i += RG_REF_CHUNK) {
		int64_t m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;
		const struct rg_tensor chunk = { RG_F64, rg_shape_of(1, &m), buf };
		const struct rg_tensor part = { to->dtype, chunk.shape, (char *)to->data + i / 8 * bits };
		const struct rg_call cast = { .node = c->node, .in = &chunk, .out = &part };

		for (int64_t k = 0; k < m; k++) {
			struct rg_tensor one = { .data = &buf[k] };

			if (parse(rg_text_at(&c->in[0], i + k), true, &one, err))
				return err->code;
		}
		if (rg_ref_cast(&cast, NULL, err))
			return err->code;
	}
	return 0;
}

static int from_text(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const struct rg_tensor *to = &c->out[0];
	int64_t n = rg_shape_count(&to->shape), size = (int64_t)rg_dtype_bytes(to->dtype);
	bool to_float = rg_dtype_is_float(to->dtype);

	if (size == 0)
		return packed_from_text(c, err);
	for (int64_t i = 0; i < n; i++) {
		_Alignas(8) unsigned char number[8];
		struct rg_tensor one = { .data = number };
		const struct rg_tensor y = { .dtype = to->dtype, .data = (char *)to->data + i * size };
		const struct rg_call cast = { .node = c->node, .in = &one, .out = &y };

		if (parse(rg_text_at(&c->in[0], i), to_float, &one, err) || rg_ref_cast(&cast, NULL, err))
			return err->code;
	}
	return 0;
}

static int text_cast(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	return c->out[0].dtype == RG_STRING ? to_text(c, par, err) : from_text(c, par, err);
}

/* From strings to strings it is a copy, which the other kernel makes. */
static bool supports(const struct rg_call *c)
{
	return (c->in[0].dtype == RG_STRING && rg_in_set(c->out[0].dtype, NUMBERS)) ||
	       (c->out[0].dtype == RG_STRING && rg_in_set(c->in[0].dtype, NUMBERS));
}

static const struct rg_kernel kernels[] = {
	{ .op_type = "Cast", .domain = "", .name = "text", .supports = supports, .run = text_cast },
	{ .op_type = "CastLike", .domain = "", .name = "text", .supports = supports, .run = text_cast },
};
RG_KERNEL_TABLE(rg_kernels_ref_text_cast, kernels);
