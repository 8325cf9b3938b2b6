/* The list of the passes, and what they note. See pass.h. */
#include "compile/pass.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/passes.h"

static const struct rg_pass *const passes[] = {
	&rg_pass_no_op,
	&rg_pass_expand,
	&rg_pass_hard_swish,
	&rg_pass_gelu,
	&rg_pass_silu,
	&rg_pass_layer_norm,
	&rg_pass_softmax,
	&rg_pass_rotary,
	&rg_pass_attention,
	&rg_pass_common,
	&rg_pass_qdq_move,
	&rg_pass_qdq_product,
	&rg_pass_qdq_ewise,
	&rg_pass_dynamic_product,
	&rg_pass_matmul_add,
	&rg_pass_matmul_flat,
	&rg_pass_transpose_merge,
	&rg_pass_reshape_merge,
	&rg_pass_pad_merge,
	&rg_pass_conv_affine,
	&rg_pass_conv_input,
	&rg_pass_affine_blocked,
	&rg_pass_conv_epilogue,
	&rg_pass_epilogue,
	&rg_pass_skip_layer_norm,
	&rg_pass_chain,
};
enum { N_PASSES = sizeof(passes) / sizeof(passes[0]) };

static const struct rg_pass *injected;

void rg_pass_inject(const struct rg_pass *pass)
{
	injected = pass;
}

int rg_pass_count(void)
{
	return N_PASSES + (injected != NULL);
}

const struct rg_pass *rg_pass_at(int i)
{
	return i < N_PASSES ? passes[i] : injected;
}

const char *rg_decline_name(enum rg_decline d)
{
	static const char *const names[RG_DECLINE_COUNT] = {
		[RG_DECLINE_NONE] = "",
		[RG_DECLINE_SECOND_CONSUMER] = "second consumer",
		[RG_DECLINE_GRAPH_OUTPUT] = "graph output",
		[RG_DECLINE_NOT_CONSTANT] = "not constant",
		[RG_DECLINE_TYPE] = "type",
		[RG_DECLINE_BROADCASTING] = "broadcasting",
		[RG_DECLINE_DYNAMIC] = "dynamic shape",
		[RG_DECLINE_ATTRIBUTE] = "attribute",
		[RG_DECLINE_RANGE] = "range of numbers",
		[RG_DECLINE_KERNEL] = "no faster kernel",
		[RG_DECLINE_NO_PATTERN] = "no pattern",
	};

	return names[d];
}

void rg_pass_log_free(struct rg_pass_log *log)
{
	rg_free(log->notes);
	*log = (struct rg_pass_log){ 0 };
}

int rg_pass_note(struct rg_pass_log *log, const struct rg_pass_note *note, struct rg_error *err)
{
	if (log->n_notes == log->room) {
		int room = log->room ? 2 * log->room : 64;
		struct rg_pass_note *more = rg_calloc((size_t)room, sizeof(*more));

		if (!more)
			return rg_error_nomem(err, (size_t)room * sizeof(*more));
		if (log->n_notes)
			memcpy(more, log->notes, (size_t)log->n_notes * sizeof(*more));
		rg_free(log->notes);
		log->notes = more;
		log->room = room;
	}
	log->notes[log->n_notes++] = *note;
	log->n_rewritten += note->decline == RG_DECLINE_NONE;
	return 0;
}

static void drop_declines(struct rg_pass_log *log, int begin)
{
	int kept = begin;

	for (int i = begin; i < log->n_notes; i++)
		if (!log->notes[i].decline || log->notes[i].settled)
			log->notes[kept++] = log->notes[i];
	log->n_notes = kept;
}

static int check_disabled(const struct rg_pass_options *o, struct rg_error *err)
{
	for (int i = 0; i < o->n_disabled; i++) {
		bool found = false;

		for (int k = 0; k < rg_pass_count(); k++)
			found = found || !strcmp(rg_pass_at(k)->name, o->disabled[i]);
		if (!found)
			return rg_error_set(err, -EINVAL, "there is no pass '%s'", o->disabled[i]);
	}
	return 0;
}

