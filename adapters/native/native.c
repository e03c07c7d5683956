#include "adapters/native/native.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/checks.h"
#include "adapters/native/inspect.h"
#include "adapters/native/lower/lower.h"
#include "adapters/native/native_profile.h"
#include "adapters/threads.h"

/* A resident batch. */
struct slot {
	void *input;	 /* borrowed */
	int32_t *labels; /* batch elements, in the native's arena */
	bool fed;
};

struct native {
	struct onednn dnn;
	struct program program;
	struct lowering lowering;
	const struct graph *graph; /* borrowed */
	struct recipe recipe;
	struct slot *slots;
	bool stepped;
};

static enum prony_status native_probe(struct session *s, struct probe *found, struct error *err)
{
	struct native *native = s->private_data;
	enum prony_status status = onednn_load(&native->dnn, s->library, err);

	if (status != PRONY_OK)
		return status;
	*found = (struct probe){
		.libraries = {{.name = "onednn"}},
		.library_count = 1,
		.stages = 1u << STAGE_FORWARD | 1u << STAGE_FORWARD_BACKWARD | 1u << STAGE_TRAIN |
			  1u << STAGE_LOAD,
		.precisions = 1u << PRECISION_FP32,
		.devices = {"cpu"},
		.device_count = 1,
	};
	if (onednn_has_bf16(&native->dnn))
		found->precisions |= 1u << PRECISION_BF16;
	onednn_version_text(&native->dnn, found->libraries[0].version,
			    sizeof(found->libraries[0].version));
	snprintf(found->version, sizeof(found->version), "%s", PRONY_VERSION);
	snprintf(found->instruction_set, sizeof(found->instruction_set), "%s",
		 onednn_isa_text(&native->dnn));
	return PRONY_OK;
}

static enum prony_status native_open(struct session *s, const struct recipe *recipe,
				     struct effective *effective, struct error *err)
{
	struct native *native = s->private_data;
	enum prony_status status = onednn_start(&native->dnn, recipe->threads, err);
	char version[32];

	if (status != PRONY_OK)
		return status;
	program_init(&native->program, &native->dnn);
	onednn_version_text(&native->dnn, version, sizeof(version));
	*effective = (struct effective){
		.device = "cpu",
		/* Every primitive is made with fpmath strict; what bf16 means for this network the
		 * build looks up in its primitives. */
		.precision = recipe->precision,
		.threads = onednn_threads(&native->dnn),
		.mxcsr = threads_mxcsr(),
	};
	snprintf(effective->settings, sizeof(effective->settings),
		 "onednn=%s;isa=%s;runtime=%s;fpmath=strict;loops=%s;loop_threads=%d;bound=%s;"
		 "rmsprop_epsilon=outside;decay=all;wait_policy=%s;spin_count=%s%s",
		 version, onednn_isa_text(&native->dnn), onednn_runtime_text(&native->dnn),
		 native->program.kernels->name, native->dnn.threads,
		 native->dnn.bound ? "yes" : "no",
		 getenv("OMP_WAIT_POLICY") ? getenv("OMP_WAIT_POLICY") : "",
		 getenv("GOMP_SPINCOUNT") ? getenv("GOMP_SPINCOUNT") : "",
		 recipe->precision == PRECISION_BF16
			 ? ";low_precision=activations and copies of weights"
			 : "");
	return PRONY_OK;
}

/*
 * Copies the rows of recurrent weights between ONNX's order of gates (i, o, f, c) and the library's
 * (i, f, c, o); a layer with one gate has one order.
 */
static void reorder_gates(float *to, const float *from, size_t elements, int gates, bool to_library)
{
	static const size_t order[] = {0, 2, 3, 1}; /* the library's, as ONNX counts */
	size_t block = elements / (size_t)gates;

	for (size_t g = 0; g < (size_t)gates; g++) {
		size_t other = gates == 4 ? order[g] : g;
		size_t target = to_library ? g : other, origin = to_library ? other : g;

		memcpy(to + target * block, from + origin * block, block * sizeof(float));
	}
}

/* Multiplies the rows of folded weights by what the normalisation multiplies their channel by. */
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
		return error_set(err, PRONY_BAD_INPUT, "the weights lack those of '%s'",
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
	float *out = native->program.operands[fold->bias].data;

	for (int i = 0; i < 4; i++) {
		const struct tensor *tensor =
			tensor_find(weights, graph->values[norm->inputs[1 + i]].name);

		if (!tensor)
			return error_set(err, PRONY_BAD_INPUT, "the weights lack those of '%s'",
					 norm->name);
		parts[i] = tensor->data;
	}
	for (int64_t i = 0; i < graph->values[norm->inputs[1]].shape.dims[0]; i++) {
		double factor =
			(double)parts[0][i] / sqrt((double)parts[3][i] + norm->attributes.epsilon);
		double bias = own ? (double)((const float *)own->data)[i] : 0;

		out[i] = (float)((bias - (double)parts[2][i]) * factor + (double)parts[1][i]);
	}
	return PRONY_OK;
}

