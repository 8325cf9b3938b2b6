/*
 * TensorProto to aligned memory, in two passes over its bytes: the first
 * counts what is there and allocates nothing that grows with a claim, the
 * second writes into memory of exactly the size that type and shape ask for.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "models/onnx-internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "ONNX data is little-endian and is copied as it is");

enum payload { P_FLOAT, P_INT32, P_INT64, P_DOUBLE, P_UINT64, P_STRING, P_RAW, P_EXTERNAL, P_COUNT, P_NONE };

static const char *const payload_name[P_COUNT] = {
	"float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data", "raw_data",
	"external_data",
};

struct scan {
	struct onnx_reader *r;
	struct onnx_text name;
	int rank; /* as the file says: may be more than dim[] holds */
	int64_t dim[RG_MAX_RANK];
	bool has_raw;
	uint64_t raw_at;
	uint64_t n[P_COUNT]; /* elements in each field; bytes in raw_data */
	uint64_t text_bytes; /* of all strings, each with a NUL */
	char *location;      /* of external data */
	int64_t offset, length;

	/* second pass */
	enum payload from;
	enum rg_dtype dtype;
	uint8_t *dst;
	uint64_t at, end; /* units of the field written so far, and in all */
	char *text, *text_end; /* room for the characters of strings */
};

static enum payload payload_of_tag(uint32_t tag)
{
	switch (tag) {
	case onnx_TensorProto_float_data_tag: return P_FLOAT;
	case onnx_TensorProto_int32_data_tag: return P_INT32;
	case onnx_TensorProto_int64_data_tag: return P_INT64;
	case onnx_TensorProto_double_data_tag: return P_DOUBLE;
	case onnx_TensorProto_uint64_data_tag: return P_UINT64;
	case onnx_TensorProto_string_data_tag: return P_STRING;
	case onnx_TensorProto_raw_data_tag: return P_RAW;
	default: return P_NONE;
	}
}

static bool wrong_wire_type(struct scan *s, const char *field)
{
	rg_error_set(s->r->err, -EBADMSG, "damaged: field %s has the wrong wire type", field);
	return false;
}

static bool dims_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct scan *s = *arg;
	uint64_t v;

	while (stream->bytes_left) {
		if (!pb_decode_varint(stream, &v))
			return false;
		if (s->rank < RG_MAX_RANK)
			s->dim[s->rank] = (int64_t)v;
		if (s->rank < INT32_MAX)
			s->rank++;
	}
	return true;
}

/* First pass: counts, remembers where raw_data lies, moves over it. */
static bool count_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct scan *s = *arg;
	enum payload p = payload_of_tag(field->tag);
	size_t width = p == P_FLOAT ? 4 : p == P_DOUBLE ? 8 : 0;
	uint64_t v;

	if (p == P_RAW || p == P_STRING) {
		if (!onnx_stream_is_file(stream))
			return wrong_wire_type(s, payload_name[p]);
		if (p == P_RAW) {
			if (s->has_raw) {
				rg_error_set(s->r->err, -EINVAL, "raw_data stands twice");
				return false;
			}
			s->has_raw = true;
			s->raw_at = s->r->src.pos;
			s->n[P_RAW] = stream->bytes_left;
		} else {
			s->n[P_STRING]++;
			s->text_bytes += stream->bytes_left + 1;
		}
		return onnx_stream_skip(stream);
	}
	if (width) {
		if (stream->bytes_left % width) {
			rg_error_set(s->r->err, -EBADMSG, "damaged: %s ends inside an element",
				     payload_name[p]);
			return false;
		}
		s->n[p] += stream->bytes_left / width;
		return onnx_stream_skip(stream);
	}
	for (; stream->bytes_left; s->n[p]++)
		if (!pb_decode_varint(stream, &v))
			return false;
	return true;
}

