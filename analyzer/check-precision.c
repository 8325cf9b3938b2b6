/*
 * Questions about precision, answered with what ridge quantize measured of the run's model: one recording at one
 * precision cannot say.
 */
#include <math.h>
#include <string.h>

#include "analyzer/check-internal.h"

/* SQNR in dB below which int8 is attention, or a problem: errors of 3 % and of a third of the signal. */
#define GOOD_DB 30
#define BAD_DB 10
/* A channel's scale gains so much over one for all that the choice matters. */
#define GAIN_DB 3
/* Shares of values outside of their range. */
#define SOME_CLIPPED 0.001
#define MANY_CLIPPED 0.01

/* How many steps compute in which type: what can be said already. */
static int count_quantised(const struct rg_check *c)
{
	int n = 0;

	for (int i = 0; i < c->rec->n_steps; i++)
		n += strcmp(c->rec->steps[i].op_kind, "quant") == 0;
	return n;
}

static void evidence(struct rg_check *c, struct rg_answer *q)
{
	q->evidence = rg_check_text(c, "sqlite3 %s \"SELECT name, sqnr_db, own_sqnr_db, clipped, drifted, why_not FROM "
				       "quantized_operator WHERE quantization_id = %lld ORDER BY sqnr_db\"", c->db,
				    (long long)c->rec->quantization->id);
}

/* "from generated inputs", since such figures are worth less. */
static const char *on_what(const struct rg_quantization *z)
{
	return z->synthetic ? "generated inputs" : "calibration data";
}

void rg_check_precision_need(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_quantization *z = c->rec->quantization;
	int n = 0, below = 0, worst = -1;

	if (!z) {
		rg_check_unknown(
		    q, "only the precision that the model came with was run",
		    "the output error with each operator alone lowered: for int8  ridge quantize MODEL -o FILE.onnx "
		    "--calibrate DIR  measures it; this version does not lower to fp16, bf16 and int4");
		return;
	}
	for (int i = 0; i < z->n_operators; i++) {
		const struct rg_quantized_row *o = &z->operators[i];

		if (isnan(o->sqnr_db))
			continue;
		n++;
		below += o->sqnr_db < GOOD_DB;
		if (worst < 0 || o->sqnr_db < z->operators[worst].sqnr_db)
			worst = i;
	}
	if (worst < 0) {
		rg_check_unknown(q, "no operator was measured in int8",
				 "an output of float32, which SQNR is measured at");
		return;
	}
	q->verdict = z->operators[worst].sqnr_db < BAD_DB ? RG_VERDICT_PROBLEM :
		     below				  ? RG_VERDICT_ATTENTION : RG_VERDICT_GOOD;
	q->answer = rg_check_text(c, "int8 (%s): %d of %d operators alone leave %d dB or more at the outputs, on %s; "
				     "the worst is '%s' (%s) with %.1f dB; fp16, bf16 and int4 were not measured", z->form, n - below, n,
				  GOOD_DB, on_what(z), z->operators[worst].name, z->operators[worst].op_type,
				  z->operators[worst].sqnr_db);
	rg_check_figure(q, "operators", n, "", RG_PROV_MEASURED);
	rg_check_figure(q, "operators_below_30_db", below, "", RG_PROV_MEASURED);
	rg_check_figure(q, "worst_sqnr", z->operators[worst].sqnr_db, "dB", RG_PROV_MEASURED);
	rg_check_figure(q, "all_sqnr", z->sqnr_db, "dB", RG_PROV_MEASURED);
	evidence(c, q);
}

