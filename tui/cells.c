/* The cell buffer: clipping, UTF-8, wrapping. */
#include "tui/cells.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define MAX_SIDE 2000

bool rg_cells_init(struct rg_cells *c, int width, int height)
{
	memset(c, 0, sizeof(*c));
	if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE)
		return false;
	c->cell = rg_calloc((size_t)width * (size_t)height, sizeof(*c->cell));
	if (!c->cell)
		return false;
	c->width = width;
	c->height = height;
	return true;
}

void rg_cells_free(struct rg_cells *c)
{
	rg_free(c->cell);
	memset(c, 0, sizeof(*c));
}

void rg_cells_clear(struct rg_cells *c)
{
	memset(c->cell, 0, (size_t)c->width * (size_t)c->height * sizeof(*c->cell));
}

void rg_cells_put(struct rg_cells *c, int x, int y, uint32_t code, enum rg_role role)
{
	if (x < 0 || y < 0 || x >= c->width || y >= c->height)
		return;
	c->cell[y * c->width + x] = (struct rg_cell){ code, (uint8_t)role };
}

/* Takes one code point off *s; anything that is not printable becomes '?'. */
static uint32_t next_code(const char **s)
{
	const unsigned char *p = (const unsigned char *)*s;
	uint32_t code;
	int more;

	if (p[0] < 0x80) {
		*s += 1;
		return p[0] < 0x20 || p[0] == 0x7f ? '?' : p[0];
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		more = 1;
		code = p[0] & 0x1fu;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		more = 2;
		code = p[0] & 0x0fu;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		more = 3;
		code = p[0] & 0x07u;
	} else {
		*s += 1;
		return '?';
	}
	for (int i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			*s += 1;
			return '?';
		}
		code = code << 6 | (p[i] & 0x3fu);
	}
	*s += more + 1;
	/* C1 controls, surrogates and direction marks must not reach a terminal */
	if ((code >= 0x80 && code < 0xa0) || (code >= 0xd800 && code < 0xe000) || (code >= 0x200b && code <= 0x200f) ||
	    (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code > 0x10ffff)
		return '?';
	return code;
}

static int columns(const char *text)
{
	int n = 0;

	while (*text) {
		next_code(&text);
		n++;
	}
	return n;
}

int rg_cells_text(struct rg_cells *c, int x, int y, int width, enum rg_role role, const char *text)
{
	bool too_long;

	if (x + width > c->width)
		width = c->width - x;
	if (width <= 0)
		return x;
	too_long = columns(text) > width;
	for (int i = 0; *text && i < width; i++) {
		uint32_t code = next_code(&text);

		if (too_long && i == width - 1)
			code = '~';
		rg_cells_put(c, x++, y, code, role);
	}
	return x;
}

void rg_cells_name(struct rg_cells *c, int x, int y, int width, enum rg_role role, const char *text)
{
	int n = columns(text), head = width / 3;

	if (n > width && width > 0) {
		for (int i = 0; i < head; i++)
			rg_cells_put(c, x++, y, next_code(&text), role);
		rg_cells_put(c, x++, y, '~', role);
		for (int skip = n - width + 1; skip > 0; skip--)
			next_code(&text);
		width -= head + 1;
	}
	rg_cells_text(c, x, y, width, role, text);
}

int rg_cells_printf(struct rg_cells *c, int x, int y, int width, enum rg_role role, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return rg_cells_text(c, x, y, width, role, text);
}

void rg_cells_right(struct rg_cells *c, int x, int y, int width, enum rg_role role, const char *text)
{
	int n = columns(text);

	if (n < width)
		x += width - n;
	else
		n = width;
	rg_cells_text(c, x, y, n, role, text);
}

void rg_cells_line_role(struct rg_cells *c, int y, enum rg_role role)
{
	if (y < 0 || y >= c->height)
		return;
	for (int x = 0; x < c->width; x++)
		c->cell[y * c->width + x].role = (uint8_t)role;
}

static void add_utf8(struct rg_str *out, uint32_t code)
{
	char b[4];

	if (code < 0x80) {
		b[0] = (char)code;
		rg_str_addn(out, b, 1);
	} else if (code < 0x800) {
		b[0] = (char)(0xc0 | code >> 6);
		b[1] = (char)(0x80 | (code & 0x3f));
		rg_str_addn(out, b, 2);
	} else if (code < 0x10000) {
		b[0] = (char)(0xe0 | code >> 12);
		b[1] = (char)(0x80 | (code >> 6 & 0x3f));
		b[2] = (char)(0x80 | (code & 0x3f));
		rg_str_addn(out, b, 3);
	} else {
		b[0] = (char)(0xf0 | code >> 18);
		b[1] = (char)(0x80 | (code >> 12 & 0x3f));
		b[2] = (char)(0x80 | (code >> 6 & 0x3f));
		b[3] = (char)(0x80 | (code & 0x3f));
		rg_str_addn(out, b, 4);
	}
}

void rg_cells_dump(const struct rg_cells *c, struct rg_str *out)
{
	for (int y = 0; y < c->height; y++) {
		const struct rg_cell *row = &c->cell[y * c->width];
		int last = c->width;

		while (last > 0 && (row[last - 1].code == 0 || row[last - 1].code == ' '))
			last--;
		for (int x = 0; x < last; x++)
			add_utf8(out, row[x].code ? row[x].code : ' ');
		rg_str_add(out, "\n");
	}
}

int rg_cells_wrap(struct rg_cells *c, int x, int y, int width, int rows, enum rg_role role, const char *text)
{
	int lines = 0;

	while (*text && width > 0) {
		const char *at = text, *cut = NULL;
		char line[1024];
		size_t len;
		int n = 0;

		while (*at && *at != '\n' && n < width) {
			if (*at == ' ')
				cut = at;
			next_code(&at);
			n++;
		}
		if (*at && *at != ' ' && *at != '\n' && cut)
			at = cut;
		len = (size_t)(at - text);
		if (len >= sizeof(line))
			len = sizeof(line) - 1;
		memcpy(line, text, len);
		line[len] = '\0';
		if (lines < rows)
			rg_cells_text(c, x, y + lines, width, role, line);
		lines++;
		while (*at == ' ' || *at == '\n')
			at++;
		text = at;
	}
	return lines;
}
