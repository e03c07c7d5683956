/* The update of all parameters. They are contiguous, as are their gradients and the optimiser's
 * values, so the update is one pass at the end of the step. Padding in between is zero and stays
 * zero. */
#include "adapters/native/cpu/cpu.h"

#include <math.h>

#include "adapters/native/mpi.h"

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

static void share_squares(void *data, size_t first, size_t end)
{
	const struct program *program = data;
	struct device *device = program->device;
	const float *g = (const float *)(void *)program->gradients;
	size_t elements = program->parameter_bytes / sizeof(float);
	size_t length = (elements + CPU_NORM_PARTS - 1) / CPU_NORM_PARTS;

	for (size_t part = first; part < end; part++) {
		size_t from = part * length, left = from < elements ? elements - from : 0;

		device->squares[part] =
			device->kernels->half_squares(g + from, left < length ? left : length);
	}
}

/* Sets the factor of all gradients. The sum has the same order on any number of threads. */
static void clip(struct program *program)
{
	const double epsilon = 1e-6; /* as in torch.nn.utils.clip_grad_norm_ */
	struct device *device = program->device;
	double sum = 0;

	onednn_parallel(&device->dnn,
			cpu_threads(program, program->parameter_bytes / sizeof(float)),
			CPU_NORM_PARTS, share_squares, program);
	for (int i = 0; i < CPU_NORM_PARTS; i++)
		sum += device->squares[i];
	double norm = device->mean * sqrt(2 * sum);

	device->rule.clip = (float)(device->mean * fmin(1, device->clip_norm / (norm + epsilon)));
}

static void run_sum(struct program *program, const struct command *command)
{
	mpi_sum(program->mpi, (float *)(void *)program->gradients, command->work->elements);
}

static void run_update(struct program *program, const struct command *command)
{
	size_t elements = command->work->elements;
	struct device *device = program->device;
	bool adamw = device->update == device->kernels->adamw;

	if (device->clip_norm > 0)
		clip(program);
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
	const struct mpi *mpi = l->program->mpi;
	struct work *work;

	if (mpi)
		cpu_kernel(l, "all gradients", "sum", run_sum, NULL, 0)->elements = elements;
	work = cpu_kernel(l, "all parameters", "update", run_update, NULL, 0);
	/* The update makes the sum of ranks a mean. */
	device->mean = mpi ? 1.0 / mpi->ranks : 1;
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
		.clip = (float)device->mean,
	};
	device->clip_norm = l->recipe->clip_norm;
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
