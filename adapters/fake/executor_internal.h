/* Private to the executor: declarations that its sources share. */
#ifndef PRONY_ADAPTERS_FAKE_EXECUTOR_INTERNAL_H
#define PRONY_ADAPTERS_FAKE_EXECUTOR_INTERNAL_H

#include "adapters/fake/executor.h"

/* One call of an operator for a node. */
struct call {
	const struct executor *ex;
	const struct node *node;
	const struct attributes *a;
	bool training;
};

/* Return the data and dimensions of inputs and outputs; NULL if absent. */
float *call_input(const struct call *c, int i);
float *call_output(const struct call *c, int i);
const int64_t *call_input_dims(const struct call *c, int i);
const int64_t *call_output_dims(const struct call *c, int i);
int64_t call_count(const struct call *c); /* elements of output 0 */

typedef void executor_operator(const struct call *c);
executor_operator executor_conv, executor_conv_grad_input, executor_conv_grad_weight;
executor_operator executor_gemm, executor_gemm_grad_input, executor_gemm_grad_weight;
/* Returns NULL for operators that the executor lacks. */
executor_operator *executor_find(enum op op);

/* Allocates the largest scratch memory that the products of the graph need. */
enum prony_status executor_make_scratch(struct executor *executor, struct error *err);

#endif
