/*
 * Drives a fuzz target without libFuzzer: its seeds and every corpus file as
 * they are, then seeded mutations of each. The same numbers on every machine.
 *
 *   replay-NAME MUTATIONS [FILE|FOLDER|CORPUS.pack ...]
 *
 *   replay-NAME --seeds FOLDER
 *
 * writes the built-in seeds as files. A pack holds many small files as one: the length of each in four bytes, the
 * lowest first, then its bytes (scripts/fuzz writes it). Its files are replayed
 * with a tenth of the mutations.
 *
 * A file that crashed libFuzzer is replayed with MUTATIONS 0.
 */
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "fuzz.h"

#define MAX_FILE_BYTES (64 * 1024) /* larger ones only make it slow */

static long mutations, n_files, n_runs;
static uint64_t stream, draw;

static uint64_t below(uint64_t n)
{
	return rg_rng_u64(stream, draw++) % n;
}

static void run(const uint8_t *p, size_t n)
{
	/* Exactly that many bytes, so that a sanitizer sees a read behind them. */
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	if (n)
		memcpy(copy, p, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
	n_runs++;
}

/* One to four changes: a byte, a bit, a length that is off by one, an extreme
 * varint, a piece cut out or doubled. `p` has room for twice n. */
static size_t mutate(uint8_t *p, size_t n)
{
	for (uint64_t k = 1 + below(4); k > 0 && n > 0; k--) {
		size_t at = below(n), len = 1 + below(n - at);

		switch (below(6)) {
		case 0: p[at] = (uint8_t)below(256); break;
		case 1: p[at] ^= (uint8_t)(1u << below(8)); break;
		case 2: p[at] = (uint8_t)(p[at] + (below(2) ? 1 : 255)); break;
		case 3:
			memset(p + at, 0xff, len < 9 ? len : 9);
			break;
		case 4:
			memmove(p + at, p + at + len, n - at - len);
			n -= len;
			break;
		default:
			if (len > 256)
				len = 256;
			memmove(p + at + len, p + at, n - at);
			n += len;
		}
	}
	return n;
}

static void replay(const char *name, const uint8_t *p, size_t n)
{
	uint8_t *work = malloc(n + 1024);

	if (!work)
		abort();
	n_files++;
	stream = rg_rng_stream((uint64_t)n_files, name);
	draw = 0;
	run(p, n);
	for (long i = 0; i < mutations; i++) {
		if (n)
			memcpy(work, p, n);
		run(work, mutate(work, n));
	}
	free(work);
}

static void replay_pack(const char *name, const uint8_t *p, size_t n)
{
	long all = mutations;
	size_t at = 0, len;

	mutations /= 10;
	while (at + 4 <= n) {
		len = (size_t)p[at] | (size_t)p[at + 1] << 8 | (size_t)p[at + 2] << 16 | (size_t)p[at + 3] << 24;
		if (len > n - at - 4) {
			fprintf(stderr, "%s: cut short at byte %zu\n", name, at);
			exit(1);
		}
		replay(name, p + at + 4, len);
		at += 4 + len;
	}
	mutations = all;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	size_t len = strlen(path), suffix = strlen(fuzz_suffix);
	bool pack = len > 5 && strcmp(path + len - 5, ".pack") == 0;
	bool named = ftw->level == 0; /* a file that was asked for by name */
	uint8_t *p;
	FILE *f;

	if (type != FTW_F || (!named && (len < suffix || strcmp(path + len - suffix, fuzz_suffix) != 0)) ||
	    (!named && st->st_size > MAX_FILE_BYTES))
		return 0;
	f = fopen(path, "rb");
	if (!f)
		return 0;
	p = malloc((size_t)st->st_size + 1);
	if (!p)
		abort();
	len = fread(p, 1, (size_t)st->st_size, f);
	fclose(f);
	if (pack)
		replay_pack(path + ftw->base, p, len);
	else
		replay(path + ftw->base, p, len);
	free(p);
	return 0;
}

static int write_seeds(const char *folder)
{
	char path[4096];
	uint8_t *p;
	size_t n;

	for (int i = 0; (p = fuzz_seed(i, &n)) != NULL; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/seed-%d", folder, i);
		f = fopen(path, "wb");
		if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0) {
			perror(path);
			return 1;
		}
		free(p);
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t n;
	uint8_t *p;

	if (argc == 3 && !strcmp(argv[1], "--seeds"))
		return write_seeds(argv[2]);

	if (argc < 2) {
		fprintf(stderr, "usage: %s MUTATIONS [FILE|FOLDER ...]\n", argv[0]);
		return 2;
	}
	mutations = atol(argv[1]);
	for (int i = 0; (p = fuzz_seed(i, &n)) != NULL; i++) {
		replay("seed", p, n);
		free(p);
	}
	for (int i = 2; i < argc; i++)
		if (access(argv[i], F_OK) == 0)
			nftw(argv[i], visit, 16, FTW_PHYS);
	printf("%ld files, %ld runs\n", n_files, n_runs);
	return n_runs > 0 ? 0 : 1;
}
