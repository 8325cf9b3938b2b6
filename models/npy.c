/*
 * The .npy reader and writer. The header is a Python dictionary literal; the
 * few forms that NumPy writes are parsed by hand, nothing is evaluated. Type,
 * shape and bytes must agree before memory is taken.
 */
#include "models/npy.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian data is copied as it is");

#define MAX_HEADER_BYTES 65535 /* also of versions 2 and 3, which could claim 4 GiB */
#define MAX_DATA_BYTES ((uint64_t)16 << 30)
#define PREFIX_BYTES 12 /* magic, version, and the longer of the two length fields */

static const struct {
	const char *descr;
	enum rg_dtype dtype;
} types[] = {
	/* the first entry of a type is the one that is written */
	{ "<f4", RG_F32 }, { "<f8", RG_F64 }, { "<f2", RG_F16 },
	{ "|i1", RG_I8 }, { "<i2", RG_I16 }, { "<i4", RG_I32 }, { "<i8", RG_I64 },
	{ "|u1", RG_U8 }, { "<u2", RG_U16 }, { "<u4", RG_U32 }, { "<u8", RG_U64 },
	{ "|b1", RG_BOOL }, { "<c8", RG_C64 }, { "<c16", RG_C128 },
};

struct header {
	enum rg_dtype dtype;
	struct rg_shape shape;
	bool fortran;
	uint64_t data_at;
	uint64_t bytes;
};

/* ---- the header ---- */

struct parser {
	const char *p, *end;
	struct rg_error *err;
};

static void skip_space(struct parser *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
}

static bool accept(struct parser *s, char c)
{
	skip_space(s);
	if (s->p >= s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static bool accept_word(struct parser *s, const char *word)
{
	size_t n = strlen(word);

	skip_space(s);
	if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
		return false;
	s->p += n;
	return true;
}

static int malformed(struct parser *s, const char *what)
{
	rg_error_set(s->err, -EINVAL, "the .npy header is malformed: %s", what);
	return rg_error_hint(s->err, "write the file again with numpy.save");
}

/* A quoted string without escapes, into out. */
static int parse_string(struct parser *s, char *out, size_t cap)
{
	char quote;
	size_t n = 0;

	skip_space(s);
	if (s->p >= s->end || (*s->p != '\'' && *s->p != '"'))
		return malformed(s, "a quoted string is missing");
	quote = *s->p++;
	while (s->p < s->end && *s->p != quote) {
		if (n + 1 >= cap || *s->p == '\\' || *s->p == '\0')
			return malformed(s, "a string is too long or has escapes");
		out[n++] = *s->p++;
	}
	if (s->p >= s->end)
		return malformed(s, "a string does not end");
	s->p++;
	out[n] = '\0';
	return 0;
}

static int parse_descr(struct parser *s, struct header *h)
{
	char d[16];

	skip_space(s);
	if (s->p < s->end && *s->p == '[')
		return rg_error_set(s->err, RG_ENOTSUP_MODEL, "arrays of records are not supported");
	if (parse_string(s, d, sizeof(d)))
		return s->err->code;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		/* Byte order says nothing about single bytes, and '=' is this machine's. */
		bool order = d[0] == types[i].descr[0] || (d[0] == '=' && types[i].descr[0] == '<') ||
			     (d[0] && strchr("<>=", d[0]) && types[i].descr[0] == '|');

		if (order && strcmp(d + 1, types[i].descr + 1) == 0) {
			h->dtype = types[i].dtype;
			return 0;
		}
	}
	rg_error_set(s->err, RG_ENOTSUP_MODEL, d[0] == '>' ? "big-endian elements '%s' are not supported" :
		     "element type '%s' is not supported", d);
	return rg_error_hint(s->err, "convert it first, for example with  array.astype('<f4')");
}

static int parse_dim(struct parser *s, int64_t *out)
{
	int64_t v = 0;
	bool any = false;

	skip_space(s);
	for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++, any = true)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->p - '0', &v))
			return malformed(s, "a dimension is too large");
	if (!any)
		return malformed(s, "a dimension is not a number");
	if (s->p < s->end && *s->p == 'L') /* Python 2 */
		s->p++;
	*out = v;
	return 0;
}

