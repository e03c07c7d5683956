/* Convolutions, also transposed ones: cuDNN's plans, and prony's kernels for the bias where cuDNN
 * has none. */
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cuda/conv_plan.h"
#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"
#include "adapters/probe.h"
#include "base/memory.h"

/* Every thread of the first sums of a bias's gradient has at least so many terms, and a channel at
 * most so many parts. */
enum { PART_TERMS = 64, PARTS_MAX = 256 };

/* New plans are written after so many, in case the process is stopped. */
enum { PLANS_AT_RISK = 16 };

/* Plans of a device: made once, and used by every command with the same problem. */
struct conv_plans {
	struct conv_planner planner;
	struct planned **all; /* owned */
	size_t count, capacity;
};
struct planned {
	struct conv_problem problem;
	struct cudnn_plan plan;
};

bool cuda_conv_measures(void)
{
	return strcmp(probe_environment("PRONY_CUDA_MEASURE", "1"), "0") != 0;
}

static struct conv_plans *plans_of(struct device *device)
{
	if (!device->convolutions) {
		struct conv_plans *plans = memory_alloc(sizeof(*plans));

		*plans = (struct conv_plans){
			.planner = {.cudnn = &device->dnn,
				    .handle = device->dnn_handle,
				    .cache = plan_cache_open(&device->dnn, device->name,
							     device->capability),
				    .context = device}};
		if (cuda_conv_measures())
			plans->planner.measure = cuda_conv_measure;
		device->convolutions = plans;
	}
	return device->convolutions;
}

void cuda_conv_close(struct device *device)
{
	struct conv_plans *plans = device->convolutions;

	if (!plans)
		return;
	for (size_t i = 0; i < plans->count; i++) {
		cudnn_plan_release(&device->dnn, &plans->all[i]->plan);
		free(plans->all[i]);
	}
	plan_cache_close(plans->planner.cache);
	free(plans->all);
	free(plans);
	device->convolutions = NULL;
}

void cuda_conv_keep(struct device *device)
{
	if (device->convolutions)
		plan_cache_write(device->convolutions->planner.cache);
}

static enum prony_status plan_of(struct lowering *l, const char *name,
				 const struct conv_problem *problem, const struct planned **out,
				 struct error *err)
{
	struct conv_plans *plans = plans_of(l->program->device);
	struct planned *made;
	enum prony_status status;

	for (size_t i = 0; i < plans->count; i++) {
		*out = plans->all[i];
		if (memcmp(problem, &plans->all[i]->problem, sizeof(*problem)) == 0)
			return PRONY_OK;
	}
	made = memory_alloc(sizeof(*made));
	memcpy(&made->problem, problem, sizeof(*problem));
	status = conv_plan_make(&plans->planner, problem, name, &made->plan, err);
	if (status != PRONY_OK) {
		free(made);
		return status;
	}
	plans->all = memory_grow(plans->all, plans->count, &plans->capacity, sizeof(made));
	plans->all[plans->count++] = made;
	if (plans->count % PLANS_AT_RISK == 0)
		plan_cache_write(plans->planner.cache);
	*out = made;
	return PRONY_OK;
}

static enum prony_status run(struct program *program, const struct command *command,
			     struct error *err)
{
	const struct planned *planned = command->work->detail;
	struct conv_data data = {
		.x = cuda_data(program, command, 0),
		.w = cuda_data(program, command, 1),
		.y = cuda_data(program, command, 2),
		.z = cuda_data(program, command, 3),
		.bias = cuda_data(program, command, 4),
		.workspace = cuda_workspace_data(program, command, 5),
	};

	return conv_plan_run(&program->device->dnn, program->device->dnn_handle, &planned->problem,
			     &planned->plan, &data, command->name, err);
}

/* kind: what it is to the layer. z: what is added, or OPERAND_NONE. */
static void append(struct lowering *l, const char *name, enum conv_kind kind,
		   const struct planned *planned, int x, int w, int y, int z, int bias)
{
	struct work *work = cuda_call(l, name, conv_kind_word(kind), run, planned);
	int64_t bytes = planned->plan.workspace;

	cuda_operand(l, work, x);
	cuda_operand(l, work, w);
	cuda_operand(l, work, y);
	cuda_operand(l, work, z);
	cuda_operand(l, work, bias);
	cuda_operand(l, work, bytes > 0 ? cuda_workspace(l, (size_t)bytes) : OPERAND_NONE);
}

