#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static bool reserve(struct rg_str *s, size_t more)
{
	char *p;

	if (s->failed || more > SIZE_MAX / 4 - s->len) {
		s->failed = true;
		return false;
	}
	p = rg_grow(s->text, &s->cap, s->len + more + 1, 1);
	if (!p) {
		s->failed = true;
		return false;
	}
	s->text = p;
	return true;
}

void rg_str_addn(struct rg_str *s, const char *text, size_t n)
{
	if (!reserve(s, n))
		return;
	memcpy(s->text + s->len, text, n);
	s->len += n;
	s->text[s->len] = '\0';
}

void rg_str_add(struct rg_str *s, const char *text)
{
	rg_str_addn(s, text, strlen(text));
}

void rg_str_shell(struct rg_str *s, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "_-+=./:,@%";

	if (*word && word[strspn(word, plain)] == '\0') {
		rg_str_add(s, word);
		return;
	}
	rg_str_add(s, "'");
	for (const char *p = word; *p; p++) {
		if (*p == '\'')
			rg_str_add(s, "'\\''");
		else
			rg_str_addn(s, p, 1);
	}
	rg_str_add(s, "'");
}

void rg_str_printf(struct rg_str *s, const char *fmt, ...)
{
	va_list ap, again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len >= 0 && reserve(s, (size_t)len)) {
		vsnprintf(s->text + s->len, (size_t)len + 1, fmt, again);
		s->len += (size_t)len;
	}
	va_end(again);
}

const char *rg_str_text(const struct rg_str *s)
{
	return s->text ? s->text : "";
}

void rg_str_free(struct rg_str *s)
{
	rg_free(s->text);
	memset(s, 0, sizeof(*s));
}

/* Three significant digits of v, which is below 10,000. */
static void three_digits(char *out, size_t cap, double v)
{
	double a = fabs(v);

	if (a != 0 && a < 0.001)
		snprintf(out, cap, "%.2e", v);
	else if (a < 9.995)
		snprintf(out, cap, "%.2f", v);
	else if (a < 99.95)
		snprintf(out, cap, "%.1f", v);
	else
		snprintf(out, cap, "%.0f", v);
}

char *rg_fmt_si(char *out, double v, const char *unit)
{
	static const char prefix[] = { 0, 'k', 'M', 'G', 'T', 'P', 'E' };
	size_t p = 0;
	char num[16], mark[2] = "";

	if (isnan(v)) {
		strcpy(out, "-");
		return out;
	}
	while (fabs(v) >= 999.5 && p + 1 < sizeof(prefix)) {
		v /= 1000;
		p++;
	}
	if (p == 0 && v == floor(v))
		snprintf(num, sizeof(num), "%.0f", v);
	else
		three_digits(num, sizeof(num), v);
	mark[0] = prefix[p];
	if (mark[0] || unit[0])
		snprintf(out, 32, "%s %s%.10s", num, mark, unit);
	else
		snprintf(out, 32, "%s", num);
	return out;
}

char *rg_fmt_bytes(char *out, double bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t u = 0;
	char num[24];

	if (isnan(bytes)) {
		strcpy(out, "-");
		return out;
	}
	while (fabs(bytes) >= 1023.5 && u < 4) {
		bytes /= 1024;
		u++;
	}
	if (u == 0)
		snprintf(num, sizeof(num), "%.0f", bytes);
	else
		three_digits(num, sizeof(num), bytes);
	snprintf(out, 32, "%s %s", num, unit[u]);
	return out;
}

char *rg_fmt_ns(char *out, double ns)
{
	static const char *const unit[] = { "ns", "us", "ms", "s" };
	size_t u = 0;
	char num[24];

	if (isnan(ns)) {
		strcpy(out, "-");
		return out;
	}
	while (fabs(ns) >= 999.5 && u < 3) {
		ns /= 1000;
		u++;
	}
	if (u == 0 && ns == floor(ns))
		snprintf(num, sizeof(num), "%.0f", ns);
	else
		three_digits(num, sizeof(num), ns);
	snprintf(out, 32, "%s %s", num, unit[u]);
	return out;
}

char *rg_fmt_count(char *out, int64_t v)
{
	char digits[24];
	size_t len, at = 0;
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;

	snprintf(digits, sizeof(digits), "%" PRIu64, u);
	len = strlen(digits);
	if (v < 0)
		out[at++] = '-';
	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = '\0';
	return out;
}

bool rg_parse_i64(const char *text, int64_t lo, int64_t hi, int64_t *out)
{
	char *end;
	long long v;

	if (!*text || strchr(" \t\n\v\f\r", *text))
		return false;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno || *end || v < lo || v > hi)
		return false;
	*out = v;
	return true;
}

bool rg_parse_f64(const char *text, double *out)
{
	char *end;
	double v;

	if (!*text || strchr(" \t\n\v\f\r", *text))
		return false;
	v = strtod(text, &end);
	if (*end || end == text || !isfinite(v))
		return false;
	*out = v;
	return true;
}

bool rg_parse_duration_ns(const char *text, uint64_t *out)
{
	static const struct { const char *suffix; double ns; } units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 }, { "", 1e9 },
	};
	char *end;
	double v;

	if (!(*text >= '0' && *text <= '9') && *text != '.')
		return false;
	v = strtod(text, &end);
	if (end == text)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].suffix) == 0) {
			v *= units[i].ns;
			if (!(v >= 0 && v < 9e18))
				return false;
			*out = (uint64_t)v;
			return true;
		}
	}
	return false;
}
