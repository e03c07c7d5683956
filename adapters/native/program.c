#include "adapters/native/program.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT_BYTES 64
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

void program_init(struct program *program, const struct onednn *dnn)
{
	*program = (struct program){.dnn = dnn, .kernels = kernels_pick(), .threads = dnn->threads};
	arena_init(&program->arena, 0);
}

void program_timer_free(struct program_timer *timer)
{
	if (!timer)
		return;
	free(timer->instants);
	free(timer);
}

void program_release(struct program *program)
{
	if (!program || !program->dnn)
		return;
	for (int i = 0; i < program->command_count; i++) {
		if (program->commands[i].primitive)
			program->dnn->primitive_destroy(program->commands[i].primitive);
	}
	for (int i = 0; i < program->operand_count; i++) {
		if (program->operands[i].memory)
			program->dnn->memory_destroy(program->operands[i].memory);
		if (program->operands[i].desc)
			program->dnn->memory_desc_destroy(program->operands[i].desc);
	}
	free(program->planned);
	free(program->parameters);
	free(program->gradients);
	free(program->lasting);
	free(program->state);
	program_timer_free(program->timer);
	arena_release(&program->arena);
	*program = (struct program){0};
}

/* Room for one more of `count` elements; old arrays stay in the arena, which costs at most twice.
 */
static void *grow(struct arena *arena, void *old, int count, int *capacity, size_t element_bytes)
{
	void *grown;

	if (count < *capacity)
		return old;
	*capacity = *capacity ? *capacity * 2 : 64;
	grown = arena_array(arena, (size_t)*capacity, element_bytes);
	if (count > 0)
		memcpy(grown, old, (size_t)count * element_bytes);
	return grown;
}

static int add_operand(struct program *program, const struct operand *operand)
{
	program->operands = grow(&program->arena, program->operands, program->operand_count,
				 &program->operand_capacity, sizeof(struct operand));
	program->operands[program->operand_count] = *operand;
	return program->operand_count++;
}

static size_t round_up(size_t bytes)
{
	return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
}

enum prony_status program_operand(struct program *program, const_dnnl_memory_desc_t desc,
				  enum region region, int *out, struct error *err)
{
	struct operand operand = {.region = region, .alias = -1, .first = -1, .last = -1};
	dnnl_status_t status = program->dnn->memory_desc_clone(&operand.desc, desc);

	if (status != dnnl_success)
		return onednn_check(status, "memory descriptor", "operand", err);
	operand.bytes = program->dnn->memory_desc_get_size(desc);
	if (region == REGION_LASTING) {
		operand.offset = program->lasting_bytes;
		program->lasting_bytes += round_up(operand.bytes);
	}
	*out = add_operand(program, &operand);
	return PRONY_OK;
}

int program_bytes(struct program *program, size_t bytes)
{
	struct operand operand = {.bytes = bytes, .alias = -1, .first = -1, .last = -1};

	return add_operand(program, &operand);
}

enum prony_status program_alias(struct program *program, int of, const_dnnl_memory_desc_t desc,
				size_t shift, int *out, struct error *err)
{
	enum prony_status status = program_operand(program, desc, REGION_ALIAS, out, err);

	if (status != PRONY_OK)
		return status;
	program->operands[*out].alias = of;
	program->operands[*out].shift = shift;
	return PRONY_OK;
}

enum prony_status program_pair(struct program *program, const_dnnl_memory_desc_t desc,
			       int *parameter, int *gradient, struct error *err)
{
	enum prony_status status = program_operand(program, desc, REGION_PARAMETER, parameter, err);

	if (status == PRONY_OK)
		status = program_operand(program, desc, REGION_GRADIENT, gradient, err);
	if (status != PRONY_OK)
		return status;
	program->operands[*parameter].offset = program->parameter_bytes;
	program->operands[*gradient].offset = program->parameter_bytes;
	program->parameter_bytes += round_up(program->operands[*parameter].bytes);
	return PRONY_OK;
}

int program_root(const struct program *program, int operand)
{
	while (program->operands[operand].alias >= 0)
		operand = program->operands[operand].alias;
	return operand;
}

