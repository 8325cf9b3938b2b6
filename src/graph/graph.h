/*
 * The graph: values and nodes as the model file says, then typed and shaped.
 *
 * Life of a graph:
 *   rg_graph_new                    empty
 *   rg_graph_add_*                  a reader or a built-in model fills it
 *   rg_graph_finish                 checked: every name produced once, no cycle,
 *                                   nodes in topological order, each bound to
 *                                   its operator and version (graph/op.h)
 *   rg_graph_bind_*                 dimensions that the file left open
 *   rg_graph_infer (graph/infer.h)  every value gets its type and shape
 *
 * A graph owns everything it points to (one arena, and constant data that was
 * handed to it). Values and nodes are named by index; indices stay valid, but
 * pointers into values[] and nodes[] only until the next add.
 * Not thread safe while being changed; read-only use may be shared.
 */
#ifndef RG_GRAPH_GRAPH_H
#define RG_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/dtype.h"
#include "graph/tensor.h"

struct rg_op;
struct rg_graph;

/* ---- limits: beyond them a model is refused by name, not tried ---- */
#define RG_MAX_NODES 4000000
#define RG_MAX_VALUES 16000000
#define RG_MAX_NODE_IO 65536
#define RG_MAX_SUBGRAPH_DEPTH 32

/* What a value is. All but tensors exist only while a model runs, on the
 * dynamic path of the executor (exec/dynamic.h). */
enum rg_value_kind {
	RG_VALUE_TENSOR = 0,
	RG_VALUE_SEQUENCE,          /* of tensors of declared_dtype */
	RG_VALUE_OPTIONAL,          /* a tensor or nothing */
	RG_VALUE_OPTIONAL_SEQUENCE,
};

/* One dimension as a file declares it. */
struct rg_dim {
	int64_t value;      /* >= 0, or -1 when open */
	const char *symbol; /* "batch"; NULL when the file gives none */
};

enum rg_const_origin {
	RG_CONST_NONE = 0,    /* not a constant */
	RG_CONST_INITIALIZER, /* weights in the file */
	RG_CONST_NODE,        /* a Constant node (its value became data here) */
	RG_CONST_FOLDED,      /* computed from constants at plan time */
	RG_CONST_BOUND,       /* a graph input whose value the plan was specialised on */
};

struct rg_value {
	const char *name;
	enum rg_value_kind kind;        /* as declared, or as its producer makes it */
	bool has_declared;              /* the file gave type or shape */
	enum rg_dtype declared_dtype;   /* RG_UNDEFINED when it did not */
	int declared_rank;              /* -1 when no shape was declared */
	const struct rg_dim *declared;  /* declared_rank entries */

	bool shaped;                    /* dtype and shape below are known */
	bool dynamic;                   /* after inference: they become known while it runs */
	enum rg_dtype dtype;
	struct rg_shape shape;

	enum rg_const_origin origin;
	const void *data;               /* constant bytes, aligned to 64; NULL: not a constant
	                                   (also NULL for a constant with 0 elements). Of strings
	                                   the bytes are pointers; their characters follow in the
	                                   same block, or lie where the plan keeps them */
	bool released;                  /* a constant whose bytes were given back: a plan holds what is
	                                   needed of them; origin and shape stay */
	int producer;                   /* node index, -1 for inputs and initialisers */
	int n_consumers;                /* uses by nodes, an input used twice counts 2 */
	bool is_input, is_output;
	bool was_input;                 /* an initialiser that is listed as an input, too. Constant here; from
					   IR 4 on it was a default, which whoever runs the file may replace */
	bool from_outer;                /* subgraphs: defined in an enclosing graph */
};

enum rg_attr_type { /* ONNX's AttributeProto.AttributeType numbers */
	RG_ATTR_FLOAT = 1,
	RG_ATTR_INT = 2,
	RG_ATTR_STRING = 3,
	RG_ATTR_TENSOR = 4,
	RG_ATTR_GRAPH = 5,
	RG_ATTR_FLOATS = 6,
	RG_ATTR_INTS = 7,
	RG_ATTR_STRINGS = 8,
	RG_ATTR_TYPE = 13, /* what it says is not kept: no operator here needs it */
};

