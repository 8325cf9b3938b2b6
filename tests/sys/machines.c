/*
 * Unpacking recorded machines for tests of src/sys, with tar: the archives are
 * the original ones.
 */
#include "tests/sys/machines.h"

#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define MAX_FOLDERS 128
static char folders[MAX_FOLDERS][64];
static int n_folders;

static void must(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		abort();
	}
}

bool machine_folder(char *out, size_t cap)
{
	const char *shared = getenv("RIDGE_SHARED");
	struct stat st;

	snprintf(out, cap, "%s/data/machines", shared ? shared : RG_SOURCE_ROOT "/../shared");
	if (stat(out, &st) == 0)
		return true;
	fprintf(stderr, "# skipped: no recorded machines in %s (set RIDGE_SHARED)\n", out);
	return false;
}

void machine_scratch(char *out, size_t cap)
{
	char *name = folders[n_folders];

	must(n_folders < MAX_FOLDERS, "too many folders");
	snprintf(name, sizeof(folders[0]), "/tmp/ridge-test-XXXXXX");
	must(mkdtemp(name) != NULL, name);
	n_folders++;
	snprintf(out, cap, "%s", name);
}

bool machine_unpack(const char *archive, char *out, size_t cap)
{
	char from[4096], path[4608];
	char *argv[] = { "tar", "-xjf", path, "-C", out, NULL };
	int status = -1;
	pid_t pid;

	if (!machine_folder(from, sizeof(from)))
		return false;
	snprintf(path, sizeof(path), "%s/%s.tar.bz2", from, archive);
	machine_scratch(out, cap);
	if (access(path, R_OK) != 0 || posix_spawnp(&pid, "tar", NULL, NULL, argv, environ) != 0) {
		fprintf(stderr, "# skipped: cannot unpack %s\n", path);
		return false;
	}
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status != 0)
		fprintf(stderr, "# skipped: tar could not unpack %s\n", path);
	return status == 0;
}

void machine_write(const char *root, const char *path, const char *content)
{
	char full[4096], *at;
	FILE *f;

	must(snprintf(full, sizeof(full), "%s/%s", root, path) < (int)sizeof(full), "path too long");
	for (at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(full, 0755);
		*at = '/';
	}
	f = fopen(full, "w");
	must(f != NULL, full);
	must(fputs(content, f) >= 0 && fclose(f) == 0, full);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

int machine_cleanup(void **state)
{
	while (n_folders > 0)
		nftw(folders[--n_folders], remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
