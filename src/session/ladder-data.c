/* See ladder-data.h. */
#include "session/ladder-data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kernels/ladder/ladder.h"
#include "session/bench-text.h"

static const char *const weights_names[] = { "normal", "adversarial" };

int rg_ladder_weights_parse(const char *word, enum rg_ladder_weights *out, struct rg_error *err)
{
	for (int i = 0; i < 2; i++) {
		if (strcmp(word, weights_names[i]) == 0) {
			*out = (enum rg_ladder_weights)i;
			return 0;
		}
	}
	rg_error_set(err, RG_EUSAGE, "there are no weights '%s'", word);
	return rg_error_hint(err, "normal or adversarial");
}

const char *rg_ladder_weights_name(enum rg_ladder_weights w)
{
	return weights_names[w];
}

/* Box and Muller, Annals of Mathematical Statistics 29, 1958: one of the two. */
static float normal(uint64_t stream, uint64_t i)
{
	double u = 1 - (double)rg_rng_unit(stream, 2 * i), v = (double)rg_rng_unit(stream, 2 * i + 1);

	return (float)(sqrt(-2 * log(u)) * cos(2 * M_PI * v));
}

int rg_ladder_weights_fill(enum rg_ladder_weights w, uint64_t seed, int64_t k, int64_t n, int8_t *b,
			   struct rg_error *err)
{
	uint64_t stream = rg_rng_stream(seed, "int8 b");
	float *column;

	if (w == RG_LADDER_ADVERSARIAL) {
		for (int64_t i = 0; i < k * n; i++) {
			uint64_t v = rg_rng_u64(stream, (uint64_t)i);

			b[i] = (int8_t)(v >> 8 & 3 ? (int)(v & 255) - 128 : v & 1 ? -128 : 127);
		}
		return 0;
	}
	column = rg_alloc((size_t)k * sizeof(*column));
	if (!column)
		return rg_error_nomem(err, (size_t)k * sizeof(*column));
	for (int64_t j = 0; j < n; j++) {
		float most = 0;

		for (int64_t l = 0; l < k; l++) {
			column[l] = normal(stream, (uint64_t)(l * n + j));
			most = fmaxf(most, fabsf(column[l]));
		}
		for (int64_t l = 0; l < k; l++)
			b[l * n + j] = (int8_t)lrintf(most > 0 ? column[l] / most * 127 : 0);
	}
	rg_free(column);
	return 0;
}

double rg_ladder_weights_share(const int8_t *b, int64_t k, int64_t n, int of)
{
	int64_t good = 0, all = 0;

	for (int64_t l = 0; l < k; l += of) {
		for (int64_t j = 0; j < n; j++) {
			int above = 0, below = 0;

			for (int64_t i = l; i < l + of && i < k; i++) {
				int v = b[i * n + j];

				above += v > 0 ? v : 0;
				below -= v < 0 ? v : 0;
			}
			good += above <= 128 && below <= 128;
			all++;
		}
	}
	return all ? (double)good / (double)all : NAN;
}

enum rg_roof_weights rg_ladder_weights_form(double pairs_share, double quads_share)
{
	if (quads_share >= 0.9)
		return RG_ROOF_QUADS;
	return pairs_share >= 0.9 ? RG_ROOF_PAIRS : RG_ROOF_ANY;
}

int rg_ladder_shape_parse(const char *text, struct rg_ladder_shape *out, struct rg_error *err)
{
	struct rg_bench_gemm g;
	int rc = rg_bench_gemm_parse(text, &g, err);

	if (rc)
		return rc;
	if (g.trans_a || g.trans_b || g.bias || g.batch || g.b_const >= 0) {
		rg_error_set(err, RG_EUSAGE, "the ladder multiplies plain matrices, B constant where a kernel cares");
		rg_error_hint(err, "give the three sizes alone: 128x768x3072 (MxKxN)");
		return rg_error_at(err, "%s", text);
	}
	if (g.k > INT32_MAX / (255 * 128)) {
		rg_error_set(err, RG_EUSAGE, "sums of %lld products of bytes need more than the 32 bits that they get",
			     (long long)g.k);
		rg_error_hint(err, "take a K of at most %d", INT32_MAX / (255 * 128));
		return rg_error_at(err, "%s", text);
	}
	*out = (struct rg_ladder_shape){ g.m, g.k, g.n };
	return 0;
}

/* ---- the int8 graph ---- */

static int declare(struct rg_graph *g, const char *name, enum rg_dtype type, int rank, const int64_t *shape,
		   struct rg_error *err)
{
	struct rg_dim dims[2] = { { 0 } };
	int value = rg_graph_value(g, name, err), rc;

	if (value < 0)
		return value;
	for (int i = 0; i < rank; i++)
		dims[i].value = shape[i];
	rc = rg_graph_declare(g, value, type, shape ? rank : -1, shape ? dims : NULL, err);
	return rc ? rc : value;
}

