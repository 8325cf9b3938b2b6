/*
 * The ONNX reader's bytes: a file or memory as a nanopb stream that knows its
 * position, and the text fields that come out of it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "models/onnx-internal.h"

#define WINDOW_BYTES ((size_t)64 * 1024)

static int open_regular(struct onnx_reader *r, const char *path, int64_t max_file_bytes)
{
	struct rg_error *err = r->err;
	struct stat st;
	int fd;

	/* O_NONBLOCK: a FIFO without a writer must not hold us up. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		rg_error_set(err, -errno, "cannot be opened: %s", strerror(errno));
		return err->code == -ENOENT ? rg_error_hint(err, "check the path") : err->code;
	}
	r->src.fd = fd;
	if (fstat(fd, &st) < 0)
		return rg_error_set(err, -errno, "cannot be examined: %s", strerror(errno));
	if (S_ISDIR(st.st_mode)) {
		rg_error_set(err, -EISDIR, "this is a directory, not a file");
		return rg_error_hint(err, "name the .onnx file inside it");
	}
	if (!S_ISREG(st.st_mode))
		return rg_error_set(err, -EINVAL, "this is not a regular file");
	if (st.st_size == 0) {
		rg_error_set(err, -EINVAL, "the file is empty");
		return rg_error_hint(err, "fetch or export the file again");
	}
	if (st.st_size > max_file_bytes)
		return rg_error_set(err, -EFBIG, "the file holds %lld bytes, more than the limit of %lld",
				    (long long)st.st_size, (long long)max_file_bytes);
	r->src.size = (uint64_t)st.st_size;
	return 0;
}

static int open_folder(struct onnx_reader *r, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir;

	dir = slash ? rg_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : rg_strdup(".");
	if (!dir)
		return rg_error_nomem(r->err, strlen(path));
	r->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->dir_fd < 0)
		rg_error_set(r->err, -errno, "its folder cannot be opened: %s", strerror(errno));
	rg_free(dir);
	return r->dir_fd < 0 ? r->err->code : 0;
}

static void reader_init(struct onnx_reader *r, struct rg_error *err)
{
	memset(r, 0, sizeof(*r));
	r->err = err;
	r->src.fd = -1;
	r->dir_fd = -1;
	r->external.fd = -1;
	r->max_tensor_bytes = (int64_t)16 << 30;
}

int onnx_reader_open(struct onnx_reader *r, const char *path, int64_t max_file_bytes, struct rg_error *err)
{
	int rc;

	rg_error_clear(err); /* a code in it means "a callback said why" */
	reader_init(r, err);
	rc = open_regular(r, path, max_file_bytes);
	if (rc == 0)
		rc = open_folder(r, path);
	if (rc == 0) {
		r->src.window = rg_alloc(WINDOW_BYTES);
		if (!r->src.window)
			rc = rg_error_nomem(err, WINDOW_BYTES);
	}
	if (rc)
		onnx_reader_close(r);
	return rc;
}

int onnx_reader_memory(struct onnx_reader *r, const void *data, size_t size_bytes, struct rg_error *err)
{
	rg_error_clear(err);
	reader_init(r, err);
	r->src.mem = data;
	r->src.size = size_bytes;
	return size_bytes ? 0 : rg_error_set(err, -EINVAL, "the file is empty");
}

void onnx_reader_close(struct onnx_reader *r)
{
	onnx_free_functions(r);
	rg_free(r->external.location);
	rg_free(r->external.files);
	rg_free(r->src.window);
	if (r->external.fd >= 0)
		close(r->external.fd);
	if (r->dir_fd >= 0)
		close(r->dir_fd);
	if (r->src.fd >= 0)
		close(r->src.fd);
	reader_init(r, r->err);
}

static int read_file(struct onnx_reader *r, uint64_t at, uint8_t *buf, uint64_t count)
{
	while (count > 0) {
		ssize_t n = pread(r->src.fd, buf, count, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rg_error_set(r->err, -errno, "reading failed: %s", strerror(errno));
		if (n == 0)
			return rg_error_set(r->err, -EIO, "the file became shorter while it was read");
		buf += n;
		at += (uint64_t)n;
		count -= (uint64_t)n;
	}
	return 0;
}

int onnx_source_read(struct onnx_reader *r, uint64_t at, void *buf, uint64_t count)
{
	struct onnx_source *s = &r->src;
	int rc;

	if (at > s->size || count > s->size - at)
		return rg_error_set(r->err, -EBADMSG, "the file ends in the middle of a field");
	if (s->mem) {
		if (count)
			memcpy(buf, s->mem + at, count);
		return 0;
	}
	if (count >= WINDOW_BYTES / 2)
		return read_file(r, at, buf, count);
	if (at < s->window_at || at + count > s->window_at + s->window_len) {
		size_t len = s->size - at < WINDOW_BYTES ? (size_t)(s->size - at) : WINDOW_BYTES;

		s->window_len = 0;
		rc = read_file(r, at, s->window, len);
		if (rc)
			return rc;
		s->window_at = at;
		s->window_len = len;
	}
	memcpy(buf, s->window + (at - s->window_at), count);
	return 0;
}

static bool stream_read(pb_istream_t *stream, pb_byte_t *buf, size_t count)
{
	struct onnx_reader *r = stream->state;

	if (onnx_source_read(r, r->src.pos, buf, count))
		return false;
	r->src.pos += count;
	return true;
}

pb_istream_t onnx_stream(struct onnx_reader *r, uint64_t at, uint64_t count)
{
	pb_istream_t stream = { .callback = stream_read, .state = r, .bytes_left = count };

	r->src.pos = at;
	return stream;
}

bool onnx_stream_is_file(const pb_istream_t *stream)
{
	return stream->callback == stream_read;
}

bool onnx_stream_skip(pb_istream_t *stream)
{
	struct onnx_reader *r = stream->state;

	if (!onnx_stream_is_file(stream))
		return pb_read(stream, NULL, stream->bytes_left);
	r->src.pos += stream->bytes_left;
	stream->bytes_left = 0;
	return true;
}

bool onnx_skip_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	return onnx_stream_skip(stream);
}

