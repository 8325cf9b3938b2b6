/* Any bytes as a .npy file: an error or a tensor, nothing else. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/npy.h"

const char *const fuzz_suffix = ".npy";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_tensor t;
	int rc = rg_npy_parse(data, size, &t, &err);

	if ((rc == 0) != (t.data != NULL) || rc != err.code || (rc != 0) != (err.message[0] != '\0'))
		abort();
	rg_free(t.data);
	return 0;
}

uint8_t *fuzz_seed(int i, size_t *size)
{
	static const struct { const char *dict; size_t data; } seeds[] = {
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24 },
		{ "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 2), }", 24 },
		{ "{'descr': '|b1', 'fortran_order': False, 'shape': (), }", 1 },
	};
	size_t len;
	uint8_t *p;

	if (i >= (int)(sizeof(seeds) / sizeof(seeds[0])))
		return NULL;
	len = strlen(seeds[i].dict);
	*size = 10 + len + seeds[i].data;
	p = calloc(1, *size);
	if (!p)
		abort();
	memcpy(p, "\x93NUMPY\x01\0", 8);
	p[8] = (uint8_t)len;
	memcpy(p + 10, seeds[i].dict, len);
	return p;
}