static int parse_shape(struct parser *s, struct header *h)
{
	bool comma = true;

	if (!accept(s, '('))
		return malformed(s, "shape is not a tuple");
	h->shape.rank = 0;
	while (!accept(s, ')')) {
		if (!comma)
			return malformed(s, "a comma is missing in shape");
		if (h->shape.rank >= RG_MAX_RANK)
			return rg_error_set(s->err, RG_ENOTSUP_MODEL,
					    "more than %d dimensions are not supported", RG_MAX_RANK);
		if (parse_dim(s, &h->shape.dim[h->shape.rank]))
			return s->err->code;
		h->shape.rank++;
		comma = accept(s, ',');
	}
	return 0;
}

static int parse_dict(struct parser *s, struct header *h)
{
	enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
	bool comma = true;
	int seen = 0, bit, rc;
	char key[32];

	if (!accept(s, '{'))
		return malformed(s, "it does not start with '{'");
	while (!accept(s, '}')) {
		if (!comma)
			return malformed(s, "a comma is missing");
		if (parse_string(s, key, sizeof(key)))
			return s->err->code;
		if (!accept(s, ':'))
			return malformed(s, "a colon is missing");
		if (strcmp(key, "descr") == 0) {
			bit = DESCR;
			rc = parse_descr(s, h);
		} else if (strcmp(key, "fortran_order") == 0) {
			bit = ORDER;
			h->fortran = accept_word(s, "True");
			rc = h->fortran || accept_word(s, "False")
				 ? 0
				 : malformed(s, "fortran_order is neither True nor False");
		} else if (strcmp(key, "shape") == 0) {
			bit = SHAPE;
			rc = parse_shape(s, h);
		} else {
			return malformed(s, "it has a key that no version knows");
		}
		if (rc)
			return rc;
		if (seen & bit)
			return malformed(s, "a key stands twice");
		seen |= bit;
		comma = accept(s, ',');
	}
	skip_space(s);
	if (s->p != s->end)
		return malformed(s, "something follows the '}'");
	return seen == (DESCR | ORDER | SHAPE) ? 0 : malformed(s, "descr, fortran_order or shape is missing");
}

/* `head` holds the first head_len of size bytes, at least the header. */
static int parse_header(const uint8_t *head, uint64_t head_len, uint64_t size, struct header *h,
			struct rg_error *err)
{
	struct parser s = { .err = err };
	uint64_t at, len;
	char shape[160];
	int64_t bytes;

	if (head_len < 10 || memcmp(head, "\x93NUMPY", 6) != 0) {
		rg_error_set(err, -EINVAL, "this is not a .npy file");
		return rg_error_hint(err, "write one with numpy.save");
	}
	if (head[6] < 1 || head[6] > 3)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "version %d of .npy is not known", head[6]);
	at = head[6] == 1 ? 10 : 12;
	if (head_len < at)
		return rg_error_set(err, -EINVAL, "the .npy file is cut short in its header");
	len = head[8] | (uint64_t)head[9] << 8;
	if (head[6] > 1)
		len |= (uint64_t)head[10] << 16 | (uint64_t)head[11] << 24;
	if (len > MAX_HEADER_BYTES)
		return rg_error_set(err, -EINVAL, "the .npy header claims %" PRIu64 " bytes, more than %d",
				    len, MAX_HEADER_BYTES);
	if (len > head_len - at)
		return rg_error_set(err, -EINVAL, "the .npy file is cut short in its header");
	s.p = (const char *)head + at;
	s.end = s.p + len;
	memset(h, 0, sizeof(*h));
	if (parse_dict(&s, h))
		return err->code;
	h->data_at = at + len;
	bytes = rg_tensor_bytes(h->dtype, &h->shape);
	if (bytes < 0 || (uint64_t)bytes > MAX_DATA_BYTES)
		return rg_error_set(err, -EFBIG, "shape %s is too large", rg_shape_text(shape, &h->shape));
	h->bytes = (uint64_t)bytes;
	if (h->bytes != size - h->data_at) {
		rg_error_set(
		    err, -EINVAL, "shape %s of %s needs %" PRIu64 " bytes, but %" PRIu64 " follow the header",
		    rg_shape_text(shape, &h->shape), rg_dtype_name(h->dtype), h->bytes, size - h->data_at);
		return rg_error_hint(err, "the file is cut short or damaged: write it again");
	}
	return 0;
}

/* ---- reading ---- */

