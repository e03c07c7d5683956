/*
 * Changes the batch of a graph, and finds out whether its samples are computed apart.
 *
 * Wherever the batch goes, through reshapes and transposes, it stays one factor of one dimension:
 * dims[axis] = outer * batch * inner. A reshape moves no element, so the product of what lies
 * before the batch (the dimensions before `axis`, times `outer`) is the same in its input and its
 * output.
 */
#include "graph/rebatch.h"

#include "graph/edit_internal.h"
#include "graph/operator_rows_internal.h"

/* Where the samples lie in a value. */
struct place {
	int axis; /* -1: nowhere, the value is the same for all samples, or it mixes them */
	int64_t outer, inner;
};

static const struct place nowhere = {.axis = -1};

struct samples {
	const struct graph *graph;
	int64_t batch;
	struct place *places; /* of each value */
	struct arena arena;
};

static const struct shape *shape_of(const struct samples *s, int value)
{
	return &s->graph->values[value].shape;
}

static int64_t elements_before(const struct shape *shape, int axis)
{
	int64_t n = 1;

	for (int i = 0; i < axis; i++)
		n *= shape->dims[i];
	return n;
}

/* `outer` groups of samples on this axis; nowhere if the dimension is no multiple of them. */
static struct place place_on(const struct samples *s, const struct shape *shape, int axis,
			     int64_t outer)
{
	int64_t dim = shape->dims[axis];

	if (outer < 1 || outer > dim / s->batch || dim % (outer * s->batch) != 0)
		return nowhere;
	return (struct place){axis, outer, dim / (outer * s->batch)};
}

/* The same on an axis of the node's first output. */
static struct place on_output(const struct samples *s, const struct node *node, int axis,
			      int64_t outer)
{
	return place_on(s, shape_of(s, node->outputs[0]), axis, outer);
}

/*
 * The samples of a value with `before` elements before them. With a batch of at least 2 there is
 * at most one such place. With a batch of 1 there may be several, all of which have the elements
 * in the same order: an axis that holds the samples first is preferred.
 */
static struct place find_place(const struct samples *s, const struct shape *shape, int64_t before)
{
	struct place found = nowhere;
	int64_t prefix = 1;

	for (int i = 0; i < shape->rank; i++) {
		struct place place =
			before % prefix == 0 ? place_on(s, shape, i, before / prefix) : nowhere;

		if (place.axis >= 0 && (found.axis < 0 || place.outer == 1))
			found = place;
		if (found.axis >= 0 && found.outer == 1)
			break;
		prefix *= shape->dims[i];
	}
	return found;
}

static struct place follow_reshape(const struct samples *s, const struct node *node,
				   const struct place *x)
{
	const struct shape *out = shape_of(s, node->outputs[0]);
	int64_t before = elements_before(shape_of(s, node->inputs[0]), x->axis) * x->outer;

	if (node->op == OP_RESHAPE)
		return find_place(s, out, before);
	return x->axis < node->attributes.axis ? place_on(s, out, 0, before)
					       : place_on(s, out, 1, before / out->dims[0]);
}

/* Operands are aligned at their last axes; one without samples must be repeated for each sample. */
static struct place follow_binary(const struct samples *s, const struct node *node)
{
	int rank = shape_of(s, node->outputs[0])->rank;
	struct place first = nowhere;

	for (int i = 0; i < 2; i++) {
		struct place place = s->places[node->inputs[i]];

		if (place.axis < 0)
			continue;
		place.axis += rank - shape_of(s, node->inputs[i])->rank;
		if (first.axis >= 0 && (place.axis != first.axis || place.outer != first.outer ||
					place.inner != first.inner))
			return nowhere;
		first = place;
	}
	for (int i = 0; i < 2; i++) {
		const struct shape *shape = shape_of(s, node->inputs[i]);
		int axis = first.axis - (rank - shape->rank);

		if (s->places[node->inputs[i]].axis < 0 && axis >= 0 && shape->dims[axis] != 1)
			return nowhere;
	}
	return on_output(s, node, first.axis, first.outer);
}

/* Concat along the batch puts groups of samples behind each other. */
static struct place follow_concat(const struct samples *s, const struct node *node)
{
	struct place first = s->places[node->inputs[0]];
	bool along = node->attributes.axis == first.axis;
	int64_t outer = first.outer;

