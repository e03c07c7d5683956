/* Creates the arrays, executors and calls of a network, and runs its steps. */
#include "adapters/mxnet/mxnet_model.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/checks.h"
#include "adapters/mxnet/mxnet_ranks.h"

static enum prony_status make_states(struct mx_model *model, const struct tensor_set *weights,
				     struct error *err)
{
	const struct graph *graph = model->graph;
	enum prony_status status = PRONY_OK;

	model->states =
		arena_array(&model->arena, (size_t)graph->value_count, sizeof(model->states[0]));
	for (int i = 0; status == PRONY_OK && i < graph->value_count; i++) {
		struct mx_constant *state = &model->states[model->state_count];
		const struct tensor *tensor = NULL;

		if (graph->values[i].kind != VALUE_STATE)
			continue;
		state->value = &graph->values[i];
		model->state_count++;
		status = check_weight(weights, state->value, &tensor, err);
		if (status == PRONY_OK)
			status = mx_array_new(model->api, &tensor->shape, tensor->data,
					      &state->array, err);
	}
	return status;
}

static enum prony_status make_recurrents(struct mx_model *model, struct error *err)
{
	const struct graph *graph = model->graph;
	enum prony_status status = PRONY_OK;

	model->recurrents = arena_array(&model->arena, (size_t)graph->forward_count,
					sizeof(model->recurrents[0]));
	for (int i = 0; status == PRONY_OK && i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (node->op == OP_LSTM || node->op == OP_GRU || node->op == OP_RNN)
			status = mx_recurrent_init(&model->recurrents[model->recurrent_count++],
						   model->api, graph, node, model->loss, err);
	}
	return status;
}

/* The recurrent layer of a parameter, and the parameter's input index in the layer's node. */
static const struct mx_recurrent *find_layer(const struct mx_model *model,
					     const struct value *value, int *input)
{
	for (int i = 0; i < model->recurrent_count; i++) {
		const int *inputs = model->recurrents[i].node->inputs;

		if (!model->recurrents[i].weights)
			continue;
		for (*input = 1; *input <= 3; ++*input)
			if (&model->graph->values[inputs[*input]] == value)
				return &model->recurrents[i];
	}
	return NULL;
}

/* Creates windows on the layer's vectors. */
static enum prony_status make_windows(struct mx_model *model, const struct tensor *tensor,
				      struct mx_parameter *parameter, int input, struct error *err)
{
	const struct mx_recurrent *layer = parameter->layer;
	int64_t elements = shape_elements(&tensor->shape);
	float *data = malloc((size_t)elements * sizeof(data[0]));
	enum prony_status status;

	if (!data)
		return error_set(err, PRONY_NOMEM, "no memory for %s", tensor->name);
	memcpy(data, tensor->data, (size_t)elements * sizeof(data[0]));
	if (layer->node->op == OP_LSTM)
		mx_gates_to_mxnet(data, elements);
	status = mx_recurrent_window(model->api, model->graph, layer->node, input, layer->weights,
				     &parameter->weight, err);
	if (status == PRONY_OK)
		status = mx_check(model->api,
				  model->api->MXNDArraySyncCopyFromCPU(parameter->weight, data,
								       (size_t)elements),
				  tensor->name, err);
	free(data);
	if (status == PRONY_OK && model->loss)
		status = mx_recurrent_window(model->api, model->graph, layer->node, input,
					     layer->gradients, &parameter->gradient, err);
	return status;
}

static enum prony_status make_parameter(struct mx_model *model, const struct recipe *recipe,
					const struct tensor_set *weights,
					struct mx_parameter *parameter, struct error *err)
{
	int input;
	const struct value *value = parameter->value;
	const struct tensor *tensor = NULL;
	bool state = model->train && recipe->optimiser != OPTIMISER_SGD;
	enum prony_status status = check_weight(weights, value, &tensor, err);

