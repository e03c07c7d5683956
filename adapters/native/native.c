/* The adapter native: prony's own executor, with the backend of the requested device. */
#include "adapters/native/native.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/checks.h"
#include "adapters/native/inspect.h"
#include "adapters/native/lower/lower.h"
#include "adapters/native/mpi.h"
#include "adapters/native/native_profile.h"

/* A batch that was fed. */
struct slot {
	int32_t **integers; /* the int32 copy of each I64 array of the batch, which commands read */
	bool fed;
};

struct native {
	const struct backend *backend;
	struct device *device; /* owned */
	struct mpi mpi;	       /* of several ranks */
	struct program program;
	struct lowering lowering;
	const struct graph *graph; /* borrowed */
	struct recipe recipe;
	struct slot *slots;
	bool stepped;
};

/* The backend of a device word; NULL if there is none. The others' libraries are not loaded: they
 * start threads of their own. */
static const struct backend *backend_of(const char *device)
{
	size_t kind = strcspn(device, ":");

	for (int i = 0; native_backends[i]; i++) {
		if (strlen(native_backends[i]->device) == kind &&
		    strncmp(native_backends[i]->device, device, kind) == 0)
			return native_backends[i];
	}
	return NULL;
}

static enum prony_status native_probe(struct session *s, struct probe *found, struct error *err)
{
	struct native *native = s->private_data;
	enum prony_status status;

	native->backend = backend_of(s->target.device);
	if (!native->backend)
		return error_set(err, PRONY_UNSUPPORTED, "device %s: native runs on cpu and cuda:N",
				 s->target.device);
	native->device = calloc(1, native->backend->device_bytes);
	if (!native->device)
		return error_set(err, PRONY_NOMEM, "no memory for a device");
	status = native->backend->probe(native->device, s->library, s->target.device, found, err);
	if (status != PRONY_OK) {
		free(native->device);
		native->device = NULL;
		return status;
	}
	found->stages = 1u << STAGE_FORWARD | 1u << STAGE_FORWARD_BACKWARD | 1u << STAGE_TRAIN |
			1u << STAGE_LOAD;
	snprintf(found->version, sizeof(found->version), "%s", PRONY_VERSION);
	return s->target.world_size > 1 ? mpi_start(&native->mpi, &s->target, found->collectives,
						    sizeof(found->collectives), err)
					: PRONY_OK;
}

static enum prony_status native_supports(const struct target *target, const struct graph *graph,
					 const struct recipe *recipe, struct error *why)
{
	return lower_supports(backend_of(target->device), graph, recipe, why);
}

static enum prony_status native_open(struct session *s, const struct recipe *recipe,
				     struct effective *effective, struct error *err)
{
	struct native *native = s->private_data;
	enum prony_status status = native->backend->open(native->device, recipe, effective, err);

	if (status == PRONY_OK)
		program_init(&native->program, native->backend, native->device);
	if (native->mpi.ranks > 0)
		native->program.mpi = &native->mpi;
	return status;
}

/* Copies blocks of rows from ONNX's order into the backend's, or back. */
static void reorder_gates(float *to, const float *from, size_t elements,
			  const struct parameter *parameter, bool to_backend)
{
	size_t block = elements / (size_t)parameter->gates;

	for (size_t g = 0; g < (size_t)parameter->gates; g++) {
		size_t onnx = (size_t)parameter->gate_order[g];
		size_t target = to_backend ? g : onnx, origin = to_backend ? onnx : g;

		memcpy(to + target * block, from + origin * block, block * sizeof(float));
	}
}

/* Multiplies each row of folded weights by the normalisation's factor for its channel. */
static enum prony_status fold_weights(const struct native *native, int batch_norm,
				      const struct tensor_set *weights, const struct tensor *given,
				      float *out, struct error *err)
{
	const struct node *norm = &native->graph->nodes[batch_norm];
	size_t rows = (size_t)given->shape.dims[0];
	size_t row = (size_t)shape_elements(&given->shape) / rows;
	const struct tensor *scale =
		tensor_find(weights, native->graph->values[norm->inputs[1]].name);
	const struct tensor *var =
		tensor_find(weights, native->graph->values[norm->inputs[4]].name);

	if (!scale || !var)
		return error_set(err, PRONY_BAD_INPUT, "the weights of '%s' are missing",
				 norm->name);
	for (size_t i = 0; i < rows; i++) {
		double factor =
			(double)((const float *)scale->data)[i] /
			sqrt((double)((const float *)var->data)[i] + norm->attributes.epsilon);

		for (size_t k = 0; k < row; k++)
			out[i * row + k] =
				(float)((double)((const float *)given->data)[i * row + k] * factor);
	}
	return PRONY_OK;
}

