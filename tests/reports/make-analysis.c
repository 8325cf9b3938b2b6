/*
 * See make-analysis.h. The analysis is filled by hand rather than computed, so
 * that the writers are tested against figures that are written down here.
 */
#include "make-analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static struct rg_analysis *base(int n_ops, int n_latency)
{
	struct rg_analysis *a = calloc(1, sizeof(*a));
	struct rg_recording *r = calloc(1, sizeof(*r));
	struct rg_interval none = { NAN, NAN, NAN };

	if (!a || !r)
		abort();
	a->rec = r;
	r->run = (struct rg_run){
		.id = 12,
		.tag = "",
		.model = "",
		.model_name = "",
		.model_sha256 = "",
		.command = "",
		.version = "0.1.0",
		.started_unix_ns = 1767225600000000000,
		.threads = 1,
		.warmup_iterations = -1,
		.iterations = -1,
		.duration_ns = -1,
		.seed = 1,
		.status = RG_RUN_COMPLETE,
		.message = "",
		.ended_unix_ns = -1,
		.p50_ns = NAN,
	};
	a->n_latency = n_latency;
	a->latency_sorted_ns = calloc((size_t)n_latency + 1, sizeof(double));
	a->p50 = a->p90 = a->p95 = a->p99 = a->p999 = a->overhead = none;
	a->min_ns = a->max_ns = a->mean_ns = a->stddev_ns = NAN;
	a->peak = (struct rg_roof){ "peak", NAN, NAN, NAN, NAN, RG_PROV_UNAVAILABLE };
	a->ridge_intensity = NAN;
	a->n_ops = n_ops;
	a->ops = calloc((size_t)n_ops + 1, sizeof(*a->ops));
	r->n_steps = n_ops;
	r->steps = calloc((size_t)n_ops + 1, sizeof(*r->steps));
	a->params = a->flops = a->sfu = a->weight_bytes = a->peak_bytes = NAN;
	a->throughput_per_s = NAN;
	a->batch = -1;
	if (!a->latency_sorted_ns || !a->ops || !r->steps)
		abort();
	for (int i = 0; i < n_ops; i++) {
		r->steps[i] = (struct rg_step_row){
			.index = i,
			.name = "",
			.op_type = "",
			.domain = "",
			.op_kind = "",
			.kernel = "",
			.kernel_reason = "",
			.dtype = "",
			.shape = "",
			.flops = -1,
			.read_bytes = -1,
			.write_bytes = -1,
		};
		a->ops[i] = (struct rg_op_stat){
			.step = &r->steps[i],
			.time_ns = NAN,
			.low_ns = NAN,
			.high_ns = NAN,
			.share = NAN,
			.flops = NAN,
			.bytes = NAN,
			.intensity = NAN,
			.flop_rate = NAN,
			.byte_rate = NAN,
			.roof_ns = NAN,
			.headroom = NAN,
			.imbalance = NAN,
		};
	}
	return a;
}

void make_free(struct rg_analysis *a)
{
	struct rg_recording *r = (struct rg_recording *)a->rec;

	free(r->steps);
	free(r->facts);
	free(r->iterations);
	free(r->tensors);
	free(r->io);
	free(r);
	free(a->latency_sorted_ns);
	free(a->ops);
	free(a);
}

struct rg_analysis *make_empty(void)
{
	return base(0, 0);
}

static void fill_op(struct rg_op_stat *op, double time_ns, double total_ns, double flops, double bytes,
			const char *bound, double roof_ns)
{
	op->time_ns = time_ns;
	op->low_ns = time_ns * 0.98;
	op->high_ns = time_ns * 1.03;
	op->share = time_ns / total_ns;
	op->flops = flops;
	op->bytes = bytes;
	op->intensity = flops / bytes;
	op->flop_rate = flops / (time_ns * 1e-9);
	op->byte_rate = bytes / (time_ns * 1e-9);
	op->bound = bound;
	op->roof_ns = roof_ns;
	op->headroom = time_ns / roof_ns;
}