	parameter->layer = find_layer(model, value, &input);
	if (status == PRONY_OK && parameter->layer)
		status = make_windows(model, tensor, parameter, input, err);
	else if (status == PRONY_OK)
		status = mx_array_new(model->api, &value->shape, tensor->data, &parameter->weight,
				      err);
	if (status == PRONY_OK && model->loss && !parameter->layer)
		status = mx_array_new(model->api, &value->shape, NULL, &parameter->gradient, err);
	if (status == PRONY_OK && state)
		status = mx_array_new(model->api, &value->shape, NULL, &parameter->state, err);
	if (status == PRONY_OK && state && recipe->optimiser == OPTIMISER_ADAMW)
		status = mx_array_new(model->api, &value->shape, NULL, &parameter->square, err);
	return status;
}

static enum prony_status make_parameters(struct mx_model *model, const struct recipe *recipe,
					 const struct tensor_set *weights, struct error *err)
{
	const struct graph *graph = model->graph;
	enum prony_status status = PRONY_OK;

	model->parameters = arena_array(&model->arena, (size_t)graph->value_count,
					sizeof(model->parameters[0]));
	for (int i = 0; status == PRONY_OK && i < graph->value_count; i++) {
		struct mx_parameter *parameter = &model->parameters[model->parameter_count];

		if (graph->values[i].kind != VALUE_PARAMETER)
			continue;
		parameter->value = &graph->values[i];
		model->parameter_count++;
		status = make_parameter(model, recipe, weights, parameter, err);
	}
	return status;
}

/* The arguments of a bind call, in the order in which the symbol lists its arguments. */
struct binding {
	struct mx_ndarray **arguments, **gradients, **statistics;
	uint32_t *requests;
	uint32_t count, statistic_count;
};

static enum prony_status find_state(const struct mx_model *model, const char *name,
				    struct mx_ndarray **out, struct error *err)
{
	for (int i = 0; i < model->state_count; i++) {
		if (strcmp(name, model->states[i].value->name) == 0) {
			*out = model->states[i].array;
			return PRONY_OK;
		}
	}
	return error_set(err, PRONY_INTERNAL,
			 "MXNet's symbol has an argument %s that is not in the network", name);
}

static enum prony_status fill_argument(const struct mx_model *model, const struct mx_slot *bound,
				       const char *name, struct binding *binding, uint32_t index,
				       struct error *err)
{
	const struct graph *graph = model->graph;

	binding->requests[index] = MX_GRADIENT_NONE;
	binding->gradients[index] = NULL;
	for (int i = 0; i < model->input_count; i++) {
		if (strcmp(name, graph->values[graph_input(graph, i)].name) != 0)
			continue;
		binding->arguments[index] = bound->inputs[i];
		return PRONY_OK;
	}
	for (int i = 0; i < model->label_count; i++) {
		if (strcmp(name, graph->values[graph_label(graph, i)].name) != 0)
			continue;
		binding->arguments[index] = bound->labels[i];
		return PRONY_OK;
	}
	for (int i = 0; i < model->parameter_count; i++) {
		const struct mx_parameter *parameter = &model->parameters[i];

		if (strcmp(name, parameter->value->name) != 0)
			continue;
		binding->arguments[index] = parameter->weight;
		binding->gradients[index] = parameter->gradient;
		binding->requests[index] = model->loss ? MX_GRADIENT_WRITE : MX_GRADIENT_NONE;
		return PRONY_OK;
	}
	for (int i = 0; i < model->recurrent_count; i++) {
		if (!mx_recurrent_argument(&model->recurrents[i], name, &binding->arguments[index],
					   &binding->gradients[index]))
			continue;
		if (binding->gradients[index])
			binding->requests[index] = MX_GRADIENT_WRITE;
		return PRONY_OK;
	}
	return find_state(model, name, &binding->arguments[index], err);
}

