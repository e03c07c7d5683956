/* Response normalisation. The library has fast code for one window size and one beta only, and its
 * gradient is wrong at 32 channels. */
#include "adapters/native/cpu/kernels/lrn.h"

#include "adapters/native/cpu/cpu.h"

struct share {
	const struct lrn *lrn;
	void *out;
	float *scratch;
	const void *x, *dy;
	const struct program *program;
};

/* Each thread of the team has its own part of the scratch memory. */
static float *own_scratch(const struct share *share)
{
	const struct onednn *dnn = &share->program->device->dnn;
	size_t member = dnn->team_run && dnn->team_member ? (size_t)dnn->team_member() : 0;

	return share->scratch + member * lrn_scratch_floats(share->lrn);
}

static void share_forward(void *data, size_t first, size_t end)
{
	const struct share *share = data;

	lrn_forward(share->lrn, share->out, share->x, own_scratch(share), first, end);
}

static void share_backward(void *data, size_t first, size_t end)
{
	const struct share *share = data;

	lrn_backward(share->lrn, share->out, share->x, share->dy, own_scratch(share), first, end);
}

static void run_forward(struct program *program, const struct command *command)
{
	const struct lrn *lrn = command->work->detail;
	struct share share = {.lrn = lrn,
			      .out = cpu_data(program, command, 0),
			      .scratch = cpu_data(program, command, 1),
			      .x = cpu_data(program, command, 2),
			      .program = program};

	onednn_split(&program->device->dnn, cpu_threads(program, command->work->elements),
		     command->work->elements / (size_t)lrn->channels, share_forward, &share);
}

static void run_backward(struct program *program, const struct command *command)
{
	const struct lrn *lrn = command->work->detail;
	struct share share = {.lrn = lrn,
			      .out = cpu_data(program, command, 0),
			      .scratch = cpu_data(program, command, 1),
			      .x = cpu_data(program, command, 2),
			      .dy = cpu_data(program, command, 3),
			      .program = program};

	onednn_split(&program->device->dnn, cpu_threads(program, command->work->elements),
		     command->work->elements / (size_t)lrn->channels, share_backward, &share);
}

/* Describes the channels in a layout whose positions have one stride; false for others. */
static bool describe(const struct layout *layout, struct lrn *out)
{
	const int64_t *strides = layout->strides;
	int rank = layout->rank;

	if (layout->blob ? layout->block == 0 : strides[1] != 1)
		return false;
	out->channels = layout->dims[1];
	out->block = layout->blob ? layout->block : layout->dims[1];
	out->block_stride = layout->blob ? strides[1] : 0;
	out->sample_stride = strides[0];
	out->position_stride = strides[rank - 1];
	out->positions = 1;
	for (int i = rank - 1; i >= 2; i--) {
		if (strides[i] != out->position_stride * out->positions)
			return false;
		out->positions *= layout->dims[i];
	}
	return rank >= 3;
}

/* The input in a layout that describe() supports: its present one, or channels last. */
static enum prony_status find_source(struct lowering *l, int n, struct lrn *lrn, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	int *x = &l->nodes[n].src;
	struct layout last;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, x, err);

	if (status != PRONY_OK || describe(lower_layout(l, *x), lrn))
		return status;
	last = layout_channels_last(lower_layout(l, *x)->type, shape->rank, shape->dims);
	status = lower_as(l, *x, &last, node->name, x, err);
	if (status == PRONY_OK && !describe(lower_layout(l, *x), lrn))
		return error_set(err, PRONY_UNSUPPORTED, "LRN '%s' has an input of unknown layout",
				 node->name);
	return status;
}

static struct lrn *attributes(struct lowering *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct lrn *lrn = arena_alloc(&l->program->arena, sizeof(*lrn));
	int64_t channels = l->graph->values[node->inputs[0]].shape.dims[1];
	/* A window has no more channels than the input. */
	int64_t before = (a->size - 1) / 2, after = a->size - 1 - before;

	*lrn = (struct lrn){.before = before < channels ? before : channels,
			    .after = after < channels ? after : channels,
			    .scale = (float)(a->alpha / (double)a->size),
			    .bias = (float)a->bias,
			    .beta = (float)a->beta,
			    .loops = lrn_pick(instruction_set_best())};
	return lrn;
}

/* Makes a lasting operand, because the zeros around the arrays must persist. */
static enum prony_status make_scratch(struct lowering *l, const struct lrn *lrn, int *out,
				      struct error *err)
{
	int64_t floats = (int64_t)lrn_scratch_floats(lrn) * cpu_onednn(l)->threads;
	struct layout array = layout_row_major(DTYPE_F32, 1, &floats);

	return program_operand(l->program, &array, REGION_LASTING, out, err);
}

enum prony_status cpu_lrn(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct lrn *lrn = attributes(l, node);
	struct work *work;
	enum prony_status status = find_source(l, n, lrn, err);

	lrn->bf16 = status == PRONY_OK && lower_layout(l, state->src)->type == DTYPE_BF16;
	if (status == PRONY_OK)
		status = make_scratch(l, lrn, &state->side, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	work = cpu_kernel(l, node->name, "forward", run_forward,
			  (const int[]){state->dst, state->side, state->src}, 3);
	work->detail = state->work->detail = lrn;
	work->elements = (size_t)shape_elements(&l->graph->values[node->inputs[0]].shape);
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

enum prony_status cpu_lrn_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *state = &l->nodes[node->differentiates];
	struct work *work;
	int dy, dx;
	enum prony_status status = lower_unary_grad(l, n, state->src, &dy, &dx, err);

	if (status != PRONY_OK)
		return status;
	work = cpu_kernel(l, node->name, "", run_backward,
			  (const int[]){dx, state->side, state->src, dy}, 4);
	work->detail = state->work->detail;
	work->elements = (size_t)shape_elements(&l->graph->values[node->outputs[0]].shape);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
