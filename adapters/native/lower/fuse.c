/* Fusion: finds the nodes that another node's command also computes. In evaluation a convolution or
 * matrix product includes the batch normalisation after it (folded into its weights), functions,
 * and a sum onto an operand that no later node reads; in training a ReLU, whose gradient needs only
 * the output. */
#include "adapters/native/lower/lower_internal.h"

int lower_fusable_relu(const struct lowering *l, int n)
{
	int y = l->graph->nodes[n].outputs[0];

	if (l->values[y].uses != 1 || y == l->graph->logits)
		return -1;
	for (int i = n + 1; i < l->graph->forward_count; i++) {
		const struct node *node = &l->graph->nodes[i];

		if (node->inputs[0] == y && l->nodes[i].needed)
			return node->op == OP_RELU ? i : -1;
	}
	return -1;
}

/* The node with that operator that differentiates node n, or -1. */
static int gradient_node(const struct lowering *l, int n, enum op op)
{
	for (int i = l->graph->forward_count; i < l->graph->node_count; i++) {
		const struct node *node = &l->graph->nodes[i];

		if (node->differentiates == n && node->op == op && l->nodes[i].needed)
			return i;
	}
	return -1;
}

int lower_norm_relu(const struct lowering *l, int n, int *gradient)
{
	int relu = lower_fusable_relu(l, n), of_relu, of_norm, value;

	*gradient = -1;
	if (relu < 0 || !l->training)
		return relu;
	of_relu = gradient_node(l, relu, OP_RELU_GRAD);
	of_norm = gradient_node(l, n, OP_BATCH_NORM_GRAD);
	if (of_relu < 0 || of_norm < 0)
		return -1;
	/* Only the gradient of the normalisation may read the Relu's gradient. */
	value = l->graph->nodes[of_relu].outputs[0];
	if (l->values[value].uses != 1 || l->values[value].reader != of_norm)
		return -1;
	*gradient = of_relu;
	return relu;
}

/* Whether a node other than `last` still reads the value's memory after node n. */
static bool read_between(const struct lowering *l, int value, int n, int last)
{
	int class = l->values[value].class;

	if (l->values[class].last_use > last)
		return true;
	for (int i = n + 1; i < last; i++) {
		const struct node *node = &l->graph->nodes[i];

		for (int k = 0; l->nodes[i].needed && k < node->input_count; k++) {
			if (node->inputs[k] != VALUE_NONE &&
			    l->values[node->inputs[k]].class == class)
				return true;
		}
	}
	return false;
}

/* Whether the operand is planned memory, or another view of all of it. */
static bool is_whole(const struct lowering *l, int operand)
{
	const struct operand *root = &l->program->operands[program_root(l->program, operand)];

	return root->region == REGION_PLANNED && l->program->operands[operand].bytes == root->bytes;
}

/* The other term of an Add onto which node n can add its output `y`, or OPERAND_NONE. */
static int find_target(const struct lowering *l, int n, const struct node *add, int y)
{
	int other = add->inputs[0] == y ? add->inputs[1] : add->inputs[0];
	int last = l->graph->values[add->outputs[0]].producer, operand = l->values[other].operand;
	const struct shape *shape = &l->graph->values[y].shape;

	if (other == y || operand == OPERAND_NONE ||
	    !shape_equal(shape, &l->graph->values[other].shape) || !is_whole(l, operand) ||
	    lower_layout(l, operand)->rank != shape->rank ||
	    lower_layout(l, operand)->type != l->data || read_between(l, other, n, last))
		return OPERAND_NONE;
	/* The node must not overwrite one of its own inputs. */
	for (int k = 0; k < l->graph->nodes[n].input_count; k++) {
		int input = l->graph->nodes[n].inputs[k];

		if (input != VALUE_NONE && l->values[input].class == l->values[other].class)
			return OPERAND_NONE;
	}
	return operand;
}

