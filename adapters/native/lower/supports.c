/* Collects all reasons why native cannot run a graph. */
#include "adapters/native/lower/lower.h"

#include <stdlib.h>

#include "adapters/native/lower/lower_internal.h"
#include "adapters/reasons.h"

/* Bits of the operator's inputs that are weights. */
static unsigned weight_inputs(enum op op)
{
	switch (op) {
	case OP_CONV:
	case OP_CONV_TRANSPOSE:
	case OP_GEMM:
		return 1u << 1 | 1u << 2;
	case OP_LSTM:
	case OP_RNN:
	case OP_GRU:
		return 1u << 1 | 1u << 2 | 1u << 3;
	default:
		return 0;
	}
}

/* Whether an operator can share its weights: a table of rows, as an embedding and the logits of a
 * language model have in common. Others keep theirs in a layout of their own. */
static bool can_share(const struct graph *graph, const struct node *node, int i)
{
	return node->op == OP_GEMM && i == 1 && node->attributes.trans_b &&
	       graph->values[node->inputs[1]].shape.rank == 2;
}

static void check_weights(const struct graph *graph, struct strbuf *reasons)
{
	size_t count = (size_t)graph->value_count + 1;
	int *uses = calloc(count, sizeof(int)), *as_weights = calloc(count, sizeof(int));

	for (int n = 0; uses && as_weights && n < graph->forward_count; n++) {
		const struct node *node = &graph->nodes[n];

		for (int i = 0; i < node->input_count; i++) {
			int value = node->inputs[i];
			bool weight = weight_inputs(node->op) >> i & 1u;

			if (value == VALUE_NONE)
				continue;
			uses[value]++;
			as_weights[value] += weight && !can_share(graph, node, i);
			if (weight && graph->values[value].kind != VALUE_PARAMETER)
				reasons_add(reasons,
					    "the weights of %s '%s' are '%s', which is not a "
					    "trained parameter",
					    operator_name(node->op), node->name,
					    graph->values[value].name);
			if ((node->op == OP_BATCH_NORM || node->op == OP_LAYER_NORM ||
			     node->op == OP_RMS_NORM || node->op == OP_GROUP_NORM ||
			     node->op == OP_INSTANCE_NORM) &&
			    i > 0 && graph->values[value].kind != VALUE_PARAMETER &&
			    graph->values[value].kind != VALUE_STATE)
				reasons_add(
					reasons,
					"%s '%s' reads '%s', which is computed and not a parameter",
					operator_name(node->op), node->name,
					graph->values[value].name);
		}
	}
	for (int value = 0; uses && as_weights && value < graph->value_count; value++) {
		if (uses[value] > 1 && as_weights[value] > 0)
			reasons_add(reasons, "several operators read the parameter '%s'",
				    graph->values[value].name);
	}
	free(as_weights);
	free(uses);
}

enum prony_status lower_supports(const struct backend *backend, const struct graph *graph,
				 const struct recipe *recipe, struct error *why)
{
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	backend->supports(recipe, &reasons);
	if (recipe->stage == STAGE_LOAD)
		reasons_add(&reasons, "native has no data loader");
	for (int n = 0; n < graph->forward_count; n++) {
		if (lower_knows(backend, graph->nodes[n].op))
			backend->supports_node(graph, &graph->nodes[n], &reasons);
		else
			reasons_add(&reasons, "operator %s ('%s') is not supported",
				    operator_name(graph->nodes[n].op), graph->nodes[n].name);
	}
	check_weights(graph, &reasons);
	return reasons_finish(&reasons, why);
}
