/* Gather: selects rows of a table; its gradient sums the rows' gradients. */
#include "adapters/native/cpu/cpu.h"

#include <string.h>

/*
 * Arguments that threads share: `rows` rows of the table, `count` indices, `width` numbers per row.
 */
struct gather {
	float *out;
	const float *in;
	const int32_t *indices;
	size_t rows, count, width;
};

static struct gather gather_of(struct program *program, const struct command *command, int table)
{
	const struct layout *rows = &program->operands[command->operands[table]].layout;
	size_t count = layout_elements(&program->operands[command->operands[2]].layout);

	return (struct gather){.out = cpu_data(program, command, 0),
			       .in = cpu_data(program, command, 1),
			       .indices = cpu_data(program, command, 2),
			       .rows = (size_t)rows->dims[0],
			       .count = count,
			       .width = layout_elements(rows) / (size_t)rows->dims[0]};
}

/* Processes the indices from `first` to `end`. */
static void share_gather(void *data, size_t first, size_t end)
{
	const struct gather *g = data;

	for (size_t i = first; i < end; i++)
		memcpy(g->out + i * g->width, g->in + (size_t)g->indices[i] * g->width,
		       g->width * sizeof(float));
}

/*
 * Processes the columns from `first` to `end` of all rows: no two threads add to the same number.
 */
static void share_gather_grad(void *data, size_t first, size_t end)
{
	const struct gather *g = data;

	for (size_t row = 0; row < g->rows; row++)
		memset(g->out + row * g->width + first, 0, (end - first) * sizeof(float));
	for (size_t i = 0; i < g->count; i++) {
		float *restrict to = g->out + (size_t)g->indices[i] * g->width;
		const float *restrict from = g->in + i * g->width;

		for (size_t k = first; k < end; k++)
			to[k] += from[k];
	}
}

/* Operands: the result, the table, the indices. */
static void run_gather(struct program *program, const struct command *command)
{
	struct gather gather = gather_of(program, command, 1);

	onednn_parallel(&program->device->dnn, cpu_threads(program, command->work->elements),
			gather.count, share_gather, &gather);
}

/* Operands: the table's gradient, the result's gradient, the indices. */
static void run_gather_grad(struct program *program, const struct command *command)
{
	struct gather gather = gather_of(program, command, 0);

	onednn_parallel(&program->device->dnn, cpu_threads(program, command->work->elements),
			gather.width, share_gather_grad, &gather);
}

enum prony_status cpu_gather(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	const struct shape *table_shape = &l->graph->values[node->inputs[0]].shape;
	struct layout rows = layout_row_major(DTYPE_F32, table_shape->rank, table_shape->dims);
	int table, y;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &table, err);

	if (status == PRONY_OK)
		status = lower_as(l, table, &rows, node->name, &table, err);
	if (status == PRONY_OK)
		status = lower_new(l, DTYPE_F32, shape->rank, shape->dims, &y, err);
	if (status != PRONY_OK)
		return status;
	cpu_kernel(l, node->name, "forward", run_gather,
		   (const int[]){y, table, l->values[node->inputs[1]].operand}, 3);
	l->values[node->outputs[0]].operand = l->nodes[n].dst = y;
	return PRONY_OK;
}

enum prony_status cpu_gather_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int value = l->graph->nodes[node->differentiates].inputs[0], dy, dtable;
	const struct shape *table = &l->graph->values[value].shape;
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	struct layout rows = layout_row_major(DTYPE_F32, shape->rank, shape->dims);
	const struct parameter *parameter = lower_find_parameter(l, value);
	enum prony_status status =
		lower_as(l, l->values[node->inputs[0]].operand, &rows, node->name, &dy, err);

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
	cpu_kernel(l, node->name, "", run_gather_grad,
		   (const int[]){dtable, dy, l->values[node->inputs[1]].operand}, 3);
	l->values[node->outputs[0]].operand = dtable;
	return PRONY_OK;
}
