/*
 * Whether each result of a graph belongs to one sample alone. A file that fixes its batch says what
 * its nodes do with that many samples; with another number they mean the same only where no node
 * mixes samples.
 *
 * Wherever the batch went, through reshapes and transposes, it is one factor of one dimension: the
 * elements of a value are `before` x batch x the rest, in row-major order. So one number says where
 * the samples lie in a value, and no reshape changes it.
 */
#include "onnx/import_internal.h"

#include <string.h>

/* A value that is the same for all samples: weights. */
#define NO_SAMPLES 0

/* Where the samples lie: dims[axis] = outer * batch * inner. */
struct place {
	int axis;
	int64_t outer, inner;
};

struct samples {
	const struct graph *graph;
	int64_t batch;
	int64_t *before; /* of each value; NO_SAMPLES */
};

static int64_t elements_before(const struct shape *shape, int axis)
{
	int64_t n = 1;

	for (int i = 0; i < axis; i++)
		n *= shape->dims[i];
	return n;
}

static const struct shape *shape_of(const struct samples *s, int value)
{
	return &s->graph->values[value].shape;
}

/* False when the batch is no factor of one dimension, or when there are no samples in the value. */
static bool find_place(const struct samples *s, int value, struct place *out)
{
	const struct shape *shape = shape_of(s, value);
	int64_t before = s->before[value], prefix = 1;

	for (int i = 0; before != NO_SAMPLES && i < shape->rank && prefix <= before; i++) {
		int64_t outer = before / prefix;

		if (before % prefix == 0 && outer <= shape->dims[i] / s->batch &&
		    shape->dims[i] % (outer * s->batch) == 0) {
			*out = (struct place){i, outer, shape->dims[i] / (outer * s->batch)};
			return true;
		}
		prefix *= shape->dims[i];
	}
	return false;
}

/* The samples lie on `axis` of the output, `outer` groups of them. */
static int64_t before_of(const struct samples *s, const struct node *node, int axis, int64_t outer)
{
	return elements_before(shape_of(s, node->outputs[0]), axis) * outer;
}

static bool has_axis(const struct int_list *axes, int axis)
{
	for (int i = 0; i < axes->count; i++) {
		if (axes->items[i] == axis)
			return true;
	}
	return axes->count == 0;
}

/* Operands are aligned at their last axes; one without samples must be repeated for each of them.
 */
static int64_t follow_binary(const struct samples *s, const struct node *node)
{
	int rank = shape_of(s, node->outputs[0])->rank;
	struct place first = {.axis = -1};

	for (int i = 0; i < 2; i++) {
		struct place place;

		if (s->before[node->inputs[i]] == NO_SAMPLES)
			continue;
		if (!find_place(s, node->inputs[i], &place))
			return NO_SAMPLES;
		place.axis += rank - shape_of(s, node->inputs[i])->rank;
		if (first.axis >= 0 && (place.axis != first.axis || place.outer != first.outer ||
					place.inner != first.inner))
			return NO_SAMPLES;
		first = place;
	}
	for (int i = 0; i < 2; i++) {
		const struct shape *shape = shape_of(s, node->inputs[i]);
		int axis = first.axis - (rank - shape->rank);

		if (s->before[node->inputs[i]] == NO_SAMPLES && axis >= 0 && shape->dims[axis] != 1)
			return NO_SAMPLES;
	}
	return before_of(s, node, first.axis, first.outer);
}

/* Along the batch, groups of samples are put behind each other. */
static int64_t follow_concat(const struct samples *s, const struct node *node)
{
	struct place first;
	int64_t outer;

	if (!find_place(s, node->inputs[0], &first))
		return NO_SAMPLES;
	outer = first.outer;
	for (int i = 1; i < node->input_count; i++) {
		struct place place;
		bool along = node->attributes.axis == first.axis;

		if (!find_place(s, node->inputs[i], &place) || place.axis != first.axis ||
		    place.inner != first.inner || (!along && place.outer != first.outer))
			return NO_SAMPLES;
		outer += along ? place.outer : 0;
	}
	return before_of(s, node, first.axis, outer);
}

/* Along the batch, whole groups may be taken. */
static int64_t follow_slice(const struct samples *s, const struct node *node,
			    const struct place *place)
{
	const struct attributes *a = &node->attributes;
	int64_t group = s->batch * place->inner;

	if (a->axis != place->axis)
		return before_of(s, node, place->axis, place->outer);
	if (a->step != 1 || a->start % group != 0 || a->end % group != 0)
		return NO_SAMPLES;
	return before_of(s, node, place->axis, (a->end - a->start) / group);
}

