/* The names of the rules in range.h. */
#include "base/range.h"

#include <string.h>

static const char *const names[] = { "minmax", "percentile", "entropy", "mse" };

const char *rg_range_rule_name(enum rg_range_rule r)
{
	return names[r];
}

bool rg_range_rule_parse(const char *name, enum rg_range_rule *out)
{
	for (int i = 0; i < 4; i++) {
		if (strcmp(names[i], name) == 0) {
			*out = (enum rg_range_rule)i;
			return true;
		}
	}
	return false;
}
