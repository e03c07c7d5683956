/* Erf: exporters before opset 20 write Gelu as x * (1 + erf(x / sqrt(2))) * 0.5. */
#include "onnx/import_internal.h"

#include <math.h>
#include <string.h>

#define ROOT_2 1.41421356237309505

/* The number of nodes after an Erf that are searched for the rest. */
#define GELU_DISTANCE 12

static bool is_number(const struct constant *c, double number)
{
	return c != NULL && c->is_float && c->count == 1 &&
	       fabs((double)c->floats[0] - number) < 1e-6;
}

/* The only reader of a node's result, if it is a later `op` of two operands; *other is the index of
 * its other operand. */
static const struct file_node *reader(const struct importer *im, const struct file_node *node,
				      const char *op, size_t *other)
{
	size_t index = (size_t)(node - im->model->nodes);
	int result = node->outputs[0];

	if (result == NAME_OMITTED || im->model->definitions[result].users != 1)
		return NULL;
	for (size_t i = index + 1; i < im->model->node_count && i <= index + GELU_DISTANCE; i++) {
		const struct file_node *user = &im->model->nodes[i];

		if (strcmp(user->proto->op_type, op) != 0 || onnx_is_foreign(user->proto) ||
		    user->input_count != 2 || user->output_count != 1 ||
		    (user->inputs[0] != result && user->inputs[1] != result))
			continue;
		*other = user->inputs[0] == result ? 1 : 0;
		return user;
	}
	return NULL;
}

static bool is_value(const struct importer *im, const struct file_node *node, size_t i, int value)
{
	const struct slot *slot = import_slot(im, node, i);

	return slot && slot->kind == SLOT_VALUE && slot->value == value;
}

/* Finds the node that ends the pattern, behind the two before it; NULL if the file computes
 * something else. */
static const struct file_node *find_end(struct importer *im, const struct file_node *erf, int x,
					const struct file_node *between[2])
{
	size_t one, first, second;
	const struct file_node *end = NULL;

	between[0] = reader(im, erf, "Add", &one);
	if (between[0] == NULL || !is_number(import_ahead(im, between[0], one), 1))
		return NULL;
	between[1] = reader(im, between[0], "Mul", &first);
	if (between[1] != NULL)
		end = reader(im, between[1], "Mul", &second);
	if (end == NULL)
		return NULL;
	if (is_value(im, between[1], first, x) && is_number(import_ahead(im, end, second), 0.5))
		return end;
	return is_value(im, end, second, x) && is_number(import_ahead(im, between[1], first), 0.5)
		       ? end
		       : NULL;
}

/* The x of x / sqrt(2) or x * sqrt(0.5), if that is the graph's last node; VALUE_NONE otherwise. */
static int divided(const struct importer *im, const struct file_node *erf)
{
	const struct graph *graph = im->builder.graph;
	const struct slot *slot = import_slot(im, erf, 0);
	const struct node *last;

	if (slot == NULL || slot->kind != SLOT_VALUE || graph->node_count == 0 ||
	    im->model->definitions[erf->inputs[0]].users != 1)
		return VALUE_NONE;
	last = &graph->nodes[graph->node_count - 1];
	for (int i = 0; last->outputs[0] == slot->value && i < last->input_count; i++) {
		int number = last->inputs[i];

		if (((last->op == OP_DIV && i == 1) || last->op == OP_MUL) &&
		    graph->values[number].kind == VALUE_STATE && number == slot->value - 1 &&
		    is_number(&im->weights[number], last->op == OP_DIV ? ROOT_2 : 1 / ROOT_2))
			return last->inputs[1 - i];
	}
	return VALUE_NONE;
}

void import_erf(struct importer *im, const struct file_node *node)
{
	struct graph *graph = im->builder.graph;
	const struct file_node *between[2], *end = NULL;
	int x = divided(im, node);

	if (x != VALUE_NONE)
		end = find_end(im, node, x, between);
	if (end == NULL) {
		if (import_need_value(im, node, 0, 0, &x))
			import_set(im, node, 0, import_append(im, node, OP_ERF, &x, 1, NULL));
		return;
	}
	/* Takes back the division and its constant. */
	graph->value_count = graph->nodes[--graph->node_count].outputs[0] - 1;
	for (int i = 0; i < 2; i++)
		im->done[between[i] - im->model->nodes] = true;
	im->done[end - im->model->nodes] = true;
	import_set(im, end, 0, import_append(im, node, OP_GELU, &x, 1, NULL));
}
