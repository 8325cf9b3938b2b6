/*
 * Questions about precision. None can be answered from one recording at one
 * precision; each says what would answer it.
 */
#include <string.h>

#include "analyzer/check-internal.h"

/* How many steps compute in which type: what can be said already. */
static int count_quantised(const struct rg_check *c)
{
	int n = 0;

	for (int i = 0; i < c->rec->n_steps; i++)
		n += strcmp(c->rec->steps[i].op_kind, "quant") == 0;
	return n;
}

void rg_check_precision_need(struct rg_check *c, struct rg_answer *q)
{
	rg_check_unknown(
	    q, "only the precision that the model came with was run",
	    "the output error with each operator alone lowered to fp16, bf16, int8 and int4; this version "
	    "cannot lower an operator: compare the outputs of two models with  ridge run MODEL --output-dir "
	    "DIR");
}

void rg_check_precision_granularity(struct rg_check *c, struct rg_answer *q)
{
	int n = count_quantised(c);

	rg_check_unknown(
	    q,
	    n ? rg_check_text(c, "%d steps quantise or dequantise; their ranges were not compared", n)
	      : "no step quantises, so there is no granularity to judge",
	    "the dynamic range of each weight by channel, which this version does not record");
	rg_check_figure(q, "quantising_steps", n, "", RG_PROV_MODELLED);
}

void rg_check_precision_calibration(struct rg_check *c, struct rg_answer *q)
{
	rg_check_unknown(
	    q, "no range was held against data",
	    "representative inputs (--input NAME=FILE.npy) and the ranges seen with them, which this version "
	    "does not record");
}
