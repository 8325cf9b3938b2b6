/*
 * Kernels that are one elementwise node: from a list X(domain, op_type, name) and
 * the functions node_NAME come the table of kernels and the family beside it.
 */
#ifndef RG_KERNELS_GENERIC_EWISE_KERNEL_H
#define RG_KERNELS_GENERIC_EWISE_KERNEL_H

#include "kernels/ewise.h"
#include "kernels/generic/generic.h"

#define RG_EW_DEFINE(DOMAIN, OP, NAME) \
	static bool supports_##NAME(const struct rg_call *c) \
	{ \
		return rg_ew_call_supports(c, node_##NAME); \
	} \
	static int run_##NAME(const struct rg_call *c, const struct rg_par *par, struct rg_error *err) \
	{ \
		return rg_ew_call_run(c, node_##NAME, par, err); \
	} \
	static void traffic_##NAME(const struct rg_call *c, struct rg_traffic *out) \
	{ \
		rg_ew_call_traffic(c, node_##NAME, out); \
	}
#define RG_EW_ENTRY(DOMAIN, OP, NAME) \
	{ .op_type = OP, .domain = DOMAIN, .name = RG_LEVEL_NAME("loops"), .isa = RG_LEVEL_ISA, \
	  .rank = 20 + RG_LEVEL_RANK, .in_place = UINT32_MAX, .supports = supports_##NAME, .traffic = traffic_##NAME, \
	  .run = run_##NAME },
#define RG_EW_NODE(DOMAIN, OP, NAME) node_##NAME,

#define RG_EW_FAMILY(FAMILY, LIST) \
	LIST(RG_EW_DEFINE) \
	static const struct rg_kernel kernels[] = { LIST(RG_EW_ENTRY) }; \
	static rg_ew_node *const nodes[] = { LIST(RG_EW_NODE) }; \
	RG_KERNEL_TABLE(RG_LEVEL_TABLE(FAMILY), kernels); \
	const struct rg_ew_family RG_LEVEL_EWISE(FAMILY) = { &RG_LEVEL_TABLE(FAMILY), nodes }

/*
 * Before the loop of a row function: iterations do not depend on each other. Output and
 * input may be one memory (rg_ew_fn), so `restrict` would not be true, and
 * without either compilers look for overlaps as it runs.
 */
#ifdef __clang__
#define RG_EW_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define RG_EW_LOOP _Pragma("GCC ivdep")
#endif

/* Accepted sets of one-element operands (rg_ew_op.accepts). */
enum {
	RG_EW_ROWS = 1 << 0,
	RG_EW_EITHER = 1 << 0 | 1 << 1 | 1 << 2, /* of two operands, either one */
};

/* A row function of two operands of type T, x and z, with result R. */
#define RG_EW_PAIR(NAME, T, R, EXPR) \
	static void NAME(void *out, const struct rg_ew_args *p, int64_t n) \
	{ \
		const T *a = p->in[0], *b = p->in[1]; \
		R *y = out; \
\
		if (p->single == 0) { \
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) { \
				const T x = a[i], z = b[i]; \
\
				y[i] = (R)(EXPR); \
			} \
		} else if (p->single == 2) { \
			const T z = *b; \
\
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) { \
				const T x = a[i]; \
\
				y[i] = (R)(EXPR); \
			} \
		} else { \
			const T x = *a; \
\
			RG_EW_LOOP \
			for (int64_t i = 0; i < n; i++) { \
				const T z = b[i]; \
\
				y[i] = (R)(EXPR); \
			} \
		} \
	}

/* Input i is there and of this type. */
RG_INLINE bool rg_ew_is(const struct rg_call *c, int i, enum rg_dtype t)
{
	return i < c->node->n_in && c->in[i].dtype == t;
}

#endif