	for (int i = 1; i < node->input_count; i++) {
		struct place place = s->places[node->inputs[i]];

		if (place.axis != first.axis || place.inner != first.inner ||
		    (!along && place.outer != first.outer))
			return nowhere;
		outer += along ? place.outer : 0;
	}
	return on_output(s, node, first.axis, outer);
}

/* Along the batch, only whole groups of samples may be taken. */
static struct place follow_slice(const struct samples *s, const struct node *node,
				 const struct place *x)
{
	const struct attributes *a = &node->attributes;
	int64_t group = s->batch * x->inner;

	if (a->axis != x->axis)
		return on_output(s, node, x->axis, x->outer);
	if (a->step != 1 || a->start % group != 0 || a->end % group != 0)
		return nowhere;
	return on_output(s, node, x->axis, (a->end - a->start) / group);
}

static struct place follow_transpose(const struct samples *s, const struct node *node,
				     const struct place *x)
{
	int axis = 0;

	while (node->attributes.ints.items[axis] != x->axis)
		axis++;
	return on_output(s, node, axis, x->outer);
}

static struct place follow_mean(const struct samples *s, const struct node *node,
				const struct place *x)
{
	const struct int_list *axes = &node->attributes.ints;
	int axis = x->axis;

	if (axes->count == 0)
		return nowhere;
	for (int i = 0; i < axes->count; i++) {
		if (axes->items[i] == x->axis)
			return nowhere;
		axis -= axes->items[i] < x->axis && !node->attributes.keep_dims;
	}
	return on_output(s, node, axis, x->outer);
}

static struct place follow_pad(const struct samples *s, const struct node *node,
			       const struct place *x)
{
	const struct int_list *pads = &node->attributes.ints;

	if (pads->items[x->axis] != 0 || pads->items[pads->count / 2 + x->axis] != 0)
		return nowhere;
	return on_output(s, node, x->axis, x->outer);
}

/* Where the samples lie in the output of a node whose first input has them. */
static struct place follow_layer(const struct samples *s, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct place x = s->places[node->inputs[0]];

	if (x.axis < 0)
		return nowhere;
	switch (node->op) {
	case OP_DROPOUT:
		return x;
	case OP_FLATTEN:
	case OP_RESHAPE:
		return follow_reshape(s, node, &x);
	case OP_CONV:
	case OP_LSTM:
	case OP_RNN:
		return x.axis == 0 ? on_output(s, node, 0, x.outer) : nowhere;
	case OP_MAX_POOL:
	case OP_AVERAGE_POOL:
	case OP_GLOBAL_AVERAGE_POOL:
		return x.axis < 2 ? on_output(s, node, x.axis, x.outer) : nowhere;
	case OP_GEMM:
		return x.axis == (a->trans_a ? 1 : 0) ? on_output(s, node, 0, x.outer) : nowhere;
	case OP_BATCH_NORM:
	case OP_LRN:
		return x.axis != 1 ? x : nowhere;
	case OP_SOFTMAX:
		return x.axis != a->axis ? x : nowhere;
	case OP_PAD:
		return follow_pad(s, node, &x);
	case OP_CONCAT:
		return follow_concat(s, node);
	case OP_SLICE:
		return follow_slice(s, node, &x);
	case OP_TRANSPOSE:
		return follow_transpose(s, node, &x);
	case OP_REDUCE_MEAN:
		return follow_mean(s, node, &x);
	default:
		return nowhere;
	}
}

static bool has_samples(const struct samples *s, const struct node *node)
{
	for (int i = 0; i < node->input_count; i++) {
		if (node->inputs[i] != VALUE_NONE && s->places[node->inputs[i]].axis >= 0)
			return true;
	}
	return false;
}

/* Sets the place of the node's first output; nodes are followed in their order. */
static void follow(struct samples *s, const struct node *node)
{
	struct place place = nowhere;

	if (!has_samples(s, node))
		return;
	if (operator_row(node->op)->elementwise)
		place = s->places[node->inputs[0]];
	else if (operator_row(node->op)->broadcast)
		place = follow_binary(s, node);
	else
		place = follow_layer(s, node);
	s->places[node->outputs[0]] = place;
}

