/* One of the strategies of strategies.h, which is what to call. */
#ifndef RG_COMPILE_LOWEST_FIRST_H
#define RG_COMPILE_LOWEST_FIRST_H

#include <stdbool.h>

#include "base/error.h"
#include "compile/buffers.h"

/* Buffers as rg_buffers_validate lets them pass. Sets every offset; `back`: as if time ran
 * backwards. -ENOMEM. */
int rg_place_lowest_first(struct rg_buffer *b, int n, bool back, struct rg_error *err);

#endif
