/* The output of a file as the logits of a network. */
#include <string.h>

#include "onnx/import_internal.h"

/* The number of dimensions other than 1, behind the batch; *place is the last of them. */
static int long_dims(const struct shape *shape, int *place)
{
	int count = 0;

	*place = shape->rank - 1;
	for (int i = 1; i < shape->rank; i++) {
		if (shape->dims[i] == 1)
			continue;
		*place = i;
		count++;
	}
	return count;
}

/* Whether a matrix has rows of classes for each token, in a network whose inputs are tokens. */
static bool has_rows_of_tokens(const struct importer *im, const struct shape *shape)
{
	bool tokens = false;

	for (int i = 0; i < im->model->facts.input_count; i++)
		tokens = tokens || im->model->facts.inputs[i].dtype != DTYPE_F32;
	return tokens && shape->rank == 2 && shape->dims[0] > im->batch &&
	       shape->dims[0] % im->batch == 0;
}

/* Channels of an image become the last dimension. */
static int channels_last(struct importer *im, const struct file_node *node, int x)
{
	struct attributes attributes;

	operator_default_attributes(OP_TRANSPOSE, &attributes);
	attributes.ints = (struct int_list){.items = {0, 2, 3, 1}, .count = 4};
	return import_append(im, node, OP_TRANSPOSE, &x, 1, &attributes);
}

/* The shape of one sample. */
static struct shape sample_of(const struct shape *shape, int64_t batch)
{
	struct shape sample = *shape;

	if (shape->rank > 0 && shape->dims[0] == batch) {
		sample.rank--;
		memmove(sample.dims, shape->dims + 1, (size_t)sample.rank * sizeof(int64_t));
	} else if (shape->rank > 0) {
		sample.dims[0] /= batch;
	}
	return sample;
}

enum prony_status import_find_logits(struct importer *im, int *logits, struct error *err)
{
	const struct onnx_model *model = im->model;
	const struct slot *slot = &im->slots[model->output];
	const struct definition *definition = &model->definitions[model->output];
	struct shape shape, flat = {.rank = 2};
	char text[128];
	int place, x;

	if (slot->kind != SLOT_VALUE || im->builder.graph->values[slot->value].kind == VALUE_INPUT)
		return error_set(err, PRONY_UNSUPPORTED,
				 "%s: its output '%.100s' does not depend on an input", model->path,
				 definition->name);
	*logits = x = slot->value;
	shape = *import_shape(im, x);
	im->notes.output = sample_of(&shape, im->batch);
	if (has_rows_of_tokens(im, &shape))
		return PRONY_OK;
	if (shape.rank < 2 || shape.dims[0] != im->batch) {
		shape_text(&shape, text, sizeof(text));
		return error_set(err, PRONY_UNSUPPORTED,
				 "%s: its output '%.100s' has shape %s; its first dimension must "
				 "be the batch, and a second one the classes",
				 model->path, definition->name, text);
	}
	if (long_dims(&shape, &place) > 1 && shape.rank == 4 && shape.dims[1] > 1)
		x = channels_last(im, &model->nodes[definition->index], x);
	if (x == VALUE_NONE)
		return PRONY_OK;
	if (long_dims(import_shape(im, x), &place) > 1)
		place = shape.rank - 1;
	flat.dims[1] = import_shape(im, x)->dims[place];
	flat.dims[0] = shape_elements(&shape) / flat.dims[1];
	/* The Flatten gets its name from the node that computes the output. */
	*logits = import_reshaped(im, &model->nodes[definition->index], x, &flat);
	return PRONY_OK;
}
