#include "adapters/native/lower/lower_internal.h"

/* An operator in the library's function. */
struct function {
	dnnl_alg_kind_t forward, backward; /* backward over the output where one of it exists */
	bool over_output;		   /* what the gradient reads */
	float alpha, beta;
};

static struct function function_of(const struct node *node)
{
	const struct attributes *a = &node->attributes;

	switch (node->op) {
	case OP_TANH:
	case OP_TANH_GRAD:
		return (struct function){dnnl_eltwise_tanh, dnnl_eltwise_tanh_use_dst_for_bwd, true,
					 0, 0};
	case OP_SIGMOID:
	case OP_SIGMOID_GRAD:
		return (struct function){dnnl_eltwise_logistic,
					 dnnl_eltwise_logistic_use_dst_for_bwd, true, 0, 0};
	case OP_HARD_SIGMOID:
	case OP_HARD_SIGMOID_GRAD:
		return (struct function){dnnl_eltwise_hardsigmoid, dnnl_eltwise_hardsigmoid, false,
					 (float)a->alpha, (float)a->beta};
	case OP_HARD_SWISH:
	case OP_HARD_SWISH_GRAD:
		return (struct function){dnnl_eltwise_hardswish, dnnl_eltwise_hardswish, false,
					 1.0f / 6, 0.5f};
	case OP_CLIP:
	case OP_CLIP_GRAD: /* version 2 has no gradient at either end */
		return (struct function){dnnl_eltwise_clip_v2, dnnl_eltwise_clip_v2, false,
					 (float)a->min, (float)a->max};
	default: /* OP_NEG, whose gradient is itself */
		return (struct function){dnnl_eltwise_linear, dnnl_eltwise_linear, false, -1, 0};
	}
}

bool lower_eltwise_function(const struct node *node, struct eltwise_function *out)
{
	struct function f;

	switch (node->op) {
	case OP_RELU:
		*out = (struct eltwise_function){.algorithm = dnnl_eltwise_relu};
		return true;
	case OP_TANH:
	case OP_SIGMOID:
	case OP_HARD_SIGMOID:
	case OP_HARD_SWISH:
	case OP_CLIP:
	case OP_NEG:
		f = function_of(node);
		*out = (struct eltwise_function){
			.algorithm = f.forward, .alpha = f.alpha, .beta = f.beta};
		return true;
	default:
		return false;
	}
}

/* In training the forward primitive must be of the kind that the gradient wants as a hint. */
static dnnl_status_t create_forward(const struct lowering *l, const struct function *f,
				    const_dnnl_memory_desc_t x,
				    const_dnnl_primitive_attr_t attributes,
				    dnnl_primitive_desc_t *out)
{
	return l->dnn->eltwise_forward_primitive_desc_create(
		out, l->dnn->engine, l->training ? dnnl_forward_training : dnnl_forward_inference,
		l->training ? f->backward : f->forward, x, x, f->alpha, f->beta, attributes);
}

enum prony_status lower_eltwise(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct function f = function_of(node);
	dnnl_primitive_attr_t attributes = NULL;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK)
		status = lower_attributes(l, false, &attributes, err);
	if (status != PRONY_OK)
		return status;
	status = onednn_check(create_forward(l, &f, l->program->operands[state->src].desc,
					     attributes, &state->forward),
			      "elementwise function", node->name, err);
	l->dnn->primitive_attr_destroy(attributes);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status == PRONY_OK)
		status = program_primitive(l->program, node->name, "forward", state->forward,
					   (const int[]){DNNL_ARG_SRC, DNNL_ARG_DST},
					   (const int[]){state->src, state->dst}, 2, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = state->dst;
	return status;
}

/*
 * Padded blocks as an array: for the gradients of some functions the library has only reference
 * code that steps over the padding (HardSwish of 120 channels: 330 us for 2), and what is there
 * stays zero, because the gradient of a function is a product with dy.
 */
static enum prony_status as_array(struct lowering *l, int *operand, struct error *err)
{
	const_dnnl_memory_desc_t desc = l->program->operands[*operand].desc;
	int64_t count = (int64_t)lower_elements(l, *operand), real = 1;
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status;

	for (int i = 0; i < lower_rank(l, desc); i++)
		real *= lower_dims(l, desc)[i];
	if (real == count || lower_type(l, *operand) != dnnl_f32)
		return PRONY_OK;
	status = lower_plain(l, dnnl_f32, 1, &count, &plain, err);
	if (status != PRONY_OK)
		return status;
	status = program_alias(l->program, *operand, plain, 0, operand, err);
	l->dnn->memory_desc_destroy(plain);
	return status;
}

/* Creates the gradient's primitive with a forward one of the same layout as its hint. */
static enum prony_status create_backward(struct lowering *l, int n, const struct function *f,
					 const_dnnl_memory_desc_t desc, dnnl_primitive_desc_t *out,
					 struct error *err)
{
	const struct onednn *dnn = l->dnn;
	dnnl_primitive_attr_t attributes = NULL;
	dnnl_primitive_desc_t hint = NULL;
	dnnl_status_t created;
	enum prony_status status = lower_attributes(l, false, &attributes, err);

	if (status != PRONY_OK)
		return status;
	created = create_forward(l, f, desc, attributes, &hint);
	if (created == dnnl_success)
		created = dnn->eltwise_backward_primitive_desc_create(out, dnn->engine, f->backward,
								      desc, desc, desc, f->alpha,
								      f->beta, hint, attributes);
	if (hint)
		dnn->primitive_desc_destroy(hint);
	dnn->primitive_attr_destroy(attributes);
	return onednn_check(created, "gradient of an elementwise function", l->graph->nodes[n].name,
			    err);
}

enum prony_status lower_eltwise_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[node->differentiates];
	struct function f = function_of(node);
	int data = f.over_output ? state->dst : state->src, dy, dx;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_as(l, dy, l->program->operands[data].desc, node->name, &dy, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], dy, &dx, err);
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = dx;
	status = as_array(l, &data, err);
	if (status == PRONY_OK)
		status = as_array(l, &dy, err);
	if (status == PRONY_OK)
		status = as_array(l, &dx, err);
	if (status == PRONY_OK)
		status = create_backward(l, n, &f, l->program->operands[data].desc,
					 &state->backward_data, err);
	if (status == PRONY_OK)
		status =
			program_primitive(l->program, node->name, "", state->backward_data,
					  (const int[]){f.over_output ? DNNL_ARG_DST : DNNL_ARG_SRC,
							DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC},
					  (const int[]){data, dy, dx}, 3, err);
	return status;
}
