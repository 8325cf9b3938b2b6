/*
 * The program as a person meets it: run as a process, with its standard output,
 * standard error, exit code, signals and terminal looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[64], exe[512];

/* What one run of the program left. */
static struct {
	int code;
	char out[1 << 20], err[1 << 16];
} got;

static void slurp(int fd, char *buf, size_t cap)
{
	size_t n = 0;
	ssize_t k;

	lseek(fd, 0, SEEK_SET);
	while (n < cap - 1 && (k = read(fd, buf + n, cap - 1 - n)) > 0)
		n += (size_t)k;
	buf[n] = '\0';
}

static int temporary(void)
{
	char name[] = "/tmp/ridge-cli-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	assert_true(fd >= 0);
	unlink(name);
	return fd;
}

static int exit_code(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Starts "ridge LINE" (words at blanks) in the folder. */
static pid_t start(const char *line, int out, int err)
{
	char buf[1024], *argv[32], *save = NULL;
	int n = 0;
	pid_t pid;

	snprintf(buf, sizeof(buf), "%s", line);
	argv[n++] = "ridge";
	for (char *w = strtok_r(buf, " ", &save); w && n < 31; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	argv[n] = NULL;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY);

		if (chdir(folder) != 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
			_exit(99);
		execv(exe, argv);
		_exit(98);
	}
	assert_true(pid > 0);
	return pid;
}

static void run(const char *line)
{
	int out = temporary(), err = temporary();

	got.code = exit_code(start(line, out, err));
	slurp(out, got.out, sizeof(got.out));
	slurp(err, got.err, sizeof(got.err));
	close(out);
	close(err);
}

static void expect(const char *line, int code)
{
	run(line);
	if (got.code != code)
		fail_msg("ridge %s: exit %d, not %d\n%s%s", line, got.code, code, got.out, got.err);
	/* An error is "ridge: ..." on standard error and nothing on standard output. */
	if (code != 0 && code != 130) {
		if (strncmp(got.err, "ridge: ", 7) != 0 || got.out[0])
			fail_msg("ridge %s: out: %s err: %s", line, got.out, got.err);
	}
}

static void expect_error(const char *line, int code, const char *text)
{
	expect(line, code);
	if (!strstr(got.err, text))
		fail_msg("ridge %s: no '%s' in: %s", line, text, got.err);
}

static int set_up(void **state)
{
	const char *e = getenv("RIDGE_EXE");

	if (!e || !realpath(e, exe))
		return -1;
	snprintf(folder, sizeof(folder), "/tmp/ridge-cli-XXXXXX");
	unsetenv("RIDGE_DB");
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	struct dirent *e;
	DIR *d = opendir(folder);
	char path[512];

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
	return rmdir(folder);
}

/* First of all: nothing is there yet. */
static void test_before_anything(void **state)
{
	expect_error("report", 1, "ridge record builtin:resnet50");
	expect_error("runs", 1, "nothing is recorded yet");
	expect_error("plot tail -o x.svg", 1, "nothing is recorded yet");
	expect_error("check", 1, "nothing is recorded yet");
	/* Asking made no database. */
	expect_error("runs", 1, "nothing is recorded yet");
}

static void test_usage(void **state)
{
	expect_error("", 2, "a verb is missing");
	expect_error("reprot", 2, "did you mean  ridge report");
	expect_error("help reprot", 2, "did you mean  ridge report");
	expect_error("record", 2, "needs MODEL");
	expect_error("record x --theads 2", 2, "--threads");
	expect_error("whatif", 2, "--op NAME");
	expect_error("plot pie", 2, "roofline, tail, memory");
	expect_error("plot tail --capacity 1M", 2, "takes no --capacity");
	expect_error("plot memory builtin:nope -o x.gp", 1, "no built-in model 'nope'");
	expect_error("completion tcsh", 2, "bash, zsh, fish");
	expect("--version", 0);
	assert_memory_equal(got.out, "ridge ", 6);
	assert_string_equal(got.err, "");
	expect("--help", 0);
	assert_non_null(strstr(got.out, "record"));
	expect("whatif --help", 0);
	assert_non_null(strstr(got.out, "usage: ridge whatif [RUN]"));
}

static json_t *parse_out(void)
{
	json_error_t e;
	json_t *j = json_loads(got.out, 0, &e);

	if (!j)
		fail_msg("no JSON: %s: %.200s", e.text, got.out);
	return j;
}

static void test_record_and_look(void **state)
{
	json_t *j;

	expect("record builtin:mlp --iterations 12 --warmup 2 --threads 1 --tag first --format json", 0);
	j = parse_out();
	assert_int_equal(json_integer_value(json_object_get(j, "run")), 1);
	json_decref(j);
	assert_non_null(strstr(got.err, "ridge report 1"));
	/* Nothing on standard output, and with --quiet nothing at all. */
	expect("record builtin:mlp --iterations 5 --warmup 1 --threads 1 --quiet", 0);
	assert_string_equal(got.out, "");
	assert_string_equal(got.err, "");
	expect("runs --format json", 0);
	j = parse_out();
	assert_int_equal(json_array_size(json_object_get(j, "runs")), 2);
	json_decref(j);
	expect("report first --format json", 0);
	j = parse_out();
	assert_int_equal(json_integer_value(json_object_get(j, "run")), 1);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "latency"), "n")), 12);
	assert_true(json_array_size(json_object_get(j, "ops")) == 3);
	json_decref(j);
	expect("report 1 --top 1", 0);
	assert_non_null(strstr(got.out, "more operators"));
	assert_null(strchr(got.out, '\033'));
	expect("report --format csv", 0);
	assert_memory_equal(got.out, "index,name,op_type,", 19);
	expect("report --format md", 0);
	assert_non_null(strstr(got.out, "| name | type |"));
	expect("path --format json", 0);
	json_decref(parse_out());
	expect("whatif first --op Gemm --speedup 2 --format json", 0);
	j = parse_out();
	assert_true(json_number_value(json_object_get(j, "gain")) <=
			json_number_value(json_object_get(j, "limit_gain")) * 1.001);
	json_decref(j);
	expect("check first --format json", 0);
	j = parse_out();
	assert_int_equal(json_array_size(json_object_get(j, "answers")), 24);
	assert_int_equal(json_array_size(json_object_get(j, "dimensions")), 5);
	json_decref(j);
	expect_error("report 77", 1, "there is no run '77'");
	expect_error("report nobody", 1, "'first'");
	expect_error("whatif --op Cnov", 1, "'Cnov'");
	expect_error("plot tail -o picture.bmp", 2, ".svg, .png, .pdf");
	expect_error("plot tail -o no-such-folder/x.gp", 1, "no-such-folder/x.gp");
	expect("plot tail -o tail.gp -q", 0);
	assert_string_equal(got.out, "");
	expect_error("record nosuch.onnx", 1, "nosuch.onnx");
}

