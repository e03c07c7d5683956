/*
 * A user's ONNX model through the gate, forward, in native and onnxruntime, as it is and with what
 * is wrong on purpose: for tests/e2e/test_light_models.py.
 *
 *     onnx_gate MODEL.onnx SEED NATIVE ONNXRUNTIME
 *
 * SEED 0 takes the file's weights, else they are drawn. The last two are libraries.
 * Prints a line for each: who, what is wrong ("nothing"), "passed" or "rejected", and the worst
 * figure in units of its bound. One sample; each in a process of its own.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/native/native.h"
#include "adapters/onnxruntime/onnxruntime.h"
#include "base/random.h"
#include "onnx/import.h"
#include "parity/gate.h"
#include "unit/framework_exercise.h"

#define WRONG_EPSILON 1e-3 /* where files have 1e-5 */

struct job {
	struct exercise e;
	struct onnx_model *model;
	struct gate_reference ref;
	struct recipe gate;
};

/* The node that reads a weight first, and as which input. */
static const struct node *reader_of(const struct graph *graph, int value, int *input)
{
	for (int n = 0; n < graph->forward_count; n++)
		for (*input = 0; *input < graph->nodes[n].input_count; ++*input)
			if (graph->nodes[n].inputs[*input] == value)
				return &graph->nodes[n];
	return NULL;
}

/* Weights He-normal by their fan-in; factors and running variances 0.5 to 1.5; biases and means
 * normal of 0.1. Constants stay. */
static void draw(const struct graph *graph, struct tensor_set *weights, uint64_t seed)
{
	for (size_t i = 0; i < weights->count; i++) {
		struct tensor *w = &weights->tensors[i];
		int64_t count = shape_elements(&w->shape), longest = 1;
		float *data = w->data;
		struct random random;
		int input = 0;
		const struct node *node =
			reader_of(graph, graph_find_value(graph, w->name), &input);
		bool norm = node && node->op == OP_BATCH_NORM;

		for (int k = 0; k < w->shape.rank; k++)
			longest = w->shape.dims[k] > longest ? w->shape.dims[k] : longest;
		if (!node || count == 1)
			continue;
		random_init_named(&random, seed, w->name);
		for (int64_t k = 0; k < count; k++) {
			if (count > longest)
				data[k] =
					(float)(random_normal(&random) *
						sqrt(2 * (double)w->shape.dims[0] / (double)count));
			else if ((norm && (input == 1 || input == 4)) || node->op == OP_MUL)
				data[k] = (float)(0.5 + random_uniform(&random));
			else
				data[k] = (float)(0.1 * random_normal(&random));
		}
	}
}

/* The model's own are not to be written. */
static enum prony_status copy_weights(const struct tensor_set *from, struct arena *arena,
				      struct tensor_set *to, struct error *err)
{
	enum prony_status status = PRONY_OK;

	to->tensors = arena_array(arena, from->count + 1, sizeof(*to->tensors));
	for (to->count = 0; to->count < from->count && status == PRONY_OK; to->count++) {
		const struct tensor *tensor = &from->tensors[to->count];
		struct tensor *copy = &to->tensors[to->count];

		status = tensor_new(arena, tensor->name, tensor->dtype, &tensor->shape, copy, err);
		if (status == PRONY_OK)
			memcpy(copy->data, tensor->data, (size_t)tensor_bytes(tensor));
	}
	return status;
}

static enum prony_status prepare(struct job *job, const char *path, uint64_t seed,
				 struct error *err)
{
	struct exercise *e = &job->e;
	enum prony_status status = onnx_model_open(path, NULL, &job->model, err);

	arena_init(&e->arena, 0);
	if (status == PRONY_OK)
		status = onnx_model_import(job->model, err);
	if (status == PRONY_OK)
		status = onnx_model_graph(job->model, 1, &e->graph, err);
	if (status == PRONY_OK)
		status = copy_weights(onnx_model_weights(job->model), &e->arena, &e->weights, err);
	if (status != PRONY_OK)
		return status;
	if (seed > 0)
		draw(&e->graph, &e->weights, seed);
	recipe_defaults(&e->recipe);
	e->recipe.stage = STAGE_FORWARD;
	e->recipe.batch = 1;
	e->recipe.slots = EXERCISE_SLOTS;
	e->recipe.dropout = false;
	e->recipe.threads = 2;
	exercise_fill(e);
	job->gate = e->recipe;
	return gate_reference_init(
		&job->ref, &e->graph, &job->gate, &e->weights,
		&(struct tensor_set){.tensors = e->inputs, .count = GATE_UPDATES},
		&(struct tensor_set){.tensors = e->labels, .count = GATE_UPDATES}, NULL, err);
}

