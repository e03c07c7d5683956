#include "adapters/native/lower/lower.h"

#include <stdlib.h>

#include "adapters/native/lower/lower_internal.h"
#include "adapters/reasons.h"

/* What the window of an average pool reaches beyond its padding would count as padding. */
static bool pool_overhangs(const struct graph *graph, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	const struct shape *x = &graph->values[node->inputs[0]].shape;
	const struct shape *y = &graph->values[node->outputs[0]].shape;

	for (int i = 0; i < 2; i++) {
		if ((y->dims[2 + i] - 1) * a->strides[i] + a->kernel[i] >
		    x->dims[2 + i] + a->pads[i] + a->pads[i + 2])
			return true;
	}
	return false;
}

/* What cannot be done with a known operator. */
static void check_node(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	const struct attributes *a = &node->attributes;
	const struct shape *x = &graph->values[node->inputs[0]].shape;

	if (node->op == OP_GEMM && (a->alpha != 1 || a->beta != 1 || a->trans_a))
		reasons_add(reasons, "Gemm '%s' has alpha, beta or transA", node->name);
	if (node->op == OP_AVERAGE_POOL && a->count_include_pad && pool_overhangs(graph, node))
		reasons_add(reasons, "AveragePool '%s' has ceil_mode and counts padding",
			    node->name);
	if (node->op == OP_LRN && x->rank < 3)
		reasons_add(reasons, "LRN '%s' has an input of %d dimensions", node->name, x->rank);
	if (node->op == OP_BATCH_NORM && x->rank > 5)
		reasons_add(reasons, "BatchNormalization '%s' has an input of %d dimensions",
			    node->name, x->rank);
}

/* The inputs that are weights of the operator: bits. */
static unsigned weight_inputs(enum op op)
{
	switch (op) {
	case OP_CONV:
	case OP_GEMM:
		return 1u << 1 | 1u << 2;
	case OP_LSTM:
	case OP_RNN:
		return 1u << 1 | 1u << 2 | 1u << 3;
	default:
		return 0;
	}
}

/* Weights live in the layout of the one layer that uses them. */
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
			as_weights[value] += weight;
			if (weight && graph->values[value].kind != VALUE_PARAMETER)
				reasons_add(reasons,
					    "%s '%s' takes '%s', which is not trained, as weights",
					    operator_name(node->op), node->name,
					    graph->values[value].name);
			if (node->op == OP_BATCH_NORM && i > 0 &&
			    graph->values[value].kind != VALUE_PARAMETER &&
			    graph->values[value].kind != VALUE_STATE)
				reasons_add(reasons, "%s '%s' takes '%s', which is computed",
					    operator_name(node->op), node->name,
					    graph->values[value].name);
			if (uses[value] == 2 && as_weights[value] > 0)
				reasons_add(reasons, "parameter '%s' has several users",
					    graph->values[value].name);
		}
	}
	free(as_weights);
	free(uses);
}

enum prony_status lower_supports(const struct graph *graph, const struct recipe *recipe,
				 struct error *why)
{
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	reasons_add_recipe(&reasons, recipe, 1u << PRECISION_FP32 | 1u << PRECISION_BF16);
	if (recipe->precision == PRECISION_BF16 && !onednn_processor_has_bf16())
		reasons_add(&reasons,
			    "precision bf16: this processor has neither AVX512_BF16 nor AMX");
	if (recipe->stage == STAGE_LOAD)
		reasons_add(&reasons, "it has no data loader of its own");
	for (int n = 0; n < graph->forward_count; n++) {
		if (lower_knows(graph->nodes[n].op))
			check_node(graph, &graph->nodes[n], &reasons);
		else
			reasons_add(&reasons, "operator %s ('%s')",
				    operator_name(graph->nodes[n].op), graph->nodes[n].name);
	}
	check_weights(graph, &reasons);
	return reasons_finish(&reasons, why);
}
