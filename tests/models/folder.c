/* A folder for each test, removed afterwards. */
#include "folder.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[PATH_MAX - 300];

int folder_setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/ridge-models-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

int folder_teardown(void **state)
{
	return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *folder_path(const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned next;
	char *p = paths[next++ % 8];

	snprintf(p, PATH_MAX, "%s/%s", folder, name);
	return p;
}

const char *folder_write(const char *name, const void *data, size_t n)
{
	const char *path = folder_path(name);
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
		abort();
	return path;
}
