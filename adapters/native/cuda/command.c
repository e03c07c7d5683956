/* Commands of a step: launches of prony's kernels and calls of libraries, all on one stream; and
 * their execution, one by one or captured as a CUDA graph. */
#include <stdio.h>
#include <string.h>

#include "adapters/native/cuda/cuda.h"

enum { BLOCKS_PER_MULTIPROCESSOR = 16, WORKSPACE_ALIGNMENT = 256 };

static struct work *add_command(struct lowering *l, const char *name, const char *what)
{
	struct command *command = program_command(l->program, name, what, CUDA_ARGUMENTS_MAX);

	command->work = arena_alloc(&l->program->arena, sizeof(*command->work));
	*command->work = (struct work){.command = l->program->command_count - 1};
	return command->work;
}

/* Keeps the first failure of planning for cuda_finish. */
static void fail(struct device *device, enum prony_status status)
{
	if (device->failed == PRONY_OK)
		device->failed = status;
}

enum prony_status cuda_find_kernel(const struct device *device, const char *kernel, enum dtype type,
				   struct CUfunc_st **out, struct error *err)
{
	static const char *const suffixes[DTYPE_COUNT] = {
		[DTYPE_F32] = "_f32", [DTYPE_F16] = "_f16", [DTYPE_BF16] = "_bf16"};
	int found = CUDA_ERROR_NOT_FOUND;
	char name[96];

	snprintf(name, sizeof(name), "%s%s", kernel,
		 type < DTYPE_COUNT && suffixes[type] ? suffixes[type] : "");
	for (int i = 0; i < device->module_count && found == CUDA_ERROR_NOT_FOUND; i++)
		found = device->driver.ModuleGetFunction(out, device->modules[i], name);
	return cuda_check(&device->driver, found, "search of the kernel", name, err);
}