void program_keep(struct program *program, int operand)
{
	struct operand *root = &program->operands[program_root(program, operand)];

	if (root->region == REGION_PLANNED)
		root->region = REGION_KEPT;
}

void program_use_threads(struct program *program, int threads)
{
	program->threads = threads;
	onednn_use_threads(program->dnn, threads);
}

struct command *program_command(struct program *program, const char *name, const char *what,
				int operand_capacity)
{
	size_t room = (size_t)operand_capacity + 1;
	struct command *command;

	program->commands = grow(&program->arena, program->commands, program->command_count,
				 &program->command_capacity, sizeof(struct command));
	command = &program->commands[program->command_count++];
	*command = (struct command){.node = -1, .parts = 1};
	command->operands = arena_array(&program->arena, room, sizeof(*command->operands));
	command->args = arena_array(&program->arena, room, sizeof(*command->args));
	snprintf(command->name, sizeof(command->name), "%.36s %.16s", name, what);
	return command;
}

static void add_argument(struct command *command, int arg, int operand)
{
	command->args[command->operand_count].arg = arg;
	command->operands[command->operand_count++] = operand;
}

enum prony_status program_primitive_parts(struct program *program, const char *name,
					  const char *what, const_dnnl_primitive_desc_t pd,
					  const int *args, const int *operands, int count,
					  int parts, struct error *err)
{
	const struct onednn *dnn = program->dnn;
	const_dnnl_memory_desc_t scratch =
		dnn->primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	bool needs_scratch = scratch && dnn->memory_desc_get_size(scratch) > 0;
	struct command *command = program_command(program, name, what, parts * (count + 1));
	enum prony_status status;
	int operand;

	onednn_use_threads(dnn, parts > 1 ? 1 : program->threads);
	status = onednn_check(dnn->primitive_create(&command->primitive, pd), what, name, err);
	onednn_use_threads(dnn, program->threads);
	command->parts = parts;
	for (int p = 0; status == PRONY_OK && p < parts; p++) {
		for (int i = 0; i < count; i++) {
			if (operands[p * count + i] != OPERAND_NONE)
				add_argument(command, args[i], operands[p * count + i]);
		}
		if (!needs_scratch)
			continue;
		status = program_operand(program, scratch, REGION_PLANNED, &operand, err);
		if (status == PRONY_OK)
			add_argument(command, DNNL_ARG_SCRATCHPAD, operand);
	}
	return status;
}

enum prony_status program_primitive(struct program *program, const char *name, const char *what,
				    const_dnnl_primitive_desc_t pd, const int *args,
				    const int *operands, int count, struct error *err)
{
	return program_primitive_parts(program, name, what, pd, args, operands, count, 1, err);
}

/* The commands between which each memory is in use. What is written in one step and read in the
 * next does not exist outside the parameters, so a range within one step says it all. */
static void find_ranges(struct program *program)
{
	for (int i = 0; i < program->command_count; i++) {
		const struct command *command = &program->commands[i];

		for (int k = 0; k < command->operand_count; k++) {
			struct operand *root =
				&program->operands[program_root(program, command->operands[k])];

			if (root->first < 0)
				root->first = i;
			root->last = i;
			if (root->region == REGION_KEPT)
				root->last = program->command_count;
		}
	}
}

static bool is_planned(const struct operand *operand)
{
	return (operand->region == REGION_PLANNED || operand->region == REGION_KEPT) &&
	       operand->first >= 0;
}

static void plan(struct program *program)
{
	size_t count = (size_t)program->operand_count, used = 0;
	struct buffer *buffers = arena_array(&program->arena, count + 1, sizeof(struct buffer));

	find_ranges(program);
	for (size_t i = 0; i < count; i++) {
		const struct operand *operand = &program->operands[i];

		if (!is_planned(operand))
			continue;
		buffers[used++] = (struct buffer){
			.bytes = operand->bytes, .first = operand->first, .last = operand->last};
		program->unshared_bytes += operand->bytes;
	}
	program->planned_bytes = memory_plan(buffers, used, &program->arena);
	used = 0;
	for (size_t i = 0; i < count; i++) {
		if (is_planned(&program->operands[i]))
			program->operands[i].offset = buffers[used++].offset;
	}
}

