#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/bench/floor.h"

/* All timing is done in rounds: steps, then each command alone, then each command within steps.
 * Machines have slow phases of seconds (a neighbour on the other half of a core takes a third of
 * its speed). If one kind of timing came after the other, such a phase would affect only one side
 * of the ratio. */
enum { ROUNDS = 3, STEPS_MAX = 135, REPEATS_MAX = 13, SERIES_MAX = ROUNDS * REPEATS_MAX };
#define STEPS_NS 1.5e9 /* per round */
#define WARM_NS 1.5e6  /* for the repeats of one command in a round */
#define IN_STEP_NS 5e8 /* for the steps of a round with times of commands */
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

/* Appends the times of at least one and at most `room` steps, for about limit_ns. */
static int time_steps(struct floor_session *s, double limit_ns, int room, double *values)
{
	double spent_ns = 0;
	int count = 0;

	while (count < room && (count == 0 || spent_ns < limit_ns)) {
		int64_t begin_ns = floor_now_ns();

		floor_step(s);
		values[count] = (double)(floor_now_ns() - begin_ns);
		spent_ns += values[count++];
	}
	return count;
}

struct floor_times floor_time_steps(struct floor_session *s, double limit_ns)
{
	double values[3 * STEPS_MAX];
	int count = 0;

	for (int i = 0; i < 2; i++)
		floor_step(s);
	while (count < 3)
		count += time_steps(s, limit_ns / 3, 3 * STEPS_MAX - count, values + count);
	return floor_times(values, count);
}

/* Memory that is touched to empty the caches: twice the last level. */
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

	if (backend_cpu.run_one(s->program, i, &err) != PRONY_OK)
		floor_fail(&err);
}

/* All times of one command or step. */
struct series {
	double values[SERIES_MAX];
	int count;
};

struct command_series {
	struct series warm, cold, in_step;
};

static void series_add(struct series *series, double value)
{
	if (series->count < SERIES_MAX)
		series->values[series->count++] = value;
}

static double time_command(struct floor_session *s, int i)
{
	int64_t begin_ns = floor_now_ns();

	run_command(s, i);
	return (double)(floor_now_ns() - begin_ns);
}

/* Times a command alone: warm as often as time permits, cold once. Before the cold one the caches
 * of all threads are emptied; this also leaves the threads awake, as the previous command does in a
 * step. */
static void repeat(struct floor_session *s, int i, struct eviction *eviction,
		   struct command_series *series)
{
	double spent_ns = 0;

	for (int k = 0; k < REPEATS_MAX && (k == 0 || spent_ns < WARM_NS); k++) {
		double took_ns = time_command(s, i);

		series_add(&series->warm, took_ns);
		spent_ns += took_ns;
	}
	onednn_split(&s->program->device->dnn, s->program->threads, eviction->bytes / 64, touch,
		     eviction);
	series_add(&series->cold, time_command(s, i));
}

/* The contents of a command's operands, which repeats may change: sums accumulate in place. */
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

/* Times each command at its place within one step, so that it reads the same data as in any other
 * step. */
static void time_alone(struct floor_session *s, struct eviction *eviction,
		       struct command_series *series)
{
	struct program *program = s->program;
	struct backup backup = {0};

	for (int i = 0; i < program->command_count; i++) {
		exchange(program, i, &backup, true);
		run_command(s, i);
		repeat(s, i, eviction, &series[i]);
		exchange(program, i, &backup, false);
		run_command(s, i);
	}
	program->step++;
	free(backup.copy);
}

/* Times the same commands one after the other, reading the clock between them (25 ns each). */
static void time_in_steps(struct floor_session *s, struct command_series *series)
{
	struct program *program = s->program;
	double spent_ns = 0;

	floor_step(s);
	for (int k = 0; k < REPEATS_MAX && (k == 0 || spent_ns < IN_STEP_NS); k++) {
		int64_t first_ns = floor_now_ns(), begin_ns = first_ns;

		for (int i = 0; i < program->command_count; i++) {
			int64_t end_ns;

			run_command(s, i);
			end_ns = floor_now_ns();
			series_add(&series[i].in_step, (double)(end_ns - begin_ns));
			begin_ns = end_ns;
		}
		program->step++;
		spent_ns += (double)(begin_ns - first_ns);
	}
}

static void classify(const struct floor_session *s, int i, struct floor_command *out)
{
	const struct program *program = s->program;
	const struct command *command = &program->commands[i];
	int from = command->operand_count > 0 ? command->operands[0] : OPERAND_NONE;

	out->name = command->name;
	out->primitive = command->work->primitive != NULL;
	out->reorder = command->work->primitive && strstr(command->name, " reorder");
	if (!out->reorder)
		return;
	from = program_root(program, from);
	out->of_weights = program->operands[from].region == REGION_PARAMETER;
	out->of_input = program->operands[from].region == REGION_INPUT;
}

/* Assigns the FLOPs of a node to its longest command; the others serve it. */
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

static void summarise(struct command_series *series, struct floor_command *out)
{
	struct floor_times warm = floor_times(series->warm.values, series->warm.count);
	struct floor_times in_step = floor_times(series->in_step.values, series->in_step.count);

	out->warm_ns = warm.median_ns;
	out->warm_best_ns = warm.min_ns;
	out->in_step_ns = in_step.median_ns;
	out->in_step_best_ns = in_step.min_ns;
	out->cold_ns = floor_times(series->cold.values, series->cold.count).median_ns;
}

void floor_time(struct floor_session *s, struct floor_result *r)
{
	size_t count = (size_t)s->program->command_count;
	struct command_series *series = arena_array(&s->arena, count + 1, sizeof(*series));
	struct eviction eviction = eviction_make();
	double *steps = memory_alloc(sizeof(*steps) * ROUNDS * STEPS_MAX);
	int taken = 0;

	for (int i = 0; i < 2; i++)
		floor_step(s);
	for (int round = 0; round < ROUNDS; round++) {
		struct floor_allocations before = floor_allocations(), after;

		taken += time_steps(s, STEPS_NS, STEPS_MAX, steps + taken);
		after = floor_allocations();
		r->allocations.own += after.own - before.own;
		r->allocations.library += after.library - before.library;
		time_alone(s, &eviction, series);
		time_in_steps(s, series);
		floor_measure_peak(&s->program->device->dnn, s->program->threads, &r->peak);
	}
	r->allocations.own = (r->allocations.own + taken - 1) / taken;
	r->allocations.library = (r->allocations.library + taken - 1) / taken;
	r->step = floor_times(steps, taken);
	r->command_count = (int)count;
	r->commands = arena_array(&s->arena, count + 1, sizeof(*r->commands));
	for (size_t i = 0; i < count; i++) {
		classify(s, (int)i, &r->commands[i]);
		summarise(&series[i], &r->commands[i]);
	}
	share_flops(s, r->commands);
	free(steps);
	free(eviction.memory);
}
