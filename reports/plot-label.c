/*
 * Greedy label placement: labels come in order of importance, each takes the
 * cheapest of a few dozen places around its mark. With at most a dozen labels
 * this is as good as anything cleverer (cf. Christensen, Marks, Shieber, "An
 * empirical study of algorithms for point-feature label placement", ACM TOG
 * 14(3), 1995, which is where the eight positions and their order come from).
 */
#include "reports/plot-label.h"

#include <math.h>
#include <stddef.h>

void rg_place_block(struct rg_placer *p, struct rg_box b)
{
	if (p->n_hard < RG_PLACE_MAX)
		p->hard[p->n_hard++] = b;
}

void rg_place_line(struct rg_placer *p, double x0, double y0, double x1, double y1)
{
	int n = p->n_lines;

	if (n >= (int)(sizeof(p->lines) / sizeof(p->lines[0])))
		return;
	p->lines[n].x0 = x0;
	p->lines[n].y0 = y0;
	p->lines[n].x1 = x1;
	p->lines[n].y1 = y1;
	p->n_lines++;
}

static bool overlap(const struct rg_box *a, const struct rg_box *b)
{
	return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

/* Whether a segment enters a box: walked in steps of half the box's height,
 * which is fine for text and needs no cases. */
static bool crosses(const struct rg_placer *p, int k, const struct rg_box *b)
{
	double dx = p->lines[k].x1 - p->lines[k].x0, dy = p->lines[k].y1 - p->lines[k].y0;
	double pace = (b->y1 - b->y0) / 2;
	int steps = pace > 0 ? (int)fmin(hypot(dx, dy) / pace, 4000) + 1 : 1;

	for (int i = 0; i <= steps; i++) {
		double x = p->lines[k].x0 + dx * i / steps, y = p->lines[k].y0 + dy * i / steps;

		if (x > b->x0 && x < b->x1 && y > b->y0 && y < b->y1)
			return true;
	}
	return false;
}

bool rg_place_label(struct rg_placer *p, double x, double y, double radius, double w, double h,
		    struct rg_box *out, bool *far)
{
	/* Where the label's centre lies, as a direction; best first. */
	static const double way[8][2] = {
		{ 1, 1 }, { -1, 1 }, { 1, -1 }, { -1, -1 }, { 1, 0 }, { -1, 0 }, { 0, 1 }, { 0, -1 },
	};
	double best = INFINITY;

	for (int ring = 0; ring < 5; ring++) {
		double gap = radius + h / 7 + ring * h * 0.9;

		for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
			/* Sideways a label begins at the mark; above and below it is centred. */
			double reach = way[i][1] != 0 && way[i][0] != 0 ? gap * 0.71 : gap;
			double cx = x + way[i][0] * (reach + w / 2), cy = y + way[i][1] * (reach + h / 2);
			struct rg_box b = { cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2 };
			double cost = ring * 3 + (double)i * 0.3;
			bool taken = b.x0 < p->frame.x0 || b.x1 > p->frame.x1 || b.y0 < p->frame.y0 ||
				     b.y1 > p->frame.y1;

			for (int k = 0; k < p->n_hard && !taken; k++)
				taken = overlap(&b, &p->hard[k]);
			if (taken)
				continue;
			for (int k = 0; k < p->n_lines; k++)
				if (crosses(p, k, &b))
					cost += 4;
			if (cost < best) {
				best = cost;
				*out = b;
				*far = ring >= 1;
			}
		}
	}
	if (!isfinite(best))
		return false;
	rg_place_block(p, *out);
	return true;
}
