/*
 * Text for terminals: cleaning of hostile names, display width, shortening,
 * wrapping, and numbers for people.
 */
#include "reports/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* Decodes one code point of s into *cp, returns its bytes; 0 when the bytes are
 * no UTF-8 (Unicode 15, table 3-7: no overlong forms, no surrogates). */
static size_t decode(const char *s, uint32_t *cp)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n;
	uint32_t c, least;

	if (u[0] < 0x80) {
		*cp = u[0];
		return 1;
	}
	if (u[0] >= 0xc2 && u[0] <= 0xdf) {
		n = 2, c = u[0] & 0x1f, least = 0x80;
	} else if (u[0] >= 0xe0 && u[0] <= 0xef) {
		n = 3, c = u[0] & 0x0f, least = 0x800;
	} else if (u[0] >= 0xf0 && u[0] <= 0xf4) {
		n = 4, c = u[0] & 0x07, least = 0x10000;
	} else {
		return 0;
	}
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (c < least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*cp = c;
	return n;
}

/* Code points that move the cursor, end the line or turn the direction. */
static bool forbidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x061c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

/* Columns of one code point: the wide blocks of East Asian Width (UAX 11) take
 * two, combining marks none. wcwidth would depend on the locale. */
static int columns_of(uint32_t c)
{
	if ((c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200d) || (c >= 0xfe00 && c <= 0xfe0f))
		return 0;
	if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
	    (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
	    (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd))
		return 2;
	return 1;
}

char *rg_text_clean(const char *s)
{
	char *out = rg_alloc(strlen(s) + 1), *o = out;
	uint32_t c;

	if (!out)
		return NULL;
	while (*s) {
		size_t n = decode(s, &c);

		if (n == 0 || forbidden(c)) {
			*o++ = '?';
			s += n ? n : 1;
			continue;
		}
		memcpy(o, s, n);
		o += n;
		s += n;
	}
	*o = '\0';
	return out;
}

/* Bytes and columns of the code point at s; broken bytes count as one each. */
static size_t step(const char *s, int *columns)
{
	uint32_t c;
	size_t n = decode(s, &c);

	*columns = n ? columns_of(c) : 1;
	return n ? n : 1;
}

int rg_text_width(const char *s)
{
	int width = 0, w;

	while (*s) {
		s += step(s, &w);
		width += w;
	}
	return width;
}

void rg_text_shorten(struct rg_str *out, const char *s, int width)
{
	int total = rg_text_width(s), head, tail, used = 0, w;
	size_t n;

	if (total <= width) {
		rg_str_add(out, s);
		return;
	}
	if (width <= 0)
		return;
	/* The tail gets the larger half: names differ at their end. */
	tail = width / 2;
	head = width - 1 - tail;
	while (*s) {
		n = step(s, &w);
		if (used + w > head)
			break;
		rg_str_addn(out, s, n);
		s += n;
		used += w;
	}
	rg_str_add(out, "\xe2\x80\xa6");
	for (int left = total - used; *s && left > tail; left -= w)
		s += step(s, &w);
	rg_str_add(out, s);
}

static void spaces(struct rg_str *out, int n)
{
	if (n > 0)
		rg_str_printf(out, "%*s", n, "");
}

void rg_text_styled(struct rg_str *out, const struct rg_style *st, const char *sgr, const char *text)
{
	if (st->colour && st->format == RG_FORMAT_TABLE)
		rg_str_printf(out, "\033[%sm%s\033[0m", sgr, text);
	else
		rg_str_add(out, text);
}

/* Length of the next piece that a line must not break: a word, and after a
 * number its unit, and the one-letter mark of its provenance. */
static size_t piece(const char *text)
{
	size_t len = strcspn(text, " ");

	while (text[len] == ' ' && text[len + 1] && text[len + 1] != ' ') {
		size_t next = strcspn(text + len + 1, " ");
		const char *word = text + len + 1;
		bool number = len > 0 && text[len - 1] >= '0' && text[len - 1] <= '9';
		bool mark = (*word == 'm' || *word == '~' || *word == 'd') &&
			    (next == 1 || !strchr("abcdefghijklmnopqrstuvwxyz", word[1]));

		if (!mark && !(number && ((*word >= 'A' && *word <= 'Z') || (*word >= 'a' && *word <= 'z') ||
					  *word == '%')))
			break;
		len += 1 + next;
		if (len > 40)
			break;
	}
	return len;
}

/* Words of a paragraph, wrapped. A word longer than the line stands alone. */
static void wrap(struct rg_str *out, const char *text, int indent, int at, int width)
{
	bool first = true;

	while (*text) {
		size_t len = piece(text);
		char word[512];
		int w;

		if (len >= sizeof(word)) {
			len = sizeof(word) - 1;
			while (len > 1 && ((unsigned char)text[len] & 0xc0) == 0x80)
				len--;
		}
		memcpy(word, text, len);
		word[len] = '\0';
		w = rg_text_width(word);
		if (!first && width > 0 && at + 1 + w > width) {
			rg_str_add(out, "\n");
			spaces(out, indent);
			at = indent;
		} else if (!first) {
			rg_str_add(out, " ");
			at++;
		}
		if (width > 0 && at + w > width && width - at > 8) {
			rg_text_shorten(out, word, width - at);
			at = width;
		} else {
			rg_str_add(out, word);
			at += w;
		}
		first = false;
		text += len;
		text += strspn(text, " ");
	}
	rg_str_add(out, "\n");
}

