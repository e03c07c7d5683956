/*
 * How close the native executor is to what it stands on: a step against the sum of its commands,
 * each timed alone on the step's own data (warm) and with caches emptied before (cold); reorders
 * and allocations of a step; its FLOP/s against the best that the processor was seen to do in the
 * same process. Run by hand: bench_floor [NETWORK BATCH forward|train [THREADS]]. No bound is
 * enforced: the numbers are for docs/native.md and for who works on the executor. With
 * PRONY_BENCH_CPU_TIME set the clock is that of the process, which on one thread is less disturbed
 * where others use the machine; with PRONY_BENCH_COMMANDS the slowest commands are listed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "adapters/native/inspect.h"
#include "adapters/native/native.h"
#include "base/memory.h"
#include "base/random.h"
#include "networks/zoo/zoo.h"

#define SEED 7
#define COLD_BYTES ((size_t)32 << 20)
#define STEPS_NS_MAX 3000000000 /* for all timed steps */
#define COMMANDS_SHOWN 12

/* Allocations of the whole process, the library's included: ours stand before glibc's. */
static volatile long allocations;
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
	allocations++;
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	allocations++;
	return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	allocations++;
	return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	allocations++;
	return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
	allocations++;
	*out = __libc_memalign(alignment, bytes);
	return *out ? 0 : ENOMEM;
}

/* One line of the table. */
struct task {
	const char *network, *stage;
	int64_t batch;
	int threads;
};

struct timing {
	double warm_ns, cold_ns;
	const char *name;
	bool primitive;
};

static clockid_t clock_used = CLOCK_MONOTONIC;

static int64_t now_ns(void)
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

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), ascending);
	return values[count / 2];
}

static void fail(const struct error *err)
{
	fprintf(stderr, "bench_floor: %s\n", err->text);
	exit(EXIT_FAILURE);
}

static unsigned char *cold;

/* Pushes everything out of the caches of the calling thread's processor, and of those next to it.
 */
static void empty_caches(void)
{
	for (size_t i = 0; i < COLD_BYTES; i += 64)
		cold[i]++;
}

enum { REPEATS_MAX = 21, REPEATS_MIN = 3 };

static double time_command(struct program *program, int i, bool warm)
{
	double values[REPEATS_MAX];
	int64_t spent_ns = 0;
	int count = 0;
	struct error err = ERROR_INIT;

	if (warm && program_run_one(program, i, &err) != PRONY_OK)
		fail(&err);
	while (count < REPEATS_MIN || (warm && count < REPEATS_MAX && spent_ns < 4000000)) {
		int64_t begin_ns;

		if (!warm)
			empty_caches();
		begin_ns = now_ns();
		if (program_run_one(program, i, &err) != PRONY_OK)
			fail(&err);
		values[count] = (double)(now_ns() - begin_ns);
		spent_ns += (int64_t)values[count++];
	}
	return median(values, count);
}

static void fill(struct tensor *input, struct tensor *labels, int64_t classes)
{
	struct random random;

	random_init(&random, SEED);
	for (int64_t i = 0; i < shape_elements(&input->shape); i++)
		((float *)input->data)[i] = (float)random_normal(&random);
	for (int64_t i = 0; i < shape_elements(&labels->shape); i++)
		((int64_t *)labels->data)[i] = (int64_t)random_below(&random, (uint64_t)classes);
}

/* What the bench holds of one network. */
struct bench {
	struct arena arena;
	struct graph graph;
	struct recipe recipe;
	struct session session;
	struct tensor_set weights;
	struct tensor input, labels;
	struct built built;
};

