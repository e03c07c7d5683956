/* Element-wise functions, with the library's primitives. */
#include "adapters/native/cpu/cpu.h"

/*
 * In training the gradient uses the forward primitive as a hint, so both have the same algorithm.
 */
static dnnl_status_t create_forward(const struct lowering *l, const struct eltwise_function *f,
				    const_dnnl_memory_desc_t x, dnnl_primitive_desc_t *out)
{
	return cpu_onednn(l)->eltwise_forward_primitive_desc_create(
		out, cpu_onednn(l)->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, f->algorithm, x, x,
		f->alpha, f->beta, cpu_attributes(l, NULL));
}

enum prony_status cpu_eltwise(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct eltwise_function f = cpu_function(node->op, node, l->training);
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &state->src, err);

	/* The gradient of such a function is NaN at zero, and padding is zero. */
	if (status == PRONY_OK && operator_row(node->op)->elementwise->positive)
		status = lower_unblocked(l, state->src, node->name, &state->src, err);
	if (status == PRONY_OK)
		status = onednn_check(
			create_forward(l, &f, cpu_desc(l, state->src), &state->work->forward),
			"elementwise function", node->name, err);
	return status == PRONY_OK ? cpu_unary(l, n, err) : status;
}

/* Views padded blocks as a plain array. For the gradients of some functions the library has only
 * reference code that skips the padding (HardSwish of 120 channels: 330 us instead of 2). The
 * padding stays zero in the plain array too, because the gradient of a function is a product with
 * dy. */
static enum prony_status as_array(struct lowering *l, int *operand, struct error *err)
{
	const struct layout *layout = lower_layout(l, *operand);
	int64_t count = (int64_t)layout_elements(layout), real = 1;
	struct layout array = layout_row_major(DTYPE_F32, 1, &count);

	for (int i = 0; i < layout->rank; i++)
		real *= layout->dims[i];
	if (real == count || layout->type != DTYPE_F32)
		return PRONY_OK;
	return program_alias(l->program, *operand, &array, 0, operand, err);
}

/* Creates the gradient's primitive with a forward primitive of the same layout as its hint. */
static enum prony_status create_backward(struct lowering *l, int n,
					 const struct eltwise_function *f,
					 const_dnnl_memory_desc_t desc, dnnl_primitive_desc_t *out,
					 struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	dnnl_primitive_desc_t hint = NULL;
	dnnl_status_t created = create_forward(l, f, desc, &hint);

	if (created == dnnl_success)
		created = dnn->eltwise_backward_primitive_desc_create(
			out, dnn->engine, f->algorithm, desc, desc, desc, f->alpha, f->beta, hint,
			cpu_attributes(l, NULL));
	if (hint)
		dnn->primitive_desc_destroy(hint);
	return onednn_check(created, "gradient of an elementwise function", l->graph->nodes[n].name,
			    err);
}

enum prony_status cpu_eltwise_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[node->differentiates];
	enum op function = l->graph->nodes[node->differentiates].op;
	struct eltwise_function f = cpu_function(function, node, true);
	bool of_output = operator_row(function)->elementwise->slope_of_output;
	int data = of_output ? state->dst : state->src, dy, dx;
	enum prony_status status = lower_unary_grad(l, n, data, &dy, &dx, err);

	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = dx;
	if (function == OP_ERF) {
		cpu_erf_grad(l, node->name, dx, dy, data);
		return PRONY_OK;
	}
	status = as_array(l, &data, err);
	if (status == PRONY_OK)
		status = as_array(l, &dy, err);
	if (status == PRONY_OK)
		status = as_array(l, &dx, err);
	if (status == PRONY_OK)
		status = create_backward(l, n, &f, cpu_desc(l, data), &state->work->backward_data,
					 err);
	if (status == PRONY_OK)
		status = cpu_primitive(l, node->name, "", state->work->backward_data,
				       (const int[]){of_output ? DNNL_ARG_DST : DNNL_ARG_SRC,
						     DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC},
				       (const int[]){data, dy, dx}, 3, err);
	return status;
}