static void fill_roofs(struct rg_analysis *a)
{
	static const struct rg_roof roofs[] = {
		{ "L1", 412e9, 405e9, 413e9, 49152, RG_PROV_MEASURED },
		{ "L2", 187e9, 181e9, 188e9, 2097152, RG_PROV_MEASURED },
		{ "L3", 61.5e9, 58e9, 62e9, 37748736, RG_PROV_MEASURED },
		{ "DRAM", 18.3e9, 17.1e9, 18.6e9, INFINITY, RG_PROV_MEASURED },
	};

	a->peak = (struct rg_roof){ "peak", 241e9, 238e9, 242e9, NAN, RG_PROV_MEASURED };
	a->n_roofs = 4;
	memcpy(a->roofs, roofs, sizeof(roofs));
	a->ridge_intensity = 241e9 / 18.3e9;
}

static void fill_latency(struct rg_analysis *a, double median_ns)
{
	int n = a->n_latency;
	uint64_t s = rg_rng_stream(7, "latency");

	/* A narrow body and a tail that grows like a Pareto distribution. */
	for (int i = 0; i < n; i++) {
		double u = ((double)i + 0.5) / n;

		a->latency_sorted_ns[i] = median_ns * (0.985 + 0.03 * u + 0.004 * pow(1 - u, -0.55)) +
					  1000 * (double)rg_rng_unit(s, (uint64_t)i);
	}
	rg_stats_sort(a->latency_sorted_ns, (size_t)n);
	a->p50 = rg_stats_quantile_ci(a->latency_sorted_ns, (size_t)n, 0.5, 0.95);
	a->p90 = rg_stats_quantile_ci(a->latency_sorted_ns, (size_t)n, 0.9, 0.95);
	a->p95 = rg_stats_quantile_ci(a->latency_sorted_ns, (size_t)n, 0.95, 0.95);
	a->p99 = rg_stats_quantile_ci(a->latency_sorted_ns, (size_t)n, 0.99, 0.95);
	a->p999 = rg_stats_quantile_ci(a->latency_sorted_ns, (size_t)n, 0.999, 0.95);
	a->min_ns = a->latency_sorted_ns[0];
	a->max_ns = a->latency_sorted_ns[n - 1];
	a->mean_ns = rg_stats_mean(a->latency_sorted_ns, (size_t)n);
	a->stddev_ns = rg_stats_stddev(a->latency_sorted_ns, (size_t)n);
	a->throughput_per_s = 1e9 / a->p50.value;
}

/* A value and now and then scratch for each step: three of the one stand on each
 * other at 0, 600,000 and 1,200,000, the other above them. The last value is written in parts. */
static void fill_memory(struct rg_recording *r)
{
	int n = r->n_steps;

	r->tensors = calloc((size_t)n + 1, sizeof(*r->tensors));
	r->io = calloc((size_t)n + 1, sizeof(*r->io));
	if (!r->tensors || !r->io)
		abort();
	r->n_tensors = n + 1;
	r->n_io = n;
	for (int i = 0; i < n; i++) {
		r->steps[i].op_kind = i % 2 ? "conv" : "norm";
		r->steps[i].scratch_bytes = i % 4 == 1 ? 65536 : 0;
		r->steps[i].scratch_offset_bytes = i % 4 == 1 ? 1800000 : -1;
		r->tensors[i] = (struct rg_tensor_row){ .id = i, .name = r->steps[i].name, .dtype = "float32",
							.shape = r->steps[i].shape, .size_bytes = 100000 * (i % 5 + 1),
							.place = "arena", .offset_bytes = 600000 * (i % 3), .alias_of = -1,
							.first_step = i, .last_step = i + 2 < n ? i + 2 : n - 1 };
		r->io[i] = (struct rg_io_row){ i, 0, true, i };
	}
	r->tensors[n] = (struct rg_tensor_row){ .id = n, .name = "part", .dtype = "float32", .shape = "1", .size_bytes = 4,
						.place = "arena", .offset_bytes = 0, .alias_of = n - 1,
						.first_step = n - 1, .last_step = n - 1 };
	r->io[n - 1].tensor = n;
}