void rg_check_precision_granularity(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_quantization *z = c->rec->quantization;
	int n = count_quantised(c), weights = 0, gain = 0;
	double most = 0, spread = NAN;

	if (!z) {
		rg_check_unknown(
		    q,
		    n ? rg_check_text(c, "%d steps quantise or dequantise; their ranges were not compared", n)
		      : "no step quantises, so there is no granularity to judge",
		    "the dynamic range of each weight by channel:  ridge quantize MODEL -o FILE.onnx --calibrate DIR  "
		    "compares both");
		rg_check_figure(q, "quantising_steps", n, "", RG_PROV_MODELLED);
		return;
	}
	for (int i = 0; i < z->n_operators; i++) {
		const struct rg_quantized_row *o = &z->operators[i];
		double by = o->weight_per_channel_db - o->weight_per_tensor_db;

		if (isnan(by))
			continue;
		weights++;
		gain += by >= GAIN_DB;
		if (by > most) {
			most = by;
			spread = o->weight_spread;
		}
	}
	q->verdict = !strcmp(z->weights, "per tensor") && gain ? RG_VERDICT_ATTENTION : RG_VERDICT_GOOD;
	q->answer = rg_check_text(c, "weights are %s; a scale a channel gains %d dB or more for %d of %d of them, "
				     "at most %.1f dB%s",
				  z->weights, GAIN_DB, gain, weights, most,
				  q->verdict == RG_VERDICT_GOOD ? "" : ": leave --per-tensor out");
	rg_check_figure(q, "weights", weights, "", RG_PROV_MEASURED);
	rg_check_figure(q, "weights_that_gain", gain, "", RG_PROV_MEASURED);
	rg_check_figure(q, "largest_gain", most, "dB", RG_PROV_MEASURED);
	rg_check_figure(q, "its_spread", spread, "", RG_PROV_MEASURED);
	evidence(c, q);
}

void rg_check_precision_calibration(struct rg_check *c, struct rg_answer *q)
{
	const struct rg_quantization *z = c->rec->quantization;
	double clipped = NAN, drifted = NAN, most;

	if (!z) {
		rg_check_unknown(
		    q, "no range was held against data",
		    "ridge quantize MODEL -o FILE.onnx --calibrate DIR --validate OTHER  with representative inputs");
		return;
	}
	for (int i = 0; i < z->n_operators; i++) {
		const struct rg_quantized_row *o = &z->operators[i];

		clipped = fmax(clipped, o->clipped); /* of NAN and a number the number */
		drifted = fmax(drifted, o->drifted);
	}
	rg_check_figure(q, "samples", z->samples, "", RG_PROV_MEASURED);
	rg_check_figure(q, "most_clipped", clipped, "", RG_PROV_MEASURED);
	rg_check_figure(q, "most_drifted", drifted, "", RG_PROV_MEASURED);
	if (!strcmp(z->form, "dynamic")) {
		q->verdict = RG_VERDICT_GOOD;
		q->answer = "ranges are found as the model runs: nothing is clipped";
	} else if (isnan(clipped)) {
		rg_check_unknown(q, "no range was held against data", "ridge quantize MODEL -o FILE.onnx --calibrate DIR");
	} else if (z->synthetic) {
		q->verdict = RG_VERDICT_ATTENTION;
		q->answer = "the ranges are those of generated inputs, not of data: calibrate with  ridge quantize "
			    "--calibrate DIR";
	} else if (!z->validation_samples) {
		q->verdict = RG_VERDICT_ATTENTION;
		q->answer = rg_check_text(c, "%d sample%s calibrated the ranges (%s), at most %.2f %% of the values of an "
					     "operator are clipped; not held against other data: --validate DIR",
					  z->samples, z->samples == 1 ? "" : "s", z->ranges, 100 * clipped);
	} else {
		most = fmax(clipped, drifted);
		q->verdict = rg_check_grade(most, SOME_CLIPPED, MANY_CLIPPED);
		q->answer = rg_check_text(c, "%d sample%s calibrated the ranges (%s); of the values of an operator at most "
					     "%.2f %% are clipped there, and at most %.2f %% leave the range on %d others",
					  z->samples, z->samples == 1 ? "" : "s", z->ranges, 100 * clipped, 100 * drifted, z->validation_samples);
	}
	evidence(c, q);
}