static enum prony_status list_arguments(const struct mx_model *model, const struct mx_slot *bound,
					struct arena *arena, struct binding *binding,
					struct error *err)
{
	const char **names = NULL;
	enum prony_status status =
		mx_check(model->api,
			 model->api->MXSymbolListArguments(model->symbol, &binding->count, &names),
			 "list arguments", err);

	if (status != PRONY_OK)
		return status;
	binding->arguments = arena_array(arena, binding->count, sizeof(binding->arguments[0]));
	binding->gradients = arena_array(arena, binding->count, sizeof(binding->gradients[0]));
	binding->requests = arena_array(arena, binding->count, sizeof(binding->requests[0]));
	for (uint32_t i = 0; status == PRONY_OK && i < binding->count; i++)
		status = fill_argument(model, bound, names[i], binding, i, err);
	return status;
}

/* Lists the running statistics. */
static enum prony_status list_statistics(const struct mx_model *model, struct arena *arena,
					 struct binding *binding, struct error *err)
{
	const char **names = NULL;
	enum prony_status status =
		mx_check(model->api,
			 model->api->MXSymbolListAuxiliaryStates(model->symbol,
								 &binding->statistic_count, &names),
			 "list statistics", err);

	if (status != PRONY_OK)
		return status;
	binding->statistics =
		arena_array(arena, binding->statistic_count, sizeof(binding->statistics[0]));
	for (uint32_t i = 0; status == PRONY_OK && i < binding->statistic_count; i++)
		status = find_state(model, names[i], &binding->statistics[i], err);
	return status;
}

/* `shared` lends its memory pool: steps run one after the other, so only one program's activations
 * are needed at a time. */
static enum prony_status bind(const struct mx_model *model, const struct mx_slot *bound,
			      struct mx_program *program, struct mx_executor *shared,
			      struct error *err)
{
	struct binding binding = {0};
	struct arena arena;
	enum prony_status status;

	arena_init(&arena, 0);
	status = list_arguments(model, bound, &arena, &binding, err);
	if (status == PRONY_OK)
		status = list_statistics(model, &arena, &binding, err);
	if (status == PRONY_OK)
		status = mx_check(model->api,
				  model->api->MXExecutorBindEX(
					  model->symbol, model->api->device.device_type,
					  model->api->device.device_id, 0, NULL, NULL, NULL,
					  binding.count, binding.arguments, binding.gradients,
					  binding.requests, binding.statistic_count,
					  binding.statistics, shared, &program->executor),
				  "bind", err);
	arena_release(&arena);
	return status;
}

static enum prony_status get_heads(const struct mx_model *model, struct mx_program *program,
				   struct error *err)
{
	struct mx_ndarray **outputs = NULL;
	uint32_t count = 0, want = model->loss ? MX_HEAD_COUNT : 1;
	enum prony_status status = mx_check(
		model->api, model->api->MXExecutorOutputs(program->executor, &count, &outputs),
		"list outputs", err);

	if (status != PRONY_OK)
		return status;
	if (count != want)
		return error_set(err, PRONY_INTERNAL,
				 "MXNet's executor has %u outputs instead of %u", count, want);
	program->logits = outputs[model->loss ? MX_HEAD_LOGITS : 0];
	program->objective = model->loss ? outputs[MX_HEAD_OBJECTIVE] : NULL;
	return PRONY_OK;
}

static enum prony_status make_slot(struct mx_model *model, struct mx_slot *slot, struct error *err)
{
	const struct graph *graph = model->graph;
	size_t inputs = (size_t)model->input_count, labels = (size_t)model->label_count;
	enum prony_status status = PRONY_OK;