/* The bias of a convolution with a folded normalisation: (bias - mean) * factor + shift. */
static enum prony_status load_fold(struct native *native, const struct fold *fold,
				   const struct tensor_set *weights, struct error *err)
{
	const struct graph *graph = native->graph;
	const struct node *norm = &graph->nodes[fold->batch_norm];
	const struct node *node = &graph->nodes[fold->node];
	bool has_bias = node->input_count > 2 && node->inputs[2] != VALUE_NONE;
	const struct tensor *own =
		has_bias ? tensor_find(weights, graph->values[node->inputs[2]].name) : NULL;
	const float *parts[4]; /* scale, shift, mean, variance */
	const struct operand *bias = &native->program.operands[fold->bias];
	float *sums;
	enum prony_status status;

	for (int i = 0; i < 4; i++) {
		const struct tensor *tensor =
			tensor_find(weights, graph->values[norm->inputs[1 + i]].name);

		if (!tensor)
			return error_set(err, PRONY_BAD_INPUT, "the weights of '%s' are missing",
					 norm->name);
		parts[i] = tensor->data;
	}
	sums = malloc(bias->bytes);
	if (!sums)
		return error_set(err, PRONY_NOMEM, "no memory for weights");
	for (int64_t i = 0; i < bias->layout.dims[0]; i++) {
		double factor =
			(double)parts[0][i] / sqrt((double)parts[3][i] + norm->attributes.epsilon);
		double before = own ? (double)((const float *)own->data)[i] : 0;

		sums[i] = (float)((before - (double)parts[2][i]) * factor + (double)parts[1][i]);
	}
	status = native->backend->copy_in(&native->program, fold->bias, &bias->layout, sums, err);
	if (status == PRONY_OK && fold->bias_copy != OPERAND_NONE)
		status = native->backend->convert(&native->program, fold->bias, fold->bias_copy,
						  err);
	free(sums);
	return status;
}

static enum prony_status load_one(struct native *native, struct parameter *parameter,
				  const struct tensor *given, const struct tensor_set *weights,
				  struct error *err)
{
	size_t elements = (size_t)shape_elements(&given->shape);
	float *changed = NULL;
	enum prony_status status = PRONY_OK;

	if (parameter->keeps_original) {
		float *copy = arena_try_array(&native->program.arena, elements, sizeof(float), err);

		if (!copy)
			return PRONY_NOMEM;
		memcpy(copy, given->data, elements * sizeof(float));
		parameter->original = copy;
	}
	if (parameter->gate_order || parameter->folded >= 0) {
		changed = malloc(elements * sizeof(float));
		if (!changed)
			return error_set(err, PRONY_NOMEM, "no memory for weights");
	}
	if (parameter->gate_order)
		reorder_gates(changed, given->data, elements, parameter, true);
	else if (parameter->folded >= 0)
		status = fold_weights(native, parameter->folded, weights, given, changed, err);
	if (status == PRONY_OK)
		status = native->backend->copy_in(&native->program, parameter->operand,
						  &parameter->outside,
						  changed ? changed : given->data, err);
	if (status == PRONY_OK)
		status = lower_refresh_copies(&native->lowering, parameter, err);
	free(changed);
	return status;
}