static bool external_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct scan *s = *arg;
	struct onnx_reader *r = s->r;
	struct onnx_text key = { r, "external_data.key", NULL }, value = { r, "external_data.value", NULL };
	onnx_StringStringEntryProto m = onnx_StringStringEntryProto_init_zero;
	bool ok = false;

	if (!onnx_stream_is_file(stream))
		return wrong_wire_type(s, "external_data");
	onnx_set_cb(&m.key, onnx_text_cb, &key);
	onnx_set_cb(&m.value, onnx_text_cb, &value);
	if (!pb_decode(stream, onnx_StringStringEntryProto_fields, &m)) {
		onnx_decode_failed(r, stream, "external_data");
	} else if (!key.text || !value.text) {
		rg_error_set(r->err, -EINVAL, "an external_data entry lacks its key or value");
	} else if (strcmp(key.text, "location") == 0) {
		rg_free(s->location);
		s->location = value.text;
		value.text = NULL;
		s->n[P_EXTERNAL] = 1;
		ok = true;
	} else if (strcmp(key.text, "offset") == 0 || strcmp(key.text, "length") == 0) {
		ok = rg_parse_i64(value.text, 0, INT64_MAX, key.text[0] == 'o' ? &s->offset : &s->length);
		if (!ok)
			rg_error_set(r->err, -EINVAL, "external data: %s is '%.40s', not a number of bytes",
				     key.text, value.text);
	} else {
		ok = true; /* checksum, and keys of other tools */
	}
	rg_free(key.text);
	rg_free(value.text);
	return ok;
}

/* The least and the greatest value that int32_data may hold for a type. */
static void int32_range(enum rg_dtype t, int64_t *lo, int64_t *hi)
{
	switch (t) {
	case RG_BOOL: *lo = 0; *hi = 1; return;
	case RG_I8: *lo = INT8_MIN; *hi = INT8_MAX; return;
	case RG_U8: *lo = 0; *hi = UINT8_MAX; return;
	case RG_I16: *lo = INT16_MIN; *hi = INT16_MAX; return;
	case RG_U16: *lo = 0; *hi = UINT16_MAX; return;
	/* Bit patterns, which some writers extend with their top bit. */
	case RG_F16: case RG_BF16: *lo = INT16_MIN; *hi = UINT16_MAX; return;
	case RG_I32: *lo = INT32_MIN; *hi = INT32_MAX; return;
	default: *lo = INT8_MIN; *hi = UINT8_MAX; return; /* one byte of 8-bit or packed elements */
	}
}

static bool fill_varint(struct scan *s, uint64_t raw)
{
	int64_t v = (int64_t)raw, lo, hi;

	switch (s->dtype) {
	case RG_I64: case RG_U64:
		memcpy(s->dst + s->at * 8, &raw, 8);
		break;
	case RG_U32:
		if (raw > UINT32_MAX)
			goto range;
		memcpy(s->dst + s->at * 4, &raw, 4);
		break;
	default: {
		size_t width = rg_dtype_bytes(s->dtype);

		int32_range(s->dtype, &lo, &hi);
		if (v < lo || v > hi)
			goto range;
		if (width == 0)
			width = 1;
		memcpy(s->dst + s->at * width, &v, width);
	}
	}
	s->at++;
	return true;
range:
	rg_error_set(s->r->err, -ERANGE, "%s holds %" PRId64 ", which %s cannot", payload_name[s->from], v,
		     rg_dtype_name(s->dtype));
	return false;
}

/* A string: its characters go behind the pointers, in the same block. */
static bool fill_string(struct scan *s, pb_istream_t *stream)
{
	size_t n = stream->bytes_left;

	if (s->at >= s->end || n >= (size_t)(s->text_end - s->text))
		return wrong_wire_type(s, payload_name[P_STRING]);
	((const char **)s->dst)[s->at++] = s->text;
	if (!pb_read(stream, (pb_byte_t *)s->text, n))
		return false;
	s->text[n] = '\0';
	if (strlen(s->text) != n) {
		rg_error_set(s->r->err, RG_ENOTSUP_MODEL, "a string holds a NUL byte");
		return false;
	}
	s->text += n + 1;
	return true;
}

/* Second pass: only the field that holds the data writes, the others are passed over. */
static bool fill_cb(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
	struct scan *s = *arg;
	size_t width = s->from == P_FLOAT ? 4 : s->from == P_DOUBLE ? 8 : 0;
	uint64_t v;

	if (payload_of_tag(field->tag) != s->from)
		return onnx_stream_skip(stream);
	if (s->from == P_STRING)
		return fill_string(s, stream);
	if (width) {
		size_t n = stream->bytes_left / width;

		if (n > s->end - s->at)
			return wrong_wire_type(s, payload_name[s->from]);
		if (!pb_read(stream, s->dst + s->at * width, n * width))
			return false;
		s->at += n;
		return true;
	}
	while (stream->bytes_left) {
		if (!pb_decode_varint(stream, &v))
			return false;
		if (s->at >= s->end)
			return wrong_wire_type(s, payload_name[s->from]);
		if (!fill_varint(s, v))
			return false;
	}
	return true;
}