static enum prony_status load_one(struct native *native, struct parameter *parameter,
				  const struct tensor *given, const struct tensor_set *weights,
				  struct error *err)
{
	size_t elements = (size_t)shape_elements(&given->shape);
	float *turned = NULL;
	enum prony_status status = PRONY_OK;

	if (parameter->keeps_original) {
		float *copy = arena_try_array(&native->program.arena, elements, sizeof(float), err);

		if (!copy)
			return PRONY_NOMEM;
		memcpy(copy, given->data, elements * sizeof(float));
		parameter->original = copy;
	}
	if (parameter->gates > 1 || parameter->folded >= 0) {
		turned = malloc(elements * sizeof(float));
		if (!turned)
			return error_set(err, PRONY_NOMEM, "no memory for weights");
	}
	if (parameter->gates > 1)
		reorder_gates(turned, given->data, elements, parameter->gates, true);
	else if (parameter->folded >= 0)
		status = fold_weights(native, parameter->folded, weights, given, turned, err);
	if (status == PRONY_OK)
		status = program_load(&native->program, parameter->operand, parameter->plain,
				      turned ? turned : given->data, err);
	if (status == PRONY_OK)
		status = lower_refresh_copies(&native->lowering, parameter, err);
	free(turned);
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
	struct arena *arena = &native->program.arena;
	size_t batch = (size_t)graph_batch(native->graph);

	native->slots =
		arena_try_array(arena, (size_t)native->recipe.slots, sizeof(*native->slots), err);
	if (!native->slots)
		return PRONY_NOMEM;
	for (int i = 0; i < native->recipe.slots; i++) {
		native->slots[i].labels = arena_try_array(arena, batch, sizeof(int32_t), err);
		if (!native->slots[i].labels)
			return PRONY_NOMEM;
	}
	return PRONY_OK;
}

static enum prony_status native_build(struct session *s, struct graph *graph,
				      const struct recipe *recipe, const struct tensor_set *weights,
				      struct built *built, struct error *err)
{
	struct native *native = s->private_data;
	bool state = recipe->stage == STAGE_TRAIN && recipe->optimiser != OPTIMISER_SGD;
	enum prony_status status = PRONY_OK;

	native->graph = graph;
	native->recipe = *recipe;
	native->program.seed = recipe->seed;
	if (recipe->stage != STAGE_FORWARD)
		status = graph_add_backward(graph, err);
	if (status == PRONY_OK)
		status = lower_graph(&native->lowering, &native->dnn, &native->program, graph,
				     recipe, err);
	if (status == PRONY_OK)
		status = lower_check_types(&native->lowering, err);
	if (status == PRONY_OK)
		status = program_finish(&native->program, native->lowering.training, state, err);
	if (status == PRONY_OK)
		status = load_weights(native, weights, err);
	if (status == PRONY_OK)
		status = make_slots(native, err);
	if (status != PRONY_OK)
		return status;
	*built = (struct built){.parameters = lower_parameter_elements(&native->lowering),
				.macs = native->lowering.macs};
	lower_notes(&native->lowering, built->notes, sizeof(built->notes));
	return PRONY_OK;
}

static enum prony_status convert_labels(const struct native *native, const struct tensor *labels,
					int32_t *out, struct error *err)
{
	enum prony_status status = check_labels(native->graph, labels, err);

	for (int64_t i = 0; status == PRONY_OK && i < graph_batch(native->graph); i++)
		out[i] = (int32_t)((const int64_t *)labels->data)[i];
	return status;
}

static enum prony_status native_feed(struct session *s, int slot, const struct tensor *input,
				     const struct tensor *labels, struct error *err)
{
	struct native *native = s->private_data;
	enum prony_status status = check_slot(slot, native->recipe.slots, err);

	if (status == PRONY_OK)
		status =
			check_input(&native->graph->values[native->graph->input].shape, input, err);
	if (status == PRONY_OK && (labels || native->lowering.training))
		status = convert_labels(native, labels, native->slots[slot].labels, err);
	if (status != PRONY_OK)
		return status;
	native->slots[slot].input = input->data;
	native->slots[slot].fed = true;
	return PRONY_OK;
}

static enum prony_status native_step(struct session *s, int slot, struct error *err)
{
	struct native *native = s->private_data;
	const struct slot *batch;
	enum prony_status status;

	if (slot < 0 || slot >= native->recipe.slots || !native->slots[slot].fed)
		return error_set(err, PRONY_INTERNAL, "slot %d was never fed", slot);
	batch = &native->slots[slot];
	native->program.labels = batch->labels;
	status = program_set_input(&native->program, batch->input, err);
	if (status == PRONY_OK)
		status = program_run(&native->program, err);
	native->stepped = status == PRONY_OK;
	return status;
}

static enum prony_status native_sync(struct session *s, struct error *err)
{
	struct native *native = s->private_data;

	return onednn_check(native->dnn.stream_wait(native->dnn.stream), "wait", "stream", err);
}

