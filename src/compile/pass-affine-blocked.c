/*
 * For ONNX Runtime. It runs convolutions on channels in blocks of 8 or 16, and what lies between
 * them too where it knows how: activations, BatchNormalization, sums of two tensors. A product or
 * a sum with a constant it does not know, and lays the whole tensor out anew before
 * and behind. As a depthwise convolution of one element, x to f x + s by channel, it stays in
 * blocks: text detection was 1.2 times as fast by this alone (docs/compiler.md).
 *
 * ridge's own executor takes such constants into the step before them and does not run this pass.
 */
#include "base/alloc.h"
#include "compile/affine.h"
#include "compile/passes.h"
#include "compile/rewrite.h"

/* The blocks of ONNX Runtime with AVX-512; a depthwise convolution of another number is not blocked. */
enum { BLOCK = 16 };

/* Whether ONNX Runtime has this value in blocks: a convolution made it, or an activation of one. */
static bool is_blocked(const struct rg_match *m, int value)
{
	static const char *const acts[] = { "Relu", "HardSwish", "HardSigmoid", "Sigmoid",
					    "Tanh", "Clip", "LeakyRelu" };

	for (int steps = 0; steps < 4; steps++) {
		int at = m->g->values[value].producer;
		bool found = false;

		if (rg_match_is(m, at, "Conv"))
			return true;
		for (size_t k = 0; k < sizeof(acts) / sizeof(acts[0]) && !found; k++)
			found = rg_match_is(m, at, acts[k]);
		if (!found)
			return false;
		value = m->g->nodes[at].in[0];
	}
	return false;
}

static int make_constants(struct rg_match *m, const char *name, const struct rg_affine *a, int in[3],
			  struct rg_error *err)
{
	struct rg_shape shape = { .rank = 4, .dim = { a->channels, 1, 1, 1 } },
			list = { .rank = 1, .dim = { a->channels } };
	float *f = rg_alloc_aligned(64, (size_t)a->channels * sizeof(*f));
	float *s = rg_alloc_aligned(64, (size_t)a->channels * sizeof(*s));

	if (!f || !s) {
		rg_free(f);
		rg_free(s);
		return rg_error_nomem(err, (size_t)a->channels * sizeof(*f));
	}
	for (int64_t i = 0; i < a->channels; i++) {
		f[i] = (float)a->f[i];
		s[i] = (float)a->s[i];
	}
	in[1] = rg_rewrite_const(m->g, name, ":factors", RG_F32, &shape, f, err);
	if (in[1] < 0) {
		rg_free(s);
		return in[1];
	}
	in[2] = rg_rewrite_const(m->g, name, ":shifts", RG_F32, &list, s, err);
	return in[2] < 0 ? in[2] : 0;
}

static int rewrite(struct rg_match *m, const int *chain, int n, const struct rg_affine *a, int x,
		   struct rg_error *err)
{
	static const int64_t one[2] = { 1, 1 };
	struct rg_attr attrs[2] = {
		{ .name = "group", .type = RG_ATTR_INT, .i = a->channels },
		{ .name = "kernel_shape", .type = RG_ATTR_INTS, .count = 2, .ints = one },
	};
	const char *name = m->g->nodes[chain[0]].name;
	int in[3] = { x, -1, -1 }, rc = make_constants(m, name, a, in, err);

	if (!rc)
		rc = rg_rewrite_node(m, chain[0], "Conv", 1, 3, in, 2, attrs, err);
	if (rc < 0)
		return rc;
	for (int i = 0; i < n; i++) {
		m->gone[chain[i]] = 1;
		rc = rg_match_note(m, chain[i], chain[0], RG_DECLINE_NONE, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* What a convolution reads. */
static int look_at(struct rg_match *m, int value, struct rg_error *err)
{
	int chain[RG_AFFINE_CHAIN], x, n = rg_affine_chain(m, value, chain, &x), rc;
	const struct rg_value *v = &m->g->values[x];
	struct rg_affine a;

	/* BatchNormalization alone it knows */
	if (n == 0 || (n == 1 && rg_match_is(m, chain[0], "BatchNormalization")) || v->dtype != RG_F32 ||
	    v->shape.rank != 4 || v->shape.dim[1] <= 0 || v->shape.dim[1] % BLOCK || !is_blocked(m, x))
		return 0;
	rc = rg_affine_init(&a, v->shape.dim[1], false, err);
	if (rc)
		return rc;
	if (!rg_affine_gather(m, chain, n, &a, &x))
		rc = rewrite(m, chain, n, &a, x, err);
	rg_affine_free(&a);
	return rc;
}

static int run(struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	struct rg_match m;
	int rc = rg_match_begin(&m, g, rg_pass_affine_blocked.name, log, err);

	for (int i = 0; i < m.n_nodes && !rc; i++)
		if (rg_match_is(&m, i, "Conv"))
			rc = look_at(&m, g->nodes[i].in[0], err);
	return rg_match_end(&m, rc, err);
}

const struct rg_pass rg_pass_affine_blocked = {
	.name = "affine-blocked",
	.what = "constants by channel between convolutions as one, for ONNX Runtime's blocked layout",
	.level = 2,
	.run = run,
	.foreign = true,
};
