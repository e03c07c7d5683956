/* Batch normalisation, its running statistics and its gradient. In training a Relu behind it is
 * part of both; the gradient computes its input's sign again instead of reading a mask. */
#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

enum {
	THREADS = 256,
	LANES = 8,		       /* packs of channels: 128 bytes of a row */
	BLOCKS_PER_MULTIPROCESSOR = 4, /* of a reduction */
	UNITS_PER_THREAD = 4,	       /* of a reduction, at least */
	THREADS_PER_MULTIPROCESSOR = 2048
};

/* Divides the work of reductions (tiles, lanes, chunks) and of element-wise kernels (groups); the
 * members before are set. */
static void divide(const struct lowering *l, struct norm_arguments *a, int pack)
{
	int multiprocessors = l->program->device->multiprocessors;
	int64_t columns = (int64_t)a->channels * a->inner, packs = (a->channels + pack - 1) / pack;
	int64_t units = a->inner == 1 ? a->rows : a->rows * (a->inner / pack), most;

	a->packed = pack > 1;
	a->lanes = 1;
	while (a->inner == 1 && a->lanes < (a->packed ? LANES : 4 * LANES) && a->lanes < packs)
		a->lanes *= 2;
	a->tiles = a->inner == 1 ? (int)((packs + a->lanes - 1) / a->lanes) : a->channels;
	most = (units * a->lanes + THREADS * UNITS_PER_THREAD - 1) / (THREADS * UNITS_PER_THREAD);
	a->chunks = (multiprocessors * BLOCKS_PER_MULTIPROCESSOR + a->tiles - 1) / a->tiles;
	if (a->chunks > most)
		a->chunks = (int)most;
	a->groups = (int64_t)multiprocessors * THREADS_PER_MULTIPROCESSOR * pack / columns;
	if (a->groups < 1)
		a->groups = 1;
	if (a->groups > a->rows)
		a->groups = a->rows;
}

void cuda_norm_rows(const struct lowering *l, int operand, int64_t columns, double epsilon,
		    struct norm_arguments *out)
{
	*out = (struct norm_arguments){.rows = (int64_t)layout_elements(lower_layout(l, operand)) /
					       columns,
				       .channels = (int)columns,
				       .inner = 1,
				       .epsilon = (float)epsilon};
	divide(l, out, cuda_pack(l, operand, columns));
}

/* x as rows of channels * inner elements. */
static struct norm_arguments *describe(struct lowering *l, int n, bool relu)
{
	const struct attributes *given = &l->graph->nodes[n].attributes;
	const struct layout *x = lower_layout(l, l->nodes[n].src);
	struct norm_arguments *a = arena_alloc(&l->program->arena, sizeof(*a));

	*a = (struct norm_arguments){.channels = (int)x->dims[1],
				     .inner = 1,
				     .relu = relu,
				     .epsilon = (float)given->epsilon,
				     .momentum = (float)given->momentum};
	for (int i = 2; i < x->rank && x->strides[1] != 1; i++)
		a->inner *= (int)x->dims[i];
	a->rows = (int64_t)layout_elements(x) / ((int64_t)a->channels * a->inner);
	divide(l, a, cuda_pack(l, l->nodes[n].src, a->inner == 1 ? a->channels : a->inner));
	return a;
}

/* Operands of mean and variance: in training those of the batch, else the running ones. */
static enum prony_status statistics(struct lowering *l, const struct node *node, int running[2],
				    int out[2], struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int k = 0; status == PRONY_OK && k < 2; k++) {
		status = lower_data_operand(l, node->inputs[3 + k], &running[k], err);
		out[k] = running[k];
		if (status == PRONY_OK && l->training)
			status = program_operand(l->program, lower_layout(l, running[k]),
						 REGION_PLANNED, &out[k], err);
		if (node->output_count > 1 + k && node->outputs[1 + k] != VALUE_NONE)
			l->values[node->outputs[1 + k]].operand = out[k];
	}
	return status;
}

