/*
 * Where a figure comes from. Every figure that a person can see carries one of
 * these, stored beside it. Missing is never zero: JSON writes null and text
 * writes a dash with the reason.
 */
#ifndef RG_BASE_PROVENANCE_H
#define RG_BASE_PROVENANCE_H

enum rg_provenance {
	RG_PROV_UNAVAILABLE = 0, /* not known; a reason stands in its place */
	RG_PROV_MEASURED,        /* a clock, a counter, a register read it in this run */
	RG_PROV_SIMULATED,       /* a simulator ran the same plan */
	RG_PROV_MODELLED,        /* computed from shapes, loop nests, ceilings */
	RG_PROV_DECLARED,        /* a datasheet, a target description, the OS says so */
};

/* "measured", "simulated", ...: static storage. */
const char *rg_provenance_name(enum rg_provenance p);
/* The reverse; RG_PROV_UNAVAILABLE for an unknown name. */
enum rg_provenance rg_provenance_parse(const char *name);

#endif
