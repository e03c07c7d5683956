#include "adapters/native/lower/lower_internal.h"

/* Elements from which a loop is worth the 1 to 2 us that waking the other threads takes. */
#define PARALLEL_ELEMENTS 32768

void *lower_data(const struct program *program, const struct command *command, int i)
{
	return program->operands[command->operands[i]].data;
}

void *lower_optional(const struct program *program, const struct command *command, int i)
{
	return i < command->operand_count ? lower_data(program, command, i) : NULL;
}

int lower_threads(const struct program *program, size_t elements)
{
	return elements < PARALLEL_ELEMENTS ? 1 : program->threads;
}

struct command *lower_command(struct lowering *l, const char *name, const char *what,
			      void (*kernel)(struct program *, const struct command *),
			      const int *operands, int count)
{
	struct command *command = program_command(l->program, name, what, count);

	command->kernel = kernel;
	command->operand_count = count;
	for (int i = 0; i < count; i++)
		command->operands[i] = operands[i];
	command->elements = lower_elements(l, operands[0]);
	command->bf16 = lower_type(l, operands[0]) == dnnl_bf16;
	return command;
}