static void test_database_by_environment(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/other.db", folder);
	setenv("RIDGE_DB", path, 1);
	expect_error("runs", 1, "other.db: nothing is recorded yet");
	/* --db wins. */
	expect("runs --db ridge.db", 0);
	unsetenv("RIDGE_DB");
}

static void test_run(void **state)
{
	char path[128];
	json_t *j, *o;
	struct stat st;

	expect("run builtin:mlp --threads 1 --format json --output-dir .", 0);
	j = parse_out();
	assert_int_equal(json_array_size(json_object_get(j, "outputs")), 1);
	o = json_array_get(json_object_get(j, "outputs"), 0);
	assert_true(json_number_value(json_object_get(o, "max")) >
			json_number_value(json_object_get(o, "min")));
	snprintf(path, sizeof(path), "%s/%.60s", folder, json_string_value(json_object_get(o, "path")));
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 128);
	json_decref(j);
	expect_error("run builtin:mlp --input nosuch=x.npy", 2, "nosuch");
	expect_error("run builtin:mlp --dim nosuch=3", 2, "nosuch");
}

static json_t *optimize(const char *line)
{
	expect(line, 0);
	return parse_out();
}

static void test_optimize(void **state)
{
	json_t *j = optimize("optimize builtin:mobilenet-v2 -o m.onnx --level 1 --format json"), *list;
	int64_t steps, nodes;

	steps = json_integer_value(json_object_get(j, "steps_after"));
	nodes = json_integer_value(json_object_get(j, "nodes_after"));
	assert_true(steps > 0 && steps < json_integer_value(json_object_get(j, "steps_before")));
	assert_true(json_integer_value(json_object_get(j, "bytes_after")) > 0);
	assert_string_equal(json_string_value(json_object_get(j, "output")), "m.onnx");
	assert_true(json_array_size(json_object_get(j, "rewrites")) > 30);
	assert_int_equal(json_array_size(json_object_get(j, "fixed")), 0); /* the batch stays open */
	json_decref(j);
	/* a second time finds nothing */
	j = optimize("optimize m.onnx -o again.onnx --level 1 --format json");
	assert_int_equal(json_array_size(json_object_get(j, "rewrites")), 0);
	assert_int_equal(json_integer_value(json_object_get(j, "steps_after")), steps);
	assert_int_equal(json_integer_value(json_object_get(j, "nodes_after")), nodes);
	json_decref(j);
	/* what is disabled says so */
	j = optimize("optimize m.onnx -o again.onnx --disable conv-affine --format json -q");
	assert_string_equal(got.err, "");
	list = json_object_get(j, "passes");
	steps = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *p = json_array_get(list, i);

		if (strcmp(json_string_value(json_object_get(p, "name")), "conv-affine"))
			continue;
		assert_string_equal(json_string_value(json_object_get(p, "left_out")), "--disable");
		steps++;
	}
	assert_int_equal(steps, 1);
	json_decref(j);
	expect_error("optimize builtin:mlp -o x.onnx --level 4", 2, "--level 4");
	expect_error("optimize builtin:mlp -o x.onnx --level 0 --verify", 2, "--verify");
	expect_error("optimize builtin:mlp -o x.onnx --disable no", 2, "--disable no");
	expect_error("optimize builtin:mlp -o x.onnx --dim nosuch=3", 2, "nosuch");
	expect_error("optimize nosuch.onnx -o x.onnx", 1, "nosuch.onnx");
	expect_error("optimize builtin:mlp", 2, "-o FILE.onnx");
}

