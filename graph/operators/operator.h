/*
 * For the files of graph/operators/: an operator's row (graph/operators.h) and what its functions
 * are made of. The file of a forward operator holds its gradients' rows, too.
 */
#ifndef PRONY_GRAPH_OPERATORS_OPERATOR_H
#define PRONY_GRAPH_OPERATORS_OPERATOR_H

#include "graph/backward_internal.h"
#include "graph/kernel.h"
#include "graph/operator_rows_internal.h"
#include "graph/samples.h"

/* row_CONV is the row of OP_CONV; table.c lists them. */
#define X(id, name) extern const struct operator_row row_##id;
PRONY_OPERATORS(X)
#undef X

#define ATTRIBUTE(onnx_name, type, member, standard)                                               \
	.name = (onnx_name), .kind = ATTRIBUTE_##type,                                             \
	.offset = offsetof(struct attributes, member), .otherwise = (standard)
#define ARITY(least, most, outputs)                                                                \
	.min_inputs = (least), .max_inputs = (most), .max_outputs = (outputs)
/* A gradient reads and writes all of these, and has the attributes of its forward operator. */
#define GRADIENT(inputs, outputs, table)                                                           \
	ARITY(inputs, inputs, outputs), .attributes = (table), .is_gradient = true,                \
					.infer = infer_gradient

/* Output 0 is input 0. */
void compute_copy(const struct kernel_call *call);

/* `terms` of what is only moved. */
int64_t terms_none(const struct graph *graph, const struct node *node, int output);
/* Of what sums up all that the output has fewer elements than input 0. */
int64_t terms_shared(const struct graph *graph, const struct node *node, int output);
/* Of the gradients of a weight (by its macs) and a bias. */
int64_t terms_of_weight_gradient(const struct graph *graph, const struct node *node, int output);

#endif
