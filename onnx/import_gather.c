/* Gather: rows of a trained table by integers of an input (an embedding) or by constants
 * (positions), and one element of an activation. */
#include "onnx/import_internal.h"

#include <string.h>

/* The most elements of a matrix of zeros and ones that picks rows of a table. */
#define PICKS_MAX (INT64_C(1) << 24)

/* The shape of rows of the table for indices of that shape. */
static struct shape rows_shape(const struct shape *indices, const struct shape *table)
{
	struct shape shape = *indices;

	for (int i = 1; i < table->rank && shape.rank < TENSOR_MAX_RANK; i++)
		shape.dims[shape.rank++] = table->dims[i];
	return shape;
}

/* Whether a constant is a trained table as it is in the file. */
static bool is_table(const struct importer *im, const struct constant *c)
{
	bool transposed;

	return c && c->is_float && c->initializer >= 0 && c->shape.rank > 1 &&
	       (c->floats == im->model->initializers[c->initializer].floats ||
		import_tied(im, c, &transposed));
}

bool import_picks_rows(const struct importer *im, const struct file_node *node)
{
	const struct constant *rows = import_constant(im, node, 1);

	return strcmp(node->proto->op_type, "Gather") == 0 && rows && rows->count > 0 &&
	       rows->count <= FOLD_MAX_INTS && onnx_int(node->proto, "axis", 0) == 0 &&
	       is_table(im, import_constant(im, node, 0));
}

bool import_slices_table(const struct importer *im, const struct file_node *node)
{
	return strcmp(node->proto->op_type, "Slice") == 0 &&
	       is_table(im, import_constant(im, node, 0));
}

/* Picks rows in any order: a product with a matrix of zeros and ones. */
static int append_picks(struct importer *im, const struct file_node *node, int table,
			const int64_t *rows, int64_t count)
{
	int64_t height = import_shape(im, table)->dims[0];
	struct constant picks = {.type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
				 .is_float = true,
				 .shape = {.rank = 2, .dims = {count, height}},
				 .count = count * height,
				 .initializer = -1};
	int inputs[2] = {VALUE_NONE, table};
	float *ones;

	if (height > PICKS_MAX / count) {
		import_refuse(im, node, "its %lld constant indices into %lld rows are too many",
			      (long long)count, (long long)height);
		return VALUE_NONE;
	}
	ones = arena_try_array(im->numbers, (size_t)picks.count, sizeof(*ones), NULL);
	for (int64_t i = 0; ones && i < count; i++)
		ones[i * height + rows[i]] = 1;
	if (ones == NULL) {
		import_refuse(im, node, "there is not enough memory for its indices");
		return VALUE_NONE;
	}
	picks.floats = ones;
	inputs[0] = import_parameter(im, node, &picks, NULL, VALUE_STATE, "picks");
	return inputs[0] == VALUE_NONE ? VALUE_NONE
				       : import_append(im, node, OP_MATMUL, inputs, 2, NULL);
}

/* Rows of a trained table by constant indices: consecutive rows are a Slice, as positions are. An
 * index that is the same for a whole axis is read once, and the row is broadcast. */
void import_constant_rows(struct importer *im, const struct file_node *node)
{
	struct constant rows = *import_constant(im, node, 1);
	int table = import_parameter(im, node, import_constant(im, node, 0), NULL, VALUE_PARAMETER,
				     "table");
	struct onnx_range range = {.step = 1};
	struct shape shape, matrix = {.rank = 2};
	int64_t height, *normal;
	bool consecutive = true;

	if (table == VALUE_NONE)
		return;
	import_drop_repeats(im, &rows, false);
	height = import_shape(im, table)->dims[0];
	normal = arena_array(&im->arena, (size_t)rows.count, sizeof(*normal));
	for (int64_t i = 0; i < rows.count; i++) {
		normal[i] = rows.ints[i] < 0 ? rows.ints[i] + height : rows.ints[i];
		if (normal[i] < 0 || normal[i] >= height) {
			import_refuse(im, node, "index %lld is outside its table of %lld rows",
				      (long long)rows.ints[i], (long long)height);
			return;
		}
		consecutive &= normal[i] == normal[0] + i;
	}
	shape = rows_shape(&rows.shape, import_shape(im, table));
	if (consecutive) {
		range.start = normal[0];
		range.count = rows.count;
		table = import_range(im, node, table, &range);
	} else {
		matrix.dims[0] = height;
		matrix.dims[1] = shape_elements(import_shape(im, table)) / height;
		table = import_reshaped(im, node, table, &matrix);
		if (table != VALUE_NONE)
			table = append_picks(im, node, table, normal, rows.count);
	}
	if (table != VALUE_NONE)
		import_set(im, node, 0, import_reshaped(im, node, table, &shape));
}

void import_embedding(struct importer *im, const struct file_node *node,
		      const struct constant *table, int indices, const struct shape *shape)
{
	struct attributes attributes = {.axis = onnx_int(node->proto, "axis", 0)};
	int inputs[2] = {VALUE_NONE, indices};
	struct shape rows;
	int y;

	inputs[0] = import_parameter(im, node, table, NULL, VALUE_PARAMETER, "table");
	if (inputs[0] == VALUE_NONE)
		return;
	rows = rows_shape(shape, &table->shape);
	y = import_append(im, node, OP_GATHER, inputs, 2, &attributes);
	if (y != VALUE_NONE)
		import_set(im, node, 0, import_reshaped(im, node, y, &rows));
}

/* Gather of one element of an activation becomes a Slice, and a Reshape that removes the dimension.
 */
void import_gather(struct importer *im, const struct file_node *node)
{
	const struct constant *index;
	struct onnx_range range = {.step = 1, .count = 1};
	struct error why = ERROR_INIT;
	struct shape shape;
	int x;

	if (import_constant(im, node, 0) && !import_constant(im, node, 1)) {
		import_refuse(im, node, "its indices are computed from real numbers");
		return;
	}
	if (!import_need_value(im, node, 0, 0, &x) || !import_need_constant(im, node, 1, &index))
		return;
	shape = *import_shape(im, x);
	if (onnx_axis(onnx_int(node->proto, "axis", 0), shape.rank, &range.axis, &why) !=
	    PRONY_OK) {
		import_refuse(im, node, "%s", why.text);
		return;
	}
	if (index->is_float || index->count != 1 || index->shape.rank > 1) {
		import_refuse(im, node, "only a single constant index is supported");
		return;
	}
	range.start = index->ints[0] < 0 ? index->ints[0] + shape.dims[range.axis] : index->ints[0];
	if (range.start < 0 || range.start >= shape.dims[range.axis]) {
		import_refuse(im, node, "index %lld is outside the axis, which has %lld elements",
			      (long long)index->ints[0], (long long)shape.dims[range.axis]);
		return;
	}
	x = import_range(im, node, x, &range);
	if (index->shape.rank == 0) {
		for (int i = range.axis; i + 1 < shape.rank; i++)
			shape.dims[i] = shape.dims[i + 1];
		shape.rank--;
	} else {
		shape.dims[range.axis] = 1;
	}
	if (x != VALUE_NONE)
		x = import_reshaped(im, node, x, &shape);
	import_set(im, node, 0, x);
}
