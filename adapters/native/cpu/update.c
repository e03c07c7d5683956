/* The update of all parameters. They are contiguous, as are their gradients and the optimiser's
 * values, so the update is one pass at the end of the step. Padding in between is zero and stays
 * zero. */
#include "adapters/native/cpu/cpu.h"

static void share_update(void *data, size_t first, size_t end)
{
	const struct program *program = data;
	const struct device *device = program->device;
	float *w = (float *)(void *)program->parameters, *v = (float *)(void *)program->state;
	const float *g = (const float *)(void *)program->gradients;

	device->update(w + first, v ? v + first : NULL, g + first, &device->rule, end - first);
}

static void run_update(struct program *program, const struct command *command)
{
	size_t elements = command->work->elements;

	onednn_parallel(&program->device->dnn, cpu_threads(program, elements), elements,
			share_update, program);
}

void cpu_update(struct lowering *l)
{
	struct device *device = l->program->device;
	struct work *work = cpu_kernel(l, "all parameters", "update", run_update, NULL, 0);

	device->rule = (struct update_rule){
		.learning_rate = (float)l->recipe->learning_rate,
		.momentum = (float)l->recipe->momentum,
		.weight_decay = (float)l->recipe->weight_decay,
		.rho = (float)l->recipe->rho,
		.epsilon = (float)l->recipe->epsilon,
	};
	device->update = l->recipe->optimiser == OPTIMISER_MOMENTUM  ? device->kernels->momentum
			 : l->recipe->optimiser == OPTIMISER_RMSPROP ? device->kernels->rmsprop
								     : device->kernels->sgd;
	work->elements = l->program->parameter_bytes / sizeof(float);
}
