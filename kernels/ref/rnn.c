/*
 * RNN, GRU and LSTM, one sequence after the other, in double.
 * Equations: ONNX operator documents. Beyond a sequence's own length the
 * output Y is zero and the state stays.
 */
#include "kernels/kernel.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "graph/rnn.h"
#include "kernels/ref/ref.h"
#include "kernels/tables.h"

enum act_kind {
	ACT_RELU, ACT_TANH, ACT_SIGMOID, ACT_AFFINE, ACT_LEAKY_RELU, ACT_THRESHOLDED_RELU, ACT_SCALED_TANH,
	ACT_HARD_SIGMOID, ACT_ELU, ACT_SOFTSIGN, ACT_SOFTPLUS, ACT_COUNT
};

static const struct {
	const char *name;
	bool has_alpha, has_beta;
	double alpha, beta; /* defaults: those of the operators of that name */
} act_info[ACT_COUNT] = {
	[ACT_RELU] = { "Relu", false, false, 0, 0 },
	[ACT_TANH] = { "Tanh", false, false, 0, 0 },
	[ACT_SIGMOID] = { "Sigmoid", false, false, 0, 0 },
	[ACT_AFFINE] = { "Affine", true, true, 1, 0 },
	[ACT_LEAKY_RELU] = { "LeakyRelu", true, false, 0.01, 0 },
	[ACT_THRESHOLDED_RELU] = { "ThresholdedRelu", true, false, 1, 0 },
	[ACT_SCALED_TANH] = { "ScaledTanh", true, true, 1, 1 },
	[ACT_HARD_SIGMOID] = { "HardSigmoid", true, true, 0.2, 0.5 },
	[ACT_ELU] = { "Elu", true, false, 1, 0 },
	[ACT_SOFTSIGN] = { "Softsign", false, false, 0, 0 },
	[ACT_SOFTPLUS] = { "Softplus", false, false, 0, 0 },
};

struct act {
	enum act_kind kind;
	double alpha, beta;
};

static double act_apply(const struct act *a, double clip, double x)
{
	if (clip > 0)
		x = fmin(fmax(x, -clip), clip);
	switch (a->kind) {
	case ACT_RELU: return x > 0 ? x : 0;
	case ACT_TANH: return tanh(x);
	case ACT_SIGMOID: return 1 / (1 + exp(-x));
	case ACT_AFFINE: return a->alpha * x + a->beta;
	case ACT_LEAKY_RELU: return x >= 0 ? x : a->alpha * x;
	case ACT_THRESHOLDED_RELU: return x >= a->alpha ? x : 0;
	case ACT_SCALED_TANH: return a->alpha * tanh(a->beta * x);
	case ACT_HARD_SIGMOID: return fmin(fmax(a->alpha * x + a->beta, 0), 1);
	case ACT_ELU: return x >= 0 ? x : a->alpha * expm1(x);
	case ACT_SOFTSIGN: return x / (1 + fabs(x));
	case ACT_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
	default: return NAN;
	}
}

/* The functions of all directions, in order; alphas and betas go, in order, to
 * those that have one. */
static int read_acts(const struct rg_node *node, const struct rg_rnn *n, struct act acts[6], struct rg_error *err)
{
	static const enum act_kind lstm[] = { ACT_SIGMOID, ACT_TANH, ACT_TANH };
	static const enum act_kind rnn[] = { ACT_TANH };
	int per = n->gates == 4 ? 3 : n->gates == 3 ? 2 : 1, total = per * n->directions;
	const struct rg_attr *names = rg_node_attr(node, "activations");
	const float *alphas = NULL, *betas = NULL;
	int n_alphas = rg_node_floats(node, "activation_alpha", &alphas);
	int n_betas = rg_node_floats(node, "activation_beta", &betas);

	if (names && names->count > 0 && names->count != total)
		return rg_error_set(err, -EINVAL, "attribute activations has %d entries, %d are needed", names->count,
				    total);
	for (int i = 0; i < total; i++) {
		int k = n->gates == 1 ? (int)rnn[0] : (int)lstm[i % per];

		if (names && names->count > 0) {
			for (k = 0; k < ACT_COUNT; k++)
				if (!strcasecmp(act_info[k].name, names->strings[i]))
					break;
			if (k == ACT_COUNT)
				return rg_error_set(err, RG_ENOTSUP_MODEL, "unknown activation '%.40s'",
						    names->strings[i]);
		}
		acts[i] = (struct act){ (enum act_kind)k, act_info[k].alpha, act_info[k].beta };
		if (act_info[k].has_alpha && n_alphas > 0) {
			acts[i].alpha = (double)*alphas++;
			n_alphas--;
		}
		if (act_info[k].has_beta && n_betas > 0) {
			acts[i].beta = (double)*betas++;
			n_betas--;
		}
	}
	return 0;
}

