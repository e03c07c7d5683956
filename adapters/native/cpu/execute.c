/* Commands of the CPU backend, which are the library's primitives or prony's own loops, and their
 * execution. */
#include "adapters/native/cpu/cpu.h"

/* Loops over fewer elements run on one thread: waking the others takes 1 to 2 us. */
#define PARALLEL_ELEMENTS 32768

static struct command *add_command(struct lowering *l, const char *name, const char *what,
				   int operand_capacity)
{
	struct command *command = program_command(l->program, name, what, operand_capacity);

	command->work = arena_alloc(&l->program->arena, sizeof(*command->work));
	*command->work = (struct work){.parts = 1};
	return command;
}

static void add_argument(struct command *command, int arg, int operand)
{
	command->work->args[command->operand_count].arg = arg;
	command->operands[command->operand_count++] = operand;
}

enum prony_status cpu_primitive_parts(struct lowering *l, const char *name, const char *what,
				      const_dnnl_primitive_desc_t pd, const int *args,
				      const int *operands, int count, int parts, struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	const_dnnl_memory_desc_t scratch =
		dnn->primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	bool needs_scratch = scratch && dnn->memory_desc_get_size(scratch) > 0;
	int room = parts * (count + 1);
	struct command *command = add_command(l, name, what, room);
	enum prony_status status;
	int operand;

	command->work->args =
		arena_array(&l->program->arena, (size_t)room + 1, sizeof(*command->work->args));
	onednn_use_threads(dnn, parts > 1 ? 1 : l->program->threads);
	status =
		onednn_check(dnn->primitive_create(&command->work->primitive, pd), what, name, err);
	onednn_use_threads(dnn, l->program->threads);
	command->work->parts = parts;
	for (int p = 0; status == PRONY_OK && p < parts; p++) {
		for (int i = 0; i < count; i++) {
			if (operands[p * count + i] != OPERAND_NONE)
				add_argument(command, args[i], operands[p * count + i]);
		}
		if (!needs_scratch)
			continue;
		status = cpu_operand(l, scratch, &operand, err);
		if (status == PRONY_OK)
			add_argument(command, DNNL_ARG_SCRATCHPAD, operand);
	}
	return status;
}

enum prony_status cpu_primitive(struct lowering *l, const char *name, const char *what,
				const_dnnl_primitive_desc_t pd, const int *args,
				const int *operands, int count, struct error *err)
{
	return cpu_primitive_parts(l, name, what, pd, args, operands, count, 1, err);
}

enum prony_status cpu_unary(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	enum prony_status status =
		lower_result(l, n, node->inputs[0], state->src, &state->dst, err);

	if (status == PRONY_OK)
		status = cpu_primitive(l, node->name, "forward", state->work->forward,
				       (const int[]){DNNL_ARG_SRC, DNNL_ARG_DST},
				       (const int[]){state->src, state->dst}, 2, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = state->dst;
	return status;
}

enum prony_status cpu_copy(struct lowering *l, int from, int to, const char *name, const char *what,
			   struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);
	dnnl_primitive_desc_t pd = NULL;
	enum prony_status status =
		onednn_check(dnn->reorder_primitive_desc_create(&pd, cpu_desc(l, from), dnn->engine,
								cpu_desc(l, to), dnn->engine,
								cpu_attributes(l, NULL)),
			     what, name, err);

	if (status != PRONY_OK)
		return status;
	status = cpu_primitive(l, name, what, pd, (const int[]){DNNL_ARG_FROM, DNNL_ARG_TO},
			       (const int[]){from, to}, 2, err);
	dnn->primitive_desc_destroy(pd);
	return status;
}

void *cpu_data(const struct program *program, const struct command *command, int i)
{
	return program->operands[command->operands[i]].data;
}

void *cpu_optional(const struct program *program, const struct command *command, int i)
{
	return i < command->operand_count ? cpu_data(program, command, i) : NULL;
}

int cpu_threads(const struct program *program, size_t elements)
{
	return elements < PARALLEL_ELEMENTS ? 1 : program->threads;
}

struct work *cpu_kernel(struct lowering *l, const char *name, const char *what,
			void (*kernel)(struct program *, const struct command *),
			const int *operands, int count)
{
	struct command *command = add_command(l, name, what, count);

	command->operand_count = count;
	for (int i = 0; i < count; i++)
		command->operands[i] = operands[i];
	command->work->kernel = kernel;
	if (count > 0) {
		command->work->elements = layout_elements(lower_layout(l, operands[0]));
		command->work->bf16 = lower_layout(l, operands[0])->type == DTYPE_BF16;
	}
	return command->work;
}

