/*
 * The pattern becomes a program for a set of threads (Thompson's construction),
 * written as it is read: jumps are relative, so that a piece can be moved behind
 * a branch, or repeated by copying it.
 */
#include "graph/regex.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/text.h"

enum { MAX_OPS = 1 << 16, MAX_RANGES = 1 << 16, MAX_DEPTH = 200, MAX_REPEAT = 1000 };
#define LAST_CHAR 0x10ffffu

enum code { CHAR, ANY, NOT_NEWLINE, CLASS, NOT_CLASS, BRANCH, JUMP, MATCH,
	    TEXT_BEGIN, TEXT_END, LINE_BEGIN, LINE_END, WORD_EDGE, NO_WORD_EDGE };

struct op {
	enum code code;
	int x, y;       /* CHAR: the character; CLASS: first range and how many; BRANCH, JUMP: how far */
};

struct range {
	unsigned first, last;
};

struct rg_regex {
	int n_ops, n_ranges;
	struct op ops[];        /* then the ranges */
};

static const struct range *ranges_of(const struct rg_regex *r)
{
	return (const struct range *)(r->ops + r->n_ops);
}

/* ---- reading a pattern ---- */

struct parser {
	const char *at;
	bool dot_all, lines;    /* (?s), (?m) */
	int depth;
	struct op *ops;
	size_t n_ops, cap_ops;
	struct range *ranges;
	size_t n_ranges, cap_ranges;
	struct rg_error *err;
};

static int bad(struct parser *p, const char *what)
{
	return rg_error_set(p->err, -EINVAL, "the pattern is not valid: %s", what);
}

static int refuse(struct parser *p, const char *what)
{
	return rg_error_set(p->err, RG_ENOTSUP_MODEL, "%s in a pattern is not supported", what);
}

static int make_room(struct parser *p, size_t n)
{
	struct op *ops;

	if (p->n_ops + n > MAX_OPS)
		return refuse(p, "so much");
	ops = rg_grow(p->ops, &p->cap_ops, p->n_ops + n, sizeof(*ops));
	if (!ops)
		return rg_error_nomem(p->err, (p->n_ops + n) * sizeof(*ops));
	p->ops = ops;
	return 0;
}

static int emit(struct parser *p, enum code code, int x, int y)
{
	if (make_room(p, 1))
		return p->err->code;
	p->ops[p->n_ops++] = (struct op){ code, x, y };
	return 0;
}

/* Puts a branch before what was written from `from` on. */
static int insert_branch(struct parser *p, size_t from, int x, int y)
{
	if (make_room(p, 1))
		return p->err->code;
	memmove(p->ops + from + 1, p->ops + from, (p->n_ops - from) * sizeof(*p->ops));
	p->ops[from] = (struct op){ BRANCH, x, y };
	p->n_ops++;
	return 0;
}

/* One more copy of the n operations from `from` on. */
static int copy(struct parser *p, size_t from, size_t n)
{
	if (make_room(p, n))
		return p->err->code;
	memcpy(p->ops + p->n_ops, p->ops + from, n * sizeof(*p->ops));
	p->n_ops += n;
	return 0;
}

static int add_range(struct parser *p, unsigned first, unsigned last)
{
	struct range *r;

	if (p->n_ranges == MAX_RANGES)
		return refuse(p, "so much");
	r = rg_grow(p->ranges, &p->cap_ranges, p->n_ranges + 1, sizeof(*r));
	if (!r)
		return rg_error_nomem(p->err, (p->n_ranges + 1) * sizeof(*r));
	p->ranges = r;
	r[p->n_ranges++] = (struct range){ first, last };
	return 0;
}

/* ---- characters and classes ---- */

struct named_class {
	const char *name;
	struct range r[4];      /* ascending; ends with an empty one, or is full */
};

