/*
 * Changes a case so that most likely it means nothing any more: a dimension, a
 * rank, an element type, an input that is missing, an attribute. Whatever comes of
 * it, planning and running it must end in outputs or in an error.
 */
#include "tests/contrib/mutate.h"

#include "base/rng.h"

struct chance {
	uint64_t stream, drawn;
};

/* An integer in [0, n), 0 for n = 0. */
static size_t pick(struct chance *c, size_t n)
{
	return n ? (size_t)(rg_rng_u64(c->stream, c->drawn++) % n) : 0;
}

/* Values that go with any shape. */
static void set_uniform(struct chance *c, json_t *tensor)
{
	static const double ranges[][2] = { { -1, 1 }, { 0, 3 }, { -3, 12 }, { -2147483648.0, 2147483647.0 } };
	const double *r = ranges[pick(c, 4)];

	json_object_del(tensor, "values");
	json_object_set_new(tensor, "uniform", json_pack("[f, f]", r[0], r[1]));
}

static void mutate_shape(struct chance *c, json_t *tensor)
{
	static const int sizes[] = { 0, 1, 2, 3, 5, 7, 8, 17, 32 };
	json_t *shape = json_object_get(tensor, "shape");
	size_t rank = json_array_size(shape), at = pick(c, rank);
	json_t *size = json_integer(sizes[pick(c, 9)]);

	if (rank > 0 && pick(c, 4)) {
		json_array_set_new(shape, at, size);
	} else if (rank > 0 && pick(c, 2)) {
		json_array_remove(shape, at);
		json_decref(size);
	} else {
		json_array_insert_new(shape, at, size);
	}
	set_uniform(c, tensor);
}

static void mutate_input(struct chance *c, json_t *inputs)
{
	static const char *const types[] = { "float32", "float16", "float64", "int32", "int64", "bool", "uint8", "int8" };
	size_t at = pick(c, json_array_size(inputs));
	json_t *tensor = json_array_get(inputs, at);

	if (!json_is_object(tensor)) { /* an absent one comes */
		json_array_set_new(inputs, at, json_pack("{s:s, s:[i, i], s:[f, f]}", "dtype", types[pick(c, 8)], "shape",
							 2, 3, "uniform", 0.0, 3.0));
		return;
	}
	switch (pick(c, 6)) {
	case 0:
		json_array_set_new(inputs, at, json_null());
		break;
	case 1:
		json_object_set_new(tensor, "dtype", json_string(types[pick(c, 8)]));
		set_uniform(c, tensor);
		break;
	case 2:
		set_uniform(c, tensor);
		break;
	case 3:
		json_array_remove(inputs, json_array_size(inputs) - 1);
		break;
	default:
		mutate_shape(c, tensor);
		break;
	}
}

static void mutate_attr(struct chance *c, json_t *attrs)
{
	static const int64_t ints[] = { -1, 0, 1, 2, 3, 4, 8, 255, 2147483647, INT64_MIN, INT64_MAX };
	size_t n = json_object_size(attrs), at = pick(c, n);
	void *it = json_object_iter(attrs);

	if (n == 0)
		return;
	while (at--)
		it = json_object_iter_next(attrs, it);
	if (pick(c, 4) == 0)
		json_object_del(attrs, json_object_iter_key(it));
	else if (json_is_real(json_object_iter_value(it)))
		json_object_iter_set_new(attrs, it, json_real((double)ints[pick(c, 11)]));
	else
		json_object_iter_set_new(attrs, it, json_integer(ints[pick(c, 11)]));
}

json_t *mutate_case(const json_t *from, uint64_t seed)
{
	struct chance c = { .stream = rg_rng_stream(seed, json_string_value(json_object_get(from, "name"))) };
	json_t *to = json_deep_copy(from);

	json_object_del(to, "refused");
	json_object_del(to, "fails");
	json_object_set_new(to, "any", json_true());
	for (size_t n = 1 + pick(&c, 3); n > 0; n--) {
		if (pick(&c, 4))
			mutate_input(&c, json_object_get(to, "inputs"));
		else
			mutate_attr(&c, json_object_get(to, "attrs"));
	}
	return to;
}