static void open_bench(struct bench *b, const struct task *task, const char *library)
{
	const struct adapter *a = &adapter_native;
	struct error err = ERROR_INIT;
	struct effective effective;
	struct probe probe;
	enum prony_status status =
		zoo_build(zoo_find(task->network, NULL), task->batch, &b->graph, &err);

	arena_init(&b->arena, 0);
	recipe_defaults(&b->recipe);
	b->recipe.stage = strcmp(task->stage, "train") == 0 ? STAGE_TRAIN : STAGE_FORWARD;
	b->recipe.batch = task->batch;
	b->recipe.slots = 1;
	b->recipe.threads = task->threads;
	b->recipe.learning_rate = 1e-6; /* hundreds of steps on one batch must stay finite */
	b->session = (struct session){.library = library, .option = ""};
	b->session.private_data = arena_alloc(&b->arena, a->private_size);
	if (status == PRONY_OK)
		status = graph_initial_weights(&b->graph, SEED, &b->arena, &b->weights, &err);
	if (status == PRONY_OK)
		status = tensor_new(&b->arena, "input", DTYPE_F32,
				    &b->graph.values[b->graph.input].shape, &b->input, &err);
	if (status == PRONY_OK)
		status = tensor_new(&b->arena, "labels", DTYPE_I64,
				    &b->graph.values[b->graph.label].shape, &b->labels, &err);
	if (status != PRONY_OK)
		fail(&err);
	fill(&b->input, &b->labels, graph_classes(&b->graph));
	status = a->probe(&b->session, &probe, &err);
	if (status == PRONY_OK)
		status = a->supports(&b->graph, &b->recipe, &err);
	if (status == PRONY_OK)
		status = a->open(&b->session, &b->recipe, &effective, &err);
	if (status == PRONY_OK)
		status = a->build(&b->session, &b->graph, &b->recipe, &b->weights, &b->built, &err);
	if (status == PRONY_OK)
		status = a->feed(&b->session, 0, &b->input, &b->labels, &err);
	if (status != PRONY_OK)
		fail(&err);
}

static double time_steps(struct bench *b, long *allocated)
{
	double values[201];
	int64_t spent_ns = 0;
	int count = 0;
	struct error err = ERROR_INIT;
	long before;

	for (int i = 0; i < 2; i++) {
		if (adapter_native.step(&b->session, 0, &err) != PRONY_OK)
			fail(&err);
	}
	before = allocations;
	while (count < 201 && (count < REPEATS_MIN || spent_ns < STEPS_NS_MAX)) {
		int64_t begin_ns = now_ns();

		if (adapter_native.step(&b->session, 0, &err) != PRONY_OK ||
		    adapter_native.sync(&b->session, &err) != PRONY_OK)
			fail(&err);
		values[count] = (double)(now_ns() - begin_ns);
		spent_ns += (int64_t)values[count++];
	}
	*allocated = (allocations - before) / count;
	return median(values, count);
}

/* Multiply-accumulates of one step, from the operator table. */
static double step_macs(const struct graph *graph)
{
	double macs = 0;

	for (int n = 0; n < graph->node_count; n++) {
		const struct operator_row *row = operator_row(graph->nodes[n].op);

		if (row->macs)
			macs += (double)row->macs(graph, &graph->nodes[n]);
	}
	return macs;
}

/* The best of the library's own matrix product: the peak that can be had with its kernels. */
static double peak_flops(const struct onednn *dnn)
{
	enum { SIZE = 1536 };
	typedef dnnl_status_t sgemm(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float,
				    const float *, dnnl_dim_t, const float *, dnnl_dim_t, float,
				    float *, dnnl_dim_t);
	union {
		void *address;
		sgemm *call;
	} found = {.address = dlsym(dnn->handle, "dnnl_sgemm")};
	size_t bytes = (size_t)SIZE * SIZE * sizeof(float);
	float *a = memory_alloc(bytes), *b = memory_alloc(bytes), *c = memory_alloc(bytes);
	double best = 0;

	memset(a, 0, bytes);
	memset(b, 0, bytes);
	for (int i = 0; found.address && i < 12; i++) {
		int64_t begin_ns = now_ns();
		double flops;

		found.call('N', 'N', SIZE, SIZE, SIZE, 1, a, SIZE, b, SIZE, 0, c, SIZE);
		flops = 2.0 * SIZE * SIZE * SIZE / (double)(now_ns() - begin_ns) * 1e9;
		best = flops > best ? flops : best;
	}
	free(a);
	free(b);
	free(c);
	return best;
}

static int slowest(const void *a, const void *b)
{
	double x = ((const struct timing *)a)->warm_ns, y = ((const struct timing *)b)->warm_ns;

	return (x < y) - (x > y);
}

