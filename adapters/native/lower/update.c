#include "adapters/native/lower/lower_internal.h"

/*
 * The update of all parameters: they lie side by side, as their gradients and the optimiser's
 * values do, so that it is one pass at the end of the step. Padding in between is zero and stays
 * zero.
 */

static void share_update(void *data, size_t first, size_t end)
{
	const struct program *program = data;
	float *w = (float *)(void *)program->parameters, *v = (float *)(void *)program->state;
	const float *g = (const float *)(void *)program->gradients;

	program->update(w + first, v ? v + first : NULL, g + first, &program->rule, end - first);
}

static void run_update(struct program *program, const struct command *command)
{
	onednn_parallel(program->dnn, lower_threads(program, command->elements), command->elements,
			share_update, program);
}

void lower_update(struct lowering *l)
{
	struct program *program = l->program;
	struct command *command = program_command(program, "all parameters", "update", 0);

	program->rule = (struct update_rule){
		.learning_rate = (float)l->recipe->learning_rate,
		.momentum = (float)l->recipe->momentum,
		.weight_decay = (float)l->recipe->weight_decay,
		.rho = (float)l->recipe->rho,
		.epsilon = (float)l->recipe->epsilon,
	};
	switch (l->recipe->optimiser) {
	case OPTIMISER_MOMENTUM:
		program->update = program->kernels->momentum;
		break;
	case OPTIMISER_RMSPROP:
		program->update = program->kernels->rmsprop;
		break;
	default:
		program->update = program->kernels->sgd;
	}
	command->kernel = run_update;
	command->elements = program->parameter_bytes / sizeof(float);
}
