/* TensorScatter: writes rows into a cache that lasts from step to step, in place. */
#include "adapters/native/cpu/cpu.h"

#include <string.h>

/* Shared by threads: each writes the rows of some heads. */
struct cache {
	char *cache;
	const char *rows;
	const int32_t *index;		      /* of each sample; NULL: row 0 */
	size_t heads;			      /* of one sample */
	size_t cache_bytes, row_bytes, bytes; /* of a head, of a row, of the rows of a head */
};

static void share_cache(void *data, size_t first, size_t end)
{
	const struct cache *c = data;

	for (size_t i = first; i < end; i++) {
		size_t at = c->index ? (size_t)c->index[i / c->heads] : 0;

		memcpy(c->cache + i * c->cache_bytes + at * c->row_bytes, c->rows + i * c->bytes,
		       c->bytes);
	}
}

/* Operands: the cache, the rows, the index if there is one. The dimension where they differ in
 * length is the rows'; without a difference everything is written. */
static void run_cache(struct program *program, const struct command *command)
{
	const struct layout *whole = &program->operands[command->operands[0]].layout;
	const struct layout *rows = &program->operands[command->operands[1]].layout;
	int axis = 0;
	size_t outer = 1;

	while (axis < whole->rank - 1 && whole->dims[axis] == rows->dims[axis])
		outer *= (size_t)whole->dims[axis++];
	size_t row = layout_elements(whole) / outer / (size_t)whole->dims[axis] * sizeof(float);
	struct cache cache = {
		.cache = cpu_data(program, command, 0),
		.rows = cpu_data(program, command, 1),
		.index = command->operand_count > 2 ? cpu_data(program, command, 2) : NULL,
		.heads = outer / (size_t)whole->dims[0],
		.cache_bytes = (size_t)whole->dims[axis] * row,
		.row_bytes = row,
		.bytes = (size_t)rows->dims[axis] * row,
	};

	onednn_parallel(&program->device->dnn, cpu_threads(program, layout_elements(rows)), outer,
			share_cache, &cache);
}

enum prony_status cpu_cache(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->inputs[1]].shape;
	struct layout dense = layout_row_major(DTYPE_F32, shape->rank, shape->dims);
	int count = node->input_count, operands[3];
	enum prony_status status = lower_data_operand(l, node->inputs[0], &operands[0], err);

	if (status == PRONY_OK)
		status = lower_value(l, node->inputs[1], node->name, &operands[1], err);
	if (status == PRONY_OK)
		status = lower_typed(l, operands[1], DTYPE_F32, node->name, &operands[1], err);
	if (status == PRONY_OK)
		status = lower_as(l, operands[1], &dense, node->name, &operands[1], err);
	if (status != PRONY_OK)
		return status;
	if (count > 2)
		operands[2] = l->values[node->inputs[2]].operand;
	cpu_kernel(l, node->name, "forward", run_cache, operands, count);
	l->values[node->outputs[0]].operand = operands[0];
	return PRONY_OK;
}
