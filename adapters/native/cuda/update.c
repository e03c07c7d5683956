/* The update of all parameters, and the loss scale of fp16. Parameters are contiguous, as are their
 * gradients and the optimiser's values, so the update is one pass at the end of the step. Padding
 * in between is zero and stays zero. */
#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

enum { GRADIENT_PARTS_MAX = 1024, GRADIENTS_PER_PART = 4096 };

/* A half sum of squares has the outputs themselves as gradient, which need no scale. */
static bool scales_loss(const struct lowering *l)
{
	const struct graph *graph = l->graph;

	return l->training && l->data == DTYPE_F16 &&
	       graph->nodes[graph->values[graph->loss].producer].op == OP_SOFTMAX_CROSS_ENTROPY;
}

/* An operand of the device's memory; if that is impossible, finish fails. */
static int region_operand(struct lowering *l, const struct layout *layout, enum region region)
{
	struct device *device = l->program->device;
	int operand = OPERAND_NONE;
	enum prony_status status =
		program_operand(l->program, layout, region, &operand, &device->failure);

	if (status != PRONY_OK)
		device->failed = status;
	return operand;
}

int cuda_loss_scale(struct lowering *l)
{
	const int64_t words = sizeof(struct loss_scale) / sizeof(int);
	struct layout layout = layout_row_major(DTYPE_I32, 1, &words);
	int *made = &l->program->device->loss_scale;

	if (*made == 0 && scales_loss(l))
		*made = region_operand(l, &layout, REGION_LASTING) + 1;
	return *made - 1;
}

/* All numbers of a region that has the places of the parameters. */
static int whole_region(struct lowering *l, enum region region)
{
	int64_t count = (int64_t)(l->program->parameter_bytes / sizeof(float));
	struct layout layout = layout_row_major(DTYPE_F32, 1, &count);

	return region_operand(l, &layout, region);
}

/* The copies of all parameters in the type of activations. */
static int all_copies(struct lowering *l)
{
	int64_t count = (int64_t)(l->program->parameter_bytes / sizeof(float));
	struct layout layout = layout_row_major(l->data, 1, &count);

	return region_operand(l, &layout, REGION_COPY);
}

static int64_t parts_of(int64_t n)
{
	int64_t parts = n / GRADIENTS_PER_PART + 1;

	return parts < GRADIENT_PARTS_MAX ? parts : GRADIENT_PARTS_MAX;
}

/* Appends the search for inf and NaN in all gradients, which decides on the update and the next
 * scale. */
static void step_scale(struct lowering *l, int scale, int gradients, int64_t n)
{
	int64_t parts = parts_of(n);
	struct work *work;
	int found;

	found = program_bytes(l->program, (size_t)parts * sizeof(int));
	work = cuda_blocks(l, "all gradients", "overflow", "find_overflow", DTYPE_COUNT, parts,
			   256);
	cuda_operand(l, work, found);
	cuda_operand(l, work, gradients);
	cuda_long(l, work, n);
	cuda_int(l, work, (int)parts);
	work = cuda_blocks(l, "loss scale", "", "step_loss_scale", DTYPE_COUNT, 1, 256);
	cuda_operand(l, work, scale);
	cuda_operand(l, work, found);
	cuda_int(l, work, (int)parts);
}

/* Appends the norm of all gradients, and what the update multiplies them by so that it is at most
 * clip_norm. Returns the operand of that number. */
static int clip_factor(struct lowering *l, int scale, int gradients, int64_t n)
{
	int64_t parts = parts_of(n);
	int sums = program_bytes(l->program, (size_t)parts * sizeof(float));
	int clip = program_bytes(l->program, sizeof(float));
	struct work *work =
		cuda_blocks(l, "all gradients", "squares", "square_parts", DTYPE_COUNT, parts, 256);

	cuda_operand(l, work, sums);
	cuda_operand(l, work, gradients);
	cuda_operand(l, work, scale);
	cuda_long(l, work, n);
	cuda_int(l, work, (int)parts);
	work = cuda_blocks(l, "all gradients", "norm", "clip_factor", DTYPE_COUNT, 1, 256);
	cuda_operand(l, work, clip);
	cuda_operand(l, work, sums);
	cuda_int(l, work, (int)parts);
	cuda_float(l, work, l->recipe->clip_norm);
	return clip;
}