/* The forward pass of a ConvTranspose is the gradient of a convolution, and its gradient of x a
 * convolution: the two change places. */
static bool is_transposed(const struct lowering *l, int n)
{
	return l->graph->nodes[n].op == OP_CONV_TRANSPOSE;
}

static struct conv_problem problem_of(const struct lowering *l, int n, enum conv_kind kind)
{
	return conv_problem_of(l->graph, n, kind, l->data,
			       l->program->device->precision == PRECISION_FP32);
}

/* The operand, or a copy of it if it is a view that does not begin at a multiple of what cuDNN was
 * told (PLAN_ALIGNMENT). */
static enum prony_status aligned(struct lowering *l, int operand, const char *name, int *out,
				 struct error *err)
{
	*out = operand;
	return program_shift(l->program, operand) % PLAN_ALIGNMENT == 0
		       ? PRONY_OK
		       : lower_part(l, operand, lower_layout(l, operand), name, out, err);
}

static struct layout weights_layout(const struct lowering *l, int n, enum dtype type)
{
	const struct shape *w = &l->graph->values[l->graph->nodes[n].inputs[1]].shape;

	return cuda_image(l, type, 4, w->dims);
}

/* Declares the weights and the bias; their operands are of the type of activations. */
static enum prony_status parameters(struct lowering *l, int n, const struct chain *chain,
				    int *weights, int *bias, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct layout master = weights_layout(l, n, DTYPE_F32);
	struct layout outside = layout_row_major(DTYPE_F32, 4, master.dims);
	struct layout read = weights_layout(l, n, l->data);
	enum prony_status status = lower_parameter(l, node->inputs[1], &master, &outside, err);

	if (status == PRONY_OK)
		status = lower_weights(l, node->inputs[1], &read, node->name, weights, err);
	if (status == PRONY_OK)
		status = lower_bias_as(l, n, chain, l->data, bias, err);
	return status;
}

/* Adds the bias, and max(0, y), in a kernel of its own. */
static void append_bias(struct lowering *l, const char *name, const struct conv_problem *problem,
			int y, int bias)
{
	const int64_t *dims = lower_layout(l, y)->dims;
	int64_t elements = dims[0] * dims[1] * dims[2] * dims[3];
	struct work *work = cuda_kernel(l, name, "bias", "channel_bias", problem->type, elements);

	cuda_operand(l, work, y);
	cuda_operand(l, work, bias);
	cuda_long(l, work, elements);
	cuda_int(l, work, (int)dims[1]);
	cuda_long(l, work, problem->channels_last ? 1 : dims[2] * dims[3]);
	cuda_int(l, work, problem->relu);
}

/* The nodes that cuDNN's engines compute too: a folded batch normalisation, a sum, then a ReLU. All
 * need a bias; a ReLU before the sum is another function. */
static struct chain chain_of(const struct lowering *l, int n, bool allow_sum)
{
	const struct node *node = &l->graph->nodes[n];
	struct chain chain = lower_chain(l, n, true, allow_sum);
	bool relu = false;

	for (int i = 0; i < chain.count; i++) {
		enum op op = l->graph->nodes[chain.nodes[i]].op;

		if (op == OP_ADD && relu)
			return chain_of(l, n, false);
		relu |= op == OP_RELU;
	}
	if (chain.batch_norm < 0 && (node->input_count < 3 || node->inputs[2] == VALUE_NONE)) {
		chain.count = 0;
		chain.sum = OPERAND_NONE;
	}
	return chain;
}

/* Plans the chain; if no engine has it, without the sum, and then the convolution alone: *fused is
 * false. */
