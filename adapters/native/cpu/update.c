/* The update of all parameters. They are contiguous, as are their gradients and the optimiser's
 * values, so the update is one pass at the end of the step. Padding in between is zero and stays
 * zero. */
#include "adapters/native/cpu/cpu.h"

#include <math.h>

static void share_update(void *data, size_t first, size_t end)
{
	const struct program *program = data;
	const struct device *device = program->device;
	float *w = (float *)(void *)program->parameters, *v = (float *)(void *)program->state;
	const float *g = (const float *)(void *)program->gradients;

	device->update(w + first, v ? v + first : NULL, g + first, &device->rule, end - first);
}

static void share_adamw(void *data, size_t first, size_t end)
{
	const struct program *program = data;
	const struct device *device = program->device;
	float *w = (float *)(void *)program->parameters, *v = (float *)(void *)program->state;
	const float *g = (const float *)(void *)program->gradients;
	size_t middle = device->decayed < first ? first
			: device->decayed < end ? device->decayed
						: end;
	struct update_rule plain = device->rule;

	device->update(w + first, v + first, g + first, &device->rule, middle - first);
	plain.weight_decay = 0;
	device->update(w + middle, v + middle, g + middle, &plain, end - middle);
}

static void run_update(struct program *program, const struct command *command)
{
	size_t elements = command->work->elements;
	struct device *device = program->device;
	bool adamw = device->update == device->kernels->adamw;

	if (adamw) {
		double updates = (double)++device->updates;

		device->rule.scale1 = (float)(1 / (1 - pow(device->betas[0], updates)));
		device->rule.scale2 = (float)(1 / (1 - pow(device->betas[1], updates)));
	}
	onednn_parallel(&device->dnn, cpu_threads(program, elements), elements,
			adamw ? share_adamw : share_update, program);
}

void cpu_update(struct lowering *l)
{
	struct device *device = l->program->device;
	size_t elements = l->program->parameter_bytes / sizeof(float);
	struct work *work = cpu_kernel(l, "all parameters", "update", run_update, NULL, 0);

	device->rule = (struct update_rule){
		.learning_rate = (float)l->recipe->learning_rate,
		.momentum = (float)l->recipe->momentum,
		.weight_decay = (float)l->recipe->weight_decay,
		.rho = (float)l->recipe->rho,
		.epsilon = (float)l->recipe->epsilon,
		.beta1 = (float)l->recipe->beta1,
		.beta2 = (float)l->recipe->beta2,
		.rest1 = (float)(1 - l->recipe->beta1),
		.rest2 = (float)(1 - l->recipe->beta2),
		.squares = elements,
	};
	device->betas[0] = l->recipe->beta1;
	device->betas[1] = l->recipe->beta2;
	if (l->recipe->optimiser == OPTIMISER_ADAMW)
		device->decayed = lower_decayed_first(l) / sizeof(float);
	device->update = l->recipe->optimiser == OPTIMISER_MOMENTUM  ? device->kernels->momentum
			 : l->recipe->optimiser == OPTIMISER_RMSPROP ? device->kernels->rmsprop
			 : l->recipe->optimiser == OPTIMISER_ADAMW   ? device->kernels->adamw
								     : device->kernels->sgd;
	work->elements = elements;
}