struct rg_attr {
	const char *name;
	enum rg_attr_type type;
	float f;
	int64_t i;
	const char *s;              /* NUL-terminated copy; length in s_len */
	size_t s_len;
	struct rg_tensor t;         /* constant data, 64-aligned */
	struct rg_graph *g;         /* a subgraph, owned by the graph */
	int count;                  /* of the lists below */
	const float *floats;
	const int64_t *ints;
	const char *const *strings;
	const char *ref;            /* in the body of a function: the value is that of the function's
	                               attribute of this name; NULL everywhere else */
};

struct rg_node {
	const char *name;           /* never NULL; made up ("Conv_12") where the file has none */
	const char *op_type;
	const char *domain;         /* "" for the standard one ("ai.onnx" is mapped to "") */
	const char *overload;       /* a call of a local function: which of that name; else "" */
	int64_t opset;              /* of its domain, for a node that came out of a function, which
	                               has opsets of its own; 0: what the graph says */
	const struct rg_op *op;     /* after finish */
	int version;                /* the operator's since_version that applies */
	int n_in, n_out;
	int *in;                    /* value index, -1 for an absent optional input */
	int *out;                   /* value index, -1 for an unwanted output */
	int n_captured;             /* after finish: what its subgraphs read of this graph, */
	int *captured;              /* value indices; a value once a subgraph */
	const char *unsupported;    /* lenient graphs: why it cannot run; its op stands for that. NULL: it can */
	const char *dynamic;        /* after inference: why it runs on the dynamic path; NULL: planned */
	int n_attrs;
	struct rg_attr *attrs;
};

struct rg_opset {
	const char *domain;
	int64_t version;
};

struct rg_graph {
	struct rg_arena *arena;
	const char *name;
	const char *producer;       /* "pytorch 2.1"; "" unknown */
	int64_t ir_version;         /* 0 for built-in models */
	int n_opsets;
	struct rg_opset *opsets;
	int n_values;
	struct rg_value *values;
	int n_nodes;
	struct rg_node *nodes;
	int n_inputs;               /* graph inputs without initialiser, in file order */
	int *inputs;
	int n_outputs;
	int *outputs;
	bool lenient;               /* set before finish, on the main graph: nodes that cannot run are
	                               kept, and say so in rg_node.unsupported; for analysis only */
	int depth;                  /* 0 for the main graph */
	struct rg_graph *outer;     /* enclosing graph, NULL for the main one */
	struct rg_graph_private *priv;
};

/* Empty graph, or NULL when out of memory. `outer` is NULL for a main graph. */
struct rg_graph *rg_graph_new(struct rg_graph *outer);
void rg_graph_free(struct rg_graph *g);

int rg_graph_set_opset(struct rg_graph *g, const char *domain, int64_t version, struct rg_error *err);
/* The version of a domain that applies in this graph, subgraphs inherit it; 0: not imported. */
int64_t rg_graph_opset(const struct rg_graph *g, const char *domain);
/* Index of the value of that name, made when it does not exist. Negative: errno. */
int rg_graph_value(struct rg_graph *g, const char *name, struct rg_error *err);
/* Index, or -1 when there is none. */
int rg_graph_find_value(const struct rg_graph *g, const char *name);
/* Declares type and shape of a value; dims are copied. rank -1: no shape. */
int rg_graph_declare(struct rg_graph *g, int value, enum rg_dtype dtype, int rank,
		     const struct rg_dim *dims, struct rg_error *err);
/* Says that a value is a sequence or an optional; dtype is that of its tensors
 * (rg_graph_declare with rank -1). */
int rg_graph_declare_kind(struct rg_graph *g, int value, enum rg_value_kind kind, struct rg_error *err);
int rg_graph_add_input(struct rg_graph *g, int value, struct rg_error *err);
/* A body may give one value twice (as state and to be stacked), a main graph not. */
int rg_graph_add_output(struct rg_graph *g, int value, struct rg_error *err);
/*
 * Makes a value a constant. Takes ownership of `data` (from rg_alloc_aligned
 * with 64; NULL for 0 elements) on success and on failure. A second constant of
 * that name is an error.
 */
