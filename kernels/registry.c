/*
 * The registry: one list of the tables, and look-ups over it, by operator in an
 * index that the first look-up sorts. They happen once a step while planning,
 * never during a run.
 */
#include "kernels/kernel.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/proof.h"
#include "kernels/tables.h"

static const struct rg_kernel_table *const tables[] = {
	&rg_kernels_blas_conv,
	&rg_kernels_blas_conv_transpose,
	&rg_kernels_blas_gemm,
	RG_GENERIC_TABLE_LIST(argmax),
	RG_GENERIC_TABLE_LIST(attention),
	RG_GENERIC_TABLE_LIST(attention_gqa),
	RG_GENERIC_TABLE_LIST(attention_mha),
	RG_GENERIC_TABLE_LIST(binary),
	RG_BYTE_TABLE_LIST(byte_conv),
	RG_GENERIC_TABLE_LIST(byte_depthwise),
	RG_GENERIC_TABLE_LIST(byte_ewise),
	RG_BYTE_TABLE_LIST(byte_gemm),
	RG_GENERIC_TABLE_LIST(cast),
	RG_GENERIC_TABLE_LIST(chain),
	RG_GENERIC_TABLE_LIST(channelnorm),
	RG_GENERIC_TABLE_LIST(conv),
	RG_GENERIC_TABLE_LIST(conv_transpose),
	RG_GENERIC_TABLE_LIST(depthwise),
	RG_GENERIC_TABLE_LIST(depthwise_channels),
	RG_GENERIC_TABLE_LIST(direct),
	RG_GENERIC_TABLE_LIST(fused),
	RG_GENERIC_TABLE_LIST(gemm),
	RG_GENERIC_TABLE_LIST(layernorm),
	RG_GENERIC_TABLE_LIST(logic),
	RG_GENERIC_TABLE_LIST(pool),
	RG_GENERIC_TABLE_LIST(pool_byte),
	RG_GENERIC_TABLE_LIST(quantize),
	RG_GENERIC_TABLE_LIST(reduce),
	RG_GENERIC_TABLE_LIST(resize),
	RG_GENERIC_TABLE_LIST(rnn),
	RG_GENERIC_TABLE_LIST(rotary),
	RG_GENERIC_TABLE_LIST(softmax),
	RG_GENERIC_TABLE_LIST(unary),
	RG_GENERIC_TABLE_LIST(winograd),
	RG_GENERIC_TABLE_LIST(variadic),
	&rg_kernels_generic_move,
	&rg_kernels_generic_rows,
	&rg_kernels_ref_attention,
	&rg_kernels_ref_binary,
	&rg_kernels_ref_cast,
	&rg_kernels_ref_chain,
	&rg_kernels_ref_contrib_fused,
	&rg_kernels_ref_contrib_gelu,
	&rg_kernels_ref_contrib_qattention,
	&rg_kernels_ref_contrib_qgemm,
	&rg_kernels_ref_contrib_qlinear,
	&rg_kernels_ref_contrib_qpool,
	&rg_kernels_ref_contrib_weights,
	&rg_kernels_ref_conv,
	&rg_kernels_ref_conv_integer,
	&rg_kernels_ref_conv_transpose,
	&rg_kernels_ref_deform_conv,
	&rg_kernels_ref_dft,
	&rg_kernels_ref_distinct,
	&rg_kernels_ref_einsum,
	&rg_kernels_ref_gather,
	&rg_kernels_ref_geometry,
	&rg_kernels_ref_gqa,
	&rg_kernels_ref_grid_sample,
	&rg_kernels_ref_linear_attention,
	&rg_kernels_ref_look_up,
	&rg_kernels_ref_loss,
	&rg_kernels_ref_make,
	&rg_kernels_ref_matmul,
	&rg_kernels_ref_matmul_integer,
	&rg_kernels_ref_mha,
	&rg_kernels_ref_ml,
	&rg_kernels_ref_ml_linear,
	&rg_kernels_ref_norm,
	&rg_kernels_ref_pad,
	&rg_kernels_ref_pool,
	&rg_kernels_ref_quant,
	&rg_kernels_ref_random,
	&rg_kernels_ref_reduce,
	&rg_kernels_ref_resize,
	&rg_kernels_ref_rnn,
	&rg_kernels_ref_roi,
	&rg_kernels_ref_rotary,
	&rg_kernels_ref_scatter,
	&rg_kernels_ref_select,
	&rg_kernels_ref_skip_norm,
	&rg_kernels_ref_slice,
	&rg_kernels_ref_softmax,
	&rg_kernels_ref_text,
	&rg_kernels_ref_text_cast,
	&rg_kernels_ref_tfidf,
	&rg_kernels_ref_topk,
	&rg_kernels_ref_train,
	&rg_kernels_ref_transpose,
	&rg_kernels_ref_trees,
	&rg_kernels_ref_unary,
	&rg_kernels_ref_variadic,
	&rg_kernels_ref_view,
	&rg_kernels_ref_window,
};
#define MAX_KERNELS 4096
#define N_TABLES ((int)(sizeof(tables) / sizeof(tables[0])))