static enum prony_status allocate(unsigned char **out, size_t bytes, const char *what,
				  struct error *err)
{
	/* Large regions start at a huge page: fewer TLB misses in every step. */
	size_t alignment = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : ALIGNMENT_BYTES;
	size_t rounded = (bytes / alignment + 1) * alignment;
	unsigned char *memory = aligned_alloc(alignment, rounded);

	if (!memory)
		return error_set(err, PRONY_OUT_OF_MEMORY, "no memory for %zu bytes of %s", bytes,
				 what);
	if (alignment == HUGE_PAGE_BYTES)
		(void)madvise(memory, rounded, MADV_HUGEPAGE); /* only a hint */
	memset(memory, 0, rounded);
	*out = memory;
	return PRONY_OK;
}

static size_t operand_shift(const struct program *program, int index)
{
	size_t shift = 0;

	for (; program->operands[index].alias >= 0; index = program->operands[index].alias)
		shift += program->operands[index].shift;
	return shift;
}

static void *operand_address(const struct program *program, int index)
{
	const struct operand *operand = &program->operands[program_root(program, index)];
	size_t offset = operand->offset + operand_shift(program, index);

	switch (operand->region) {
	case REGION_PARAMETER:
		return program->parameters + offset;
	case REGION_GRADIENT:
		return program->gradients ? program->gradients + offset : NULL;
	case REGION_PLANNED:
	case REGION_KEPT:
		return program->planned + offset;
	case REGION_LASTING:
		return program->lasting + offset;
	default:
		return NULL;
	}
}

static enum prony_status make_memories(struct program *program, struct error *err)
{
	const struct onednn *dnn = program->dnn;

	program->inputs =
		arena_array(&program->arena, (size_t)program->operand_count + 1, sizeof(int));
	for (int i = 0; i < program->operand_count; i++) {
		struct operand *operand = &program->operands[i];
		enum prony_status status;

		operand->data = operand_address(program, i);
		if (program->operands[program_root(program, i)].region == REGION_INPUT)
			program->inputs[program->input_count++] = i;
		if (!operand->desc)
			continue;
		status = onednn_check(dnn->memory_create(&operand->memory, operand->desc,
							 dnn->engine, operand->data),
				      "memory object", "operand", err);
		if (status != PRONY_OK)
			return status;
	}
	for (int i = 0; i < program->command_count; i++) {
		struct command *command = &program->commands[i];

		for (int k = 0; k < command->operand_count; k++)
			command->args[k].memory = program->operands[command->operands[k]].memory;
	}
	return PRONY_OK;
}

enum prony_status program_finish(struct program *program, bool gradients, bool state,
				 struct error *err)
{
	enum prony_status status;

	plan(program);
	status = allocate(&program->planned, program->planned_bytes, "activations", err);
	if (status == PRONY_OK)
		status =
			allocate(&program->parameters, program->parameter_bytes, "parameters", err);
	if (status == PRONY_OK)
		status = allocate(&program->lasting, program->lasting_bytes,
				  "statistics and copies of weights", err);
	if (status == PRONY_OK && gradients)
		status = allocate(&program->gradients, program->parameter_bytes, "gradients", err);
	if (status == PRONY_OK && state)
		status =
			allocate(&program->state, program->parameter_bytes, "optimiser state", err);
	if (status == PRONY_OK)
		status = make_memories(program, err);
	return status;
}

enum prony_status program_set_input(struct program *program, void *data, struct error *err)
{
	for (int i = 0; i < program->input_count; i++) {
		struct operand *operand = &program->operands[program->inputs[i]];
		unsigned char *place =
			(unsigned char *)data + operand_shift(program, program->inputs[i]);

		if (operand->data == place)
			continue;
		operand->data = place;
		if (operand->memory &&
		    program->dnn->memory_set_data_handle(operand->memory, place) != dnnl_success)
			return error_set(err, PRONY_INTERNAL, "oneDNN refused the input batch");
	}
	return PRONY_OK;
}