/* Appends the count of AdamW's updates. A captured graph repeats its arguments, so the number is in
 * the device's memory. */
static int adam_step(struct lowering *l, int scale)
{
	const int64_t words = sizeof(struct adam_step) / sizeof(int);
	struct layout layout = layout_row_major(DTYPE_I32, 1, &words);
	int step = region_operand(l, &layout, REGION_LASTING);
	struct work *work = cuda_kernel(l, "step", "number", "advance_adamw", DTYPE_COUNT, 1);

	cuda_operand(l, work, step);
	cuda_operand(l, work, scale);
	cuda_struct(l, work, &l->recipe->beta1, sizeof(double));
	cuda_struct(l, work, &l->recipe->beta2, sizeof(double));
	return step;
}

void cuda_update(struct lowering *l)
{
	static const char *const kernels[] = {
		[OPTIMISER_SGD] = "update_sgd",
		[OPTIMISER_MOMENTUM] = "update_momentum",
		[OPTIMISER_RMSPROP] = "update_rmsprop",
		[OPTIMISER_ADAMW] = "update_adamw",
	};
	const struct recipe *recipe = l->recipe;
	const struct cuda_update_rule rule = {
		.learning_rate = (float)recipe->learning_rate,
		.momentum = (float)recipe->momentum,
		.weight_decay = (float)recipe->weight_decay,
		.rho = (float)recipe->rho,
		.epsilon = (float)recipe->epsilon,
		.beta1 = (float)recipe->beta1,
		.beta2 = (float)recipe->beta2,
		.rest1 = (float)(1 - recipe->beta1),
		.rest2 = (float)(1 - recipe->beta2),
	};
	bool adamw = recipe->optimiser == OPTIMISER_ADAMW;
	int64_t n = (int64_t)(l->program->parameter_bytes / sizeof(float));
	int scale = cuda_loss_scale(l), gradients = whole_region(l, REGION_GRADIENT);
	int step = OPERAND_NONE, clip = OPERAND_NONE;
	struct work *work;

	if (scale != OPERAND_NONE)
		step_scale(l, scale, gradients, n);
	if (recipe->clip_norm > 0)
		clip = clip_factor(l, scale, gradients, n);
	if (adamw)
		step = adam_step(l, scale);
	work = cuda_kernel(l, "all parameters", "update", kernels[recipe->optimiser], l->data,
			   n / 4);
	cuda_operand(l, work, whole_region(l, REGION_PARAMETER));
	cuda_operand(l, work,
		     recipe->optimiser == OPTIMISER_SGD ? OPERAND_NONE
							: whole_region(l, REGION_STATE));
	cuda_operand(l, work, l->data == DTYPE_F32 ? OPERAND_NONE : all_copies(l));
	cuda_operand(l, work, gradients);
	cuda_operand(l, work, scale);
	cuda_operand(l, work, clip);
	if (adamw)
		cuda_operand(l, work, step);
	cuda_long(l, work, n);
	if (adamw)
		cuda_long(l, work, (int64_t)(lower_decayed_first(l) / sizeof(float)));
	cuda_struct(l, work, &rule, sizeof(rule));
}

void cuda_unscale(struct lowering *l)
{
	int64_t n = (int64_t)(l->program->parameter_bytes / sizeof(float));
	struct work *work;

	if (cuda_loss_scale(l) == OPERAND_NONE)
		return;
	work = cuda_kernel(l, "all gradients", "unscale", "unscale", DTYPE_COUNT, n / 4);
	cuda_operand(l, work, whole_region(l, REGION_GRADIENT));
	cuda_operand(l, work, cuda_loss_scale(l));
	cuda_long(l, work, n);
}
