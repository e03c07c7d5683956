/* The distance below which rounding decides a comparison. */
#include "parity/reference.h"
#include "parity/reference_internal.h"

/* A comparison is close if its values are nearer than 4 deviations of the rounding of values at
 * this depth of the graph. Nodes are in the order in which they run, so every earlier node is
 * assumed to contribute to a node. The updates of RMSprop and AdamW magnify rounding if gradients
 * are small, so their later steps start further apart. */
#define CLOSE (4 * 0.41)
#define CLOSE_MAGNIFIED (12 * 0.41)

#define CLOSE_MEASURED 4 /* deviations, if they were measured */

double reference_closeness(const struct reference *ref, const struct recipe *recipe)
{
	return reference_divides(recipe) && ref->step > 0 ? CLOSE_MAGNIFIED : CLOSE;
}

double reference_measured_closeness(const struct node *node, const struct kinks *kinks)
{
	int input = operator_row(node->op)->compares - 1;

	return kinks->deviation && input >= 0
		       ? CLOSE_MEASURED * kinks->deviation[node->inputs[input]]
		       : 0;
}

void reference_deepen(struct accumulation *sum, const struct graph *graph, const struct node *node)
{
	const struct operator_row *row = operator_row(node->op);
	int output = 0;

	/* The first output that is present. */
	while (output + 1 < node->output_count && node->outputs[output] == VALUE_NONE)
		output++;
	if (!row->macs)
		accumulation_add_other(sum, graph, node);
	else if (node->outputs[output] != VALUE_NONE)
		accumulation_add(sum, row->macs(graph, node),
				 &graph->values[node->outputs[output]].shape);
}
