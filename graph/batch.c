/* Takes batches from lists, checks them and draws random ones. */
#include "graph/batch.h"

#include <inttypes.h>

#include "base/random.h"

struct batch batch_at(const struct graph *graph, const struct tensor_set *inputs,
		      const struct tensor_set *labels, size_t i)
{
	struct batch batch = {.input_count = graph_inputs(graph, NULL, 0)};
	size_t label_count = (size_t)graph_labels(graph, NULL, 0);

	batch.inputs = &inputs->tensors[i * (size_t)batch.input_count];
	if ((i + 1) * label_count <= labels->count) {
		batch.label_count = (int)label_count;
		batch.labels = label_count > 0 ? &labels->tensors[i * label_count] : NULL;
	}
	return batch;
}

/* The number of indices that the node allows in `value`; 0 if it is no index of the node. */
static int64_t allowed_indices(const struct graph *graph, const struct node *node, int value)
{
	int64_t axis = node->attributes.axis;

	if (node->op == OP_GATHER && node->inputs[1] == value)
		return graph->values[node->inputs[0]].shape.dims[0];
	if (node->op == OP_TENSOR_SCATTER && node->input_count > 2 && node->inputs[2] == value)
		return graph->values[node->inputs[0]].shape.dims[axis] -
		       graph->values[node->inputs[1]].shape.dims[axis] + 1;
	return 0;
}

int64_t graph_index_bound(const struct graph *graph, int value)
{
	int64_t bound = 0;

	for (int i = 0; i < graph->forward_count; i++) {
		int64_t allowed = allowed_indices(graph, &graph->nodes[i], value);

		if (allowed > 0 && (bound == 0 || allowed < bound))
			bound = allowed;
	}
	return bound;
}

/* Element i of an I64 or I32 tensor. */
static int64_t integer_at(const struct tensor *tensor, int64_t i)
{
	return tensor->dtype == DTYPE_I64 ? ((const int64_t *)tensor->data)[i]
					  : ((const int32_t *)tensor->data)[i];
}

static enum prony_status check_type(const struct value *value, const struct tensor *tensor,
				    struct error *err)
{
	char have[96], want[96];

	if (tensor->dtype == value->dtype && shape_equal(&tensor->shape, &value->shape))
		return PRONY_OK;
	shape_text(&tensor->shape, have, sizeof(have));
	shape_text(&value->shape, want, sizeof(want));
	return error_set(err, PRONY_BAD_INPUT, "%.80s is %s %s, but the network takes %s %s",
			 tensor->name, dtype_name(tensor->dtype), have, dtype_name(value->dtype),
			 want);
}

static enum prony_status check_indices(const struct tensor *tensor, int64_t bound,
				       struct error *err)
{
	for (int64_t i = 0; bound > 0 && i < shape_elements(&tensor->shape); i++) {
		int64_t index = integer_at(tensor, i);

		if (index < 0 || index >= bound)
			return error_set(err, PRONY_BAD_INPUT,
					 "%.80s: element %" PRId64 " is index %" PRId64
					 "; the table has %" PRId64 " rows",
					 tensor->name, i, index, bound);
	}
	return PRONY_OK;
}

static enum prony_status check_labels(const struct tensor *tensor, int64_t classes,
				      struct error *err)
{
	const int64_t *labels = tensor->data;
	bool any_valid = false;

	for (int64_t i = 0; i < shape_elements(&tensor->shape); i++) {
		if (labels[i] < -1 || labels[i] >= classes)
			return error_set(err, PRONY_BAD_INPUT,
					 "%.80s: element %" PRId64 " is label %" PRId64
					 "; the network has %" PRId64 " classes",
					 tensor->name, i, labels[i], classes);
		any_valid = any_valid || labels[i] >= 0;
	}
	return any_valid ? PRONY_OK
			 : error_set(err, PRONY_BAD_INPUT,
				     "%.80s: every label is -1 (ignored), so there is no loss",
				     tensor->name);
}

enum prony_status batch_check(const struct graph *graph, struct batch batch, struct error *err)
{
	int inputs = graph_inputs(graph, NULL, 0), labels = graph_labels(graph, NULL, 0);
	enum prony_status status = PRONY_OK;

