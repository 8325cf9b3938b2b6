/* Attributes of a node by name. One of the wrong type counts as absent here;
 * rg_graph_finish has refused it where the name is known (attr-types.c). */
#include <string.h>

#include "graph/graph.h"

static const struct rg_attr *find(const struct rg_node *n, const char *name, enum rg_attr_type type)
{
	const struct rg_attr *a = rg_node_attr(n, name);

	return a && a->type == type ? a : NULL;
}

const struct rg_attr *rg_node_attr(const struct rg_node *n, const char *name)
{
	for (int i = 0; i < n->n_attrs; i++)
		if (strcmp(n->attrs[i].name, name) == 0)
			return &n->attrs[i];
	return NULL;
}

int64_t rg_node_int(const struct rg_node *n, const char *name, int64_t dflt)
{
	const struct rg_attr *a = find(n, name, RG_ATTR_INT);

	return a ? a->i : dflt;
}

float rg_node_float(const struct rg_node *n, const char *name, float dflt)
{
	const struct rg_attr *a = find(n, name, RG_ATTR_FLOAT);

	return a ? a->f : dflt;
}

const char *rg_node_string(const struct rg_node *n, const char *name, const char *dflt)
{
	const struct rg_attr *a = find(n, name, RG_ATTR_STRING);

	return a ? a->s : dflt;
}

int rg_node_ints(const struct rg_node *n, const char *name, const int64_t **out)
{
	const struct rg_attr *a = find(n, name, RG_ATTR_INTS);

	*out = a ? a->ints : NULL;
	return a ? a->count : -1;
}

int rg_node_floats(const struct rg_node *n, const char *name, const float **out)
{
	const struct rg_attr *a = find(n, name, RG_ATTR_FLOATS);

	*out = a ? a->floats : NULL;
	return a ? a->count : -1;
}