/* A loop of ours reads what primitives before it wrote. */
static enum prony_status run_kernel(struct program *program, const struct command *command,
				    struct error *err)
{
	enum prony_status status = onednn_finish(program->dnn, err);

	if (status == PRONY_OK)
		command->kernel(program, command);
	return status;
}

struct parts_run {
	const struct program *program;
	const struct command *command;
	_Atomic int failed; /* a status of the library's */
};

static void run_parts(void *data, size_t first, size_t end)
{
	struct parts_run *run = data;
	const struct command *command = run->command;
	const struct onednn *dnn = run->program->dnn;
	int count = command->operand_count / command->parts;

	for (size_t p = first; p < end; p++) {
		dnnl_status_t status = dnn->primitive_execute(
			command->primitive, dnn->stream, count, command->args + p * (size_t)count);

		if (status != dnnl_success)
			run->failed = (int)status;
	}
}

static dnnl_status_t execute(const struct program *program, const struct command *command)
{
	const struct onednn *dnn = program->dnn;
	struct parts_run run = {.program = program, .command = command};

	if (command->parts == 1)
		return dnn->primitive_execute(command->primitive, dnn->stream,
					      command->operand_count, command->args);
	onednn_split(dnn, command->parts, (size_t)command->parts, run_parts, &run);
	return (dnnl_status_t)run.failed;
}

/* A primitive may then still be under way. */
static enum prony_status start_one(struct program *program, int i, struct error *err)
{
	const struct command *command = &program->commands[i];
	dnnl_status_t status;

	if (!command->primitive)
		return run_kernel(program, command, err);
	status = execute(program, command);
	return status == dnnl_success ? PRONY_OK
				      : onednn_check(status, "execution", command->name, err);
}

enum prony_status program_run_one(struct program *program, int i, struct error *err)
{
	enum prony_status status = start_one(program, i, err);

	return status == PRONY_OK ? onednn_finish(program->dnn, err) : status;
}

static enum prony_status run_timed(struct program *program, struct error *err)
{
	struct program_timer *timer = program->timer;
	enum prony_status status = PRONY_OK;

	if (timer->room - timer->used < 2 * (size_t)program->command_count)
		return error_set(err, PRONY_INTERNAL, "more steps than were to be profiled");
	for (int i = 0; status == PRONY_OK && i < program->command_count; i++) {
		timer->instants[timer->used++] = timer->now_ns();
		status = program_run_one(program, i, err);
		timer->instants[timer->used++] = timer->now_ns();
	}
	return status;
}

static enum prony_status run_all(struct program *program, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < program->command_count; i++)
		status = start_one(program, i, err);
	return status == PRONY_OK ? onednn_finish(program->dnn, err) : status;
}

enum prony_status program_run(struct program *program, struct error *err)
{
	enum prony_status status = program->timer ? run_timed(program, err) : run_all(program, err);

	if (status == PRONY_OK)
		program->step++;
	return status;
}

/* One reorder between two memories, made, run and destroyed: outside steps only. */
static enum prony_status copy(const struct onednn *dnn, const_dnnl_memory_desc_t from_desc,
			      void *from, const_dnnl_memory_desc_t to_desc, void *to,
			      struct error *err)
{
	dnnl_memory_t source = NULL, target = NULL;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t primitive = NULL;
	dnnl_status_t status;

	status = dnn->memory_create(&source, from_desc, dnn->engine, from);
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

enum prony_status program_load(struct program *program, int operand, const_dnnl_memory_desc_t desc,
			       const void *from, struct error *err)
{
	union {
		const void *in;
		void *out;
	} address = {.in = from}; /* the library reads it only, but takes it as void * */

	return copy(program->dnn, desc, address.out, program->operands[operand].desc,
		    program->operands[operand].data, err);
}

enum prony_status program_store(struct program *program, int operand, const_dnnl_memory_desc_t desc,
				void *to, struct error *err)
{
	return copy(program->dnn, program->operands[operand].desc, program->operands[operand].data,
		    desc, to, err);
}
