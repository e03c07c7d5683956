/* The reference interpreter: memory, batches, and running the nodes of a graph. */
#include "parity/reference.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "parity/reference_internal.h"

/* Converts a tensor to float64, which represents all indices and classes exactly. */
static enum prony_status to_double(const struct tensor *tensor, double *out, struct error *err)
{
	int64_t count = shape_elements(&tensor->shape);
	const float *single = tensor->data;
	const int64_t *longs = tensor->data;
	const int32_t *ints = tensor->data;
	const uint8_t *bytes = tensor->data;

	switch (tensor->dtype) {
	case DTYPE_F32:
		for (int64_t i = 0; i < count; i++)
			out[i] = (double)single[i];
		return PRONY_OK;
	case DTYPE_F64:
		memcpy(out, tensor->data, (size_t)count * sizeof(*out));
		return PRONY_OK;
	case DTYPE_I64:
		for (int64_t i = 0; i < count; i++)
			out[i] = (double)longs[i];
		return PRONY_OK;
	case DTYPE_I32:
		for (int64_t i = 0; i < count; i++)
			out[i] = ints[i];
		return PRONY_OK;
	case DTYPE_BOOL:
		for (int64_t i = 0; i < count; i++)
			out[i] = bytes[i];
		return PRONY_OK;
	default:
		return error_set(err, PRONY_UNSUPPORTED,
				 "%.80s: the reference does not support type %s", tensor->name,
				 dtype_name(tensor->dtype));
	}
}

static enum prony_status check_shape(const struct tensor *tensor, const struct value *value,
				     struct error *err)
{
	char have[128], want[128];

	if (shape_equal(&tensor->shape, &value->shape))
		return PRONY_OK;
	shape_text(&tensor->shape, have, sizeof(have));
	shape_text(&value->shape, want, sizeof(want));
	return error_set(err, PRONY_BAD_INPUT, "%.80s has shape %s; the graph needs %s",
			 value->name, have, want);
}

static enum prony_status load_weight(struct reference *ref, int index,
				     const struct tensor_set *weights, struct error *err)
{
	const struct value *value = &ref->graph->values[index];
	const struct tensor *tensor = tensor_find(weights, value->name);
	enum prony_status status;

	if (!tensor)
		return error_set(err, PRONY_BAD_INPUT, "there are no weights for %.80s",
				 value->name);
	if (tensor->dtype != DTYPE_F32 && tensor->dtype != DTYPE_F64)
		return error_set(err, PRONY_BAD_INPUT, "%.80s is %s; it must be F32", value->name,
				 dtype_name(tensor->dtype));
	status = check_shape(tensor, value, err);
	if (status == PRONY_OK)
		status = to_double(tensor, ref->values[index], err);
	return status;
}

static int first_dropout(const struct graph *graph)
{
	int first = 0;

	while (first < graph->forward_count && !operator_row(graph->nodes[first].op)->is_random)
		first++;
	return first;
}

/* See `frees`. The inputs of reference_redraw are kept too. */
static void find_last_uses(struct reference *ref)
{
	const struct graph *graph = ref->graph;
	int first = first_dropout(graph), *last_use = ref->last_use;

	for (int i = 0; i < graph->value_count; i++)
		last_use[i] = graph->values[i].producer;
	for (int i = 0; i < graph->node_count; i++)
		for (int j = 0; j < graph->nodes[i].input_count; j++)
			if (graph->nodes[i].inputs[j] != VALUE_NONE)
				last_use[graph->nodes[i].inputs[j]] = i;
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		bool before_dropout = value->producer < first && last_use[i] >= first &&
				      first < graph->forward_count;

		if (value->producer < 0 || before_dropout ||
		    shape_elements(&value->shape) < REFERENCE_KEPT_BYTES / (int64_t)sizeof(double))
			last_use[i] = INT_MAX;
	}
	for (int i = 0; i < graph->value_count; i++)
		if (graph->values[i].kind == VALUE_PARAMETER && graph->values[i].gradient >= 0)
			last_use[graph->values[i].gradient] = INT_MAX;
	for (int i = 0; i < graph->value_count; i++) {
		double momentum;
		int statistic = graph->values[i].kind == VALUE_STATE
					? graph_state_statistic(graph, i, &momentum)
					: VALUE_NONE;

		if (statistic == VALUE_NONE)
			statistic = graph_state_present(graph, i);
		if (statistic != VALUE_NONE)
			last_use[statistic] = INT_MAX;
	}
	if (graph->logits >= 0)
		last_use[graph->logits] = INT_MAX;
	if (graph->loss >= 0)
		last_use[graph->loss] = INT_MAX;
}