/* What each chunk leaves for the second stage of a reduction, `numbers` for each channel, and one
 * more for each channel. */
static int partial_of(struct lowering *l, const struct norm_arguments *a, int numbers)
{
	return program_bytes(l->program, ((size_t)a->chunks * (size_t)numbers + 1) *
						 (size_t)a->channels * sizeof(float));
}

/* Appends the first stage of a reduction, or the second (`type` DTYPE_COUNT). */
static struct work *reduction(struct lowering *l, const char *name, const char *what,
			      const char *kernel, enum dtype type, const struct norm_arguments *a)
{
	int64_t blocks = (int64_t)a->tiles * a->chunks;

	if (type == DTYPE_COUNT)
		blocks = (a->channels + NORM_FINISH_CHANNELS - 1) / NORM_FINISH_CHANNELS;
	return cuda_blocks(l, name, what, kernel, type, blocks, THREADS);
}

static void operands(struct lowering *l, struct work *w, const int *list, int count)
{
	for (int i = 0; i < count; i++)
		cuda_operand(l, w, list[i]);
}

void cuda_norm_parameter_grad(struct lowering *l, const char *name, const char *kernel,
			      const int *in, int count, int variance, const int gradients[2],
			      const struct norm_arguments *a)
{
	int partial = partial_of(l, a, 2);
	struct work *w = reduction(l, name, "sums", kernel, lower_layout(l, in[0])->type, a);

	cuda_operand(l, w, partial);
	operands(l, w, in, count);
	cuda_struct(l, w, a, sizeof(*a));
	w = reduction(l, name, "scale gradient", "norm_parameter_grad", DTYPE_COUNT, a);
	operands(l, w, (const int[]){gradients[0], gradients[1], partial, variance}, 4);
	cuda_struct(l, w, a, sizeof(*a));
}

static struct work *each_element(struct lowering *l, const char *name, const char *what,
				 const char *kernel, int x, const struct norm_arguments *a)
{
	int64_t columns = (int64_t)a->channels * a->inner;
	enum dtype type = lower_layout(l, x)->type;

	if (a->packed)
		columns /= PACK_BYTES / (int)dtype_bytes(type);
	return cuda_kernel(l, name, what, kernel, type, a->groups * columns);
}

static void append_statistics(struct lowering *l, const struct node *node, int x,
			      const int running[2], const int moments[2],
			      const struct norm_arguments *a)
{
	int partial = partial_of(l, a, 3);
	struct work *w =
		reduction(l, node->name, "moments", "norm_moments", lower_layout(l, x)->type, a);

	operands(l, w, (const int[]){partial, x}, 2);
	cuda_struct(l, w, a, sizeof(*a));
	w = reduction(l, node->name, "statistics", "norm_statistics", DTYPE_COUNT, a);
	operands(l, w, (const int[]){moments[0], moments[1], running[0], running[1], partial}, 5);
	cuda_struct(l, w, a, sizeof(*a));
}

/* Returns the Add at the end of a residual block: the only reader of node n's result. Its other
 * term, *other, must be computed already, in the same layout, and readable in packs. -1: there is
 * none. */
static int residual_of(const struct lowering *l, int n, int *other)
{
	int y = l->graph->nodes[n].outputs[0], add = l->values[y].reader, value;
	const struct node *sum = &l->graph->nodes[add < 0 ? n : add];

	if (l->values[y].uses != 1 || y == l->graph->logits || sum->op != OP_ADD)
		return -1;
	value = sum->inputs[sum->inputs[0] == y];
	*other = l->values[value].operand;
	return *other != OPERAND_NONE && cuda_pack(l, *other, 0) > 1 &&
			       lower_same(l, lower_layout(l, *other),
					  lower_layout(l, l->nodes[n].src))
		       ? add
		       : -1;
}

/* Returns the gradient of `relu`, the last node of a residual block, if the next node is the
 * gradient of normalisation n and reads its result. The latter then computes both. -1: there is
 * none. */