static void test_bench(void **state)
{
	json_t *j, *o, *list;

	expect("bench gemm 8x8x8 --threads 1 --rounds 7 --quick --kernel ref --format json", 0);
	j = parse_out();
	assert_int_equal(json_integer_value(json_object_get(j, "threads")), 1);
	list = json_object_get(j, "results");
	assert_int_equal(json_array_size(list), 2); /* b=var and b=const */
	o = json_array_get(list, 1);
	assert_string_equal(json_string_value(json_object_get(o, "case")), "m=8,k=8,n=8,b=const");
	assert_string_equal(json_string_value(json_object_get(o, "kernel")), "ref");
	assert_int_equal(json_integer_value(json_object_get(o, "flops")), 2 * 8 * 8 * 8);
	assert_int_equal(json_integer_value(json_object_get(o, "bytes")), 3 * 8 * 8 * 4);
	assert_int_equal(json_integer_value(json_object_get(o, "rounds")), 7);
	assert_true(json_number_value(json_object_get(json_object_get(o, "time_ns"), "median")) > 0);
	assert_true(json_array_size(json_object_get(j, "ceilings")) >= 2);
	json_decref(j);
	expect("bench conv c=3,h=8,w=8,m=4,k=3 --threads 1 --quick --kernel ref --format csv", 0);
	assert_memory_equal(got.out, "case,kernel,time_ns,", 20);
	assert_non_null(strstr(got.out, "\"c=3,h=8,w=8,m=4,k=3\",ref,"));
	expect("bench gemm builtin:mlp --threads 1 --quick --rounds 1", 0);
	assert_non_null(strstr(got.out, "m=1,k=784,"));
	assert_non_null(strstr(got.out, "peak"));
	expect_error("bench gemm nosuch.onnx", 2, "no part of this shape");
}