static double *take_spare(struct reference *ref, int64_t elements)
{
	for (int i = 0; i < REFERENCE_SPARES; i++) {
		double *array = ref->spares[i].array;

		if (!array || ref->spares[i].elements != elements)
			continue;
		ref->spares[i].array = NULL;
		return array;
	}
	return NULL;
}

static void keep_spare(struct reference *ref, double *array, int64_t elements)
{
	int i = 0;

	while (i < REFERENCE_SPARES && ref->spares[i].array)
		i++;
	if (i == REFERENCE_SPARES) {
		i = ref->next_spare;
		ref->next_spare = (i + 1) % REFERENCE_SPARES;
		free(ref->spares[i].array);
	}
	ref->spares[i].array = array;
	ref->spares[i].elements = elements;
}

/* Every kernel writes all of its outputs, so a spare array needs no clearing. */
static enum prony_status allocate_value(struct reference *ref, int index, struct error *err)
{
	int64_t elements = shape_elements(&ref->graph->values[index].shape);

	ref->values[index] = take_spare(ref, elements);
	if (ref->values[index])
		return PRONY_OK;
	ref->values[index] = calloc(elements > 0 ? (size_t)elements : 1, sizeof(double));
	if (!ref->values[index])
		return error_set(err, PRONY_NOMEM,
				 "not enough memory for %.80s of the reference: %" PRId64
				 " elements",
				 ref->graph->values[index].name, elements);
	return PRONY_OK;
}

static enum prony_status allocate(struct reference *ref, struct error *err)
{
	size_t count = (size_t)ref->graph->value_count;

	ref->values = arena_try_array(&ref->arena, count + 1, sizeof(*ref->values), err);
	ref->last_use = arena_try_array(&ref->arena, count + 1, sizeof(*ref->last_use), err);
	ref->moments = arena_try_array(&ref->arena, count + 1, sizeof(*ref->moments), err);
	if (!ref->values || !ref->last_use || !ref->moments)
		return PRONY_NOMEM;
	find_last_uses(ref);
	for (size_t i = 0; i < count; i++) {
		const struct value *value = &ref->graph->values[i];
		int64_t elements = shape_elements(&value->shape);

		if (elements < 0)
			return error_set(err, PRONY_BAD_INPUT, "%.80s: the shape overflows",
					 value->name);
		size_t room = elements > 0 ? (size_t)elements : 1;
		/* The other values are allocated when a node first writes them. */
		if (ref->last_use[i] == INT_MAX && allocate_value(ref, (int)i, err) != PRONY_OK)
			return PRONY_NOMEM;
		if (value->kind != VALUE_PARAMETER)
			continue;
		ref->moments[i] = arena_try_array(&ref->arena, room, sizeof(double), err);
		if (!ref->moments[i])
			return PRONY_NOMEM;
	}
	return PRONY_OK;
}

enum prony_status reference_init(struct reference *ref, const struct graph *graph,
				 const struct tensor_set *weights, struct error *err)
{
	enum prony_status status;

	*ref = (struct reference){.graph = graph};
	arena_init(&ref->arena, 0);
	for (int i = 0; i < graph->node_count; i++)
		if (!operator_row(graph->nodes[i].op)->compute)
			return error_set(err, PRONY_UNSUPPORTED,
					 "the reference does not support operator %s",
					 operator_name(graph->nodes[i].op));
	status = allocate(ref, err);
	for (int i = 0; status == PRONY_OK && i < graph->value_count; i++)
		if (graph->values[i].kind == VALUE_PARAMETER ||
		    graph->values[i].kind == VALUE_STATE)
			status = load_weight(ref, i, weights, err);
	return status;
}

void reference_release(struct reference *ref)
{
	if (!ref)
		return;
	for (int i = 0; ref->values && i < ref->graph->value_count; i++)
		free(ref->values[i]);
	for (int i = 0; i < REFERENCE_SPARES; i++)
		free(ref->spares[i].array);
	arena_release(&ref->arena);
	*ref = (struct reference){0};
}

enum prony_status reference_feed(struct reference *ref, struct batch batch, struct error *err)
{
	const struct graph *graph = ref->graph;
	enum prony_status status = batch_check(graph, batch, err);

	ref->has_labels = false;
	for (int i = 0; status == PRONY_OK && i < batch.input_count; i++)
		status = to_double(&batch.inputs[i], ref->values[graph_input(graph, i)], err);
	for (int i = 0; status == PRONY_OK && i < batch.label_count; i++)
		status = to_double(&batch.labels[i], ref->values[graph_label(graph, i)], err);
	ref->has_labels = status == PRONY_OK && batch.label_count > 0;
	return status;
}

