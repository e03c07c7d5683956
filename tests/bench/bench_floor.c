/* Compares the native executor with its own lower bounds. It measures a step against the sum of its
 * commands, each timed alone on the step's own data (warm) and with emptied caches (cold);
 * reorders, primitive creations and allocations of a step; the step's FLOP/s against the best speed
 * of the processor in the same process, by prony's own loop or the library's own product; all
 * threads against one; and the layers that lose most against that peak. Run by hand
 * (docs/native.md). No bound is enforced. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/floor.h"

#define STEPS_ONLY_NS 2e9 /* if only steps are timed */

static const char usage_text[] =
	"usage: PRONY_NATIVE_LIBRARY=PATH bench_floor [OPTIONS] [NETWORK BATCH forward|train "
	"[THREADS]]\n"
	"NETWORK is one of the zoo or the path of an ONNX file; without one, a list of them runs.\n"
	"  --top N      show the N commands that lose most against the peak\n"
	"  --cpu-time   time of the process instead of wall time; also PRONY_BENCH_CPU_TIME=1. "
	"For\n"
	"               machines that do other things; then one thread says most\n"
	"  --steps      nothing but the steps: median and best\n"
	"  --bf16       mixed precision; the peak stays that of fp32\n";

struct options {
	bool steps_only;
	int top;
	const char *library;
};

static void usage(void)
{
	fputs(usage_text, stderr);
	exit(EXIT_FAILURE);
}

static int by_loss(const void *a, const void *b)
{
	double x = ((const struct floor_command *)a)->lost_ns,
	       y = ((const struct floor_command *)b)->lost_ns;

	return (x < y) - (x > y);
}

static int by_lateness(const void *a, const void *b)
{
	const struct floor_command *x = a, *y = b;
	double late_x = x->in_step_ns - x->warm_ns, late_y = y->in_step_ns - y->warm_ns;

	return (late_x < late_y) - (late_x > late_y);
}

static void add_up(struct floor_result *r)
{
	double peak = floor_best_peak(&r->peak);

	for (int i = 0; i < r->command_count; i++) {
		struct floor_command *command = &r->commands[i];

		command->lost_ns = command->in_step_ns - command->flops / peak * 1e9;
		r->warm_sum_ns += command->warm_ns;
		r->cold_sum_ns += command->cold_ns;
		r->in_step_sum_ns += command->in_step_ns;
		r->warm_best_sum_ns += command->warm_best_ns;
		r->in_step_best_sum_ns += command->in_step_best_ns;
		r->own_loops_ns += command->primitive ? 0 : command->warm_ns;
		r->flops += command->flops;
		r->reorders_of_input += command->reorder && command->of_input;
		r->reorders_of_weights += command->reorder && command->of_weights;
		r->reorders_of_activations +=
			command->reorder && !command->of_input && !command->of_weights;
	}
	qsort(r->commands, (size_t)r->command_count, sizeof(*r->commands), by_loss);
	memcpy(r->late, r->commands, (size_t)r->command_count * sizeof(*r->late));
	qsort(r->late, (size_t)r->command_count, sizeof(*r->late), by_lateness);
}

static void measure(struct floor_session *s, const struct options *options, struct floor_result *r)
{
	const struct program *program = s->program;

	r->task = s->task;
	r->threads_used = program->threads;
	r->notes = s->built.notes;
	r->planned_bytes = (double)program->planned_bytes;
	floor_measure_peak(&program->device->dnn, program->threads, &r->peak);
	r->counts = floor_count_step(s);
	floor_time(s, r);
	r->late = arena_array(&s->arena, (size_t)r->command_count + 1, sizeof(*r->late));
	add_up(r);
	floor_print_table(r, options->top, stdout);
}

/* Writes the result of a child: the medians of steps. */
static void steps_child(const struct floor_task *task, const struct options *options, int out)
{
	static struct floor_session s;
	struct floor_times steps;

	floor_open(&s, task, options->library);
	steps = floor_time_steps(&s, STEPS_ONLY_NS);
	floor_close(&s);
	if (write(out, &steps, sizeof(steps)) != sizeof(steps))
		exit(EXIT_FAILURE);
}

static void full_child(const struct floor_task *task, const struct options *options,
		       struct floor_result *result)
{
	static struct floor_session s;

	floor_open(&s, task, options->library);
	measure(&s, options, result);
	floor_close(&s);
}