static enum prony_status store_one(struct native *native, const struct parameter *parameter,
				   int operand, const struct tensor *out, struct error *err)
{
	size_t elements = (size_t)shape_elements(&out->shape);
	float *turned;
	enum prony_status status =
		program_store(&native->program, operand, parameter->plain, out->data, err);

	if (status != PRONY_OK || parameter->gates <= 1)
		return status;
	turned = malloc(elements * sizeof(float));
	if (!turned)
		return error_set(err, PRONY_NOMEM, "no memory for weights");
	reorder_gates(turned, out->data, elements, parameter->gates, false);
	memcpy(out->data, turned, elements * sizeof(float));
	free(turned);
	return PRONY_OK;
}

/* One tensor of `out` from the parameter or state of its name; `gradients`: their gradients. */
static enum prony_status read_one(struct native *native, const struct parameter *parameters,
				  int count, bool gradients, const struct tensor *out,
				  struct error *err)
{
	const struct parameter *found = NULL;

	for (int k = 0; k < count; k++) {
		if (strcmp(native->graph->values[parameters[k].value].name, out->name) == 0)
			found = &parameters[k];
	}
	if (!found)
		return error_set(err, PRONY_INTERNAL, "there is no '%s'", out->name);
	if (out->dtype != DTYPE_F32 ||
	    !shape_equal(&out->shape, &native->graph->values[found->value].shape))
		return error_set(err, PRONY_INTERNAL, "'%s' has another type or shape", out->name);
	if (found->original) {
		memcpy(out->data, found->original,
		       (size_t)shape_elements(&out->shape) * sizeof(float));
		return PRONY_OK;
	}
	return store_one(native, found, gradients ? found->gradient : found->operand, out, err);
}

static enum prony_status read_all(struct native *native, enum readout what, struct tensor_set *out,
				  struct error *err)
{
	const struct lowering *lowering = &native->lowering;
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; status == PRONY_OK && i < out->count; i++) {
		if (what == READ_STATE)
			status = read_one(native, lowering->states, lowering->state_count, false,
					  &out->tensors[i], err);
		else
			status = read_one(native, lowering->parameters, lowering->parameter_count,
					  what == READ_GRADIENTS, &out->tensors[i], err);
	}
	return status;
}

static enum prony_status read_logits(struct native *native, struct tensor_set *out,
				     struct error *err)
{
	const struct operand *logits = &native->program.operands[native->lowering.logits];

	if (out->count != 1 || out->tensors[0].dtype != DTYPE_F32 ||
	    !shape_equal(&out->tensors[0].shape,
			 &native->graph->values[native->graph->logits].shape))
		return error_set(err, PRONY_INTERNAL, "logits are one F32 tensor of their shape");
	memcpy(out->tensors[0].data, logits->data, logits->bytes);
	return PRONY_OK;
}

static enum prony_status read_loss(const struct native *native, struct tensor_set *out,
				   struct error *err)
{
	if (!native->lowering.training)
		return error_set(err, PRONY_UNSUPPORTED, "forward computes no loss");
	if (out->count == 1 && out->tensors[0].dtype == DTYPE_F64)
		*(double *)out->tensors[0].data = native->program.loss;
	else if (out->count == 1 && out->tensors[0].dtype == DTYPE_F32)
		*(float *)out->tensors[0].data = (float)native->program.loss;
	else
		return error_set(err, PRONY_INTERNAL, "the loss is one F64 or F32");
	return PRONY_OK;
}

static enum prony_status native_read(struct session *s, enum readout what, struct tensor_set *out,
				     struct error *err)
{
	struct native *native = s->private_data;

	if (what != READ_WEIGHTS && what != READ_STATE && !native->stepped)
		return error_set(err, PRONY_INTERNAL, "nothing was computed yet");
	switch (what) {
	case READ_LOGITS:
		return read_logits(native, out, err);
	case READ_LOSS:
		return read_loss(native, out, err);
	case READ_WEIGHTS:
		return read_all(native, what, out, err);
	case READ_GRADIENTS:
		if (!native->lowering.training)
			return error_set(err, PRONY_UNSUPPORTED, "forward computes no gradients");
		return read_all(native, what, out, err);
	case READ_STATE:
		return read_all(native, what, out, err);
	default:
		return error_set(err, PRONY_INTERNAL, "cannot read %d", (int)what);
	}
}

static void native_close(struct session *s)
{
	struct native *native = s->private_data;

	lower_release(&native->lowering);
	program_release(&native->program);
	onednn_stop(&native->dnn);
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

/* The events have the clock of the steps. */
static enum prony_status profile_end(struct session *s, const int64_t *instants, int64_t steps,
				     struct profile_log *log, struct error *err)
{
	const struct native *native = s->private_data;

	(void)instants;
	return native_profile_end(native_program(s), native->graph, steps, log, err);
}

static const struct adapter_profile native_profile = {.begin = profile_begin, .end = profile_end};

const struct adapter adapter_native = {
	.abi = ADAPTER_ABI,
	.name = "native",
	.summary = "our own executor over oneDNN 3: the floor under every other number",
	.private_size = sizeof(struct native),
	.options = "",
	.probe = native_probe,
	.supports = lower_supports,
	.open = native_open,
	.build = native_build,
	.feed = native_feed,
	.step = native_step,
	.sync = native_sync,
	.read = native_read,
	.close = native_close,
	.profile = &native_profile,
};
