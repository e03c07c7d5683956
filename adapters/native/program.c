/* Builds a program's operands and commands, places its memory, and runs its steps. */
#include "adapters/native/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/native/backend.h"

#define ALIGNMENT_BYTES 64

void program_init(struct program *program, const struct backend *backend, struct device *device)
{
	*program =
		(struct program){.backend = backend, .device = device, .update = -1, .threads = 1};
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
	if (!program || !program->backend)
		return;
	program->backend->release_commands(program);
	for (int i = 0; i < program->operand_count; i++)
		program->backend->forget(program->device, &program->operands[i]);
	void *regions[] = {program->planned, program->parameters, program->gradients,
			   program->lasting, program->state,	  program->copies};

	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++)
		program->backend->free(program->device, regions[i]);
	program_timer_free(program->timer);
	arena_release(&program->arena);
	*program = (struct program){0};
}

/*
 * Makes room for one more element. Old arrays stay in the arena, which at most doubles the memory.
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

enum prony_status program_operand(struct program *program, const struct layout *layout,
				  enum region region, int *out, struct error *err)
{
	struct operand operand = {.layout = *layout,
				  .bytes = layout->bytes,
				  .region = region,
				  .alias = -1,
				  .first = -1,
				  .last = -1};
	enum prony_status status = program->backend->describe(program->device, &operand, err);

	if (status != PRONY_OK)
		return status;
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

enum prony_status program_input(struct program *program, const struct layout *layout, int input,
				int *out, struct error *err)
{
	enum prony_status status = program_operand(program, layout, REGION_INPUT, out, err);

	if (status != PRONY_OK)
		return status;
	program->operands[*out].input = input;
	if (input >= program->arrays)
		program->arrays = input + 1;
	return PRONY_OK;
}

enum prony_status program_alias(struct program *program, int of, const struct layout *layout,
				size_t shift, int *out, struct error *err)
{
	enum prony_status status = program_operand(program, layout, REGION_ALIAS, out, err);

	if (status != PRONY_OK)
		return status;
	program->operands[*out].alias = of;
	program->operands[*out].shift = shift;
	return PRONY_OK;
}

/* Copies, at half the offset, are aligned as well. */
size_t program_pair_bytes(const struct program *program, int parameter)
{
	return 2 * round_up(program->operands[parameter].bytes / 2);
}

enum prony_status program_pair(struct program *program, const struct layout *layout, int *parameter,
			       int *gradient, struct error *err)
{
	enum prony_status status =
		program_operand(program, layout, REGION_PARAMETER, parameter, err);

	if (status == PRONY_OK)
		status = program_operand(program, layout, REGION_GRADIENT, gradient, err);
	if (status != PRONY_OK)
		return status;
	program->operands[*parameter].offset = program->parameter_bytes;
	program->operands[*gradient].offset = program->parameter_bytes;
	program->parameter_bytes += program_pair_bytes(program, *parameter);
	return PRONY_OK;
}

