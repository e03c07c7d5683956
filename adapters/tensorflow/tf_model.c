/* Builds a network's graph in a TensorFlow session and runs it. */
#include "adapters/tensorflow/tf_model.h"

#include <string.h>

#include "adapters/checks.h"

/* One run of the session: fed inputs, fetched outputs, and a target operation. */
struct run {
	const struct tf_output *inputs;
	struct tf_tensor *const *values;
	int input_count;
	const struct tf_output *outputs;
	struct tf_tensor **results;
	int output_count;
	const struct tf_operation *target; /* NULL: none */
};

/* Runs the session. `profile`: the profile of the step; NULL: without profiling. */
static enum prony_status run_traced(struct tf_model *model, const struct run *run,
				    const struct tf_profile *profile, const char *what,
				    struct error *err)
{
	model->api->TF_SessionRun(model->session, profile ? profile->options : NULL, run->inputs,
				  run->values, run->input_count, run->outputs, run->results,
				  run->output_count, &run->target, run->target ? 1 : 0,
				  profile ? profile->metadata : NULL, model->api->status);
	return tf_check(model->api, what, err);
}

static enum prony_status run_session(struct tf_model *model, const struct run *run,
				     const char *what, struct error *err)
{
	return run_traced(model, run, NULL, what, err);
}

/* Creates the resources of all slots and packs their handles into one tensor. */
static struct tf_output pack_slots(struct tf_emit *e, int count, enum tf_type type,
				   const struct shape *shape, struct arena *arena)
{
	struct tf_output *handles = arena_array(arena, (size_t)count, sizeof(handles[0]));

	for (int i = 0; i < count; i++)
		handles[i] = tf_resource(e, type, shape);
	return tf_op_list(e, "Pack", handles, count, NULL, 0, NULL);
}

static struct tf_output pick(struct tf_emit *e, struct tf_output handles, struct tf_output index)
{
	return tf_op(e, "GatherV2", TF_IN(handles, index, tf_index(e, 0)), NULL);
}

/* Reads the batch of a slot. EnsureShape is needed because TensorFlow does not know the shape
 * behind a gathered handle. */
static struct tf_output read_batch(struct tf_emit *e, struct tf_output handles,
				   struct tf_output index, enum tf_type type,
				   const struct shape *shape)
{
	return tf_op(e, "EnsureShape", TF_IN(tf_read(e, pick(e, handles, index), type)),
		     TF_WITH(tf_shape("shape", shape)));
}

static enum tf_type part_type(const struct value *value)
{
	switch (value->dtype) {
	case DTYPE_I64:
		return TF_TYPE_INT64;
	case DTYPE_I32:
		return TF_TYPE_INT32;
	default:
		return TF_TYPE_FLOAT;
	}
}

/* Builds one part of the batch: the resources of all slots, the operation that fills one slot
 * (returned), and the value that a step reads. */
static struct tf_operation *build_part(struct tf_model *model, int value, struct tf_output now)
{
	struct tf_slots *s = &model->slots;
	struct tf_translation *t = &model->t;
	struct tf_emit *e = &t->e;
	struct tf_part *part = &s->parts[s->part_count++];
	struct tf_output *placeholder = &s->placeholders[s->part_count];

	*part = (struct tf_part){
		.value = value,
		.type = part_type(&model->graph->values[value]),
		.shape = layouts_shape(&t->layouts, value),
	};
	part->slots = pack_slots(e, s->count, part->type, &part->shape, &model->arena);
	*placeholder = tf_placeholder(e, part->type, &part->shape);
	struct tf_operation *filled =
		tf_assign(e, pick(e, part->slots, s->placeholders[0]), *placeholder);
	struct tf_output batch = read_batch(e, part->slots, now, part->type, &part->shape);
	t->values[value] = part->type == TF_TYPE_FLOAT ? tf_cast(e, batch, t->type) : batch;
	return filled;
}

