/*
 * The kernel registry: for each operator the functions that can run it.
 *
 * A kernel is a constant entry. Selection (src/compile/select.h) asks
 * supports() of every entry for the operator, drops those whose ISA this CPU
 * (or --isa) does not allow, and takes the highest rank; where several have it, the
 * one whose cost() for this call is least. The scalar reference ("ref", rank 0) is
 * always there and is the oracle for the others.
 *
 * Rules for a kernel function: no allocation, no system call, no static state;
 * scratch comes from the plan; every byte of every output is written; inputs
 * and outputs do not overlap unless they are the same pointer, and the operator is
 * RG_OP_VIEW or the kernel allows it (in_place). Reference kernels run on the caller alone and are deterministic.
 */
#ifndef RG_KERNELS_KERNEL_H
#define RG_KERNELS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "kernels/par.h"

/*
 * One call. in and out have node->n_in and node->n_out entries; absent ones
 * are RG_UNDEFINED with NULL data. While planning (supports, scratch_bytes,
 * prepared_bytes, prepare, traffic) only constants have data.
 */
struct rg_call {
	const struct rg_node *node;
	const struct rg_tensor *in;
	const struct rg_tensor *out;
	const void *prepared;   /* what prepare() wrote, 64-aligned; NULL when nothing */
	void *scratch;          /* scratch_bytes(), 64-aligned; NULL when 0 */
	struct rg_arena *text;  /* where a kernel that makes strings puts their characters, which
	                           live until the next run: the one allocation allowed to it */
};

struct rg_traffic {
	int64_t executed_flops;  /* -1 unknown; includes padding and transforms */
	int64_t read_bytes, write_bytes; /* moved between registers and L1; -1 unknown */
};

enum rg_kernel_flags {
	/* No test machine has run it: it is chosen only after a self-check against the
	 * reference (kernels/proof.h), which its operator must have calls for. */
	RG_KERNEL_UNPROVEN = 1u << 0,
};

struct rg_kernel {
	const char *op_type;
	const char *domain;      /* "" */
	const char *name;        /* "ref", "openblas", "depthwise", ... stored with every span */
	uint32_t isa;            /* bits of enum rg_isa that it needs; 0: any CPU */
	int rank;                /* ref is 0; among those that support a call the highest wins */
	uint32_t flags;          /* bits of enum rg_kernel_flags */
	/* Can it run this call? NULL: any types and shapes that inference accepts. */
	bool (*supports)(const struct rg_call *c);
	/*
	 * An estimate of what this call takes, for the choice between kernels of the same rank: in
	 * times of one vector multiply-add, on one core, caches warm. The factors in it are
	 * measured (docs/kernels.md says how and how far off they are). NULL: unknown; one with
	 * an estimate is preferred, else the first in the tables.
	 */
	double (*cost)(const struct rg_call *c);
	/* Scratch for `lanes` lanes. NULL: none. */
	size_t (*scratch_bytes)(const struct rg_call *c, int lanes);
	/* Packed weights and the like, made once at plan time. NULL: none. */
	size_t (*prepared_bytes)(const struct rg_call *c);
	int (*prepare)(const struct rg_call *c, void *prepared, struct rg_error *err);
	/* Bit i: what run() needs of input i when that is constant, prepare() has taken;
	 * its data may be gone (NULL) by then. */
	uint32_t packs;
	/* Bit i: output 0 may be the memory of input i, where both are of the same type and
	 * shape and no other input is part of it. */
	uint32_t in_place;
	/* Declared traffic. NULL: unknown. */
	void (*traffic)(const struct rg_call *c, struct rg_traffic *out);
	/* Runs it. 0 or an error: only for what data can cause (an index out of
	 * range); the message names no node, the executor adds it. */
	int (*run)(const struct rg_call *c, const struct rg_par *par, struct rg_error *err);
};

/* All kernels compiled in, grouped by file. */
int rg_kernel_count(void);
const struct rg_kernel *rg_kernel_at(int i);
/* All kernels of an operator, in the order of the tables; returns how many. */
int rg_kernel_list(const char *domain, const char *op_type, const struct rg_kernel *const **out);
/* The kernel of that name for an operator, or NULL. */
const struct rg_kernel *rg_kernel_find(const char *domain, const char *op_type, const char *name);
/* The kernel's estimate for a call, see cost; infinite where it has none. */
double rg_kernel_cost(const struct rg_kernel *k, const struct rg_call *c);
/* The best one for a call within `isa`, or NULL when there is none. One that needs a
 * self-check and fails it is passed over (rg_kernel_refusal says why). */
const struct rg_kernel *rg_kernel_select(const struct rg_call *c, uint32_t isa);
/* The same among those that do not have one of these names (--without-kernel). */
const struct rg_kernel *rg_kernel_select_without(const struct rg_call *c, uint32_t isa, int n_without,
						 const char *const *without);
/* Whether a kernel is called so. */
bool rg_kernel_is_one_of(const struct rg_kernel *k, int n_names, const char *const *names);

/* A family of kernels in one file: its table, listed in registry.c. */
struct rg_kernel_table {
	const struct rg_kernel *kernels;
	int count;
};
/* For tests: kernels beside those that are compiled in. Before the first look-up only. */
void rg_kernel_inject(const struct rg_kernel_table *table);

#define RG_KERNEL_TABLE(name, array) \
	const struct rg_kernel_table name = { array, (int)(sizeof(array) / sizeof((array)[0])) }

#endif