static bool reads_label(const struct graph *graph, const struct node *node)
{
	for (int i = 0; i < node->input_count; i++)
		if (node->inputs[i] != VALUE_NONE &&
		    graph->values[node->inputs[i]].kind == VALUE_LABEL)
			return true;
	return false;
}

/* Close comparisons may be further apart in a rounded run. */
#define CLOSE_ROUNDED 2

/* Allocates the outputs of a node that an earlier step freed. */
static enum prony_status need_outputs(struct reference *ref, const struct node *node,
				      struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; i < node->output_count && status == PRONY_OK; i++)
		if (node->outputs[i] != VALUE_NONE && !ref->values[node->outputs[i]])
			status = allocate_value(ref, node->outputs[i], err);
	return status;
}

static void free_value(struct reference *ref, int value, int node)
{
	if (value == VALUE_NONE || ref->last_use[value] > node)
		return;
	if (ref->values[value])
		keep_spare(ref, ref->values[value],
			   shape_elements(&ref->graph->values[value].shape));
	ref->values[value] = NULL;
}

static void free_used(struct reference *ref, int node)
{
	for (int i = 0; i < ref->graph->nodes[node].input_count; i++)
		free_value(ref, ref->graph->nodes[node].inputs[i], node);
	for (int i = 0; i < ref->graph->nodes[node].output_count; i++)
		free_value(ref, ref->graph->nodes[node].outputs[i], node);
}

/* Reports a node to the control; returns false if it must stop. */
static bool may_go_on(struct reference_control *control, const struct graph *graph,
		      const struct node *node)
{
	const struct operator_row *row = operator_row(node->op);

	if (!control)
		return true;
	if ((control->stop && *control->stop) ||
	    (control->deadline_ns && clock_monotonic_ns() >= control->deadline_ns))
		return false;
	if (control->progress && control->expected > 0)
		control->progress(control->context, fmin(control->done / control->expected, 0.99));
	if (row->macs)
		control->done += (double)row->macs(graph, node);
	return true;
}

enum prony_status reference_nodes(struct reference *ref, const struct recipe *recipe, bool training,
				  struct kinks *kinks, int first, int end, struct error *err)
{
	enum prony_status status = PRONY_OK;

	struct accumulation sum = {0};
	struct kernel_call call = {.graph = ref->graph,
				   .values = ref->values,
				   .training = training,
				   .dropout = training && recipe->dropout,
				   .seed = recipe->seed,
				   .step = ref->step,
				   .hooks = kinks ? &kinks_hooks : NULL,
				   .kinks = kinks,
				   .rounds = kinks && kinks->rounding > 0};

	for (int i = first; i < end && status == PRONY_OK; i++) {
		call.node = &ref->graph->nodes[i];
		if (!may_go_on(ref->control, ref->graph, call.node))
			return error_set(err, PRONY_INTERRUPTED, "interrupted");
		if (kinks) {
			reference_deepen(&sum, ref->graph, call.node);
			call.close = reference_closeness(ref, recipe) *
				     accumulation_rounding(&sum, kinks->precision);
			call.close =
				fmax(call.close, reference_measured_closeness(call.node, kinks));
			if (kinks->amplified)
				call.close *= kinks->amplified[ref->step];
			if (kinks->turned)
				call.close *= CLOSE_ROUNDED;
		}
		status = need_outputs(ref, call.node, err);
		if (status == PRONY_OK && (ref->has_labels || !reads_label(ref->graph, call.node)))
			operator_row(call.node->op)->compute(&call);
		if (status == PRONY_OK && call.rounds)
			rounding_add(&call);
		if (status == PRONY_OK && ref->frees)
			free_used(ref, i);
	}
	return status;
}

/* Caches become what the step wrote. In training, running statistics follow the batch's; the
 * variance is that of n, not n - 1, as in ONNX. */
static void update_states(struct reference *ref, bool training)
{
	const struct graph *graph = ref->graph;

	for (int i = 0; i < graph->value_count; i++) {
		double momentum = 0, *state = ref->values[i];
		int statistic;

		if (graph->values[i].kind != VALUE_STATE)
			continue;
		statistic = graph_state_present(graph, i);
		if (statistic == VALUE_NONE && training)
			statistic = graph_state_statistic(graph, i, &momentum);
		if (statistic == VALUE_NONE)
			continue;
		for (int64_t k = 0; k < shape_elements(&graph->values[i].shape); k++)
			state[k] = momentum * state[k] + (1 - momentum) * ref->values[statistic][k];
	}
}