int rg_graph_add_const(struct rg_graph *g, int value, enum rg_const_origin origin,
		       enum rg_dtype dtype, const struct rg_shape *shape, void *data,
		       struct rg_error *err);
/*
 * Appends a node. Strings, lists and attributes are copied into the graph's
 * arena, except attr.t.data and attr.g, which the graph takes over (on success
 * and on failure; t.data from rg_alloc_aligned). Returns its index or a
 * negative errno.
 */
int rg_graph_add_node(struct rg_graph *g, const char *domain, const char *op_type, const char *name,
		      int n_in, const int *in, int n_out, const int *out,
		      int n_attrs, const struct rg_attr *attrs, struct rg_error *err);
/*
 * Checks and completes: Constant nodes become constant values and vanish,
 * names have one producer, every use has one, no cycles, nodes sorted
 * topologically (stable: file order where it is already one), dead nodes are
 * kept (the compiler removes them), operators bound (unknown domain, operator
 * or version: RG_ENOTSUP_MODEL, naming operator, version and node).
 */
int rg_graph_finish(struct rg_graph *g, struct rg_error *err);

/*
 * For a pass that has changed the nodes of a finished graph: takes out the nodes
 * i < n with gone[i] set, and brings producers, consumers, captures and the
 * order up to date. Constants that nodes were folded into stay.
 */
int rg_graph_drop_nodes(struct rg_graph *g, const unsigned char *gone, int n, struct rg_error *err);

/* What a person gives to close open dimensions. */
struct rg_bindings {
	int n_shapes;
	struct { const char *input; struct rg_shape shape; } *shapes;   /* --shape NAME=1x3x8x8 */
	int n_dims;
	struct { const char *symbol; int64_t value; } *dims;            /* --dim batch=4 */
};
/*
 * Gives every graph input its type and shape. A dimension left open is an error
 * that names input and dimension and shows the option that would close it;
 * a binding that fits nothing, or contradicts the file, is an error too.
 * A --shape wins over a --dim, and closes its symbols for the other inputs when
 * no --dim does. `b` may be NULL.
 */
int rg_graph_bind(struct rg_graph *g, const struct rg_bindings *b, struct rg_error *err);

/* Sizes that an example gives to open dimensions: 1 to the first of an input, and
 * to the others by their place: in a picture (rank 4), `middle` to the one that is
 * open between two fixed ones (rank 3: often the batch of a state), else `length`. */
struct rg_example_sizes {
	int64_t channels, height, width, length, middle;
};
/*
 * `b`, and a shape for every input that it leaves open, in `out` (the caller's,
 * with room for b->n_shapes + n_inputs shapes; names and dims are borrowed).
 * Returns how many shapes were added, -1 when an input has no declared rank.
 */
int rg_graph_example(const struct rg_graph *g, const struct rg_bindings *b,
		     const struct rg_example_sizes *sizes, struct rg_bindings *out);

/* Parameters as published: elements of floating-point initialisers, and of
 * Constant nodes with more than one element (some exporters write all weights
 * so), that the live part of the graph uses, tied ones once, without running
 * statistics of BatchNormalization and without integer constants. -1: out of
 * memory. */
int64_t rg_graph_count_params(const struct rg_graph *g);
/* The same for one value, wherever it is used: 0 for what is none. */
int64_t rg_value_params(const struct rg_value *v);
/* Bytes of all constants that the graph uses, bound inputs not counted. -1:
 * unknown. After folding the folded ones count, and what only they used no more. */
int64_t rg_graph_weight_bytes(const struct rg_graph *g);

/* ---- attributes of a node; the default comes back where there is none ---- */
const struct rg_attr *rg_node_attr(const struct rg_node *n, const char *name); /* NULL: none */
int64_t rg_node_int(const struct rg_node *n, const char *name, int64_t dflt);
float rg_node_float(const struct rg_node *n, const char *name, float dflt);
const char *rg_node_string(const struct rg_node *n, const char *name, const char *dflt);
/* Points *out at the list, returns its length; -1 when there is none. */
int rg_node_ints(const struct rg_node *n, const char *name, const int64_t **out);
int rg_node_floats(const struct rg_node *n, const char *name, const float **out);

#endif