struct rg_analysis *make_plausible(void)
{
	static const struct {
		const char *name, *type, *kernel, *shape, *bound;
		double time_us, mflops, kbytes, roof_us;
	} op[] = {
		{"conv1", "Conv", "im2col+openblas", "1x64x112x112", "compute", 2410, 236, 3850, 979},
		{"bn_conv1", "Relu", "ref", "1x64x112x112", "DRAM", 912, 0.803, 6423, 351},
		{"pool1", "MaxPool", "ref", "1x64x56x56", "DRAM", 1480, 1.81, 4014, 219},
		{"res2a_branch2a", "Conv", "im2col+openblas", "1x64x56x56", "compute", 260, 25.7, 1622, 107},
		{"res2a_branch2b", "Conv", "im2col+openblas", "1x64x56x56", "compute", 1510, 231, 1753, 959},
		{"res2a_branch2c", "Conv", "im2col+openblas", "1x256x56x56", "L3", 940, 103, 4080, 427},
		{"res2a_branch1", "Conv", "im2col+openblas", "1x256x56x56", "L3", 935, 103, 4080, 427},
		{"res2a", "Add", "ref", "1x256x56x56", "DRAM", 1210, 0.803, 9633, 526},
		{"res2a_relu", "Relu", "ref", "1x256x56x56", "DRAM", 1130, 0.803, 6422, 351},
		{"res2b_branch2a", "Conv", "im2col+openblas", "1x64x56x56", "L3", 930, 103, 4080, 427},
		{"res2b_branch2b", "Conv", "im2col+openblas", "1x64x56x56", "compute", 1505, 231, 1753, 959},
		{"res2b_branch2c", "Conv", "im2col+openblas", "1x256x56x56", "L3", 938, 103, 4080, 427},
		{"res3a_branch2b", "Conv", "im2col+openblas", "1x128x28x28", "compute", 1330, 231, 1393, 959},
		{"res4a_branch2b", "Conv", "im2col+openblas", "1x256x14x14", "compute", 1290, 231, 2761, 959},
		{"res5a_branch2b", "Conv", "im2col+openblas", "1x512x7x7", "L3", 1402, 231, 9638, 959},
		{"res5b_branch2b", "Conv", "im2col+openblas", "1x512x7x7", "L3", 1399, 231, 9638, 959},
		{"pool5", "GlobalAveragePool", "ref", "1x2048x1x1", "L2", 31, 0.1, 410, 2.2},
		{"flatten", "Flatten", "ref", "1x2048", "overhead", 0.9, NAN, 16, NAN},
		{"fc1000", "Gemm", "openblas", "1x1000", "DRAM", 262, 4.1, 8208, 449},
		{"shape_of", "Shape", "ref", "4", NULL, 0.4, 0, 0.03, NAN},
		{"prob_max", "ReduceMax", "ref", "1x1", "L1", 0.8, 0.001, 4, 0.01},
		{"prob", "Softmax", "ref", "1x1000", "overhead", 6.1, 0.003, 8, 0.02},
		{"never_timed", "Identity", "ref", "1x1000", NULL, NAN, NAN, NAN, NAN},
		{"split_heads", "Transpose", "ref", "scalar", "imbalance", 88, 0.2, 800, 43},
	};
	static const struct rg_fact facts[] = {
		{"machine.cpu", 0, "Example Xeon 8999Q @ 2.10GHz", 0, 0, "", RG_PROV_DECLARED, ""},
		{"machine.cores", 1, "", 2, 0, "", RG_PROV_DECLARED, ""},
		{"machine.memory_bytes", 1, "", 8589934592, 0, "bytes", RG_PROV_DECLARED, ""},
		{"machine.kernel", 0, "6.1.0-18-amd64", 0, 0, "", RG_PROV_DECLARED, ""},
		{"machine.hypervisor", 0, "yes", 0, 0, "", RG_PROV_DECLARED, "cpuid"},
		{"machine.governor", 3, "no cpufreq in sysfs", 0, 0, "", RG_PROV_UNAVAILABLE, ""},
		{"session.isa", 0, "avx512", 0, 0, "", RG_PROV_DECLARED, ""},
		{"session.span_cost_ns", 2, "", -1, 41.5, "ns", RG_PROV_MEASURED, ""},
		{"session.steady", 0, "no", 0, 0, "", RG_PROV_MEASURED, ""},
		{"process.peak_rss_bytes", 1, "", 251658240, 0, "bytes", RG_PROV_MEASURED, "VmHWM"},
		{"plan.arena_bytes", 1, "", 1865536, 0, "bytes", RG_PROV_MODELLED, ""},
		{"plan.arena_lower_bound_bytes", 1, "", 1265536, 0, "bytes", RG_PROV_MODELLED, ""},
		{"plan.arena_strategy", 0, "greedy-size", 0, 0, "", RG_PROV_MODELLED, ""},
		{"plan.peak_step", 1, "", 5, 0, "", RG_PROV_MODELLED, ""},
		{"outputs.sha256", 0, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 0, 0,
		 "", RG_PROV_MEASURED, ""},
	};
	int n = sizeof(op) / sizeof(op[0]);
	struct rg_analysis *a = base(n, 1200);
	struct rg_recording *r = (struct rg_recording *)a->rec;
	double total = 0;

