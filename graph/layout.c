/* Finds the memory layout of each value if channels are last. */
#include "graph/layout.h"

#include <string.h>

#include "graph/node_internal.h"

/* Axis i in memory is this axis of the graph. */
static const int last_axes[] = {0, 2, 3, 1}, kernel_axes[] = {2, 3, 1, 0};

/* The index of the only forward node that reads a value; -1 if there is none or several. */
static int only_reader(const struct graph *graph, int value)
{
	int found = -1;

	for (int i = 0; i < graph->forward_count; i++)
		for (int k = 0; k < graph->nodes[i].input_count; k++) {
			if (graph->nodes[i].inputs[k] != value)
				continue;
			if (found >= 0)
				return -1;
			found = i;
		}
	return found;
}

/* Whether the node turns N x C x H x W into N x (C H W), and the order of C and H W matters. */
static bool flattens_images(const struct graph *graph, const struct node *node)
{
	const struct shape *x, *y;

	if (operator_row(node->op)->layout != LAYOUT_RESHAPES)
		return false;
	x = &graph->values[node->inputs[0]].shape;
	y = &graph->values[node->outputs[0]].shape;
	return x->rank == 4 && y->rank == 2 && x->dims[0] == y->dims[0] && x->dims[1] > 1 &&
	       x->dims[2] * x->dims[3] > 1;
}

/* Whether the node multiplies by a parameter that no other node reads, so that prony may choose its
 * order. */
static bool multiplies(const struct graph *graph, const struct node *node, int value)
{
	return operator_row(node->op)->layout == LAYOUT_MULTIPLIES && node->inputs[0] == value &&
	       !node->attributes.trans_a &&
	       graph->values[node->inputs[1]].kind == VALUE_PARAMETER &&
	       only_reader(graph, node->inputs[1]) >= 0 && node->inputs[1] != value;
}

/* Marks in `channels` the values computed from forward node `first`, a flattening, up to the matrix
 * products that end the flat part. Returns false if another operator reads them; then the marks are
 * invalid. */
static bool mark_flat(const struct graph *graph, int first, int64_t *channels)
{
	int64_t count = graph->values[graph->nodes[first].inputs[0]].shape.dims[1];

	channels[graph->nodes[first].outputs[0]] = count;
	for (int i = first + 1; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		for (int k = 0; k < node->input_count; k++) {
			int value = node->inputs[k];

			if (value < 0 || channels[value] == 0 ||
			    graph->values[value].kind == VALUE_PARAMETER)
				continue;
			if (multiplies(graph, node, value)) {
				channels[node->inputs[1]] = count;
				continue;
			}
			if (operator_row(node->op)->layout != LAYOUT_SAME_PLACES)
				return false;
			for (int j = 0; j < node->output_count; j++)
				if (node->outputs[j] >= 0)
					channels[node->outputs[j]] = count;
		}
	}
	return graph->logits < 0 || channels[graph->logits] == 0;
}

static void mark_all_flat(const struct graph *graph, int64_t *marks, struct layouts *out)
{
	size_t bytes = (size_t)graph->value_count * sizeof(marks[0]);

	for (int i = 0; i < graph->forward_count; i++) {
		if (!flattens_images(graph, &graph->nodes[i]))
			continue;
		memset(marks, 0, bytes);
		if (!mark_flat(graph, i, marks))
			continue;
		for (int v = 0; v < graph->value_count; v++)
			if (marks[v])
				out->channels[v] = marks[v];
	}
}

/* Whether it is a parameter or constant that is read by convolutions only, as their weight. */
static bool is_kernel(const struct graph *graph, int value)
{
	bool read = false;

	if (graph->values[value].kind != VALUE_PARAMETER &&
	    graph->values[value].kind != VALUE_STATE)
		return false;
	for (int i = 0; i < graph->forward_count; i++)
		for (int k = 0; k < graph->nodes[i].input_count; k++) {
			if (graph->nodes[i].inputs[k] != value)
				continue;
			if (operator_row(graph->nodes[i].op)->layout != LAYOUT_CONVOLVES || k != 1)
				return false;
			read = true;
		}
	return read;
}

/* Sets the layout of gradients: that of the value they belong to; a sum has the layout of its
 * terms. */
static void follow(const struct graph *graph, const struct node *node, struct layouts *out)
{
	const struct operator_row *row = operator_row(node->op);

	for (int i = 0; i < node->output_count; i++) {
		int from = node->inputs[0];

		if (row->is_gradient)
			from = graph->nodes[node->differentiates].inputs[node_target(node, i)];
		else if (row->layout != LAYOUT_SAME_PLACES && node->op != OP_ADD)
			return;
		if (node->outputs[i] == VALUE_NONE)
			continue;
		out->values[node->outputs[i]] = out->values[from];
		out->channels[node->outputs[i]] = out->channels[from];
	}
}

