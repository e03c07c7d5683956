/* Functions of each element, and their gradients, in any contiguous layout. */
#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

static const struct {
	bool known;
	int code;
} functions[OP_COUNT] = {
	[OP_RELU] = {true, FUNCTION_RELU},
	[OP_TANH] = {true, FUNCTION_TANH},
	[OP_SIGMOID] = {true, FUNCTION_SIGMOID},
	[OP_HARD_SIGMOID] = {true, FUNCTION_HARD_SIGMOID},
	[OP_HARD_SWISH] = {true, FUNCTION_HARD_SWISH},
	[OP_CLIP] = {true, FUNCTION_CLIP},
	[OP_ELU] = {true, FUNCTION_ELU},
	[OP_LEAKY_RELU] = {true, FUNCTION_LEAKY_RELU},
	[OP_EXP] = {true, FUNCTION_EXP},
	[OP_SQRT] = {true, FUNCTION_SQRT},
	[OP_LOG] = {true, FUNCTION_LOG},
	[OP_GELU] = {true, FUNCTION_GELU},
	[OP_SWISH] = {true, FUNCTION_SWISH},
	[OP_NEG] = {true, FUNCTION_NEG},
	[OP_ERF] = {true, FUNCTION_ERF},
	[OP_POW] = {true, FUNCTION_POW},
};

bool cuda_has_function(enum op op)
{
	return functions[op].known;
}

static struct function function_of(enum op op, const struct attributes *a)
{
	struct function f = {functions[op].code, (float)a->alpha, (float)a->beta};

	if (op == OP_GELU && a->approximate)
		f.code = FUNCTION_GELU_TANH;
	if (op == OP_POW)
		f.alpha = (float)a->exponent;
	if (op == OP_CLIP) {
		f.alpha = (float)a->min;
		f.beta = (float)a->max;
	}
	return f;
}

/* Appends the kernel on all elements; `in`: the second operand that it reads, or OPERAND_NONE. */
static void append(struct lowering *l, const char *name, const char *kernel, int out, int x, int in,
		   const struct function *f)
{
	const struct layout *layout = lower_layout(l, x);
	int64_t elements = (int64_t)layout_elements(layout);
	struct work *work =
		cuda_kernel(l, name, "", kernel, layout->type, cuda_packs(layout->type, elements));

	cuda_operand(l, work, out);
	cuda_operand(l, work, x);
	if (in != OPERAND_NONE)
		cuda_operand(l, work, in);
	cuda_long(l, work, elements);
	cuda_struct(l, work, f, sizeof(*f));
}

enum prony_status cuda_eltwise(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct function f = function_of(node->op, &node->attributes);
	int x = l->values[node->inputs[0]].operand, y;
	enum prony_status status = PRONY_OK;

	if (x == OPERAND_NONE)
		status = lower_data_operand(l, node->inputs[0], &x, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], x, &y, err);
	if (status != PRONY_OK)
		return status;
	append(l, node->name, "function", y, x, OPERAND_NONE, &f);
	l->nodes[n].src = x;
	l->values[node->outputs[0]].operand = l->nodes[n].dst = y;
	return PRONY_OK;
}

/* The gradient of forward node `forward`, which read or wrote `in`. */
static enum prony_status append_grad(struct lowering *l, int n, enum op op, int in,
				     struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct function f = function_of(op, &node->attributes);
	int dy, dx;
	enum prony_status status = lower_as(l, l->values[node->inputs[0]].operand,
					    lower_layout(l, in), node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], dy, &dx, err);
	if (status != PRONY_OK)
		return status;
	append(l, node->name, "function_grad", dx, dy, in, &f);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}

enum prony_status cuda_eltwise_grad(struct lowering *l, int n, struct error *err)
{
	const struct node_state *forward = &l->nodes[l->graph->nodes[n].differentiates];
	enum op op = l->graph->nodes[l->graph->nodes[n].differentiates].op;

	return append_grad(
		l, n, op,
		operator_row(op)->elementwise->slope_of_output ? forward->dst : forward->src, err);
}

/* The Relu itself may be part of another command, which leaves only its result. */
enum prony_status cuda_relu_grad(struct lowering *l, int n, struct error *err)
{
	return append_grad(l, n, OP_RELU, l->values[l->graph->nodes[n].inputs[1]].operand, err);
}
