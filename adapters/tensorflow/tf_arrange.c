/* Translates operators on shapes: reshape, concatenate, slice, reduce, broadcast. */
#include "adapters/tensorflow/tf_translate_internal.h"

static bool is_flat(const struct tf_translation *t, int value)
{
	return t->layouts.values[value] == LAYOUT_LAST_FLAT;
}

/* An image flattened in memory order needs no transposition. */
void tf_reshape_node(struct tf_translation *t, const struct node *node)
{
	int y = node->outputs[0];

	if (is_flat(t, y))
		tf_give(t, node, 0, tf_reshape(&t->e, tf_take(t, node, 0), tf_graph_shape(t, y)));
	else
		tf_give_plain(t, node, 0,
			      tf_reshape(&t->e, tf_take_plain(t, node, 0), tf_graph_shape(t, y)));
}

void tf_reshape_grad(struct tf_translation *t, const struct node *node)
{
	int x = node->outputs[0];
	struct shape lies = tf_lying_shape(t, x);

	if (is_flat(t, tf_forward(t, node)->outputs[0]))
		tf_give(t, node, 0, tf_reshape(&t->e, tf_take(t, node, 0), &lies));
	else
		tf_give_plain(t, node, 0,
			      tf_reshape(&t->e, tf_take_plain(t, node, 0), tf_graph_shape(t, x)));
}

void tf_transpose_node(struct tf_translation *t, const struct node *node)
{
	const struct int_list *axes = &node->attributes.ints;

	tf_give_plain(t, node, 0,
		      tf_transpose(&t->e, tf_take_plain(t, node, 0), axes->items, axes->count));
}

void tf_concat(struct tf_translation *t, const struct node *node)
{
	int axis = layouts_axis(&t->layouts, node->outputs[0], (int)node->attributes.axis);
	struct tf_output parts[NODE_MAX_INPUTS];

	for (int i = 0; i < node->input_count; i++)
		parts[i] = tf_take(t, node, i);
	tf_give(t, node, 0, tf_join(t, parts, node->input_count, axis));
}

/* Begin, end and stride along every axis, in memory order. */
struct cut {
	int64_t begins[TENSOR_MAX_RANK], ends[TENSOR_MAX_RANK], steps[TENSOR_MAX_RANK];
	struct shape whole; /* shape of the sliced value */
	int axis;
};

static struct cut cut_of(const struct tf_translation *t, const struct node *slice)
{
	const struct attributes *a = &slice->attributes;
	struct cut cut = {.whole = tf_lying_shape(t, slice->inputs[0])};

	cut.axis = layouts_axis(&t->layouts, slice->inputs[0], (int)a->axis);
	for (int i = 0; i < cut.whole.rank; i++) {
		cut.ends[i] = cut.whole.dims[i];
		cut.steps[i] = 1;
	}
	cut.begins[cut.axis] = a->start;
	cut.ends[cut.axis] = a->end;
	cut.steps[cut.axis] = a->step;
	return cut;
}

void tf_slice_node(struct tf_translation *t, const struct node *node)
{
	struct cut cut = cut_of(t, node);
	struct shape size = tf_lying_shape(t, node->outputs[0]);
	int rank = size.rank;

	if (node->attributes.step == 1)
		tf_give(t, node, 0, tf_slice(&t->e, tf_take(t, node, 0), cut.begins, &size));
	else
		tf_give(t, node, 0,
			tf_op(&t->e, "StridedSlice",
			      TF_IN(tf_take(t, node, 0), tf_indices(&t->e, cut.begins, rank),
				    tf_indices(&t->e, cut.ends, rank),
				    tf_indices(&t->e, cut.steps, rank)),
			      NULL));
}

void tf_slice_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *slice = tf_forward(t, node);
	struct cut cut = cut_of(t, slice);
	struct shape size = tf_lying_shape(t, slice->outputs[0]);
	int rank = size.rank;
	int64_t pads[2 * TENSOR_MAX_RANK] = {0};

	pads[cut.axis] = cut.begins[cut.axis];
	pads[rank + cut.axis] = cut.whole.dims[cut.axis] - cut.ends[cut.axis];
	if (slice->attributes.step == 1)
		tf_give(t, node, 0, tf_pad(t, tf_take(t, node, 0), pads, rank, 0));
	else
		tf_give(t, node, 0,
			tf_op(&t->e, "StridedSliceGrad",
			      TF_IN(tf_dims(&t->e, &cut.whole), tf_indices(&t->e, cut.begins, rank),
				    tf_indices(&t->e, cut.ends, rank),
				    tf_indices(&t->e, cut.steps, rank), tf_take(t, node, 0)),
			      NULL));
}