static bool decode(struct scan *s, pb_istream_t *stream, onnx_TensorProto *m, bool fill)
{
	bool (*data)(pb_istream_t *, const pb_field_t *, void **) = fill ? fill_cb : count_cb;

	onnx_set_cb(&m->dims, fill ? onnx_skip_cb : dims_cb, s);
	onnx_set_cb(&m->name, fill ? onnx_skip_cb : onnx_text_cb, &s->name);
	onnx_set_cb(&m->external_data, fill ? onnx_skip_cb : external_cb, s);
	onnx_set_cb(&m->float_data, data, s);
	onnx_set_cb(&m->int32_data, data, s);
	onnx_set_cb(&m->string_data, data, s);
	onnx_set_cb(&m->int64_data, data, s);
	onnx_set_cb(&m->raw_data, data, s);
	onnx_set_cb(&m->double_data, data, s);
	onnx_set_cb(&m->uint64_data, data, s);
	return pb_decode(stream, onnx_TensorProto_fields, m);
}

/* The field other than raw_data in which a type's elements stand. */
static enum payload typed_payload(enum rg_dtype t)
{
	switch (t) {
	case RG_F32: case RG_C64: return P_FLOAT;
	case RG_F64: case RG_C128: return P_DOUBLE;
	case RG_I64: return P_INT64;
	case RG_U32: case RG_U64: return P_UINT64;
	case RG_STRING: return P_STRING;
	default: return P_INT32;
	}
}

/* How many entries of its field a tensor takes. */
static uint64_t entries(enum payload p, enum rg_dtype t, uint64_t count, uint64_t bytes)
{
	if (p == P_RAW || rg_dtype_bytes(t) == 0)
		return bytes; /* 4-bit and 2-bit elements: an entry is a byte of them */
	return t == RG_C64 || t == RG_C128 ? 2 * count : count;
}

static int check_type_and_shape(struct scan *s, const onnx_TensorProto *m, struct rg_tensor *t,
				int64_t *bytes)
{
	struct rg_error *err = s->r->err;
	char text[160];

	if (!m->has_data_type || m->data_type == RG_UNDEFINED)
		return rg_error_set(err, -EINVAL, "data_type is missing");
	if (m->data_type < 0 || m->data_type >= RG_DTYPE_COUNT)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "element type %d is not known", m->data_type);
	t->dtype = (enum rg_dtype)m->data_type;
	if (m->has_segment)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "tensors in segments are not supported");
	if (s->rank > RG_MAX_RANK)
		return rg_error_set(err, RG_ENOTSUP_MODEL, "rank %d is more than %d", s->rank, RG_MAX_RANK);
	for (int i = 0; i < s->rank; i++)
		if (s->dim[i] < 0)
			return rg_error_set(err, -EINVAL, "dims[%d] is %" PRId64, i, s->dim[i]);
	t->shape = rg_shape_of(s->rank, s->dim);
	*bytes = rg_tensor_bytes(t->dtype, &t->shape);
	if (*bytes < 0)
		return rg_error_set(err, -EOVERFLOW, "dims %s are more than can be counted",
				    rg_shape_text(text, &t->shape));
	if (*bytes > s->r->max_tensor_bytes)
		return rg_error_set(err, -EFBIG,
				    "dims %s ask for %" PRId64 " bytes, more than the limit of %" PRId64,
				    rg_shape_text(text, &t->shape), *bytes, s->r->max_tensor_bytes);
	return 0;
}

/* Decides which field holds the data, and that it holds exactly as much as the
 * shape asks for. */
