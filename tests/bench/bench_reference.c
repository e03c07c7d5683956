/* Measures the time of the float64 reference: its matrix product, layers of ResNet50 and VGG16
 * forward and backward, and an estimate from them for the parity gate of the large networks.
 * `bench_reference NETWORK [BATCH]` measures one gate of a network of the zoo instead. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "graph/gemm_f64.h"
#include "parity/gate.h"
#include "parity/kernels_internal.h"
#include "parity/reference.h"
#include "zoo/zoo.h"

#define REPEATS 3

static void check(enum prony_status status, const struct error *err)
{
	if (status == PRONY_OK)
		return;
	fprintf(stderr, "%s\n", err->text);
	exit(EXIT_FAILURE);
}

static double *noise(int64_t count)
{
	double *x = memory_alloc((size_t)count * sizeof(*x));
	struct random random;

	random_init(&random, 1);
	for (int64_t i = 0; i < count; i++)
		x[i] = random_normal(&random);
	return x;
}

static double seconds_since(int64_t begin_ns)
{
	return (double)(clock_monotonic_ns() - begin_ns) * 1e-9;
}

/* Returns the CPU time of all threads: the time on one core without other programs. */
static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Returns the best of the repeats, in GFLOP/s; *per_core gets GFLOP per second of a core. */
static double product_speed(int64_t size, enum gemm_f64_set set, int threads, double *per_core)
{
	double *a = noise(size * size), *b = noise(size * size), *c = noise(size * size);
	double best = 0;

	for (int i = 0; i < REPEATS; i++) {
		int64_t begin_ns = clock_monotonic_ns();
		double begin_cpu = cpu_seconds();

		gemm_f64(&(struct gemm_f64){.rows = size,
					    .columns = size,
					    .depth = size,
					    .alpha = 1,
					    .a = gemm_f64_matrix(a, 1, size),
					    .b = gemm_f64_matrix(b, size, 1),
					    .target = gemm_f64_rows(c, size),
					    .threads = threads,
					    .set = set});
		double flops = 2e-9 * (double)size * (double)size * (double)size;
		double speed = flops / seconds_since(begin_ns);
		double core = flops / (cpu_seconds() - begin_cpu);

		best = speed > best ? speed : best;
		*per_core = core > *per_core ? core : *per_core;
	}
	free(a), free(b), free(c);
	return best;
}

static void bench_products(void)
{
	static const struct {
		const char *name;
		enum gemm_f64_set set;
	} sets[] = {{"baseline", GEMM_F64_BASELINE},
		    {"AVX2", GEMM_F64_AVX2},
		    {"AVX-512", GEMM_F64_AVX512}};

	printf("product of 1536 x 1536, GFLOP/s: one thread, all, all per second of a core\n");
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		double per_core = 0;

		if (!gemm_f64_has(sets[i].set))
			continue;
		double one = product_speed(1536, sets[i].set, 1, &per_core);
		per_core = 0;
		double all = product_speed(1536, sets[i].set, 0, &per_core);
		printf("  %-10s %7.1f %7.1f %7.1f\n", sets[i].name, one, all, per_core);
	}
}

/* Square convolutions of the networks, and the share of the network's MACs in such layers. */
struct layer {
	const char *name;
	int64_t channels, size, outputs, kernel, stride, pad;
};

static const struct layer layers[] = {
	{"resnet50 conv1", 3, 224, 64, 7, 2, 3},
	{"resnet50 1x1 64-256", 64, 56, 256, 1, 1, 0},
	{"resnet50 3x3 64", 64, 56, 64, 3, 1, 1},
	{"resnet50 3x3 128/2", 128, 56, 128, 3, 2, 1},
	{"resnet50 1x1 512/2", 512, 28, 1024, 1, 2, 0},
	{"resnet50 3x3 256", 256, 14, 256, 3, 1, 1},
	{"resnet50 1x1 512-2048", 512, 7, 2048, 1, 1, 0},
	{"resnet50 3x3 512", 512, 7, 512, 3, 1, 1},
	{"vgg16 conv1_2", 64, 224, 64, 3, 1, 1},
	{"vgg16 conv3_2", 256, 56, 256, 3, 1, 1},
	{"vgg16 conv5_2", 512, 14, 512, 3, 1, 1},
	{"densenet161 3x3", 192, 14, 48, 3, 1, 1},
	{"depthwise 5x5 of 44", 44, 28, 44, 5, 1, 2},
};

