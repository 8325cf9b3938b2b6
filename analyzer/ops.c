/*
 * From the rows of a recording to latency, roofs and operators.
 */
#include "analyzer/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"

/* Below this, for time and roof both, a step is the price of starting it. */
#define OVERHEAD_NS 2000.0
#define IMBALANCE_MIN 1.5
#define CONFIDENCE 0.95
/* The bootstrap sorts every resample: beyond this the pairs are thinned evenly. */
#define MAX_PAIRS 2000

struct analysis {
	struct rg_analysis a; /* first: this is what callers see */
	struct rg_arena *arena;
};

static bool is_timing(const struct rg_iteration_row *i)
{
	return strcmp(i->pass, "timing") == 0;
}

static double duration(int64_t start_ns, int64_t end_ns)
{
	return (double)(end_ns - start_ns);
}

/* ---- latency and the tool's own overhead ---- */

static int analyze_latency(struct analysis *x, struct rg_error *err)
{
	const struct rg_recording *rec = x->a.rec;
	struct rg_analysis *a = &x->a;
	int n_timing = 0, n_off = 0, n = 0;
	double *v;

	for (int i = 0; i < rec->n_iterations; i++) {
		if (is_timing(&rec->iterations[i])) {
			n_timing++;
			n_off += !rec->iterations[i].hook_on;
		}
	}
	v = rg_arena_alloc(x->arena, (size_t)n_timing, sizeof(*v));
	if (!v)
		return rg_error_nomem(err, (size_t)n_timing * sizeof(*v));
	for (int i = 0; i < rec->n_iterations; i++) {
		const struct rg_iteration_row *it = &rec->iterations[i];

		if (is_timing(it) && (n_off == 0 || !it->hook_on))
			v[n++] = duration(it->start_ns, it->end_ns);
	}
	rg_stats_sort(v, (size_t)n);
	a->n_latency = n;
	a->latency_sorted_ns = v;
	a->p50 = rg_stats_quantile_ci(v, (size_t)n, 0.5, CONFIDENCE);
	a->p90 = rg_stats_quantile_ci(v, (size_t)n, 0.9, CONFIDENCE);
	a->p95 = rg_stats_quantile_ci(v, (size_t)n, 0.95, CONFIDENCE);
	a->p99 = rg_stats_quantile_ci(v, (size_t)n, 0.99, CONFIDENCE);
	a->p999 = rg_stats_quantile_ci(v, (size_t)n, 0.999, CONFIDENCE);
	a->min_ns = n ? v[0] : NAN;
	a->max_ns = n ? v[n - 1] : NAN;
	a->mean_ns = rg_stats_mean(v, (size_t)n);
	a->stddev_ns = rg_stats_stddev(v, (size_t)n);
	a->throughput_per_s = a->p50.value > 0 ? 1e9 / a->p50.value : NAN;
	return 0;
}

/* Neighbours of which one has the hook and one has not are a pair. */
static int analyze_overhead(struct analysis *x, struct rg_error *err)
{
	const struct rg_recording *rec = x->a.rec;
	double *on, *off;
	size_t n = 0, kept = 0, stride;

	x->a.overhead = (struct rg_interval){NAN, NAN, NAN};
	on = rg_arena_alloc(x->arena, (size_t)rec->n_iterations, sizeof(*on));
	off = rg_arena_alloc(x->arena, (size_t)rec->n_iterations, sizeof(*off));
	if (!on || !off)
		return rg_error_nomem(err, (size_t)rec->n_iterations * sizeof(*on));
	for (int i = 0; i + 1 < rec->n_iterations; i++) {
		const struct rg_iteration_row *p = &rec->iterations[i], *q = p + 1;
		const struct rg_iteration_row *with = p->hook_on ? p : q, *without = p->hook_on ? q : p;

		if (!is_timing(p) || !is_timing(q) || p->hook_on == q->hook_on)
			continue;
		on[n] = duration(with->start_ns, with->end_ns);
		off[n++] = duration(without->start_ns, without->end_ns);
		i++;
	}
	stride = (n + MAX_PAIRS - 1) / MAX_PAIRS;
	for (size_t i = 0; i < n; i += stride, kept++) {
		on[kept] = on[i];
		off[kept] = off[i];
	}
	if (kept)
		x->a.overhead = rg_stats_ratio_ci(on, off, kept, CONFIDENCE, 1);
	if (!isfinite(x->a.overhead.value))
		x->a.overhead = (struct rg_interval){NAN, NAN, NAN};
	return 0;
}

/* ---- roofs ---- */

