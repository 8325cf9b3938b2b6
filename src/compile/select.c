/* Kernel selection. The reason is kept as text, since it is shown as it is. */
#include "compile/select.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "kernels/proof.h"
#include "sys/cpu.h"

static bool names_op(const char *want, const struct rg_node *n)
{
	return strcmp(want, n->op_type) == 0;
}

static bool names_node(const char *want, const struct rg_node *n)
{
	return strcmp(want, n->name) == 0;
}

/* A name that no kernel has would leave out nothing, and nobody would notice. */
static int check_without(const struct rg_plan_options *opt, struct rg_error *err)
{
	int i, k, n = rg_kernel_count();

	for (i = 0; i < opt->n_without; i++) {
		for (k = 0; k < n; k++)
			if (strcmp(rg_kernel_at(k)->name, opt->without[i]) == 0)
				break;
		if (k < n)
			continue;
		rg_error_set(err, RG_EUSAGE, "--without-kernel %s: no kernel is called so", opt->without[i]);
		return rg_error_hint(err, "the report shows which kernel runs each operator");
	}
	return 0;
}

int rg_select_check(const struct rg_graph *g, const struct rg_plan_options *opt, struct rg_error *err)
{
	int i, k;

	if (check_without(opt, err))
		return err->code;
	for (i = 0; i < opt->n_overrides; i++) {
		const char *op = opt->overrides[i].op;

		for (k = 0; k < g->n_nodes; k++)
			if (names_op(op, &g->nodes[k]) || names_node(op, &g->nodes[k]))
				break;
		if (k < g->n_nodes)
			continue;
		rg_error_set(err, RG_EUSAGE, "--kernel %s=%s fits nothing: no operator type or node is "
			     "called '%s'",
			     op, opt->overrides[i].kernel, op);
		return rg_error_hint(err, "the report lists the operators of a model, with names and types");
	}
	return 0;
}

static bool supports(const struct rg_kernel *k, const struct rg_call *c)
{
	return !k->supports || k->supports(c);
}

/* "ref, openblas": the kernels that an operator has. */
static void list_kernels(const struct rg_node *n, char *out, size_t cap)
{
	const struct rg_kernel *const *list;
	int i, count = rg_kernel_list(n->domain, n->op_type, &list);
	size_t len = 0;

	out[0] = '\0';
	for (i = 0; i < count; i++) {
		const struct rg_kernel *k = list[i];
		size_t need = strlen(k->name) + 2;

		if (len + need >= cap)
			continue;
		if (len) {
			memcpy(out + len, ", ", 2);
			len += 2;
		}
		strcpy(out + len, k->name);
		len += strlen(k->name);
	}
}

/* The kernel that the person asked for; *kernel NULL when nobody asked. */
static int find_override(const struct rg_call *c, const struct rg_plan_options *opt,
			 const struct rg_kernel **kernel,
			 bool *by_node, struct rg_error *err)
{
	const struct rg_node *n = c->node;
	const char *name = NULL;
	char list[256];
	int i;

	*kernel = NULL;
	*by_node = false;
	for (i = 0; i < opt->n_overrides; i++) {
		bool node = names_node(opt->overrides[i].op, n);

		if (node || (!*by_node && names_op(opt->overrides[i].op, n))) {
			name = opt->overrides[i].kernel;
			*by_node = node;
		}
	}
	if (!name)
		return 0;
	*kernel = rg_kernel_find(n->domain, n->op_type, name);
	if (!*kernel) {
		list_kernels(n, list, sizeof(list));
		rg_error_set(err, RG_EUSAGE, "%s has no kernel '%s'", n->op_type, name);
		return rg_error_hint(err, "there are: %s", list);
	}
	if ((*kernel)->isa & ~opt->isa) {
		rg_error_set(err, RG_EUSAGE, "kernel '%s' of %s needs %s, which this CPU or --isa does not "
			     "allow", name,
			     n->op_type, rg_isa_level_name((*kernel)->isa));
		return rg_error_hint(err, "leave --kernel out, or allow more with --isa native");
	}
	return 0;
}