	if (batch.input_count != inputs || (batch.label_count != labels && batch.label_count != 0))
		return error_set(
			err, PRONY_BAD_INPUT,
			"the batch has %d inputs and %d labels, but the network takes %d and %d",
			batch.input_count, batch.label_count, inputs, labels);
	for (int i = 0; status == PRONY_OK && i < inputs; i++) {
		int index = graph_input(graph, i);

		status = check_type(&graph->values[index], &batch.inputs[i], err);
		if (status == PRONY_OK)
			status = check_indices(&batch.inputs[i], graph_index_bound(graph, index),
					       err);
	}
	for (int i = 0; status == PRONY_OK && i < batch.label_count; i++) {
		const struct value *value = &graph->values[graph_label(graph, i)];

		status = check_type(value, &batch.labels[i], err);
		if (status == PRONY_OK)
			status = check_labels(&batch.labels[i], graph_classes(graph), err);
	}
	return status;
}

static void draw_input(struct random *random, struct tensor *tensor, int64_t bound)
{
	int64_t count = shape_elements(&tensor->shape);

	for (int64_t i = 0; i < count; i++) {
		switch (tensor->dtype) {
		case DTYPE_F32:
			((float *)tensor->data)[i] = (float)random_normal(random);
			break;
		case DTYPE_I64:
			((int64_t *)tensor->data)[i] =
				(int64_t)random_below(random, (uint64_t)bound);
			break;
		case DTYPE_I32:
			((int32_t *)tensor->data)[i] =
				(int32_t)random_below(random, (uint64_t)bound);
			break;
		case DTYPE_BOOL:
			((uint8_t *)tensor->data)[i] = (uint8_t)random_below(random, 2);
			break;
		default: /* F16: magnitudes from 1 to 2 */
			((uint16_t *)tensor->data)[i] =
				(uint16_t)(0x3c00 | random_below(random, 1 << 10) |
					   random_below(random, 2) << 15);
		}
	}
}

/* The first label of a batch is valid, because the loss over no valid label is undefined. */
static void draw_labels(struct random *random, struct tensor *tensor, int64_t classes,
			double ignored)
{
	int64_t *labels = tensor->data;

	for (int64_t i = 0; i < shape_elements(&tensor->shape); i++) {
		labels[i] = (int64_t)random_below(random, (uint64_t)classes);
		if (ignored > 0 && random_uniform(random) < ignored && i > 0)
			labels[i] = -1;
	}
}

/* Draws one tensor of batch n from its own random stream. */
static enum prony_status draw_tensor(const struct graph *graph, int index, uint64_t seed, int64_t n,
				     double ignored, struct arena *arena, struct tensor *out,
				     struct error *err)
{
	const struct value *value = &graph->values[index];
	int64_t bound = graph_index_bound(graph, index);
	struct random random;
	enum prony_status status =
		tensor_new(arena, value->name, value->dtype, &value->shape, out, err);

	if (status != PRONY_OK)
		return status;
	random_init_named(&random, seed,
			  arena_printf(arena, "batch/%" PRId64 "/%s", n, value->name));
	if (value->kind == VALUE_LABEL)
		draw_labels(&random, out, graph_classes(graph), ignored);
	else
		draw_input(&random, out, bound > 0 ? bound : 2);
	return PRONY_OK;
}

enum prony_status batches_draw(const struct graph *graph, uint64_t seed, int64_t first,
			       size_t count, double ignored, struct arena *arena,
			       struct tensor_set *inputs, struct tensor_set *labels,
			       struct error *err)
{
	int input_count = graph_inputs(graph, NULL, 0), label_count = graph_labels(graph, NULL, 0);
	struct tensor_set x = {
		.tensors = arena_array(arena, count * (size_t)input_count, sizeof(struct tensor))};
	struct tensor_set y = {
		.tensors = arena_array(arena, count * (size_t)label_count, sizeof(struct tensor))};
	enum prony_status status = PRONY_OK;

	for (int64_t n = first; status == PRONY_OK && n < first + (int64_t)count; n++) {
		for (int i = 0; status == PRONY_OK && i < input_count; i++)
			status = draw_tensor(graph, graph_input(graph, i), seed, n, 0, arena,
					     &x.tensors[x.count++], err);
		for (int i = 0; status == PRONY_OK && i < label_count; i++)
			status = draw_tensor(graph, graph_label(graph, i), seed, n, ignored, arena,
					     &y.tensors[y.count++], err);
	}
	*inputs = x;
	*labels = y;
	return status;
}