/* Two output channels of the convolution in the middle change places. */
static bool swap_channels(struct exercise *e)
{
	for (int n = e->graph.forward_count / 2; n < e->graph.forward_count; n++) {
		const struct node *node = &e->graph.nodes[n];
		const struct tensor *w;
		int64_t filter;
		float *a, *b;

		if (node->op != OP_CONV)
			continue;
		w = tensor_find(&e->weights, e->graph.values[node->inputs[1]].name);
		filter = shape_elements(&w->shape) / w->shape.dims[0];
		a = w->data;
		b = a + filter;
		for (int64_t i = 0; i < filter; i++) {
			float kept = a[i];

			a[i] = b[i];
			b[i] = kept;
		}
		return true;
	}
	return false;
}

static bool change_epsilon(struct exercise *e)
{
	bool found = false;

	for (int n = 0; n < e->graph.forward_count; n++) {
		if (e->graph.nodes[n].op != OP_BATCH_NORM)
			continue;
		e->graph.nodes[n].attributes.epsilon = WRONG_EPSILON;
		found = true;
	}
	return found;
}

static enum prony_status judge(struct job *job, const char *what, struct error *err)
{
	struct gate_observed observed = {.loss = {NAN, NAN, NAN}};
	struct exercise *e = &job->e;
	struct tensor_set set, labels = {.tensors = e->labels, .count = GATE_UPDATES};
	struct gate_verdict verdict = {.count = 0};
	enum prony_status status = exercise_open(e, err);

	for (int i = 0; status == PRONY_OK && i < GATE_UPDATES; i++) {
		status = exercise_step(e, i, err);
		if (status == PRONY_OK)
			status = exercise_read(e, READ_LOGITS, &set, err);
		observed.logits[i] = set.tensors;
	}
	if (status != PRONY_OK)
		return status;
	observed.parameters = e->built.parameters;
	observed.macs = e->built.macs;
	status = gate_compare(&job->ref, &e->graph, &job->gate, &labels, &observed, &e->arena,
			      &verdict, err);
	printf("%s %s %s %.3g\n", e->adapter->name, what,
	       status == PRONY_OK ? "passed" : "rejected", verdict.worst_ratio);
	return status == PRONY_MISMATCH ? PRONY_OK : status;
}

static const struct mistake {
	const char *name;
	bool (*make)(struct exercise *e); /* false where the model has no place for it */
} mistakes[] = {{"nothing", NULL}, {"channels", swap_channels}, {"epsilon", change_epsilon}};

/* In a child: a session lives once per process. False when it could not be judged. */
static bool attempt(struct job *job, const struct adapter *adapter, const char *library,
		    const struct mistake *mistake)
{
	struct error err = ERROR_INIT;
	enum prony_status status;
	int end = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid > 0)
		return waitpid(pid, &end, 0) == pid && WIFEXITED(end) && WEXITSTATUS(end) == 0;
	if (pid < 0)
		return false;
	job->e.adapter = adapter;
	job->e.library = library;
	job->e.session.library = library;
	job->e.session.option = "";
	target_defaults(&job->e.session.target);
	job->e.session.private_data = arena_alloc(&job->e.arena, adapter->private_size);
	if (mistake->make && !mistake->make(&job->e))
		exit(0);
	status = judge(job, mistake->name, &err);
	adapter->close(&job->e.session);
	if (status != PRONY_OK)
		fprintf(stderr, "onnx_gate: %s, %s: %s\n", adapter->name, mistake->name, err.text);
	exit(status == PRONY_OK ? 0 : 1);
}

int main(int argc, char **argv)
{
	static struct job job;
	struct error err = ERROR_INIT;
	bool good = true;

	if (argc != 5) {
		fprintf(stderr, "usage: onnx_gate MODEL.onnx SEED NATIVE ONNXRUNTIME\n");
		return 2;
	}
	if (prepare(&job, argv[1], strtoull(argv[2], NULL, 10), &err) != PRONY_OK) {
		fprintf(stderr, "onnx_gate: %s\n", err.text);
		return 1;
	}
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		good = attempt(&job, &adapter_native, argv[3], &mistakes[i]) && good;
		good = attempt(&job, &adapter_onnxruntime, argv[4], &mistakes[i]) && good;
	}
	gate_reference_release(&job.ref);
	onnx_model_free(job.model);
	graph_release(&job.e.graph);
	arena_release(&job.e.arena);
	return good ? 0 : 1;
}
