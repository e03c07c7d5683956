#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/bench/floor.h"

enum { STEPS_MAX = 401, REPEATS_MAX = 41, REPEATS_MIN = 3 };
#define WARM_NS 4000000	      /* for the repeats of one command, once there are enough */
#define IN_STEP_NS 1500000000 /* for the steps that are looked into */
#define CACHE_BYTES_MIN ((size_t)32 << 20)

static clockid_t clock_used = CLOCK_MONOTONIC;

void floor_use_cpu_time(void)
{
	clock_used = CLOCK_PROCESS_CPUTIME_ID;
}

bool floor_uses_cpu_time(void)
{
	return clock_used == CLOCK_PROCESS_CPUTIME_ID;
}

int64_t floor_now_ns(void)
{
	struct timespec at;

	clock_gettime(clock_used, &at);
	return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct floor_times floor_times(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), ascending);
	return (struct floor_times){.median_ns = values[count / 2],
				    .min_ns = values[0],
				    .low_ns = values[count / 4],
				    .high_ns = values[count - 1 - count / 4],
				    .count = count};
}

struct floor_times floor_time_steps(struct floor_session *s, double limit_ns, long *allocated)
{
	double values[STEPS_MAX], spent_ns = 0;
	int count = 0;
	long before;

	for (int i = 0; i < 2; i++)
		floor_step(s);
	before = floor_allocations();
	while (count < STEPS_MAX && (count < REPEATS_MIN || spent_ns < limit_ns)) {
		int64_t begin_ns = floor_now_ns();

		floor_step(s);
		values[count] = (double)(floor_now_ns() - begin_ns);
		spent_ns += values[count++];
	}
	if (allocated)
		*allocated = (floor_allocations() - before + count - 1) / count;
	return floor_times(values, count);
}

/* Memory that is touched to push everything else out of the caches: twice the last level. */
struct eviction {
	unsigned char *memory;
	size_t bytes;
};

static struct eviction eviction_make(void)
{
	long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
	struct eviction eviction = {.bytes = CACHE_BYTES_MIN};

	if (last_level > 0 && 2 * (size_t)last_level > eviction.bytes)
		eviction.bytes = 2 * (size_t)last_level;
	eviction.memory = memory_alloc(eviction.bytes);
	memset(eviction.memory, 0, eviction.bytes);
	return eviction;
}

static void touch(void *data, size_t first, size_t end)
{
	const struct eviction *eviction = data;

	for (size_t i = first; i < end; i++)
		eviction->memory[i * 64]++;
}

static void run_command(struct floor_session *s, int i)
{
	struct error err = ERROR_INIT;

	if (program_run_one(s->program, i, &err) != PRONY_OK)
		floor_fail(&err);
}

/* Median of repeats. With `eviction` the caches of all threads are emptied before each; that also
 * leaves the threads awake, as the command before this one does in a step. */
static struct floor_times repeat(struct floor_session *s, int i, struct eviction *eviction)
{
	double values[REPEATS_MAX], spent_ns = 0;
	int count = 0;

	while (count < REPEATS_MIN || (!eviction && count < REPEATS_MAX && spent_ns < WARM_NS)) {
		int64_t begin_ns;

		if (eviction)
			onednn_split(s->program->dnn, s->program->threads, eviction->bytes / 64,
				     touch, eviction);
		begin_ns = floor_now_ns();
		run_command(s, i);
		values[count] = (double)(floor_now_ns() - begin_ns);
		spent_ns += values[count++];
	}
	return floor_times(values, count);
}

/* The contents of a command's operands, which repeats may change: sums are accumulated in place. */
struct backup {
	unsigned char *copy;
	size_t capacity;
};