static void samples_init(struct samples *s, const struct graph *graph)
{
	*s = (struct samples){.graph = graph, .batch = graph_batch(graph)};
	arena_init(&s->arena, 0);
	s->places = arena_array(&s->arena, (size_t)graph->value_count + 1, sizeof(*s->places));
	for (int i = 0; i < graph->value_count; i++) {
		enum value_kind kind = graph->values[i].kind;

		s->places[i] = kind == VALUE_INPUT || kind == VALUE_LABEL
				       ? place_on(s, &graph->values[i].shape, 0, 1)
				       : nowhere;
	}
}

enum prony_status graph_samples_apart(const struct graph *graph, struct error *err)
{
	enum prony_status status = PRONY_OK;
	const struct place *logits;
	struct samples s;

	samples_init(&s, graph);
	for (int i = 0; i < graph->forward_count && status == PRONY_OK; i++) {
		const struct node *node = &graph->nodes[i];

		if (operator_row(node->op)->is_loss)
			break;
		follow(&s, node);
		if (has_samples(&s, node) && s.places[node->outputs[0]].axis < 0)
			status = error_set(err, PRONY_UNSUPPORTED,
					   "node '%.100s' (%s) treats samples together or one "
					   "unlike the other",
					   node->name, operator_name(node->op));
	}
	logits = &s.places[graph->logits];
	if (status == PRONY_OK && (logits->axis != 0 || logits->outer != 1))
		status = error_set(err, PRONY_UNSUPPORTED,
				   "the rows of its output are not the samples in order");
	arena_release(&s.arena);
	return status;
}

/* What the attributes of a node say of the old batch says it of the new one. */
static void adapt(const struct samples *s, int64_t batch, struct node *node)
{
	struct attributes *a = &node->attributes;
	const struct place *x = &s->places[node->inputs[0]], *y = &s->places[node->outputs[0]];

	if (x->axis < 0 || y->axis < 0)
		return;
	/* A dimension of 0 or -1 follows the input as it is. */
	if (node->op == OP_RESHAPE && a->ints.items[y->axis] > 0)
		a->ints.items[y->axis] =
			saturating_multiply(saturating_multiply(y->outer, y->inner), batch);
	if (node->op == OP_SLICE && a->axis == x->axis) {
		a->start = saturating_multiply(a->start / s->batch, batch);
		a->end = saturating_multiply(a->end / s->batch, batch);
	}
}

/* Shapes of the nodes' outputs, given those of the inputs and labels. */
static enum prony_status infer_again(struct samples *s, int64_t batch, struct graph *out,
				     struct error *err)
{
	enum prony_status status = PRONY_OK;
	struct error why = ERROR_INIT;

	for (int i = 0; i < out->node_count && status == PRONY_OK; i++) {
		if (!operator_row(out->nodes[i].op)->is_loss)
			follow(s, &s->graph->nodes[i]);
		adapt(s, batch, &out->nodes[i]);
		if (operator_row(out->nodes[i].op)->infer(out, &out->nodes[i], &why) != PRONY_OK)
			status = error_set(err, PRONY_UNSUPPORTED,
					   "it cannot be changed from batch %lld to %lld: %s",
					   (long long)s->batch, (long long)batch, why.text);
	}
	return status;
}

enum prony_status graph_rebatch(const struct graph *graph, int64_t batch, struct graph *out,
				struct error *err)
{
	enum prony_status status = PRONY_OK;
	struct samples s;
	struct graph copy;

	samples_init(&s, graph);
	graph_copy_forward(graph, &copy);
	for (int i = 0; i < copy.value_count && status == PRONY_OK; i++) {
		struct value *value = &copy.values[i];

		if (value->kind != VALUE_INPUT && value->kind != VALUE_LABEL)
			continue;
		value->shape.dims[0] = batch;
		status = graph_check_shape(value->name, value->dtype, &value->shape, err);
	}
	if (status == PRONY_OK)
		status = infer_again(&s, batch, &copy, err);
	if (status == PRONY_OK)
		*out = copy;
	else
		graph_release(&copy);
	arena_release(&s.arena);
	return status;
}
