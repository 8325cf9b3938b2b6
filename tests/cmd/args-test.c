/*
 * The command line parser and the texts made from the tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "cmd/cmd.h"
#include "reports/table.h"
#include "sys/cpu.h"

#define MAX_WORDS 48

/* Splits at blanks; the words live in `buf`. */
static int words(char *buf, char **argv)
{
	char *save = NULL;
	int n = 0;

	argv[n++] = "ridge";
	for (char *w = strtok_r(buf, " ", &save); w && n < MAX_WORDS; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	return n;
}

static int parse(struct rg_args *a, char *buf, size_t cap, const char *line, struct rg_error *err)
{
	char *argv[MAX_WORDS];
	int argc;

	memset(a, 0, sizeof(*a));
	memset(err, 0, sizeof(*err));
	snprintf(buf, cap, "%s", line);
	argc = words(buf, argv);
	return rg_args_parse(a, argc, argv, err);
}

static void test_anywhere(void **state)
{
	static const char *const same[] = {
		"report before --format json --db x.db --top 5",
		"--db x.db report --top=5 --format=json before",
		"--format json --top 5 --db=x.db report before",
		"--top 5 report --db x.db -- before --format json", /* refused: one positional too many */
	};
	struct rg_args a;
	struct rg_error err;
	char buf[512];

	for (int i = 0; i < 3; i++) {
		assert_int_equal(parse(&a, buf, sizeof(buf), same[i], &err), 0);
		assert_string_equal(a.cmd->name, "report");
		assert_int_equal(a.n_positional, 1);
		assert_string_equal(a.positional[0], "before");
		assert_int_equal(a.format, RG_FORMAT_JSON);
		assert_true(a.format_given);
		assert_string_equal(a.db, "x.db");
		assert_int_equal(a.top, 5);
		rg_args_free(&a);
	}
	assert_int_equal(parse(&a, buf, sizeof(buf), same[3], &err), RG_EUSAGE);
	rg_args_free(&a);
}

static void test_record_options(void **state)
{
	struct rg_args a;
	struct rg_error err;
	char buf[512];

	assert_int_equal(parse(&a, buf, sizeof(buf),
				   "record m.onnx --threads 2 -n 7 --warmup 3 --seed 9 --tag base --shape "
				   "x=1x3x8x8 --dim batch=4 "
				   "--dim seq=16 --input a=b=c.npy -i y=z.npy --input-range x=-1..2.5 --kernel "
				   "/a=b/Conv=ref --isa avx2 -q",
				   &err),
			 0);
	assert_int_equal(a.session.threads, 2);
	assert_int_equal(a.session.iterations, 7);
	assert_int_equal(a.session.duration_ns, -1);
	assert_int_equal(a.session.warmup, 3);
	assert_int_equal(a.session.seed, 9);
	assert_string_equal(a.session.tag, "base");
	assert_int_equal(a.session.bindings.n_shapes, 1);
	assert_string_equal(a.session.bindings.shapes[0].input, "x");
	assert_int_equal(a.session.bindings.shapes[0].shape.rank, 4);
	assert_int_equal(a.session.bindings.shapes[0].shape.dim[3], 8);
	assert_int_equal(a.session.bindings.n_dims, 2);
	assert_string_equal(a.session.bindings.dims[1].symbol, "seq");
	assert_int_equal(a.session.bindings.dims[1].value, 16);
	assert_int_equal(a.session.n_inputs, 2);
	assert_string_equal(a.session.inputs[0].name, "a");
	assert_string_equal(a.session.inputs[0].path, "b=c.npy");
	assert_int_equal(a.session.n_ranges, 1);
	assert_true(a.session.ranges[0].lo == -1 && a.session.ranges[0].hi == 2.5);
	assert_int_equal(a.session.n_overrides, 1);
	assert_string_equal(a.session.overrides[0].op, "/a=b/Conv");
	assert_string_equal(a.session.overrides[0].kernel, "ref");
	assert_true(a.session.isa & RG_ISA_AVX2);
	assert_false(a.session.isa & RG_ISA_AVX512F);
	assert_true(a.quiet);
	rg_args_free(&a);
	assert_int_equal(parse(&a, buf, sizeof(buf), "record m --duration 1.5s", &err), 0);
	assert_int_equal(a.session.duration_ns, 1500000000);
	assert_int_equal(a.session.iterations, -1);
	assert_int_equal(a.session.warmup, -1);
	assert_string_equal(a.db, "ridge.db");
	rg_args_free(&a);
	assert_int_equal(parse(&a, buf, sizeof(buf), "whatif --op Conv --speedup inf", &err), 0);
	assert_true(isinf(a.speedup));
	rg_args_free(&a);
	assert_int_equal(parse(&a, buf, sizeof(buf), "plot tail -o- --size 100x30", &err), 0);
	assert_string_equal(a.output, "-");
	assert_int_equal(a.width, 100);
	assert_int_equal(a.height, 30);
	rg_args_free(&a);
}

static void test_refused(void **state)
{
	static const struct { const char *line, *message, *hint; } c[] = {
		{ "", "a verb is missing", "ridge help" },
		{ "repotr", "there is no verb 'repotr'", "ridge report" },
		{ "report --formt json", "there is no option --formt", "--format" },
		{ "record m --thread 2", "there is no option --thread", "--threads" },
		{ "runs -x", "there is no option -x", "ridge help runs" },
		{ "runs --threads 2", "ridge runs takes no --threads", "ridge help runs" },
		{ "record", "ridge record needs MODEL", "" },
		{ "record a b", "does not take 'b'", "usage: ridge record MODEL" },
		{ "record a --threads", "--threads needs a value", "--threads N" },
		{ "record a --threads 0", "--threads 0", "" },
		{ "record a --threads 2x", "--threads 2x", "" },
		{ "record a --threads -1", "--threads -1", "" },
		{ "record a --iterations 99999999999999999999", "--iterations", "" },
		{ "record a --iterations 5 --duration 5s", "exclude each other", "" },
		{ "record a --duration 5parsecs", "--duration 5parsecs", "" },
		{ "record a --seed -3", "--seed -3", "" },
		{ "record a --tag 12", "--tag 12", "" },
		{ "record a --tag last", "--tag last", "" },
		{ "record a --shape x", "--shape x", "" },
		{ "record a --shape x=1xax3", "--shape x=1xax3", "--shape x=1x3x640x640" },
		{ "record a --shape =1x3", "--shape =1x3", "" },
		{ "record a --dim batch=four", "--dim batch=four", "" },
		{ "record a --input-range x=5..1", "--input-range", "" },
		{ "record a --input-range x=nan..1", "--input-range", "" },
		{ "record a --input x=", "--input x=", "" },
		{ "record a --isa mmx", "--isa mmx", "avx2" },
		{ "report --format yaml", "--format yaml", "table json csv md" },
		{ "record a --format csv", "--format csv", "table json" },
		{ "report --top 0", "--top 0", "" },
		{ "whatif --op a --speedup 0", "--speedup 0", "" },
		{ "whatif --op a --speedup nan", "--speedup nan", "" },
		{ "plot tail --size 10x10", "--size 10x10", "" },
		{ "plot tail --size 99999x99999", "--size", "" },
		{ "record a --quiet=yes", "--quiet takes no value", "" },
	};
	struct rg_args a;
	struct rg_error err;
	char buf[512];

	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		int rc = parse(&a, buf, sizeof(buf), c[i].line, &err);

		if (rc != RG_EUSAGE)
			fail_msg("ridge %s: %d", c[i].line, rc);
		if (!strstr(err.message, c[i].message))
			fail_msg("ridge %s: message: %s", c[i].line, err.message);
		if (!strstr(err.hint, c[i].hint))
			fail_msg("ridge %s: hint: %s", c[i].line, err.hint);
		assert_int_equal(rg_cmd_exit_code(&err), 2);
		rg_args_free(&a);
	}
}