static int residual_gradient(const struct lowering *l, int n, int relu)
{
	int found = -1;

	for (int i = l->graph->forward_count; i < l->graph->node_count; i++) {
		const struct node *node = &l->graph->nodes[i];

		if (!l->nodes[i].needed)
			continue;
		if (found >= 0)
			return node->op == OP_BATCH_NORM_GRAD && node->differentiates == n &&
					       node->inputs[0] == l->graph->nodes[found].outputs[0]
				       ? found
				       : -1;
		if (node->op == OP_RELU_GRAD && node->differentiates == relu)
			found = i;
	}
	return -1;
}

/* Returns the Add whose result only `mask`, the gradient of a Relu, reads. It exists where another
 * residual block follows this one: the gradient of z is then a sum. -1: there is none. */
static int gradient_sum(const struct lowering *l, int mask)
{
	int dz = l->graph->nodes[mask].inputs[0], add = l->graph->values[dz].producer;
	const struct node *sum = &l->graph->nodes[add < 0 ? mask : add];

	if (add < l->graph->forward_count || sum->op != OP_ADD || l->values[dz].uses != 1)
		return -1;
	for (int i = add + 1; i < mask; i++) {
		if (l->nodes[i].needed)
			return -1;
	}
	for (int k = 0; k < 2; k++) {
		if (!shape_equal(&l->graph->values[sum->inputs[k]].shape,
				 &l->graph->values[dz].shape))
			return -1;
	}
	return add;
}

/* Appends the result, and those of an Add and a Relu that nothing else reads. */
static void append_apply(struct lowering *l, int n, int relu, const int parameters[4],
			 const struct norm_arguments *given)
{
	struct node_state *state = &l->nodes[n];
	struct norm_arguments a = *given;
	int other = OPERAND_NONE, add = relu < 0 ? residual_of(l, n, &other) : -1;
	struct work *w =
		each_element(l, l->graph->nodes[n].name, "forward", "norm_apply", state->src, &a);

	if (add >= 0)
		relu = lower_fusable_relu(l, add);
	if (add >= 0 && relu >= 0)
		state->relu_gradient = residual_gradient(l, n, relu);
	if (add >= 0 && state->relu_gradient >= 0 && gradient_sum(l, state->relu_gradient) >= 0)
		l->nodes[gradient_sum(l, state->relu_gradient)].absorbed = true;
	a.relu = relu >= 0;
	operands(l, w, (const int[]){state->dst, state->src, add >= 0 ? other : OPERAND_NONE}, 3);
	operands(l, w, parameters, 4);
	cuda_struct(l, w, &a, sizeof(a));
	l->values[l->graph->nodes[n].outputs[0]].operand = state->dst;
	if (add >= 0)
		lower_absorb(l, add, state->dst);
	if (relu >= 0)
		lower_absorb(l, relu, state->dst);
}