/* Characters that Markdown would obey. */
static void markdown(struct rg_str *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\`*_[]<>|#", *text))
			rg_str_add(out, "\\");
		rg_str_addn(out, text, 1);
	}
}

void rg_text_paragraph(struct rg_str *out, const struct rg_style *st, const char *key, int indent,
		       const char *text)
{
	char *clean = rg_text_clean(text);
	int at = rg_text_width(key);

	if (!clean) {
		out->failed = true;
		return;
	}
	if (st->format == RG_FORMAT_MD) {
		rg_str_printf(out, "- **%s**: ", key);
		markdown(out, clean);
		rg_str_add(out, "\n");
	} else {
		rg_text_styled(out, st, "1", key);
		spaces(out, indent - at);
		wrap(out, clean, indent, at > indent ? at : indent, st->width);
	}
	rg_free(clean);
}

char *rg_num3(char *out, double v)
{
	double a = fabs(v);

	if (isnan(v))
		strcpy(out, "-");
	else if (isinf(v))
		strcpy(out, v > 0 ? "inf" : "-inf");
	else if (a == 0)
		strcpy(out, "0");
	else if (a >= 1e7 || a < 0.0005)
		snprintf(out, 32, "%.1e", v);
	else if (a >= 99.95)
		snprintf(out, 32, "%.0f", v);
	else if (a >= 9.995)
		snprintf(out, 32, "%.1f", v);
	else if (a >= 0.0995)
		snprintf(out, 32, "%.2f", v);
	else
		snprintf(out, 32, "%.3f", v);
	return out;
}

char *rg_num_percent(char *out, double share)
{
	if (!isfinite(share))
		strcpy(out, "-");
	else
		snprintf(out, 32, "%.1f", share * 100);
	return out;
}

char *rg_num_times(char *out, double factor)
{
	rg_num3(out, factor);
	if (strcmp(out, "-") != 0)
		strcat(out, "x");
	return out;
}

char *rg_num_si(char *out, double v, const char *unit)
{
	static const char *const prefix[] = { "", "k", "M", "G", "T", "P", "E" };
	char num[32];
	size_t p = 0;

	if (isnan(v)) {
		strcpy(out, "-");
		return out;
	}
	while (fabs(v) >= 999.5 && p + 1 < sizeof(prefix) / sizeof(prefix[0])) {
		v /= 1000;
		p++;
	}
	rg_num3(num, v);
	snprintf(out, 48, "%.12s%s%s%.24s", num, p || unit[0] ? " " : "", prefix[p], unit);
	return out;
}

char *rg_num_unit(char *out, double v, const char *unit)
{
	char num[48];

	if (isnan(v)) {
		strcpy(out, "-");
	} else if (strcmp(unit, "bytes") == 0) {
		rg_fmt_bytes(out, v);
	} else if (strcmp(unit, "ns") == 0) {
		rg_fmt_ns(out, v);
	} else if (strcmp(unit, "fraction") == 0) {
		rg_num_percent(num, v);
		snprintf(out, 64, strcmp(num, "-") == 0 ? "%s" : "%s %%", num);
	} else if (strcmp(unit, "flop/s") == 0) {
		rg_num_si(out, v, "FLOP/s");
	} else if (strcmp(unit, "op/s") == 0) {
		rg_num_si(out, v, "OP/s");
	} else if (strcmp(unit, "byte/s") == 0) {
		rg_num_si(out, v, "B/s");
	} else if (strcmp(unit, "flop") == 0 || strcmp(unit, "flops") == 0) {
		rg_num_si(out, v, "FLOP");
	} else if (strcmp(unit, "hz") == 0) {
		rg_num_si(out, v, "Hz");
	} else if (v == floor(v) && fabs(v) < 1e15) {
		rg_fmt_count(num, (int64_t)v);
		snprintf(out, 64, "%.32s%s%.24s", num, unit[0] ? " " : "", unit);
	} else {
		rg_num3(num, v);
		snprintf(out, 64, "%.30s%s%.24s", num, unit[0] ? " " : "", unit);
	}
	return out;
}

const char *rg_provenance_mark(enum rg_provenance p)
{
	switch (p) {
	case RG_PROV_MEASURED:
		return "m";
	case RG_PROV_SIMULATED:
		return "s";
	case RG_PROV_MODELLED:
		return "~";
	case RG_PROV_DECLARED:
		return "d";
	case RG_PROV_UNAVAILABLE:
		break;
	}
	return "-";
}
