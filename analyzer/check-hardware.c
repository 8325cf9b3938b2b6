/*
 * Questions about the hardware: its units and its bandwidths.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/check-internal.h"
#include "base/str.h"

void rg_check_hardware_units(struct rg_check *c, struct rg_answer *q)
{
	const char *isa = rg_recording_text(c->rec, "machine.isa", "unknown instruction set");

	rg_check_unknown(
	    q,
	    rg_check_text(c, "vector units: %.80s; which unit each operator kept busy was not observed", isa),
	    "hardware counters by execution port, which this version does not read; see  ridge doctor");
	rg_check_fact(c, q, "isa", "machine.isa");
	rg_check_fact(c, q, "cpu", "machine.cpu");
}

void rg_check_hardware_minimum(struct rg_check *c, struct rg_answer *q)
{
	rg_check_unknown(q, "the smallest dimensions that the units of this target need are not known",
			 "a target description with its tile sizes, which this version does not take");
}

void rg_check_hardware_bandwidth(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_analysis *a = c->a;
	struct rg_str levels = {0};
	double flops = 0, bytes = 0, memory_share = 0, intensity;
	char v[32], p[32];

	if (a->n_roofs == 0) {
		rg_check_unknown(
		    q, "no bandwidth was measured for this number of threads",
		    "ceilings: ridge record measures them unless told not to; alone:  ridge machine");
		return;
	}
	for (int i = 0; i < a->n_ops; i++) {
		if (!isnan(a->ops[i].flops) && !isnan(a->ops[i].bytes)) {
			flops += a->ops[i].flops;
			bytes += a->ops[i].bytes;
		}
		for (int k = 0; k < a->n_roofs; k++)
			if (a->ops[i].bound && strcmp(a->ops[i].bound, a->roofs[k].level) == 0 &&
			    !isnan(a->ops[i].share))
				memory_share += a->ops[i].share;
	}
	intensity = bytes > 0 ? flops / bytes : NAN;
	rg_check_figure(q, "peak", a->peak.value, "flop/s", a->peak.provenance);
	for (int i = 0; i < a->n_roofs; i++) {
		const struct rg_roof *r = &a->roofs[i];

		rg_str_printf(&levels, "%s%s %s", i ? ", " : "", r->level, rg_fmt_si(v, r->value, "B/s"));
		rg_check_figure(q, rg_check_text(c, "%s_bandwidth", r->level), r->value, "byte/s",
				r->provenance);
	}
	rg_check_figure(q, "ridge_intensity", a->ridge_intensity, "flop/byte", RG_PROV_MEASURED);
	rg_check_figure(q, "model_intensity", intensity, "flop/byte", RG_PROV_MODELLED);
	c->failed |= levels.failed;
	if (isnan(intensity) || isnan(a->ridge_intensity)) {
		rg_check_unknown(
		    q,
		    rg_check_text(c, "measured: %s; whether the model clears the ridge point is open",
				  rg_str_text(&levels)),
		    isnan(intensity) ? "steps with known FLOPs and bytes"
				     : "a compute peak and a DRAM bandwidth for this number of threads: "
				       "ridge record MODEL");
	} else {
		bool clears = intensity >= a->ridge_intensity;

		rg_check_percent(p, memory_share);
		q->verdict = clears ? RG_VERDICT_GOOD : RG_VERDICT_ATTENTION;
		if (!(a->ops_total_ns > 0))
			q->answer = rg_check_text(
			    c,
			    "measured: %s; the model as a whole does %.3g flop/byte and %s the ridge point of "
			    "%.3g; no step was timed",
			    rg_str_text(&levels), intensity, clears ? "clears" : "misses", a->ridge_intensity);
		else
			q->answer = rg_check_text(
			    c,
			    "measured: %s; the model as a whole does %.3g flop/byte and %s the ridge point of "
			    "%.3g: steps that a memory level bounds take %s of the time%s",
			    rg_str_text(&levels), intensity, clears ? "clears" : "misses", a->ridge_intensity, p,
			    clears ? ""
				   : ", which a larger batch, fusion or narrower types would shorten");
	}
	q->evidence =
	    rg_check_text(c,
			  "sqlite3 %s \"SELECT level, threads, value, unit, measured_when FROM ceiling "
			  "WHERE run_id = %lld\"",
			  c->db, (long long)c->rec->run.id);
	rg_str_free(&levels);
}
