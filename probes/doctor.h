/*
 * What this machine lets us measure: perf events, energy, clock, and for each
 * one that is closed, the reason and what would open it. Probes know nothing
 * of the store.
 */
#ifndef RG_PROBES_DOCTOR_H
#define RG_PROBES_DOCTOR_H

struct rg_probe_state {
	char name[48];
	int state;         /* 0 ok, 1 limited, 2 unavailable */
	char detail[256];  /* what was found or the exact refusal */
	char hint[384];    /* what to do; "" nothing */
};

/* Fills up to cap entries; returns the count. Opens and closes what it tries. */
int rg_probe_survey(struct rg_probe_state *out, int cap);

#endif