/* Everything one sequence in one direction needs. */
struct seq {
	const struct rg_call *c;
	const struct rg_rnn *n;
	const struct act *act;
	double clip;
	bool couple, linear_before_reset;
	int dir;
	double *x, *h, *cell, *gate, *tmp; /* input; hidden; hidden; gates * hidden; hidden */
};

/* Row `row` of matrix t (directions x rows x n), direction dir, times v. */
static double row_dot(const struct rg_tensor *t, int dir, int64_t row, int64_t n, const double *v)
{
	int64_t at = (dir * t->shape.dim[1] + row) * n;
	double buf[RG_REF_CHUNK], sum = 0;

	for (int64_t i = 0; i < n; i += RG_REF_CHUNK) {
		int64_t m = n - i < RG_REF_CHUNK ? n - i : RG_REF_CHUNK;

		rg_ref_load(t, at + i, 1, m, buf);
		for (int64_t j = 0; j < m; j++)
			sum += buf[j] * v[i + j];
	}
	return sum;
}

static double optional(const struct rg_call *c, int input, int64_t at)
{
	return input < c->node->n_in && c->in[input].data ? rg_ref_get(&c->in[input], at) : 0;
}

/* Bias of gate row `row`: the input's (part 0) or the recurrence's (part 1). */
static double bias(const struct seq *s, int part, int64_t row)
{
	int64_t rows = s->n->gates * s->n->hidden;

	return optional(s->c, 3, (s->dir * 2 + part) * rows + row);
}

static double peephole(const struct seq *s, int which, int64_t j)
{
	return optional(s->c, 7, (s->dir * 3 + which) * s->n->hidden + j);
}

static double from_input(const struct seq *s, int64_t row)
{
	return row_dot(&s->c->in[1], s->dir, row, s->n->input, s->x) + bias(s, 0, row);
}

static double from_state(const struct seq *s, int64_t row, const double *state)
{
	return row_dot(&s->c->in[2], s->dir, row, s->n->hidden, state) + bias(s, 1, row);
}

static void step_rnn(struct seq *s)
{
	int64_t hidden = s->n->hidden;

	for (int64_t j = 0; j < hidden; j++)
		s->gate[j] = act_apply(&s->act[0], s->clip, from_input(s, j) + from_state(s, j, s->h));
	memcpy(s->h, s->gate, (size_t)hidden * sizeof(double));
}

static void step_gru(struct seq *s) /* gates: z, r, h */
{
	int64_t hidden = s->n->hidden, j;
	double *z = s->gate, *r = z + hidden, *h = r + hidden;

	for (j = 0; j < 2 * hidden; j++)
		s->gate[j] = act_apply(&s->act[0], s->clip, from_input(s, j) + from_state(s, j, s->h));
	for (j = 0; j < hidden; j++)
		s->tmp[j] = r[j] * s->h[j];
	for (j = 0; j < hidden; j++) {
		double v = from_input(s, 2 * hidden + j);

		if (s->linear_before_reset)
			v += r[j] * from_state(s, 2 * hidden + j, s->h);
		else
			v += from_state(s, 2 * hidden + j, s->tmp);
		h[j] = act_apply(&s->act[1], s->clip, v);
	}
	for (j = 0; j < hidden; j++)
		s->h[j] = (1 - z[j]) * h[j] + z[j] * s->h[j];
}

static void step_lstm(struct seq *s) /* gates: i, o, f, c */
{
	int64_t hidden = s->n->hidden, j;
	double *gi = s->gate, *go = gi + hidden, *gf = go + hidden, *gc = gf + hidden;

	for (j = 0; j < 4 * hidden; j++)
		s->gate[j] = from_input(s, j) + from_state(s, j, s->h);
	for (j = 0; j < hidden; j++) {
		double i = act_apply(&s->act[0], s->clip, gi[j] + peephole(s, 0, j) * s->cell[j]);
		double f = s->couple ? 1 - i :
				       act_apply(&s->act[0], s->clip, gf[j] + peephole(s, 2, j) * s->cell[j]);
		double cell = f * s->cell[j] + i * act_apply(&s->act[1], s->clip, gc[j]);
		double o = act_apply(&s->act[0], s->clip, go[j] + peephole(s, 1, j) * cell);

		s->cell[j] = cell;
		/* clip bounds what enters the activations of gates, not the cell's output */
		s->h[j] = o * act_apply(&s->act[2], 0, cell);
	}
}