static void test_help_and_version(void **state)
{
	struct rg_args a;
	struct rg_error err;
	char buf[64];

	assert_int_equal(parse(&a, buf, sizeof(buf), "--help", &err), 0);
	assert_true(a.help && !a.cmd);
	rg_args_free(&a);
	assert_int_equal(parse(&a, buf, sizeof(buf), "--version", &err), 0);
	assert_true(a.version && !a.cmd);
	rg_args_free(&a);
	/* --help needs no MODEL. */
	assert_int_equal(parse(&a, buf, sizeof(buf), "record -h", &err), 0);
	assert_true(a.help && a.cmd);
	rg_args_free(&a);
}

static void test_exit_codes(void **state)
{
	static const struct { int code, exit; } c[] = {
		{ 0, 0 }, { -EPIPE, 0 }, { RG_EUSAGE, 2 }, { RG_ECANT_MEASURE, 3 }, { RG_EINTERRUPTED, 130 },
		{ -ENOENT, 1 }, { RG_ENOTSUP_MODEL, 1 },
	};

	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct rg_error err = { .code = c[i].code };

		assert_int_equal(rg_cmd_exit_code(&err), c[i].exit);
	}
}

static void test_nearest(void **state)
{
	static const char *const names[] = { "record", "report", "run", "runs" };

	assert_string_equal(rg_args_nearest("recrod", names, 4), "record");
	assert_string_equal(rg_args_nearest("rep", names, 4), "report");
	assert_null(rg_args_nearest("xyzzyx", names, 4));
	assert_null(rg_args_nearest("aVeryLongWordThatIsNothingLikeAnyOfThemAtAllAndMore", names, 4));
}

