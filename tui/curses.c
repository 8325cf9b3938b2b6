/* ncurses around the application: keys in, cells out, resize, colours. */
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tui/app.h"

static attr_t role_attr[RG_ROLE_COUNT];

static void make_roles(void)
{
	const char *no_colour = getenv("NO_COLOR");
	bool colour = has_colors() && !(no_colour && *no_colour);

	/* shapes first: a terminal without colour still tells roles apart */
	role_attr[RG_ROLE_NORMAL] = A_NORMAL;
	role_attr[RG_ROLE_TITLE] = A_REVERSE;
	role_attr[RG_ROLE_HEAD] = A_BOLD;
	role_attr[RG_ROLE_SELECTED] = A_REVERSE | A_BOLD;
	role_attr[RG_ROLE_DIM] = A_DIM;
	role_attr[RG_ROLE_GOOD] = A_NORMAL;
	role_attr[RG_ROLE_WARN] = A_BOLD;
	role_attr[RG_ROLE_BAD] = A_BOLD | A_UNDERLINE;
	role_attr[RG_ROLE_ACCENT] = A_BOLD;
	if (!colour)
		return;
	start_color();
	use_default_colors();
	init_pair(1, COLOR_CYAN, -1);
	init_pair(2, COLOR_BLUE, -1);
	init_pair(3, COLOR_YELLOW, -1);
	init_pair(4, COLOR_MAGENTA, -1);
	/* blue, yellow, magenta: told apart by every common colour vision */
	role_attr[RG_ROLE_ACCENT] = A_BOLD | (attr_t)COLOR_PAIR(1);
	role_attr[RG_ROLE_GOOD] = (attr_t)COLOR_PAIR(2) | A_BOLD;
	role_attr[RG_ROLE_WARN] = (attr_t)COLOR_PAIR(3) | A_BOLD;
	role_attr[RG_ROLE_BAD] = (attr_t)COLOR_PAIR(4) | A_BOLD;
}

static void show(const struct rg_cells *c)
{
	for (int y = 0; y < c->height; y++) {
		for (int x = 0; x < c->width; x++) {
			const struct rg_cell *cell = &c->cell[y * c->width + x];
			wchar_t text[2] = { cell->code ? (wchar_t)cell->code : L' ', 0 };
			cchar_t out;

			setcchar(&out, text, role_attr[cell->role], (short)PAIR_NUMBER(role_attr[cell->role]), NULL);
			mvadd_wch(y, x, &out);
		}
	}
	refresh();
}

static int translate(int ch)
{
	switch (ch) {
	case KEY_UP: return RG_KEY_UP;
	case KEY_DOWN: return RG_KEY_DOWN;
	case KEY_LEFT: return RG_KEY_LEFT;
	case KEY_RIGHT: return RG_KEY_RIGHT;
	case KEY_PPAGE: return RG_KEY_PAGE_UP;
	case KEY_NPAGE: return RG_KEY_PAGE_DOWN;
	case KEY_HOME: return RG_KEY_HOME;
	case KEY_END: return RG_KEY_END;
	case KEY_ENTER: case '\r': case '\n': return RG_KEY_ENTER;
	case KEY_BACKSPACE: case 127: case 8: return RG_KEY_BACKSPACE;
	case 27: return RG_KEY_ESCAPE;
	case '\t': return RG_KEY_TAB;
	case KEY_BTAB: return RG_KEY_BACKTAB;
	default: return ch < 0x80 ? ch : 0;
	}
}

/* The terminal is given back while a recording runs, so that its progress and
 * Ctrl-C work as on the command line. */
static void record(struct rg_app *a)
{
	struct rg_error err = RG_ERROR_INIT;
	int64_t run = -1;
	int rc;

	a->want_record = false;
	endwin();
	rc = a->opt->record(a->opt->record_ctx, &run, &err);
	refresh();
	if (!rc)
		rc = rg_app_reload(a, &err);
	if (!rc)
		rc = rg_app_open(a, run, &err);
	if (rc)
		snprintf(a->message, sizeof(a->message), "%s", err.message);
	else
		a->screen = RG_SCREEN_OPS;
}

static int loop(struct rg_app *a, struct rg_error *err)
{
	struct rg_cells cells = { 0 };

	while (!a->quit) {
		int h, w, ch;

		getmaxyx(stdscr, h, w);
		if (cells.width != w || cells.height != h) {
			rg_cells_free(&cells);
			if (!rg_cells_init(&cells, w, h))
				return rg_error_nomem(err, (unsigned long)w * (unsigned long)h * sizeof(struct rg_cell));
			erase();
		}
		rg_app_draw(a, &cells);
		show(&cells);
		ch = getch();
		if (ch == ERR || ch == 3) /* the terminal went away, or Ctrl-C */
			break;
		if (ch != KEY_RESIZE)
			rg_app_key(a, translate(ch));
		if (a->want_record)
			record(a);
	}
	rg_cells_free(&cells);
	return 0;
}

int rg_tui_run(struct rg_store *store, const struct rg_tui_options *o, struct rg_error *err)
{
	struct rg_app *a = NULL;
	int rc;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		rg_error_set(err, RG_EUSAGE, "the terminal UI needs a terminal on standard input and output");
		return rg_error_hint(err, "use  ridge report  in scripts");
	}
	setlocale(LC_ALL, "");
	/* numbers keep their point, whatever the locale */
	setlocale(LC_NUMERIC, "C");
	rc = rg_app_new(store, o, &a, err);
	if (rc)
		return rc;
	a->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	set_escdelay(50);
	if (!newterm(NULL, stdout, stdin)) {
		rg_app_free(a);
		rg_error_set(err, -EINVAL, "this terminal (TERM=%s) is not known here", getenv("TERM") ? getenv("TERM") : "");
		return rg_error_hint(err, "set TERM, for instance  TERM=xterm");
	}
	raw();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	make_roles();
	rc = loop(a, err);
	endwin();
	rg_app_free(a);
	return rc;
}
