/* Lines in braille dots, or in ASCII marks. */
#include "tui/canvas.h"

#include <math.h>

#define BRAILLE 0x2800u

/* Bits of the dots of a braille cell, by column and row from the top (Unicode,
 * Braille Patterns: dots 1 2 3 7 on the left, 4 5 6 8 on the right). */
static const uint8_t dot_bit[2][4] = { { 0x01, 0x02, 0x04, 0x40 }, { 0x08, 0x10, 0x20, 0x80 } };

static void dot(struct rg_canvas *k, double px, double py, enum rg_role role, char ascii)
{
	int dx = (int)floor(px), dy = (int)floor(py), cx, cy;
	struct rg_cell *cell;

	if (px < 0 || py < 0 || dx >= 2 * k->width || dy >= 4 * k->height)
		return;
	cx = k->x + dx / 2;
	cy = k->y + dy / 4;
	if (cx < 0 || cy < 0 || cx >= k->cells->width || cy >= k->cells->height)
		return;
	cell = &k->cells->cell[cy * k->cells->width + cx];
	if (!k->utf8) {
		if (cell->code == 0 || cell->code == ' ')
			rg_cells_put(k->cells, cx, cy, (uint32_t)ascii, role);
		return;
	}
	if ((cell->code & ~0xffu) == BRAILLE)
		cell->code |= dot_bit[dx % 2][dy % 4];
	else if (cell->code == 0 || cell->code == ' ')
		rg_cells_put(k->cells, cx, cy, BRAILLE | dot_bit[dx % 2][dy % 4], role);
}

void rg_canvas_line(struct rg_canvas *k, double ax, double ay, double bx, double by, enum rg_role role, char ascii)
{
	double sx = 2 * k->width / (k->x1 - k->x0), sy = 4 * k->height / (k->y1 - k->y0);
	double px = (ax - k->x0) * sx, py = (k->y1 - ay) * sy, qx = (bx - k->x0) * sx, qy = (k->y1 - by) * sy;
	double steps = fmax(fabs(qx - px), fabs(qy - py));

	if (!isfinite(steps) || steps > 100000)
		return; /* an endless line has no dots worth drawing */
	for (int i = 0; i <= (int)steps; i++) {
		double f = steps > 0 ? i / steps : 0;

		dot(k, px + f * (qx - px), py + f * (qy - py), role, ascii);
	}
}

bool rg_canvas_cell(const struct rg_canvas *k, double x, double y, int *cx, int *cy)
{
	double px = (x - k->x0) / (k->x1 - k->x0) * k->width, py = (k->y1 - y) / (k->y1 - k->y0) * k->height;

	if (!(px >= 0 && px < k->width && py >= 0 && py < k->height))
		return false;
	*cx = k->x + (int)px;
	*cy = k->y + (int)py;
	return true;
}
