/*
 * Every variant of every operator against its scalar reference.
 *
 * The registry says what there is to check: each kernel that is no reference
 * itself needs a family of its operator, which makes seeded random calls (families.c
 * lists them; CK_FAMILY entries in family-*.c). A case is made from its seed
 * alone, so a failure is replayed by that number.
 *
 * A case runs with the values of its weights unknown and known, on 1, 2 and 3
 * lanes, and each time: outputs, scratch and packed weights lie between canaries
 * and full of a pattern that changes from run to run; inputs end at, or begin
 * behind, a page that cannot be read, and must not change; what a kernel has
 * packed (rg_kernel.packs) is not there when it runs. Where a kernel may write over an
 * input (rg_kernel.in_place), it does that too, input by input. Every element of every
 * output is held against the reference within the bound of its family.
 */
#ifndef RG_TESTS_KERNELS_CHECK_H
#define RG_TESTS_KERNELS_CHECK_H

#include "nn-case.h"

/* ---- making cases ---- */

/* Where a case gets its numbers from. */
struct ck_gen {
	uint64_t seed, stream, at;
};

/* Whole numbers, both ends included. */
int64_t ck_between(struct ck_gen *g, int64_t lo, int64_t hi);
bool ck_chance(struct ck_gen *g, int percent);
/* A size up to `most`: 0 now and then, else 1, or one near a multiple of 4, 8, 16
 * or 32, or any. */
int64_t ck_size(struct ck_gen *g, int64_t most);
/* The same without 0. */
int64_t ck_some(struct ck_gen *g, int64_t most);
/* Sizes of one vector and more, in the order of the seeds, so that consecutive
 * ones meet them all. */
int64_t ck_length(struct ck_gen *g);
/* For sums of products; for functions of one element after the other. */
enum nn_fill ck_fill(struct ck_gen *g);
enum nn_fill ck_fill_elements(struct ck_gen *g);
/* One of n. */
#define CK_PICK(g, list) ((list)[ck_between(g, 0, (int64_t)(sizeof(list) / sizeof((list)[0])) - 1)])

/* ---- families ---- */

enum ck_measure {
	/* The same bits: for what only moves elements. */
	CK_EXACT,
	/* `ulps` units in the last place of the reference's value, plus `floor`. NaN is as
	 * good as NaN, 0 as -0. Elements that are not float32 are the same bits. */
	CK_ULPS,
	/*
	 * A sum of `terms` products: |computed - exact| <= terms u sum|a||b| in any order
	 * of summation (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
	 * section 3.1; u = 2^-24 for float). sum|a||b| is what the reference makes of
	 * the absolute values of all float inputs and attributes. `ulps` is added to
	 * terms: for bias, scaling, division. A fused activation, which spreads no difference,
	 * is left out of sum|a||b| and adds 8 units of its result. Where everything is a small whole number
	 * and whole_is_exact, the bound is 0.
	 */
	CK_SUM,
	/* tolerance() says it for each element of output 0. */
	CK_OWN,
};

struct ck_family {
	const char *domain, *op_type;
	/* Fills a started case; its call must be valid. */
	void (*make)(struct nn_case *t, struct ck_gen *g);
	enum ck_measure measure;
	double ulps, floor;
	double (*terms)(const struct nn_case *t);
	bool whole_is_exact;
	bool mean;                /* the sum is divided by its number of terms: on the way it is larger */
	void (*tolerance)(const struct nn_case *t, const float *want, double *out);
	/* Call number i of a benchmark, of realistic size; false: there are no more.
	 * NULL: none. */
	bool (*bench)(struct nn_case *t, int i);
};
/* The tables of family-*.c. */
struct ck_family_table {
	const struct ck_family *families;
	int count;
};
#define CK_FAMILY_TABLE(name, array) \
	const struct ck_family_table name = { array, (int)(sizeof(array) / sizeof((array)[0])) }
extern const struct ck_family_table ck_families_attention, ck_families_bytes, ck_families_cast, ck_families_chain, ck_families_copy, ck_families_fused, ck_families_math,
	ck_families_move, ck_families_nn, ck_families_norm, ck_families_pair, ck_families_quant, ck_families_reduce, ck_families_rnn;

const struct ck_family *ck_family_find(const char *domain, const char *op_type);
const struct ck_family *ck_family_at(int i); /* NULL after the last */

/*
 * A variant whose error is larger by its nature, as that of a convolution by
 * Winograd's method: its bound is this many times that of the family, and
 * whole_is_exact does not hold.
 */
struct ck_looser {
	const char *op_type, *kernel; /* how the kernel's name begins */
	double factor;
	const char *why;
	bool spreads;                 /* what is not finite goes to outputs that do not depend on it */
};
const struct ck_looser *ck_looser_find(const struct rg_kernel *k);

/* ---- checking ---- */

struct ck_options {
	uint64_t seed;            /* of the first case; the next have the numbers that follow */
	int cases;
	uint32_t isa;             /* bits that may be used */
	int seconds;              /* a case may take; 0: 30 */
};

enum ck_status { CK_PASSED, CK_FAILED, CK_SKIPPED };

struct ck_result {
	enum ck_status status;
	char message[1200];       /* what failed, or why it was skipped */
	uint64_t seed;            /* of the case that failed */
	char what[400];           /* the call, and how it was run */
	int cases, runs;          /* cases that the kernel took; runs compared */
	int in_place;             /* of those runs, the ones over an input */
	int64_t elements;         /* compared */
	double worst;             /* largest error, as a share of its bound */
};

/* "ref", and "text", which is the reference for strings. */
bool ck_is_reference(const struct rg_kernel *k);
/* In a child process: whatever the kernel does, this returns. */
void ck_check(const struct rg_kernel *k, const struct ck_options *opt, struct ck_result *out);

/* In this process, for debuggers; and what ck_check's child does. */
void ck_check_here(const struct rg_kernel *k, const struct ck_family *f, const struct ck_options *opt,
		   struct ck_result *out);

/* check-bounds.c: fills out[] with the tolerance of every element of output `o`, given
 * what the reference made of it; NAN: any value will do. */
bool ck_tolerance(const struct ck_family *f, const struct rg_kernel *k, struct nn_case *t, int o,
		  const struct rg_tensor *want, double *out, char *why, size_t why_size);
/* Compares; false with the message in `why`. */
bool ck_compare(const struct ck_family *f, const struct rg_tensor *want, const struct rg_tensor *got,
		const double *tolerance, double *worst, char *why, size_t why_size);
/* The reference, on one lane, into memory of its own (free). */
int ck_reference(struct nn_case *t, void **out, struct rg_error *err);

/* A case of a family, inferred; false with the reason. */
bool ck_make(const struct ck_family *f, uint64_t seed, struct nn_case *t, struct rg_error *err);

/* check-bench.c */
int ck_bench(const struct rg_kernel *k, uint32_t isa);

#endif
