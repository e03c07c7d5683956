/* ReLU, dropout, their gradients, and losses, with prony's own loops. They work on memory in any
 * layout: padding is zero and stays zero, because each loop maps zeros to zero. */
#include "adapters/native/cpu/cpu.h"

#include <math.h>

/* Arguments of a loop, shared by its threads. Arrays are fp32 or bf16. */
struct loop {
	const struct kernels *kernels;
	bool bf16;
	unsigned char *out;
	const unsigned char *a, *b;
	uint8_t *mask;
	struct dropout_draw draw;
};

/* The number of bytes before element `i`. */
static size_t before(const struct loop *loop, size_t i)
{
	return i * (loop->bf16 ? sizeof(uint16_t) : sizeof(float));
}

static void share_relu(void *data, size_t first, size_t end)
{
	const struct loop *loop = data;
	size_t skip = before(loop, first);

	loop->kernels->relu[loop->bf16](loop->out + skip, loop->a + skip, end - first);
}

static void share_relu_grad(void *data, size_t first, size_t end)
{
	const struct loop *loop = data;
	size_t skip = before(loop, first);

	loop->kernels->relu_grad[loop->bf16](loop->out + skip, loop->a + skip, loop->b + skip,
					     end - first);
}

static void share_dropout(void *data, size_t first, size_t end)
{
	const struct loop *loop = data;
	size_t skip = before(loop, first);

	loop->kernels->dropout[loop->bf16](loop->out + skip, loop->mask + first, loop->a + skip,
					   &loop->draw, first, end - first);
}

static void share_dropout_grad(void *data, size_t first, size_t end)
{
	const struct loop *loop = data;
	size_t skip = before(loop, first);

	loop->kernels->dropout_grad[loop->bf16](loop->out + skip, loop->a + skip,
						loop->mask + first, loop->draw.scale, end - first);
}

/* Operands: the result, `a`, and `b` or the mask. */
static void run_loop(struct program *program, const struct command *command, struct loop loop,
		     void (*share)(void *data, size_t first, size_t end))
{
	size_t elements = command->work->elements;

	loop.kernels = program->device->kernels;
	loop.bf16 = command->work->bf16;
	loop.out = cpu_data(program, command, 0);
	loop.a = cpu_data(program, command, 1);
	loop.b = loop.mask = cpu_optional(program, command, 2);
	onednn_parallel(&program->device->dnn, cpu_threads(program, elements), elements, share,
			&loop);
}

static void run_relu(struct program *program, const struct command *command)
{
	run_loop(program, command, (struct loop){0}, share_relu);
}

static void run_relu_grad(struct program *program, const struct command *command)
{
	run_loop(program, command, (struct loop){0}, share_relu_grad);
}

static void run_dropout(struct program *program, const struct command *command)
{
	struct dropout_draw draw = dropout_draw_make(program->seed, program->step,
						     (uint64_t)command->node, command->work->ratio);

	run_loop(program, command, (struct loop){.draw = draw}, share_dropout);
}

static void run_dropout_grad(struct program *program, const struct command *command)
{
	struct dropout_draw draw = {.scale = (float)(1 / (1 - command->work->ratio))};

	run_loop(program, command, (struct loop){.draw = draw}, share_dropout_grad);
}

struct rows {
	const struct kernels *kernels;
	float *dlogits;
	const float *logits;
	const int32_t *labels;
	double *losses; /* of each row; their sum does not depend on the number of threads */
	float scale;
	size_t classes;
};

static void share_cross_entropy(void *data, size_t first, size_t end)
{
	const struct rows *r = data;

	for (size_t i = first; i < end; i++)
		r->losses[i] = r->kernels->cross_entropy(r->dlogits + i * r->classes,
							 r->logits + i * r->classes, r->labels + i,
							 r->scale, 1, r->classes);
}

/* Operands: logits, their gradient, the loss, labels, the losses of the rows. */
static void run_cross_entropy(struct program *program, const struct command *command)
{
	const int64_t *dims = program->operands[command->operands[0]].layout.dims;
	size_t count = (size_t)dims[0], valid = 0;
	struct rows rows = {.kernels = program->device->kernels,
			    .dlogits = cpu_data(program, command, 1),
			    .logits = cpu_data(program, command, 0),
			    .labels = cpu_data(program, command, 3),
			    .losses = cpu_data(program, command, 4),
			    .classes = (size_t)dims[1]};
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		valid += rows.labels[i] >= 0;
	rows.scale = 1.0f / (float)valid;
	onednn_split(&program->device->dnn, cpu_threads(program, command->work->elements), count,
		     share_cross_entropy, &rows);
	for (size_t i = 0; i < count; i++)
		sum += rows.losses[i];
	*(double *)cpu_data(program, command, 2) = sum / (double)valid;
}

