/* The work of the stages prefill and decode. */
#include "run/step_work.h"

#include <string.h>

#include "parity/prefix.h"

/* The gate's caches are rounded to fp32. */
#define PREFIX_TOLERANCE 1e-4

void step_work_positions(const struct network *network, const struct graph *graph,
			 struct tensor_set *inputs)
{
	size_t step = (size_t)graph_inputs(graph, NULL, 0);

	if (network->stage != STAGE_DECODE)
		return;
	for (size_t i = 1; i < inputs->count; i += step) {
		int64_t *position = inputs->tensors[i].data;

		for (int64_t n = 0; n < graph_batch(graph); n++)
			position[n] = network->tokens + (int64_t)(i / step) % CACHE_ROOM;
	}
}

/* The tokens of the gate's decode steps are those of the whole sequence behind the prompt. */
static void continue_prompt(struct workload *work, const struct tensor *whole, int64_t prompt)
{
	int64_t batch = whole->shape.dims[0], length = whole->shape.dims[1];
	const int64_t *from = whole->data;

	for (size_t i = 0; 2 * i < work->gate_inputs.count; i++)
		for (int64_t n = 0; n < batch; n++)
			((int64_t *)work->gate_inputs.tensors[2 * i].data)[n] =
				from[n * length + prompt + (int64_t)i];
}

static enum prony_status take_caches(struct workload *work, const struct reference *whole,
				     int64_t prompt, struct error *err)
{
	enum prony_status status =
		prefix_fill_caches(whole, &work->gate_graph, prompt, &work->gate_weights, err);

	for (int i = 0; status == PRONY_OK && i < GATE_UPDATES; i++)
		status = prefix_logits(whole, prompt + i, &work->arena, &work->prefix_logits[i],
				       err);
	return status;
}

/* The forward pass of a prompt and the tokens behind it, and its tokens. */
static enum prony_status draw_whole(const struct workload *work, struct arena *arena,
				    struct graph *graph, struct tensor_set *inputs,
				    struct error *err)
{
	const struct network *network = &work->gate_network;
	struct tensor_set labels;
	enum prony_status status =
		zoo_build_step(network, work->gate_recipe.batch, network->tokens + GATE_UPDATES,
			       STAGE_FORWARD, graph, err);

	return status == PRONY_OK
		       ? batches_draw(graph, work->gate_seed, 0, 1, 0, arena, inputs, &labels, err)
		       : status;
}

enum prony_status step_work_gate(struct workload *work, struct error *err)
{
	struct tensor_set inputs = {0};
	struct graph whole = {0};
	struct arena arena;
	enum prony_status status;

	arena_init(&arena, 0);
	status = draw_whole(work, &arena, &whole, &inputs, err);
	step_work_positions(&work->gate_network, &work->gate_graph, &work->gate_inputs);
	if (status == PRONY_OK)
		continue_prompt(work, &inputs.tensors[0], work->gate_network.tokens);
	graph_release(&whole);
	arena_release(&arena);
	return status;
}

enum prony_status step_work_prefix(struct workload *work, struct error *err)
{
	struct tensor_set weights, inputs;
	struct recipe recipe = work->gate_recipe;
	struct reference whole = {0};
	struct graph graph = {0};
	struct arena arena;
	enum prony_status status = PRONY_OK;

	if (work->gate_network.stage != STAGE_DECODE || work->prefix_logits[0].data)
		return PRONY_OK;
	arena_init(&arena, 0);
	status = draw_whole(work, &arena, &graph, &inputs, err);
	if (status == PRONY_OK)
		status = graph_weights_like(&graph, &work->weights, work->gate_seed, &arena,
					    &weights, err);
	if (status == PRONY_OK)
		status = reference_init(&whole, &graph, &weights, err);
	if (status == PRONY_OK)
		status = reference_feed(
			&whole, (struct batch){.inputs = inputs.tensors, .input_count = 1}, err);
	if (status == PRONY_OK)
		status = reference_forward(&whole, &recipe, false, err);
	if (status == PRONY_OK)
		status = take_caches(work, &whole, work->gate_network.tokens, err);
	reference_release(&whole);
	graph_release(&graph);
	arena_release(&arena);
	return status;
}

enum prony_status step_work_check(const struct workload *work, struct error *err)
{
	for (int i = 0; i < GATE_UPDATES && work->prefix_logits[i].data; i++) {
		double distance =
			prefix_distance(&work->prefix_logits[i], &work->gate.expected[0].logits[i]);

		if (!(distance <= PREFIX_TOLERANCE))
			return error_set(err, PRONY_INTERNAL,
					 "decode step %d of the reference differs by %.3g from its "
					 "forward pass of the whole prefix",
					 i, distance);
	}
	return PRONY_OK;
}
