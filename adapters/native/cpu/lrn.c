#include "adapters/native/cpu/kernels/lrn.h"
#include "adapters/native/lower/lower_internal.h"

/*
 * Response normalisation. The library has fast code for one window size and one beta only, and its
 * gradient is wrong at 32 channels.
 */

struct share {
	const struct lrn *lrn;
	void *out;
	float *scratch;
	const void *x, *dy;
	const struct program *program;
};

/* Each member of the team has its own part of the scratch memory. */
static float *own_scratch(const struct share *share)
{
	const struct onednn *dnn = share->program->dnn;
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
	const struct lrn *lrn = command->detail;
	struct share share = {.lrn = lrn,
			      .out = lower_data(program, command, 0),
			      .scratch = lower_data(program, command, 1),
			      .x = lower_data(program, command, 2),
			      .program = program};

	onednn_split(program->dnn, lower_threads(program, command->elements),
		     command->elements / (size_t)lrn->channels, share_forward, &share);
}

static void run_backward(struct program *program, const struct command *command)
{
	const struct lrn *lrn = command->detail;
	struct share share = {.lrn = lrn,
			      .out = lower_data(program, command, 0),
			      .scratch = lower_data(program, command, 1),
			      .x = lower_data(program, command, 2),
			      .dy = lower_data(program, command, 3),
			      .program = program};

	onednn_split(program->dnn, lower_threads(program, command->elements),
		     command->elements / (size_t)lrn->channels, share_backward, &share);
}

/* How channels lie in a layout whose positions can be counted with one stride; false for others. */
static bool describe(const struct lowering *l, const_dnnl_memory_desc_t desc, struct lrn *out)
{
	const struct onednn *dnn = l->dnn;
	const dnnl_dims_t *strides = NULL, *blocks = NULL, *which = NULL;
	const int64_t *dims = lower_dims(l, desc);
	int rank = lower_rank(l, desc), block_count = 0;

	dnn->memory_desc_query(desc, dnnl_query_inner_nblks_s32, &block_count);
	dnn->memory_desc_query(desc, dnnl_query_strides, &strides);
	dnn->memory_desc_query(desc, dnnl_query_inner_blks, &blocks);
	dnn->memory_desc_query(desc, dnnl_query_inner_idxs, &which);
	if (block_count > 1 || (block_count == 1 && (*which)[0] != 1))
		return false;
	out->channels = dims[1];
	out->block = block_count == 1 ? (*blocks)[0] : dims[1];
	out->block_stride = block_count == 1 ? (*strides)[1] : 0;
	if (block_count == 0 && (*strides)[1] != 1)
		return false;
	out->sample_stride = (*strides)[0];
	out->position_stride = (*strides)[rank - 1];
	out->positions = 1;
	for (int i = rank - 1; i >= 2; i--) {
		if ((*strides)[i] != out->position_stride * out->positions)
			return false;
		out->positions *= dims[i];
	}
	return rank >= 3;
}

/* The input in a layout that describe() knows: as it is, or channels last. */
static enum prony_status find_source(struct lowering *l, int n, struct lrn *lrn, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	int *x = &l->nodes[n].src, rank = shape->rank;
	dnnl_memory_desc_t last = NULL;
	dnnl_dims_t dims, strides;
	int64_t stride;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, x, err);

	if (status != PRONY_OK || describe(l, l->program->operands[*x].desc, lrn))
		return status;
	for (int i = 0; i < rank; i++)
		dims[i] = shape->dims[i];
	strides[1] = 1;
	stride = dims[1];
	for (int i = rank - 1; i >= 2; i--) {
		strides[i] = stride;
		stride *= dims[i];
	}
	strides[0] = stride;
	status = onednn_check(l->dnn->memory_desc_create_with_strides(&last, rank, dims,
								      lower_type(l, *x), strides),
			      "memory descriptor", node->name, err);
	if (status != PRONY_OK)
		return status;
	status = lower_as(l, *x, last, node->name, x, err);
	l->dnn->memory_desc_destroy(last);
	if (status == PRONY_OK && !describe(l, l->program->operands[*x].desc, lrn))
		return error_set(err, PRONY_UNSUPPORTED, "LRN '%s': its input's layout",
				 node->name);
	return status;
}

static struct lrn *attributes(struct lowering *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct lrn *lrn = arena_alloc(&l->program->arena, sizeof(*lrn));
	int64_t channels = l->graph->values[node->inputs[0]].shape.dims[1];
	/* A window that is wider than there are channels is as wide as that. */
	int64_t before = (a->size - 1) / 2, after = a->size - 1 - before;

	*lrn = (struct lrn){.before = before < channels ? before : channels,
			    .after = after < channels ? after : channels,
			    .scale = (float)(a->alpha / (double)a->size),
			    .bias = (float)a->bias,
			    .beta = (float)a->beta,
			    .loops = lrn_pick(instruction_set_best())};
	return lrn;
}

/* Lasting, so that the zeros around the arrays stay. */
static enum prony_status make_scratch(struct lowering *l, const struct lrn *lrn, int *out,
				      struct error *err)
{
	int64_t floats = (int64_t)lrn_scratch_floats(lrn) * l->dnn->threads;
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status = lower_plain(l, dnnl_f32, 1, &floats, &plain, err);

	if (status != PRONY_OK)
		return status;
	status = program_operand(l->program, plain, REGION_LASTING, out, err);
	l->dnn->memory_desc_destroy(plain);
	return status;
}

enum prony_status lower_lrn(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct lrn *lrn = attributes(l, node);
	struct command *command;
	enum prony_status status = find_source(l, n, lrn, err);

	lrn->bf16 = status == PRONY_OK && lower_type(l, state->src) == dnnl_bf16;
	if (status == PRONY_OK)
		status = make_scratch(l, lrn, &state->side, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	command = lower_command(l, node->name, "forward", run_forward,
				(const int[]){state->dst, state->side, state->src}, 3);
	command->detail = state->detail = lrn;
	command->elements = (size_t)shape_elements(&l->graph->values[node->inputs[0]].shape);
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

enum prony_status lower_lrn_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *state = &l->nodes[node->differentiates];
	struct command *command;
	int dy, dx;
	enum prony_status status = lower_unary_grad(l, n, state->src, &dy, &dx, err);

	if (status != PRONY_OK)
		return status;
	command = lower_command(l, node->name, "", run_backward,
				(const int[]){dx, state->side, state->src, dy}, 4);
	command->detail = state->detail;
	command->elements = (size_t)shape_elements(&l->graph->values[node->outputs[0]].shape);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