/* The best ceiling of that kind and level (NULL: any, of that type) for the run's thread count,
 * with the spread of all measurements of the same level and instruction set. */
static void find_roof(const struct rg_recording *rec, const char *kind, const char *level, const char *dtype,
		      struct rg_roof *out)
{
	const struct rg_ceiling_row *best = NULL;

	*out = (struct rg_roof){level ? level : dtype, NAN, NAN, NAN, NAN, RG_PROV_UNAVAILABLE};
	for (int i = 0; i < rec->n_ceilings; i++) {
		const struct rg_ceiling_row *c = &rec->ceilings[i];

		if (strcmp(c->kind, kind) == 0 && (!level || strcmp(c->level, level) == 0) &&
		    c->threads == rec->run.threads && strcmp(c->dtype, dtype) == 0 && c->value > 0 &&
		    (!best || c->value > best->value))
			best = c;
	}
	if (!best)
		return;
	out->level = best->level;
	out->value = best->value;
	out->low = best->low;
	out->high = best->high;
	out->provenance = best->provenance;
	for (int i = 0; i < rec->n_ceilings; i++) {
		const struct rg_ceiling_row *c = &rec->ceilings[i];

		if (strcmp(c->kind, kind) == 0 && strcmp(c->level, best->level) == 0 &&
		    c->threads == best->threads && strcmp(c->dtype, best->dtype) == 0 &&
		    strcmp(c->isa, best->isa) == 0) {
			out->low = fmin(out->low, c->low);
			out->high = fmax(out->high, c->high);
		}
	}
}

static void analyze_roofs(struct rg_analysis *a)
{
	static const struct {
		const char *level, *fact;
		bool private;
	} levels[] = {
	    {"L1", "machine.l1d_bytes", true},
	    {"L2", "machine.l2_bytes", true},
	    {"L3", "machine.l3_bytes", false},
	    {"DRAM", NULL, false},
	};
	double cores = rg_recording_number(a->rec, "machine.cores");
	double lanes = a->rec->run.threads;

	if (cores >= 1 && cores < lanes)
		lanes = cores; /* two threads of one core share its caches */
	find_roof(a->rec, "compute", "peak", "float32", &a->peak);
	find_roof(a->rec, "compute", NULL, "int8", &a->int8_peak);
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		struct rg_roof *r = &a->roofs[a->n_roofs];

		find_roof(a->rec, "bandwidth", levels[i].level, "float32", r);
		if (isnan(r->value))
			continue;
		if (levels[i].fact)
			r->capacity_bytes =
			    rg_recording_number(a->rec, levels[i].fact) * (levels[i].private ? lanes : 1);
		else
			r->capacity_bytes = INFINITY;
		a->n_roofs++;
	}
	a->ridge_intensity = NAN;
	if (a->n_roofs && isinf(a->roofs[a->n_roofs - 1].capacity_bytes))
		a->ridge_intensity = a->peak.value / a->roofs[a->n_roofs - 1].value;
}

/* The nearest level that holds so many bytes; NULL: none known. A level of
 * unknown capacity holds nothing. */
static const struct rg_roof *level_for(const struct rg_analysis *a, double bytes)
{
	for (int i = 0; i < a->n_roofs; i++)
		if (bytes <= a->roofs[i].capacity_bytes)
			return &a->roofs[i];
	return NULL;
}

/* ---- operators ---- */

struct lane_time {
	int step, lane;
	double ns;
};