/* Values of the graph with one node. */
enum { X, K, Y, VALUES };

/* Returns seconds of a core, which other programs on the machine change little. */
static double run_operator(const struct layer *layer, int64_t batch, double *const arrays[VALUES],
			   int which)
{
	static const int inputs[VALUES][2] = {[X] = {Y, K}, [K] = {X, Y}, [Y] = {X, K}};
	static const enum op ops[VALUES] = {OP_CONV_GRAD_INPUT, OP_CONV_GRAD_WEIGHT, OP_CONV};
	int64_t group = strncmp(layer->name, "depthwise", 9) == 0 ? layer->channels : 1;
	int64_t out = (layer->size + 2 * layer->pad - layer->kernel) / layer->stride + 1;
	struct value values[VALUES] = {
		[X] = {.shape = {4, {batch, layer->channels, layer->size, layer->size}}},
		[K] = {.shape = {4,
				 {layer->outputs, layer->channels / group, layer->kernel,
				  layer->kernel}}},
		[Y] = {.shape = {4, {batch, layer->outputs, out, out}}},
	};
	struct graph graph = {.values = values, .value_count = VALUES};
	struct node node = {.input_count = 2,
			    .inputs = {inputs[which][0], inputs[which][1]},
			    .output_count = 1,
			    .outputs = {which},
			    .attributes = {.kernel = {layer->kernel, layer->kernel},
					   .strides = {layer->stride, layer->stride},
					   .dilations = {1, 1},
					   .pads = {layer->pad, layer->pad, layer->pad, layer->pad},
					   .group = group}};
	double begin = cpu_seconds();

	operator_row(ops[which])
		->compute(&(struct kernel_call){.graph = &graph, .node = &node, .values = arrays});
	return cpu_seconds() - begin;
}

static void bench_layers(int64_t batch)
{
	printf("layers at batch %d, ms of a core: forward, gradient of input, of weights; GFLOP/s "
	       "of all\n",
	       (int)batch);
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		const struct layer *l = &layers[i];
		int64_t out = (l->size + 2 * l->pad - l->kernel) / l->stride + 1;
		int64_t depth = l->kernel * l->kernel *
				(strncmp(l->name, "depthwise", 9) == 0 ? 1 : l->channels);
		double macs = (double)(batch * l->outputs * out * out * depth);
		double *arrays[VALUES] = {noise(batch * l->channels * l->size * l->size),
					  noise(l->outputs * depth),
					  noise(batch * l->outputs * out * out)};
		double spent[VALUES] = {1e9, 1e9, 1e9};

		for (int r = 0; r < REPEATS; r++)
			for (int which = 0; which < VALUES; which++) {
				double s = run_operator(l, batch, arrays, which);

				spent[which] = s < spent[which] ? s : spent[which];
			}
		printf("  %-22s %8.2f %8.2f %8.2f %7.1f\n", l->name, 1e3 * spent[Y], 1e3 * spent[X],
		       1e3 * spent[K], 6e-9 * macs / (spent[X] + spent[K] + spent[Y]));
		for (int v = 0; v < VALUES; v++)
			free(arrays[v]);
	}
}

/* Fills the gate's batches with random pictures. */
static void fill_batches(const struct graph *graph, struct arena *arena, struct tensor_set *inputs,
			 struct tensor_set *labels)
{
	const struct value *x = &graph->values[graph_input(graph, 0)],
			   *y = &graph->values[graph_label(graph, 0)];
	struct error err = ERROR_INIT;
	struct random random;

