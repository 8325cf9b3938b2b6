/* String tensors as text files; see text.h. */
#include "models/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "graph/text.h"

#define MAX_TEXT_BYTES (INT64_C(1) << 32)

/* ---- reading ---- */

/* The whole file and a line's end behind it; *n without that. */
static char *read_all(const char *path, size_t *n, struct rg_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *buf = NULL;
	struct stat st;
	ssize_t got = 1;

	*n = 0;
	if (fd < 0 || fstat(fd, &st) != 0)
		rg_error_set(err, -errno, "cannot be opened: %s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rg_error_set(err, -EINVAL, "is no regular file");
	else if (st.st_size > MAX_TEXT_BYTES)
		rg_error_set(err, -EFBIG, "is larger than 4 GiB");
	else if (!(buf = rg_alloc((size_t)st.st_size + 1)))
		rg_error_nomem(err, (unsigned long)st.st_size);
	while (buf && *n < (size_t)st.st_size && got != 0) {
		got = read(fd, buf + *n, (size_t)st.st_size - *n);
		if (got < 0 && errno != EINTR) {
			rg_error_set(err, -errno, "reading failed: %s", strerror(errno));
			break;
		}
		*n += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	if (err->code) {
		rg_free(buf);
		return NULL;
	}
	return buf;
}

static int64_t count_lines(const char *text, size_t n)
{
	int64_t lines = n > 0 && text[n - 1] != '\n';

	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines;
}

int rg_text_read(const char *path, struct rg_tensor *t, struct rg_error *err)
{
	size_t n, at = 0;
	char *text = read_all(path, &n, err), *copy;
	const char **strings;
	int64_t lines;

	memset(t, 0, sizeof(*t));
	if (text && memchr(text, 0, n))
		rg_error_set(err, -EINVAL, "holds a NUL byte: it is no text");
	if (err->code) {
		rg_free(text);
		rg_error_hint(err, "give a text file with one string a line");
		return rg_error_at(err, "%s", path);
	}
	lines = count_lines(text, n);
	t->dtype = RG_STRING;
	t->shape = rg_shape_of(1, &lines);
	strings = lines ? rg_alloc_aligned(64, (size_t)lines * sizeof(*strings) + n + 1) : NULL;
	if (lines && !strings) {
		rg_free(text);
		return rg_error_nomem(err, n);
	}
	copy = (char *)(strings + lines);
	for (int64_t i = 0; i < lines; i++) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t len = end ? (size_t)(end - text) - at : n - at;

		strings[i] = memcpy(copy + at, text + at, len);
		copy[at + len] = '\0';
		if (len > 0 && copy[at + len - 1] == '\r')
			copy[at + len - 1] = '\0';
		at += len + 1;
	}
	rg_free(text);
	t->data = strings;
	return 0;
}

/* ---- writing ---- */

int rg_text_write(const char *path, const struct rg_tensor *t, struct rg_error *err)
{
	int64_t n = rg_shape_count(&t->shape);
	FILE *f;

	for (int64_t i = 0; i < n; i++) {
		if (!strpbrk(rg_text_at(t, i), "\n\r"))
			continue;
		rg_error_set(err, -EINVAL, "string %lld holds a line break, and the file has one string a line",
			     (long long)i);
		rg_error_hint(err, "run it without --output-dir");
		return rg_error_at(err, "%s", path);
	}
	f = fopen(path, "we");
	for (int64_t i = 0; f && i < n; i++)
		fprintf(f, "%s\n", rg_text_at(t, i));
	if (!f || ferror(f))
		rg_error_set(err, errno ? -errno : -EIO, "cannot be written: %s", strerror(errno ? errno : EIO));
	if (f && fclose(f) != 0 && !err->code)
		rg_error_set(err, -errno, "cannot be written: %s", strerror(errno));
	if (!err->code)
		return 0;
	rg_error_hint(err, "give another folder with --output-dir");
	return rg_error_at(err, "%s", path);
}
