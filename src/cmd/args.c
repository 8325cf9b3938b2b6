/*
 * The command line parser. getopt_long knows one verb's options only once the
 * verb is known and has no place for "nearest name", so this is our own, driven
 * by the two tables.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "compile/pass.h"
#include "cmd/cmd.h"
#include "graph/op.h"
#include "graph/tensor.h"
#include "sys/cpu.h"
#include "sys/topology.h"

const struct rg_cmd *rg_cmd_find(const char *name)
{
	for (int i = 0; i < rg_n_cmds; i++)
		if (strcmp(rg_cmds[i].name, name) == 0)
			return &rg_cmds[i];
	return NULL;
}

/* Edit distance (Levenshtein 1966) with one row; words longer than the row are
 * no typing mistakes of ours. */
static int distance(const char *a, const char *b)
{
	int row[48], n = (int)strlen(b);

	if (n >= 47 || strlen(a) >= 47)
		return 99;
	for (int j = 0; j <= n; j++)
		row[j] = j;
	for (int i = 1; a[i - 1]; i++) {
		int diagonal = row[0];

		row[0] = i;
		for (int j = 1; j <= n; j++) {
			int best = diagonal + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[n];
}

const char *rg_args_nearest(const char *word, const char *const *candidates, int n)
{
	const char *best = NULL;
	int least = 99;

	for (int i = 0; i < n; i++) {
		int d = distance(word, candidates[i]);
		size_t len = strlen(word);

		/* A beginning of the right name is near, however short. */
		if (len >= 3 && strncmp(word, candidates[i], len) == 0)
			d = 0;
		if (d < least) {
			least = d;
			best = candidates[i];
		}
	}
	return least <= (strlen(word) <= 4 ? 1 : 3) && least < 99 ? best : NULL;
}

int rg_args_unknown_verb(const char *word, struct rg_error *err)
{
	const char *names[32], *near;
	int n = 0;

	for (int i = 0; i < rg_n_cmds && n < 32; i++)
		names[n++] = rg_cmds[i].name;
	rg_error_set(err, RG_EUSAGE, "there is no verb '%s'", word);
	near = rg_args_nearest(word, names, n);
	if (near)
		return rg_error_hint(err, "did you mean  ridge %s ?  ridge help lists all verbs", near);
	return rg_error_hint(err, "ridge help lists all verbs");
}

static int unknown_option(const struct rg_cmd *c, const char *word, struct rg_error *err)
{
	const char *names[RG_OPT_COUNT], *near;
	int n = 0;

	for (int i = 0; i < RG_OPT_COUNT; i++)
		if (!c || c->options >> i & 1)
			names[n++] = rg_opts[i].name;
	rg_error_set(err, RG_EUSAGE, "there is no option %s%s", strlen(word) == 1 ? "-" : "--", word);
	near = rg_args_nearest(word, names, n);
	if (near)
		return rg_error_hint(err, "did you mean --%s ?", near);
	return rg_error_hint(err, c ? "ridge help %s lists its options" : "see  ridge help%s",
			     c ? c->name : "");
}

static const struct rg_opt *find_long(const char *name, size_t len)
{
	for (int i = 0; i < RG_OPT_COUNT; i++)
		if (strlen(rg_opts[i].name) == len && strncmp(rg_opts[i].name, name, len) == 0)
			return &rg_opts[i];
	return NULL;
}

static const struct rg_opt *find_letter(char letter)
{
	for (int i = 0; i < RG_OPT_COUNT; i++)
		if (rg_opts[i].letter && rg_opts[i].letter == letter)
			return &rg_opts[i];
	return NULL;
}

static int bad_value(const struct rg_opt *o, const char *value, const char *wanted, struct rg_error *err)
{
	rg_error_set(err, RG_EUSAGE, "--%s %s: not %s", o->name, value, wanted);
	return rg_error_hint(err, "--%s %s: %s", o->name, o->value, o->help);
}

/* Splits "NAME=VALUE" at the first or last '='; NULL when there is none, or
 * NAME or VALUE is empty. */
static char *split(struct rg_args *a, const char *text, bool last, const char **value)
{
	const char *eq = last ? strrchr(text, '=') : strchr(text, '=');

	if (!eq || eq == text || !eq[1])
		return NULL;
	*value = eq + 1;
	return rg_arena_strndup(a->arena, text, (size_t)(eq - text));
}

/* Room for one more element in a list of the arena. The old list is left to it:
 * command lines are short. */
static void *one_more(struct rg_args *a, const void *old, int n, size_t size)
{
	void *p = rg_arena_alloc(a->arena, (size_t)n + 1, size);

	if (p && n > 0)
		memcpy(p, old, (size_t)n * size);
	return p;
}

static int add_word(struct rg_args *a, const char ***list, int *n, const char *word, struct rg_error *err)
{
	const char **p = one_more(a, *list, *n, sizeof(*p));

	if (!p)
		return rg_error_nomem(err, sizeof(*p));
	*list = p;
	p[(*n)++] = word;
	return 0;
}

static int set_range(struct rg_args *a, const struct rg_opt *o, char *name, const char *text,
		     struct rg_error *err)
{
	double lo = NAN, hi = NAN;
	bool good = false;

	/* "0...5" has its dots in two readings; take the first that is two numbers. */
	for (const char *dots = strstr(text, ".."); dots && !good; dots = strstr(dots + 1, "..")) {
		char *left = rg_arena_strndup(a->arena, text, (size_t)(dots - text));

		if (!left)
			return rg_error_nomem(err, (unsigned long)strlen(text));
		good = rg_parse_f64(left, &lo) && rg_parse_f64(dots + 2, &hi) && lo <= hi;
	}
	if (!good)
		return bad_value(o, text, "two numbers LO..HI with LO <= HI", err);
	a->session.ranges = one_more(a, a->session.ranges, a->session.n_ranges, sizeof(*a->session.ranges));
	if (!a->session.ranges)
		return rg_error_nomem(err, sizeof(*a->session.ranges));
	a->session.ranges[a->session.n_ranges++] = (struct rg_input_range){ name, lo, hi };
	return 0;
}

static int set_named(struct rg_args *a, const struct rg_opt *o, const char *text, struct rg_error *err)
{
	struct rg_session_options *s = &a->session;
	const char *value = NULL;
	char *name = split(a, text, o->id == RG_OPT_KERNEL, &value);
	struct rg_shape shape;
	int64_t v;
	void *p;

	if (!name && o->id == RG_OPT_KERNEL && a->cmd->bare_names && *text && !strchr(text, '=')) {
		name = rg_arena_strdup(a->arena, "");
		value = text;
	}
	if (!name && o->id == RG_OPT_SHAPE && a->cmd->bare_names && *text && !strchr(text, '='))
		return add_word(a, &a->bare_shapes, &a->n_bare_shapes, text, err);
	if (!name)
		return bad_value(o, text, o->value, err);
	switch (o->id) {
	case RG_OPT_INPUT:
		p = one_more(a, s->inputs, s->n_inputs, sizeof(*s->inputs));
		if (!p)
			return rg_error_nomem(err, sizeof(*s->inputs));
		s->inputs = p;
		s->inputs[s->n_inputs++] = (struct rg_input_file){ name, value };
		return 0;
	case RG_OPT_INPUT_RANGE:
		return set_range(a, o, name, value, err);
	case RG_OPT_SHAPE:
		if (rg_shape_parse(value, &shape, err) != 0) {
			char why[512];

			memcpy(why, err->message, sizeof(why));
			rg_error_set(err, RG_EUSAGE, "--shape %s: %.300s", text, why);
			return rg_error_hint(err, "write it as --shape %s=1x3x640x640", name);
		}
		p = one_more(a, s->bindings.shapes, s->bindings.n_shapes, sizeof(*s->bindings.shapes));
		if (!p)
			return rg_error_nomem(err, sizeof(*s->bindings.shapes));
		s->bindings.shapes = p;
		s->bindings.shapes[s->bindings.n_shapes].input = name;
		s->bindings.shapes[s->bindings.n_shapes++].shape = shape;
		return 0;
	case RG_OPT_DIM:
		if (!rg_parse_i64(value, 0, INT32_MAX, &v))
			return bad_value(o, text, "NAME=N with a whole number N >= 0", err);
		p = one_more(a, s->bindings.dims, s->bindings.n_dims, sizeof(*s->bindings.dims));
		if (!p)
			return rg_error_nomem(err, sizeof(*s->bindings.dims));
		s->bindings.dims = p;
		s->bindings.dims[s->bindings.n_dims].symbol = name;
		s->bindings.dims[s->bindings.n_dims++].value = v;
		return 0;
	case RG_OPT_KERNEL:
		p = one_more(a, s->overrides, s->n_overrides, sizeof(*s->overrides));
		if (!p)
			return rg_error_nomem(err, sizeof(*s->overrides));
		s->overrides = p;
		s->overrides[s->n_overrides].op = name;
		s->overrides[s->n_overrides++].kernel = value;
		return 0;
	default:
		return bad_value(o, text, o->value, err);
	}
}

/* A tag must not be mistaken for a number or for `last` when it is used as RUN. */
static bool good_tag(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > 64 || strcmp(s, "last") == 0 || strspn(s, "0123456789") == len || *s == '-')
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static int set_format(struct rg_args *a, const char *value, struct rg_error *err)
{
	const char *list = a->cmd->formats ? a->cmd->formats : "";
	size_t len = strlen(value);

	for (const char *p = list; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
		if (strcspn(p, " ") == len && strncmp(p, value, len) == 0 &&
		    rg_format_parse(value, &a->format)) {
			a->format_given = true;
			return 0;
		}
	}
	rg_error_set(err, RG_EUSAGE, "--format %s: not a format of ridge %s", value, a->cmd->name);
	return rg_error_hint(err, "one of: %s", list);
}

static int set_size(struct rg_args *a, const struct rg_opt *o, const char *value, struct rg_error *err)
{
	char left[16];
	const char *x = strchr(value, 'x');
	int64_t w = 0, h = 0;
	bool good = x && (size_t)(x - value) < sizeof(left);

	if (good) {
		memcpy(left, value, (size_t)(x - value));
		left[x - value] = '\0';
		good = rg_parse_i64(left, 20, 10000, &w) && rg_parse_i64(x + 1, 10, 10000, &h);
	}
	if (!good)
		return bad_value(o, value, "WIDTHxHEIGHT such as 800x600, at most 10000 each", err);
	a->width = (int)w;
	a->height = (int)h;
	return 0;
}

static int set_disabled(struct rg_args *a, const struct rg_opt *o, const char *value, struct rg_error *err)
{
	const char **p;

	if (!*value)
		return bad_value(o, value, "the name of a pass", err);
	p = one_more(a, a->disabled, a->n_disabled, sizeof(*a->disabled));
	if (!p)
		return rg_error_nomem(err, sizeof(*a->disabled));
	a->disabled = p;
	a->disabled[a->n_disabled++] = value;
	return 0;
}

/* One more word of a list. */
static int set_word(struct rg_args *a, const struct rg_opt *o, const char *value, const char *wanted,
		    const char *const **list, int *n, struct rg_error *err)
{
	const char **p;

	if (!*value)
		return bad_value(o, value, wanted, err);
	p = one_more(a, *list, *n, sizeof(*p));
	if (!p)
		return rg_error_nomem(err, sizeof(*p));
	*list = p;
	p[(*n)++] = value;
	return 0;
}

static int set_without(struct rg_args *a, const struct rg_opt *o, const char *value, struct rg_error *err)
{
	struct rg_session_options *s = &a->session;
	const char **p;

	if (!*value)
		return bad_value(o, value, "the name of a kernel", err);
	p = one_more(a, s->without, s->n_without, sizeof(*s->without));
	if (!p)
		return rg_error_nomem(err, sizeof(*s->without));
	s->without = p;
	s->without[s->n_without++] = value;
	return 0;
}

/* "4096", "512K", "1M", "2G", "1T": powers of 1024. */
static bool parse_bytes(const char *text, int64_t *out)
{
	static const char suffixes[] = "KMGT";
	size_t len = strlen(text);
	char digits[24];
	const char *suffix;
	int64_t v;

	if (len == 0 || len >= sizeof(digits))
		return false;
	suffix = strchr(suffixes, text[len - 1]);
	memcpy(digits, text, len + 1);
	if (suffix)
		digits[len - 1] = '\0';
	return rg_parse_i64(digits, 0, INT64_MAX, &v) &&
	       !__builtin_mul_overflow(v, suffix ? INT64_C(1) << (10 * (suffix - suffixes + 1)) : 1, out);
}

static int set(struct rg_args *a, const struct rg_opt *o, const char *value, struct rg_error *err)
{
	struct rg_session_options *s = &a->session;
	uint64_t ns;
	int64_t v;

	switch (o->id) {
	case RG_OPT_DB:
		if (!*value)
			return bad_value(o, value, "a file name", err);
		a->db = value;
		return 0;
	case RG_OPT_THREADS:
		if (!rg_parse_i64(value, 1, RG_MAX_CPUS, &v))
			return bad_value(o, value, "a whole number from 1 to 1024", err);
		s->threads = (int)v;
		return 0;
	case RG_OPT_ITERATIONS:
		if (!rg_parse_i64(value, 1, 100000000, &s->iterations))
			return bad_value(o, value, "a whole number from 1 to 100000000", err);
		return 0;
	case RG_OPT_DURATION:
		if (!rg_parse_duration_ns(value, &ns) || ns == 0 || ns > UINT64_C(86400000000000))
			return bad_value(o, value, "a time such as 5s, 200ms or 2m, at most a day", err);
		s->duration_ns = (int64_t)ns;
		return 0;
	case RG_OPT_WARMUP:
		if (!rg_parse_i64(value, 0, 1000000, &v))
			return bad_value(o, value, "a whole number from 0 to 1000000", err);
		s->warmup = (int)v;
		return 0;
	case RG_OPT_SEED:
		if (!rg_parse_i64(value, 0, INT64_MAX, &v))
			return bad_value(o, value, "a whole number >= 0", err);
		s->seed = (uint64_t)v;
		return 0;
	case RG_OPT_TAG:
		if (!good_tag(value))
			return bad_value(
			    o, value, "a tag: 1 to 64 printable characters, not a number, not 'last'", err);
		s->tag = value;
		return 0;
	case RG_OPT_FORMAT:
		return set_format(a, value, err);
	case RG_OPT_QUIET:
		a->quiet = true;
		return 0;
	case RG_OPT_OUTPUT:
		a->output = value;
		return *value ? 0 : bad_value(o, value, "a file name", err);
	case RG_OPT_OUTPUT_DIR:
		a->output_dir = value;
		return *value ? 0 : bad_value(o, value, "a folder", err);
	case RG_OPT_OP:
		a->op = value;
		return *value ? 0 : bad_value(o, value, "a name", err);
	case RG_OPT_SPEEDUP:
		if (strcmp(value, "inf") == 0)
			a->speedup = INFINITY;
		else if (!rg_parse_f64(value, &a->speedup) || a->speedup <= 0)
			return bad_value(o, value, "a factor above 0, or inf", err);
		return 0;
	case RG_OPT_WITHOUT_KERNEL:
		return set_without(a, o, value, err);
	case RG_OPT_ISA:
		if (!rg_isa_cap_parse(value, &s->isa))
			return bad_value(o, value, "one of sse2, avx2, avx512, native", err);
		return 0;
	case RG_OPT_TOP:
		if (!rg_parse_i64(value, 1, INT32_MAX, &v))
			return bad_value(o, value, "a whole number >= 1", err);
		a->top = (int)v;
		return 0;
	case RG_OPT_SIZE:
		return set_size(a, o, value, err);
	case RG_OPT_STATIC:
		a->plan_only = true;
		return 0;
	case RG_OPT_OPTIMIZE:
		if (!rg_parse_i64(value, 0, RG_PASS_LEVELS, &v))
			return bad_value(o, value, "a whole number from 0 to 3", err);
		s->optimize = (int)v;
		return 0;
	case RG_OPT_WHY:
		a->why = true;
		return 0;
	case RG_OPT_COMPILER:
		a->compiler = true;
		return 0;
	case RG_OPT_ROUNDS:
		if (!rg_parse_i64(value, 1, 100000, &v))
			return bad_value(o, value, "a whole number from 1 to 100000", err);
		a->rounds = (int)v;
		return 0;
	case RG_OPT_QUICK:
		a->quick = true;
		return 0;
	case RG_OPT_CSV:
		a->csv = value;
		return *value ? 0 : bad_value(o, value, "a file name", err);
	case RG_OPT_STRATEGY:
		a->strategy = value;
		return *value ? 0 : bad_value(o, value, "the name of a strategy", err);
	case RG_OPT_CAPACITY:
		if (!parse_bytes(value, &a->capacity_bytes))
			return bad_value(o, value, "a number of bytes such as 1048576, 512K or 1M", err);
		return 0;
	case RG_OPT_TIME_LIMIT:
		if (!rg_parse_duration_ns(value, &ns) || ns > UINT64_C(86400000000000))
			return bad_value(o, value, "a time such as 60s, 500ms or 2m, at most a day", err);
		a->time_limit_ns = (int64_t)ns;
		return 0;
	case RG_OPT_ORDER:
		if (strcmp(value, "memory") != 0 && strcmp(value, "graph") != 0)
			return bad_value(o, value, "an order: graph or memory", err);
		s->order_for_memory = strcmp(value, "memory") == 0;
		return 0;
	case RG_OPT_PLANNER:
		if (!rg_planner_parse(value, &a->planner))
			return bad_value(o, value, "a planner: ridge or tflm", err);
		return 0;
	case RG_OPT_LEVEL:
		if (!rg_parse_i64(value, 0, RG_PASS_LEVELS, &v))
			return bad_value(o, value, "a whole number from 0 to 3", err);
		a->level = (int)v;
		return 0;
	case RG_OPT_DISABLE:
		return set_disabled(a, o, value, err);
	case RG_OPT_OPSET:
		if (!rg_parse_i64(value, 7, RG_ONNX_OPSET_NEWEST, &v))
			return bad_value(o, value, "an opset from 7 to the newest known", err);
		a->opset = (int)v;
		return 0;
	case RG_OPT_RUNG:
		return add_word(a, &a->rungs, &a->n_rungs, value, err);
	case RG_OPT_WEIGHTS:
		a->weights = value;
		return 0;
	case RG_OPT_MISSES:
		a->misses = true;
		return 0;
	case RG_OPT_CALIBRATE:
		a->quantize.calibrate = value;
		return *value ? 0 : bad_value(o, value, "a folder", err);
	case RG_OPT_VALIDATE:
		a->quantize.validate = value;
		return *value ? 0 : bad_value(o, value, "a folder", err);
	case RG_OPT_SAMPLES:
		if (!rg_parse_i64(value, 1, 100000, &v))
			return bad_value(o, value, "a whole number from 1 to 100000", err);
		a->quantize.n_samples = (int)v;
		return 0;
	case RG_OPT_DYNAMIC:
		a->quantize.how.dynamic = true;
		return 0;
	case RG_OPT_PER_TENSOR:
		a->quantize.how.per_tensor = true;
		return 0;
	case RG_OPT_SYMMETRIC:
		a->quantize.how.symmetric = true;
		return 0;
	case RG_OPT_RANGES:
		if (!rg_range_rule_parse(value, &a->quantize.rule))
			return bad_value(o, value, "one of minmax, percentile, entropy, mse", err);
		return 0;
	case RG_OPT_PERCENTILE:
		if (!rg_parse_f64(value, &a->quantize.percent) || !(a->quantize.percent > 50) ||
		    a->quantize.percent > 100)
			return bad_value(o, value, "a number above 50, at most 100", err);
		return 0;
	case RG_OPT_MIN_SQNR:
		if (strcmp(value, "none") == 0)
			a->quantize.min_sqnr_db = -INFINITY;
		else if (!rg_parse_f64(value, &a->quantize.min_sqnr_db) || !isfinite(a->quantize.min_sqnr_db))
			return bad_value(o, value, "a number of decibels, or none", err);
		return 0;
	case RG_OPT_KEEP:
		return set_word(a, o, value, "the name or type of an operator", &a->quantize.keep,
				&a->quantize.n_keep, err);
	case RG_OPT_ALSO:
		if (!rg_quantize_may(value))
			return bad_value(o, value, rg_quantize_may_list(), err);
		return set_word(a, o, value, "a type of operator", &a->quantize.how.also, &a->quantize.how.n_also,
				err);
	case RG_OPT_VERIFY:
		a->verify = true;
		return 0;
	case RG_OPT_EXPLAIN:
		a->explain = true;
		return 0;
	case RG_OPT_HELP:
		a->help = true;
		return 0;
	case RG_OPT_INPUT:
	case RG_OPT_INPUT_RANGE:
	case RG_OPT_SHAPE:
	case RG_OPT_DIM:
	case RG_OPT_KERNEL:
		return set_named(a, o, value, err);
	case RG_OPT_COUNT:
		break;
	}
	return rg_error_set(err, RG_EUSAGE, "--%s is not understood", o->name);
}

/* One word of the command line taken apart. */
struct word {
	const struct rg_opt *opt; /* NULL: positional, or unknown */
	const char *unknown;      /* name of an option that does not exist */
	const char *value;        /* attached or in the next word; NULL: none */
	int taken;                /* words used */
};

static struct word take(int argc, char **argv, int i)
{
	struct word w = { .taken = 1 };
	const char *s = argv[i];

	if (s[0] != '-' || s[1] == '\0')
		return w; /* "-" is a positional, or the value of -o */
	if (s[1] == '-') {
		size_t len = strcspn(s + 2, "=");

		w.opt = find_long(s + 2, len);
		if (!w.opt)
			w.unknown = s + 2;
		else if (s[2 + len] == '=')
			w.value = s + 2 + len + 1;
	} else {
		w.opt = find_letter(s[1]);
		if (!w.opt)
			w.unknown = s + 1;
		else if (s[2])
			w.value = s + 2;
	}
	if (w.opt && w.opt->value && !w.value && i + 1 < argc) {
		w.value = argv[i + 1];
		w.taken = 2;
	}
	return w;
}

/* The verb: the first word that is neither an option nor the value of one. */
static int find_verb(int argc, char **argv)
{
	for (int i = 1; i < argc;) {
		struct word w = take(argc, argv, i);

		if (strcmp(argv[i], "--") == 0)
			return i + 1 < argc ? i + 1 : 0;
		if (!w.opt && !w.unknown)
			return i;
		i += w.taken;
	}
	return 0;
}

static int positional(struct rg_args *a, const char *text, struct rg_error *err)
{
	int room = (int)(sizeof(a->positional) / sizeof(a->positional[0]));

	if (a->n_positional >= a->cmd->max_positional || a->n_positional >= room) {
		rg_error_set(err, RG_EUSAGE, "ridge %s does not take '%s'", a->cmd->name, text);
		return rg_error_hint(err, "usage: ridge %s %s", a->cmd->name, a->cmd->positional);
	}
	a->positional[a->n_positional++] = text;
	return 0;
}

static int option(struct rg_args *a, const char *text, const struct word *w, struct rg_error *err)
{
	if (w->unknown) {
		char name[64];
		size_t len = strcspn(w->unknown, "=");

		if (len >= sizeof(name))
			len = sizeof(name) - 1;
		memcpy(name, w->unknown, len);
		name[len] = '\0';
		return unknown_option(a->cmd, name, err);
	}
	if (!(a->cmd->options >> w->opt->id & 1)) {
		rg_error_set(err, RG_EUSAGE, "ridge %s takes no --%s", a->cmd->name, w->opt->name);
		return rg_error_hint(err, "ridge help %s lists its options", a->cmd->name);
	}
	if (!w->opt->value && w->value)
		return rg_error_set(err, RG_EUSAGE, "--%s takes no value (%s)", w->opt->name, text);
	if (w->opt->value && !w->value) {
		rg_error_set(err, RG_EUSAGE, "--%s needs a value", w->opt->name);
		return rg_error_hint(err, "--%s %s: %s", w->opt->name, w->opt->value, w->opt->help);
	}
	return set(a, w->opt, w->value, err);
}

/* Without a verb only --help and --version mean something. */
static int without_verb(struct rg_args *a, int argc, char **argv, struct rg_error *err)
{
	for (int i = 1; i < argc; i++) {
		struct word w = take(argc, argv, i);

		if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0)
			a->version = true;
		else if (w.opt && w.opt->id == RG_OPT_HELP)
			a->help = true;
		else if (w.unknown)
			return unknown_option(NULL, w.unknown, err);
	}
	if (a->help || a->version)
		return 0;
	rg_error_set(err, RG_EUSAGE, "a verb is missing");
	return rg_error_hint(err, "ridge help lists all verbs; to begin: ridge record builtin:resnet50");
}

static int check_together(struct rg_args *a, struct rg_error *err)
{
	if (a->help)
		return 0;
	if (a->n_positional < a->cmd->min_positional) {
		rg_error_set(err, RG_EUSAGE, "ridge %s needs %s", a->cmd->name, a->cmd->positional);
		return rg_error_hint(err, "ridge help %s shows examples", a->cmd->name);
	}
	if (a->session.iterations >= 0 && a->session.duration_ns >= 0) {
		rg_error_set(err, RG_EUSAGE, "--iterations and --duration exclude each other");
		return rg_error_hint(err, "give one of them");
	}
	return 0;
}

int rg_args_parse(struct rg_args *a, int argc, char **argv, struct rg_error *err)
{
	int verb = find_verb(argc, argv), rc = 0;
	bool only_positional = false;

	a->arena = rg_arena_new();
	if (!a->arena)
		return rg_error_nomem(err, 4096);
	rg_session_defaults(&a->session);
	a->speedup = 2;
	a->capacity_bytes = a->time_limit_ns = -1;
	a->level = -1;
	a->quantize.min_sqnr_db = NAN;
	if (!a->db)
		a->db = "ridge.db";
	if (!verb)
		return without_verb(a, argc, argv, err);
	a->cmd = rg_cmd_find(argv[verb]);
	if (!a->cmd)
		return rg_args_unknown_verb(argv[verb], err);
	for (int i = 1; i < argc && rc == 0;) {
		struct word w = take(argc, argv, i);

		if (i == verb) {
			i++;
		} else if (only_positional) {
			rc = positional(a, argv[i++], err);
		} else if (strcmp(argv[i], "--") == 0) {
			only_positional = true;
			i++;
		} else if (strcmp(argv[i], "--version") == 0) {
			a->version = true;
			i++;
		} else if (!w.opt && !w.unknown) {
			rc = positional(a, argv[i++], err);
		} else {
			rc = option(a, argv[i], &w, err);
			i += w.taken;
		}
	}
	return rc ? rc : check_together(a, err);
}

void rg_args_free(struct rg_args *a)
{
	rg_arena_free(a->arena);
	a->arena = NULL;
}