	random_init(&random, 2);
	for (size_t i = 0; i < GATE_UPDATES; i++) {
		check(tensor_new(arena, "x", DTYPE_F32, &x->shape, &inputs->tensors[i], &err),
		      &err);
		check(tensor_new(arena, "y", DTYPE_I64, &y->shape, &labels->tensors[i], &err),
		      &err);
		for (int64_t j = 0; j < shape_elements(&x->shape); j++)
			((float *)inputs->tensors[i].data)[j] = (float)random_normal(&random);
		for (int64_t j = 0; j < shape_elements(&y->shape); j++)
			((int64_t *)labels->tensors[i].data)[j] =
				(int64_t)random_below(&random, (uint64_t)graph_classes(graph));
	}
}

static double norm(const struct tensor *tensor)
{
	const double *x = tensor->data;
	double sum = 0;

	for (int64_t i = 0; i < shape_elements(&tensor->shape); i++)
		sum += x[i] * x[i];
	return sqrt(sum);
}

/* Prints how much the comparisons that are too close to call widen the bounds. */
static void print_slack(const struct gate_expected *answer)
{
	double largest = 0, sum = 0;

	for (size_t i = 0; i < answer->change.count; i++) {
		double slack = answer->tensor_slack[i] / norm(&answer->change.tensors[i]);

		largest = slack > largest ? slack : largest;
		sum += slack;
	}
	printf("  slack of a change: mean %.2g, largest %.2g; of logits %.2g %.2g %.2g\n",
	       sum / (double)answer->change.count, largest, answer->logits_slack[0],
	       answer->logits_slack[1], answer->logits_slack[2]);
}

static void bench_gate(const char *name, int64_t batch)
{
	const struct network *network = zoo_find(name, NULL);
	struct error err = ERROR_INIT;
	struct tensor tensors[2][GATE_UPDATES];
	struct tensor_set weights, inputs = {tensors[0], GATE_UPDATES},
				   labels = {tensors[1], GATE_UPDATES};
	struct recipe cell, gate;
	struct gate_reference reference;
	struct graph graph;
	struct arena arena;
	struct rusage usage;

	if (!network) {
		fprintf(stderr, "no network %s\n", name);
		exit(EXIT_FAILURE);
	}
	arena_init(&arena, 0);
	recipe_defaults(&cell);
	cell.stage = STAGE_TRAIN;
	cell.batch = batch;
	gate_recipe(&cell, network_gate_rate(network, cell.optimiser), &gate);
	check(zoo_build(network, gate.batch, &graph, &err), &err);
	check(graph_initial_weights(&graph, 1, &arena, &weights, &err), &err);
	fill_batches(&graph, &arena, &inputs, &labels);
	int64_t begin_ns = clock_monotonic_ns();
	double begin_cpu = cpu_seconds();
	check(gate_reference_init(&reference, &graph, &gate, &weights, &inputs, &labels, NULL,
				  &err),
	      &err);
	double spent = seconds_since(begin_ns), cpu = cpu_seconds() - begin_cpu;
	getrusage(RUSAGE_SELF, &usage);
	printf("%s, gate of batch %d: %.1f s, %.1f s of a core, %.2f GiB, %d answers, %lld "
	       "comparisons too close, "
	       "loss %.6f %.6f %.6f\n",
	       name, (int)gate.batch, spent, cpu, (double)usage.ru_maxrss / 0x1p20,
	       reference.expected_count, (long long)reference.expected[0].kinks,
	       reference.expected[0].loss[0], reference.expected[0].loss[1],
	       reference.expected[0].loss[2]);
	print_slack(&reference.expected[0]);
	gate_reference_release(&reference);
	graph_release(&graph);
	arena_release(&arena);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		bench_gate(argv[1], argc > 2 ? strtol(argv[2], NULL, 10) : 8);
		return EXIT_SUCCESS;
	}
	bench_products();
	bench_layers(8);
	return EXIT_SUCCESS;
}
