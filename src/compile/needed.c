/* See needed.h. */
#include "compile/needed.h"

#include <string.h>

void rg_mark_needed(const struct rg_graph *g, bool through_constants, unsigned char *value_needed,
		    unsigned char *node_needed)
{
	int i, k;

	memset(value_needed, 0, (size_t)g->n_values);
	memset(node_needed, 0, (size_t)g->n_nodes);
	for (i = 0; i < g->n_outputs; i++)
		value_needed[g->outputs[i]] = 1;
	for (i = g->n_nodes - 1; i >= 0; i--) {
		const struct rg_node *n = &g->nodes[i];

		for (k = 0; k < n->n_out; k++)
			if (n->out[k] >= 0 && value_needed[n->out[k]] &&
			    (through_constants || g->values[n->out[k]].origin == RG_CONST_NONE))
				node_needed[i] = 1;
		for (k = 0; k < n->n_in && node_needed[i]; k++)
			if (n->in[k] >= 0)
				value_needed[n->in[k]] = 1;
		for (k = 0; k < n->n_captured && node_needed[i]; k++)
			value_needed[n->captured[k]] = 1;
	}
}
