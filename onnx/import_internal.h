/* Private to onnx/: an ONNX file in memory, and the state of its import. */
#ifndef PRONY_ONNX_IMPORT_INTERNAL_H
#define PRONY_ONNX_IMPORT_INTERNAL_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "onnx/fold_internal.h"
#include "onnx/import.h"
#include "onnx/wire.h"

#define ONNX_MIN_OPSET 7
#define ONNX_MAX_OPSET 24
/* Limits for hostile files; real models have thousands. */
#define ONNX_MAX_NODES 65536
#define ONNX_MAX_NAMES (1 << 20)
#define ONNX_MAX_ARITY 4096

#define NAME_OMITTED (-1)

enum definition_kind { DEFINED_BY_INITIALIZER, DEFINED_BY_INPUT, DEFINED_BY_NODE };

/* The meaning of a name in the file. After import_names.c, its index among the definitions
 * identifies it. */
struct definition {
	const char *name;
	enum definition_kind kind;
	int index; /* of the input, initializer or node */
	int users; /* inputs of needed nodes, and the model's output */
};

struct file_node {
	const Onnx__NodeProto *proto;
	const char *name;      /* the file's, or made from its operator and index */
	int *inputs, *outputs; /* definitions; NAME_OMITTED */
	size_t input_count, output_count;
	bool needed; /* the output depends on it */
};

struct onnx_model {
	struct arena arena;
	uint8_t *bytes; /* of the file, if raw data of initializers is borrowed from them */
	struct raw_list raws;
	Onnx__ModelProto *proto;
	const Onnx__GraphProto *graph;
	const char *path;
	struct onnx_facts facts;
	struct definition *definitions;
	int definition_count;
	struct file_node *nodes;
	size_t node_count;
	struct constant *initializers; /* those that have users */
	int inputs[ONNX_MAX_INPUTS];   /* definitions, as in facts */
	int output;		       /* definition */
	int64_t weight_bytes;
	/* What onnx_model_import made. */
	struct graph network;
	struct tensor_set weights; /* their numbers are in proto, arena or numbers */
	struct onnx_notes notes;
	struct arena numbers; /* constants that were computed */
};

/* upgrade.c: turns attributes into inputs where later opsets have inputs. */
enum prony_status onnx_upgrade(struct onnx_model *model, struct error *err);

/* import_names.c: fills definitions and nodes, and connects them. */
enum prony_status onnx_resolve_names(struct onnx_model *model, struct error *err);
/* Whether a domain is ONNX's own; most files leave it out. */
bool onnx_is_own_domain(const char *domain);
/* Whether the operator is not one of ONNX's own. */
bool onnx_is_foreign(const Onnx__NodeProto *proto);

/* What a definition has been translated to. */
enum slot_kind { SLOT_EMPTY, SLOT_CONSTANT, SLOT_VALUE, SLOT_LOST };

struct slot {
	enum slot_kind kind;
	struct constant constant;
	int value;	/* of the graph */
	bool from_data; /* SLOT_LOST: it is certainly not constant */
};

/* State of the pass over the nodes. */
struct importer {
	const struct onnx_model *model;
	struct builder builder;
	struct arena arena;    /* freed after the pass */
	struct arena *numbers; /* computed constants; limited in size */
	struct slot *slots;    /* one for each definition */
	bool *done;	       /* nodes that were merged into another one */
	int64_t batch;
	struct refusal *refusals;
	int refusal_count;
	/* The numbers of each value of the graph that is a parameter or state. */
	struct constant *weights;
	int weight_capacity;
	int *uses; /* how many parameters each initializer has become */
	struct onnx_notes notes;
};

/* One node that cannot be translated. */
struct refusal {
	const struct file_node *node;
	const char *reason; /* NULL: the operator is not supported */
};

/* Translates a node. Outputs that it does not set are lost. Refusals are collected. */
typedef void import_function(struct importer *im, const struct file_node *node);

/* import_layers.c, import_layout.c, import_gelu.c */
import_function import_conv, import_pool, import_global_pool, import_gemm, import_matmul,
	import_batch_norm, import_sum, import_by_row, import_softmax, import_identity, import_power;
import_function import_reshape, import_transpose, import_concat, import_slice, import_split,
	import_pad, import_reduce, import_gather, import_cast, import_expand, import_erf;

/* import_refusals.c */

/* Records why this node cannot be translated; its outputs are lost. */
void import_refuse(struct importer *im, const struct file_node *node, const char *format, ...)
	PRONY_PRINTF(3, 4);
/* PRONY_UNSUPPORTED with all refusals. */
enum prony_status import_report(const struct importer *im, struct error *err);

/* import_append.c: helpers of the translations. */

/* What input i has been translated to; NULL if it is left out. */
const struct slot *import_slot(const struct importer *im, const struct file_node *node, size_t i);
/* Whether input i is there. */
bool import_has(const struct file_node *node, size_t i);
/* Input i when it is a constant; NULL otherwise. */
const struct constant *import_constant(const struct importer *im, const struct file_node *node,
				       size_t i);
const struct shape *import_shape(const struct importer *im, int value);
/* Input i must be an activation of this rank (0: any); false after a refusal. */
bool import_need_value(struct importer *im, const struct file_node *node, size_t i, int rank,
		       int *value);
/* Input i must be constant; false after a refusal. */
bool import_need_constant(struct importer *im, const struct file_node *node, size_t i,
			  const struct constant **out);

/* Adds a parameter or state with these numbers. `shape` replaces their shape if it is not NULL; it
 * must have as many elements. VALUE_NONE after a refusal. */
int import_parameter(struct importer *im, const struct file_node *node,
		     const struct constant *numbers, const struct shape *shape,
		     enum value_kind kind, const char *what);
/* Input i as a value of the graph. A constant becomes a parameter if it is an initializer with
 * dimensions (a bias, a scale), else a state (the 6 of a hard swish). */
int import_operand(struct importer *im, const struct file_node *node, size_t i);
/* Sets output i of the node to this constant. */
void import_set_constant(struct importer *im, const struct file_node *node, size_t i,
			 const struct constant *constant);
/* Reads a Constant node. */
void import_take_constant(struct importer *im, const struct file_node *node);
/* Input i if it is a constant, even one whose node comes later; NULL otherwise. */
const struct constant *import_ahead(struct importer *im, const struct file_node *node, size_t i);
/* Appends an operator of the IR; VALUE_NONE after a refusal. */
int import_append(struct importer *im, const struct file_node *node, enum op op, const int *inputs,
		  int input_count, const struct attributes *attributes);
/* Sets output i of the node to this value; VALUE_NONE sets nothing. */
void import_set(struct importer *im, const struct file_node *node, size_t i, int value);
/* Appends a Reshape or Flatten when the shape differs; returns the value. */
int import_reshaped(struct importer *im, const struct file_node *node, int value,
		    const struct shape *shape);

#endif