enum prony_status reference_step_kinks(struct reference *ref, const struct recipe *recipe,
				       bool epsilon_inside, struct kinks *kinks, struct error *err)
{
	const struct graph *graph = ref->graph;
	bool training = recipe->stage == STAGE_FORWARD_BACKWARD || recipe->stage == STAGE_TRAIN;

	if (!training && recipe->stage != STAGE_FORWARD)
		return error_set(err, PRONY_UNSUPPORTED, "the reference does not support stage %s",
				 stage_name(recipe->stage));
	if (training && (!ref->has_labels || graph->loss == VALUE_NONE))
		return error_set(err, PRONY_BAD_INPUT, "network %.80s: training needs %s",
				 graph->name, ref->has_labels ? "a loss" : "labels");
	if (training && graph->node_count == graph->forward_count)
		return error_set(err, PRONY_INTERNAL, "network %.80s has no backward pass",
				 graph->name);
	if ((unsigned)recipe->optimiser >= OPTIMISER_COUNT)
		return error_set(err, PRONY_INTERNAL, "unknown optimiser %d",
				 (int)recipe->optimiser);

	enum prony_status status =
		reference_nodes(ref, recipe, training, kinks, 0,
				training ? graph->node_count : graph->forward_count, err);
	if (status != PRONY_OK)
		return status;
	update_states(ref, training);
	if (recipe->stage == STAGE_TRAIN && recipe->optimiser == OPTIMISER_ADAMW &&
	    reference_need_squares(ref, err) != PRONY_OK)
		return PRONY_NOMEM;
	double clip = recipe->stage == STAGE_TRAIN ? reference_clip(ref, recipe) : 1;
	for (int i = 0; i < graph->value_count && recipe->stage == STAGE_TRAIN; i++)
		if (graph->values[i].kind == VALUE_PARAMETER && graph->values[i].gradient >= 0)
			reference_update(ref, recipe, clip, epsilon_inside, kinks, i);
	ref->step++;
	return PRONY_OK;
}

enum prony_status reference_step(struct reference *ref, const struct recipe *recipe,
				 bool epsilon_inside, struct error *err)
{
	return reference_step_kinks(ref, recipe, epsilon_inside, NULL, err);
}

enum prony_status reference_forward(struct reference *ref, const struct recipe *recipe,
				    bool training, struct error *err)
{
	struct recipe plain = *recipe;
	enum prony_status status;

	plain.dropout = false;
	status = reference_nodes(ref, &plain, training, NULL, 0, ref->graph->forward_count, err);
	if (status == PRONY_OK)
		ref->step++;
	return status;
}

enum prony_status reference_redraw(struct reference *ref, const struct recipe *recipe,
				   struct error *err)
{
	if (!ref->has_labels)
		return error_set(err, PRONY_BAD_INPUT, "the loss needs labels");
	enum prony_status status = reference_nodes(
		ref, recipe, true, NULL, first_dropout(ref->graph), ref->graph->forward_count, err);
	if (status == PRONY_OK)
		ref->step++;
	return status;
}

const double *reference_value(const struct reference *ref, int value, int64_t *count)
{
	if (!ref->values || value < 0 || value >= ref->graph->value_count)
		return NULL;
	*count = shape_elements(&ref->graph->values[value].shape);
	return ref->values[value];
}

double reference_loss(const struct reference *ref)
{
	if (ref->graph->loss == VALUE_NONE || !ref->has_labels || ref->step == 0)
		return NAN;
	return ref->values[ref->graph->loss][0];
}

double reference_objective(const struct graph *graph, const double *logits, const int64_t *labels)
{
	const struct node *node = &graph->nodes[graph->forward_count - 1];
	int label = graph_label(graph, 0);
	int64_t count = shape_elements(&graph->values[label].shape);
	double loss = NAN, *wide, **values;
	struct arena arena;

	arena_init(&arena, 0);
	wide = arena_array(&arena, (size_t)count, sizeof(*wide));
	values = arena_array(&arena, (size_t)graph->value_count, sizeof(*values));
	for (int64_t i = 0; i < count; i++)
		wide[i] = (double)labels[i];
	values[graph->logits] = (double *)(uintptr_t)logits;
	values[label] = wide;
	values[graph->loss] = &loss;
	operator_row(node->op)->compute(
		&(struct kernel_call){.graph = graph, .node = node, .values = values});
	arena_release(&arena);
	return loss;
}

int64_t reference_cost(const struct graph *graph, enum stage stage)
{
	bool training = stage == STAGE_FORWARD_BACKWARD || stage == STAGE_TRAIN;
	/* Each of the two gradients costs as much as the product (the input's gradient less). */
	int64_t factor = training ? 3 : 1, cost;

	if (__builtin_mul_overflow(graph_macs(graph), factor, &cost))
		return INT64_MAX;
	return cost;
}