/* Fortran order to C order: walks the output, stepping through the input by the
 * strides of the reversed shape. */
static void to_c_order(const uint8_t *from, uint8_t *to, const struct rg_shape *s, size_t width)
{
	int64_t index[RG_MAX_RANK] = { 0 }, stride[RG_MAX_RANK], at = 0, n = rg_shape_count(s);

	for (int64_t d = 0, step = 1; d < s->rank; d++) {
		stride[d] = step;
		step *= s->dim[d];
	}
	for (int64_t i = 0; i < n; i++) {
		memcpy(to + (size_t)i * width, from + (size_t)at * width, width);
		for (int d = s->rank - 1; d >= 0; d--) {
			at += stride[d];
			if (++index[d] < s->dim[d])
				break;
			at -= stride[d] * s->dim[d];
			index[d] = 0;
		}
	}
}

/* Takes over `raw`, the data as the file has it, and makes the tensor of it. */
static int make_tensor(const struct header *h, uint8_t *raw, struct rg_tensor *t, struct rg_error *err)
{
	uint8_t *sorted;

	if (h->fortran && h->shape.rank > 1 && h->bytes) {
		sorted = rg_alloc_aligned(64, h->bytes);
		if (sorted)
			to_c_order(raw, sorted, &h->shape, rg_dtype_bytes(h->dtype));
		rg_free(raw);
		if (!sorted)
			return rg_error_nomem(err, h->bytes);
		raw = sorted;
	}
	if (h->dtype == RG_BOOL)
		for (uint64_t i = 0; i < h->bytes; i++)
			raw[i] = raw[i] != 0;
	t->dtype = h->dtype;
	t->shape = h->shape;
	t->data = raw;
	return 0;
}

int rg_npy_parse(const void *data, size_t size_bytes, struct rg_tensor *t, struct rg_error *err)
{
	struct header h;
	uint8_t *raw;

	memset(t, 0, sizeof(*t));
	if (parse_header(data, size_bytes, size_bytes, &h, err))
		return err->code;
	raw = rg_alloc_aligned(64, h.bytes);
	if (!raw)
		return rg_error_nomem(err, h.bytes);
	if (h.bytes)
		memcpy(raw, (const uint8_t *)data + h.data_at, h.bytes);
	return make_tensor(&h, raw, t, err);
}