static void exchange(struct program *program, int i, struct backup *backup, bool save)
{
	const struct command *command = &program->commands[i];
	size_t used = 0;

	for (int k = 0; k < command->operand_count; k++) {
		const struct operand *root =
			&program->operands[program_root(program, command->operands[k])];

		if (root->region == REGION_INPUT || !root->data)
			continue;
		if (used + root->bytes > backup->capacity) {
			backup->capacity = 2 * (used + root->bytes);
			backup->copy = memory_realloc(backup->copy, backup->capacity);
		}
		if (save)
			memcpy(backup->copy + used, root->data, root->bytes);
		else
			memcpy(root->data, backup->copy + used, root->bytes);
		used += root->bytes;
	}
}

/* Each command in its place within one step, so that it reads what it reads in any other. */
static void time_alone(struct floor_session *s, struct floor_command *commands)
{
	struct program *program = s->program;
	struct eviction eviction = eviction_make();
	struct backup backup = {0};

	for (int i = 0; i < program->command_count; i++) {
		struct floor_times warm;

		exchange(program, i, &backup, true);
		run_command(s, i);
		warm = repeat(s, i, NULL);
		commands[i].warm_ns = warm.median_ns;
		commands[i].warm_best_ns = warm.min_ns;
		commands[i].cold_ns = repeat(s, i, &eviction).median_ns;
		exchange(program, i, &backup, false);
		run_command(s, i);
	}
	program->step++;
	free(backup.copy);
	free(eviction.memory);
}

/* The same commands one after the other, with a look at the clock between them (25 ns each). */
static void time_in_steps(struct floor_session *s, struct floor_command *commands)
{
	struct program *program = s->program;
	int count = program->command_count, steps = 0;
	double *all = memory_alloc((size_t)count * REPEATS_MAX * sizeof(*all)), spent_ns = 0;

	floor_step(s);
	while (steps < REPEATS_MIN || (steps < REPEATS_MAX && spent_ns < IN_STEP_NS)) {
		int64_t begin_ns = floor_now_ns();

		for (int i = 0; i < count; i++) {
			int64_t end_ns;

			run_command(s, i);
			end_ns = floor_now_ns();
			all[i * REPEATS_MAX + steps] = (double)(end_ns - begin_ns);
			spent_ns += (double)(end_ns - begin_ns);
			begin_ns = end_ns;
		}
		program->step++;
		steps++;
	}
	for (int i = 0; i < count; i++) {
		struct floor_times times = floor_times(all + i * REPEATS_MAX, steps);

		commands[i].in_step_ns = times.median_ns;
		commands[i].in_step_best_ns = times.min_ns;
	}
	free(all);
}

static void classify(const struct floor_session *s, int i, struct floor_command *out)
{
	const struct program *program = s->program;
	const struct command *command = &program->commands[i];
	int from = command->operand_count > 0 ? command->operands[0] : OPERAND_NONE;

	out->name = command->name;
	out->primitive = command->primitive != NULL;
	out->reorder = command->primitive && strstr(command->name, " reorder");
	if (!out->reorder)
		return;
	from = program_root(program, from);
	out->of_weights = program->operands[from].region == REGION_PARAMETER;
	out->of_input = program->operands[from].region == REGION_INPUT;
}

/* The multiplications of a node are done by the longest of its commands; the others serve it. */
static void share_flops(const struct floor_session *s, struct floor_command *commands)
{
	const struct program *program = s->program;

	for (int n = 0; n < s->graph.node_count; n++) {
		const struct operator_row *row = operator_row(s->graph.nodes[n].op);
		int longest = -1;

		for (int i = 0; row->macs && i < program->command_count; i++) {
			if (program->commands[i].node == n &&
			    (longest < 0 || commands[i].warm_ns > commands[longest].warm_ns))
				longest = i;
		}
		if (longest >= 0)
			commands[longest].flops +=
				2 * (double)row->macs(&s->graph, &s->graph.nodes[n]);
	}
}

struct floor_command *floor_time_commands(struct floor_session *s)
{
	struct floor_command *commands =
		arena_array(&s->arena, (size_t)s->program->command_count + 1, sizeof(*commands));

	for (int i = 0; i < s->program->command_count; i++)
		classify(s, i, &commands[i]);
	time_alone(s, commands);
	time_in_steps(s, commands);
	share_flops(s, commands);
	return commands;
}
