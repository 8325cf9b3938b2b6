/*
 * Branch and bound over placements, after Moffitt, "MiniMalloc: A Lightweight
 * Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023
 * (volume 4, pages 238-252, doi 10.1145/3623278.3624752).
 *
 * Canonical placements. Push every buffer down until it rests on another one or
 * on the ground, again and again, and move any that fits into a hole further
 * down: what remains is a placement that can be built from the ground up, each
 * buffer at the lowest offset that those before it leave open, offsets never
 * falling. If anything fits, one of these does, so only these are searched.
 *
 * A node is what is left to place over one stretch of time, and the height that each
 * of these stands on. Time is cut into sections (see make_sections). A
 * choice is the next buffer, at the height below it. Once a stretch falls
 * into two between which no remaining buffer lives, each is solved alone, and a
 * dead end in one goes back to the choice that cut it off, past all of the others.
 *
 * A node is given up when
 * - a buffer that is left would have fit wholly below the last offset (dominance);
 * - a buffer passed over, which by the order can no longer lie on what is below it,
 *   finds nothing else to rest on that leaves it room (lift);
 * - in some section the buffers that cannot start below some offset do not fit
 *   above it (spatial inference; expand tries each offset that matters).
 * Of buffers that are the same in all, only the first left is a choice.
 *
 * Which choice first decides everything. The lowest offset is; among equals a
 * fixed order is, and several of those take turns with a growing number of nodes.
 * Buffers at dead ends gain weight, and weight leads most of the orders (after
 * Boussemart, Hemery, Lecoutre and Sais, "Boosting Systematic Search by Weighting
 * Constraints", ECAI 2004): the next turn places first what was hard to place.
 */
#include "compile/search.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

#define WORK_PER_CLOCK (1 << 19) /* sections looked at: about a millisecond */
#define MAX_TRAIL ((size_t)1 << 26) /* 1 GiB; it counts as out of time */

struct piece {
	int64_t size, align;
	int first, last; /* sections, inclusive */
	int twin;        /* the piece before it that is the same in all this, or -1 */
	int item;        /* of the caller */
	int64_t load, life, area; /* see turns */
};

struct component {
	int first, last; /* sections */
	int lo, hi;      /* its pieces are perm[lo..hi) */
	int64_t level;   /* no piece of it may start below */
	int parent;      /* frame whose choice made it, or -1 */
	int next;        /* pending list */
};

struct choice {
	int64_t offset;
	int piece;
};

struct frame {
	struct component c;
	size_t first_choice, choice, choice_end; /* into search.choices: the next to try */
	size_t trail;
	int pending, n_components; /* as they were when this frame began */
	int placed;                /* piece, or -1 */
};

struct undo {
	int64_t *at, old;
};

struct sorted {
	int64_t offset;
	int rank, piece;
};

#define N_KEYS 4

struct keyed {
	int64_t key[N_KEYS];
	int piece;
};

struct search {
	struct piece *p;
	int n, n_sections;
	int64_t capacity;
	int *rank;       /* static order of the pieces */
	int64_t *weights; /* of every piece, for each turn */
	int64_t *weight; /* in this turn: how often it was at a dead end */
	int64_t *offset; /* result */
	int64_t *floor;  /* of each piece: the end of what lies under it, aligned for it */
	int64_t *tried;  /* of each piece: the offset at which it was refused, or -1 */
	int64_t *low;    /* of each piece, in this node: the least offset */
	int64_t *sum;    /* of each section, in this node */
	int *cross, *part, *count;
	int *perm, *scratch;
	bool *done, *free;
	struct sorted *order;
	struct keyed *keyed;
	struct choice *choices;
	size_t n_choices, cap_choices;
	struct undo *trail;
	size_t n_trail, cap_trail;
	struct component *components;
	int n_components, pending;
	struct frame *frames;
	int n_frames;
	int64_t nodes, node_limit, restarts;
	uint64_t begin_ns;
	int64_t time_limit_ns;
	int weigh;       /* what a full section adds to its last buffer */
	bool weigh_all;  /* and whether the others in it gain 1 as well */
	int64_t work;    /* sections looked at since the clock was read */
	int64_t work_left; /* of the caller's limit, at that time */
	bool late;
};