static void report(const struct task *task, struct bench *b)
{
	struct program *program = native_program(&b->session);
	struct timing *timings =
		arena_array(&b->arena, (size_t)program->command_count + 1, sizeof(*timings));
	double warm = 0, cold_sum = 0, loops = 0, peak = peak_flops(program->dnn), step;
	int reorders = 0, of_weights = 0;
	long allocated = 0;

	step = time_steps(b, &allocated);
	for (int i = 0; i < program->command_count; i++) {
		const struct command *command = &program->commands[i];

		timings[i] = (struct timing){.warm_ns = time_command(program, i, true),
					     .cold_ns = time_command(program, i, false),
					     .name = command->name,
					     .primitive = command->primitive != NULL};
		warm += timings[i].warm_ns;
		cold_sum += timings[i].cold_ns;
		loops += command->primitive ? 0 : timings[i].warm_ns;
		if (strstr(command->name, " reorder")) {
			int from = program_root(program, command->operands[0]);
			bool weights = program->operands[from].region == REGION_PARAMETER;

			reorders += !weights;
			of_weights += weights;
		}
	}
	double again = time_steps(b, &allocated);

	step = again < step ? again : step;
	printf("%-14s %3lld %-7s %d  %10.3f  %6.3f %6.3f  %8.3f  %4d %4d %6ld  %5.0f %5.2f  "
	       "%5.0f\n",
	       task->network, (long long)task->batch, task->stage, task->threads, step / 1e6,
	       step / warm, step / cold_sum, loops / 1e6, reorders, of_weights, allocated,
	       2 * step_macs(&b->graph) / step, 2e9 * step_macs(&b->graph) / step / peak,
	       (double)program->planned_bytes / 1e6);
	if (getenv("PRONY_BENCH_COMMANDS")) {
		qsort(timings, (size_t)program->command_count, sizeof(*timings), slowest);
		for (int i = 0; i < program->command_count && i < COMMANDS_SHOWN; i++)
			printf("    %-52s %10.1f us warm %10.1f us cold\n", timings[i].name,
			       timings[i].warm_ns / 1e3, timings[i].cold_ns / 1e3);
		printf("    %s\n", b->built.notes);
	}
	fflush(stdout);
}

/* In a child: a session lives once in a process. */
static bool run(const struct task *task, const char *library)
{
	int end = 0;
	pid_t pid = fork();

	if (pid == 0) {
		static struct bench b;

		cold = memory_alloc(COLD_BYTES);
		memset(cold, 0, COLD_BYTES);
		open_bench(&b, task, library);
		report(task, &b);
		adapter_native.close(&b.session);
		graph_release(&b.graph);
		arena_release(&b.arena);
		exit(EXIT_SUCCESS);
	}
	return pid > 0 && waitpid(pid, &end, 0) == pid && WIFEXITED(end) && WEXITSTATUS(end) == 0;
}

int main(int argc, char **argv)
{
	static const struct task tasks[] = {
		{"lenet", "train", 64, 2},     {"lenet", "train", 1, 1},
		{"lstm", "train", 32, 2},      {"resnet50", "forward", 8, 2},
		{"resnet50", "train", 8, 2},   {"vgg16", "forward", 8, 2},
		{"vgg16", "train", 8, 2},      {"alexnet", "forward", 8, 2},
		{"alexnet", "train", 8, 2},    {"googlenet", "forward", 8, 2},
		{"googlenet", "train", 8, 2},  {"inception3", "forward", 8, 2},
		{"inception3", "train", 8, 2},
	};
	const char *library = getenv("PRONY_NATIVE_LIBRARY");
	bool good = true;

	if (!library || argc == 2 || argc == 3 || argc > 5) {
		fprintf(stderr, "usage: PRONY_NATIVE_LIBRARY=PATH bench_floor "
				"[NETWORK BATCH forward|train [THREADS]]\n");
		return EXIT_FAILURE;
	}
	if (getenv("PRONY_BENCH_CPU_TIME"))
		clock_used = CLOCK_PROCESS_CPUTIME_ID;
	printf("network      batch stage threads  step ms  /warm  /cold  own ms  reorders: "
	       "activations, weights; allocs  "
	       "GFLOP/s of-peak  MB\n");
	fflush(stdout);
	if (argc > 3) {
		struct task task = {argv[1], argv[3], strtoll(argv[2], NULL, 10),
				    argc > 4 ? (int)strtol(argv[4], NULL, 10) : 2};

		return run(&task, library) ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
		good &= run(&tasks[i], library);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
