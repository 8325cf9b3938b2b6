/*
 * A thin layer over jansson that makes missing null and failure sticky.
 */
#include "reports/json.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* jansson allocates through our door as well, so that tests can make it fail. */
static void use_our_allocator(void)
{
	json_set_alloc_funcs(rg_alloc, rg_free);
}

void rg_json_init(struct rg_json *j)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, use_our_allocator);
	j->root = json_object();
	j->failed = !j->root;
}

json_t *rg_json_put(struct rg_json *j, json_t *to, const char *key, json_t *v)
{
	int rc;

	if (!v || !to || j->failed) {
		json_decref(v);
		j->failed = true;
		return NULL;
	}
	rc = key ? json_object_set_new(to, key, v) : json_array_append_new(to, v);
	if (rc != 0) {
		j->failed = true;
		return NULL;
	}
	return v;
}

/* Bytes that are no UTF-8 become U+FFFD; control characters stay, since JSON
 * can carry them. jansson says whether a string is valid, so ask it first. */
static json_t *text(const char *s)
{
	json_t *v = json_string(s), *one;
	struct rg_str fixed = { 0 };

	if (v)
		return v;
	while (*s) {
		size_t n = 0;

		for (size_t len = 1; len <= 4 && !n && strnlen(s, len) == len; len++) {
			one = json_stringn(s, len);
			if (one)
				n = len;
			json_decref(one);
		}
		if (n)
			rg_str_addn(&fixed, s, n);
		else
			rg_str_add(&fixed, "\xef\xbf\xbd");
		s += n ? n : 1;
	}
	v = fixed.failed ? NULL : json_string(rg_str_text(&fixed));
	rg_str_free(&fixed);
	return v;
}

void rg_json_text(struct rg_json *j, json_t *to, const char *key, const char *s)
{
	rg_json_put(j, to, key, s ? text(s) : json_null());
}

void rg_json_num(struct rg_json *j, json_t *to, const char *key, double v)
{
	if (!isfinite(v))
		rg_json_put(j, to, key, json_null());
	else if (v == floor(v) && fabs(v) < 9e15)
		rg_json_put(j, to, key, json_integer((json_int_t)v));
	else
		rg_json_put(j, to, key, json_real(v));
}

void rg_json_int(struct rg_json *j, json_t *to, const char *key, int64_t v)
{
	rg_json_put(j, to, key, v < 0 ? json_null() : json_integer(v));
}

void rg_json_bool(struct rg_json *j, json_t *to, const char *key, bool v)
{
	rg_json_put(j, to, key, json_boolean(v));
}

void rg_json_shape(struct rg_json *j, json_t *to, const char *key, const char *shape)
{
	json_t *a = shape && *shape ? json_array() : json_null();
	const char *p = shape && strcmp(shape, "scalar") != 0 ? shape : "";

	while (a && *p) {
		char *end = NULL;
		long long d;

		errno = 0;
		d = *p >= '0' && *p <= '9' ? strtoll(p, &end, 10) : 0;
		if (!end || errno || !(*end == '\0' || (*end == 'x' && end[1]))) {
			json_decref(a);
			a = json_null();
			break;
		}
		if (json_array_append_new(a, json_integer(d)) != 0)
			j->failed = true;
		p = *end ? end + 1 : end;
	}
	rg_json_put(j, to, key, a);
}

int rg_json_finish(struct rg_json *j, struct rg_str *out)
{
	char *s = j->failed ? NULL : json_dumps(j->root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));

	json_decref(j->root);
	j->root = NULL;
	if (!s) {
		out->failed = true;
		return -ENOMEM;
	}
	rg_str_add(out, s);
	rg_str_add(out, "\n");
	rg_free(s);
	return out->failed ? -ENOMEM : 0;
}