enum prony_status cpu_relu(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int x = l->values[node->inputs[0]].operand, y;
	enum prony_status status = lower_result(l, n, node->inputs[0], x, &y, err);

	if (status != PRONY_OK)
		return status;
	cpu_kernel(l, node->name, "forward", run_relu, (const int[]){y, x}, 2);
	l->values[node->outputs[0]].operand = l->nodes[n].dst = y;
	return PRONY_OK;
}

enum prony_status cpu_relu_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int y = l->values[node->inputs[1]].operand, dy, dx;
	enum prony_status status;

	status = lower_as(l, l->values[node->inputs[0]].operand, lower_layout(l, y), node->name,
			  &dy, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], dy, &dx, err);
	if (status != PRONY_OK)
		return status;
	cpu_kernel(l, node->name, "", run_relu_grad, (const int[]){dx, dy, y}, 3);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}

/* The library has no such function. */
static void share_erf(void *data, size_t first, size_t end)
{
	const struct loop *loop = data;
	const float *x = (const float *)loop->a;
	float *y = (float *)loop->out;

	for (size_t i = first; i < end; i++)
		y[i] = erff(x[i]);
}

static void share_erf_grad(void *data, size_t first, size_t end)
{
	const struct loop *loop = data;
	const float *dy = (const float *)loop->a, *x = (const float *)loop->b;
	float *dx = (float *)loop->out;

	for (size_t i = first; i < end; i++)
		dx[i] = dy[i] * 1.128379167f * expf(-x[i] * x[i]); /* 2 / sqrt(pi) */
}

static void run_erf(struct program *program, const struct command *command)
{
	run_loop(program, command, (struct loop){0}, share_erf);
}

static void run_erf_grad(struct program *program, const struct command *command)
{
	run_loop(program, command, (struct loop){0}, share_erf_grad);
}

enum prony_status cpu_erf(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK)
		status = lower_typed(l, state->src, DTYPE_F32, node->name, &state->src, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	cpu_kernel(l, node->name, "forward", run_erf, (const int[]){state->dst, state->src}, 2);
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

void cpu_erf_grad(struct lowering *l, const char *name, int dx, int dy, int x)
{
	cpu_kernel(l, name, "", run_erf_grad, (const int[]){dx, dy, x}, 3);
}

enum prony_status cpu_dropout(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int x = l->values[node->inputs[0]].operand, y;
	size_t elements = layout_elements(lower_layout(l, x));
	struct work *work;
	enum prony_status status = lower_result(l, n, node->inputs[0], x, &y, err);

	if (status != PRONY_OK)
		return status;
	l->nodes[n].side = program_bytes(l->program, elements);
	l->nodes[n].dst = y;
	work = cpu_kernel(l, node->name, "forward", run_dropout,
			  (const int[]){y, x, l->nodes[n].side}, 3);
	work->ratio = node->attributes.ratio;
	l->values[node->outputs[0]].operand = y;
	return PRONY_OK;
}

enum prony_status cpu_dropout_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *forward = &l->nodes[node->differentiates];
	struct work *work;
	int dy, dx;
	/* The mask has the layout of the forward's output. */
	enum prony_status status = lower_as(l, l->values[node->inputs[0]].operand,
					    lower_layout(l, forward->dst), node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], dy, &dx, err);
	if (status != PRONY_OK)
		return status;
	work = cpu_kernel(l, node->name, "", run_dropout_grad, (const int[]){dx, dy, forward->side},
			  3);
	work->ratio = node->attributes.ratio;
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}

/* Loss and gradient in one pass over the logits. */
enum prony_status cpu_cross_entropy(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	struct layout rows = layout_row_major(DTYPE_F32, shape->rank, shape->dims);
	int gradient = lower_loss_gradient(l, n), logits, dlogits;
	enum prony_status status =
		lower_as(l, l->values[node->inputs[0]].operand, &rows, node->name, &logits, err);

	if (status == PRONY_OK)
		status = program_operand(l->program, &rows, REGION_PLANNED, &dlogits, err);
	if (status != PRONY_OK)
		return status;
	cpu_kernel(
		l, node->name, "", run_cross_entropy,
		(const int[]){logits, dlogits, l->loss, l->values[node->inputs[1]].operand,
			      program_bytes(l->program, (size_t)shape->dims[0] * sizeof(double))},
		5);
	if (gradient != VALUE_NONE)
		l->values[gradient].operand = dlogits;
	return PRONY_OK;
}

/* Operands: the array that is squared, the loss. */
static void run_half_squares(struct program *program, const struct command *command)
{
	*(double *)cpu_data(program, command, 1) = program->device->kernels->half_squares(
		cpu_data(program, command, 0), command->work->elements);
}

enum prony_status cpu_half_squares(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int x = l->values[node->inputs[0]].operand;
	enum prony_status status = lower_typed(l, x, DTYPE_F32, node->name, &x, err);

	if (status == PRONY_OK)
		cpu_kernel(l, node->name, "", run_half_squares, (const int[]){x, l->loss}, 2);
	return status;
}