/* The pads before each axis, then those after each axis, in memory order. */
static void lying_pads(const struct tf_translation *t, const struct node *pad, int64_t *out)
{
	int rank = tf_graph_shape(t, pad->inputs[0])->rank;

	for (int i = 0; i < rank; i++) {
		int at = layouts_axis(&t->layouts, pad->inputs[0], i);

		out[at] = pad->attributes.ints.items[i];
		out[rank + at] = pad->attributes.ints.items[rank + i];
	}
}

void tf_pad_node(struct tf_translation *t, const struct node *node)
{
	int64_t pads[2 * TENSOR_MAX_RANK] = {0};

	lying_pads(t, node, pads);
	tf_give(t, node, 0,
		tf_pad(t, tf_take(t, node, 0), pads, tf_graph_shape(t, node->inputs[0])->rank,
		       node->attributes.value));
}

void tf_pad_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *pad = tf_forward(t, node);
	struct shape lies = tf_lying_shape(t, pad->inputs[0]);
	int64_t pads[2 * TENSOR_MAX_RANK] = {0};

	lying_pads(t, pad, pads);
	tf_give(t, node, 0, tf_slice(&t->e, tf_take(t, node, 0), pads, &lies));
}

/* Reduces x, which has the memory layout of `value`, by `type` (Sum, Mean). Summed axes keep size
 * 1. */
static struct tf_output reduce(struct tf_translation *t, const char *type, struct tf_output x,
			       int value, const struct reduction *r)
{
	bool reduced[TENSOR_MAX_RANK] = {false};

	for (int i = 0; i < r->kept.rank; i++)
		reduced[layouts_axis(&t->layouts, value, i)] = r->summed[i];
	return tf_reduce(t, type, x, reduced, r->kept.rank);
}

static bool is_last(const struct tf_translation *t, int value)
{
	return t->layouts.values[value] == LAYOUT_LAST;
}

void tf_mean(struct tf_translation *t, const struct node *node)
{
	struct reduction r = reduction_of_mean(t->graph, node);
	const struct shape *y = tf_graph_shape(t, node->outputs[0]);
	struct tf_output mean = reduce(t, "Mean", tf_take(t, node, 0), node->inputs[0], &r);

	if (y->rank < r.kept.rank && is_last(t, node->inputs[0]))
		mean = tf_turn(t, mean, &r.kept, false);
	if (y->rank < r.kept.rank)
		mean = tf_reshape(&t->e, mean, y);
	tf_give(t, node, 0, mean);
}

void tf_mean_grad(struct tf_translation *t, const struct node *node)
{
	struct reduction r = reduction_of_mean(t->graph, tf_forward(t, node));
	int dx = node->outputs[0];
	bool widened = tf_graph_shape(t, node->inputs[0])->rank < r.kept.rank;
	struct shape lies = tf_lying_shape(t, dx);
	struct tf_output dy = tf_scale(&t->e, tf_take(t, node, 0), 1 / (double)r.count);

	if (widened)
		dy = tf_reshape(&t->e, dy, &r.kept);
	if (widened && is_last(t, dx))
		dy = tf_turn(t, dy, &r.kept, true);
	tf_give(t, node, 0, tf_binary(&t->e, "BroadcastTo", dy, tf_dims(&t->e, &lies)));
}

/* Returns input i. If it is broadcast to an image with channels last, it gets channels last too. */
static struct tf_output operand(struct tf_translation *t, const struct node *node, int i)
{
	int value = node->inputs[i], y = node->outputs[0];
	struct reduction r = reduction_of_broadcast(tf_graph_shape(t, y), tf_graph_shape(t, value));

	if (!is_last(t, y) || is_last(t, value) || shape_elements(&r.kept) == 1)
		return tf_take(t, node, i);
	return tf_turn(t, tf_reshape(&t->e, tf_take(t, node, i), &r.kept), &r.kept, true);
}

