#include <stdlib.h>
#include <string.h>

#include "adapters/native/native.h"
#include "base/random.h"
#include "tests/bench/floor.h"

#define SEED 7

_Noreturn void floor_fail(const struct error *err)
{
	fprintf(stderr, "bench_floor: %s\n", err->text);
	exit(EXIT_FAILURE);
}

static enum prony_status make_graph(struct floor_session *s, struct error *err)
{
	const struct network *network = zoo_find(s->task.network, NULL);
	enum prony_status status;

	if (network_is_file(s->task.network)) {
		status = network_file_open(s->task.network, NULL, &s->file, err);
		if (status != PRONY_OK)
			return status;
		if (s->file->reason)
			return error_set(err, PRONY_UNSUPPORTED, "%s", s->file->reason);
		network = &s->file->network;
	}
	if (!network)
		return error_set(err, PRONY_BAD_INPUT, "there is no network '%s'", s->task.network);
	status = network_build(network, s->task.batch, &s->graph, err);
	if (status == PRONY_OK)
		status = network_weights(network, &s->graph, SEED, &s->arena, &s->weights, err);
	return status;
}

static enum prony_status make_batch(struct floor_session *s, struct error *err)
{
	const struct graph *graph = &s->graph;
	int64_t classes = graph_classes(graph);
	struct random random;
	enum prony_status status =
		tensor_new(&s->arena, "input", DTYPE_F32,
			   &graph->values[graph_input(graph, 0)].shape, &s->input, err);

	if (status == PRONY_OK)
		status = tensor_new(&s->arena, "labels", DTYPE_I64,
				    &graph->values[graph_label(graph, 0)].shape, &s->labels, err);
	if (status != PRONY_OK)
		return status;
	random_init(&random, SEED);
	for (int64_t i = 0; i < shape_elements(&s->input.shape); i++)
		((float *)s->input.data)[i] = (float)random_normal(&random);
	for (int64_t i = 0; i < shape_elements(&s->labels.shape); i++)
		((int64_t *)s->labels.data)[i] = (int64_t)random_below(&random, (uint64_t)classes);
	return PRONY_OK;
}

void floor_open(struct floor_session *s, const struct floor_task *task, const char *library)
{
	const struct adapter *a = &adapter_native;
	struct error err = ERROR_INIT;
	struct effective effective;
	struct probe probe;
	enum prony_status status;

	*s = (struct floor_session){.task = *task};
	arena_init(&s->arena, 0);
	recipe_defaults(&s->recipe);
	s->recipe.stage = strcmp(task->stage, "train") == 0 ? STAGE_TRAIN : STAGE_FORWARD;
	s->recipe.precision = task->bf16 ? PRECISION_BF16 : PRECISION_FP32;
	s->recipe.batch = task->batch;
	s->recipe.slots = 1;
	s->recipe.threads = task->threads;
	s->recipe.learning_rate = 1e-6; /* hundreds of steps on one batch must stay finite */
	s->session = (struct session){.library = library, .option = ""};
	target_defaults(&s->session.target);
	s->session.private_data = arena_alloc(&s->arena, a->private_size);
	status = make_graph(s, &err);
	if (status == PRONY_OK)
		status = make_batch(s, &err);
	if (status == PRONY_OK)
		status = a->probe(&s->session, &probe, &err);
	if (status == PRONY_OK)
		status = a->supports(&s->session.target, &s->graph, &s->recipe, &err);
	if (status == PRONY_OK)
		status = a->open(&s->session, &s->recipe, &effective, &err);
	if (status == PRONY_OK)
		status = a->build(&s->session, &s->graph, &s->recipe, &s->weights, &s->built, &err);
	if (status == PRONY_OK)
		status = a->feed(&s->session, 0, (struct batch){&s->input, &s->labels, 1, 1}, &err);
	if (status != PRONY_OK)
		floor_fail(&err);
	s->program = native_program(&s->session);
}

void floor_close(struct floor_session *s)
{
	adapter_native.close(&s->session);
	graph_release(&s->graph);
	network_file_free(s->file);
	arena_release(&s->arena);
}

void floor_step(struct floor_session *s)
{
	struct error err = ERROR_INIT;

	if (adapter_native.step(&s->session, 0, &err) != PRONY_OK ||
	    adapter_native.sync(&s->session, &err) != PRONY_OK)
		floor_fail(&err);
}
