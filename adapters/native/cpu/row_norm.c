/* RMSNormalization, GroupNormalization and InstanceNormalization with prony's own loops, on
 * row-major arrays. */
#include "adapters/native/cpu/kernels/row_norm.h"

#include "adapters/native/cpu/cpu.h"

/* The arrays of a command. */
enum array { Y, X, SCALE, SHIFT, MOMENTS, DY, DX, DSCALE, DSHIFT, ARRAYS };

struct norm_work {
	struct row_norm norm; /* without arrays */
	const struct row_norm_loops *loops;
	int place[ARRAYS]; /* among the command's operands; -1: the command has none */
};

static void *array(const struct program *program, const struct command *command, enum array which)
{
	const struct norm_work *work = command->work->detail;

	return work->place[which] < 0 ? NULL : cpu_data(program, command, work->place[which]);
}

static struct row_norm norm_of(const struct program *program, const struct command *command)
{
	struct row_norm norm = ((const struct norm_work *)command->work->detail)->norm;

	norm.x = array(program, command, X);
	norm.y = array(program, command, Y);
	norm.dy = array(program, command, DY);
	norm.dx = array(program, command, DX);
	norm.scale = array(program, command, SCALE);
	norm.shift = array(program, command, SHIFT);
	norm.moments = array(program, command, MOMENTS);
	norm.dscale = array(program, command, DSCALE);
	norm.dshift = array(program, command, DSHIFT);
	return norm;
}

static const struct row_norm_loops *loops_of(const struct command *command)
{
	return ((const struct norm_work *)command->work->detail)->loops;
}

struct share {
	const struct row_norm *norm;
	void (*loop)(const struct row_norm *norm, size_t first, size_t end);
};

static void share_loop(void *data, size_t first, size_t end)
{
	const struct share *share = data;

	share->loop(share->norm, first, end);
}

static void run_forward(struct program *program, const struct command *command)
{
	struct row_norm norm = norm_of(program, command);
	struct share share = {&norm, loops_of(command)->forward};

	onednn_split(&program->device->dnn, cpu_threads(program, norm.rows * norm.length),
		     norm.rows, share_loop, &share);
}

static void run_gradient(struct program *program, const struct command *command)
{
	struct row_norm norm = norm_of(program, command);
	struct share share = {&norm, loops_of(command)->gradient};

	onednn_split(&program->device->dnn, cpu_threads(program, norm.rows * norm.length),
		     norm.rows, share_loop, &share);
}

static void run_sums(struct program *program, const struct command *command)
{
	struct row_norm norm = norm_of(program, command);
	struct share share = {&norm, loops_of(command)->sums};

	onednn_parallel(&program->device->dnn, cpu_threads(program, norm.rows * norm.length),
			row_norm_scales(&norm), share_loop, &share);
}

static struct row_norm shape_of(const struct lowering *l, const struct node *node)
{
	const struct shape *x = &l->graph->values[node->inputs[0]].shape;
	size_t scales = (size_t)shape_elements(&l->graph->values[node->inputs[1]].shape);
	size_t elements = (size_t)shape_elements(x);
	struct row_norm norm = {.centred = node->op != OP_RMS_NORM,
				.epsilon = (float)node->attributes.epsilon,
				.length = scales,
				.groups = 1,
				.inner = 1};

	if (node->op != OP_RMS_NORM) {
		norm.groups = node->op == OP_GROUP_NORM ? (size_t)node->attributes.group : scales;
		norm.inner = elements / ((size_t)x->dims[0] * scales);
		norm.length = scales / norm.groups * norm.inner;
	}
	norm.rows = elements / norm.length;
	return norm;
}

/* operands[a] is array a, or OPERAND_NONE. */
static void append(struct lowering *l, const struct node *node, const char *name, const char *what,
		   void (*kernel)(struct program *, const struct command *), const int *operands)
{
	struct norm_work *work = arena_alloc(&l->program->arena, sizeof(*work));
	int list[ARRAYS], count = 0;

	*work = (struct norm_work){.norm = shape_of(l, node), .loops = row_norm_pick()};
	work->norm.bf16 = lower_layout(l, operands[X])->type == DTYPE_BF16;
	for (int a = 0; a < ARRAYS; a++) {
		work->place[a] = operands[a] == OPERAND_NONE ? -1 : count;
		if (operands[a] != OPERAND_NONE)
			list[count++] = operands[a];
	}
	cpu_kernel(l, name, what, kernel, list, count)->detail = work;
}

enum prony_status cpu_row_norm(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	struct node_state *state = &l->nodes[n];
	int64_t moments = 2 * (int64_t)shape_of(l, node).rows;
	struct layout rows;
	int arrays[ARRAYS] = {[SHIFT] = OPERAND_NONE,
			      [DY] = OPERAND_NONE,
			      [DX] = OPERAND_NONE,
			      [DSCALE] = OPERAND_NONE,
			      [DSHIFT] = OPERAND_NONE};
	enum prony_status status =
		lower_activation(l, node->inputs[0], node->name, &state->src, err);

	if (status != PRONY_OK)
		return status;
	rows = layout_row_major(lower_layout(l, state->src)->type, shape->rank, shape->dims);
	status = lower_as(l, state->src, &rows, node->name, &state->src, err);
	if (status == PRONY_OK)
		status = lower_data_operand(l, node->inputs[1], &arrays[SCALE], err);
	if (status == PRONY_OK && node->input_count > 2)
		status = lower_data_operand(l, node->inputs[2], &arrays[SHIFT], err);
	state->side = OPERAND_NONE;
	if (status == PRONY_OK && l->training)
		status = lower_new(l, DTYPE_F32, 1, &moments, &state->side, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	arrays[Y] = state->dst;
	arrays[X] = state->src;
	arrays[MOMENTS] = state->side;
	append(l, node, node->name, "forward", run_forward, arrays);
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

/* The gradient of the input may overwrite dy, so that of the scale is computed first. */
enum prony_status cpu_row_norm_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	const struct node_state *state = &l->nodes[node->differentiates];
	int dy, dx, dscale, dshift = OPERAND_NONE;
	enum prony_status status = lower_unary_grad(l, n, state->src, &dy, &dx, err);

	if (status == PRONY_OK)
		status = lower_channel_gradient(l, node, 1, forward->inputs[1], &dscale, err);
	if (status == PRONY_OK && forward->input_count > 2)
		status = lower_channel_gradient(l, node, 2, forward->inputs[2], &dshift, err);
	if (status != PRONY_OK)
		return status;
	append(l, forward, forward->name, "gradients of scale and bias", run_sums,
	       (const int[ARRAYS]){OPERAND_NONE, state->src, OPERAND_NONE, OPERAND_NONE,
				   state->side, dy, OPERAND_NONE, dscale, dshift});
	if (node->outputs[0] == VALUE_NONE)
		return PRONY_OK;
	append(l, forward, forward->name, "gradient", run_gradient,
	       (const int[ARRAYS]){OPERAND_NONE, state->src, l->values[forward->inputs[1]].operand,
				   OPERAND_NONE, state->side, dy, dx, OPERAND_NONE, OPERAND_NONE});
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