static int64_t follow_transpose(const struct samples *s, const struct node *node,
				const struct place *place)
{
	int axis = 0;

	while (node->attributes.ints.items[axis] != place->axis)
		axis++;
	return before_of(s, node, axis, place->outer);
}

static int64_t follow_mean(const struct samples *s, const struct node *node,
			   const struct place *place)
{
	const struct int_list *axes = &node->attributes.ints;
	int axis = place->axis;

	if (has_axis(axes, axis))
		return NO_SAMPLES;
	for (int i = 0; i < axes->count && !node->attributes.keep_dims; i++)
		axis -= axes->items[i] < place->axis;
	return before_of(s, node, axis, place->outer);
}

/* Where the samples lie in the output, given where they lie in input 0; NO_SAMPLES: mixed. */
static int64_t follow_layer(const struct samples *s, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct place p;

	if (!find_place(s, node->inputs[0], &p))
		return NO_SAMPLES;
	switch (node->op) {
	case OP_CONV:
		return p.axis == 0 ? before_of(s, node, 0, p.outer) : NO_SAMPLES;
	case OP_MAX_POOL:
	case OP_AVERAGE_POOL:
	case OP_GLOBAL_AVERAGE_POOL:
		return p.axis < 2 ? before_of(s, node, p.axis, p.outer) : NO_SAMPLES;
	case OP_GEMM:
		return p.axis == (a->trans_a ? 1 : 0) ? before_of(s, node, 0, p.outer) : NO_SAMPLES;
	case OP_BATCH_NORM:
	case OP_LRN:
		return p.axis != 1 ? s->before[node->inputs[0]] : NO_SAMPLES;
	case OP_SOFTMAX:
		return p.axis != a->axis ? s->before[node->inputs[0]] : NO_SAMPLES;
	case OP_PAD:
		return before_of(s, node, p.axis, p.outer);
	case OP_SLICE:
		return follow_slice(s, node, &p);
	case OP_TRANSPOSE:
		return follow_transpose(s, node, &p);
	case OP_REDUCE_MEAN:
		return follow_mean(s, node, &p);
	default:
		return NO_SAMPLES;
	}
}

/* Of all operators that the importer appends; what it may append later is refused until it is here.
 */
static int64_t follow(const struct samples *s, const struct node *node)
{
	if (operator_row(node->op)->elementwise)
		return s->before[node->inputs[0]];
	if (operator_row(node->op)->broadcast)
		return follow_binary(s, node);
	switch (node->op) {
	case OP_DROPOUT:
	case OP_FLATTEN:
	case OP_RESHAPE:
		return s->before[node->inputs[0]];
	case OP_CONCAT:
		return follow_concat(s, node);
	default:
		return follow_layer(s, node);
	}
}

static bool has_samples(const struct samples *s, const struct node *node)
{
	for (int i = 0; i < node->input_count; i++) {
		if (node->inputs[i] != VALUE_NONE && s->before[node->inputs[i]] != NO_SAMPLES)
			return true;
	}
	return false;
}

static enum prony_status refuse(const struct node *node, struct error *err)
{
	return error_set(
		err, PRONY_UNSUPPORTED,
		"node '%.100s' (%s): the file fixes its batch, and this node treats samples "
		"together or one unlike the other: with another batch it would be another "
		"network",
		node->name, operator_name(node->op));
}

enum prony_status onnx_samples_apart(const struct graph *graph, struct error *err)
{
	struct samples s = {.graph = graph, .batch = graph_batch(graph)};
	enum prony_status status = PRONY_OK;
	struct arena arena;
	struct place place;

	if (s.batch == 1)
		return PRONY_OK;
	arena_init(&arena, 0);
	s.before = arena_array(&arena, (size_t)graph->value_count + 1, sizeof(*s.before));
	memset(s.before, 0, (size_t)graph->value_count * sizeof(*s.before));
	s.before[graph->input] = 1;
	for (int i = 0; i < graph->forward_count && status == PRONY_OK; i++) {
		const struct node *node = &graph->nodes[i];

		if (operator_row(node->op)->is_loss)
			break;
		if (!has_samples(&s, node))
			continue;
		s.before[node->outputs[0]] = follow(&s, node);
		if (!find_place(&s, node->outputs[0], &place))
			status = refuse(node, err);
	}
	if (status == PRONY_OK &&
	    (!find_place(&s, graph->logits, &place) || place.axis != 0 || place.outer != 1))
		status = error_set(
			err, PRONY_UNSUPPORTED,
			"the file fixes its batch, and the rows of its output are not the "
			"samples in order");
	arena_release(&arena);
	return status;
}