enum prony_status cpu_finish(struct program *program, struct error *err)
{
	for (int i = 0; i < program->command_count; i++) {
		const struct command *command = &program->commands[i];

		for (int k = 0; command->work->primitive && k < command->operand_count; k++)
			command->work->args[k].memory =
				program->operands[command->operands[k]].memory;
	}
	cpu_release_kept(program->device);
	return onednn_check(program->device->failed, "descriptors", "network", err);
}

void cpu_release_commands(struct program *program)
{
	for (int i = 0; i < program->command_count; i++) {
		const struct work *work = program->commands[i].work;

		if (work && work->primitive)
			program->device->dnn.primitive_destroy(work->primitive);
	}
}

/* First waits for the preceding primitives, whose results the loop reads. */
static enum prony_status run_kernel(struct program *program, const struct command *command,
				    struct error *err)
{
	enum prony_status status = onednn_finish(&program->device->dnn, err);

	if (status == PRONY_OK)
		command->work->kernel(program, command);
	return status;
}

struct parts_run {
	const struct program *program;
	const struct command *command;
	_Atomic int failed; /* a status of the library */
};

static void run_parts(void *data, size_t first, size_t end)
{
	struct parts_run *run = data;
	const struct command *command = run->command;
	const struct onednn *dnn = &run->program->device->dnn;
	int count = command->operand_count / command->work->parts;

	for (size_t p = first; p < end; p++) {
		dnnl_status_t status =
			dnn->primitive_execute(command->work->primitive, dnn->stream, count,
					       command->work->args + p * (size_t)count);

		if (status != dnnl_success)
			run->failed = (int)status;
	}
}

static dnnl_status_t execute(const struct program *program, const struct command *command)
{
	const struct onednn *dnn = &program->device->dnn;
	struct parts_run run = {.program = program, .command = command};

	if (command->work->parts == 1)
		return dnn->primitive_execute(command->work->primitive, dnn->stream,
					      command->operand_count, command->work->args);
	onednn_split(dnn, command->work->parts, (size_t)command->work->parts, run_parts, &run);
	return (dnnl_status_t)run.failed;
}

/* Starts a command; may return while a primitive is still running. */
static enum prony_status start_one(struct program *program, int i, struct error *err)
{
	const struct command *command = &program->commands[i];
	dnnl_status_t status;

	if (!command->work->primitive)
		return run_kernel(program, command, err);
	status = execute(program, command);
	return status == dnnl_success ? PRONY_OK
				      : onednn_check(status, "execution", command->name, err);
}

enum prony_status cpu_run_one(struct program *program, int i, struct error *err)
{
	enum prony_status status = start_one(program, i, err);

	return status == PRONY_OK ? onednn_finish(&program->device->dnn, err) : status;
}

enum prony_status cpu_run(struct program *program, int slot, struct error *err)
{
	enum prony_status status = PRONY_OK;

	(void)slot;
	for (int i = 0; status == PRONY_OK && i < program->command_count; i++)
		status = start_one(program, i, err);
	return status == PRONY_OK ? onednn_finish(&program->device->dnn, err) : status;
}

enum prony_status cpu_reorder_now(const struct onednn *dnn, const_dnnl_memory_desc_t from_desc,
				  const void *from, const_dnnl_memory_desc_t to_desc, void *to,
				  struct error *err)
{
	union {
		const void *in;
		void *out;
	} address = {.in = from}; /* the library only reads it, but takes it as void * */
	dnnl_memory_t source = NULL, target = NULL;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t primitive = NULL;
	dnnl_status_t status;

	status = dnn->memory_create(&source, from_desc, dnn->engine, address.out);
	if (status == dnnl_success)
		status = dnn->memory_create(&target, to_desc, dnn->engine, to);
	if (status == dnnl_success)
		status = dnn->reorder_primitive_desc_create(&pd, from_desc, dnn->engine, to_desc,
							    dnn->engine, NULL);
	if (status == dnnl_success)
		status = dnn->primitive_create(&primitive, pd);
	if (status == dnnl_success)
		status = dnn->primitive_execute(primitive, dnn->stream, 2,
						(const dnnl_exec_arg_t[]){
							{.arg = DNNL_ARG_FROM, .memory = source},
							{.arg = DNNL_ARG_TO, .memory = target},
						});
	if (status == dnnl_success)
		status = dnn->stream_wait(dnn->stream);
	if (primitive)
		dnn->primitive_destroy(primitive);
	if (pd)
		dnn->primitive_desc_destroy(pd);
	if (target)
		dnn->memory_destroy(target);
	if (source)
		dnn->memory_destroy(source);
	return onednn_check(status, "copy", "operand", err);
}
