#include "adapters/native/lower/lower_internal.h"

/*
 * What a convolution or matrix product can compute on the way: in evaluation the batch
 * normalisation behind it (folded into its weights), functions, and a sum onto something that
 * nobody reads afterwards; in training a ReLU, whose gradient needs only the output.
 */

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

/* Whether anyone but node `last` still reads the value's memory after node n. */
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

/* The other term of an Add onto which node n can add its output `y`, or OPERAND_NONE. */
static int find_target(const struct lowering *l, int n, const struct node *add, int y)
{
	int other = add->inputs[0] == y ? add->inputs[1] : add->inputs[0];
	int last = l->graph->values[add->outputs[0]].producer, operand = l->values[other].operand;
	const struct shape *shape = &l->graph->values[y].shape;

	if (other == y || operand == OPERAND_NONE ||
	    !shape_equal(shape, &l->graph->values[other].shape) ||
	    l->program->operands[program_root(l->program, operand)].region != REGION_PLANNED ||
	    l->program->operands[operand].region != REGION_PLANNED ||
	    lower_rank(l, l->program->operands[operand].desc) != shape->rank ||
	    lower_type(l, operand) != l->data || read_between(l, other, n, last))
		return OPERAND_NONE;
	/* What the node itself reads it must not write. */
	for (int k = 0; k < l->graph->nodes[n].input_count; k++) {
		int input = l->graph->nodes[n].inputs[k];

		if (input != VALUE_NONE && l->values[input].class == l->values[other].class)
			return OPERAND_NONE;
	}
	return operand;
}

/* Whether the node `r`, which alone reads y, can be part of the chain. */
static bool extend(const struct lowering *l, int n, struct chain *chain, int r, int y)
{
	const struct node *node = &l->graph->nodes[r];
	struct eltwise_function function;

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
	return lower_eltwise_function(node, &function);
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
	while (y != l->graph->logits && l->values[y].uses == 1 &&
	       extend(l, n, &chain, l->values[y].reader, y)) {
		chain.nodes[chain.count++] = l->values[y].reader;
		y = l->graph->nodes[chain.nodes[chain.count - 1]].outputs[0];
	}
	return chain;
}

static dnnl_status_t append(const struct lowering *l, const struct node *node,
			    dnnl_post_ops_t chain)
{
	struct eltwise_function function;

	if (node->op == OP_BATCH_NORM)
		return dnnl_success; /* in the weights */
	if (node->op == OP_ADD)
		return l->dnn->post_ops_append_sum(chain, 1, 0, l->data);
	if (!lower_eltwise_function(node, &function))
		return dnnl_invalid_arguments;
	return l->dnn->post_ops_append_eltwise(chain, function.algorithm, function.alpha,
					       function.beta);
}

enum prony_status lower_chain_attributes(const struct lowering *l, const struct chain *chain,
					 dnnl_primitive_attr_t *out, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	dnnl_primitive_attr_t attributes = NULL;
	dnnl_post_ops_t post = NULL;
	dnnl_status_t created;
	enum prony_status status = lower_attributes(l, false, &attributes, err);

	if (status != PRONY_OK || chain->count == 0) {
		*out = attributes;
		return status;
	}
	created = dnn->post_ops_create(&post);
	for (int i = 0; created == dnnl_success && i < chain->count; i++)
		created = append(l, &l->graph->nodes[chain->nodes[i]], post);
	if (created == dnnl_success)
		created = dnn->primitive_attr_set_post_ops(attributes, post);
	if (post)
		dnn->post_ops_destroy(post);
	if (created == dnnl_success) {
		*out = attributes;
		return PRONY_OK;
	}
	dnn->primitive_attr_destroy(attributes);
	return onednn_check(created, "attributes", "primitive", err);
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

/* Declares what the folded batch normalisation has, and the bias that takes its shift. */
enum prony_status lower_fold(struct lowering *l, int n, int batch_norm, int *bias,
			     struct error *err)
{
	const struct node *node = &l->graph->nodes[n], *norm = &l->graph->nodes[batch_norm];
	struct fold *fold = &l->folds[l->fold_count++];
	const int64_t *channels = l->graph->values[norm->inputs[1]].shape.dims;
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status = lower_plain(l, dnnl_f32, 1, channels, &plain, err);

	*fold = (struct fold){.node = n, .batch_norm = batch_norm};
	if (status == PRONY_OK)
		status = program_operand(l->program, plain, REGION_LASTING, &fold->bias, err);
	if (plain)
		l->dnn->memory_desc_destroy(plain);
	for (int i = 1; status == PRONY_OK && i < 5; i++) {
		int unused;

		status = lower_data_operand(l, norm->inputs[i], &unused, err);
	}
	if (status == PRONY_OK && node->input_count > 2 && node->inputs[2] != VALUE_NONE) {
		int unused;

		status = lower_data_operand(l, node->inputs[2], &unused, err);
	}
	*bias = fold->bias;
	return status;
}
