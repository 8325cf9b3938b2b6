/* A picture from a gnuplot script: to a file, into the terminal, or the script itself. */
#ifndef RG_CMD_DRAW_H
#define RG_CMD_DRAW_H

#include "cmd/cmd.h"
#include "reports/plot.h"

/* Output "-" without a size: that of the terminal. */
void rg_cmd_canvas(const struct rg_args *a, struct rg_plot_options *o);
/* Where o->output says, and says so on standard error; "-" prints. */
int rg_cmd_draw(struct rg_args *a, const char *script, const struct rg_plot_options *o, struct rg_error *err);

#endif
