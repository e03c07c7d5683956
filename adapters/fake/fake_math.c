#include "adapters/fake/fake_math.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"

enum prony_status fake_network_supports(const struct graph *graph, struct error *why)
{
	bool named[OP_COUNT] = {false};
	struct strbuf missing;
	enum prony_status status = PRONY_OK;

	strbuf_init(&missing, ERROR_TEXT_BYTES);
	for (int i = 0; i < graph->forward_count; i++) {
		enum op op = graph->nodes[i].op;

		if (fake_operator_find(op) || named[op])
			continue;
		named[op] = true;
		strbuf_printf(&missing, "%s%s", missing.length ? ", " : "", operator_name(op));
	}
	for (int i = 0; !missing.length && i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (node->op == OP_ADD && !shape_equal(&graph->values[node->inputs[0]].shape,
						       &graph->values[node->inputs[1]].shape))
			status = error_set(why, PRONY_UNSUPPORTED, "Add '%s' broadcasts",
					   node->name);
	}
	if (missing.length)
		status = error_set(why, PRONY_UNSUPPORTED, "no operator %s", strbuf_text(&missing));
	strbuf_release(&missing);
	return status;
}

static bool is_kept(enum value_kind kind)
{
	return kind == VALUE_PARAMETER || kind == VALUE_STATE;
}

/* Exchanges rows 0 and 1 of an array whose first dimension counts channels. */
static void swap_channels(const struct shape *shape, float *data)
{
	int64_t row = shape_elements(shape) / shape->dims[0];

	for (int64_t i = 0; i < row; i++) {
		float kept = data[i];

		data[i] = data[row + i];
		data[row + i] = kept;
	}
}

static bool swappable(const struct value *value)
{
	return value->kind == VALUE_PARAMETER && value->shape.rank >= 2 &&
	       value->shape.dims[0] >= 2;
}

/* The first weight, and the end of the first layer's parameters ("conv1.weight", "conv1.bias"). */
static void find_first_layer(struct fake_network *net)
{
	const struct graph *graph = net->graph;
	size_t layer = 0; /* length of its name */
	const char *first = NULL;

	net->swapped = VALUE_NONE;
	net->frozen_to = 0;
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind != VALUE_PARAMETER)
			continue;
		if (!first) {
			first = value->name;
			layer = strcspn(first, ".");
		}
		if (strncmp(value->name, first, layer + 1) == 0)
			net->frozen_to = i + 1;
		if (net->swapped == VALUE_NONE && swappable(value))
			net->swapped = i;
	}
}

static enum prony_status allocate_value(struct fake_network *net, int i, struct error *err)
{
	const struct value *value = &net->graph->values[i];
	int64_t count = shape_elements(&value->shape);

	if (value->kind == VALUE_INPUT || value->kind == VALUE_LABEL)
		return PRONY_OK;
	if (count < 0)
		return error_set(err, PRONY_BAD_INPUT, "%s is too large", value->name);
	net->values[i] = arena_try_array(&net->arena, (size_t)count, sizeof(float), err);
	if (net->values[i] && value->kind == VALUE_PARAMETER)
		net->moments[i] = arena_try_array(&net->arena, (size_t)count, sizeof(float), err);
	return !net->values[i] || (value->kind == VALUE_PARAMETER && !net->moments[i]) ? PRONY_NOMEM
										       : PRONY_OK;
}

static enum prony_status load_weight(struct fake_network *net, int i,
				     const struct tensor_set *weights, struct error *err)
{
	const struct value *value = &net->graph->values[i];
	const struct tensor *tensor = tensor_find(weights, value->name);

	if (!tensor || tensor->dtype != DTYPE_F32 || !shape_equal(&tensor->shape, &value->shape))
		return error_set(err, PRONY_BAD_INPUT,
				 "the bundle has no F32 weight %s of its shape", value->name);
	memcpy(net->values[i], tensor->data, (size_t)tensor_bytes(tensor));
	if (net->mutants.swapped_channels && i == net->swapped)
		swap_channels(&value->shape, net->values[i]);
	return PRONY_OK;
}

static enum prony_status allocate_scratch(struct fake_network *net, struct error *err)
{
	int64_t largest = 1;

	for (int i = 0; i < net->graph->value_count; i++) {
		int64_t count = shape_elements(&net->graph->values[i].shape);

		if (count > largest)
			largest = count;
	}
	for (int i = 0; i < 2 && net->mutants.tf32; i++) {
		net->scratch[i] = arena_try_array(&net->arena, (size_t)largest, sizeof(float), err);
		if (!net->scratch[i])
			return PRONY_NOMEM;
	}
	return PRONY_OK;
}