/* Of ASCII only, as RE2 has them. */
static const struct named_class perl_classes[] = {
	{ "d", { { '0', '9' } } },
	{ "s", { { '\t', '\n' }, { '\f', '\r' }, { ' ', ' ' } } },
	{ "w", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } } },
};
static const struct named_class posix_classes[] = {
	{ "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } } },
	{ "alpha", { { 'A', 'Z' }, { 'a', 'z' } } },
	{ "ascii", { { 0, 0x7f } } },
	{ "blank", { { '\t', '\t' }, { ' ', ' ' } } },
	{ "cntrl", { { 0, 0x1f }, { 0x7f, 0x7f } } },
	{ "digit", { { '0', '9' } } },
	{ "graph", { { '!', '~' } } },
	{ "lower", { { 'a', 'z' } } },
	{ "print", { { ' ', '~' } } },
	{ "punct", { { '!', '/' }, { ':', '@' }, { '[', '`' }, { '{', '~' } } },
	{ "space", { { '\t', '\r' }, { ' ', ' ' } } },
	{ "upper", { { 'A', 'Z' } } },
	{ "word", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } } },
	{ "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } } },
};

static int add_named(struct parser *p, const struct named_class *c, bool negated)
{
	unsigned from = 0;
	int i;

	for (i = 0; i < 4 && (c->r[i].last || c->r[i].first); i++) {
		if (!negated && add_range(p, c->r[i].first, c->r[i].last))
			return p->err->code;
		if (negated && c->r[i].first > from && add_range(p, from, c->r[i].first - 1))
			return p->err->code;
		from = c->r[i].last + 1;
	}
	return negated ? add_range(p, from, LAST_CHAR) : 0;
}

