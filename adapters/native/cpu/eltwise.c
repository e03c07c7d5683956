/* Functions of one element, as the library has them. */
#include "adapters/native/cpu/cpu.h"

/* An operator in the library's words. */
struct function {
	dnnl_alg_kind_t forward, backward; /* backward over y where the row's slope is of it */
	double alpha, beta;		   /* numbers that the library calls so */
	size_t alpha_from, beta_from;	   /* or where they are in struct attributes */
};

#define NUMBER(member) offsetof(struct attributes, member)

/* clang-format off */
static const struct function functions[OP_COUNT] = {
	[OP_RELU] = {dnnl_eltwise_relu, dnnl_eltwise_relu, 0, 0, 0, 0}, /* in chains only */
	[OP_TANH] = {dnnl_eltwise_tanh, dnnl_eltwise_tanh_use_dst_for_bwd, 0, 0, 0, 0},
	[OP_SIGMOID] = {dnnl_eltwise_logistic, dnnl_eltwise_logistic_use_dst_for_bwd, 0, 0, 0, 0},
	[OP_HARD_SIGMOID] = {dnnl_eltwise_hardsigmoid, dnnl_eltwise_hardsigmoid, 0, 0,
			     NUMBER(alpha), NUMBER(beta)},
	[OP_HARD_SWISH] = {dnnl_eltwise_hardswish, dnnl_eltwise_hardswish, 1.0 / 6, 0.5, 0, 0},
	/* Version 2 has no gradient at either end. */
	[OP_CLIP] = {dnnl_eltwise_clip_v2, dnnl_eltwise_clip_v2, 0, 0, NUMBER(min), NUMBER(max)},
	[OP_ELU] = {dnnl_eltwise_elu, dnnl_eltwise_elu, 0, 0, NUMBER(alpha), 0},
	[OP_LEAKY_RELU] = {dnnl_eltwise_relu, dnnl_eltwise_relu, 0, 0, NUMBER(alpha), 0},
	[OP_EXP] = {dnnl_eltwise_exp, dnnl_eltwise_exp_use_dst_for_bwd, 0, 0, 0, 0},
	[OP_SQRT] = {dnnl_eltwise_sqrt, dnnl_eltwise_sqrt_use_dst_for_bwd, 0, 0, 0, 0},
	[OP_GELU] = {dnnl_eltwise_gelu_erf, dnnl_eltwise_gelu_erf, 0, 0, 0, 0},
	[OP_NEG] = {dnnl_eltwise_linear, dnnl_eltwise_linear, -1, 0, 0, 0},
};
static const struct function gelu_tanh = {dnnl_eltwise_gelu_tanh, dnnl_eltwise_gelu_tanh, 0, 0, 0, 0};
/* clang-format on */

static float number_of(const struct attributes *a, double number, size_t from)
{
	return (float)(from ? *(const double *)((const char *)a + from) : number);
}

/* `node` has the attributes; in training the gradient needs a forward pass of its kind. */
static struct eltwise_function words_of(enum op op, const struct node *node, bool training)
{
	const struct function *f = &functions[op];

	if (op == OP_GELU && node->attributes.approximate)
		f = &gelu_tanh;
	return (struct eltwise_function){
		.algorithm = training ? f->backward : f->forward,
		.alpha = number_of(&node->attributes, f->alpha, f->alpha_from),
		.beta = number_of(&node->attributes, f->beta, f->beta_from)};
}

bool cpu_has_function(enum op op)
{
	return functions[op].forward != 0;
}

bool cpu_eltwise_function(const struct node *node, struct eltwise_function *out)
{
	if (!cpu_has_function(node->op))
		return false;
	*out = words_of(node->op, node, false);
	return true;
}

/* In training the forward primitive must be of the kind that the gradient wants as a hint. */
static dnnl_status_t create_forward(const struct lowering *l, const struct eltwise_function *f,
				    const_dnnl_memory_desc_t x,
				    const_dnnl_primitive_attr_t attributes,
				    dnnl_primitive_desc_t *out)
{
	return cpu_onednn(l)->eltwise_forward_primitive_desc_create(
		out, cpu_onednn(l)->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, f->algorithm, x, x,
		f->alpha, f->beta, attributes);
}

enum prony_status cpu_eltwise(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct eltwise_function f = words_of(node->op, node, l->training);
	dnnl_primitive_attr_t attributes = NULL;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &state->src, err);

	/* Padding is zero, where the gradient of such a function is not a number. */
	if (status == PRONY_OK && operator_row(node->op)->elementwise->positive)
		status = lower_unblocked(l, state->src, node->name, &state->src, err);
	if (status == PRONY_OK)
		status = cpu_attributes(l, false, &attributes, err);
	if (status != PRONY_OK)
		return status;
	status = onednn_check(
		create_forward(l, &f, cpu_desc(l, state->src), attributes, &state->work->forward),
		"elementwise function", node->name, err);
	cpu_onednn(l)->primitive_attr_destroy(attributes);
	return status == PRONY_OK ? cpu_unary(l, n, err) : status;
}

/*
 * Padded blocks as an array: for the gradients of some functions the library has only reference
 * code that steps over the padding (HardSwish of 120 channels: 330 us for 2), and what is there
 * stays zero, because the gradient of a function is a product with dy.
 */
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

/* Creates the gradient's primitive with a forward one of the same layout as its hint. */
static enum prony_status create_backward(struct lowering *l, int n,
					 const struct eltwise_function *f,
					 const_dnnl_memory_desc_t desc, dnnl_primitive_desc_t *out,
					 struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	dnnl_primitive_attr_t attributes = NULL;
	dnnl_primitive_desc_t hint = NULL;
	dnnl_status_t created;
	enum prony_status status = cpu_attributes(l, false, &attributes, err);

	if (status != PRONY_OK)
		return status;
	created = create_forward(l, f, desc, attributes, &hint);
	if (created == dnnl_success)
		created = dnn->eltwise_backward_primitive_desc_create(
			out, dnn->engine, f->algorithm, desc, desc, desc, f->alpha, f->beta, hint,
			attributes);
	if (hint)
		dnn->primitive_desc_destroy(hint);
	dnn->primitive_attr_destroy(attributes);
	return onednn_check(created, "gradient of an elementwise function", l->graph->nodes[n].name,
			    err);
}

enum prony_status cpu_eltwise_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[node->differentiates];
	enum op function = l->graph->nodes[node->differentiates].op;
	struct eltwise_function f = words_of(function, node, true);
	bool of_output = operator_row(function)->elementwise->slope_of_output;
	int data = of_output ? state->dst : state->src, dy, dx;
	enum prony_status status = lower_unary_grad(l, n, data, &dy, &dx, err);

	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = dx;
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
