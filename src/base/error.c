#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names from model files end up in messages: nothing there may move a cursor
 * or start a second line. Bytes of UTF-8 sequences pass. */
static void clean(char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c < 0x20 || c == 0x7f)
			*s = '?';
	}
}

int rg_error_set(struct rg_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	err->where[0] = '\0';
	err->hint[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	clean(err->message);
	return code;
}

int rg_error_hint(struct rg_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
	clean(err->hint);
	return err->code;
}

int rg_error_at(struct rg_error *err, const char *fmt, ...)
{
	char place[sizeof(err->where)], both[2 * sizeof(err->where) + 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(place, sizeof(place), fmt, ap);
	va_end(ap);
	clean(place);
	if (err->where[0])
		snprintf(both, sizeof(both), "%s: %s", place, err->where);
	else
		snprintf(both, sizeof(both), "%s", place);
	both[sizeof(err->where) - 1] = '\0';
	memcpy(err->where, both, strlen(both) + 1);
	return err->code;
}

int rg_error_nomem(struct rg_error *err, unsigned long size_bytes)
{
	rg_error_set(err, -ENOMEM, "out of memory: %lu bytes were asked for", size_bytes);
	return rg_error_hint(err, "free memory, or use a smaller batch or shape");
}

void rg_error_clear(struct rg_error *err)
{
	memset(err, 0, sizeof(*err));
}
