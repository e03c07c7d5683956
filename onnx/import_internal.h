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
/* How many integers a table has for an input that indexes no table, such as a time step. */
#define ONNX_INTEGERS 1000
#define ONNX_MAX_INTEGERS (INT64_C(1) << 20)

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
	int input_total;	       /* may be more */
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

/* import.c: appends "; unsupported operators: ..." if a needed node's operator is not supported. */
void import_list_missing(const struct onnx_model *model, struct strbuf *out);

/* What a definition has been translated to. */
enum slot_kind { SLOT_EMPTY, SLOT_CONSTANT, SLOT_LOOKUP, SLOT_VALUE, SLOT_LOST };

/*
 * A tensor of which each element depends on one integer of one input: a mask, a position. The graph
 * computes with real numbers and reads integers only by Gather, so such a tensor is held as a table
 * until a node needs it as real numbers.
 */
struct lookup {
	int input;	      /* of the model */
	struct constant from; /* for each element, the index of the integer that it depends on */
	/* For each integer from 0 on, the tensor if all integers of the input were that one; its
	 * shape broadcasts to that of `from`. NULL: the tensor has the integers themselves. */
	struct constant *values;
	int64_t rows; /* of values */
	int value;    /* of the graph, once a node has needed it; else VALUE_NONE */
};

struct slot {
	enum slot_kind kind;
	struct constant constant;
	struct lookup *lookup;
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
	bool fixed;		     /* inputs whose integers are known are constants */
	int inputs[ONNX_MAX_INPUTS]; /* values of the graph */
	int64_t tabulated;	     /* elements of lookups so far */
	/* Constants with dimensions that are states: all their users read the same one. */
	struct shared_state {
		const float *floats;
		struct shape shape;
		int value;
	} * states;
	int state_count, state_capacity;
	int *uses;    /* how many parameters each initializer has become */
	bool *shared; /* initializers with several users, also through Identity */
	int *tied;    /* the parameter that all users of an initializer share, or VALUE_NONE */
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
	import_pad, import_reduce, import_gather, import_cast, import_expand, import_erf,
	import_where, import_resize;
/* import_recurrent.c */
import_function import_recurrent;

/* import_gather.c: whether a Gather takes rows of a trained table by constant indices. */
bool import_picks_rows(const struct importer *im, const struct file_node *node);
import_function import_constant_rows;
/* Whether a Slice takes a part of a trained table, which stays trained. */
bool import_slices_table(const struct importer *im, const struct file_node *node);
/* Rows of a trained table by the integers of an input, as if these had that shape. */
void import_embedding(struct importer *im, const struct file_node *node,
		      const struct constant *table, int indices, const struct shape *shape);

/* import_integers.c */

/* Whether an integer input is filled with the same integers in every batch. */
bool import_can_fix(const struct onnx_input *input);
/* Makes the slot of an integer input: a lookup, or a constant if im->fixed and it can be. */
struct slot import_integers(struct importer *im, int input);
/* Whether a node, whose inputs are constants and lookups, gives a lookup, or an embedding; then it
 * is translated, or refused. */
bool import_lookup(struct importer *im, const struct file_node *node);
/* The same lookup as real numbers in the graph; VALUE_NONE after a refusal. */
int import_looked_up(struct importer *im, const struct file_node *node, struct lookup *lookup);

/* import_output.c */

/* Finds the logits, rows of classes. An output with one long dimension behind the batch has a row
 * for each sample. One with more has a row for each place, with the classes in the last dimension,
 * or in the channels of an image. */
enum prony_status import_find_logits(struct importer *im, int *logits, struct error *err);

/* import_refusals.c */

/* Records why this node cannot be translated; its outputs are lost. */
void import_refuse(struct importer *im, const struct file_node *node, const char *format, ...)
	PRONY_PRINTF(3, 4);
/* Appends the operators that are not supported, with their nodes. */
void import_list_operators(const struct importer *im, struct strbuf *out);
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

/* The initializer itself, if the constant is one with several users that is a single parameter: not
 * all its numbers are equal. `transposed`: whether the constant is its transpose. NULL otherwise.
 */
const struct constant *import_tied(const struct importer *im, const struct constant *numbers,
				   bool *transposed);

/* The most negative number of a mask. The largest negative float and minus infinity become this:
 * after a softmax both give 0, and bf16 can hold it. */
#define MASK_NUMBER (-1e9F)
#define IS_MASKED(number) ((number) < -1e30F)
/* From this number on, what is added to scores takes them out of a softmax; no trained number is as
 * low. */
#define MASKS_FROM (-1e4F)

/* Adds a parameter or state with these numbers. A tied initializer becomes a parameter once, and
 * the same value is returned again; in a state, numbers that mask become MASK_NUMBER. `shape`
 * replaces their shape if it is not NULL; it must have as many elements. VALUE_NONE after a
 * refusal. */
int import_parameter(struct importer *im, const struct file_node *node,
		     const struct constant *numbers, const struct shape *shape,
		     enum value_kind kind, const char *what);
/* Input i as a value of the graph. A constant becomes a parameter if it is an initializer with
 * dimensions (a bias, a scale) that does not mask, else a state (the 6 of a hard swish). */
int import_operand(struct importer *im, const struct file_node *node, size_t i);
/* Keeps one of the equal slices along each axis (of_batch: only along axes as long as the batch);
 * the axis becomes 1. */
void import_drop_repeats(struct importer *im, struct constant *c, bool of_batch);
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
/* The same with a given name, which must be free. */
int import_append_named(struct importer *im, const struct file_node *node, const char *name,
			enum op op, const int *inputs, int input_count,
			const struct attributes *attributes);
/* Removes the graph's last node if it computes x, which is input 0 of the node and which no later
 * node of the file reads. */
bool import_take_back(struct importer *im, const struct file_node *node, int x);
/* Appends a Transpose. One that does the opposite is taken back instead. */
int import_turned(struct importer *im, const struct file_node *node, int x, const int64_t *order,
		  int rank);
/* Sets output i of the node to this value; VALUE_NONE sets nothing. */
void import_set(struct importer *im, const struct file_node *node, size_t i, int value);
/* Appends a Slice; returns x itself if the range is the whole axis. */
int import_range(struct importer *im, const struct file_node *node, int x,
		 const struct onnx_range *range);
/* Appends a Reshape or Flatten when the shape differs; returns the value. */
int import_reshaped(struct importer *im, const struct file_node *node, int value,
		    const struct shape *shape);

#endif