void graph_layouts(const struct graph *graph, bool last, struct arena *arena, struct layouts *out)
{
	size_t count = (size_t)graph->value_count;

	*out = (struct layouts){
		.graph = graph,
		.values = arena_array(arena, count, sizeof(out->values[0])),
		.channels = arena_array(arena, count, sizeof(out->channels[0])),
	};
	if (last)
		mark_all_flat(graph, arena_array(arena, count, sizeof(int64_t)), out);
	for (int v = 0; v < graph->value_count; v++) {
		if (out->channels[v])
			out->values[v] = LAYOUT_LAST_FLAT;
		else if (is_kernel(graph, v))
			out->values[v] = LAYOUT_KERNEL;
		else if (last && graph->values[v].shape.rank == 4)
			out->values[v] = LAYOUT_LAST;
	}
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (operator_row(node->op)->layout == LAYOUT_MULTIPLIES &&
		    !node->attributes.trans_b && out->channels[node->inputs[1]])
			out->values[node->inputs[1]] = LAYOUT_LAST_FLAT_ROWS;
	}
	for (int i = graph->forward_count; i < graph->node_count; i++)
		follow(graph, &graph->nodes[i], out);
}

struct shape layouts_shape(const struct layouts *layouts, int value)
{
	const struct shape *shape = &layouts->graph->values[value].shape;
	struct arrangement order = layouts_arrangement(layouts, value);
	struct shape stored = *shape;

	if (order.rank == stored.rank)
		for (int i = 0; i < stored.rank; i++)
			stored.dims[i] = shape->dims[order.axes[i]];
	return stored;
}

int layouts_axis(const struct layouts *layouts, int value, int axis)
{
	static const int places[] = {0, 3, 1, 2};

	return layouts->values[value] == LAYOUT_LAST ? places[axis] : axis;
}

struct arrangement arrangement_make(int rank, const int64_t *dims, const int *axes)
{
	struct arrangement a = {.rank = rank};

	for (int i = 0; i < rank; i++) {
		a.dims[i] = dims[i];
		a.axes[i] = axes[i];
	}
	return a;
}

struct arrangement layouts_arrangement(const struct layouts *layouts, int value)
{
	static const int flat_axes[] = {0, 2, 1}, row_axes[] = {1, 0, 2};
	const int64_t *d = layouts->graph->values[value].shape.dims;
	int64_t channels = layouts->channels[value];

	switch (layouts->values[value]) {
	case LAYOUT_LAST:
		return arrangement_make(4, d, last_axes);
	case LAYOUT_KERNEL:
		return arrangement_make(4, d, kernel_axes);
	case LAYOUT_LAST_FLAT:
		return arrangement_make(3, (const int64_t[]){d[0], channels, d[1] / channels},
					flat_axes);
	case LAYOUT_LAST_FLAT_ROWS:
		return arrangement_make(3, (const int64_t[]){channels, d[0] / channels, d[1]},
					row_axes);
	case LAYOUT_GRAPH:
		break;
	}
	return (struct arrangement){.rank = 0};
}

/* Returns the offset of the innermost run's element 0 in the graph's order, and advances the index
 * by one. */
static int64_t next_run(const struct arrangement *a, const int64_t *strides, int64_t *index)
{
	int64_t at = 0;

	for (int i = 0; i < a->rank - 1; i++)
		at += index[i] * strides[a->axes[i]];
	for (int i = a->rank - 2; i >= 0 && ++index[i] == a->dims[a->axes[i]]; i--)
		index[i] = 0;
	return at;
}

void arrangement_copy(const struct arrangement *a, int64_t elements, const float *from, float *to,
		      bool back)
{
	int64_t strides[TENSOR_MAX_RANK], index[TENSOR_MAX_RANK] = {0}, stride = 1;

	if (a->rank == 0) {
		memcpy(to, from, (size_t)elements * sizeof(float));
		return;
	}
	for (int i = a->rank - 1; i >= 0; i--) {
		strides[i] = stride;
		stride *= a->dims[i];
	}
	int64_t length = a->dims[a->axes[a->rank - 1]], step = strides[a->axes[a->rank - 1]];
	for (int64_t run = 0; run < elements; run += length) {
		int64_t at = next_run(a, strides, index);

		for (int64_t i = 0; i < length; i++) {
			if (back)
				to[at + i * step] = from[run + i];
			else
				to[run + i] = from[at + i * step];
		}
	}
}