static int64_t align_up(int64_t v, int64_t align)
{
	int64_t r = v % align;

	return r ? v + (align - r) : v;
}

static int set(struct search *s, int64_t *at, int64_t value)
{
	if (s->n_trail >= MAX_TRAIL)
		s->late = true;
	if (s->n_trail == s->cap_trail) {
		struct undo *t = rg_grow(s->trail, &s->cap_trail, s->n_trail + 1, sizeof(*t));

		if (!t)
			return -ENOMEM;
		s->trail = t;
	}
	s->trail[s->n_trail].at = at;
	s->trail[s->n_trail++].old = *at;
	*at = value;
	return 0;
}

static void undo(struct search *s, size_t mark)
{
	while (s->n_trail > mark) {
		s->n_trail--;
		*s->trail[s->n_trail].at = s->trail[s->n_trail].old;
	}
}

/* Reading the clock costs as much as a few sections. */
static void look_at_limits(struct search *s)
{
	if (s->work > s->work_left)
		s->late = true;
	if (s->work < WORK_PER_CLOCK)
		return;
	s->work_left -= s->work;
	s->work = 0;
	if (s->time_limit_ns >= 0 && rg_clock_now_ns() - s->begin_ns >= (uint64_t)s->time_limit_ns)
		s->late = true;
}

