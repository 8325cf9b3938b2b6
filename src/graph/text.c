/* UTF-8 and the cutting of strings; see text.h. */
#include "graph/text.h"

#include <inttypes.h>
#include <string.h>

/* ---- UTF-8 ---- */

unsigned rg_text_next(const char **s)
{
	const unsigned char *p = (const unsigned char *)*s;
	static const unsigned least[] = { 0, 0x80, 0x800, 0x10000 };
	int more = p[0] < 0x80 ? 0 : p[0] >= 0xc2 && p[0] < 0xe0 ? 1 : (p[0] & 0xf0) == 0xe0 ? 2 :
		   p[0] >= 0xf0 && p[0] < 0xf5 ? 3 : -1;
	unsigned c = more <= 0 ? p[0] : p[0] & (0x3fu >> more);
	int i;

	if (p[0] == 0)
		return 0;
	for (i = 1; i <= more && (p[i] & 0xc0) == 0x80; i++)
		c = c << 6 | (p[i] & 0x3f);
	if (more < 0 || i <= more || c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		*s += 1;
		return RG_TEXT_BYTE + p[0];
	}
	*s += more + 1;
	return c;
}

int rg_text_put(char *to, unsigned c)
{
	if (c >= RG_TEXT_BYTE || c < 0x80) {
		to[0] = (char)(c & 0xff);
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* ---- StringNormalizer ---- */

/* Languages whose letters have another case than Unicode's own mapping gives. */
static bool has_own_case(const char *locale)
{
	static const char *const languages[] = { "tr", "az", "lt" };

	for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++)
		if (strncmp(locale, languages[i], 2) == 0 && strchr("_-.@", locale[2]))
			return true;
	return false;
}

int rg_text_normal_resolve(const struct rg_node *n, struct rg_text_normal *a, struct rg_error *err)
{
	const char *change = rg_node_string(n, "case_change_action", "NONE");
	const char *locale = rg_node_string(n, "locale", "en_US");

	memset(a, 0, sizeof(*a));
	if (strcmp(change, "LOWER") == 0)
		a->change = RG_CASE_LOWER;
	else if (strcmp(change, "UPPER") == 0)
		a->change = RG_CASE_UPPER;
	else if (strcmp(change, "NONE") != 0)
		return rg_error_set(err, -EINVAL, "%s: case_change_action '%s' is not known", n->op_type, change);
	a->sensitive = rg_node_int(n, "is_case_sensitive", 0) != 0;
	a->ascii = strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0;
	a->stop = rg_node_attr(n, "stopwords");
	if (has_own_case(locale) && (a->change != RG_CASE_NONE || !a->sensitive))
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s: letter case in the locale '%s' is not supported",
				    n->op_type, locale);
	return 0;
}

static bool is_same(const struct rg_text_normal *a, const char *x, const char *y)
{
	enum rg_text_case to = a->change == RG_CASE_NONE ? RG_CASE_LOWER : a->change;
	unsigned p, q;

	if (a->sensitive)
		return strcmp(x, y) == 0;
	do {
		p = rg_text_next(&x);
		q = rg_text_next(&y);
		if (p != q && rg_text_map(p, to, a->ascii) != rg_text_map(q, to, a->ascii))
			return false;
	} while (p && q);
	return p == q;
}

bool rg_text_is_kept(const struct rg_text_normal *a, const char *s)
{
	for (int i = 0; a->stop && i < a->stop->count; i++)
		if (is_same(a, s, a->stop->strings[i]))
			return false;
	return true;
}

/* ---- StringSplit ---- */

int rg_text_split_resolve(const struct rg_node *n, struct rg_text_split *a, struct rg_error *err)
{
	int64_t max = rg_node_int(n, "maxsplit", -1);

	a->delimiter = rg_node_string(n, "delimiter", "");
	a->delimiter_len = strlen(a->delimiter);
	a->max = max < 0 ? INT64_MAX : max;
	return 0;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* White space never begins or ends a piece, the last one included. */
static bool next_word(const struct rg_text_split *a, const char **at, int64_t *cuts, const char **piece,
		      size_t *len)
{
	const char *s = *at, *end;

	while (is_space(*s))
		s++;
	if (!*s)
		return false;
	for (end = s; *end && (*cuts >= a->max || !is_space(*end)); end++)
		;
	*at = end;
	while (is_space(end[-1]))
		end--;
	*piece = s;
	*len = (size_t)(end - s);
	++*cuts;
	return true;
}

bool rg_text_split_next(const struct rg_text_split *a, const char **at, int64_t *cuts, const char **piece,
			size_t *len)
{
	const char *end;

	if (!a->delimiter_len)
		return next_word(a, at, cuts, piece, len);
	if (!*at || (*cuts == 0 && !**at))
		return false;
	end = *cuts < a->max ? strstr(*at, a->delimiter) : NULL;
	*piece = *at;
	*len = end ? (size_t)(end - *at) : strlen(*at);
	*at = end ? end + a->delimiter_len : NULL;
	++*cuts;
	return true;
}

int64_t rg_text_split_count(const struct rg_text_split *a, const char *s)
{
	int64_t cuts = 0, n = 0;
	const char *piece;
	size_t len;

	while (rg_text_split_next(a, &s, &cuts, &piece, &len))
		n++;
	return n;
}
