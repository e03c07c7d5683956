#include "adapters/native/lower.h"

#include <stdlib.h>

#include "adapters/reasons.h"

static bool known(enum op op)
{
	switch (op) {
	case OP_CONV:
	case OP_MAX_POOL:
	case OP_GEMM:
	case OP_RELU:
	case OP_FLATTEN:
	case OP_DROPOUT:
	case OP_ADD:
	case OP_SOFTMAX_CROSS_ENTROPY:
		return true;
	default:
		return false;
	}
}

/* What cannot be done with a known operator. */
static void check_node(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	const struct attributes *a = &node->attributes;

	if (node->op == OP_GEMM && (a->alpha != 1 || a->beta != 1 || a->trans_a))
		reasons_add(reasons, "Gemm '%s' has alpha, beta or transA", node->name);
	if (node->op == OP_FLATTEN && a->axis != 1)
		reasons_add(reasons, "Flatten '%s' keeps more than the batch dimension",
			    node->name);
	if (node->op == OP_ADD && !shape_equal(&graph->values[node->inputs[0]].shape,
					       &graph->values[node->inputs[1]].shape))
		reasons_add(reasons, "Add '%s' broadcasts", node->name);
	for (int i = 0; i < node->input_count; i++) {
		if (node->inputs[i] != VALUE_NONE &&
		    graph->values[node->inputs[i]].kind == VALUE_STATE)
			reasons_add(reasons, "%s '%s' takes the state '%s'",
				    operator_row(node->op)->name, node->name,
				    graph->values[node->inputs[i]].name);
	}
	if (node->op != OP_CONV && node->op != OP_GEMM)
		return;
	for (int i = 1; i < node->input_count; i++) {
		if (node->inputs[i] != VALUE_NONE &&
		    graph->values[node->inputs[i]].kind != VALUE_PARAMETER)
			reasons_add(reasons, "%s '%s' takes '%s', which is computed, as weights",
				    operator_row(node->op)->name, node->name,
				    graph->values[node->inputs[i]].name);
	}
}

/* Weights live in the layout of the one layer that uses them. */
static void check_parameters(const struct graph *graph, struct strbuf *reasons)
{
	int *uses = calloc((size_t)graph->value_count + 1, sizeof(int));

	for (int n = 0; uses && n < graph->forward_count; n++) {
		const struct node *node = &graph->nodes[n];
		bool weighted = node->op == OP_CONV || node->op == OP_GEMM;

		for (int i = 0; i < node->input_count; i++) {
			int value = node->inputs[i];

			if (value == VALUE_NONE || graph->values[value].kind != VALUE_PARAMETER)
				continue;
			if (++uses[value] == 2)
				reasons_add(reasons, "parameter '%s' has several users",
					    graph->values[value].name);
			if (!weighted || i == 0)
				reasons_add(reasons, "%s '%s' uses parameter '%s' as data",
					    operator_row(node->op)->name, node->name,
					    graph->values[value].name);
		}
	}
	free(uses);
}

enum prony_status lower_supports(const struct graph *graph, const struct recipe *recipe,
				 struct error *why)
{
	struct strbuf reasons;

	strbuf_init(&reasons, 0);
	reasons_add_recipe(&reasons, recipe, NULL);
	if (recipe->stage == STAGE_LOAD)
		reasons_add(&reasons, "it has no data loader of its own");
	for (int n = 0; n < graph->forward_count; n++) {
		if (known(graph->nodes[n].op))
			check_node(graph, &graph->nodes[n], &reasons);
		else
			reasons_add(&reasons, "operator %s ('%s')",
				    operator_row(graph->nodes[n].op)->name, graph->nodes[n].name);
	}
	check_parameters(graph, &reasons);
	return reasons_finish(&reasons, why);
}