unsigned cuda_grid(const struct device *device, int64_t threads)
{
	int64_t blocks = (threads + CUDA_THREADS - 1) / CUDA_THREADS,
		most = (int64_t)device->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;

	return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

struct work *cuda_blocks(struct lowering *l, const char *name, const char *what, const char *kernel,
			 enum dtype type, int64_t blocks, unsigned threads)
{
	struct device *device = l->program->device;
	struct work *work = add_command(l, name, what);

	fail(device, cuda_find_kernel(device, kernel, type, &work->function, &device->failure));
	work->threads = threads;
	work->blocks = cuda_grid(device, blocks * CUDA_THREADS);
	return work;
}

struct work *cuda_kernel(struct lowering *l, const char *name, const char *what, const char *kernel,
			 enum dtype type, int64_t elements)
{
	return cuda_blocks(l, name, what, kernel, type,
			   (elements + CUDA_THREADS - 1) / CUDA_THREADS, CUDA_THREADS);
}

struct work *cuda_call(struct lowering *l, const char *name, const char *what,
		       enum prony_status (*call)(struct program *program,
						 const struct command *command, struct error *err),
		       const void *detail)
{
	struct work *work = add_command(l, name, what);

	work->call = call;
	work->detail = detail;
	return work;
}

static struct cuda_argument *add_argument(struct lowering *l, struct work *work)
{
	if (work->argument_count == CUDA_ARGUMENTS_MAX) {
		fail(l->program->device,
		     error_set(&l->program->device->failure, PRONY_INTERNAL,
			       "'%s' has more than %d arguments",
			       l->program->commands[work->command].name, CUDA_ARGUMENTS_MAX));
		work->argument_count = 0;
	}
	return &work->arguments[work->argument_count++];
}

void cuda_operand(struct lowering *l, struct work *work, int operand)
{
	struct command *command = &l->program->commands[work->command];
	struct cuda_argument *argument = add_argument(l, work);

	*argument = (struct cuda_argument){
		.kind = operand == OPERAND_NONE ? CUDA_NULL : CUDA_OPERAND, .operand = operand};
	if (operand != OPERAND_NONE && command->operand_count < CUDA_ARGUMENTS_MAX)
		command->operands[command->operand_count++] = operand;
}

void cuda_struct(struct lowering *l, struct work *work, const void *value, size_t bytes)
{
	struct cuda_argument *argument = add_argument(l, work);

	*argument = (struct cuda_argument){.kind = CUDA_VALUE, .operand = OPERAND_NONE};
	argument->value = arena_alloc(&l->program->arena, bytes);
	memcpy(argument->value, value, bytes);
}

void cuda_long(struct lowering *l, struct work *work, int64_t value)
{
	long long number = value;

	cuda_struct(l, work, &number, sizeof(number));
}

void cuda_int(struct lowering *l, struct work *work, int value)
{
	cuda_struct(l, work, &value, sizeof(value));
}

void cuda_float(struct lowering *l, struct work *work, double value)
{
	float number = (float)value;

	cuda_struct(l, work, &number, sizeof(number));
}

void *cuda_data(const struct program *program, const struct command *command, int i)
{
	const struct cuda_argument *argument = &command->work->arguments[i];

	return argument->kind == CUDA_OPERAND ? program->operands[argument->operand].data : NULL;
}

int cuda_workspace(struct lowering *l, size_t bytes)
{
	return program_bytes(l->program, bytes + WORKSPACE_ALIGNMENT - 1);
}

void *cuda_workspace_data(const struct program *program, const struct command *command, int i)
{
	uintptr_t address = (uintptr_t)cuda_data(program, command, i);

	return (void *)((address + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT *
			WORKSPACE_ALIGNMENT);
}

/* Every member of the array points to the value of one parameter, as cuLaunchKernel wants it. */
static enum prony_status launch(const struct program *program, const struct command *command,
				struct error *err)
{
	const struct device *device = program->device;
	struct work *work = command->work;
	void *parameters[CUDA_ARGUMENTS_MAX], *addresses[CUDA_ARGUMENTS_MAX];

	for (int i = 0; i < work->argument_count; i++) {
		addresses[i] = cuda_data(program, command, i);
		parameters[i] = work->arguments[i].kind == CUDA_VALUE ? work->arguments[i].value
								      : &addresses[i];
	}
	return cuda_check(&device->driver,
			  device->driver.LaunchKernel(work->function, work->blocks, 1, 1,
						      work->threads, 1, 1, 0, device->stream,
						      parameters, NULL),
			  "launch", command->name, err);
}

static enum prony_status issue_one(struct program *program, int i, struct error *err)
{
	const struct command *command = &program->commands[i];

	return command->work->call ? command->work->call(program, command, err)
				   : launch(program, command, err);
}

static enum prony_status issue_all(struct program *program, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < program->command_count; i++)
		status = issue_one(program, i, err);
	return status;
}

enum prony_status cuda_finish(struct program *program, struct error *err)
{
	struct device *device = program->device;

	if (device->failed != PRONY_OK)
		return error_set(err, device->failed, "%s", device->failure.text);
	device->graphs = arena_try_array(&program->arena, (size_t)program->slots + 1,
					 sizeof(*device->graphs), err);
	if (!device->graphs)
		return PRONY_NOMEM;
	device->graph_count = program->slots;
	return PRONY_OK;
}

/* Records the step of the slot in use as a graph, without running it. */
static enum prony_status capture(struct program *program, struct CUgraphExec_st **out,
				 struct error *err)
{
	struct device *device = program->device;
	const struct cuda_driver *driver = &device->driver;
	struct CUgraph_st *graph = NULL;
	int ended;
	enum prony_status status = cuda_check(
		driver,
		driver->StreamBeginCapture(device->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
		"capture", "step", err);

	if (status != PRONY_OK)
		return status;
	status = issue_all(program, err);
	/* Ended in any case: nothing else may run while the stream captures. */
	ended = driver->StreamEndCapture(device->stream, &graph);
	if (status == PRONY_OK)
		status = cuda_check(driver, ended, "capture", "step", err);
	if (status == PRONY_OK)
		status = cuda_check(driver, driver->GraphInstantiate(out, graph, 0),
				    "preparation of the graph", "step", err);
	if (graph)
		driver->GraphDestroy(graph);
	if (status != PRONY_OK)
		error_prefix(err, "the step cannot run as a CUDA graph (PRONY_CUDA_GRAPH=0 turns "
				  "graphs off)");
	return status;
}

enum prony_status cuda_run(struct program *program, int slot, struct error *err)
{
	struct device *device = program->device;
	enum prony_status status = PRONY_OK;

	/* Libraries may allocate or load code in their first call, which a capture forbids: the
	 * first step of all runs command by command. */
	if (!device->capture || program->step == 0)
		return issue_all(program, err);
	if (!device->graphs[slot])
		status = capture(program, &device->graphs[slot], err);
	if (status != PRONY_OK)
		return status;
	return cuda_check(&device->driver,
			  device->driver.GraphLaunch(device->graphs[slot], device->stream),
			  "launch", "step", err);
}

enum prony_status cuda_run_one(struct program *program, int i, struct error *err)
{
	enum prony_status status = issue_one(program, i, err);

	return status == PRONY_OK ? program->backend->sync(program->device, err) : status;
}

void cuda_release_commands(struct program *program)
{
	struct device *device = program->device;

	for (int i = 0; i < device->graph_count; i++) {
		if (device->graphs[i])
			device->driver.GraphExecDestroy(device->graphs[i]);
	}
	device->graph_count = 0;
	for (int i = 0; i < program->command_count; i++) {
		const struct work *work = program->commands[i].work;

		if (work && work->release)
			work->release(device, work->detail);
	}
}