static int by_step_and_lane(const void *p, const void *q)
{
	const struct lane_time *x = p, *y = q;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

/* Samples by step, packed: those of step s are at[s] .. at[s] + n[s]. */
struct samples {
	double *v;
	size_t *at;
	int *n, *last_iteration;
};

static int samples_init(struct samples *s, struct rg_arena *arena, int n_steps, struct rg_error *err)
{
	s->at = rg_arena_alloc(arena, (size_t)n_steps + 1, sizeof(*s->at));
	s->n = rg_arena_alloc(arena, (size_t)n_steps, sizeof(*s->n));
	s->last_iteration = rg_arena_alloc(arena, (size_t)n_steps, sizeof(*s->last_iteration));
	if (!s->at || !s->n || !s->last_iteration)
		return rg_error_nomem(err, (size_t)n_steps * sizeof(*s->at));
	for (int i = 0; i < n_steps; i++)
		s->last_iteration[i] = -1;
	return 0;
}

/* Room for one sample a step and an iteration that has spans of that sort. */
static int samples_room(struct samples *s, struct rg_arena *arena, const struct rg_recording *rec, int whole,
			struct rg_error *err)
{
	for (int64_t i = 0; i < rec->n_spans; i++) {
		const struct rg_span_row *p = &rec->spans[i];

		if (p->whole == whole && is_timing(&rec->iterations[p->iteration]) &&
		    s->last_iteration[p->step] != p->iteration) {
			s->last_iteration[p->step] = p->iteration;
			s->at[p->step + 1]++;
		}
	}
	for (int i = 0; i < rec->n_steps; i++) {
		s->at[i + 1] += s->at[i];
		s->last_iteration[i] = -1;
	}
	s->v = rg_arena_alloc(arena, s->at[rec->n_steps], sizeof(*s->v));
	return s->v ? 0 : rg_error_nomem(err, s->at[rec->n_steps] * sizeof(*s->v));
}

/* A step inside a loop runs several times in one inference: its time there is
 * the sum. */
static int time_steps(struct analysis *x, struct rg_error *err)
{
	const struct rg_recording *rec = x->a.rec;
	struct samples s;
	int rc = samples_init(&s, x->arena, rec->n_steps, err);

	rc = rc ? rc : samples_room(&s, x->arena, rec, 1, err);
	if (rc)
		return rc;
	for (int64_t i = 0; i < rec->n_spans; i++) {
		const struct rg_span_row *p = &rec->spans[i];

		if (!p->whole || !is_timing(&rec->iterations[p->iteration]))
			continue;
		if (s.last_iteration[p->step] != p->iteration) {
			s.last_iteration[p->step] = p->iteration;
			s.n[p->step]++;
		}
		s.v[s.at[p->step] + (size_t)s.n[p->step] - 1] += duration(p->start_ns, p->end_ns);
	}
	for (int i = 0; i < rec->n_steps; i++) {
		struct rg_op_stat *op = &x->a.ops[i];
		struct rg_interval ci;

		rg_stats_sort(s.v + s.at[i], (size_t)s.n[i]);
		ci = rg_stats_quantile_ci(s.v + s.at[i], (size_t)s.n[i], 0.5, CONFIDENCE);
		op->time_ns = ci.value;
		op->low_ns = ci.low;
		op->high_ns = ci.high;
		if (!isnan(ci.value))
			x->a.ops_total_ns += ci.value;
	}
	return 0;
}

/* Longest lane over the mean of all lanes of the run: a lane that got nothing
 * counts, since it could have had a share. */
static int balance_steps(struct analysis *x, struct rg_error *err)
{
	const struct rg_recording *rec = x->a.rec;
	struct samples s;
	struct lane_time *lt;
	int64_t i = 0, longest = 0, run = 0;
	int rc = samples_init(&s, x->arena, rec->n_steps, err);

	rc = rc ? rc : samples_room(&s, x->arena, rec, 0, err);
	if (rc)
		return rc;
	for (int64_t k = 0; k < rec->n_spans; k++) {
		run = k && rec->spans[k].iteration == rec->spans[k - 1].iteration ? run + 1 : 1;
		longest = run > longest ? run : longest;
	}
	lt = rg_arena_alloc(x->arena, (size_t)longest, sizeof(*lt));
	if (!lt)
		return rg_error_nomem(err, (size_t)longest * sizeof(*lt));
	while (i < rec->n_spans) {
		int iteration = rec->spans[i].iteration;
		int n = 0, k = 0;

		for (; i < rec->n_spans && rec->spans[i].iteration == iteration; i++) {
			const struct rg_span_row *p = &rec->spans[i];

			if (!p->whole)
				lt[n++] =
				    (struct lane_time){p->step, p->lane, duration(p->start_ns, p->end_ns)};
		}
		if (!is_timing(&rec->iterations[iteration]))
			continue;
		qsort(lt, (size_t)n, sizeof(*lt), by_step_and_lane);
		while (k < n) {
			int step = lt[k].step, lanes = 0;
			double sum = 0, max = 0;

			while (k < n && lt[k].step == step) {
				int lane = lt[k].lane;
				double ns = 0;

				for (; k < n && lt[k].step == step && lt[k].lane == lane; k++)
					ns += lt[k].ns;
				sum += ns;
				max = fmax(max, ns);
				lanes++;
			}
			if (lanes < rec->run.threads)
				lanes = rec->run.threads;
			if (lanes > 1 && sum > 0)
				s.v[s.at[step] + (size_t)s.n[step]++] = max * lanes / sum;
		}
	}
	for (int k = 0; k < rec->n_steps; k++)
		x->a.ops[k].imbalance = rg_stats_median(s.v + s.at[k], (size_t)s.n[k]);
	return 0;
}

static double known(int64_t count)
{
	return count < 0 ? NAN : (double)count;
}

/* a and b in units a second, NAN kept. */
static double nanoseconds(double amount, double rate)
{
	return amount == 0 ? 0 : amount / rate * 1e9;
}

/* The operations that the roof is asked for. A kernel that needs fewer than the definition
 * (Winograd's) says so, and could else stand above the peak; one that does more (padding)
 * is held to what the definition needs, since that is what could be won. */
static double least_flops(const struct rg_op_stat *op)
{
	double executed = known(op->step->executed_flops);

	return executed < op->flops ? executed : op->flops;
}

/* Its integer operations are sums of products of bytes. */
static bool multiplies_bytes(const struct rg_step_row *s)
{
	static const char *const types[] = { "ConvInteger", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat",
					     "QGemm", "QLinearConv", "QLinearMatMul" };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(s->op_type, types[i]) == 0)
			return s->iops > 0;
	return false;
}