bool onnx_each_field(struct onnx_reader *r, uint64_t at, uint64_t bytes, uint32_t number,
		     bool (*found)(pb_istream_t *stream, void *arg), void *arg)
{
	uint64_t back = r->src.pos;
	pb_istream_t stream = onnx_stream(r, at, bytes), sub;
	bool ok = true, eof = false;
	pb_wire_type_t type;
	uint32_t tag;

	while (ok && stream.bytes_left) {
		ok = pb_decode_tag(&stream, &type, &tag, &eof);
		if (!ok || eof)
			break;
		if (type != PB_WT_STRING) {
			ok = pb_skip_field(&stream, type);
			continue;
		}
		ok = pb_make_string_substream(&stream, &sub) &&
		     (tag != number || found(&sub, arg)) && onnx_stream_skip(&sub) &&
		     pb_close_string_substream(&stream, &sub);
	}
	r->src.pos = back;
	return ok || eof;
}

int onnx_decode_failed(struct onnx_reader *r, const pb_istream_t *stream, const char *message)
{
	if (r->err->code)
		return r->err->code;
	rg_error_set(r->err, -EBADMSG, "damaged or cut short: %s in %s, at byte %llu of %llu",
		     stream->errmsg ? stream->errmsg : "not decodable", message,
		     (unsigned long long)r->src.pos, (unsigned long long)r->src.size);
	return rg_error_hint(r->err, "fetch or export the file again");
}

/*
 * Strict UTF-8 without control characters (C0, DEL, C1): names are printed on
 * terminals and written to JSON, and neither may meet anything else.
 */
static const char *text_fault(const unsigned char *s, size_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t i = 0;

	while (i < n) {
		uint32_t c = s[i];
		size_t len = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 0;

		if (len == 0 || len > n - i)
			return "is not valid UTF-8";
		if (len > 1)
			c &= 0x7fu >> len;
		for (size_t k = 1; k < len; k++) {
			if ((s[i + k] & 0xc0) != 0x80)
				return "is not valid UTF-8";
			c = c << 6 | (s[i + k] & 0x3fu);
		}
		if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
			return "is not valid UTF-8";
		if (c < 0x20 || (c >= 0x7f && c < 0xa0))
			return "holds a control character";
		i += len;
	}
	return NULL;
}

char *onnx_bytes(struct onnx_reader *r, pb_istream_t *stream, const char *field, uint64_t limit)
{
	uint64_t len = stream->bytes_left;
	char *s;

	if (!onnx_stream_is_file(stream)) {
		rg_error_set(r->err, -EBADMSG, "damaged: field %s has the wrong wire type", field);
		return NULL;
	}
	if (len > limit) {
		rg_error_set(r->err, -E2BIG, "field %s holds %llu bytes, more than the limit of %llu", field,
			     (unsigned long long)len, (unsigned long long)limit);
		return NULL;
	}
	s = rg_alloc(len + 1);
	if (!s) {
		rg_error_nomem(r->err, len + 1);
		return NULL;
	}
	if (!pb_read(stream, (pb_byte_t *)s, len)) {
		onnx_decode_failed(r, stream, field);
		rg_free(s);
		return NULL;
	}
	s[len] = '\0';
	return s;
}

bool onnx_text_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct onnx_text *t = *arg;
	size_t len = stream->bytes_left;
	const char *fault;
	char *s = onnx_bytes(t->r, stream, t->field, ONNX_MAX_NAME_BYTES);

	if (!s)
		return false;
	fault = text_fault((const unsigned char *)s, len);
	if (fault) {
		rg_error_set(t->r->err, -EINVAL, "%s '%.80s' %s", t->field, s, fault);
		rg_free(s);
		return false;
	}
	rg_free(t->text); /* a repeated field: the last one counts, as in every protobuf reader */
	t->text = s;
	return true;
}

void onnx_set_cb(pb_callback_t *cb, bool (*decode)(pb_istream_t *, const pb_field_t *, void **), void *arg)
{
	cb->funcs.decode = decode;
	cb->arg = arg;
}
