/* Reads SequenceProto and OptionalProto by hand, since their messages lie in a
 * file of their own that Debian's package does not install. */
#include "tests/conformance/holder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/onnx.h"
#include "tests/conformance/compare.h"

/* Fields of both messages. */
enum { ELEM_TYPE = 2, TENSOR = 3, SEQUENCE = 5 };
/* Values of OptionalProto.elem_type. */
enum { HOLDS_NOTHING = 0, HOLDS_TENSOR = 1, HOLDS_SEQUENCE = 3 };

struct bytes {
	const unsigned char *p, *end;
};

static bool varint(struct bytes *b, unsigned long *v)
{
	*v = 0;
	for (int shift = 0; b->p < b->end && shift < 64; shift += 7) {
		unsigned char c = *b->p++;

		*v |= (unsigned long)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return true;
	}
	return false;
}

/* The next field: its number, and a varint or the bytes of a message. */
static bool next_field(struct bytes *b, unsigned *number, unsigned long *v, struct bytes *message)
{
	unsigned long tag;

	if (b->p >= b->end || !varint(b, &tag) || !varint(b, v))
		return false;
	*number = (unsigned)(tag >> 3);
	*message = (struct bytes){ b->p, b->p };
	if ((tag & 7) == 0)
		return true;
	if ((tag & 7) != 2 || *v > (size_t)(b->end - b->p))
		return false;
	message->end = b->p += *v;
	return true;
}

static struct rg_item *read_tensor(struct bytes b, struct rg_error *err)
{
	struct rg_tensor t;
	struct rg_item *item;

	if (rg_onnx_load_tensor_memory(b.p, (size_t)(b.end - b.p), &t, err))
		return NULL;
	item = rg_item_borrow(&t, false, err);
	if (item)
		item->memory = t.data; /* the item's from now on */
	return item;
}

static struct rg_item *read_sequence(struct bytes b, struct rg_error *err)
{
	struct rg_item *list[64] = { 0 }, *item;
	struct bytes message;
	unsigned number;
	unsigned long v;
	int n = 0;

	while (!err->code && next_field(&b, &number, &v, &message)) {
		if (number != TENSOR)
			continue;
		item = n < 64 ? read_tensor(message, err) : NULL;
		if (item)
			list[n++] = item;
		else if (!err->code)
			rg_error_set(err, -E2BIG, "more than 64 elements");
	}
	if (!err->code && b.p != b.end)
		rg_error_set(err, -EBADMSG, "a damaged sequence");
	if (err->code) {
		for (int i = 0; i < n; i++)
			rg_item_unref(list[i]);
		return NULL;
	}
	return rg_item_sequence(n ? list[0]->t.dtype : RG_UNDEFINED, n, list, err);
}

static struct rg_item *read_optional(struct bytes b, struct rg_error *err)
{
	struct bytes message, tensor = { 0 }, sequence = { 0 };
	unsigned long v, holds = HOLDS_NOTHING;
	unsigned number;

	while (next_field(&b, &number, &v, &message)) {
		if (number == ELEM_TYPE)
			holds = v;
		else if (number == TENSOR)
			tensor = message;
		else if (number == SEQUENCE)
			sequence = message;
	}
	if (tensor.p)
		return read_tensor(tensor, err);
	if (sequence.p)
		return read_sequence(sequence, err);
	if (holds != HOLDS_NOTHING && holds != HOLDS_TENSOR && holds != HOLDS_SEQUENCE) {
		rg_error_set(err, RG_ENOTSUP_MODEL, "an optional that holds %lu", holds);
		return NULL;
	}
	return rg_item_none(err);
}

struct rg_item *holder_load(const char *path, enum rg_value_kind kind, struct rg_error *err)
{
	FILE *f = fopen(path, "rb");
	unsigned char *p = malloc(1 << 20);
	struct rg_item *item = NULL;
	size_t n;

	if (!f || !p) {
		rg_error_set(err, -EIO, "%s cannot be read", path);
	} else {
		n = fread(p, 1, 1 << 20, f);
		if (n == 1 << 20)
			rg_error_set(err, -E2BIG, "%s is large", path);
		else if (kind == RG_VALUE_SEQUENCE)
			item = read_sequence((struct bytes){ p, p + n }, err);
		else
			item = read_optional((struct bytes){ p, p + n }, err);
	}
	if (f)
		fclose(f);
	free(p);
	return item;
}

bool holders_agree(const struct rg_item *got, const struct rg_item *want, double rtol, double atol, char *why,
		   size_t why_size)
{
	if (!got || got->kind != want->kind || got->n != want->n) {
		snprintf(why, why_size, "kind %d with %d elements, expected %d with %d", got ? (int)got->kind : -1,
			 got ? got->n : 0, (int)want->kind, want->n);
		return false;
	}
	for (int i = 0; i < want->n; i++)
		if (!holders_agree(got->v[i], want->v[i], rtol, atol, why, why_size))
			return false;
	return want->kind != RG_ITEM_TENSOR || tensors_agree(&got->t, &want->t, rtol, atol, why, why_size);
}