/* Least time for its operations. NAN: a peak that it needs is not known. */
static double least_compute(const struct rg_analysis *a, const struct rg_op_stat *op, bool fastest)
{
	double peak = fastest ? fmax(a->peak.value, a->peak.high) : a->peak.value;
	double int8 = fastest ? fmax(a->int8_peak.value, a->int8_peak.high) : a->int8_peak.value;
	double floats = nanoseconds(least_flops(op), peak);

	if (!multiplies_bytes(op->step))
		return floats;
	if (isnan(int8) || isnan(floats))
		return NAN;
	return fmax(floats, nanoseconds((double)op->step->iops, int8));
}

/* Puts one operator under the roofs: roof_ns, bound, headroom. */
static void place(const struct rg_analysis *a, struct rg_op_stat *op)
{
	const struct rg_step_row *s = op->step;
	const struct rg_roof *level = isnan(op->bytes) ? NULL : level_for(a, op->bytes);
	double compute_ns, memory_ns, least_ns, slowest;

	op->roof_ns = op->headroom = NAN;
	op->bound = NULL;
	if (isnan(op->flops) || isnan(op->bytes))
		return;
	/* No ceiling is measured for these yet: doubles, and other integer arithmetic than products of
	 * bytes where there is more than one operation a byte. */
	if ((op->flops > 0 && strcmp(s->dtype, "float64") == 0) ||
	    (s->iops > 0 && (double)s->iops > op->bytes && !multiplies_bytes(s)))
		return;
	compute_ns = least_compute(a, op, false);
	memory_ns = nanoseconds(op->bytes, level ? level->value : NAN);
	if (isnan(compute_ns) || isnan(memory_ns))
		return;
	op->roof_ns = fmax(compute_ns, memory_ns);
	if (op->roof_ns == 0)
		op->bound = "overhead"; /* no work at all */
	else
		op->bound = compute_ns > memory_ns ? "compute" : level->level;
	if (op->roof_ns > 0 && op->time_ns > 0)
		op->headroom = op->time_ns / op->roof_ns;
	if (op->time_ns < OVERHEAD_NS && op->roof_ns < OVERHEAD_NS)
		op->bound = "overhead";
	else if (op->imbalance > IMBALANCE_MIN &&
		 op->time_ns * (1 - 1 / op->imbalance) > 0.5 * (op->time_ns - op->roof_ns))
		op->bound = "imbalance";
	/* The slowest that the time may be against the fastest that the roof may be. */
	slowest = isnan(op->high_ns) ? op->time_ns : op->high_ns;
	least_ns = fmax(least_compute(a, op, true),
			level ? nanoseconds(op->bytes, fmax(level->value, level->high)) : 0);
	op->above_roof = slowest < least_ns;
}

static int analyze_ops(struct analysis *x, struct rg_error *err)
{
	struct rg_analysis *a = &x->a;
	const struct rg_recording *rec = a->rec;
	int rc;

	a->n_ops = rec->n_steps;
	a->ops = rg_arena_alloc(x->arena, (size_t)a->n_ops, sizeof(*a->ops));
	if (!a->ops)
		return rg_error_nomem(err, (size_t)a->n_ops * sizeof(*a->ops));
	rc = time_steps(x, err);
	rc = rc ? rc : balance_steps(x, err);
	if (rc)
		return rc;
	for (int i = 0; i < a->n_ops; i++) {
		struct rg_op_stat *op = &a->ops[i];
		const struct rg_step_row *s = &rec->steps[i];

		op->step = s;
		op->share = a->ops_total_ns > 0 ? op->time_ns / a->ops_total_ns : NAN;
		op->flops = known(s->flops);
		op->bytes = known(s->read_bytes) + known(s->write_bytes);
		op->intensity = op->bytes > 0 ? op->flops / op->bytes : NAN;
		op->flop_rate = op->time_ns > 0 ? op->flops / op->time_ns * 1e9 : NAN;
		op->byte_rate = op->time_ns > 0 ? op->bytes / op->time_ns * 1e9 : NAN;
		place(a, op);
	}
	return 0;
}