/* Random command lines of our own words and of rubbish: an error or not, never a crash. */
static void test_random_lines(void **state)
{
	static const char *const word[] = {
		"record",
		"report",
		"plot",
		"--",
		"-",
		"--db",
		"--threads",
		"4",
		"--shape",
		"x=1x2",
		"=",
		"--input-range",
		"a=1..2",
		"..",
		"-o",
		"-q",
		"--format=json",
		"--size",
		"8x8",
		"--dim",
		"b=1",
		"-i",
		"-n",
		"--kernel",
		"a=b=c",
		"--help",
		"--version",
		"\xff",
		"--=",
		"--format",
		"-ox",
		"whatif",
	};
	uint64_t s = rg_rng_stream(11, "lines");
	uint64_t at = 0;
	int good = 0;

	for (int round = 0; round < 20000; round++) {
		char *argv[12];
		int argc = 1 + (int)(rg_rng_u64(s, at++) % 10);
		struct rg_args a = { 0 };
		struct rg_error err = RG_ERROR_INIT;

		argv[0] = "ridge";
		for (int i = 1; i < argc; i++)
			argv[i] = (char *)word[rg_rng_u64(s, at++) % (sizeof(word) / sizeof(word[0]))];
		if (rg_args_parse(&a, argc, argv, &err) == 0)
			good++;
		else
			assert_true(err.message[0]);
		rg_args_free(&a);
	}
	assert_true(good > 50);
}

static void test_out_of_memory(void **state)
{
	int failures = 0;

	for (uint64_t n = 1; n < 200; n++) {
		struct rg_args a;
		struct rg_error err;
		char buf[256];
		int rc;
		bool failed;

		rg_alloc_fail_at(n);
		rc = parse(&a, buf, sizeof(buf),
			   "record m --shape x=1x2 --dim a=1 --input q=r --kernel c=d --input-range x=1..2",
			   &err);
		failed = rg_alloc_did_fail();
		rg_alloc_fail_at(0);
		rg_args_free(&a);
		if (!failed) {
			assert_int_equal(rc, 0);
			break;
		}
		failures++;
		assert_int_not_equal(rc, 0);
	}
	assert_true(failures >= 1);
}

static void test_table_is_whole(void **state)
{
	for (int i = 0; i < RG_OPT_COUNT; i++) {
		assert_int_equal(rg_opts[i].id, i);
		assert_non_null(rg_opts[i].name);
		assert_non_null(rg_opts[i].help);
		for (int k = 0; k < i; k++) {
			assert_string_not_equal(rg_opts[i].name, rg_opts[k].name);
			assert_false(rg_opts[i].letter && rg_opts[i].letter == rg_opts[k].letter);
		}
	}
	for (int i = 0; i < rg_n_cmds; i++) {
		const struct rg_cmd *c = &rg_cmds[i];
		struct rg_str s = { 0 };

		assert_non_null(c->run);
		assert_true(c->min_positional <= c->max_positional && c->max_positional <= RG_MAX_POSITIONAL);
		assert_true(c->options >> RG_OPT_HELP & 1);
		assert_int_equal(c->formats != NULL, c->options >> RG_OPT_FORMAT & 1);
		assert_true(c->examples[0]);
		rg_help_verb(&s, c, 80);
		for (const char *p = rg_str_text(&s); *p;) {
			size_t len = strcspn(p, "\n");
			char line[512];

			snprintf(line, sizeof(line), "%.*s", (int)len, p);
			if (rg_text_width(line) > 80 && strncmp(line, "  ", 2) != 0)
				fail_msg("help of %s: %s", c->name, line);
			p += len + (p[len] == '\n');
		}
		for (int o = 0; o < RG_OPT_COUNT; o++) {
			char option[32];

			snprintf(option, sizeof(option), "--%s", rg_opts[o].name);
			if (c->options >> o & 1)
				assert_non_null(strstr(rg_str_text(&s), option));
		}
		rg_str_free(&s);
	}
}

static void test_summary(void **state)
{
	struct rg_str s = { 0 };

	rg_help_summary(&s, 80);
	for (int i = 0; i < rg_n_cmds; i++) {
		char line[64];

		snprintf(line, sizeof(line), "\n  %s ", rg_cmds[i].name);
		assert_int_equal(strstr(rg_str_text(&s), line) != NULL, !rg_cmds[i].hidden);
	}
	rg_str_free(&s);
}

/* docs/commands.md is what the table says today. */
static void test_commands_md(void **state)
{
	struct rg_str s = { 0 };
	char *want = calloc(1, 1 << 18);
	FILE *f = fopen(getenv("RIDGE_COMMANDS_MD"), "r");

	assert_non_null(f);
	assert_non_null(want);
	assert_true(fread(want, 1, (1 << 18) - 1, f) > 1000);
	fclose(f);
	rg_help_markdown(&s);
	if (strcmp(rg_str_text(&s), want) != 0)
		fail_msg("docs/commands.md is out of date: ridge help --format md > docs/commands.md");
	free(want);
	rg_str_free(&s);
}