	for (int i = 0; i < n; i++)
		total += isnan(op[i].time_us) ? 0 : op[i].time_us * 1000;
	for (int i = 0; i < n; i++) {
		r->steps[i].name = op[i].name;
		r->steps[i].op_type = op[i].type;
		r->steps[i].kernel = op[i].kernel;
		if (!strcmp(op[i].type, "Conv"))
			r->steps[i].kernel_reason =
				"least estimate of 2 of rank 60: 3.56 million vector multiply-adds, 'tiled' 9.06";
		r->steps[i].shape = op[i].shape;
		r->steps[i].dtype = "float32";
		fill_op(&a->ops[i], op[i].time_us * 1e3, total, op[i].mflops * 1e6, op[i].kbytes * 1e3,
			op[i].bound, op[i].roof_us * 1e3);
	}
	a->ops[18].above_roof = true; /* fc1000: 262 us under a roof of 449 */
	a->ops_total_ns = total;
	a->n_unknown_cost = 2;
	r->run.tag = "before";
	r->run.model = "builtin:resnet50";
	r->run.model_name = "resnet50";
	r->run.threads = 2;
	r->run.iterations = 1200;
	r->run.n_iterations = 1200;
	r->n_facts = sizeof(facts) / sizeof(facts[0]);
	r->facts = malloc(sizeof(facts));
	r->n_iterations = 3;
	r->iterations = calloc(3, sizeof(*r->iterations));
	if (!r->facts || !r->iterations)
		abort();
	memcpy(r->facts, facts, sizeof(facts));
	for (int i = 0; i < 3; i++) {
		r->iterations[i].pass = i == 0 ? "warmup" : "timing";
		r->iterations[i].hook_on = i != 0;
	}
	r->n_spans = 2 * n;
	fill_memory(r);
	a->params = 25557032;
	a->flops = 8.21e9;
	a->sfu = 1000;
	a->weight_bytes = 102228128;
	a->peak_bytes = 121e6;
	a->batch = 1;
	a->overhead = (struct rg_interval){ 1.0021, 0.9987, 1.0064 };
	fill_roofs(a);
	fill_latency(a, 21.4e6);
	return a;
}

