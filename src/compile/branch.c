/* Inlines the branches of Ifs with a constant condition. */
#include "compile/branch.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/inline.h"

/* The branch that a constant condition takes; NULL: it is no such If. */
static struct rg_graph *branch_of(const struct rg_graph *g, const struct rg_node *n)
{
	const struct rg_value *cond;
	const struct rg_attr *a;

	if (strcmp(n->op_type, "If") != 0 || n->domain[0] || n->n_in != 1 || n->in[0] < 0)
		return NULL;
	cond = &g->values[n->in[0]];
	if (cond->origin == RG_CONST_NONE || cond->dtype != RG_BOOL || !cond->data ||
	    rg_shape_count(&cond->shape) != 1)
		return NULL;
	a = rg_node_attr(n, *(const unsigned char *)cond->data ? "then_branch" : "else_branch");
	return a && a->g && a->g->n_outputs == n->n_out && a->g->n_inputs == 0 ? a->g : NULL;
}

static int inline_one(struct rg_graph *g, int node, struct rg_graph *from, struct rg_error *err)
{
	struct rg_node n = g->nodes[node]; /* its array moves as nodes are added */
	struct rg_clone c = { .from = from, .to = g, .n_out = n.n_out, .out = n.out, .captures = true, .move = true };
	size_t len = strlen(n.name);
	char *prefix = rg_alloc(len + 2);
	int rc;

	c.map = rg_calloc((size_t)from->n_values + 1, sizeof(*c.map));
	if (!c.map || !prefix) {
		rg_free(c.map);
		rg_free(prefix);
		return rg_error_nomem(err, (size_t)from->n_values * sizeof(*c.map));
	}
	memcpy(prefix, n.name, len);
	memcpy(prefix + len, "/", 2);
	c.prefix = prefix;
	for (int i = 0; i < from->n_values; i++)
		c.map[i] = RG_CLONE_FRESH;
	rc = rg_graph_clone_nodes(&c, err);
	rg_free(c.map);
	rg_free(prefix);
	return rc ? rg_error_at(err, "node '%s' (If)", n.name) : 0;
}

int rg_inline_branches(struct rg_graph *g, struct rg_error *err)
{
	int before = g->n_nodes, found = 0;
	unsigned char *gone = rg_calloc((size_t)before + 1, 1);
	int rc = gone ? 0 : rg_error_nomem(err, (size_t)before);

	for (int i = 0; i < before && !rc; i++) {
		struct rg_graph *from = branch_of(g, &g->nodes[i]);

		if (!from)
			continue;
		rc = inline_one(g, i, from, err);
		gone[i] = 1;
		found++;
	}
	if (!rc && found)
		rc = rg_graph_drop_nodes(g, gone, before, err);
	rg_free(gone);
	return rc ? rc : found;
}