static int int8_graph(struct rg_ladder_data *d, enum rg_ladder_weights w, uint64_t seed, struct rg_error *err)
{
	const int64_t a[] = { d->shape.m, d->shape.k }, b[] = { d->shape.k, d->shape.n };
	struct rg_shape bs = rg_shape_of(2, b);
	struct rg_graph *g = rg_graph_new(NULL);
	int8_t *data;
	int in[2], y = 0, rc;

	d->int8.graph = g;
	if (!g)
		return rg_error_nomem(err, sizeof(*g));
	data = rg_alloc_aligned(64, (size_t)(b[0] * b[1]));
	if (!data)
		return rg_error_nomem(err, (size_t)(b[0] * b[1]));
	rc = rg_ladder_weights_fill(w, seed, b[0], b[1], data, err);
	if (!rc)
		rc = rg_graph_set_opset(g, "", 17, err);
	in[0] = rc ? rc : declare(g, "a", RG_U8, 2, a, err);
	in[1] = in[0] < 0 ? in[0] : rg_graph_value(g, "b", err);
	if (in[1] < 0) {
		rg_free(data);
		return in[1];
	}
	d->b8 = data;
	rc = rg_graph_add_const(g, in[1], RG_CONST_INITIALIZER, RG_I8, &bs, data, err); /* takes it in any case */
	if (!rc)
		rc = rg_graph_add_input(g, in[0], err);
	if (!rc)
		y = declare(g, "y", RG_I32, -1, NULL, err);
	if (!rc && y >= 0)
		rc = rg_graph_add_output(g, y, err);
	if (rc || y < 0)
		return rc ? rc : y;
	rc = rg_graph_add_node(g, "", "MatMulInteger", "node", 2, in, 1, &y, 0, NULL, err);
	if (rc >= 0)
		rc = rg_graph_finish(g, err);
	return rc < 0 ? rc : rg_graph_bind(g, NULL, err);
}

/* ---- all of it ---- */

static int allocate(struct rg_ladder_data *d, bool oracle, struct rg_error *err)
{
	size_t a = (size_t)(d->shape.m * d->shape.k), c = (size_t)(d->shape.m * d->shape.n);

	d->a = rg_alloc_aligned(64, a * sizeof(*d->a));
	d->a8 = rg_alloc_aligned(64, a);
	if (oracle) {
		d->want = rg_alloc_aligned(64, c * sizeof(*d->want));
		d->want8 = rg_alloc_aligned(64, c * sizeof(*d->want8));
	}
	if (!d->a || !d->a8 || (oracle && (!d->want || !d->want8)))
		return rg_error_nomem(err, a * 5 + c * 16);
	return 0;
}

int rg_ladder_data_new(const struct rg_ladder_shape *s, enum rg_ladder_weights w, uint64_t seed, bool oracle,
		       struct rg_ladder_data *d, struct rg_error *err)
{
	uint64_t stream = rg_rng_stream(seed, "int8 a");
	char text[96];
	int rc;

	memset(d, 0, sizeof(*d));
	d->shape = *s;
	d->pairs_share = d->quads_share = NAN;
	snprintf(text, sizeof(text), "%lldx%lldx%lld,b=const", (long long)s->m, (long long)s->k, (long long)s->n);
	rc = rg_bench_add(&d->set, RG_BENCH_GEMM, text, err);
	if (!rc) {
		const struct rg_graph *g = d->set.v[0].graph;

		d->b = g->values[rg_graph_find_value(g, "b")].data;
		d->int8.name = d->set.v[0].name; /* borrowed */
		rc = int8_graph(d, w, seed, err);
	}
	if (!rc)
		rc = allocate(d, oracle, err);
	if (rc) {
		rg_ladder_data_free(d);
		return rc;
	}
	rg_rng_fill_f32(rg_rng_stream(seed, "a"), -1, 1, d->a, (size_t)(s->m * s->k));
	for (int64_t i = 0; i < s->m * s->k; i++)
		d->a8[i] = (uint8_t)(rg_rng_u64(stream, (uint64_t)i) >> 32);
	d->pairs_share = rg_ladder_weights_share(d->b8, s->k, s->n, 2);
	d->quads_share = rg_ladder_weights_share(d->b8, s->k, s->n, 4);
	if (oracle) {
		rg_ladder_oracle_f32(s->m, s->k, s->n, d->a, d->b, d->want);
		rg_ladder_oracle_int8(s->m, s->k, s->n, d->a8, d->b8, d->want8);
	}
	return 0;
}

void rg_ladder_data_free(struct rg_ladder_data *d)
{
	rg_bench_set_free(&d->set);
	rg_graph_free(d->int8.graph);
	rg_free(d->a);
	rg_free(d->a8);
	rg_free(d->want);
	rg_free(d->want8);
	memset(d, 0, sizeof(*d));
}

struct rg_ladder_errors rg_ladder_errors_of(const struct rg_ladder_data *d, bool int8, const void *c)
{
	struct rg_ladder_errors e = { 0, 0, int8 ? 0 : -1 };
	const float *f = c;
	const int32_t *q = c;
	double largest = 0;

	for (int64_t i = 0; i < d->shape.m * d->shape.n; i++) {
		double want = int8 ? (double)d->want8[i] : d->want[i];
		double off = int8 ? fabs((double)q[i] - want) : fabs((double)f[i] - want);

		if (!(off <= e.max)) /* a NaN is the largest of all errors */
			e.max = isnan(off) ? INFINITY : off;
		largest = fmax(largest, fabs(want));
		e.wrong += int8 && q[i] != d->want8[i];
	}
	e.relative = largest > 0 ? e.max / largest : e.max > 0 ? INFINITY : 0;
	return e;
}