	slot->inputs = arena_array(&model->arena, inputs, sizeof(slot->inputs[0]));
	slot->labels = arena_array(&model->arena, labels + 1, sizeof(slot->labels[0]));
	for (int i = 0; status == PRONY_OK && i < model->input_count; i++)
		status = mx_array_new(model->api, &graph->values[graph_input(graph, i)].shape, NULL,
				      &slot->inputs[i], err);
	for (int i = 0; status == PRONY_OK && i < model->label_count; i++)
		status = mx_array_new(model->api, &graph->values[graph_label(graph, i)].shape, NULL,
				      &slot->labels[i], err);
	return status;
}

static enum prony_status make_slots(struct mx_model *model, struct error *err)
{
	enum prony_status status = PRONY_OK;

	model->slots =
		arena_array(&model->arena, (size_t)model->slot_count, sizeof(model->slots[0]));
	for (int i = 0; status == PRONY_OK && i < model->slot_count; i++)
		status = make_slot(model, &model->slots[i], err);
	return status;
}

static void copy_call(struct mx_call *call, const struct mx_operator *copy, struct mx_ndarray *from,
		      struct mx_ndarray *to)
{
	call->operator= copy;
	call->inputs[call->input_count++] = from;
	call->outputs[call->output_count++] = to;
}

/* Prepares the calls that copy a slot's batch to the single program. */
static enum prony_status make_copies(struct mx_model *model, struct error *err)
{
	const struct mx_operator *copy = NULL;
	struct mx_call *call;
	size_t count;
	enum prony_status status = make_slot(model, &model->bound, err);

	if (status == PRONY_OK)
		status = mx_check(model->api, model->api->NNGetOpHandle("_copyto", &copy),
				  "_copyto", err);
	if (status != PRONY_OK)
		return status;
	count = (size_t)(model->slot_count * (model->input_count + model->label_count));
	call = model->copies = arena_array(&model->arena, count, sizeof(model->copies[0]));
	for (int i = 0; i < model->slot_count; i++) {
		const struct mx_slot *slot = &model->slots[i];

		for (int k = 0; k < model->input_count; k++)
			copy_call(call++, copy, slot->inputs[k], model->bound.inputs[k]);
		for (int k = 0; k < model->label_count; k++)
			copy_call(call++, copy, slot->labels[k], model->bound.labels[k]);
	}
	return PRONY_OK;
}

static bool wants_one_program(const struct mx_model *model)
{
	int64_t bytes = graph_parameter_count(model->graph) * (int64_t)sizeof(float);

	if (model->slot_count == 1)
		return false;
	return model->recurrent_count > 0 || (!model->loss && bytes > MX_SHARED_WEIGHTS_BYTES);
}

enum prony_status mx_model_bind(struct mx_model *model, struct mx_executor *shared,
				struct mx_program **out, struct error *err)
{
	struct mx_program *programs =
		arena_array(&model->arena, (size_t)model->program_count, sizeof(programs[0]));
	enum prony_status status = PRONY_OK;

	*out = programs;
	for (int i = 0; status == PRONY_OK && i < model->program_count; i++) {
		status = bind(model, model->copies ? &model->bound : &model->slots[i], &programs[i],
			      i > 0 ? programs[0].executor : shared, err);
		if (status == PRONY_OK)
			status = get_heads(model, &programs[i], err);
	}
	return status;
}

static enum prony_status make_programs(struct mx_model *model, struct error *err)
{
	bool one = wants_one_program(model);
	enum prony_status status = one ? make_copies(model, err) : PRONY_OK;

	if (status != PRONY_OK)
		return status;
	model->program_count = one ? 1 : model->slot_count;
	return mx_model_bind(model, NULL, &model->programs, err);
}

enum prony_status mx_model_init(struct mx_model *model, const struct mx_api *api,
				const struct graph *graph, const struct recipe *recipe,
				const struct tensor_set *weights, struct mx_ranks *ranks,
				struct error *err)
{
	enum prony_status status;