static int check_data(struct scan *s, const onnx_TensorProto *m, const struct rg_tensor *t, int64_t bytes)
{
	struct rg_error *err = s->r->err;
	uint64_t count = (uint64_t)rg_shape_count(&t->shape), want;
	bool external = m->has_data_location && m->data_location == onnx_TensorProto_DataLocation_EXTERNAL;
	enum payload from = P_NONE;
	char text[160];

	if (external && !s->location)
		return rg_error_set(err, -EINVAL, "external data has no location");
	if (!external)
		s->n[P_EXTERNAL] = 0;
	for (int p = 0; p < P_COUNT; p++) {
		if (s->n[p] == 0)
			continue;
		if (from != P_NONE)
			return rg_error_set(err, -EINVAL, "data stands in both %s and %s", payload_name[from],
					    payload_name[p]);
		from = (enum payload)p;
	}
	s->from = from;
	if (from == P_EXTERNAL && t->dtype == RG_STRING)
		return rg_error_set(err, -EINVAL, "strings cannot be external data");
	if (from == P_EXTERNAL)
		return onnx_external_check(s->r, s->location, s->offset, s->length, (uint64_t)bytes);
	if (from == P_NONE) {
		if (bytes == 0)
			return 0;
		rg_error_set(err, -EINVAL, "there is no data for shape %s", rg_shape_text(text, &t->shape));
		return rg_error_hint(err, "the file is damaged, or its weights were stripped");
	}
	if ((from != P_RAW || t->dtype == RG_STRING) && from != typed_payload(t->dtype))
		return rg_error_set(err, -EINVAL, "elements of type %s cannot stand in %s",
				    rg_dtype_name(t->dtype), payload_name[from]);
	want = entries(from, t->dtype, count, (uint64_t)bytes);
	if (s->n[from] != want)
		return rg_error_set(err, -EINVAL,
				    "%s holds %" PRIu64 " %s, but %s of shape %s needs %" PRIu64,
				    payload_name[from], s->n[from], from == P_RAW ? "bytes" : "entries",
				    rg_dtype_name(t->dtype), rg_shape_text(text, &t->shape), want);
	return 0;
}

static int read_data(struct scan *s, struct rg_tensor *t, uint64_t start, uint64_t len, uint64_t bytes)
{
	onnx_TensorProto m = onnx_TensorProto_init_zero;
	uint64_t pos = s->r->src.pos;
	uint8_t *dst;
	int rc = 0;

	if (bytes == 0)
		return 0;
	dst = rg_alloc_aligned(64, bytes + s->text_bytes);
	if (!dst)
		return rg_error_nomem(s->r->err, bytes + s->text_bytes);
	s->text = (char *)dst + bytes;
	s->text_end = s->text + s->text_bytes;
	if (s->from == P_RAW) {
		rc = onnx_source_read(s->r, s->raw_at, dst, bytes);
	} else if (s->from == P_EXTERNAL) {
		rc = onnx_external_read(s->r, s->offset, dst, bytes);
	} else {
		pb_istream_t again = onnx_stream(s->r, start, len);

		s->dtype = t->dtype;
		s->dst = dst;
		s->end = s->n[s->from];
		if (!decode(s, &again, &m, true))
			rc = onnx_decode_failed(s->r, &again, "tensor data");
		else if (s->at != s->end)
			rc = rg_error_set(s->r->err, -EIO, "the file changed while it was read");
	}
	s->r->src.pos = pos;
	if (rc) {
		rg_free(dst);
		return rc;
	}
	if (t->dtype == RG_BOOL)
		for (uint64_t i = 0; i < bytes; i++)
			dst[i] = dst[i] != 0;
	t->data = dst;
	return 0;
}

int onnx_read_tensor(struct onnx_reader *r, pb_istream_t *stream, struct onnx_tensor *out)
{
	struct scan s = { .r = r, .name = { r, "tensor name", NULL }, .length = -1, .from = P_NONE };
	onnx_TensorProto m = onnx_TensorProto_init_zero;
	uint64_t start = r->src.pos, len = stream->bytes_left;
	int64_t bytes = 0;
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (!onnx_stream_is_file(stream))
		return rg_error_set(r->err, -EBADMSG, "damaged: a tensor has the wrong wire type");
	if (!decode(&s, stream, &m, false))
		rc = onnx_decode_failed(r, stream, "a tensor");
	if (!rc)
		rc = check_type_and_shape(&s, &m, &out->t, &bytes);
	if (!rc)
		rc = check_data(&s, &m, &out->t, bytes);
	if (!rc)
		rc = read_data(&s, &out->t, start, len, (uint64_t)bytes);
	rg_free(s.location);
	out->name = s.name.text; /* also on failure, so that the error can name it */
	return rc;
}
