/* ridge bench ladder: called by the verb bench. */
#ifndef RG_CMD_LADDER_H
#define RG_CMD_LADDER_H

#include "cmd/cmd.h"

int rg_cmd_ladder(struct rg_args *a, struct rg_error *err);

#endif