static int by_offset(const void *pa, const void *pb)
{
	const struct sorted *a = pa, *b = pb;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* By insertion, since most often little has changed; where much has, by qsort. */
static void sort(struct sorted *o, int n)
{
	int64_t moves = 0;
	int i, k;

	for (i = 1; i < n && moves < 8 * (int64_t)n; i++) {
		struct sorted x = o[i];

		for (k = i; k > 0 && by_offset(&x, &o[k - 1]) < 0; k--)
			o[k] = o[k - 1];
		o[k] = x;
		moves += i - k;
	}
	if (i < n)
		qsort(o, (size_t)n, sizeof(o[0]), by_offset);
}

static int by_end(const void *pa, const void *pb)
{
	const struct sorted *a = pa, *b = pb;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Pieces that cannot stay on what lies under them now need something new below. */
static bool lift(struct search *s, const struct component *c)
{
	struct sorted *q = s->order;
	int n = 0, i, k, head;
	int *stuck = s->scratch, left = 0;

	for (i = c->lo; i < c->hi; i++) {
		int b = s->perm[i];

		if (s->free[b]) {
			q[n].offset = s->low[b] + s->p[b].size;
			q[n].rank = 0;
			q[n++].piece = b;
		} else {
			stuck[left++] = b;
		}
	}
	qsort(q, (size_t)n, sizeof(*q), by_end);
	for (head = 0; head < n && left > 0; head++) {
		const struct piece *x = &s->p[q[head].piece];
		int64_t end = q[head].offset;

		for (i = 0; i < left;) {
			int b = stuck[i];
			const struct piece *y = &s->p[b];
			int64_t at;

			if (x->last < y->first || y->last < x->first) {
				i++;
				continue;
			}
			at = align_up(end, y->align);
			if (at > s->low[b])
				s->low[b] = at;
			if (s->low[b] + y->size > s->capacity) {
				s->weight[b]++;
				return false;
			}
			stuck[i] = stuck[--left];
			/* keep the rest of the queue sorted */
			for (k = n; k > head + 1 && q[k - 1].offset > s->low[b] + y->size; k--)
				q[k] = q[k - 1];
			q[k].offset = s->low[b] + y->size;
			q[k].piece = b;
			n++;
		}
	}
	if (left > 0)
		s->weight[stuck[0]]++;
	return left == 0;
}

static int add_choice(struct search *s, int64_t offset, int piece)
{
	if (s->n_choices == s->cap_choices) {
		struct choice *t = rg_grow(s->choices, &s->cap_choices, s->n_choices + 1, sizeof(*t));

		if (!t)
			return -ENOMEM;
		s->choices = t;
	}
	s->choices[s->n_choices].offset = offset;
	s->choices[s->n_choices++].piece = piece;
	return 0;
}

/* order[i..n) do not fit above the offset of the first of them. */
static void blame(struct search *s, int i, int n, int64_t room)
{
	int section = s->p[s->order[i].piece].first, k;

	s->weight[s->order[i].piece] += s->weigh;
	if (!s->weigh_all)
		return;
	while (s->sum[section] <= room)
		section++;
	for (k = i; k < n; k++)
		if (s->p[s->order[k].piece].first <= section && section <= s->p[s->order[k].piece].last)
			s->weight[s->order[k].piece]++;
}

/* Lists what may be placed next in the component; none when it is a dead end. */
static int expand(struct search *s, struct frame *f)
{
	const struct component *c = &f->c;
	int64_t least_end = INT64_MAX, most = 0;
	int i, k, n = c->hi - c->lo, n_stuck = 0;

	f->first_choice = f->choice = f->choice_end = s->n_choices;
	for (i = c->lo; i < c->hi; i++) {
		int b = s->perm[i];
		const struct piece *p = &s->p[b];
		int64_t floor = s->floor[b];

		s->work += p->last - p->first + 4;
		if (floor + p->size < least_end)
			least_end = floor + p->size;
		s->free[b] = floor >= c->level && floor > s->tried[b];
		s->low[b] = floor > c->level ? floor : align_up(c->level, p->align);
		if (!s->free[b])
			n_stuck++;
		if (s->low[b] + p->size > s->capacity) {
			s->weight[b]++;
			return 0;
		}
	}
	if (least_end <= c->level)
		return 0;
	if (n_stuck > 0 && !lift(s, c))
		return 0;
	for (i = 0; i < n; i++) {
		int b = s->perm[c->lo + i];

		s->order[i].offset = s->low[b];
		s->order[i].rank = s->rank[b];
		s->order[i].piece = b;
	}
	sort(s->order, n);
	for (i = 0; i < n; i++) /* so that the next sort finds them nearly in order */
		s->perm[c->lo + i] = s->order[i].piece;
	memset(s->sum + c->first, 0, (size_t)(c->last - c->first + 1) * sizeof(s->sum[0]));
	for (i = n - 1; i >= 0; i--) {
		int b = s->order[i].piece;
		const struct piece *p = &s->p[b];
		int64_t room = s->capacity - s->order[i].offset, top = 0;

		for (k = p->first; k <= p->last; k++) {
			s->sum[k] += p->size;
			if (s->sum[k] > top)
				top = s->sum[k];
		}
		if (top > room) {
			blame(s, i, n, room);
			return 0;
		}
		if (top > most)
			most = top;
	}
	for (i = 0; i < n; i++) {
		int b = s->order[i].piece;

		if (s->order[i].offset >= least_end || s->order[i].offset + most > s->capacity)
			break;
		if (!s->free[b] || (s->p[b].twin >= 0 && !s->done[s->p[b].twin]))
			continue;
		if (add_choice(s, s->order[i].offset, b))
			return -ENOMEM;
	}
	f->choice_end = s->n_choices;
	return 0;
}

static void push(struct search *s, int first, int last, int lo, int hi, int64_t level, int parent)
{
	struct component *c = &s->components[s->n_components];

	*c = (struct component){ first, last, lo, hi, level, parent, s->pending };
	s->pending = s->n_components++;
}

/* Places the piece and leaves what remains of the component as pending ones. */
static int place(struct search *s, int at, const struct choice *ch)
{
	struct frame *f = &s->frames[at];
	const struct component *c = &f->c;
	const struct piece *p = &s->p[ch->piece];
	int i, k, parts = 0, lo = c->lo + 1;

	/* What was refused lower down must not come back to where it was. */
	for (size_t j = f->first_choice; &s->choices[j] != ch; j++)
		if (s->choices[j].offset <= ch->offset &&
		    set(s, &s->tried[s->choices[j].piece], s->choices[j].offset))
			return -ENOMEM;
	f->placed = ch->piece;
	s->offset[ch->piece] = ch->offset;
	s->done[ch->piece] = true;
	for (i = lo - 1; i < c->hi; i++) {
		const struct piece *x = &s->p[s->perm[i]];

		int64_t *floor = &s->floor[s->perm[i]], top = align_up(ch->offset + p->size, x->align);

		if (x->first <= p->last && p->first <= x->last && top > *floor && set(s, floor, top))
			return -ENOMEM;
	}
	for (i = c->lo; s->perm[i] != ch->piece; i++)
		;
	for (; i > c->lo; i--) /* the others keep their order */
		s->perm[i] = s->perm[i - 1];
	s->perm[c->lo] = ch->piece;
	if (lo == c->hi)
		return 0;
	/* cross[k]: remaining pieces alive in both section k and k + 1, as differences first */
	memset(s->cross + c->first, 0, (size_t)(c->last - c->first + 2) * sizeof(int));
	memset(s->count + c->first, 0, (size_t)(c->last - c->first + 2) * sizeof(int));
	for (i = lo; i < c->hi; i++) {
		s->cross[s->p[s->perm[i]].first]++;
		s->cross[s->p[s->perm[i]].last]--;
	}
	for (k = c->first, i = 0; k <= c->last; k++) {
		i += s->cross[k];
		s->part[k] = parts;
		if (i == 0)
			parts++; /* nothing goes on: the next section begins another part */
	}
	/* count[c->first + part]: pieces of it; parts without any do not matter */
	for (i = lo; i < c->hi; i++)
		s->count[c->first + s->part[s->p[s->perm[i]].first]]++;
	if (s->count[c->first + s->part[s->p[s->perm[lo]].first]] == c->hi - lo) {
		int first = c->last, last = c->first;

		for (i = lo; i < c->hi; i++) {
			const struct piece *x = &s->p[s->perm[i]];

			first = x->first < first ? x->first : first;
			last = x->last > last ? x->last : last;
		}
		push(s, first, last, lo, c->hi, ch->offset, at);
		return 0;
	}
	memcpy(s->scratch, s->perm + lo, (size_t)(c->hi - lo) * sizeof(int));
	for (k = 0, i = lo; k < parts; k++) { /* counts become starts */
		int count = s->count[c->first + k];

		s->count[c->first + k] = i;
		i += count;
	}
	for (i = 0; i < c->hi - lo; i++)
		s->perm[s->count[c->first + s->part[s->p[s->scratch[i]].first]]++] = s->scratch[i];
	for (k = 0; k < parts; k++) { /* starts have become ends */
		int from = k ? s->count[c->first + k - 1] : lo, to = s->count[c->first + k];
		int first = c->last, last = c->first;

		if (from == to)
			continue;
		for (i = from; i < to; i++) {
			const struct piece *x = &s->p[s->perm[i]];

			first = x->first < first ? x->first : first;
			last = x->last > last ? x->last : last;
		}
		push(s, first, last, from, to, ch->offset, at);
	}
	return 0;
}

/* Back to the moment before frame `at` placed something. */
static void take_back(struct search *s, int at)
{
	struct frame *f = &s->frames[at];
	int i;

	for (i = at; i < s->n_frames; i++)
		if (s->frames[i].placed >= 0)
			s->done[s->frames[i].placed] = false;
	undo(s, f->trail);
	s->n_frames = at + 1;
	s->pending = f->pending;
	s->n_components = f->n_components;
	s->n_choices = f->choice_end;
}

enum outcome { SOLVED, REFUTED, GAVE_UP };

/* One tree, from the component of perm[lo..hi) on. */
static int dive(struct search *s, int lo, int hi, enum outcome *out)
{
	int first = INT_MAX, last = 0, i, at;

	for (i = lo; i < hi; i++) {
		const struct piece *p = &s->p[s->perm[i]];

		first = p->first < first ? p->first : first;
		last = p->last > last ? p->last : last;
		s->done[s->perm[i]] = false;
		s->tried[s->perm[i]] = -1;
		s->floor[s->perm[i]] = 0;
	}
	s->n_trail = s->n_choices = 0;
	s->n_components = s->n_frames = 0;
	s->pending = -1;
	push(s, first, last, lo, hi, 0, -1);
	while (s->pending >= 0) {
		struct frame *f = &s->frames[s->n_frames++];

		f->c = s->components[s->pending];
		f->pending = s->pending = f->c.next;
		f->n_components = s->n_components;
		f->placed = -1;
		f->trail = s->n_trail;
		s->nodes++;
		if (expand(s, f))
			return -ENOMEM;
		look_at_limits(s);
		if (s->late || s->nodes > s->node_limit) {
			*out = GAVE_UP;
			return 0;
		}
		for (at = s->n_frames - 1; s->frames[at].choice == s->frames[at].choice_end;) {
			at = s->frames[at].c.parent;
			if (at < 0) {
				*out = REFUTED;
				return 0;
			}
			take_back(s, at);
			s->frames[at].placed = -1;
		}
		f = &s->frames[at];
		if (place(s, at, &s->choices[f->choice++]))
			return -ENOMEM;
	}
	*out = SOLVED;
	return 0;
}

struct event {
	int64_t time;
	int piece; /* of the array */
	bool end;
};

static int by_time(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if (a->end != b->end)
		return a->end ? -1 : 1;
	return a->piece < b->piece ? -1 : a->piece > b->piece;
}

/*
 * Sections: the moments just before something ends after something began. What is
 * alive at any other moment is part of what is alive at one of these.
 */
static int make_sections(struct search *s, const struct rg_buffer *b)
{
	struct event *e = rg_calloc((size_t)s->n * 2, sizeof(*e));
	bool began = false;
	int i;

	if (!e)
		return -ENOMEM;
	for (i = 0; i < s->n; i++) {
		e[2 * i] = (struct event){ b[s->p[i].item].lower, i, false };
		e[2 * i + 1] = (struct event){ b[s->p[i].item].upper, i, true };
	}
	qsort(e, (size_t)s->n * 2, sizeof(*e), by_time);
	s->n_sections = 0;
	for (i = 0; i < 2 * s->n; i++) {
		if (e[i].end) {
			s->n_sections += began;
			began = false;
			s->p[e[i].piece].last = s->n_sections - 1;
		} else {
			began = true;
			s->p[e[i].piece].first = s->n_sections;
		}
	}
	rg_free(e);
	return 0;
}

static bool same(const struct piece *a, const struct piece *b)
{
	return a->first == b->first && a->last == b->last && a->size == b->size && a->align == b->align;
}

static int by_first(const void *pa, const void *pb)
{
	const struct piece *a = pa, *b = pb;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->last != b->last)
		return a->last < b->last ? -1 : 1;
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	if (a->align != b->align)
		return a->align < b->align ? -1 : 1;
	return a->item < b->item ? -1 : a->item > b->item;
}

/* Larger first, key by key. */
static int by_keys(const void *pa, const void *pb)
{
	const struct keyed *a = pa, *b = pb;
	int k;

	for (k = 0; k < N_KEYS; k++)
		if (a->key[k] != b->key[k])
			return a->key[k] > b->key[k] ? -1 : 1;
	return a->piece < b->piece ? -1 : a->piece > b->piece;
}

/*
 * The turns: keys of the order, largest first, and how dead ends are weighed. F: weight
 * from dead ends, which each turn keeps for itself; T: the greatest load that the
 * buffer takes part in; W: how long it lives; A: size times life; L: an early begin;
 * R: a late end. Which of them finds a placement differs from instance to
 * instance, so there are several, and none runs long before the others had a try.
 */
static const struct turn {
	const char *keys;
	int weigh;
	bool weigh_all;
	int64_t nodes; /* of the first turn; a tenth more in each round */
} turns[] = {
	{ "TWA", 1, true, 2000 },  { "FTWA", 1, false, 2000 }, { "FL", 8, true, 500 },
	{ "FTWA", 1, true, 2000 }, { "FLA", 4, true, 500 },    { "FR", 4, true, 500 },
};

#define N_TURNS ((int)(sizeof(turns) / sizeof(turns[0])))

static void rank_pieces(struct search *s, const char *keys, int lo, int hi)
{
	int i, k;

	for (i = lo; i < hi; i++) {
		struct keyed *x = &s->keyed[i - lo];
		const struct piece *p = &s->p[i];

		memset(x->key, 0, sizeof(x->key));
		x->piece = i;
		for (k = 0; keys[k]; k++)
			x->key[k] = keys[k] == 'F'   ? s->weight[i]
				    : keys[k] == 'T' ? p->load
				    : keys[k] == 'W' ? p->life
				    : keys[k] == 'A' ? p->area
				    : keys[k] == 'L' ? -(int64_t)p->first
						     : p->last;
	}
	qsort(s->keyed, (size_t)(hi - lo), sizeof(s->keyed[0]), by_keys);
	for (i = 0; i < hi - lo; i++)
		s->rank[s->keyed[i].piece] = i;
}

/* Solves the pieces lo to hi - 1, which share no section with others. */
static int solve(struct search *s, int lo, int hi, enum outcome *out)
{
	double longer = 1;
	int k, rc;

	for (k = 0;; k++) {
		const struct turn *t = &turns[k % N_TURNS];

		s->weigh = t->weigh;
		s->weigh_all = t->weigh_all;
		s->weight = s->weights + (size_t)(k % N_TURNS) * (size_t)s->n;
		rank_pieces(s, t->keys, lo, hi);
		s->node_limit = s->nodes + (int64_t)((double)t->nodes * longer);
		rc = dive(s, lo, hi, out);
		if (rc || *out != GAVE_UP || s->late)
			return rc;
		s->restarts++;
		if (k % N_TURNS == N_TURNS - 1 && longer < 1e9)
			longer *= 1.1;
	}
}

/*
 * Turns time around when the loads, read from the other end, come later in the
 * alphabet: an instance and its mirror image are then one and the same to the
 * search. Neither direction is the better one in general.
 */
static void turn_time(struct search *s)
{
	int i, k, end = s->n_sections - 1;

	for (i = 0; i < s->n; i++)
		for (k = s->p[i].first; k <= s->p[i].last; k++)
			s->sum[k] += s->p[i].size;
	for (k = 0; k < end && s->sum[k] == s->sum[end - k]; k++)
		;
	for (i = 0; k < end && s->sum[k] < s->sum[end - k] && i < s->n; i++) {
		int first = s->p[i].first;

		s->p[i].first = end - s->p[i].last;
		s->p[i].last = end - first;
	}
	memset(s->sum, 0, (size_t)s->n_sections * sizeof(s->sum[0]));
}

/* Pieces in order of time, twins side by side, with the keys of the orders. */
static int make_pieces(struct search *s, const struct rg_buffer *b, int n)
{
	int i, k, rc;

	for (i = 0; i < n; i++)
		if (b[i].size_bytes > 0)
			s->p[s->n++] = (struct piece){ .size = b[i].size_bytes, .align = b[i].align_bytes, .item = i };
	rc = make_sections(s, b);
	if (rc)
		return rc;
	turn_time(s);
	qsort(s->p, (size_t)s->n, sizeof(s->p[0]), by_first);
	for (i = 0; i < s->n; i++) {
		struct piece *p = &s->p[i];

		s->perm[i] = i;
		p->twin = i > 0 && same(&p[-1], p) ? i - 1 : -1;
		if (__builtin_sub_overflow(b[p->item].upper, b[p->item].lower, &p->life))
			p->life = INT64_MAX;
		if (__builtin_mul_overflow(p->life, p->size, &p->area))
			p->area = INT64_MAX;
		for (k = p->first; k <= p->last; k++)
			s->sum[k] += p->size;
	}
	for (i = 0; i < s->n; i++)
		for (k = s->p[i].first; k <= s->p[i].last; k++)
			if (s->sum[k] > s->p[i].load)
				s->p[i].load = s->sum[k];
	return 0;
}

/* All arrays have room for the pieces; there are no more sections than those. */
static int make_room(struct search *s, int n)
{
	size_t m = (size_t)n + 2;

	s->p = rg_calloc(m, sizeof(*s->p));
	s->rank = rg_calloc(m, sizeof(*s->rank));
	s->weights = rg_calloc(m, N_TURNS * sizeof(*s->weights));
	s->offset = rg_calloc(m, sizeof(*s->offset));
	s->floor = rg_calloc(m, sizeof(*s->floor));
	s->tried = rg_calloc(m, sizeof(*s->tried));
	s->low = rg_calloc(m, sizeof(*s->low));
	s->sum = rg_calloc(m, sizeof(*s->sum));
	s->cross = rg_calloc(m, sizeof(*s->cross));
	s->part = rg_calloc(m, sizeof(*s->part));
	s->count = rg_calloc(m, sizeof(*s->count));
	s->perm = rg_calloc(m, sizeof(*s->perm));
	s->scratch = rg_calloc(m, sizeof(*s->scratch));
	s->done = rg_calloc(m, sizeof(*s->done));
	s->free = rg_calloc(m, sizeof(*s->free));
	s->order = rg_calloc(m, sizeof(*s->order));
	s->keyed = rg_calloc(m, sizeof(*s->keyed));
	s->components = rg_calloc(m, sizeof(*s->components));
	s->frames = rg_calloc(m, sizeof(*s->frames));
	return s->p && s->rank && s->weights && s->offset && s->floor && s->tried && s->low && s->sum && s->cross &&
			       s->part && s->count && s->perm && s->scratch && s->done && s->free && s->order &&
			       s->keyed && s->components && s->frames
		       ? 0
		       : -ENOMEM;
}

static void free_room(struct search *s)
{
	rg_free(s->p);
	rg_free(s->rank);
	rg_free(s->weights);
	rg_free(s->offset);
	rg_free(s->floor);
	rg_free(s->tried);
	rg_free(s->low);
	rg_free(s->sum);
	rg_free(s->cross);
	rg_free(s->part);
	rg_free(s->count);
	rg_free(s->perm);
	rg_free(s->scratch);
	rg_free(s->done);
	rg_free(s->free);
	rg_free(s->order);
	rg_free(s->keyed);
	rg_free(s->components);
	rg_free(s->frames);
	rg_free(s->choices);
	rg_free(s->trail);
}

/* Each stretch of time between moments at which nothing is alive, alone. */
static int solve_all(struct search *s, int *parts, enum outcome *out)
{
	int lo, hi, last, rc;

	*out = SOLVED;
	*parts = 0;
	for (lo = 0; lo < s->n && *out == SOLVED; lo = hi) {
		last = s->p[lo].last;
		for (hi = lo; hi < s->n && s->p[hi].first <= last; hi++)
			last = s->p[hi].last > last ? s->p[hi].last : last;
		(*parts)++;
		rc = solve(s, lo, hi, out);
		if (rc)
			return rc;
	}
	return 0;
}

int rg_arena_search(struct rg_buffer *b, int n, int64_t capacity_bytes, int64_t time_limit_ns,
		    int64_t work_limit, enum rg_search_result *result, struct rg_search_stats *stats,
		    struct rg_error *err)
{
	struct search s = { .begin_ns = rg_clock_now_ns(), .time_limit_ns = time_limit_ns,
			    .work_left = work_limit < 0 ? INT64_MAX : work_limit };
	enum outcome out = GAVE_UP;
	int64_t end_to_end;
	int i, rc, parts = 0;

	rc = rg_buffers_validate(b, n, &end_to_end, err);
	if (rc)
		return rc;
	for (i = 0; i < n; i++)
		b[i].offset_bytes = -1;
	s.capacity = capacity_bytes < end_to_end ? capacity_bytes : end_to_end;
	rc = make_room(&s, n);
	if (!rc)
		rc = make_pieces(&s, b, n);
	if (!rc)
		rc = solve_all(&s, &parts, &out);
	for (i = 0; !rc && out == SOLVED && i < n; i++)
		b[i].offset_bytes = 0; /* of those without bytes */
	for (i = 0; !rc && out == SOLVED && i < s.n; i++)
		b[s.p[i].item].offset_bytes = s.offset[i];
	*result = out == SOLVED ? RG_SEARCH_FITS : out == REFUTED ? RG_SEARCH_INFEASIBLE : RG_SEARCH_TIMEOUT;
	if (stats)
		*stats = (struct rg_search_stats){ s.nodes, s.restarts, parts };
	free_room(&s);
	return rc ? rg_error_nomem(err, ((unsigned long)n + 2) * sizeof(struct piece)) : 0;
}
