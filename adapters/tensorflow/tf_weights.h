/* The TensorFlow variables of a network: which variable holds which parameters and running
 * statistics of the graph, and in which order. */
#ifndef PRONY_ADAPTERS_TENSORFLOW_TF_WEIGHTS_H
#define PRONY_ADAPTERS_TENSORFLOW_TF_WEIGHTS_H

#include "adapters/tensorflow/tf_translate.h"

struct tf_variable {
	struct shape shape;
	bool trained;
	int owner;		       /* a value that it holds */
	struct tf_output handle, read; /* the resource, and its value in this step */
	struct tf_output placeholder;  /* feeds its initial value */
	struct tf_output gradient;     /* resource that keeps it: forward-backward */
};

/* A parameter or state: the elements of one variable from `offset` on. */
struct tf_weight {
	int value, variable;
	int64_t offset, elements;
	struct arrangement order;
	bool gates; /* four blocks of rows: i, o, f, c in the graph, i, c, f, o in BlockLSTM */
};

struct tf_weights {
	struct tf_weight *weights; /* parameters and states, in graph order */
	struct tf_variable *variables;
	int weight_count, variable_count;
};

/* Plans the variables, and appends a resource, a placeholder and a read for each. Sets the values
 * of the translation that nodes read. Arrays are in the translation's arena. */
void tf_weights_build(struct tf_translation *t, struct tf_weights *out);

/* Copies a weight between graph order and its place in the data of its variable. */
void tf_weight_copy(const struct tf_weight *weight, float *in_graph, float *variable,
		    bool to_variable);

/* A TensorFlow resource that persists between steps, its read, its assignment and a placeholder. */
struct tf_output tf_resource(struct tf_emit *e, enum tf_type type, const struct shape *shape);
struct tf_output tf_read(struct tf_emit *e, struct tf_output handle, enum tf_type type);
struct tf_operation *tf_assign(struct tf_emit *e, struct tf_output handle, struct tf_output value);
struct tf_output tf_placeholder(struct tf_emit *e, enum tf_type type, const struct shape *shape);

#endif