/* ---- totals ---- */

/* Adds what is known; NAN only while nothing is. */
static void add_known(double *sum, double v)
{
	if (!isnan(v))
		*sum = isnan(*sum) ? v : *sum + v;
}

static int64_t first_dimension(const struct rg_recording *rec)
{
	for (int i = 0; i < rec->n_tensors; i++) {
		const struct rg_tensor_row *t = &rec->tensors[i];
		char *end;
		long long v;

		if (!t->is_input || t->is_param)
			continue;
		v = strtoll(t->shape, &end, 10);
		return end != t->shape && (*end == 'x' || *end == '\0') && v > 0 ? v : -1;
	}
	return -1;
}

static void analyze_totals(struct rg_analysis *a)
{
	const struct rg_recording *rec = a->rec;
	double steps_params = NAN, prepared = NAN, weights = NAN,
	       batch = rg_recording_number(rec, "model.batch");

	a->flops = a->sfu = NAN;
	for (int i = 0; i < rec->n_steps; i++) {
		const struct rg_step_row *s = &rec->steps[i];

		add_known(&a->flops, known(s->flops));
		add_known(&a->sfu, known(s->sfu));
		add_known(&steps_params, known(s->params));
		add_known(&prepared, known(s->prepared_bytes));
		a->n_unknown_cost += s->flops < 0;
	}
	for (int i = 0; i < rec->n_tensors; i++)
		if (rec->tensors[i].is_param)
			add_known(&weights, known(rec->tensors[i].size_bytes));
	a->params = rg_recording_number(rec, "model.params");
	if (isnan(a->params))
		a->params = steps_params;
	a->weight_bytes = rg_recording_number(rec, "model.weight_bytes");
	if (isnan(a->weight_bytes))
		a->weight_bytes = weights;
	if (!isnan(rg_recording_number(rec, "plan.prepared_bytes")))
		prepared = rg_recording_number(rec, "plan.prepared_bytes");
	a->peak_bytes =
	    rg_recording_number(rec, "plan.arena_bytes") + a->weight_bytes + (isnan(prepared) ? 0 : prepared);
	a->batch = batch >= 1 && batch < 1e15 ? (int64_t)batch : first_dimension(rec);
}

int rg_analyze(const struct rg_recording *rec, struct rg_analysis **out, struct rg_error *err)
{
	struct rg_arena *arena = rg_arena_new();
	struct analysis *x = NULL;
	int rc;

	*out = NULL;
	if (arena)
		x = rg_arena_alloc(arena, 1, sizeof(*x));
	if (!x) {
		rg_arena_free(arena);
		return rg_error_nomem(err, sizeof(*x));
	}
	x->arena = arena;
	x->a.rec = rec;
	analyze_roofs(&x->a);
	rc = analyze_latency(x, err);
	rc = rc ? rc : analyze_overhead(x, err);
	rc = rc ? rc : analyze_ops(x, err);
	if (rc) {
		rg_arena_free(arena);
		return rc;
	}
	analyze_totals(&x->a);
	*out = &x->a;
	return 0;
}

void rg_analysis_free(struct rg_analysis *a)
{
	if (a)
		rg_arena_free(((struct analysis *)a)->arena);
}

void rg_analysis_by_time(const struct rg_analysis *a, int *order)
{
/* A heap sort: qsort has no place for the context of the comparison. */
#define TIME(i) (isnan(a->ops[i].time_ns) ? -1.0 : a->ops[i].time_ns)
#define AFTER(i, j) (TIME(i) < TIME(j) || (TIME(i) == TIME(j) && (i) > (j)))
	int n = a->n_ops;

	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int start = n / 2 - 1, end = n; end > 1;) {
		int root, child, t;

		if (start >= 0) {
			root = start--;
		} else {
			end--;
			t = order[end];
			order[end] = order[0];
			order[0] = t;
			root = 0;
		}
		/* The root of the heap is the one that comes last. */
		while ((child = 2 * root + 1) < end) {
			if (child + 1 < end && AFTER(order[child + 1], order[child]))
				child++;
			if (!AFTER(order[child], order[root]))
				break;
			t = order[child];
			order[child] = order[root];
			order[root] = t;
			root = child;
		}
	}
#undef TIME
#undef AFTER
}
