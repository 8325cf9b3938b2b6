/*
 * External tensor data: files beside the model, and nothing else.
 *
 * The kernel resolves the location below the model's folder (openat2 with
 * RESOLVE_BENEATH), so neither "..", an absolute path nor a symbolic link leads
 * out, and nobody can swap a folder between a check and an open. Where the
 * kernel is too old, components are opened one by one and no link is followed
 * at all. The data is read, not mapped: a mapped file that somebody shortens
 * raises SIGBUS in the middle of a kernel, and the weights need 64-byte
 * alignment, which offsets in a file do not promise.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "models/onnx-internal.h"

/* O_NONBLOCK: a FIFO must not hold us up. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

static int open_without_links(int dir_fd, const char *location)
{
	int at = dir_fd, fd = -1;

	while (*location) {
		size_t len = strcspn(location, "/");
		char part[256];
		bool last = location[len] == '\0';

		if (len >= sizeof(part)) {
			errno = ENAMETOOLONG;
			fd = -1;
		} else {
			memcpy(part, location, len);
			part[len] = '\0';
			fd = openat(at, part, last ? OPEN_FLAGS | O_NOFOLLOW
						   : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		if (at != dir_fd) {
			int e = errno;

			close(at);
			errno = e;
		}
		if (fd < 0 || last)
			return fd;
		at = fd;
		location += len + strspn(location + len, "/");
	}
	errno = EISDIR;
	if (at != dir_fd)
		close(at);
	return -1;
}

static int open_beneath(int dir_fd, const char *location)
{
	struct open_how how = { .flags = OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, dir_fd, location, &how, sizeof(how));

	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open_without_links(dir_fd, location);
	return fd;
}

static bool climbs(const char *location)
{
	for (const char *p = location; *p; p += strspn(p, "/")) {
		size_t len = strcspn(p, "/");

		if (len == 2 && p[0] == '.' && p[1] == '.')
			return true;
		p += len;
	}
	return location[0] == '/';
}

static int outside(struct onnx_reader *r, const char *location)
{
	rg_error_set(r->err, -EACCES, "external data '%.200s' lies outside the model's folder", location);
	return rg_error_hint(r->err,
			     "put the file beside the model; links that lead elsewhere are not followed");
}

/* Finds or adds the file in the list of those that tensors take data from. Names
 * are no key: one file may have many. */
static int account(struct onnx_reader *r, const struct stat *st)
{
	struct onnx_external *x = &r->external;
	struct onnx_data_file *files;

	for (x->current = 0; x->current < x->n_files; x->current++)
		if (x->files[x->current].dev == st->st_dev && x->files[x->current].ino == st->st_ino)
			return 0;
	files = rg_grow(x->files, &x->files_cap, x->n_files + 1, sizeof(*files));
	if (!files)
		return rg_error_nomem(r->err, (x->n_files + 1) * sizeof(*files));
	x->files = files;
	files[x->n_files++] = (struct onnx_data_file){ st->st_dev, st->st_ino, (uint64_t)st->st_size, 0 };
	return 0;
}

static int switch_file(struct onnx_reader *r, const char *location)
{
	struct onnx_external *x = &r->external;
	struct stat st;

	if (x->location && strcmp(x->location, location) == 0)
		return 0;
	if (x->fd >= 0)
		close(x->fd);
	rg_free(x->location);
	x->location = NULL;
	x->fd = open_beneath(r->dir_fd, location);
	if (x->fd < 0 && (errno == EXDEV || errno == ELOOP))
		return outside(r, location);
	if (x->fd < 0) {
		rg_error_set(r->err, -errno, "external data '%.200s' cannot be opened: %s", location,
			     strerror(errno));
		return rg_error_hint(r->err, "the model needs this file beside it");
	}
	if (fstat(x->fd, &st) < 0)
		return rg_error_set(r->err, -errno, "external data '%.200s': %s", location, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return rg_error_set(r->err, -EINVAL, "external data '%.200s' is not a regular file",
				    location);
	if (account(r, &st))
		return r->err->code;
	x->location = rg_strdup(location);
	return x->location ? 0 : rg_error_nomem(r->err, strlen(location));
}

int onnx_external_check(struct onnx_reader *r, const char *location, int64_t offset, int64_t length,
			uint64_t bytes)
{
	struct onnx_data_file *x;
	uint64_t at = (uint64_t)offset, have;
	int rc;

	if (r->dir_fd < 0)
		return rg_error_set(r->err, -EACCES, "external data is not read for a model in memory");
	if (location[0] == '\0')
		return rg_error_set(r->err, -EINVAL, "external data has an empty location");
	if (climbs(location))
		return outside(r, location);
	rc = switch_file(r, location);
	if (rc)
		return rc;
	x = &r->external.files[r->external.current];
	if (at > x->size)
		return rg_error_set(r->err, -EINVAL,
				    "external data starts at byte %" PRIu64 ", but '%.200s' ends at %" PRIu64,
				    at, location, x->size);
	have = length >= 0 ? (uint64_t)length : x->size - at;
	if (have > x->size - at) {
		rg_error_set(r->err, -EINVAL, "external data takes bytes %" PRIu64 " to %" PRIu64
			     " of '%.200s', which ends at %" PRIu64, at, at + have, location, x->size);
		return rg_error_hint(r->err, "the data file is cut short: fetch it again");
	}
	if (have != bytes)
		return rg_error_set(r->err, -EINVAL,
				    "external data holds %" PRIu64 " bytes, but type and shape need %" PRIu64,
				    have, bytes);
	/* A small model must not multiply one data file into more memory than the
	 * file has bytes: tied weights share, so twice is generous. */
	if (bytes > 2 * x->size - x->claimed)
		return rg_error_set(r->err, -EINVAL,
				    "the tensors take more bytes from '%.200s' than it holds", location);
	x->claimed += bytes;
	return 0;
}

int onnx_external_read(struct onnx_reader *r, int64_t offset, void *dst, uint64_t bytes)
{
	struct onnx_external *x = &r->external;
	uint64_t at = (uint64_t)offset;
	uint8_t *p = dst;

	while (bytes > 0) {
		ssize_t n = pread(x->fd, p, bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rg_error_set(r->err, -errno, "reading '%.200s' failed: %s", x->location,
					    strerror(errno));
		if (n == 0)
			return rg_error_set(r->err, -EIO, "'%.200s' became shorter while it was read",
					    x->location);
		p += n;
		at += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}