static enum prony_status plan_forward(struct lowering *l, int n, struct chain *chain,
				      struct conv_problem *problem, const struct planned **out,
				      bool *fused, struct error *err)
{
	const char *name = l->graph->nodes[n].name;
	struct conv_problem plain = *problem;
	enum prony_status status;

	problem->sum = chain->sum != OPERAND_NONE;
	problem->relu = chain->count > (chain->batch_norm >= 0) + problem->sum;
	status = plan_of(l, name, problem, out, err);
	if (status == PRONY_UNSUPPORTED && problem->sum) {
		error_clear(err);
		*chain = chain_of(l, n, false);
		return plan_forward(l, n, chain, problem, out, fused, err);
	}
	*fused = status == PRONY_OK;
	if (status != PRONY_UNSUPPORTED || !problem->bias)
		return status;
	error_clear(err);
	plain.bias = plain.relu = false;
	return plan_of(l, name, &plain, out, err);
}

enum prony_status cuda_conv(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct conv_problem problem = problem_of(l, n, CONV_FORWARD);
	struct chain chain = chain_of(l, n, true);
	struct layout result = cuda_image(l, l->data, 4, problem.y);
	const struct planned *planned;
	bool fused = true;
	int weights, bias, z = OPERAND_NONE;
	enum prony_status status =
		cuda_activation(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK)
		status = aligned(l, state->src, node->name, &state->src, err);
	if (status == PRONY_OK)
		status = parameters(l, n, &chain, &weights, &bias, err);
	if (status != PRONY_OK)
		return status;
	problem.bias = bias != OPERAND_NONE;
	status = plan_forward(l, n, &chain, &problem, &planned, &fused, err);
	if (status == PRONY_OK && chain.sum != OPERAND_NONE)
		status = lower_as(l, chain.sum, &result, node->name, &z, err);
	if (status == PRONY_OK && chain.sum != OPERAND_NONE)
		status = aligned(l, z, node->name, &z, err);
	if (status == PRONY_OK)
		status = program_operand(l->program, &result, REGION_PLANNED, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	append(l, node->name, CONV_FORWARD, planned, state->src, weights, state->dst, z,
	       fused ? bias : OPERAND_NONE);
	if (!fused)
		append_bias(l, node->name, &problem, state->dst, bias);
	l->macs += problem.y[0] * problem.y[1] * problem.y[2] * problem.y[3] * problem.w[1] *
		   problem.w[2] * problem.w[3];
	l->values[node->outputs[0]].operand = state->dst;
	lower_chain_absorb(l, &chain, state->dst);
	return PRONY_OK;
}

enum prony_status cuda_conv_transpose(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct conv_problem problem = problem_of(l, n, CONV_GRAD_INPUT);
	const struct chain alone = {.batch_norm = -1, .sum = OPERAND_NONE};
	const struct planned *planned;
	int weights, bias;
	enum prony_status status =
		cuda_activation(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK)
		status = aligned(l, state->src, node->name, &state->src, err);
	if (status == PRONY_OK)
		status = parameters(l, n, &alone, &weights, &bias, err);
	if (status == PRONY_OK)
		status = plan_of(l, node->name, &problem, &planned, err);
	if (status == PRONY_OK)
		status = cuda_new_image(l, l->data, 4, problem.x, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	append(l, node->name, CONV_FORWARD, planned, state->dst, weights, state->src, OPERAND_NONE,
	       OPERAND_NONE);
	if (bias != OPERAND_NONE)
		append_bias(l, node->name, &problem, state->dst, bias);
	l->macs += operator_row(node->op)->macs(l->graph, node);
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

/* The gradient of the result in the layout and type of the forward pass; later readers find it so.
 */
static enum prony_status gradient_of_result(struct lowering *l, int value, int n, int *out,
					    struct error *err)
{
	struct layout wanted = *lower_layout(l, l->nodes[n].dst);
	enum prony_status status =
		lower_as(l, l->values[value].operand, &wanted, l->graph->nodes[n].name, out, err);

	if (status == PRONY_OK)
		status = aligned(l, *out, l->graph->nodes[n].name, out, err);
	if (status == PRONY_OK)
		l->values[value].operand = *out;
	return status;
}

enum prony_status cuda_conv_grad_input(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int of = node->differentiates, dy, weights, dx;
	const struct node *forward = &l->graph->nodes[of];
	bool transposed = is_transposed(l, of);
	struct conv_problem problem =
		problem_of(l, of, transposed ? CONV_FORWARD : CONV_GRAD_INPUT);
	struct layout read = weights_layout(l, of, l->data);
	const struct planned *planned;
	enum prony_status status = gradient_of_result(l, node->inputs[0], of, &dy, err);

	if (status == PRONY_OK)
		status = lower_weights(l, forward->inputs[1], &read, forward->name, &weights, err);
	if (status == PRONY_OK)
		status =
			cuda_new_image(l, l->data, 4, transposed ? problem.y : problem.x, &dx, err);
	if (status == PRONY_OK)
		status = plan_of(l, forward->name, &problem, &planned, err);
	if (status != PRONY_OK)
		return status;
	append(l, forward->name, CONV_GRAD_INPUT, planned, transposed ? dy : dx, weights,
	       transposed ? dx : dy, OPERAND_NONE, OPERAND_NONE);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}

/* The gradient of the bias: the sum over each channel, in two steps. */
static enum prony_status sum_channels(struct lowering *l, const char *name, int dy, int out,
				      struct error *err)
{
	const struct layout *layout = lower_layout(l, dy);
	const int64_t *dims = layout->dims;
	int64_t rows = dims[0] * dims[2] * dims[3], parts = rows / PART_TERMS;
	struct channel_rows a = {.rows = rows,
				 .places = dims[2] * dims[3],
				 .channels = (int)dims[1],
				 .parts = (int)(parts < 1	    ? 1
						: parts > PARTS_MAX ? PARTS_MAX
								    : parts),
				 .last = l->program->device->precision != PRECISION_FP32};
	int sums;
	enum prony_status status =
		lower_new(l, DTYPE_F32, 2, (const int64_t[]){a.channels, a.parts}, &sums, err);
	struct work *work;

	if (status != PRONY_OK)
		return status;
	work = cuda_kernel(l, name, "bias gradient", "channel_parts", layout->type,
			   (int64_t)a.channels * a.parts);
	cuda_operand(l, work, sums);
	cuda_operand(l, work, dy);
	cuda_struct(l, work, &a, sizeof(a));
	work = cuda_blocks(l, name, "bias gradient", "channel_sums", DTYPE_COUNT, a.channels,
			   cuda_threads(a.parts));
	cuda_operand(l, work, out);
	cuda_operand(l, work, sums);
	cuda_int(l, work, a.channels);
	cuda_int(l, work, a.parts);
	return PRONY_OK;
}

/* cuDNN gives gradients of 16-bit weights in 16 bits; those of the masters are fp32. */
enum prony_status cuda_conv_grad_weight(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int of = node->differentiates, dy;
	const struct node *forward = &l->graph->nodes[of];
	bool transposed = is_transposed(l, of);
	struct conv_problem problem = problem_of(l, of, CONV_GRAD_WEIGHT);
	int gradient = lower_find_parameter(l, forward->inputs[1])->gradient, dw = gradient;
	const struct planned *planned;
	enum prony_status status = gradient_of_result(l, node->inputs[1], of, &dy, err);

	if (status == PRONY_OK && l->data != DTYPE_F32)
		status = cuda_new_image(l, l->data, 4, problem.w, &dw, err);
	if (status == PRONY_OK)
		status = plan_of(l, forward->name, &problem, &planned, err);
	if (status != PRONY_OK)
		return status;
	append(l, forward->name, CONV_GRAD_WEIGHT, planned, transposed ? dy : l->nodes[of].src, dw,
	       transposed ? l->nodes[of].src : dy, OPERAND_NONE, OPERAND_NONE);
	if (dw != gradient)
		status = cuda_copy(l, dw, gradient, forward->name, "weight gradient", err);
	if (status != PRONY_OK || node->output_count < 2 || node->outputs[1] == VALUE_NONE)
		return status;
	return sum_channels(l, forward->name, dy,
			    lower_find_parameter(l, forward->inputs[2])->gradient, err);
}