struct rg_analysis *make_hostile(int n)
{
	static char longest[301];
	static const char *const names[] = {
		"$(touch /tmp/ridge-pwned)",
		"`touch /tmp/ridge-pwned`",
		"'; system(\"touch /tmp/ridge-pwned\"); '",
		"\033[2J\033]0;title\007red",
		"two\nlines\ttab",
		"a|b,c\"d\"'e'\\f",
		"EOD",
		"@macro % %d %s {/Bold x}_y^z",
		"\xff\xfe broken \xc3",
		"\xe2\x80\xae"
		"override",
		"=1+1",
		"<script>alert(1)</script>",
		"\xe6\xb7\xb1\xe5\xb1\x82\xe7\xbd\x91\xe7\xbb\x9c",
		longest,
	};
	int n_names = sizeof(names) / sizeof(names[0]);
	struct rg_analysis *a = base(n, 7);
	struct rg_recording *r = (struct rg_recording *)a->rec;
	uint64_t s = rg_rng_stream(3, "hostile");

	memset(longest, 'n', 300);
	longest[7] = '\001';
	for (int i = 0; i < n; i++) {
		double t = 1000 + 1e6 * (double)rg_rng_unit(s, (uint64_t)i);

		r->steps[i].name = names[i % n_names];
		r->steps[i].op_type = names[(i + 3) % n_names];
		r->steps[i].kernel = names[(i + 5) % n_names];
		r->steps[i].shape = i % 3 ? "1x64x56x56" : names[(i + 7) % n_names];
		r->steps[i].dtype = "float32";
		fill_op(&a->ops[i], t, 5e8, t * (double)(1 + i % 90), t * 2, i % 5 ? "DRAM" : names[4],
			t / 3);
	}
	fill_memory(r);
	r->run.model = names[2];
	r->run.model_name = names[0];
	r->run.tag = names[3];
	r->run.message = names[1];
	r->run.status = RG_RUN_FAILED;
	fill_roofs(a);
	fill_latency(a, 3.3e5);
	return a;
}

struct rg_analysis *make_compiled(void)
{
	static struct rg_note_row notes[] = {
		{ "view", "flatten", "Flatten" },
		{ "fused", "res2a_bn", "BatchNormalization into res2a_branch2c (conv-affine)" },
		{ "fused", "res2b_bn", "BatchNormalization into res2b_branch2c (conv-affine)" },
		{ "fused", "res2a_relu", "Relu into res2a_branch2a (conv-epilogue)" },
		{ "fused", "twin", "constant into w (common)" },
		{ "not-fused", "res2a", "Add not into res2a_branch1: second consumer (conv-epilogue)" },
		{ "not-fused", "pool1", "MaxPool not into conv1: no pattern" },
		{ "not-fused", "pool5", "GlobalAveragePool not into res5b_branch2b: no pattern" },
		{ "not-fused", "pool4", "GlobalAveragePool not into res5a_branch2b: no pattern" },
	};
	static const struct rg_fact more[] = {
		{ "session.optimize", 1, "", 3, 0, "", RG_PROV_DECLARED, "--optimize" },
		{ "plan.steps", 1, "", 24, 0, "", RG_PROV_MODELLED, "" },
		{ "plan.steps_before", 1, "", 61, 0, "", RG_PROV_MODELLED, "" },
		{ "plan.views", 1, "", 1, 0, "", RG_PROV_MODELLED, "" },
		{ "plan.folded", 1, "", 7, 0, "", RG_PROV_MODELLED, "" },
		{ "plan.dead", 1, "", 2, 0, "", RG_PROV_MODELLED, "" },
	};
	enum { N = sizeof(more) / sizeof(more[0]) };
	struct rg_analysis *a = make_plausible();
	struct rg_recording *r = (struct rg_recording *)a->rec;
	struct rg_fact *facts = calloc((size_t)r->n_facts + N, sizeof(*facts));

	if (!facts)
		abort();
	memcpy(facts, r->facts, (size_t)r->n_facts * sizeof(*facts));
	memcpy(facts + r->n_facts, more, sizeof(more));
	free(r->facts);
	r->facts = facts;
	r->n_facts += N;
	r->notes = notes;
	r->n_notes = sizeof(notes) / sizeof(notes[0]);
	return a;
}
