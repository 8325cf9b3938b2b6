/* Families and the numbers that their cases are made of. See check.h. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"

static const struct ck_family_table *const tables[] = {
	&ck_families_attention,
	&ck_families_bytes,
	&ck_families_cast,
	&ck_families_chain,
	&ck_families_copy,
	&ck_families_fused,
	&ck_families_math,
	&ck_families_move,
	&ck_families_nn,
	&ck_families_norm,
	&ck_families_pair,
	&ck_families_quant,
	&ck_families_reduce,
	&ck_families_rnn,
};
#define N_TABLES ((int)(sizeof(tables) / sizeof(tables[0])))

static const struct ck_looser looser[] = {
	{ "Conv", "winograd", 16, "transformed inputs and outputs are sums of differences: the error is that of "
				  "whole tiles, not of one output's taps", true },
	{ "FusedConv", "winograd", 16, "transformed inputs and outputs are sums of differences: the error is that of "
				  "whole tiles, not of one output's taps", true },
};

const struct ck_family *ck_family_at(int i)
{
	for (int t = 0; t < N_TABLES; t++) {
		if (i < tables[t]->count)
			return &tables[t]->families[i];
		i -= tables[t]->count;
	}
	return NULL;
}

static const char *domain_of(const char *domain)
{
	return domain ? domain : "";
}

const struct ck_family *ck_family_find(const char *domain, const char *op_type)
{
	const struct ck_family *f;

	for (int i = 0; (f = ck_family_at(i)); i++)
		if (!strcmp(f->op_type, op_type) && !strcmp(domain_of(f->domain), domain_of(domain)))
			return f;
	return NULL;
}

const struct ck_looser *ck_looser_find(const struct rg_kernel *k)
{
	for (size_t i = 0; i < sizeof(looser) / sizeof(looser[0]); i++)
		if (!strcmp(looser[i].op_type, k->op_type) &&
		    !strncmp(looser[i].kernel, k->name, strlen(looser[i].kernel)))
			return &looser[i];
	return NULL;
}

bool ck_is_reference(const struct rg_kernel *k)
{
	return !strcmp(k->name, "ref") || !strcmp(k->name, "text");
}

int64_t ck_between(struct ck_gen *g, int64_t lo, int64_t hi)
{
	return rg_rng_integer(g->stream, g->at++, lo, hi);
}

bool ck_chance(struct ck_gen *g, int percent)
{
	return ck_between(g, 0, 99) < percent;
}

int64_t ck_some(struct ck_gen *g, int64_t most)
{
	static const int steps[] = { 4, 8, 16, 16, 32, 48 };
	int64_t v;

	if (ck_chance(g, 10))
		return 1;
	if (ck_chance(g, 30))
		return ck_between(g, 1, most);
	v = CK_PICK(g, steps);
	v = v * ck_between(g, 1, most / v > 1 ? most / v : 1) + ck_between(g, -1, 1);
	return v > most ? ck_between(g, 1, most) : v;
}

int64_t ck_size(struct ck_gen *g, int64_t most)
{
	return ck_chance(g, 3) ? 0 : ck_some(g, most);
}

int64_t ck_length(struct ck_gen *g)
{
	static const short lengths[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63,
					 64, 65, 95, 96, 97, 127, 128, 129, 255, 256, 257, 1000, 4095, 4097, 8193 };

	return lengths[g->seed % (sizeof(lengths) / sizeof(lengths[0]))];
}

enum nn_fill ck_fill(struct ck_gen *g)
{
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_UNIFORM, NN_UNIFORM, NN_WHOLE, NN_WHOLE, NN_BIG, NN_TINY,
					      NN_DENORMAL, NN_HUGE, NN_NAN, NN_INF };

	return CK_PICK(g, fills);
}

enum nn_fill ck_fill_elements(struct ck_gen *g)
{
	static const enum nn_fill fills[] = { NN_UNIFORM, NN_WIDE, NN_SPECIAL, NN_SPECIAL, NN_BIG, NN_TINY, NN_DENORMAL,
					      NN_WHOLE };

	return CK_PICK(g, fills);
}

bool ck_make(const struct ck_family *f, uint64_t seed, struct nn_case *t, struct rg_error *err)
{
	struct ck_gen g = { .seed = seed, .stream = rg_rng_stream(seed, f->op_type) };
	char name[64];
	const struct rg_op *op = rg_op_find(domain_of(f->domain), f->op_type);

	nn_start_in(t, domain_of(f->domain), f->op_type, op ? op->supported_to : 0);
	t->salt = seed << 8;
	t->side = seed & 1 ? GUARD_BEHIND : GUARD_BEFORE;
	f->make(t, &g);
	snprintf(name, sizeof(name), " (version %d)", t->node.version);
	strncat(t->what, name, sizeof(t->what) - strlen(t->what) - 1);
	return nn_infer(t, t->n_out ? t->n_out : 1, err) == 0;
}
