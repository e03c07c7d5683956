/* For the files of graph/operators/: the row of an operator (graph/operators.h) and shared
 * functions. The file of a forward operator also holds the rows of its gradients. */
#ifndef PRONY_GRAPH_OPERATORS_OPERATOR_H
#define PRONY_GRAPH_OPERATORS_OPERATOR_H

#include "graph/backward_internal.h"
#include "graph/kernel.h"
#include "graph/node_internal.h"
#include "graph/samples.h"

/* row_CONV is the row of OP_CONV; table.c lists all rows. */
#define X(id, name) extern const struct operator_row row_##id;
PRONY_OPERATORS(X)
#undef X

#define ATTRIBUTE(onnx_name, type, member, standard)                                               \
	.name = (onnx_name), .kind = ATTRIBUTE_##type,                                             \
	.offset = offsetof(struct attributes, member), .otherwise = (standard)
#define ARITY(least, most, outputs)                                                                \
	.min_inputs = (least), .max_inputs = (most), .max_outputs = (outputs)
/* For gradient rows: all inputs and outputs are required; attributes are the forward operator's. */
#define GRADIENT(inputs, outputs, table)                                                           \
	ARITY(inputs, inputs, outputs), .attributes = (table), .is_gradient = true,                \
					.infer = infer_gradient

/* Copies input 0 to output 0. */
void compute_copy(const struct kernel_call *call);

/* `terms` of operators that only move elements. */
int64_t terms_none(const struct graph *graph, const struct node *node, int output);
/* `terms` of operators that sum: elements of input 0 per element of the output. */
int64_t terms_shared(const struct graph *graph, const struct node *node, int output);
/* `terms` of the gradients of a weight (its macs) and a bias. */
int64_t terms_of_weight_gradient(const struct graph *graph, const struct node *node, int output);

/* broadcast.c, for operators with two operands whose shapes are aligned at their last axes. */

/* The shape of the result by NumPy's rule: a dimension that is 1 or missing is repeated. */
bool broadcast_shape(const struct shape *a, const struct shape *b, struct shape *y);
/* Contributes `gradient`, which has the shape of the output, to input i; sums over the repetitions
 * if the input was broadcast. */
enum prony_status broadcast_contribute(struct graph *graph, const struct node *node, int i,
				       int gradient, struct error *err);
/* An operand without samples must be repeated for each sample, except along the last `own` axes,
 * which are not broadcast. */
struct samples_axis broadcast_samples(const struct samples *s, const struct node *node, int own);

#endif