/* Builds the parts of a batch, their slots, and the index of the slot that a step reads. */
static void build_slots(struct tf_model *model, int count, struct tf_operation **targets,
			int *target_count)
{
	struct tf_slots *s = &model->slots;
	struct tf_emit *e = &model->t.e;
	const struct graph *graph = model->graph;
	size_t room = (size_t)graph_inputs(graph, NULL, 0) + (size_t)graph_labels(graph, NULL, 0);
	struct tf_operation **feeds = arena_array(&model->arena, room, sizeof(feeds[0]));
	bool labels = model->backward && check_takes_labels(graph);
	int feed_count = 0;
	struct shape scalar = {.rank = 0};
	struct tf_output now;

	e->scope = "batch";
	*s = (struct tf_slots){
		.count = count,
		.next = -1,
		.parts = arena_array(&model->arena, room, sizeof(s->parts[0])),
		.placeholders = arena_array(&model->arena, room + 1, sizeof(s->placeholders[0])),
		.fed = arena_array(&model->arena, room + 1, sizeof(s->fed[0])),
	};
	s->index = tf_resource(e, TF_TYPE_INT32, &scalar);
	s->placeholders[0] = tf_placeholder(e, TF_TYPE_INT32, &scalar);
	s->choose = tf_assign(e, s->index, s->placeholders[0]);
	now = tf_read(e, s->index, TF_TYPE_INT32);
	now = tf_op(e, "EnsureShape", TF_IN(now), TF_WITH(tf_shape("shape", &scalar)));
	targets[(*target_count)++] =
		tf_assign(e, s->index,
			  tf_binary(e, "FloorMod", tf_binary(e, "AddV2", now, tf_index(e, 1)),
				    tf_index(e, count)));
	for (int i = 0; i < graph_inputs(graph, NULL, 0); i++)
		feeds[feed_count++] = build_part(model, graph_input(graph, i), now);
	for (int i = 0; labels && i < graph_labels(graph, NULL, 0); i++)
		feeds[feed_count++] = build_part(model, graph_label(graph, i), now);
	s->feed = tf_group(e, feeds, feed_count);
}

/* Keeps a value of a step for reading: the resource takes the tensor without a copy. */
static struct tf_result keep(struct tf_model *model, int value, struct tf_operation **targets,
			     int *count)
{
	struct tf_emit *e = &model->t.e;
	struct tf_output y = tf_cast(e, model->t.values[value], TF_TYPE_FLOAT);
	struct shape shape = layouts_shape(&model->t.layouts, value);
	struct tf_result result;

	e->scope = model->graph->values[value].name;
	result.handle = tf_resource(e, TF_TYPE_FLOAT, &shape);
	result.read = tf_read(e, result.handle, TF_TYPE_FLOAT);
	targets[(*count)++] = tf_assign(e, result.handle, y);
	return result;
}

static void count_readers(struct tf_translation *t)
{
	const struct graph *graph = t->graph;

	for (int i = 0; i < graph->node_count; i++)
		for (int k = 0; k < graph->nodes[i].input_count; k++)
			if (graph->nodes[i].inputs[k] >= 0)
				t->readers[graph->nodes[i].inputs[k]]++;
	for (int i = 0; i < graph->value_count; i++)
		if (graph->values[i].kind == VALUE_PARAMETER && graph->values[i].gradient >= 0)
			t->readers[graph->values[i].gradient]++;
}

static void init_translation(struct tf_model *model, struct tf_graph *graph,
			     const struct recipe *recipe, bool last)
{
	struct tf_translation *t = &model->t;
	size_t values = (size_t)model->graph->value_count;
	size_t nodes = (size_t)model->graph->node_count;
	struct arena *arena = &model->arena;

	*t = (struct tf_translation){
		.e = {.api = model->api, .graph = graph},
		.graph = model->graph,
		.last = last,
		.training = model->backward,
		.dropout = recipe->dropout,
		.type = recipe->precision == PRECISION_BF16 ? TF_TYPE_BFLOAT16 : TF_TYPE_FLOAT,
		.seed = (int64_t)(recipe->seed % INT32_MAX) + 1, /* 0 would be a random seed */
		.values = arena_array(arena, values, sizeof(t->values[0])),
		.plain = arena_array(arena, values, sizeof(t->plain[0])),
		.kept = arena_array(arena, nodes, sizeof(t->kept[0])),
		.states = arena_array(arena, nodes, sizeof(t->states[0])),
		.made = arena_array(arena, nodes, sizeof(t->made[0])),
		.readers = arena_array(arena, values, sizeof(t->readers[0])),
		.arena = arena,
	};
	graph_layouts(model->graph, last, arena, &t->layouts);
	count_readers(t);
}