static int run_tool(const char *const *argv, const char *input)
{
	char name[] = "/tmp/ridge-args-XXXXXX";
	int fd = mkstemp(name), status = -1;
	pid_t pid;

	assert_true(fd >= 0);
	unlink(name);
	assert_true(write(fd, input, strlen(input)) == (ssize_t)strlen(input));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	pid = fork();
	if (pid == 0) {
		dup2(fd, STDIN_FILENO);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	assert_true(pid > 0);
	assert_true(waitpid(pid, &status, 0) == pid);
	close(fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The script is loaded by the shell itself and asked to complete words. */
static void test_bash_completion(void **state)
{
	static const char ask[] =
		"\nset -u\ntry() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _ridge; }\n"
		"try ridge re; [[ \" ${COMPREPLY[*]} \" == *' record '* && \" ${COMPREPLY[*]} \" == *' report '* "
		"]] || exit 11\n"
		"try ridge report --format ''; [[ \"${COMPREPLY[*]}\" == 'table json csv md' ]] || exit 12\n"
		"try ridge runs --th; [[ ${#COMPREPLY[@]} == 0 ]] || exit 13\n"
		"try ridge record --th; [[ \"${COMPREPLY[*]}\" == --threads ]] || exit 14\n"
		"try ridge plot ''; [[ \"${COMPREPLY[*]}\" == 'roofline tail memory' ]] || exit 15\n"
		"try ridge help wha; [[ \"${COMPREPLY[*]}\" == whatif ]] || exit 16\n";
	static const char *const bash[] = { "bash", "-s", NULL };
	struct rg_str s = { 0 };
	int rc;

	assert_true(rg_help_completion(&s, "bash"));
	rg_str_add(&s, ask);
	rc = run_tool(bash, rg_str_text(&s));
	rg_str_free(&s);
	if (rc == 127)
		skip();
	assert_int_equal(rc, 0);
}

static void test_other_shells(void **state)
{
	static const char *const shell[] = { "zsh", "fish" };

	for (int i = 0; i < 2; i++) {
		const char *argv[] = { shell[i], "-n", NULL };
		struct rg_str s = { 0 };
		int rc, verbs = 0;

		assert_true(rg_help_completion(&s, shell[i]));
		for (int k = 0; k < rg_n_cmds; k++)
			verbs += strstr(rg_str_text(&s), rg_cmds[k].name) != NULL;
		assert_int_equal(verbs, rg_n_cmds);
		rc = run_tool(argv, rg_str_text(&s));
		if (rc != 127) /* where the shell is installed, it must agree */
			assert_int_equal(rc, 0);
		rg_str_free(&s);
	}
	struct rg_str none = { 0 };

	assert_false(rg_help_completion(&none, "tcsh"));
	rg_str_free(&none);
}

static void test_man(void **state)
{
	struct rg_str s = { 0 };

	rg_help_man(&s);
	assert_memory_equal(rg_str_text(&s), ".TH RIDGE 1", 11);
	for (int i = 0; i < rg_n_cmds; i++) {
		char line[64];

		snprintf(line, sizeof(line), "\n.SS ridge %s ", rg_cmds[i].name);
		assert_non_null(strstr(rg_str_text(&s), line));
	}
	/* No line begins with a dot or quote that is not a macro of man(7). */
	for (const char *p = rg_str_text(&s); p; p = strchr(p, '\n')) {
		static const char *const macros[] = {".TH ", ".SH ", ".SS ",  ".TP\n", ".PP\n",
							 ".B ",  ".I ",  ".nf\n", ".fi\n"};
		bool known = false;

		p += *p == '\n';
		if (*p != '.' && *p != '\'')
			continue;
		for (size_t k = 0; k < sizeof(macros) / sizeof(macros[0]); k++)
			known = known || strncmp(p, macros[k], strlen(macros[k])) == 0;
		if (!known)
			fail_msg("man page: %.40s", p);
	}
	rg_str_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anywhere),      cmocka_unit_test(test_record_options),
		cmocka_unit_test(test_refused),	      cmocka_unit_test(test_help_and_version),
		cmocka_unit_test(test_exit_codes),    cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_random_lines),  cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_table_is_whole), cmocka_unit_test(test_summary),
		cmocka_unit_test(test_commands_md),   cmocka_unit_test(test_bash_completion),
		cmocka_unit_test(test_other_shells),  cmocka_unit_test(test_man),
	};

	return cmocka_run_group_tests_name("command line", tests, NULL, NULL);
}