enum prony_status program_copy(struct program *program, int parameter, const struct layout *layout,
			       int *out, struct error *err)
{
	enum prony_status status = program_operand(program, layout, REGION_COPY, out, err);

	if (status == PRONY_OK)
		program->operands[*out].offset = program->operands[parameter].offset / 2;
	return status;
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

struct command *program_command(struct program *program, const char *name, const char *what,
				int operand_capacity)
{
	size_t room = (size_t)operand_capacity + 1;
	struct command *command;

	program->commands = grow(&program->arena, program->commands, program->command_count,
				 &program->command_capacity, sizeof(struct command));
	command = &program->commands[program->command_count++];
	*command = (struct command){.node = -1};
	command->operands = arena_array(&program->arena, room, sizeof(*command->operands));
	snprintf(command->name, sizeof(command->name), "%.36s %.16s", name, what);
	return command;
}

/* Finds the range of commands during which each operand's memory is in use. Only parameters and
 * lasting operands are read in a later step than they are written, so ranges are within one step.
 */
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

static enum prony_status allocate(const struct program *program, unsigned char **out, size_t bytes,
				  const char *what, struct error *err)
{
	*out = program->backend->allocate(program->device, bytes);
	if (!*out)
		return error_set(err, PRONY_OUT_OF_MEMORY, "no memory for %zu bytes of %s", bytes,
				 what);
	return PRONY_OK;
}

size_t program_shift(const struct program *program, int operand)
{
	size_t shift = 0;

	for (; program->operands[operand].alias >= 0; operand = program->operands[operand].alias)
		shift += program->operands[operand].shift;
	return shift;
}

static void *operand_address(const struct program *program, int index)
{
	const struct operand *operand = &program->operands[program_root(program, index)];
	size_t offset = operand->offset + program_shift(program, index);

	switch (operand->region) {
	case REGION_PARAMETER:
		return program->parameters + offset;
	case REGION_GRADIENT:
		return program->gradients ? program->gradients + offset : NULL;
	case REGION_STATE:
		return program->state ? program->state + offset : NULL;
	case REGION_COPY:
		return program->copies + offset;
	case REGION_PLANNED:
	case REGION_KEPT:
		return program->planned + offset;
	case REGION_LASTING:
		return program->lasting + offset;
	default:
		return NULL;
	}
}

/* Gives every operand its address. Operands of the batch get theirs in each step. */
static enum prony_status place_operands(struct program *program, struct error *err)
{
	enum prony_status status = PRONY_OK;

	program->inputs =
		arena_array(&program->arena, (size_t)program->operand_count + 1, sizeof(int));
	for (int i = 0; status == PRONY_OK && i < program->operand_count; i++) {
		struct operand *operand = &program->operands[i];

		operand->data = operand_address(program, i);
		if (program->operands[program_root(program, i)].region == REGION_INPUT)
			program->inputs[program->input_count++] = i;
		status = program->backend->bind(program->device, operand, err);
	}
	return status;
}

enum prony_status program_finish(struct program *program, bool gradients, int states, int slots,
				 struct error *err)
{
	size_t addresses = (size_t)slots * (size_t)program->arrays;
	bool copies = false;
	enum prony_status status;

	program->slots = slots;
	program->fed = arena_try_array(&program->arena, addresses + 1, sizeof(void *), err);
	if (!program->fed)
		return PRONY_NOMEM;
	plan(program);
	status = allocate(program, &program->planned, program->planned_bytes, "activations", err);
	if (status == PRONY_OK)
		status = allocate(program, &program->parameters, program->parameter_bytes,
				  "parameters", err);
	if (status == PRONY_OK)
		status = allocate(program, &program->lasting, program->lasting_bytes,
				  "statistics and copies of weights", err);
	if (status == PRONY_OK && gradients)
		status = allocate(program, &program->gradients, program->parameter_bytes,
				  "gradients", err);
	if (status == PRONY_OK && states > 0)
		status =
			allocate(program, &program->state,
				 (size_t)states * program->parameter_bytes, "optimiser state", err);
	for (int i = 0; i < program->operand_count; i++)
		copies |= program->operands[i].region == REGION_COPY;
	if (status == PRONY_OK && copies)
		status = allocate(program, &program->copies, program->parameter_bytes / 2,
				  "copies of parameters", err);
	if (status == PRONY_OK)
		status = place_operands(program, err);
	return status == PRONY_OK ? program->backend->finish(program, err) : status;
}

enum prony_status program_feed(struct program *program, int slot, int input, void *data,
			       size_t bytes, struct error *err)
{
	if (input >= program->arrays)
		return PRONY_OK;
	return program->backend->feed(program, slot, input, data, bytes,
				      &program->fed[slot * program->arrays + input], err);
}

/* Points the operands of the batch to the slot's arrays. */
static enum prony_status use_slot(struct program *program, int slot, struct error *err)
{
	void *const *fed = program->fed + slot * program->arrays;
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < program->input_count; i++) {
		int index = program->inputs[i];
		struct operand *operand = &program->operands[index];
		unsigned char *start = fed[program->operands[program_root(program, index)].input];
		unsigned char *data = start ? start + program_shift(program, index) : NULL;

		if (operand->data == data)
			continue;
		operand->data = data;
		status = program->backend->bind(program->device, operand, err);
	}
	return status;
}

static enum prony_status run_timed(struct program *program, struct error *err)
{
	struct program_timer *timer = program->timer;
	enum prony_status status = PRONY_OK;

	if (timer->room - timer->used < 2 * (size_t)program->command_count)
		return error_set(err, PRONY_INTERNAL,
				 "more steps were run than profiling was started for");
	for (int i = 0; status == PRONY_OK && i < program->command_count; i++) {
		timer->instants[timer->used++] = timer->now_ns();
		status = program->backend->run_one(program, i, err);
		timer->instants[timer->used++] = timer->now_ns();
	}
	return status;
}

enum prony_status program_run(struct program *program, int slot, struct error *err)
{
	enum prony_status status = use_slot(program, slot, err);

	if (status == PRONY_OK)
		status = program->timer ? run_timed(program, err)
					: program->backend->run(program, slot, err);
	if (status == PRONY_OK)
		program->step++;
	return status;
}