static int read_at(int fd, uint64_t at, void *buf, uint64_t count, struct rg_error *err)
{
	uint8_t *p = buf;

	while (count > 0) {
		ssize_t n = pread(fd, p, count, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return rg_error_set(err, -errno, "reading failed: %s", strerror(errno));
		if (n == 0)
			return rg_error_set(err, -EIO, "the file became shorter while it was read");
		p += n;
		at += (uint64_t)n;
		count -= (uint64_t)n;
	}
	return 0;
}

static int read_fd(int fd, struct rg_tensor *t, struct rg_error *err)
{
	struct header h;
	struct stat st;
	uint64_t size, head_len;
	uint8_t *buf;
	int rc;

	if (fstat(fd, &st) < 0)
		return rg_error_set(err, -errno, "cannot be examined: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return rg_error_set(err, -EINVAL, "this is not a regular file");
	size = (uint64_t)st.st_size;
	head_len = size < PREFIX_BYTES + MAX_HEADER_BYTES ? size : PREFIX_BYTES + MAX_HEADER_BYTES;
	buf = rg_alloc(head_len);
	if (!buf)
		return rg_error_nomem(err, head_len);
	rc = read_at(fd, 0, buf, head_len, err);
	if (!rc)
		rc = parse_header(buf, head_len, size, &h, err);
	rg_free(buf);
	if (rc)
		return rc;
	buf = rg_alloc_aligned(64, h.bytes);
	if (!buf)
		return rg_error_nomem(err, h.bytes);
	rc = read_at(fd, h.data_at, buf, h.bytes, err);
	if (rc) {
		rg_free(buf);
		return rc;
	}
	return make_tensor(&h, buf, t, err);
}

int rg_npy_read(const char *path, struct rg_tensor *t, struct rg_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	memset(t, 0, sizeof(*t));
	if (fd < 0) {
		rg_error_set(err, -errno, "cannot be opened: %s", strerror(errno));
		rg_error_hint(err, err->code == -EACCES ? "change its permissions" : "check the path");
		return rg_error_at(err, "%s", path);
	}
	rc = read_fd(fd, t, err);
	close(fd);
	if (rc && !err->hint[0])
		rg_error_hint(err, "write the file again with numpy.save");
	return rc ? rg_error_at(err, "%s", path) : 0;
}

/* ---- writing ---- */

/* Version 1 header, padded so that the data starts at a multiple of 64 bytes. */
static int make_header(const struct rg_tensor *t, struct rg_str *out, struct rg_error *err)
{
	enum rg_dtype dtype = t->dtype == RG_BF16 ? RG_U16 : t->dtype;
	const char *descr = NULL;
	struct rg_str dict = { 0 };
	size_t len, pad;

	/* The 8-bit floats have no name in NumPy either: their bits are written. */
	if (dtype >= RG_F8E4M3FN && dtype <= RG_F8E5M2FNUZ)
		dtype = RG_U8;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && !descr; i++)
		if (types[i].dtype == dtype)
			descr = types[i].descr;
	if (!descr)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "%s cannot be written as .npy",
				    rg_dtype_name(t->dtype));
	rg_str_printf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
	for (int i = 0; i < t->shape.rank; i++)
		rg_str_printf(&dict, "%s%" PRId64 "%s", i ? ", " : "", t->shape.dim[i],
			      t->shape.rank == 1 ? "," : "");
	rg_str_add(&dict, "), }");
	len = 10 + dict.len + 1;
	pad = (64 - len % 64) % 64;
	rg_str_addn(out, "\x93NUMPY\x01", 8); /* the NUL behind is the minor version */
	len = dict.len + pad + 1;
	rg_str_addn(out, (char[]){ (char)(len & 0xff), (char)(len >> 8) }, 2);
	rg_str_addn(out, rg_str_text(&dict), dict.len);
	for (size_t i = 0; i < pad; i++)
		rg_str_add(out, " ");
	rg_str_add(out, "\n");
	if (dict.failed)
		out->failed = true;
	rg_str_free(&dict);
	return out->failed ? rg_error_nomem(err, 256) : 0;
}

static int write_all(int fd, const void *data, uint64_t count, struct rg_error *err)
{
	const uint8_t *p = data;

	while (count > 0) {
		ssize_t n = write(fd, p, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			rg_error_set(err, -errno, "writing failed: %s", strerror(errno));
			return err->code == -ENOSPC
				   ? rg_error_hint(err, "free some space, or write elsewhere")
				   : err->code;
		}
		p += n;
		count -= (uint64_t)n;
	}
	return 0;
}

static int write_renamed(const char *path, const struct rg_str *header, const void *data, uint64_t bytes,
			 struct rg_error *err)
{
	char *temporary = rg_asprintf("%s.%ld.tmp", path, (long)getpid());
	int fd, rc;

	if (!temporary)
		return rg_error_nomem(err, strlen(path));
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		rg_error_set(err, -errno, "cannot be written: %s", strerror(errno));
		rg_error_hint(err, "choose a folder that exists and that you may write to");
		rg_free(temporary);
		return err->code;
	}
	rc = write_all(fd, header->text, header->len, err);
	if (!rc)
		rc = write_all(fd, data, bytes, err);
	/* Some file systems find out only here that they are full. */
	if (!rc && fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		rc = rg_error_set(err, -errno, "writing failed: %s", strerror(errno));
	if (close(fd) < 0 && !rc)
		rc = rg_error_set(err, -errno, "writing failed: %s", strerror(errno));
	if (!rc && rename(temporary, path) < 0)
		rc = rg_error_set(err, -errno, "cannot be written: %s", strerror(errno));
	if (rc)
		unlink(temporary);
	rg_free(temporary);
	return rc;
}

int rg_npy_write(const char *path, const struct rg_tensor *t, struct rg_error *err)
{
	struct rg_str header = { 0 };
	int64_t bytes = rg_tensor_bytes(t->dtype, &t->shape);
	int rc;

	rc = make_header(t, &header, err);
	if (!rc && (bytes < 0 || (bytes > 0 && !t->data)))
		rc = rg_error_set(err, -EINVAL, "the tensor has no data");
	if (!rc)
		rc = write_renamed(path, &header, t->data, (uint64_t)bytes, err);
	rg_str_free(&header);
	return rc ? rg_error_at(err, "%s", path) : 0;
}
