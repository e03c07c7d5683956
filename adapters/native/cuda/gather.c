/* Gather: selects rows of a table; its gradient sums the rows' gradients. TensorScatter: writes
 * rows into a cache that lasts from step to step, in place. */
#include "adapters/native/cuda/walk.h"

/* Rows, and numbers in a row. */
static void append_sizes(struct lowering *l, struct work *work, int64_t count, int64_t width)
{
	cuda_int(l, work, (int)count);
	cuda_int(l, work, (int)width);
}

enum prony_status cuda_gather(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	const struct shape *table_shape = &l->graph->values[node->inputs[0]].shape;
	struct layout rows = layout_row_major(DTYPE_F32, table_shape->rank, table_shape->dims);
	int64_t width = shape_elements(table_shape) / table_shape->dims[0];
	struct work *work;
	int table, y;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &table, err);

	if (status == PRONY_OK)
		status = lower_as(l, table, &rows, node->name, &table, err);
	if (status == PRONY_OK)
		status = lower_new(l, l->data, shape->rank, shape->dims, &y, err);
	if (status == PRONY_OK)
		status = walk_check(node, lower_layout(l, y), err);
	if (status != PRONY_OK)
		return status;
	work = cuda_kernel(l, node->name, "forward", "gather", l->data, shape_elements(shape));
	cuda_operand(l, work, y);
	cuda_operand(l, work, table);
	cuda_operand(l, work, l->values[node->inputs[1]].operand);
	append_sizes(l, work, shape_elements(shape) / width, width);
	l->values[node->outputs[0]].operand = l->nodes[n].dst = y;
	return PRONY_OK;
}

/* Appends the sums; dtable is row-major. */
static void append_grad(struct lowering *l, int n, int dtable, int dy, int64_t width)
{
	const struct node *node = &l->graph->nodes[n];
	int indices = l->values[node->inputs[1]].operand;
	int64_t elements = (int64_t)layout_elements(lower_layout(l, dy)), count = elements / width;
	int links = program_bytes(l->program, (size_t)count * sizeof(int));
	struct work *work = cuda_kernel(l, node->name, "links", "gather_links", DTYPE_COUNT, count);

	cuda_operand(l, work, links);
	cuda_operand(l, work, indices);
	cuda_int(l, work, (int)count);
	cuda_fill(l, node->name, dtable, 0);
	work = cuda_kernel(l, node->name, "", "gather_grad", lower_layout(l, dy)->type, elements);
	cuda_operand(l, work, dtable);
	cuda_operand(l, work, dy);
	cuda_operand(l, work, indices);
	cuda_operand(l, work, links);
	append_sizes(l, work, count, width);
}

enum prony_status cuda_gather_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int value = l->graph->nodes[node->differentiates].inputs[0], dy, dtable;
	const struct shape *table = &l->graph->values[value].shape;
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	const struct parameter *parameter = lower_find_parameter(l, value);
	struct layout rows;
	enum prony_status status;

	dy = l->values[node->inputs[0]].operand;
	rows = layout_row_major(lower_layout(l, dy)->type, shape->rank, shape->dims);
	status = lower_as(l, dy, &rows, node->name, &dy, err);
	if (status != PRONY_OK)
		return status;
	/* If this is the parameter's only gradient, it is written directly to the parameter's
	 * gradient. */
	if (parameter && l->graph->values[value].gradient == node->outputs[0])
		dtable = parameter->gradient;
	else
		status = lower_new(l, DTYPE_F32, table->rank, table->dims, &dtable, err);
	if (status != PRONY_OK)
		return status;
	append_grad(l, n, dtable, dy, shape_elements(table) / table->dims[0]);
	l->values[node->outputs[0]].operand = dtable;
	return PRONY_OK;
}

enum prony_status cuda_scatter(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *past = &l->graph->values[node->inputs[0]].shape;
	const struct shape *update = &l->graph->values[node->inputs[1]].shape;
	int axis = (int)node->attributes.axis, cache, rows;
	struct cache_shape s = {.outer = 1,
				.size = (int)update->dims[axis],
				.places = (int)past->dims[axis],
				.width = 1};
	struct layout dense;
	struct work *work;
	enum prony_status status = lower_data_operand(l, node->inputs[0], &cache, err);

	if (status == PRONY_OK)
		status = lower_value(l, node->inputs[1], node->name, &rows, err);
	if (status != PRONY_OK)
		return status;
	dense = layout_row_major(lower_layout(l, rows)->type, update->rank, update->dims);
	status = walk_check(node, &dense, err);
	if (status == PRONY_OK)
		status = lower_as(l, rows, &dense, node->name, &rows, err);
	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < axis; i++)
		s.outer *= (int)past->dims[i];
	for (int i = axis + 1; i < past->rank; i++)
		s.width *= (int)past->dims[i];
	s.blocks_of_sample = s.outer / (int)past->dims[0];
	work = cuda_kernel(l, node->name, "forward", "scatter", dense.type, shape_elements(update));
	cuda_operand(l, work, cache);
	cuda_operand(l, work, rows);
	cuda_operand(l, work,
		     node->input_count > 2 ? l->values[node->inputs[2]].operand : OPERAND_NONE);
	cuda_struct(l, work, &s, sizeof(s));
	l->values[node->outputs[0]].operand = cache;
	return PRONY_OK;
}