/* Builds the whole step. `start` gets the operations that initialise the optimiser's variables. */
static enum prony_status build_step(struct tf_model *model, const struct recipe *recipe,
				    struct tf_operation **start, int *start_count,
				    struct error *err)
{
	const struct graph *graph = model->graph;
	struct tf_emit *e = &model->t.e;
	size_t room = 3 * (size_t)graph->value_count + 8;
	struct tf_operation **targets = arena_array(&model->arena, room, sizeof(targets[0]));
	int count = 0, end = graph->forward_count;
	enum prony_status status;

	/* Evaluation stops at the logits. */
	if (!model->backward)
		end = graph->values[graph->logits].producer + 1;
	tf_weights_build(&model->t, &model->weights);
	build_slots(model, recipe->slots, targets, &count);
	status = tf_translate(&model->t, 0, end, err);
	if (status != PRONY_OK)
		return status;
	model->logits = keep(model, graph->logits, targets, &count);
	int64_t macs = e->macs; /* of the forward pass */
	if (model->backward) {
		model->loss = keep(model, graph->loss, targets, &count);
		tf_statistics_build(model, targets, &count);
		status = tf_translate(&model->t, end, graph->node_count, err);
	}
	if (status != PRONY_OK)
		return status;
	model->updates.first = e->count;
	if (model->train)
		tf_updates_build(model, recipe, targets, &count, start, start_count);
	else if (model->backward)
		tf_gradients_build(model, targets, &count);
	model->updates.end = e->count;
	e->scope = NULL;
	e->macs = macs;
	model->step = tf_group(e, targets, count);
	return tf_emit_end(e, err);
}

/* Feeds the initial value of every variable and runs `target`. */
static enum prony_status fill_variables(struct tf_model *model, const struct tensor_set *given,
					const struct tf_operation *target, struct error *err)
{
	struct tf_weights *w = &model->weights;
	size_t count = (size_t)w->variable_count;
	struct tf_output *inputs = arena_array(&model->arena, count + 1, sizeof(inputs[0]));
	struct tf_tensor **values = arena_array(&model->arena, count + 1, sizeof(values[0]));
	struct run run = {inputs, values, w->variable_count, NULL, NULL, 0, target};
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; status == PRONY_OK && i < count; i++) {
		inputs[i] = w->variables[i].placeholder;
		values[i] = tf_tensor_new(model->api, TF_TYPE_FLOAT, &w->variables[i].shape, err);
		status = values[i] ? PRONY_OK : PRONY_OUT_OF_MEMORY;
	}
	for (int i = 0; status == PRONY_OK && i < w->weight_count; i++) {
		const struct tf_weight *weight = &w->weights[i];
		const struct tensor *tensor = NULL;

		status = check_weight(given, &model->graph->values[weight->value], &tensor, err);
		if (status == PRONY_OK)
			tf_weight_copy(weight, tensor->data,
				       model->api->TF_TensorData(values[weight->variable]), true);
	}
	if (status == PRONY_OK)
		status = run_session(model, &run, "fill the variables", err);
	for (size_t i = 0; i < count; i++)
		if (values[i])
			model->api->TF_DeleteTensor(values[i]);
	return status;
}

enum prony_status tf_model_init(struct tf_model *model, const struct tf_api *api,
				const struct tf_running *running, struct graph *graph,
				const struct recipe *recipe, bool last,
				const struct tensor_set *weights, struct error *err)
{
	struct tf_operation **start, *target;
	int start_count = 0;
	enum prony_status status = PRONY_OK;

	*model = (struct tf_model){
		.api = api,
		.graph = graph,
		.session = running->session,
		.ranks = running->ranks,
		.backward = recipe->stage != STAGE_FORWARD,
		.train = recipe->stage == STAGE_TRAIN,
	};
	arena_init(&model->arena, 0);
	if (model->backward)
		status = graph_add_backward(graph, err);
	if (status != PRONY_OK)
		return status;
	init_translation(model, running->graph, recipe, last);
	start = arena_array(&model->arena, 3 * (size_t)graph->value_count, sizeof(start[0]));
	status = build_step(model, recipe, start, &start_count, err);
	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < model->weights.variable_count; i++)
		start[start_count++] = tf_assign(&model->t.e, model->weights.variables[i].handle,
						 model->weights.variables[i].placeholder);
	target = tf_group(&model->t.e, start, start_count);
	status = tf_emit_end(&model->t.e, err);
	return status == PRONY_OK ? fill_variables(model, weights, target, err) : status;
}