static const struct rg_kernel_table none;
static const struct rg_kernel_table *injected = &none;

void rg_kernel_inject(const struct rg_kernel_table *table)
{
	injected = table;
}

static const struct rg_kernel_table *table_at(int t)
{
	return t < N_TABLES ? tables[t] : t == N_TABLES ? injected : NULL;
}

int rg_kernel_count(void)
{
	const struct rg_kernel_table *table;
	int n = 0;

	for (int t = 0; (table = table_at(t)); t++)
		n += table->count;
	return n;
}

const struct rg_kernel *rg_kernel_at(int i)
{
	const struct rg_kernel_table *table;

	if (i < 0)
		return NULL;
	for (int t = 0; (table = table_at(t)); t++) {
		if (i < table->count)
			return &table->kernels[i];
		i -= table->count;
	}
	return NULL;
}

/* "ai.onnx" and no domain at all are the standard one. */
static const char *plain_domain(const char *domain)
{
	return !domain || !strcmp(domain, "ai.onnx") ? "" : domain;
}

/* ---- by operator ---- */

static const struct rg_kernel **sorted; /* by operator, then as the tables list them */
static int n_sorted;
static pthread_once_t sorted_once = PTHREAD_ONCE_INIT;

struct entry {
	const struct rg_kernel *k;
	int order;
};

static int compare(const char *op_type, const char *domain, const struct rg_kernel *k)
{
	int c = strcmp(op_type, k->op_type);

	return c ? c : strcmp(domain, plain_domain(k->domain));
}

static int compare_entries(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;
	int c = compare(a->k->op_type, plain_domain(a->k->domain), b->k);

	return c ? c : a->order - b->order;
}

/* Lives as long as the process; not made through rg_alloc, whose failures are for
 * those who can report them. */
static void sort_kernels(void)
{
	static const struct rg_kernel *room[MAX_KERNELS];
	static struct entry all[MAX_KERNELS];
	const struct rg_kernel_table *table;

	for (int t = 0; (table = table_at(t)); t++)
		for (int i = 0; i < table->count && n_sorted < MAX_KERNELS; i++, n_sorted++)
			all[n_sorted] = (struct entry){ &table->kernels[i], n_sorted };
	qsort(all, (size_t)n_sorted, sizeof(all[0]), compare_entries);
	for (int i = 0; i < n_sorted; i++)
		room[i] = all[i].k;
	sorted = room;
}

int rg_kernel_list(const char *domain, const char *op_type, const struct rg_kernel *const **out)
{
	int low = 0, high, n = 0;

	domain = plain_domain(domain);
	pthread_once(&sorted_once, sort_kernels);
	high = n_sorted;
	while (low < high) {
		int mid = low + (high - low) / 2;

		if (compare(op_type, domain, sorted[mid]) > 0)
			low = mid + 1;
		else
			high = mid;
	}
	*out = sorted + low;
	while (low + n < n_sorted && compare(op_type, domain, sorted[low + n]) == 0)
		n++;
	return n;
}

const struct rg_kernel *rg_kernel_find(const char *domain, const char *op_type, const char *name)
{
	const struct rg_kernel *const *list;
	int n = rg_kernel_list(domain, op_type, &list);

	for (int i = 0; i < n; i++)
		if (!strcmp(list[i]->name, name))
			return list[i];
	return NULL;
}

bool rg_kernel_is_one_of(const struct rg_kernel *k, int n_names, const char *const *names)
{
	for (int i = 0; i < n_names; i++)
		if (!strcmp(names[i], k->name))
			return true;
	return false;
}

double rg_kernel_cost(const struct rg_kernel *k, const struct rg_call *c)
{
	return k->cost ? k->cost(c) : INFINITY;
}

const struct rg_kernel *rg_kernel_select_without(const struct rg_call *c, uint32_t isa, int n_without,
						 const char *const *without)
{
	const struct rg_kernel *best = NULL, *const *list;
	int n = rg_kernel_list(c->node->domain, c->node->op_type, &list);
	double least = INFINITY;

	for (int i = 0; i < n; i++) {
		const struct rg_kernel *k = list[i];
		double cost;

		if ((k->isa & ~isa) || (best && k->rank < best->rank) || rg_kernel_is_one_of(k, n_without, without) ||
		    (k->supports && !k->supports(c)))
			continue;
		cost = rg_kernel_cost(k, c);
		if (best && k->rank == best->rank && !(cost < least))
			continue;
		if (rg_kernel_refusal(k)) /* last: it may have to be checked first */
			continue;
		best = k;
		least = cost;
	}
	return best;
}

const struct rg_kernel *rg_kernel_select(const struct rg_call *c, uint32_t isa)
{
	return rg_kernel_select_without(c, isa, 0, NULL);
}
