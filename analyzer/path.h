/*
 * Critical path of one recorded inference: from its end backward, each moment
 * of wall time is given to exactly one segment: a step that ran, or the wait
 * (dispatch, gap) before it. Steps are joined by the true data edges; where a
 * step started later than its last producer ended, the difference is a gap,
 * named by what ran in between (resource edge: the lane was busy) or "dispatch".
 * Segments sum to the wall time to the nanosecond.
 */
#ifndef RG_ANALYZER_PATH_H
#define RG_ANALYZER_PATH_H

#include "analyzer/ops.h"

enum rg_segment_kind {
	RG_SEG_STEP,     /* a step that the next one on the path needs (data edge) */
	RG_SEG_RESOURCE, /* a step that is on the path only because the lane was busy */
	RG_SEG_GAP,      /* nothing ran: dispatch, or before the first and after the last */
};

struct rg_segment {
	enum rg_segment_kind kind;
	int step;              /* -1 for a gap */
	int64_t start_ns, end_ns;
};

struct rg_path {
	int iteration;         /* row index of the iteration it describes */
	bool cold;             /* recorded before the timing pass: the run was stopped early */
	int64_t wall_ns;       /* end - start of that iteration */
	int n_segments;        /* in time order, contiguous */
	struct rg_segment *segments;
	/* The longest chain of data edges, by recorded times: what an unlimited
	 * number of lanes could not go below. */
	int64_t data_path_ns;
	int n_data_path;
	int *data_path;        /* steps, in order */
	int64_t *slack_ns;     /* by step: how much longer it may take before the
	                          data path grows */
	double parallelism;    /* sum of step times over data_path_ns */
};

/* The iteration nearest to the median among those with spans. -ENODATA: none. */
int rg_path_find(const struct rg_analysis *a, struct rg_path **out, struct rg_error *err);
void rg_path_free(struct rg_path *p);

#endif