static enum prony_status choose_slot(struct tf_model *model, int slot, struct error *err)
{
	const struct shape scalar = {.rank = 0};
	struct tf_slots *s = &model->slots;
	struct tf_tensor *number = tf_tensor_new(model->api, TF_TYPE_INT32, &scalar, err);
	struct run run = {s->placeholders, &number, 1, NULL, NULL, 0, s->choose};
	enum prony_status status;

	if (!number)
		return PRONY_OUT_OF_MEMORY;
	*(int32_t *)model->api->TF_TensorData(number) = slot;
	status = run_session(model, &run, "choose a batch", err);
	model->api->TF_DeleteTensor(number);
	if (status == PRONY_OK)
		s->next = slot;
	return status;
}

/* Copies a tensor of the batch into the memory order of its part; NULL if out of memory. */
static struct tf_tensor *copy_part(const struct tf_model *model, const struct tf_part *part,
				   const struct tensor *tensor, struct error *err)
{
	struct arrangement order = layouts_arrangement(&model->t.layouts, part->value);
	struct tf_tensor *copy = tf_tensor_new(model->api, part->type, &part->shape, err);

	if (copy && part->type == TF_TYPE_FLOAT)
		arrangement_copy(&order, shape_elements(&part->shape), tensor->data,
				 model->api->TF_TensorData(copy), false);
	else if (copy)
		memcpy(model->api->TF_TensorData(copy), tensor->data, (size_t)tensor_bytes(tensor));
	return copy;
}

enum prony_status tf_model_feed(struct tf_model *model, int slot, struct batch batch,
				struct error *err)
{
	const struct shape scalar = {.rank = 0};
	struct tf_slots *s = &model->slots;
	const struct run run = {s->placeholders, s->fed, s->part_count + 1, NULL, NULL, 0, s->feed};
	enum prony_status status = PRONY_OK;

	memset(s->fed, 0, (size_t)(s->part_count + 1) * sizeof(s->fed[0]));
	s->fed[0] = tf_tensor_new(model->api, TF_TYPE_INT32, &scalar, err);
	if (s->fed[0])
		*(int32_t *)model->api->TF_TensorData(s->fed[0]) = slot;
	else
		status = PRONY_OUT_OF_MEMORY;
	for (int i = 0; status == PRONY_OK && i < s->part_count; i++) {
		const struct tensor *tensor = i < batch.input_count
						      ? &batch.inputs[i]
						      : &batch.labels[i - batch.input_count];

		s->fed[i + 1] = copy_part(model, &s->parts[i], tensor, err);
		status = s->fed[i + 1] ? PRONY_OK : PRONY_OUT_OF_MEMORY;
	}
	if (status == PRONY_OK)
		status = run_session(model, &run, "feed a batch", err);
	for (int i = 0; i <= s->part_count; i++)
		if (s->fed[i])
			model->api->TF_DeleteTensor(s->fed[i]);
	return status;
}

enum prony_status tf_model_step(struct tf_model *model, int slot, struct error *err)
{
	const struct run run = {.target = model->step};
	enum prony_status status = PRONY_OK;

	if (slot != model->slots.next)
		status = choose_slot(model, slot, err);
	if (status == PRONY_OK)
		status = run_traced(model, &run, &model->profile, "step", err);
	if (status == PRONY_OK)
		model->slots.next = slot + 1 < model->slots.count ? slot + 1 : 0;
	return status;
}

enum prony_status tf_model_fetch(struct tf_model *model, const struct tf_output *what, int count,
				 struct tf_tensor **out, struct error *err)
{
	const struct run run = {
		.outputs = what, .results = out, .output_count = count, .target = NULL};

	return run_session(model, &run, "read", err);
}

void tf_model_release(struct tf_model *model)
{
	if (model->api)
		arena_release(&model->arena);
	*model = (struct tf_model){0};
}
