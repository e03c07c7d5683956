/* Weights of recurrent layers of files as parameters of the graph. */
#include "onnx/import_recurrent_internal.h"

int import_part(struct importer *im, const struct file_node *node, const struct constant *whole,
		int64_t first, int rank, int64_t rows, int64_t columns, const char *what)
{
	struct shape shape = {.rank = rank, .dims = {rows, columns}};
	struct constant part = *whole;

	part.count = shape_elements(&shape);
	part.shape = shape;
	part.floats += first;
	/* Only what is a whole initializer is one. */
	if (part.count != whole->count)
		part.initializer = -1;
	return import_parameter(im, node, &part, &shape, VALUE_PARAMETER, what);
}

int import_bias(struct importer *im, const struct file_node *node, const struct recurrent_layer *l,
		int direction)
{
	int64_t blocks = l->rows / l->hidden, own = l->linear ? blocks - 1 : blocks;
	int64_t count = (l->linear ? blocks + 1 : blocks) * l->hidden;
	float *sums = arena_try_array(im->numbers, (size_t)count, sizeof(*sums), NULL);
	const float *given = l->b ? l->b->floats + direction * 2 * l->rows : NULL;
	struct constant bias = {.type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
				.is_float = true,
				.shape = {.rank = 1, .dims = {count}},
				.count = count,
				.floats = sums,
				.initializer = -1};

	if (sums == NULL) {
		import_refuse(im, node, "its biases take too much memory");
		return VALUE_NONE;
	}
	for (int64_t i = 0; i < count; i++) {
		bool both = i < own * l->hidden;

		sums[i] = 0;
		if (given && i < l->rows)
			sums[i] = given[i];
		if (given && (both || i >= l->rows))
			sums[i] += given[l->rows + (both ? i : i - l->hidden)];
	}
	im->notes.file_parameters += (given ? 2 * l->rows : 0) - count;
	return import_parameter(im, node, &bias, NULL, VALUE_PARAMETER, "bias");
}
