/* Built without ncurses: the verb stays and says so. */
#include "tui/tui.h"

int rg_tui_run(struct rg_store *store, const struct rg_tui_options *o, struct rg_error *err)
{
	(void)store;
	(void)o;
	rg_error_set(err, RG_ECANT_MEASURE, "this ridge was built without its terminal UI");
	return rg_error_hint(err, "install libncurses-dev and build again with -Dtui=enabled");
}