/* Collects the terms of a sum of gradients and returns their number. Partial sums without another
 * reader are replaced by their terms, because Python adds all gradients of a value with one AddN.
 */
static int terms_of(struct tf_translation *t, const struct node *sum, struct tf_output *terms)
{
	const struct node *inner = sum;
	int count = 0, producer;

	for (;;) {
		terms[count++] = tf_take(t, inner, 1);
		producer = t->graph->values[inner->inputs[0]].producer;
		if (producer < t->graph->forward_count || t->readers[inner->inputs[0]] != 1 ||
		    t->graph->nodes[producer].op != OP_ADD)
			break;
		inner = &t->graph->nodes[producer];
	}
	terms[count++] = tf_take(t, inner, 0);
	return count;
}

/* Whether the only reader is another sum of gradients, which then takes its terms. */
static bool is_partial_sum(const struct tf_translation *t, const struct node *node)
{
	int value = node->outputs[0];

	if (t->readers[value] != 1)
		return false;
	for (int i = t->graph->forward_count; i < t->graph->node_count; i++)
		if (t->graph->nodes[i].inputs[0] == value)
			return t->graph->nodes[i].op == OP_ADD;
	return false;
}

void tf_arithmetic(struct tf_translation *t, const struct node *node)
{
	static const char *const types[OP_COUNT] = {
		[OP_ADD] = "AddV2", [OP_SUB] = "Sub", [OP_MUL] = "Mul", [OP_DIV] = "RealDiv"};
	struct tf_output *terms;
	int count;

	if (node - t->graph->nodes < t->graph->forward_count || node->op != OP_ADD) {
		tf_give(t, node, 0,
			tf_binary(&t->e, types[node->op], operand(t, node, 0),
				  operand(t, node, 1)));
		return;
	}
	if (is_partial_sum(t, node))
		return;
	terms = arena_array(t->arena, (size_t)t->graph->node_count + 1, sizeof(terms[0]));
	count = terms_of(t, node, terms);
	tf_give(t, node, 0, tf_op_list(&t->e, "AddN", terms, count, NULL, 0, NULL));
}

/* Sums over the broadcast axes, then removes the leading axes that were added. */
void tf_broadcast_grad(struct tf_translation *t, const struct node *node)
{
	int dy = node->inputs[0], dx = node->outputs[0];
	const struct shape *whole = tf_graph_shape(t, dy), *part = tf_graph_shape(t, dx);
	struct reduction r = reduction_of_broadcast(whole, part);
	struct shape lies = tf_lying_shape(t, dx);
	struct tf_output sum = reduce(t, "Sum", tf_take(t, node, 0), dy, &r);

	if (part->rank < whole->rank && is_last(t, dy))
		sum = tf_turn(t, sum, &r.kept, false);
	tf_give(t, node, 0, tf_reshape(&t->e, sum, &lies));
}

void tf_expand(struct tf_translation *t, const struct node *node)
{
	tf_give_plain(t, node, 0,
		      tf_binary(&t->e, "BroadcastTo", tf_take_plain(t, node, 0),
				tf_dims(&t->e, tf_graph_shape(t, node->outputs[0]))));
}

void tf_gather(struct tf_translation *t, const struct node *node)
{
	tf_give_plain(t, node, 0,
		      tf_op(&t->e, "GatherV2",
			    TF_IN(tf_take(t, node, 0), tf_take(t, node, 1), tf_index(&t->e, 0)),
			    NULL));
}

/* Computes a dense gradient: the slices of tf.gather, summed as tf.convert_to_tensor does. */
void tf_gather_grad(struct tf_translation *t, const struct node *node)
{
	int64_t rows = tf_graph_shape(t, node->outputs[0])->dims[0];
	struct tf_output dy = tf_cast(&t->e, tf_take_plain(t, node, 0), TF_TYPE_FLOAT);

	dy = tf_op(&t->e, "UnsortedSegmentSum",
		   TF_IN(dy, tf_take(t, node, 1), tf_index(&t->e, rows)), NULL);
	tf_give(t, node, 0, tf_cast(&t->e, dy, t->type));
}