static enum prony_status load_all(struct native *native, struct parameter *parameters, int count,
				  const struct tensor_set *weights, struct error *err)
{
	for (int i = 0; i < count; i++) {
		struct parameter *parameter = &parameters[i];
		const struct value *value = &native->graph->values[parameter->value];
		const struct tensor *given = NULL;
		enum prony_status status = check_weight(weights, value, &given, err);

		if (status == PRONY_OK)
			status = load_one(native, parameter, given, weights, err);
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

static enum prony_status load_weights(struct native *native, const struct tensor_set *weights,
				      struct error *err)
{
	const struct lowering *lowering = &native->lowering;
	enum prony_status status =
		load_all(native, lowering->parameters, lowering->parameter_count, weights, err);

	if (status == PRONY_OK)
		status = load_all(native, lowering->states, lowering->state_count, weights, err);
	for (int i = 0; status == PRONY_OK && i < lowering->fold_count; i++)
		status = load_fold(native, &lowering->folds[i], weights, err);
	return status;
}

static enum prony_status make_slots(struct native *native, struct error *err)
{
	const struct graph *graph = native->graph;
	struct arena *arena = &native->program.arena;
	size_t arrays = (size_t)lower_input_index(graph, graph->value_count);

	native->slots =
		arena_try_array(arena, (size_t)native->recipe.slots, sizeof(*native->slots), err);
	if (!native->slots)
		return PRONY_NOMEM;
	for (int i = 0; i < native->recipe.slots; i++) {
		native->slots[i].integers = arena_array(arena, arrays, sizeof(int32_t *));
		for (int v = 0; v < graph->value_count; v++) {
			const struct value *value = &graph->values[v];
			int32_t **to = &native->slots[i].integers[lower_input_index(graph, v)];

			if (value->dtype != DTYPE_I64)
				continue;
			*to = arena_try_array(arena, (size_t)shape_elements(&value->shape),
					      sizeof(**to), err);
			if (!*to)
				return PRONY_NOMEM;
		}
	}
	return PRONY_OK;
}

static enum prony_status native_build(struct session *s, struct graph *graph,
				      const struct recipe *recipe, const struct tensor_set *weights,
				      struct built *built, struct error *err)
{
	struct native *native = s->private_data;
	static const int values[OPTIMISER_COUNT] = {
		[OPTIMISER_MOMENTUM] = 1, [OPTIMISER_RMSPROP] = 1, [OPTIMISER_ADAMW] = 2};
	int states = recipe->stage == STAGE_TRAIN ? values[recipe->optimiser] : 0;
	enum prony_status status = PRONY_OK;

	native->graph = graph;
	native->recipe = *recipe;
	/* Ranks drop out other elements, as they have other samples. */
	native->program.seed = recipe->seed + (uint64_t)s->target.rank;
	if (recipe->stage != STAGE_FORWARD)
		status = graph_add_backward(graph, err);
	if (status == PRONY_OK)
		status = lower_graph(&native->lowering, &native->program, graph, recipe, weights,
				     target_has_option(&s->target, "explicit"), err);
	if (status == PRONY_OK)
		status = program_finish(&native->program, native->lowering.training, states,
					recipe->slots, err);
	if (status == PRONY_OK)
		status = load_weights(native, weights, err);
	if (status == PRONY_OK)
		status = make_slots(native, err);
	if (status != PRONY_OK)
		return status;
	*built = (struct built){.macs = native->lowering.macs};
	for (int i = 0; i < native->lowering.parameter_count; i++) {
		const struct parameter *parameter = &native->lowering.parameters[i];

		built->parameters += shape_elements(&graph->values[parameter->value].shape);
	}
	lower_notes(&native->lowering, built->notes, sizeof(built->notes));
	return PRONY_OK;
}

/* Feeds an array of the batch. Commands read integers with 32 bits. */
static enum prony_status feed_array(struct native *native, int slot, int value,
				    const struct tensor *tensor, struct error *err)
{
	int index = lower_input_index(native->graph, value);
	int32_t *integers = native->slots[slot].integers[index];
	size_t count = (size_t)shape_elements(&tensor->shape);

	if (tensor->dtype != DTYPE_I64)
		return program_feed(&native->program, slot, index, tensor->data,
				    (size_t)tensor_bytes(tensor), err);
	for (size_t i = 0; i < count; i++)
		integers[i] = (int32_t)((const int64_t *)tensor->data)[i];
	return program_feed(&native->program, slot, index, integers, count * sizeof(*integers),
			    err);
}

static enum prony_status native_feed(struct session *s, int slot, struct batch batch,
				     struct error *err)
{
	struct native *native = s->private_data;
	const struct graph *graph = native->graph;
	enum prony_status status = check_slot(slot, native->recipe.slots, err);

	if (status == PRONY_OK)
		status = check_batch(graph, batch, native->lowering.training, err);
	for (int i = 0; status == PRONY_OK && i < batch.input_count; i++)
		status = feed_array(native, slot, graph_input(graph, i), &batch.inputs[i], err);
	for (int i = 0; status == PRONY_OK && i < batch.label_count; i++)
		status = feed_array(native, slot, graph_label(graph, i), &batch.labels[i], err);
	native->slots[slot].fed = status == PRONY_OK;
	return status;
}

static enum prony_status native_step(struct session *s, int slot, struct error *err)
{
	struct native *native = s->private_data;
	enum prony_status status;

	if (slot < 0 || slot >= native->recipe.slots || !native->slots[slot].fed)
		return error_set(err, PRONY_INTERNAL, "slot %d was never fed", slot);
	status = program_run(&native->program, slot, err);
	native->stepped = status == PRONY_OK;
	return status;
}

static enum prony_status native_sync(struct session *s, struct error *err)
{
	struct native *native = s->private_data;

	return native->backend->sync(native->device, err);
}

/* Reads the values of a parameter or state, or of its gradient. */
static enum prony_status read_one(struct native *native, const struct parameter *parameter,
				  bool gradient, const struct tensor *out, struct error *err)
{
	size_t elements = (size_t)shape_elements(&out->shape);
	float *changed = NULL;
	enum prony_status status =
		check_read_shape(out, &native->graph->values[parameter->value].shape, err);

	if (status != PRONY_OK)
		return status;
	if (parameter->original) {
		memcpy(out->data, parameter->original, elements * sizeof(float));
		return PRONY_OK;
	}
	if (parameter->gate_order) {
		changed = malloc(elements * sizeof(float));
		if (!changed)
			return error_set(err, PRONY_NOMEM, "no memory for weights");
	}
	status = native->backend->copy_out(&native->program,
					   gradient ? parameter->gradient : parameter->operand,
					   &parameter->outside, changed ? changed : out->data, err);
	if (status == PRONY_OK && changed)
		reorder_gates(out->data, changed, elements, parameter, false);
	free(changed);
	return status;
}

static enum prony_status read_all(struct native *native, enum readout what, struct tensor_set *out,
				  struct error *err)
{
	const struct lowering *l = &native->lowering;
	const struct parameter *rows = what == READ_STATE ? l->states : l->parameters;
	int count = what == READ_STATE ? l->state_count : l->parameter_count;
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; status == PRONY_OK && i < out->count; i++) {
		int k = 0;

		while (k < count &&
		       strcmp(native->graph->values[rows[k].value].name, out->tensors[i].name) != 0)
			k++;
		if (k == count)
			return error_set(err, PRONY_INTERNAL, "there is no parameter or state '%s'",
					 out->tensors[i].name);
		status = read_one(native, &rows[k], what == READ_GRADIENTS, &out->tensors[i], err);
	}
	return status;
}

static enum prony_status read_logits(struct native *native, const struct tensor *out,
				     struct error *err)
{
	int logits = native->lowering.logits;
	enum prony_status status =
		check_read_shape(out, &native->graph->values[native->graph->logits].shape, err);

	return status == PRONY_OK
		       ? native->backend->copy_out(&native->program, logits,
						   &native->program.operands[logits].layout,
						   out->data, err)
		       : status;
}

static enum prony_status read_loss(struct native *native, const struct tensor *out,
				   struct error *err)
{
	double loss;
	enum prony_status status = native->backend->copy_out(
		&native->program, native->lowering.loss, NULL, &loss, err);

	if (status != PRONY_OK)
		return status;
	if (out->dtype == DTYPE_F64)
		*(double *)out->data = loss;
	else if (out->dtype == DTYPE_F32)
		*(float *)out->data = (float)loss;
	else
		return error_set(err, PRONY_INTERNAL, "the loss can only be read as F64 or F32");
	return PRONY_OK;
}

static enum prony_status native_read(struct session *s, enum readout what, struct tensor_set *out,
				     struct error *err)
{
	struct native *native = s->private_data;
	enum prony_status status = check_readout(what, native->stepped, out, err);

	if (status != PRONY_OK)
		return status;
	if ((what == READ_LOSS || what == READ_GRADIENTS) && !native->lowering.training)
		return error_set(err, PRONY_UNSUPPORTED,
				 "the stage forward computes neither loss nor gradients");
	if (what == READ_LOGITS)
		return read_logits(native, &out->tensors[0], err);
	return what == READ_LOSS ? read_loss(native, &out->tensors[0], err)
				 : read_all(native, what, out, err);
}

static void native_close(struct session *s)
{
	struct native *native = s->private_data;

	lower_release(&native->lowering);
	program_release(&native->program);
	if (native->device)
		native->backend->close(native->device);
	free(native->device);
	native->device = NULL;
	mpi_end(&native->mpi);
}

struct program *native_program(const struct session *session)
{
	struct native *native = session->private_data;

	return &native->program;
}

static enum prony_status profile_begin(struct session *s, int64_t steps, int64_t (*now_ns)(void),
				       struct error *err)
{
	return native_profile_begin(native_program(s), steps, now_ns, err);
}

/* The events use the clock of the steps. */
static enum prony_status profile_end(struct session *s, const int64_t *instants, int64_t steps,
				     struct profile_log *log, struct error *err)
{
	const struct native *native = s->private_data;

	return native_profile_end(native_program(s), native->graph, instants, steps, log, err);
}

static const struct adapter_profile native_profile = {.begin = profile_begin, .end = profile_end};

const struct adapter adapter_native = {
	.abi = ADAPTER_ABI,
	.name = "native",
	.summary = "prony's own executor on oneDNN 3 or CUDA: the lower bound for all frameworks",
	.collectives = "mpi",
	.private_size = sizeof(struct native),
	.options = "explicit",
	.probe = native_probe,
	.supports = native_supports,
	.open = native_open,
	.build = native_build,
	.feed = native_feed,
	.step = native_step,
	.sync = native_sync,
	.read = native_read,
	.close = native_close,
	.profile = &native_profile,
};