static void write_file(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_plan(void **state)
{
	static const char *const strategies[] = { "naive", "greedy-birth", "greedy-size", "greedy-size-best",
						  "greedy-lowest", "greedy-lowest-back", "portfolio", "search" };
	json_t *j, *list, *o;
	long long arena, bound;
	char line[256];
	size_t i;

	expect("plan builtin:mobilenet-v2 --threads 1 --optimize 0 --format json", 0);
	j = parse_out();
	arena = json_integer_value(json_object_get(j, "arena_bytes"));
	bound = json_integer_value(json_object_get(j, "lower_bound_bytes"));
	assert_true(bound > 9000000 && arena >= bound && (double)arena <= 1.01 * (double)bound);
	list = json_object_get(j, "strategies");
	assert_int_equal(json_array_size(list), 8);
	for (i = 0; i < 8; i++) {
		o = json_array_get(list, i);
		assert_string_equal(json_string_value(json_object_get(o, "strategy")), strategies[i]);
		assert_true(json_integer_value(json_object_get(o, "arena_bytes")) >= bound);
	}
	assert_true(json_is_null(json_object_get(j, "capacity")));
	assert_true(json_is_string(json_object_get(json_object_get(j, "peak"), "name")));
	json_decref(j);
	/* fewer buffers are alive when layers are taken together */
	expect("plan builtin:mobilenet-v2 --threads 1 --format json", 0);
	j = parse_out();
	assert_true(json_integer_value(json_object_get(j, "arena_bytes")) < arena);
	json_decref(j);

	/* the buffers it writes are an instance that it reads */
	expect("plan builtin:mobilenet-v2 --threads 1 --optimize 0 --format csv", 0);
	write_file("buffers.csv", got.out);
	snprintf(line, sizeof(line), "plan --csv buffers.csv --capacity %lld", bound);
	expect(line, 0);
	assert_non_null(strstr(got.err, "1.000 times"));
	snprintf(line, sizeof(line), "plan --csv buffers.csv --capacity %lld", bound - 64);
	expect_error(line, 1, "this is proven");

	/* where it spills: the report is there, and the exit status says no */
	run("plan builtin:mobilenet-v2 --threads 1 --capacity 1M");
	assert_int_equal(got.code, 1);
	assert_non_null(strstr(got.out, "first spills at step"));
	assert_non_null(strstr(got.err, "above the capacity of 1.00 MiB"));
	expect("plan builtin:mobilenet-v2 --threads 1 --capacity 16M", 0);
	assert_non_null(strstr(got.out, "everything fits"));
	expect("plan builtin:mlp --planner tflm --top 1", 0);
	assert_non_null(strstr(got.out, "tflm"));
	expect("plan builtin:mlp --strategy naive", 0);
	assert_non_null(strstr(got.out, "by naive"));
	expect("plan builtin:mlp --order memory", 0);
	assert_non_null(strstr(got.out, "order       of the graph; no other was found"));
	expect_error("plan builtin:mlp --order best", 2, "graph or memory");
	expect("plan builtin:mlp --strategy search --time-limit 1s --quiet", 0);

	expect_error("plan", 2, "needs a MODEL, or --csv");
	expect_error("plan builtin:mlp --csv buffers.csv", 2, "exclude each other");
	expect_error("plan --csv buffers.csv --format json", 2, "exclude each other");
	expect_error("plan --csv buffers.csv --planner tflm", 2, "exclude each other");
	expect_error("plan builtin:mlp --planner best", 2, "ridge or tflm");
	expect_error("plan builtin:mlp --planner tflm --strategy naive", 2, "has its own strategy");
	expect_error("plan builtin:mlp --strategy worst", 2, "no strategy 'worst'");
	expect_error("plan --csv buffers.csv --strategy worst", 2, "no strategy 'worst'");
	expect_error("plan builtin:mlp --capacity 12Q", 2, "--capacity 12Q");
	expect_error("plan builtin:mlp --time-limit 5x", 2, "--time-limit 5x");
	expect_error("plan builtin:mlp extra", 2, "does not take 'extra'");
	expect_error("plan nope.onnx", 1, "nope.onnx");
	expect_error("plan --csv nope.csv", 1, "nope.csv");
}

static void test_full_disk_and_closed_pipe(void **state)
{
	int full = open("/dev/full", O_WRONLY), err = temporary(), pipes[2];

	assert_true(full >= 0);
	got.code = exit_code(start("report 1", full, err));
	slurp(err, got.err, sizeof(got.err));
	assert_int_equal(got.code, 1);
	assert_non_null(strstr(got.err, "No space left"));
	close(full);
	close(err);
	/* The reader is gone: no word, no failure. */
	err = temporary();
	assert_int_equal(pipe(pipes), 0);
	close(pipes[0]);
	got.code = exit_code(start("report 1", pipes[1], err));
	slurp(err, got.err, sizeof(got.err));
	assert_int_equal(got.code, 0);
	assert_string_equal(got.err, "");
	close(pipes[1]);
	close(err);
}

static void test_interrupt(void **state)
{
	const struct timespec pause = { 3, 0 };
	int out = temporary(), err = temporary();
	pid_t pid = start("record builtin:mlp --duration 300s --tag cut", out, err);

	nanosleep(&pause, NULL);
	assert_int_equal(kill(pid, SIGINT), 0);
	got.code = exit_code(pid);
	slurp(err, got.err, sizeof(got.err));
	if (got.code != 130)
		fail_msg("exit %d: %s", got.code, got.err);
	assert_non_null(strstr(got.err, "interrupted"));
	close(out);
	close(err);
	expect("runs --format csv", 0);
	assert_non_null(strstr(got.out, ",cut,builtin:mlp,mlp,interrupted,"));
}

/* Runs with standard output on a terminal of 80 columns. */
static void on_terminal(const char *line, int columns)
{
	struct winsize size = { .ws_col = (unsigned short)columns, .ws_row = 24 };
	int master, slave, err = temporary();
	size_t n = 0;
	ssize_t k;
	pid_t pid;

	if (openpty(&master, &slave, NULL, NULL, &size) != 0) {
		printf("# skip: no pseudo-terminal can be opened here (%s)\n", strerror(errno));
		skip();
	}
	pid = start(line, slave, err);
	close(slave);
	while (n < sizeof(got.out) - 1 && (k = read(master, got.out + n, sizeof(got.out) - 1 - n)) > 0)
		n += (size_t)k;
	got.out[n] = '\0';
	got.code = exit_code(pid);
	close(master);
	close(err);
	assert_int_equal(got.code, 0);
}

static void test_terminal(void **state)
{
	on_terminal("report 1", 80);
	assert_non_null(strstr(got.out, "\033[1m"));
	setenv("NO_COLOR", "1", 1);
	on_terminal("report 1", 80);
	assert_null(strchr(got.out, '\033'));
	for (char *line = strtok(got.out, "\r\n"); line; line = strtok(NULL, "\r\n")) {
		size_t columns = 0;

		for (const char *p = line; *p; p++)
			columns += ((unsigned char)*p & 0xc0) != 0x80;
		if (columns > 80)
			fail_msg("%zu columns: %s", columns, line);
	}
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	on_terminal("report 1", 80);
	assert_null(strchr(got.out, '\033'));
	setenv("TERM", "xterm", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_anything),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_record_and_look),
		cmocka_unit_test(test_database_by_environment),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_optimize),
		cmocka_unit_test(test_bench), cmocka_unit_test(test_plan),
		cmocka_unit_test(test_full_disk_and_closed_pipe),
		cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_terminal),
	};

	return cmocka_run_group_tests_name("program", tests, set_up, tear_down);
}