static int64_t state_at(const struct rg_rnn *n, int dir, int64_t b)
{
	return (n->batch_first ? b * n->directions + dir : dir * n->batch + b) * n->hidden;
}

static void run_sequence(struct seq *s, int64_t b, int64_t len)
{
	const struct rg_call *c = s->c;
	const struct rg_rnn *n = s->n;
	bool backwards = n->reverse || s->dir == 1;
	int64_t hidden = n->hidden, at = state_at(n, s->dir, b);

	memset(s->h, 0, (size_t)hidden * sizeof(double));
	memset(s->cell, 0, (size_t)hidden * sizeof(double));
	if (c->node->n_in > 5 && c->in[5].data)
		rg_ref_load(&c->in[5], at, 1, hidden, s->h);
	if (n->gates == 4 && c->node->n_in > 6 && c->in[6].data)
		rg_ref_load(&c->in[6], at, 1, hidden, s->cell);
	for (int64_t i = 0; i < n->seq; i++) {
		int64_t t = backwards && i < len ? len - 1 - i : i;
		int64_t xt = n->batch_first ? b * n->seq + t : t * n->batch + b;
		int64_t yt = n->batch_first ? xt * n->directions + s->dir :
					      (t * n->directions + s->dir) * n->batch + b;

		if (i < len) {
			rg_ref_load(&c->in[0], xt * n->input, 1, n->input, s->x);
			if (n->gates == 1)
				step_rnn(s);
			else if (n->gates == 3)
				step_gru(s);
			else
				step_lstm(s);
		}
		if (c->node->n_out > 0 && c->out[0].data) {
			if (i == len) /* from here on nothing but padding */
				memset(s->gate, 0, (size_t)hidden * sizeof(double));
			rg_ref_store(&c->out[0], yt * hidden, 1, hidden, i < len ? s->h : s->gate);
		}
	}
	if (c->node->n_out > 1 && c->out[1].data)
		rg_ref_store(&c->out[1], at, 1, hidden, s->h);
	if (c->node->n_out > 2 && c->out[2].data)
		rg_ref_store(&c->out[2], at, 1, hidden, s->cell);
}

static size_t scratch_bytes(const struct rg_call *c, int lanes)
{
	size_t hidden = (size_t)c->in[2].shape.dim[2], rows = (size_t)c->in[2].shape.dim[1];

	return ((size_t)c->in[0].shape.dim[2] + rows + 3 * hidden) * sizeof(double);
}

static int run(const struct rg_call *c, const struct rg_par *par, struct rg_error *err)
{
	const int32_t *lens = c->node->n_in > 4 ? c->in[4].data : NULL;
	struct act acts[6];
	struct rg_rnn n;
	struct seq s;
	int rc = rg_rnn_resolve(c->node, &c->in[0].shape, &c->in[1].shape, &c->in[2].shape, &n, err);

	if (rc || (rc = read_acts(c->node, &n, acts, err)))
		return rc;
	memset(&s, 0, sizeof(s));
	s.c = c;
	s.n = &n;
	s.clip = (double)rg_node_float(c->node, "clip", 0);
	s.couple = rg_node_int(c->node, "input_forget", 0) != 0;
	s.linear_before_reset = rg_node_int(c->node, "linear_before_reset", 0) != 0;
	s.gate = c->scratch;
	s.h = s.gate + n.gates * n.hidden;
	s.cell = s.h + n.hidden;
	s.tmp = s.cell + n.hidden;
	s.x = s.tmp + n.hidden;
	for (int64_t b = 0; b < n.batch; b++) {
		int64_t len = lens ? lens[b] : n.seq;

		if (len < 0 || len > n.seq)
			return rg_error_set(err, -EINVAL, "sequence_lens[%lld] is %lld; X has %lld steps", (long long)b,
					    (long long)len, (long long)n.seq);
		for (s.dir = 0; s.dir < n.directions; s.dir++) {
			s.act = acts + s.dir * (n.gates == 4 ? 3 : n.gates == 3 ? 2 : 1);
			run_sequence(&s, b, len);
		}
	}
	return 0;
}

static bool supports(const struct rg_call *c)
{
	return rg_in_set(c->in[0].dtype, RG_SET_FLOAT);
}

#define K(OP) \
	{ .op_type = OP, .domain = "", .name = "ref", .supports = supports, .scratch_bytes = scratch_bytes, .run = run }
static const struct rg_kernel kernels[] = {
	K("GRU"),
	K("LSTM"),
	K("RNN"),
};
RG_KERNEL_TABLE(rg_kernels_ref_rnn, kernels);
