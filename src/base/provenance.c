#include "base/provenance.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {
	[RG_PROV_UNAVAILABLE] = "unavailable",
	[RG_PROV_MEASURED] = "measured",
	[RG_PROV_SIMULATED] = "simulated",
	[RG_PROV_MODELLED] = "modelled",
	[RG_PROV_DECLARED] = "declared",
};

const char *rg_provenance_name(enum rg_provenance p)
{
	return (size_t)p < sizeof(names) / sizeof(names[0]) ? names[p] : names[0];
}

enum rg_provenance rg_provenance_parse(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return (enum rg_provenance)i;
	return RG_PROV_UNAVAILABLE;
}
