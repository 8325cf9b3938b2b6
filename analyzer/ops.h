/*
 * Operators of a run: time, work, and where each stands under the Roofline
 * (Williams, Waterman, Patterson, CACM 52(4), 2009; a roof a memory level).
 *
 * time_ns is the median over timed iterations with the hook on. share is that
 * over the sum of all medians. roof_ns is the longer of flops/peak (of the executed
 * ones where a kernel needs fewer than the definition has, as Winograd's) and compulsory bytes/bandwidth, with the level chosen by the step's working set:
 * the smallest cache that holds the bytes it touches (in this version; reuse
 * between steps is modelled later). headroom is time over roof. A step above
 * its roof is shown as it is, flagged, never clamped.
 *
 * bound is what the roof says, except:
 *   "overhead"   time and roof are both below 2 us, or the step has no work: what
 *                is paid is starting it;
 *   "imbalance"  the longest lane takes more than 1.5 times the mean lane, and
 *                evening that out would win back more than half of what separates
 *                the step from its roof;
 *   NULL         a cost or a ceiling that it needs is not known: flops or bytes
 *                unknown, no ceiling for this thread count, float64 (the measured
 *                peak is of float32), or more integer operations than bytes, but
 *                for products of bytes, whose peak is measured. Without flops the
 *                bytes alone decide.
 * Products of bytes (MatMulInteger, QLinearConv and their like) are held to the longer of
 * their floating-point and their integer operations over the peak of each.
 */
#ifndef RG_ANALYZER_OPS_H
#define RG_ANALYZER_OPS_H

#include "base/error.h"
#include "base/stats.h"
#include "store/store.h"

struct rg_op_stat {
	const struct rg_step_row *step;
	double time_ns;           /* median; NAN when never timed */
	double low_ns, high_ns;   /* 95 % interval of the median */
	double share;             /* 0..1 */
	double flops, bytes;      /* useful, compulsory; NAN unknown */
	double intensity;         /* flop/byte; NAN unknown */
	double flop_rate, byte_rate; /* per second; NAN */
	const char *bound;        /* "compute", "L1", "L2", "L3", "DRAM", "overhead",
	                             "imbalance"; NULL unknown */
	double roof_ns;           /* NAN unknown */
	double headroom;          /* time over roof; NAN unknown */
	bool above_roof;          /* faster than its roof beyond the uncertainty */
	double imbalance;         /* longest lane over the mean of all lanes of the run, median
	                             over iterations; NAN for a step that ran on one lane */
};

/* Roofs of a run, ready to use: from its ceilings, by the thread count used. */
struct rg_roof {
	const char *level;        /* "peak", "L1", ... */
	double value;             /* flop/s or byte/s; the better of before and after */
	double low, high;
	double capacity_bytes;    /* working sets up to this are served here: of all lanes together for
	                             L1 and L2 (one a core). NAN for peak and where the size is not
	                             known (then it serves nothing), INFINITY for DRAM */
	enum rg_provenance provenance;
};

struct rg_analysis {
	const struct rg_recording *rec;
	/* latency: iterations of the timing pass without the hook; with it when a
	 * recording has no others. n_latency 0: every statistic is NAN */
	int n_latency;
	double *latency_sorted_ns;
	struct rg_interval p50, p90, p95, p99, p999;
	double min_ns, max_ns, mean_ns, stddev_ns;
	/* own overhead: medians of hook-on over hook-off, neighbouring iterations as
	 * pairs (of more than 2000 every k-th) */
	struct rg_interval overhead;
	/* roofs */
	struct rg_roof peak;              /* value NAN: not measured */
	struct rg_roof int8_peak;         /* op/s of the fastest exact product of bytes that was measured; its
	                                     level is that form's name, "int8 vnni" */
	int n_roofs;
	struct rg_roof roofs[5];          /* bandwidths, nearest level first */
	double ridge_intensity;           /* peak over DRAM bandwidth; NAN */
	/* operators, in execution order */
	int n_ops;
	struct rg_op_stat *ops;
	double ops_total_ns;              /* sum of medians */
	/* totals */
	double params, flops, sfu, weight_bytes; /* NAN unknown. flops: of the steps where it is known */
	double peak_bytes;                /* planned: arena + weights + their packed copies */
	int n_unknown_cost;               /* steps whose flops are unknown */
	double throughput_per_s;          /* inferences, from the median latency; times batch for samples; NAN */
	int64_t batch;                    /* of the first input; -1 unknown */
};

/* Everything above from one recording, which must outlive the result. */
int rg_analyze(const struct rg_recording *rec, struct rg_analysis **out, struct rg_error *err);
void rg_analysis_free(struct rg_analysis *a);
/* Indices of ops by time, longest first, into order[n_ops]. */
void rg_analysis_by_time(const struct rg_analysis *a, int *order);

#endif