/*
 * Runs a task in a child, because a process holds one session. With `steps` only those are timed.
 */
static bool run_child(const struct floor_task *task, const struct options *options,
		      struct floor_result *result, struct floor_times *steps)
{
	int ends[2], end = 0;
	pid_t pid;
	bool good = true;

	fflush(stdout);
	if (pipe(ends) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		if (steps)
			steps_child(task, options, ends[1]);
		else
			full_child(task, options, result);
		exit(EXIT_SUCCESS);
	}
	close(ends[1]);
	if (steps)
		good = read(ends[0], steps, sizeof(*steps)) == sizeof(*steps);
	close(ends[0]);
	return pid > 0 && waitpid(pid, &end, 0) == pid && good && WIFEXITED(end) &&
	       WEXITSTATUS(end) == 0;
}

static bool run(const struct floor_task *task, const struct options *options)
{
	struct floor_task alone = *task;
	struct floor_result result = {0};
	struct floor_times one = {0}, all = {0};

	alone.threads = 1;
	if (options->steps_only) {
		if (!run_child(task, options, NULL, &all))
			return false;
		printf("%s %lld %s %d: median %.3f ms, best %.3f ms, quartiles %.3f to %.3f ms, %d "
		       "steps\n",
		       task->network, (long long)task->batch, task->stage, task->threads,
		       all.median_ns / 1e6, all.min_ns / 1e6, all.low_ns / 1e6, all.high_ns / 1e6,
		       all.count);
		return true;
	}
	if (task->threads > 1) {
		if (!run_child(&alone, options, NULL, &one) ||
		    !run_child(task, options, NULL, &all))
			return false;
		result.one_thread_ns = one.median_ns;
		result.all_threads_ns = all.median_ns;
	}
	return run_child(task, options, &result, NULL);
}

static bool run_list(const struct options *options)
{
	static const struct floor_task tasks[] = {
		{"lenet", "train", 64, 2, false},     {"lenet", "forward", 64, 2, false},
		{"lenet", "train", 1, 1, false},      {"lstm", "train", 32, 2, false},
		{"lstm", "forward", 32, 2, false},    {"resnet50", "forward", 8, 2, false},
		{"resnet50", "train", 8, 2, false},   {"vgg16", "forward", 8, 2, false},
		{"vgg16", "train", 8, 2, false},      {"alexnet", "forward", 8, 2, false},
		{"alexnet", "train", 8, 2, false},    {"googlenet", "forward", 8, 2, false},
		{"googlenet", "train", 8, 2, false},  {"inception3", "forward", 8, 2, false},
		{"inception3", "train", 8, 2, false},
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
		good &= run(&tasks[i], options);
	return good;
}

static void parse(int argc, char **argv, struct options *options, struct floor_task *task)
{
	static const struct option words[] = {{"top", required_argument, NULL, 't'},
					      {"cpu-time", no_argument, NULL, 'c'},
					      {"steps", no_argument, NULL, 's'},
					      {"bf16", no_argument, NULL, 'b'},
					      {0}};
	bool bf16 = false;
	int word, left;

	while ((word = getopt_long(argc, argv, "", words, NULL)) != -1) {
		if (word == 't')
			options->top = (int)strtol(optarg, NULL, 10);
		else if (word == 'c')
			floor_use_cpu_time();
		else if (word == 's')
			options->steps_only = true;
		else if (word == 'b')
			bf16 = true;
		else
			usage();
	}
	left = argc - optind;
	argv += optind;
	if (!options->library || (left != 0 && left != 3 && left != 4) || (left == 0 && bf16))
		usage();
	if (left == 0)
		return;
	*task = (struct floor_task){argv[0], argv[2], strtoll(argv[1], NULL, 10),
				    left == 4 ? (int)strtol(argv[3], NULL, 10) : 2, bf16};
	if (task->batch < 1 || task->threads < 1 ||
	    (strcmp(task->stage, "forward") != 0 && strcmp(task->stage, "train") != 0))
		usage();
}

int main(int argc, char **argv)
{
	struct options options = {.library = getenv("PRONY_NATIVE_LIBRARY")};
	struct floor_task task = {0};
	bool good;

	if (getenv("PRONY_BENCH_CPU_TIME"))
		floor_use_cpu_time();
	parse(argc, argv, &options, &task);
	if (!options.steps_only)
		floor_print_head(stdout);
	good = task.network ? run(&task, &options) : run_list(&options);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
