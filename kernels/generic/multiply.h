/*
 * Matrix products of any size on tiles (tile.h): C = epilogue(A B), A m x k,
 * B k x n, C m x n with contiguous rows.
 *
 * The loops are those of Goto and van de Geijn (2008), with one difference: an
 * item of work is a block of C with the whole of k, so that items are independent
 * and lanes share nothing but what was packed before.
 *
 *	item: mc rows x nc columns of C
 *	  blocks of k, kc long
 *	    panels of B, RG_TILE_COLS wide: kc x RG_TILE_COLS stays in L1
 *	      panels of A, mr high: mc x kc stays in L2
 *	        a tile of C, in registers
 *
 * Packed A: panels of mr rows, each k x mr, element (i, r) at i * mr + r. mr is
 * the largest tile that divides m well. Packed B: panels of RG_TILE_COLS columns,
 * each k x RG_TILE_COLS. Both end with zeros where the matrix has ended. What is
 * small enough to stay in the first caches as it lies is not packed.
 */
#ifndef RG_KERNELS_GENERIC_MULTIPLY_H
#define RG_KERNELS_GENERIC_MULTIPLY_H

#include "graph/contrib.h"
#include "kernels/generic/activate.h"

struct rg_matrix {
	const float *data;       /* as it lies; may be NULL when it is packed */
	int64_t row, col;        /* strides in elements; one of them is 1 (or the extent is) */
	const float *packed;     /* NULL: it is not */
};

/* How a product will be done: a function of sizes, lanes and caches alone. */
struct rg_multiply_plan {
	int64_t m, n, k;
	int64_t batch;           /* products; each with its own A, B, C */
	int lanes;
	int64_t mr, mc, nc, kc;
	int64_t row_blocks, col_blocks;
	bool pack_a, pack_b;     /* in this call; false for what came packed or stays as it lies */
	bool as_it_lies;         /* few rows: B is read once, row by row */
	/* Where B is packed: all of it, by all lanes first, where several blocks of rows will read
	 * it; a block of k and columns at a time, by the lane that multiplies it, where only one
	 * does; all of one product, by its lane, in a batch. */
	enum { RG_PACK_SHARED, RG_PACK_BLOCKS, RG_PACK_PRODUCT } pack_b_how;
	int64_t shared_floats, lane_floats; /* scratch */
};

struct rg_multiply {
	struct rg_multiply_plan plan;
	struct rg_matrix a, b;   /* of the first product */
	float *c;
	int64_t c_row;           /* floats from one row of C to the next; >= n */
	const struct rg_epilogue *e; /* never NULL */
	/* Offsets of product i in elements; NULL with batch 1. */
	void (*at)(const struct rg_multiply *mul, int64_t i, int64_t *a, int64_t *b, int64_t *c);
	const void *at_ctx;
	float *scratch;          /* rg_multiply_scratch_bytes() */
};

#define rg_multiply_plan_make RG_LEVEL_FN(rg_multiply_plan_make)
#define rg_multiply_pack_a RG_LEVEL_FN(rg_multiply_pack_a)
#define rg_multiply_pack_b RG_LEVEL_FN(rg_multiply_pack_b)
#define rg_multiply_run RG_LEVEL_FN(rg_multiply_run)
#define rg_multiply_tile RG_LEVEL_FN(rg_multiply_tile)

/* The clip that an activation is, or what finishes it. false: it is none that is done here. */
RG_INLINE bool rg_epilogue_activate(struct rg_epilogue *e, const struct rg_finish *f)
{
	const struct rg_activation *act = &f->act;

	e->clip = act->kind == RG_ACT_RELU || act->kind == RG_ACT_CLIP;
	e->low = act->kind == RG_ACT_CLIP ? (float)act->a : 0;
	e->high = act->kind == RG_ACT_CLIP ? (float)act->b : __builtin_inff();
	e->a = (float)act->a;
	e->b = (float)act->b;
	e->scale = f->scale;
	e->shift = f->shift;
	return rg_activate_find(f, &e->finish);
}

/*
 * Rows of a panel of A: what takes the least, where a row of a tile takes a unit of time, a
 * tile of few rows the latency of its multiply-adds, and its start and end a third of a unit
 * (in thirds). 49 rows are ten tiles of five, not nine of which the last has one row.
 */
RG_INLINE int64_t rg_multiply_mr(int64_t m)
{
	const int64_t least = 3 * rg_min(4, RG_TILE_ROWS);
	int64_t best = RG_TILE_ROWS, best_cost = INT64_MAX;

	if (m <= RG_TILE_ROWS)
		return m > 0 ? m : RG_TILE_ROWS;
	for (int64_t mr = RG_TILE_ROWS; mr > RG_TILE_ROWS / 2; mr--) {
		int64_t rest = m % mr, cost = m / mr * (3 * mr + 1);

		cost += rest ? rg_max(3 * rest, least) + 1 : 0;
		if (cost < best_cost) {
			best = mr;
			best_cost = cost;
		}
	}
	return best;
}

/* Floats of a packed m x k A, of a packed k x n B. */
RG_INLINE int64_t rg_multiply_packed_a_floats(int64_t m, int64_t k)
{
	int64_t mr = rg_multiply_mr(m);

	return (m + mr - 1) / mr * mr * k;
}

RG_INLINE int64_t rg_multiply_packed_b_floats(int64_t n, int64_t k)
{
	return (n + RG_TILE_COLS - 1) / RG_TILE_COLS * RG_TILE_COLS * k;
}

/*
 * Fills the plan. a, b: only their strides are read. a_packed, b_packed: they will come
 * packed. The same arguments give the same plan, so that a kernel makes it once to say how
 * much scratch it needs and again to run. false: a size overflows.
 */
bool rg_multiply_plan_make(struct rg_multiply_plan *p, int64_t m, int64_t n, int64_t k, int64_t batch,
			   const struct rg_matrix *a, bool a_packed, const struct rg_matrix *b, bool b_packed,
			   int lanes);

RG_INLINE size_t rg_multiply_scratch_bytes(const struct rg_multiply_plan *p)
{
	return (size_t)(p->shared_floats + p->lane_floats * p->lanes) * sizeof(float);
}

/* Rows [row, end) of an m x k matrix, row a multiple of mr. `to`: the panel of row. */
void rg_multiply_pack_a(const struct rg_matrix *a, int64_t mr, int64_t k, int64_t row, int64_t end, float *to);
/* Panels [panel, end) of a k x n matrix. `to`: the first of them. */
void rg_multiply_pack_b(const struct rg_matrix *b, int64_t n, int64_t k, int64_t panel, int64_t end, float *to);

/* Runs it, on no more lanes than the plan was made for. Any thread, one at a time for each
 * scratch. */
void rg_multiply_run(const struct rg_multiply *mul, const struct rg_par *par);

/*
 * One tile: rows <= RG_TILE_ROWS, t->cols <= RG_TILE_COLS, for those who pack for
 * themselves. B has RG_TILE_COLS readable columns, or RG_VEC where t->cols is not more.
 */
void rg_multiply_tile(int64_t rows, int64_t k, const float *a, int64_t a_stride, bool a_by_row, const float *b,
		      int64_t b_step, const struct rg_tile *t);

#endif
