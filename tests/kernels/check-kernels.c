/*
 * The kernels of the registry against their references, one point of TAP a
 * kernel. Usage is in usage[] below; check.h says what is compared.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "kernels/blas/blas.h"
#include "sys/cpu.h"

static const char usage[] =
	"check-kernels [--op OP] [--kernel NAME] [--isa LEVEL] [--cases N] [--seed N]\n"
	"              [--list | --bench | --here]\n"
	"Compares every kernel with the scalar reference of its operator.\n"
	"  --op OP, --kernel NAME  only those; a * at the end of NAME stands for anything\n"
	"  --isa LEVEL             sse2, avx2, avx512, native: the most that may be used\n"
	"  --seed N, --cases N     the first case, and how many (default 1, 120): what a\n"
	"                          failure names, with --cases 1, repeats it\n"
	"  --list                  what there is to check\n"
	"  --bench                 times each on one thread: ns, GFLOP/s, times the reference\n"
	"  --here                  without a child process, for debuggers\n";

enum what { CHECK, LIST, BENCH, HERE };

struct args {
	const char *op, *kernel;
	enum what what;
	bool narrowed;            /* a few cases of many: what they leave out is no failure */
	struct ck_options opt;
};

static bool number(const char *text, uint64_t *out)
{
	char *end;

	*out = strtoull(text, &end, 0);
	return *text && !*end;
}

static bool parse(int argc, char **argv, struct args *a)
{
	static const struct option options[] = {
		{ "op", required_argument, NULL, 'o' },   { "kernel", required_argument, NULL, 'k' },
		{ "isa", required_argument, NULL, 'i' },  { "cases", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' }, { "list", no_argument, NULL, 'l' },
		{ "bench", no_argument, NULL, 'b' },      { "here", no_argument, NULL, 'h' },
		{ 0 },
	};
	uint64_t cases = 120;
	struct rg_cpu cpu;
	uint32_t cap;
	int c;

	rg_cpu_detect("", &cpu);
	*a = (struct args){ .opt = { .seed = 1, .isa = cpu.isa } };
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'o': a->op = optarg; break;
		case 'k': a->kernel = optarg; break;
		case 'l': a->what = LIST; break;
		case 'b': a->what = BENCH; break;
		case 'h': a->what = HERE; break;
		case 'c':
		case 's':
			if (!number(optarg, c == 'c' ? &cases : &a->opt.seed))
				return false;
			a->narrowed = true;
			break;
		case 'i':
			if (!rg_isa_cap_parse(optarg, &cap))
				return false;
			a->opt.isa &= cap;
			break;
		default:
			return false;
		}
	}
	a->opt.cases = (int)cases;
	return optind == argc && cases > 0 && cases < 1000000000;
}

static bool wanted(const struct args *a, const struct rg_kernel *k)
{
	size_t n = a->kernel ? strlen(a->kernel) : 0;

	if (ck_is_reference(k) || (a->op && strcmp(a->op, k->op_type)))
		return false;
	if (!n || !strcmp(a->kernel, k->name))
		return true;
	return a->kernel[n - 1] == '*' && !strncmp(a->kernel, k->name, n - 1);
}

/* A library that is not installed is a reason to skip; kernels of ours have none. */
static bool may_skip(const struct args *a, const struct rg_kernel *k)
{
	return a->narrowed || (k->isa & ~a->opt.isa) || (!strcmp(k->name, "openblas") && !rg_blas_available());
}

static bool report(const struct args *a, const struct rg_kernel *k, const struct ck_result *r, int number)
{
	bool ok = r->status == CK_PASSED || (r->status == CK_SKIPPED && may_skip(a, k));

	printf("%sok %d - %s %s", ok ? "" : "not ", number, k->op_type, k->name);
	if (r->status == CK_SKIPPED && ok)
		printf(" # SKIP %s", !strcmp(k->name, "openblas") && !rg_blas_available() ? rg_blas_describe() :
											     r->message);
	printf("\n");
	if (r->status == CK_PASSED) {
		printf("# %d cases, %d runs", r->cases, r->runs);
		if (r->in_place)
			printf(" (%d of them over an input)", r->in_place);
		printf(", %lld elements, %.2f of the bound at worst\n", (long long)r->elements, r->worst);
	}
	if (!ok)
		printf("# %s\n", r->message);
	if (r->status == CK_FAILED && r->what[0])
		printf("# %s\n# again: check-kernels --op %s --kernel %s --seed %llu --cases 1\n", r->what, k->op_type,
		       k->name, (unsigned long long)r->seed);
	fflush(stdout);
	return ok;
}

static void check(const struct args *a, const struct rg_kernel *k, struct ck_result *r)
{
	const struct ck_family *f = ck_family_find(k->domain, k->op_type);

	if (a->what == HERE && f && !(k->isa & ~a->opt.isa)) {
		memset(r, 0, sizeof(*r));
		ck_check_here(k, f, &a->opt, r);
	} else {
		ck_check(k, &a->opt, r);
	}
}

int main(int argc, char **argv)
{
	static struct ck_result r;
	struct args a;
	int n = 0, failed = 0;

	if (!parse(argc, argv, &a)) {
		fputs(usage, stderr);
		return 2;
	}
	for (int i = 0; i < rg_kernel_count(); i++)
		n += wanted(&a, rg_kernel_at(i));
	if (!n) {
		fprintf(stderr, "check-kernels: no kernel is called so (--list shows them)\n");
		return 2;
	}
	if (a.what == CHECK || a.what == HERE)
		printf("1..%d\n", n);
	n = 0;
	for (int i = 0; i < rg_kernel_count(); i++) {
		const struct rg_kernel *k = rg_kernel_at(i);

		if (!wanted(&a, k))
			continue;
		if (a.what == LIST) {
			printf("%-24s %-20s %s\n", k->op_type, k->name, k->isa ? rg_isa_level_name(k->isa) : "any CPU");
		} else if (a.what == BENCH) {
			failed += ck_bench(k, a.opt.isa) != 0;
		} else {
			check(&a, k, &r);
			failed += !report(&a, k, &r, ++n);
		}
	}
	return failed ? 1 : 0;
}