enum prony_status fake_network_init(struct fake_network *net, struct graph *graph,
				    const struct recipe *recipe, const struct tensor_set *weights,
				    const struct fake_mutants *mutants, struct error *err)
{
	enum prony_status status = PRONY_OK;

	*net = (struct fake_network){
		.graph = graph, .recipe = *recipe, .mutants = *mutants, .loss = NAN};
	arena_init(&net->arena, 0);
	if (recipe->stage != STAGE_FORWARD)
		status = graph_add_backward(graph, err);
	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < graph->node_count; i++)
		if (!fake_operator_find(graph->nodes[i].op))
			return error_set(err, PRONY_UNSUPPORTED, "no operator %s",
					 operator_name(graph->nodes[i].op));
	find_first_layer(net);
	net->values = arena_array(&net->arena, (size_t)graph->value_count, sizeof *net->values);
	net->moments = arena_array(&net->arena, (size_t)graph->value_count, sizeof *net->moments);
	for (int i = 0; i < graph->value_count && status == PRONY_OK; i++) {
		status = allocate_value(net, i, err);
		if (status == PRONY_OK && is_kept(graph->values[i].kind))
			status = load_weight(net, i, weights, err);
	}
	return status == PRONY_OK ? allocate_scratch(net, err) : status;
}

void fake_network_release(struct fake_network *net)
{
	if (!net)
		return;
	arena_release(&net->arena);
	net->values = NULL;
}

static void update_momentum(float *w, float *v, const float *g, int64_t count, float rate, float mu,
			    float decay)
{
	for (int64_t i = 0; i < count; i++) {
		v[i] = mu * v[i] + (g[i] + decay * w[i]);
		w[i] -= rate * v[i];
	}
}

/* Epsilon outside the root, as settings says. */
static void update_rmsprop(float *w, float *s, const float *g, int64_t count, float rate,
			   const struct recipe *recipe)
{
	float rho = (float)recipe->rho, epsilon = (float)recipe->epsilon;
	float decay = (float)recipe->weight_decay;

	for (int64_t i = 0; i < count; i++) {
		float gradient = g[i] + decay * w[i];

		s[i] = rho * s[i] + (float)(1 - recipe->rho) * gradient * gradient;
		w[i] -= rate * gradient / (sqrtf(s[i]) + epsilon);
	}
}

static void update(struct fake_network *net)
{
	const struct recipe *recipe = &net->recipe;
	float rate = (float)(recipe->learning_rate * net->mutants.lr_scale);
	bool has_velocity = recipe->optimiser == OPTIMISER_MOMENTUM && !net->mutants.no_momentum;
	float mu = has_velocity ? (float)recipe->momentum : 0;

	for (int i = 0; i < net->graph->value_count; i++) {
		const struct value *value = &net->graph->values[i];

		if (value->kind != VALUE_PARAMETER || value->gradient < 0)
			continue;
		if (net->mutants.frozen_layer && i < net->frozen_to)
			continue;
		int64_t count = shape_elements(&value->shape);
		const float *gradient = net->values[value->gradient];

		if (recipe->optimiser == OPTIMISER_RMSPROP)
			update_rmsprop(net->values[i], net->moments[i], gradient, count, rate,
				       recipe);
		else /* plain SGD is momentum 0 */
			update_momentum(net->values[i], net->moments[i], gradient, count, rate, mu,
					(float)recipe->weight_decay);
	}
}

static void forget_bias_gradients(struct fake_network *net)
{
	for (int i = 0; i < net->graph->value_count; i++) {
		const struct value *value = &net->graph->values[i];

		if (value->kind == VALUE_PARAMETER && value->shape.rank == 1 &&
		    value->gradient >= 0)
			memset(net->values[value->gradient], 0,
			       (size_t)shape_elements(&value->shape) * sizeof(float));
	}
}

void fake_network_step(struct fake_network *net, const float *input, const int64_t *labels)
{
	const struct graph *graph = net->graph;

	/* Nothing writes to the input: no gradient of it is computed. */
	net->values[graph->input] = (float *)input;
	net->labels = net->recipe.stage == STAGE_FORWARD ? NULL : labels;
	for (int i = 0; i < graph->node_count; i++)
		fake_operator_find(graph->nodes[i].op)(net, &graph->nodes[i]);
	if (net->recipe.stage != STAGE_FORWARD && net->mutants.no_bias_gradient)
		forget_bias_gradients(net);
	if (net->recipe.stage == STAGE_TRAIN)
		update(net);
	net->step++;
}

static int find_value(const struct graph *graph, const char *name)
{
	for (int i = 0; i < graph->value_count; i++)
		if (strcmp(graph->values[i].name, name) == 0)
			return i;
	return VALUE_NONE;
}

enum prony_status fake_network_read(const struct fake_network *net, bool gradients,
				    struct tensor_set *out, struct error *err)
{
	for (size_t i = 0; i < out->count; i++) {
		struct tensor *tensor = &out->tensors[i];
		int value = find_value(net->graph, tensor->name);
		int source = value;

		if (gradients && value != VALUE_NONE)
			source = net->graph->values[value].gradient;
		if (source < 0 || !net->values[source] || tensor->dtype != DTYPE_F32)
			return error_set(err, PRONY_INTERNAL, "%s cannot be read as F32",
					 tensor->name);
		memcpy(tensor->data, net->values[source], (size_t)tensor_bytes(tensor));
		if (net->mutants.swapped_channels && value == net->swapped)
			swap_channels(&tensor->shape, tensor->data);
	}
	return PRONY_OK;
}
