/*
 * Recordings made by hand, in memory, as the store would load them.
 */
#ifndef RG_TESTS_MAKE_RECORDING_H
#define RG_TESTS_MAKE_RECORDING_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

/* Room for so many of each; adding more is a bug of the test and asserts. */
#define MK_MAX 512
#define MK_MAX_SPANS 20000

struct mk {
	struct rg_recording rec;
	struct rg_fact facts[MK_MAX];
	struct rg_ceiling_row ceilings[MK_MAX];
	struct rg_tensor_row tensors[MK_MAX];
	struct rg_step_row steps[MK_MAX];
	struct rg_io_row io[MK_MAX];
	struct rg_edge_row edges[8 * MK_MAX];
	struct rg_iteration_row iterations[4 * MK_MAX];
	struct rg_span_row spans[MK_MAX_SPANS];
	struct rg_note_row notes[MK_MAX];
};

/* An empty recording of a complete run with `threads` threads. */
struct mk *mk_new(int threads);
void mk_free(struct mk *m);
void mk_fact_i(struct mk *m, const char *key, int64_t v, const char *unit);
void mk_fact_t(struct mk *m, const char *key, const char *v);
/* A measured ceiling of float32, spread 1 % to both sides. */
void mk_ceiling(struct mk *m, const char *level, double value);
/* The same of a form of the exact product of bytes. */
void mk_int8_ceiling(struct mk *m, const char *level, double value);
/* Returns the new step; counts are those given, what is not given is -1. */
struct rg_step_row *mk_step(struct mk *m, const char *name, const char *op_type, const char *op_kind,
			    int64_t flops, int64_t bytes);
struct rg_tensor_row *mk_tensor(struct mk *m, const char *name, const char *shape, int64_t size_bytes,
				const char *place);
void mk_io(struct mk *m, int step, bool output, int slot, int tensor);
void mk_edge(struct mk *m, int from, int to);
int mk_iteration(struct mk *m, const char *pass, bool hook_on, int64_t start_ns, int64_t end_ns);
void mk_span(struct mk *m, int iteration, int step, int lane, int whole, int64_t start_ns, int64_t end_ns);
void mk_note(struct mk *m, const char *kind, const char *subject, const char *text);

#endif