int rg_select_no_kernel(const struct rg_call *c, struct rg_error *err)
{
	const struct rg_node *n = c->node;
	struct rg_str types = { 0 };
	char shape[160];
	int i;

	for (i = 0; i < n->n_in && i < 6; i++)
		if (c->in[i].dtype != RG_UNDEFINED)
			rg_str_printf(&types, "%s%s %s", types.len ? ", " : "", rg_dtype_name(c->in[i].dtype),
				      rg_shape_text(shape, &c->in[i].shape));
	rg_error_set(err, RG_ENOTSUP_MODEL, "no kernel for operator %s version %d on (%s)", n->op_type,
		     n->version,
		     rg_str_text(&types));
	rg_str_free(&types);
	return rg_error_hint(err, "no kernel of this version runs the operator on these element types");
}

/* Why `best` was taken: rank, or the least estimate among those of its rank. Text in `arena`, or NULL. */
static const char *explain(const struct rg_call *c, const struct rg_plan_options *opt, const struct rg_kernel *asked,
			   const struct rg_kernel *best, struct rg_arena *arena)
{
	const struct rg_kernel *passed_over = NULL, *second = NULL, *const *list;
	int able = 0, same = 0, n = rg_kernel_list(c->node->domain, c->node->op_type, &list);
	double next = INFINITY;
	const char *why;

	for (int i = 0; i < n; i++) {
		const struct rg_kernel *k = list[i];

		if ((k->isa & ~opt->isa) || rg_kernel_is_one_of(k, opt->n_without, opt->without) || !supports(k, c))
			continue;
		/* nothing but a refusal puts one that stands above the best behind it */
		if (k->rank > best->rank ||
		    (k->rank == best->rank && rg_kernel_cost(k, c) < rg_kernel_cost(best, c))) {
			passed_over = k;
			continue;
		}
		able++;
		if (k->rank < best->rank)
			continue;
		same++;
		if (k != best && rg_kernel_cost(k, c) < next) {
			second = k;
			next = rg_kernel_cost(k, c);
		}
	}
	if (able == 1 && !passed_over && !asked)
		return rg_arena_strdup(arena, "the only kernel that can run it");
	if (second)
		why = rg_arena_printf(arena, "least estimate of %d of rank %d: %.3g million vector multiply-adds, '%s' %.3g", same,
				      best->rank, rg_kernel_cost(best, c) / 1e6, second->name, next / 1e6);
	else
		why = rg_arena_printf(arena, "rank %d, the highest of %d that can run it", best->rank, able);
	if (why && passed_over)
		return rg_arena_printf(arena, "%s; '%s' was passed over: %s", why, passed_over->name,
				       rg_kernel_refusal(passed_over));
	return why && asked ? rg_arena_printf(arena, "'%s' was asked for and cannot run it; %s", asked->name, why) : why;
}

int rg_select_kernel(const struct rg_call *c, const struct rg_plan_options *opt, struct rg_arena *arena,
		     const struct rg_kernel **kernel, const char **reason, struct rg_error *err)
{
	const struct rg_kernel *asked, *best;
	const char *refusal;
	bool by_node;
	int rc;

	rc = find_override(c, opt, &asked, &by_node, err);
	if (rc)
		return rc;
	refusal = asked ? rg_kernel_refusal(asked) : NULL;
	if (asked && !refusal && supports(asked, c)) {
		*kernel = asked;
		*reason = rg_arena_strdup(arena, by_node ? "asked for by node name" :
							   "asked for by operator type");
		return *reason ? 0 : rg_error_nomem(err, 32);
	}
	if (refusal && by_node) {
		rg_error_set(err, RG_EUSAGE, "kernel '%s' of %s may not run: %s", asked->name, c->node->op_type, refusal);
		return rg_error_hint(err, "leave out  --kernel %s=%s, and report what  ridge doctor  says", c->node->name,
				     asked->name);
	}
	if (asked && by_node) {
		rg_error_set(err, RG_EUSAGE, "kernel '%s' cannot run this node: its types or shapes are not "
			     "supported", asked->name);
		return rg_error_hint(err, "leave out  --kernel %s=%s", c->node->name, asked->name);
	}
	best = rg_kernel_select_without(c, opt->isa, opt->n_without, opt->without);
	if (!best)
		return rg_select_no_kernel(c, err);
	*kernel = best;
	*reason = explain(c, opt, asked, best, arena);
	return *reason ? 0 : rg_error_nomem(err, 128);
}