static const struct named_class *find_perl(char c)
{
	for (size_t i = 0; i < sizeof(perl_classes) / sizeof(perl_classes[0]); i++)
		if ((c | 0x20) == perl_classes[i].name[0])
			return &perl_classes[i];
	return NULL;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

static int hex_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* \x41 or \x{1f600}; *at is behind the x. */
static int read_hex(struct parser *p, unsigned *c)
{
	bool braced = *p->at == '{';
	int n = 0;

	p->at += braced;
	for (*c = 0; hex_value(*p->at) >= 0 && (braced || n < 2); n++, p->at++) {
		*c = *c << 4 | (unsigned)hex_value(*p->at);
		if (*c > LAST_CHAR)
			return bad(p, "\\x is beyond Unicode");
	}
	if (n == 0 || (!braced && n < 2) || (braced && *p->at != '}'))
		return bad(p, "\\x needs two digits, or digits in braces");
	p->at += braced;
	return 0;
}

/* A backslash and what stands for one character; *at is behind the backslash. */
static int read_escape(struct parser *p, unsigned *c)
{
	static const char letters[] = "afnrtv", values[] = "\a\f\n\r\t\v";
	const char *l = *p->at ? strchr(letters, *p->at) : NULL;
	int n;

	if (!*p->at)
		return bad(p, "it ends with a backslash");
	if (*p->at == 'x') {
		p->at++;
		return read_hex(p, c);
	}
	if (*p->at == '0' || (is_octal(p->at[0]) && is_octal(p->at[1]))) {
		for (*c = 0, n = 0; n < 3 && is_octal(*p->at); n++)
			*c = *c * 8 + (unsigned)(*p->at++ - '0');
		return 0;
	}
	if (l) {
		*c = (unsigned char)values[l - letters];
	} else if ((unsigned char)*p->at < 0x80 && hex_value(*p->at) < 0 &&
		   !((*p->at | 0x20) >= 'a' && (*p->at | 0x20) <= 'z')) {
		*c = (unsigned char)*p->at;
	} else if (*p->at == 'p' || *p->at == 'P') {
		return refuse(p, "\\p (a class of Unicode)");
	} else if (*p->at == 'C') {
		return refuse(p, "\\C (a byte)");
	} else {
		return bad(p, "an unknown escape");
	}
	p->at++;
	return 0;
}

static int read_char(struct parser *p, unsigned *c)
{
	if (*p->at == '\\') {
		p->at++;
		return read_escape(p, c);
	}
	*c = rg_text_next(&p->at);
	return *c >= RG_TEXT_BYTE ? bad(p, "it is no UTF-8") : 0;
}

/* [:name:] or [:^name:]; *at is at the bracket. *found false: it is none. */
static int read_posix(struct parser *p, bool *found)
{
	const char *name = p->at + 2, *end = p->at[0] == '[' && p->at[1] == ':' ? strstr(name, ":]") : NULL;
	bool negated;

	*found = end;
	if (!end)
		return 0;
	negated = *name == '^';
	name += negated;
	p->at = end + 2;
	for (size_t i = 0; i < sizeof(posix_classes) / sizeof(posix_classes[0]) && name <= end; i++)
		if (strlen(posix_classes[i].name) == (size_t)(end - name) &&
		    strncmp(posix_classes[i].name, name, (size_t)(end - name)) == 0)
			return add_named(p, &posix_classes[i], negated);
	return bad(p, "a class of an unknown name");
}

static int read_class_part(struct parser *p)
{
	const struct named_class *perl = p->at[0] == '\\' ? find_perl(p->at[1]) : NULL;
	unsigned first, last;
	bool posix;

	if (perl) {
		bool negated = !(p->at[1] & 0x20);

		p->at += 2;
		return add_named(p, perl, negated);
	}
	if (read_posix(p, &posix) || posix)
		return p->err->code;
	if (read_char(p, &first))
		return p->err->code;
	last = first;
	if (p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
		p->at++;
		if (read_char(p, &last))
			return p->err->code;
	}
	return last < first ? bad(p, "a range of characters runs backwards") : add_range(p, first, last);
}

/* *at is behind the opening bracket. */
static int read_class(struct parser *p)
{
	size_t from = p->n_ranges;
	bool negated = *p->at == '^', first = true;

	p->at += negated;
	for (; *p->at && (first || *p->at != ']'); first = false)
		if (read_class_part(p))
			return p->err->code;
	if (!*p->at)
		return bad(p, "a ] is missing");
	p->at++;
	return emit(p, negated ? NOT_CLASS : CLASS, (int)from, (int)(p->n_ranges - from));
}

/* ---- groups, repetition, alternatives ---- */

static int read_alternatives(struct parser *p, int *repeats);

/* (?flags) or (?flags:...; *at is behind the question mark. *group: the latter. */
static int read_flags(struct parser *p, bool *group)
{
	bool on = true, lacks = false;

	for (;; p->at++) {
		switch (*p->at) {
		case 's': p->dot_all = on; break;
		case 'm': p->lines = on; break;
		case 'U': break; /* who takes most: the same for whole strings */
		case 'i':
			if (on)
				return refuse(p, "(?i)");
			break;
		case '-':
			if (!on)
				return bad(p, "(? has two minus signs");
			on = false;
			lacks = true;
			continue;
		case ':':
		case ')':
			if (lacks)
				return bad(p, "(?- lacks a flag");
			*group = *p->at++ == ':';
			return 0;
		default:
			return bad(p, "(? is followed by something unknown");
		}
		lacks = false;
	}
}

static int read_name(struct parser *p)
{
	const char *from = p->at;

	while (hex_value(*p->at) >= 0 || ((*p->at | 0x20) >= 'a' && (*p->at | 0x20) <= 'z') || *p->at == '_')
		p->at++;
	if (*p->at != '>' || p->at == from)
		return bad(p, "the name of a group");
	p->at++;
	return 0;
}

/* *at is behind the opening parenthesis. *empty: it only set flags. */
static int read_group(struct parser *p, int *repeats, bool *only_flags)
{
	bool dot_all = p->dot_all, lines = p->lines, group = true;

	*only_flags = false;
	if (*p->at == '?') {
		int skip = strncmp(p->at, "?P<", 3) == 0 ? 3 : strncmp(p->at, "?<", 2) == 0 ? 2 : 0;

		p->at += skip ? skip : 1;
		if (skip ? read_name(p) : read_flags(p, &group))
			return p->err->code;
		*only_flags = !group;
		if (!group)
			return 0;
	}
	if (++p->depth > MAX_DEPTH)
		return refuse(p, "groups in so many others");
	if (read_alternatives(p, repeats))
		return p->err->code;
	p->depth--;
	if (*p->at != ')')
		return bad(p, "a ) is missing");
	p->at++;
	p->dot_all = dot_all;
	p->lines = lines;
	return 0;
}

/* {n}, {n,}, {n,m}; anything else is no repetition. most -1: no limit. */
static bool read_braces(struct parser *p, int *least, int *most)
{
	const char *s = p->at + 1;
	int *to = least;

	*least = *most = -2;
	for (;;) {
		if (*s < '0' || *s > '9' || (s[0] == '0' && s[1] >= '0' && s[1] <= '9'))
			return false;
		for (*to = 0; *s >= '0' && *s <= '9'; s++)
			*to = *to > MAX_REPEAT ? *to : *to * 10 + (*s - '0');
		if (to == least && s[0] == ',' && s[1] == '}') {
			*most = -1;
			s++;
		}
		if (*s == '}')
			break;
		if (to == most || *s++ != ',')
			return false;
		to = most;
	}
	if (*most == -2)
		*most = *least;
	p->at = s + 1;
	return true;
}

/* Repeats what was written from `from` on. */
static int repeat(struct parser *p, size_t from, int least, int most)
{
	size_t n = p->n_ops - from, end;
	int len = (int)n;

	if (most == 0) {
		p->n_ops = from;
		return 0;
	}
	if (least == 0 && most < 0) /* x* */
		return insert_branch(p, from, 1, len + 2) || emit(p, JUMP, -(len + 1), 0) ? p->err->code : 0;
	for (int i = 1; i < least; i++)
		if (copy(p, from, n))
			return p->err->code;
	if (most < 0)
		return emit(p, BRANCH, -len, 1);
	if (least == 0 && insert_branch(p, from, 1, 0))
		return p->err->code;
	for (int i = least > 0 ? least : 1; i < most; i++)
		if (emit(p, BRANCH, 1, 0) || copy(p, least > 0 ? from : from + 1, n))
			return p->err->code;
	/* Each optional one begins with a branch to the end of all. */
	end = p->n_ops;
	for (int i = least; i < most; i++) {
		size_t branch = end - (size_t)(most - i) * (n + 1);

		p->ops[branch].y = (int)(end - branch);
	}
	return 0;
}

/* What follows an atom that was written from `from` on. */
static int read_repetition(struct parser *p, size_t from, int *repeats)
{
	int least, most;
	bool seen = false;

	for (;;) {
		if (*p->at == '*' || *p->at == '+' || *p->at == '?') {
			least = *p->at == '+';
			most = *p->at == '?' ? 1 : -1;
			p->at++;
		} else if (*p->at == '{' && read_braces(p, &least, &most)) {
			int times = most < 0 ? least : most;

			if (least > MAX_REPEAT || most > MAX_REPEAT || (most >= 0 && most < least))
				return bad(p, "a repetition of an impossible size");
			*repeats *= times > 1 ? times : 1;
			if (*repeats > MAX_REPEAT)
				return bad(p, "repetitions in each other are too many");
		} else {
			return 0;
		}
		if (seen)
			return bad(p, "a repetition of a repetition");
		seen = true;
		p->at += *p->at == '?'; /* the shortest: the same for whole strings */
		if (repeat(p, from, least, most))
			return p->err->code;
	}
}

/* \Q...\E: *at is behind the Q. *last: where the last character was written. */
static int read_quoted(struct parser *p, size_t *last)
{
	while (*p->at && strncmp(p->at, "\\E", 2) != 0) {
		unsigned c = rg_text_next(&p->at);

		*last = p->n_ops;
		if (c >= RG_TEXT_BYTE)
			return bad(p, "it is no UTF-8");
		if (emit(p, CHAR, (int)c, 0))
			return p->err->code;
	}
	p->at += *p->at ? 2 : 0;
	return 0;
}

/* Escapes that stand for more than a character. *done false: it is another one. */
static int read_special(struct parser *p, size_t *last, bool *done)
{
	const struct named_class *perl = find_perl(p->at[1]);
	size_t from = p->n_ranges;
	enum code code;

	*done = true;
	if (perl) {
		bool negated = !(p->at[1] & 0x20);

		p->at += 2;
		if (add_named(p, perl, false))
			return p->err->code;
		return emit(p, negated ? NOT_CLASS : CLASS, (int)from, (int)(p->n_ranges - from));
	}
	switch (p->at[1]) {
	case 'A': code = TEXT_BEGIN; break;
	case 'z': code = TEXT_END; break;
	case 'b': code = WORD_EDGE; break;
	case 'B': code = NO_WORD_EDGE; break;
	case 'Q':
		p->at += 2;
		return read_quoted(p, last);
	case 'E': /* an end without a beginning */
		p->at += 2;
		return 0;
	default:
		*done = false;
		return 0;
	}
	p->at += 2;
	return emit(p, code, 0, 0);
}

static int read_atom(struct parser *p, int *repeats, size_t *last, bool *nothing)
{
	unsigned c;
	bool done;

	*nothing = false;
	switch (*p->at) {
	case '(':
		p->at++;
		return read_group(p, repeats, nothing);
	case '[':
		p->at++;
		return read_class(p);
	case '.':
		p->at++;
		return emit(p, p->dot_all ? ANY : NOT_NEWLINE, 0, 0);
	case '^':
		p->at++;
		return emit(p, p->lines ? LINE_BEGIN : TEXT_BEGIN, 0, 0);
	case '$':
		p->at++;
		return emit(p, p->lines ? LINE_END : TEXT_END, 0, 0);
	case '*':
	case '+':
	case '?':
		return bad(p, "there is nothing to repeat");
	case '\\':
		if (read_special(p, last, &done) || done)
			return p->err->code;
		break;
	case '{':
		if (read_braces(p, &(int){ 0 }, &(int){ 0 }))
			return bad(p, "there is nothing to repeat");
		break;
	}
	return read_char(p, &c) || emit(p, CHAR, (int)c, 0) ? p->err->code : 0;
}

/* A repetition behind flags is one of what stands before them. */
static int read_sequence(struct parser *p, int *repeats)
{
	size_t last = 0;
	bool any = false;
	int times = 1;

	while (*p->at && *p->at != '|' && *p->at != ')') {
		size_t from = p->n_ops;
		int new_times = 1;
		bool nothing;

		if (read_atom(p, &new_times, &from, &nothing))
			return p->err->code;
		if (!nothing) {
			last = from;
			times = new_times;
			any = true;
		}
		if (any && read_repetition(p, last, &times))
			return p->err->code;
		*repeats = times > *repeats ? times : *repeats;
	}
	return 0;
}

static int read_alternatives(struct parser *p, int *repeats)
{
	size_t from = p->n_ops;
	int last_jump = -1; /* the jumps behind the alternatives, each in x the one before */

	if (read_sequence(p, repeats))
		return p->err->code;
	while (*p->at == '|') {
		int len = (int)(p->n_ops - from);

		p->at++;
		if (insert_branch(p, from, 1, len + 2) || emit(p, JUMP, last_jump, 0))
			return p->err->code;
		last_jump = (int)p->n_ops - 1;
		from = p->n_ops;
		if (read_sequence(p, repeats))
			return p->err->code;
	}
	while (last_jump >= 0) {
		int before = p->ops[last_jump].x;

		p->ops[last_jump].x = (int)p->n_ops - last_jump;
		last_jump = before;
	}
	return 0;
}

int rg_regex_new(const char *pattern, struct rg_regex **out, struct rg_error *err)
{
	struct parser p = { .at = pattern, .err = err };
	struct rg_regex *r = NULL;
	int repeats = 1, rc = read_alternatives(&p, &repeats);

	if (!rc && *p.at)
		rc = bad(&p, "a ) has no (");
	if (!rc)
		rc = emit(&p, MATCH, 0, 0);
	if (!rc) {
		size_t bytes = sizeof(*r) + p.n_ops * sizeof(*p.ops) + p.n_ranges * sizeof(*p.ranges);

		r = rg_calloc(1, bytes);
		rc = r ? 0 : rg_error_nomem(err, bytes);
	}
	if (!rc) {
		r->n_ops = (int)p.n_ops;
		r->n_ranges = (int)p.n_ranges;
		memcpy(r->ops, p.ops, p.n_ops * sizeof(*p.ops));
		if (p.n_ranges)
			memcpy(r->ops + r->n_ops, p.ranges, p.n_ranges * sizeof(*p.ranges));
	}
	rg_free(p.ops);
	rg_free(p.ranges);
	*out = r;
	return rc;
}

size_t rg_regex_bytes(const struct rg_regex *r)
{
	return sizeof(*r) + (size_t)r->n_ops * sizeof(r->ops[0]) + (size_t)r->n_ranges * sizeof(struct range);
}

/* ---- matching ---- */

struct threads {
	int *now, *next, *stack;
	int n_now, n_next;
	uint64_t *seen;          /* by operation: the round in which it was reached */
	uint64_t round;
};

size_t rg_regex_scratch_bytes(const struct rg_regex *r)
{
	return (size_t)r->n_ops * (sizeof(uint64_t) + 3 * sizeof(int));
}

static bool is_word(unsigned c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

/* Of a place between two characters, 0 at the ends. */
static bool holds(enum code code, unsigned before, unsigned after)
{
	switch (code) {
	case TEXT_BEGIN: return before == 0;
	case TEXT_END: return after == 0;
	case LINE_BEGIN: return before == 0 || before == '\n';
	case LINE_END: return after == 0 || after == '\n';
	case WORD_EDGE: return is_word(before) != is_word(after);
	default: return is_word(before) == is_word(after);
	}
}

static void reach(struct threads *t, int at, int *depth)
{
	if (t->seen[at] == t->round)
		return;
	t->seen[at] = t->round;
	t->stack[(*depth)++] = at;
}

/* Adds all operations that wait for a character and are reached from `at`. */
static void add(struct threads *t, const struct rg_regex *r, int at, unsigned before, unsigned after)
{
	int depth = 0;

	reach(t, at, &depth);
	while (depth > 0) {
		int i = t->stack[--depth];
		const struct op *o = &r->ops[i];

		switch (o->code) {
		case BRANCH:
			reach(t, i + o->y, &depth);
			reach(t, i + o->x, &depth);
			break;
		case JUMP:
			reach(t, i + o->x, &depth);
			break;
		case CHAR: case ANY: case NOT_NEWLINE: case CLASS: case NOT_CLASS: case MATCH:
			t->next[t->n_next++] = i;
			break;
		default:
			if (holds(o->code, before, after))
				reach(t, i + 1, &depth);
			break;
		}
	}
}

static bool in_class(const struct rg_regex *r, const struct op *o, unsigned c)
{
	const struct range *ranges = ranges_of(r) + o->x;

	for (int i = 0; i < o->y; i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

static bool takes(const struct rg_regex *r, const struct op *o, unsigned c)
{
	if (c >= RG_TEXT_BYTE)
		return false; /* no character */
	switch (o->code) {
	case CHAR: return (unsigned)o->x == c;
	case ANY: return true;
	case NOT_NEWLINE: return c != '\n';
	case CLASS: return in_class(r, o, c);
	case NOT_CLASS: return !in_class(r, o, c);
	default: return false;
	}
}

bool rg_regex_match(const struct rg_regex *r, const char *s, void *scratch)
{
	struct threads t = { .seen = scratch, .round = 1 };
	unsigned before = 0, c, after;

	t.now = (int *)(t.seen + r->n_ops);
	t.next = t.now + r->n_ops;
	t.stack = t.next + r->n_ops;
	memset(t.seen, 0, (size_t)r->n_ops * sizeof(*t.seen));
	for (c = rg_text_next(&s), add(&t, r, 0, before, c); c; c = after) {
		int *swap = t.now;

		after = rg_text_next(&s);
		t.now = t.next;
		t.next = swap;
		t.n_now = t.n_next;
		t.n_next = 0;
		t.round++;
		for (int i = 0; i < t.n_now; i++)
			if (takes(r, &r->ops[t.now[i]], c))
				add(&t, r, t.now[i] + 1, c, after);
		if (t.n_next == 0)
			return false;
	}
	for (int i = 0; i < t.n_next; i++)
		if (r->ops[t.next[i]].code == MATCH)
			return true;
	return false;
}
