/* Dropout. No mask is stored: the gradient draws the same one. */
#include "adapters/native/dropout.h"

#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

/* The number of steps begun, in the device's memory, as a captured graph repeats its arguments. The
 * first command that needs it in a step advances it. */
int cuda_step_number(struct lowering *l)
{
	struct device *device = l->program->device;
	const int64_t words = sizeof(uint64_t) / sizeof(int32_t);
	struct layout layout = layout_row_major(DTYPE_I32, 1, &words);
	int operand = OPERAND_NONE;
	enum prony_status status;

	if (device->step_number != 0)
		return device->step_number - 1;
	status = program_operand(l->program, &layout, REGION_LASTING, &operand, &device->failure);
	if (status != PRONY_OK)
		device->failed = status;
	device->step_number = operand + 1;
	cuda_operand(l, cuda_kernel(l, "step", "number", "advance_step", DTYPE_COUNT, 1), operand);
	return operand;
}

/* Appends y = x with the mask of forward node `node`. */
static void append(struct lowering *l, int n, const char *what, int y, int x, int node)
{
	const struct layout *layout = lower_layout(l, x);
	double ratio = l->graph->nodes[node].attributes.ratio;
	struct dropout_draw draw = dropout_draw_make(0, 0, 0, ratio);
	const struct cuda_dropout dropout = {.seed = (int64_t)l->program->seed,
					     .node = node,
					     .threshold = draw.threshold,
					     .scale = draw.scale};
	int64_t elements = (int64_t)layout_elements(layout);
	int step = cuda_step_number(l);
	struct work *work = cuda_kernel(l, l->graph->nodes[n].name, what, "dropout", layout->type,
					cuda_packs(layout->type, elements));

	cuda_operand(l, work, y);
	cuda_operand(l, work, x);
	cuda_operand(l, work, step);
	cuda_long(l, work, elements);
	cuda_struct(l, work, &dropout, sizeof(dropout));
}

enum prony_status cuda_dropout(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int x = l->values[node->inputs[0]].operand, y;
	enum prony_status status = lower_result(l, n, node->inputs[0], x, &y, err);

	if (status != PRONY_OK)
		return status;
	append(l, n, "forward", y, x, n);
	l->values[node->outputs[0]].operand = l->nodes[n].dst = y;
	return PRONY_OK;
}

/* The mask is by places in the layout of the forward's output. */
enum prony_status cuda_dropout_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int dy, dx;
	enum prony_status status =
		lower_as(l, l->values[node->inputs[0]].operand,
			 lower_layout(l, l->nodes[node->differentiates].dst), node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], dy, &dx, err);
	if (status != PRONY_OK)
		return status;
	append(l, n, "", dx, dy, node->differentiates);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