static bool runs(const struct rg_pass_options *o, const struct rg_pass *pass)
{
	if (pass->level > o->level || (o->portable ? pass->own_only != NULL : pass->foreign))
		return false;
	for (int i = 0; i < o->n_disabled; i++)
		if (!strcmp(o->disabled[i], pass->name))
			return false;
	return true;
}

/* Until it finds nothing: what a rewrite leaves can be the beginning of the next. Declines are noted
 * for the last round only, which sees what is left. */
static int run_pass(const struct rg_pass *pass, struct rg_graph *g, struct rg_pass_log *log, struct rg_error *err)
{
	int begin = log->n_notes, rc;

	for (;;) {
		rc = pass->run(g, log, err);
		if (rc <= 0)
			return rc;
		drop_declines(log, begin);
	}
}

static int by_subject(const void *pa, const void *pb)
{
	const struct rg_pass_note *a = *(const struct rg_pass_note *const *)pa, *b = *(const struct rg_pass_note *const *)pb;
	int c = strcmp(a->node, b->node);

	c = c ? c : strcmp(a->into, b->into);
	c = c ? c : (int)a->decline - (int)b->decline;
	return c ? c : (a > b) - (a < b);
}

/* Two passes may decline the same pair for the same reason: the first says it. What one declined another, or a
 * later round, may have done all the same: then nothing is left to say. */
static int merge_declines(struct rg_pass_log *log, struct rg_error *err)
{
	size_t n = (size_t)log->n_notes;
	const struct rg_pass_note **order = rg_calloc(n + 1, sizeof(*order));
	unsigned char *again = rg_calloc(n + 1, 1);
	bool done = false;
	int kept = 0;

	if (!order || !again) {
		rg_free(order);
		rg_free(again);
		return rg_error_nomem(err, n * sizeof(*order));
	}
	for (size_t i = 0; i < n; i++)
		order[i] = &log->notes[i];
	qsort(order, n, sizeof(*order), by_subject);
	for (size_t i = 1; i < n; i++) {
		bool same = !strcmp(order[i]->node, order[i - 1]->node) && !strcmp(order[i]->into, order[i - 1]->into);

		done = same && (done || !order[i - 1]->decline); /* rewrites come first */
		again[order[i] - log->notes] = order[i]->decline &&
					       (done || (same && order[i]->decline == order[i - 1]->decline));
	}
	for (size_t i = 0; i < n; i++)
		if (!again[i])
			log->notes[kept++] = log->notes[i];
	log->n_notes = kept;
	rg_free(order);
	rg_free(again);
	return 0;
}

/* All of them once. Returns the number of rewrites. */
static int run_all(struct rg_graph *g, const struct rg_pass_options *o, struct rg_pass_log *log, struct rg_error *err)
{
	int rc = 0, begin = log->n_rewritten;

	for (int k = 0; k < rg_pass_count() && rc >= 0; k++) {
		const struct rg_pass *pass = rg_pass_at(k);
		int before = log->n_rewritten;

		if (!runs(o, pass))
			continue;
		rc = run_pass(pass, g, log, err);
		if (rc >= 0 && o->after && log->n_rewritten > before)
			rc = o->after(o->after_ctx, pass, g, log, err);
	}
	return rc < 0 ? rc : log->n_rewritten - begin;
}

/* What a pass leaves can be work for one before it. It ends of itself after a few rounds; a graph made to
 * take many is left as it is then. */
enum { MOST_ROUNDS = 8 };

int rg_passes_run(struct rg_graph *g, const struct rg_pass_options *o, struct rg_pass_log *log, struct rg_error *err)
{
	int rc = check_disabled(o, err);

	log->level = o->level;
	log->limit = o->limit;
	log->n_pinned = o->n_pinned;
	log->pinned = o->pinned;
	for (int round = 0; round < MOST_ROUNDS && rc >= 0; round++) {
		drop_declines(log, 0);
		rc = run_all(g, o, log, err);
		if (rc == 0)
			break;
	}
	return rc < 0 ? rc : merge_declines(log, err);
}
