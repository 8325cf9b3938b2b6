/* Any bytes as an ONNX model: an error or a graph, nothing else. */
#include "fuzz.h"

#include <stdlib.h>

#include "models/onnx.h"
#include "../models/wire.h"

const char *const fuzz_suffix = ".onnx";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rg_error err = RG_ERROR_INIT;
	struct rg_graph *g = NULL;
	int rc = rg_onnx_load_memory(data, size, "fuzz", &g, &err);

	/* A failure says why and returns nothing; success says nothing. */
	if ((rc == 0) != (g != NULL) || rc != err.code || (rc != 0) != (err.message[0] != '\0'))
		abort();
	rg_graph_free(g);
	return 0;
}

uint8_t *fuzz_seed(int i, size_t *size)
{
	struct wire m;

	if (i > 0)
		return NULL;
	m = wire_small_model();
	*size = m.len;
	return m.p;
}