/* Whether node `r`, the only reader of y, can be part of the chain. */
static bool extend(const struct lowering *l, int n, struct chain *chain, int r, int y)
{
	const struct node *node = &l->graph->nodes[r];

	if (chain->count == CHAIN_MAX || r >= l->graph->forward_count)
		return false;
	if (node->op == OP_ADD && chain->allow_sum && chain->sum == OPERAND_NONE) {
		chain->sum = find_target(l, n, node, y);
		return chain->sum != OPERAND_NONE;
	}
	if (node->inputs[0] != y)
		return false;
	if (node->op == OP_BATCH_NORM && chain->count == 0 && chain->allow_fold) {
		chain->batch_norm = r;
		return true;
	}
	return l->program->backend->fuses(node);
}

struct chain lower_chain(const struct lowering *l, int n, bool allow_fold, bool allow_sum)
{
	struct chain chain = {.batch_norm = -1,
			      .sum = OPERAND_NONE,
			      .allow_fold = allow_fold && !l->training,
			      .allow_sum = allow_sum && !l->training};
	int y = l->graph->nodes[n].outputs[0];

	if (l->training) {
		int relu = lower_fusable_relu(l, n);

		if (relu >= 0)
			chain.nodes[chain.count++] = relu;
		return chain;
	}
	while (y != l->graph->logits && l->values[y].uses == 1) {
		int reader = l->values[y].reader;

		if (l->graph->nodes[reader].op != OP_DROPOUT) { /* that only passes on */
			if (!extend(l, n, &chain, reader, y))
				break;
			chain.nodes[chain.count++] = reader;
		}
		y = l->graph->nodes[reader].outputs[0];
	}
	return chain;
}

void lower_absorb(struct lowering *l, int n, int operand)
{
	l->values[l->graph->nodes[n].outputs[0]].operand = operand;
	l->nodes[n].absorbed = true;
	l->nodes[n].dst = operand;
}

void lower_chain_absorb(struct lowering *l, const struct chain *chain, int operand)
{
	for (int i = 0; i < chain->count; i++)
		lower_absorb(l, chain->nodes[i], operand);
}

/* Declares the states of a folded batch normalisation, and the bias that includes its shift. */
static enum prony_status fold(struct lowering *l, int n, int batch_norm, int *bias,
			      struct error *err)
{
	const struct node *node = &l->graph->nodes[n], *norm = &l->graph->nodes[batch_norm];
	struct layout row =
		layout_row_major(DTYPE_F32, 1, l->graph->values[norm->inputs[1]].shape.dims);
	struct parameter *weights = lower_find_parameter(l, node->inputs[1]);
	enum prony_status status = program_operand(l->program, &row, REGION_LASTING, bias, err);
	int unused;

	weights->folded = batch_norm;
	weights->keeps_original = true;
	l->folds[l->fold_count++] = (struct fold){
		.node = n, .batch_norm = batch_norm, .bias = *bias, .bias_copy = OPERAND_NONE};
	for (int i = 1; status == PRONY_OK && i < 5; i++)
		status = lower_data_operand(l, norm->inputs[i], &unused, err);
	if (status == PRONY_OK && node->input_count > 2 && node->inputs[2] != VALUE_NONE)
		status = lower_data_operand(l, node->inputs[2], &unused, err);
	return status;
}

enum prony_status lower_bias(struct lowering *l, int n, const struct chain *chain, int *out,
			     struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct layout row;
	enum prony_status status;

	*out = OPERAND_NONE;
	if (chain->batch_norm >= 0)
		return fold(l, n, chain->batch_norm, out, err);
	if (node->input_count < 3 || node->inputs[2] == VALUE_NONE)
		return PRONY_OK;
	row = layout_row_major(DTYPE_F32, 1, l->graph->values[node->inputs[2]].shape.dims);
	status = lower_parameter(l, node->inputs[2], &row, &row, err);
	*out = lower_find_parameter(l, node->inputs[2])->operand;
	return status;
}

int lower_loss_gradient(const struct lowering *l, int n)
{
	for (int i = n + 1; i < l->graph->node_count; i++) {
		if (l->graph->nodes[i].op == OP_SOFTMAX_CROSS_ENTROPY_GRAD &&
		    l->graph->nodes[i].differentiates == n)
			return l->graph->nodes[i].outputs[0];
	}
	return VALUE_NONE;
}