	*model = (struct mx_model){
		.api = api,
		.graph = graph,
		.slot_count = recipe->slots,
		.loss = recipe->stage != STAGE_FORWARD,
		.train = recipe->stage == STAGE_TRAIN,
	};
	arena_init(&model->arena, 0);
	model->input_count = graph_inputs(graph, NULL, 0);
	model->label_count = model->loss ? graph_labels(graph, NULL, 0) : 0;
	/* Evaluation has no dropout, with or without the node. */
	status = mx_symbol_new(api, graph, model->loss, model->loss && recipe->dropout,
			       &model->symbol, err);
	if (status == PRONY_OK)
		status = make_recurrents(model, err);
	if (status == PRONY_OK)
		status = make_parameters(model, recipe, weights, err);
	if (status == PRONY_OK)
		status = make_states(model, weights, err);
	if (status == PRONY_OK)
		status = make_slots(model, err);
	if (status == PRONY_OK)
		status = make_programs(model, err);
	if (status == PRONY_OK)
		status = mx_ranks_attach(ranks, model, err);
	if (status == PRONY_OK && model->train)
		status = mx_updates_init(model, recipe, err);
	return status;
}

struct mx_program *mx_model_program(const struct mx_model *model, int slot)
{
	return &model->programs[model->copies ? 0 : slot];
}

enum prony_status mx_model_step(struct mx_model *model, int slot, struct error *err)
{
	const struct mx_api *api = model->api;
	struct mx_executor *executor = mx_model_program(model, slot)->executor;
	int is_train = model->loss, parts = model->input_count + model->label_count;
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && model->copies && i < parts; i++)
		status = mx_call_run(api, &model->copies[slot * parts + i], err);
	if (status == PRONY_OK)
		status = mx_check(api, api->MXExecutorForward(executor, is_train), "forward", err);
	if (status == PRONY_OK && is_train)
		status = mx_check(api, api->MXExecutorBackwardEx(executor, 0, NULL, is_train),
				  "backward", err);
	if (status == PRONY_OK && model->ranks)
		status = mx_ranks_sum(model->ranks, model, err);
	if (status == PRONY_OK && model->train)
		status = mx_updates_run(model, err);
	return status;
}

static void free_array(const struct mx_api *api, struct mx_ndarray *array)
{
	if (array)
		api->MXNDArrayFree(array);
}

static void free_slot(const struct mx_model *model, const struct mx_slot *slot)
{
	for (int i = 0; slot->inputs && i < model->input_count; i++)
		free_array(model->api, slot->inputs[i]);
	for (int i = 0; slot->labels && i < model->label_count; i++)
		free_array(model->api, slot->labels[i]);
}

void mx_programs_release(const struct mx_api *api, const struct mx_program *programs, int count)
{
	/* Executors that borrow the first one's memory are freed before it. */
	for (int i = count - 1; programs && i >= 0; i--) {
		free_array(api, programs[i].logits);
		free_array(api, programs[i].objective);
		if (programs[i].executor)
			api->MXExecutorFree(programs[i].executor);
	}
}

void mx_model_release(struct mx_model *model)
{
	const struct mx_api *api = model ? model->api : NULL;

	if (!api)
		return;
	mx_programs_release(api, model->programs, model->program_count);
	for (int i = 0; model->slots && i < model->slot_count; i++)
		free_slot(model, &model->slots[i]);
	free_slot(model, &model->bound);
	for (int i = 0; i < model->parameter_count; i++) {
		free_array(api, model->parameters[i].weight);
		free_array(api, model->parameters[i].gradient);
		free_array(api, model->parameters[i].state);
		free_array(api, model->parameters[i].square);
	}
	free_array(api, model->scale);
	for (int i = 0; i < model->recurrent_count; i++)
		mx_recurrent_release(&model->recurrents[i], api);
	for (int i = 0; i < model->state_count; i++)
		free_array(api, model->states[i].array);
	if (model->symbol)
		api->MXSymbolFree(model->symbol);
	arena_release(&model->arena);
	*model = (struct mx_model){0};
}