enum prony_status cuda_batch_norm(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	int relu_gradient, relu = lower_norm_relu(l, n, &relu_gradient);
	int running[2], moments[2], scale, shift;
	const struct norm_arguments *a;
	enum prony_status status =
		cuda_activation(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK)
		status = statistics(l, node, running, moments, err);
	if (status == PRONY_OK)
		status = lower_data_operand(l, node->inputs[1], &scale, err);
	if (status == PRONY_OK)
		status = lower_data_operand(l, node->inputs[2], &shift, err);
	if (status == PRONY_OK)
		status = lower_result(l, n, node->inputs[0], state->src, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	state->work->detail = a = describe(l, n, relu >= 0);
	if (l->training)
		append_statistics(l, node, state->src, running, moments, a);
	state->relu_gradient = relu_gradient;
	append_apply(l, n, relu, (const int[]){moments[0], moments[1], scale, shift}, a);
	if (state->relu_gradient >= 0)
		l->nodes[state->relu_gradient].absorbed = true;
	return PRONY_OK;
}

/* Operands of a gradient. At the end of a residual block, dy is the gradient of max(0, z), or one
 * of its two terms; `more` is the other. `masked` is their sum where z > 0 and else 0: the gradient
 * of the normalisation's result, and of the other term of the Add.
 */
struct gradient {
	int dy, x, more, z, masked, mean, variance, scale, shift, dx, parameters[2];
};

static void append_gradient(struct lowering *l, const struct node *node, const struct gradient *g,
			    const struct norm_arguments *a)
{
	const int in[] = {g->dy,   g->x,	g->more,  g->z,	   g->masked,
			  g->mean, g->variance, g->scale, g->shift};
	struct work *w;

	cuda_norm_parameter_grad(l, node->name, "norm_sums", in, 9, g->variance, g->parameters, a);
	if (g->dx == OPERAND_NONE)
		return;
	w = each_element(l, node->name, "gradient", "norm_grad", g->x, a);
	operands(l, w, (const int[]){g->dx, g->z >= 0 ? g->masked : g->dy, g->x}, 3);
	operands(l, w, in + 5, 4);
	operands(l, w, g->parameters, 2);
	cuda_struct(l, w, a, sizeof(*a));
}

/* A gradient in the layout of operand x. */
static enum prony_status find_dy(struct lowering *l, int value, int x, const char *name, int *out,
				 struct error *err)
{
	enum prony_status status = lower_value(l, value, name, out, err);

	if (status == PRONY_OK)
		status = lower_as(l, *out, lower_layout(l, x), name, out, err);
	return status == PRONY_OK ? cuda_packed(l, name, out, err) : status;
}

/* The operands for the gradient of max(0, z), with one term or two, and for `masked`. */
static enum prony_status find_residual(struct lowering *l, int mask, const char *name,
				       struct gradient *g, struct error *err)
{
	const struct node *node = &l->graph->nodes[mask];
	int sum = gradient_sum(l, mask), reader = sum >= 0 ? sum : mask;
	const struct node *read = &l->graph->nodes[reader];
	enum prony_status status = find_dy(l, read->inputs[0], g->x, name, &g->dy, err);

	if (status == PRONY_OK && sum >= 0)
		status = find_dy(l, read->inputs[1], g->x, name, &g->more, err);
	if (status == PRONY_OK)
		status = lower_result(l, reader, read->inputs[0], g->dy, &g->masked, err);
	if (status != PRONY_OK)
		return status;
	g->z = l->values[node->inputs[1]].operand;
	l->values[node->outputs[0]].operand = g->masked;
	return PRONY_OK;
}

enum prony_status cuda_batch_norm_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	const struct node_state *state = &l->nodes[node->differentiates];
	const struct norm_arguments *a = state->work->detail;
	bool residual = state->relu_gradient >= 0 && !a->relu;
	int from = state->relu_gradient >= 0 && !residual
			   ? l->graph->nodes[state->relu_gradient].inputs[0]
			   : node->inputs[0];
	struct gradient g = {.x = state->src,
			     .more = OPERAND_NONE,
			     .z = OPERAND_NONE,
			     .masked = OPERAND_NONE,
			     .mean = l->values[forward->outputs[1]].operand,
			     .variance = l->values[forward->outputs[2]].operand,
			     .scale = l->values[forward->inputs[1]].operand,
			     .shift = l->values[forward->inputs[2]].operand,
			     .dx = OPERAND_NONE};
	enum prony_status status =
		residual ? find_residual(l, state->relu_gradient, node->name, &g, err)
			 : find_dy(l, from, g.x, node->name, &g.dy, err);

	if (status == PRONY_OK && node->outputs[0] != VALUE_NONE)
		status = lower_result(l, n, from, residual ? g.masked : g.dy, &g.dx, err);
	for (int k = 0; status == PRONY_OK && k < 2; k++)
		status = lower_channel_gradient(l, node, 1 + k, forward->inputs[1 + k],
						&g.parameters[k], err);
	if (status != PRONY_OK)
		return status;
	append_gradient(l, forward, &g, a);
	if (g.dx != OPERAND_NONE)
		l->values[node->outputs[0]].operand = g.dx;
	return PRONY_OK;
}
