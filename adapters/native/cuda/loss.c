/* The losses, with prony's kernels. */
#include "adapters/native/cuda/cuda.h"

/* Parts whose sums are added in a second kernel. */
enum { SQUARES_PARTS_MAX = 1024, SQUARES_PER_PART = 2048 };

/* Appends the sum of `count` parts of the loss; labels: those that count, or OPERAND_NONE. */
static void sum_loss(struct lowering *l, const char *name, int parts, int64_t count, int labels)
{
	struct work *work = cuda_blocks(l, name, "sum", "sum_loss", DTYPE_COUNT, 1, 256);

	cuda_operand(l, work, l->loss);
	cuda_operand(l, work, parts);
	cuda_long(l, work, count);
	cuda_operand(l, work, labels);
}

/* Loss and gradient, one row of logits a block. */
enum prony_status cuda_cross_entropy(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	int labels = l->values[node->inputs[1]].operand;
	int gradient = lower_loss_gradient(l, n), logits, dlogits, parts;
	struct layout rows;
	struct work *work;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &logits, err);

	if (status != PRONY_OK)
		return status;
	rows = layout_row_major(lower_layout(l, logits)->type, shape->rank, shape->dims);
	status = lower_as(l, logits, &rows, node->name, &logits, err);
	if (status == PRONY_OK)
		status = program_operand(l->program, &rows, REGION_PLANNED, &dlogits, err);
	if (status != PRONY_OK)
		return status;
	parts = program_bytes(l->program, (size_t)shape->dims[0] * sizeof(double));
	work = cuda_blocks(l, node->name, "", "cross_entropy", rows.type, shape->dims[0],
			   cuda_threads(shape->dims[1]));
	cuda_operand(l, work, dlogits);
	cuda_operand(l, work, parts);
	cuda_operand(l, work, logits);
	cuda_operand(l, work, labels);
	cuda_operand(l, work, cuda_loss_scale(l));
	cuda_long(l, work, shape->dims[0]);
	cuda_int(l, work, (int)shape->dims[1]);
	sum_loss(l, node->name, parts, shape->dims[0], labels);
	if (gradient != VALUE_NONE)
		l->values[gradient].operand = dlogits;
	return PRONY_OK;
}

enum prony_status cuda_half_squares(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int x = l->values[node->inputs[0]].operand, parts;
	int64_t elements = (int64_t)layout_elements(lower_layout(l, x));
	int64_t count = elements / SQUARES_PER_PART + 1;
	struct work *work;

	(void)err;
	if (count > SQUARES_PARTS_MAX)
		count = SQUARES_PARTS_MAX;
	parts = program_bytes(l->program, (size_t)count * sizeof(double));
	work = cuda_blocks(l, node->name, "", "half_squares", lower_layout(l, x)->type, count, 256);
	cuda_operand(l, work, parts);
	cuda_operand(l, work, x);
	cuda_long(l, work, elements);
	cuda_int(l, work, (int)count);
	sum_loss(l, node->name, parts, count, OPERAND_NONE);
	return PRONY_OK;
}
