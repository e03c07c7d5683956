/* Memory and steps of the float32 executor. */
#include "adapters/fake/executor.h"

#include <math.h>
#include <string.h>

#include "adapters/fake/executor_internal.h"
#include "base/strbuf.h"

enum prony_status executor_supports(const struct graph *graph, struct error *why)
{
	bool named[OP_COUNT] = {false};
	struct strbuf missing;
	enum prony_status status = PRONY_OK;

	strbuf_init(&missing, ERROR_TEXT_BYTES);
	for (int i = 0; i < graph->forward_count; i++) {
		enum op op = graph->nodes[i].op;

		if (executor_find(op) || named[op])
			continue;
		named[op] = true;
		strbuf_printf(&missing, "%s%s", missing.length ? ", " : "", operator_name(op));
	}
	for (int i = 0; !missing.length && i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (node->op == OP_ADD && !shape_equal(&graph->values[node->inputs[0]].shape,
						       &graph->values[node->inputs[1]].shape))
			status = error_set(why, PRONY_UNSUPPORTED,
					   "Add '%s': broadcasting is not supported", node->name);
	}
	if (missing.length)
		status = error_set(why, PRONY_UNSUPPORTED, "operators that are not supported: %s",
				   strbuf_text(&missing));
	strbuf_release(&missing);
	return status;
}

static enum prony_status make_value(struct executor *ex, int i, const struct tensor_set *weights,
				    struct error *err)
{
	const struct value *value = &ex->graph->values[i];
	bool given = value->kind == VALUE_PARAMETER || value->kind == VALUE_STATE;
	const struct tensor *tensor = given ? tensor_find(weights, value->name) : NULL;
	int64_t count = shape_elements(&value->shape);

	if (value->kind == VALUE_INPUT || value->kind == VALUE_LABEL)
		return PRONY_OK;
	if (count < 0)
		return error_set(err, PRONY_BAD_INPUT, "%s is too large", value->name);
	if (given &&
	    (!tensor || tensor->dtype != DTYPE_F32 || !shape_equal(&tensor->shape, &value->shape)))
		return error_set(err, PRONY_BAD_INPUT,
				 "the bundle has no F32 weight %s with the network's shape",
				 value->name);
	ex->values[i] = arena_try_array(&ex->arena, (size_t)count, sizeof(float), err);
	if (!ex->values[i])
		return PRONY_NOMEM;
	if (tensor)
		memcpy(ex->values[i], tensor->data, (size_t)tensor_bytes(tensor));
	if (value->kind != VALUE_PARAMETER)
		return PRONY_OK;
	ex->moments[i] = arena_try_array(&ex->arena, 2 * (size_t)count, sizeof(float), err);
	return ex->moments[i] ? PRONY_OK : PRONY_NOMEM;
}

enum prony_status executor_init(struct executor *ex, const struct graph *graph,
				const struct tensor_set *weights, struct error *err)
{
	enum prony_status status = PRONY_OK;

	*ex = (struct executor){.graph = graph, .settings = {.operand_bits = 24, .rate_factor = 1}};
	arena_init(&ex->arena, 0);
	for (int i = 0; i < graph->node_count; i++)
		if (!executor_find(graph->nodes[i].op))
			return error_set(err, PRONY_UNSUPPORTED,
					 "operators that are not supported: %s",
					 operator_name(graph->nodes[i].op));
	ex->values = arena_array(&ex->arena, (size_t)graph->value_count, sizeof(float *));
	ex->moments = arena_array(&ex->arena, (size_t)graph->value_count, sizeof(float *));
	for (int i = 0; i < graph->value_count && status == PRONY_OK; i++)
		status = make_value(ex, i, weights, err);
	if (status != PRONY_OK)
		return status;
	if (graph->loss != VALUE_NONE)
		ex->values[graph->loss][0] = NAN; /* until a step computes one */
	return executor_make_scratch(ex, err);
}

void executor_release(struct executor *ex)
{
	if (!ex)
		return;
	arena_release(&ex->arena);
	ex->values = NULL;
}

/* Updates the running statistics of a normalisation. */
static void follow(const struct executor *ex, const struct node *node)
{
	const struct shape *x = &ex->graph->values[node->inputs[0]].shape;
	float momentum = (float)(ex->settings.norm_momentum > 0 ? ex->settings.norm_momentum
								: node->attributes.momentum);
	float count = (float)(shape_elements(x) / x->dims[1]);

	for (int i = 0; i < 2; i++) {
		float *running = ex->values[node->inputs[3 + i]];
		float factor = i == 1 && ex->settings.unbiased ? count / (count - 1) : 1;

		for (int64_t k = 0; k < x->dims[1]; k++)
			running[k] = momentum * running[k] +
				     (1 - momentum) * factor * ex->values[node->outputs[1 + i]][k];
	}
}

static bool begins(const char *name, const char *prefix)
{
	return prefix && strncmp(name, prefix, strlen(prefix)) == 0;
}

static void update_adamw(struct executor *ex, const struct value *value, float rate, float *w,
			 float *moment)
{
	const struct recipe *recipe = ex->recipe;
	int64_t count = shape_elements(&value->shape);
	double updates = (double)ex->step + 1;
	float scale1 = (float)(1 / (1 - pow(recipe->beta1, updates)));
	float scale2 = (float)(1 / (1 - pow(recipe->beta2, updates)));
	float rest1 = (float)(1 - recipe->beta1), rest2 = (float)(1 - recipe->beta2);
	float decay = value->shape.rank >= 2 ? (float)recipe->weight_decay : 0;
	float *square = moment + count;

	for (int64_t i = 0; i < count; i++) {
		float g = ex->values[value->gradient][i];

		moment[i] = (float)recipe->beta1 * moment[i] + rest1 * g;
		square[i] = (float)recipe->beta2 * square[i] + rest2 * g * g;
		w[i] -= rate * decay * w[i];
		w[i] -= rate * scale1 * moment[i] /
			(sqrtf(scale2 * square[i]) + (float)recipe->epsilon);
	}
}

static void update(struct executor *ex, const struct value *value, float *w, float *moment)
{
	const struct recipe *recipe = ex->recipe;
	double factor =
		begins(value->name, ex->settings.rate_spares) ? 1 : ex->settings.rate_factor;
	float rate = (float)(recipe->learning_rate * factor), eps = (float)recipe->epsilon;
	float rho = (float)recipe->rho, mu = (float)recipe->momentum;

	if (recipe->optimiser == OPTIMISER_ADAMW) {
		update_adamw(ex, value, rate, w, moment);
		return;
	}
	for (int64_t i = 0; i < shape_elements(&value->shape); i++) {
		float g = ex->values[value->gradient][i] + (float)recipe->weight_decay * w[i];

		if (recipe->optimiser == OPTIMISER_SGD) {
			w[i] -= rate * g;
		} else if (recipe->optimiser == OPTIMISER_MOMENTUM) {
			moment[i] = mu * moment[i] + g;
			w[i] -= rate * moment[i];
		} else {
			moment[i] = rho * moment[i] + (1 - rho) * g * g;
			w[i] -= rate * g /
				(ex->settings.epsilon_inside ? sqrtf(moment[i] + eps)
							     : sqrtf(moment[i]) + eps);
		}
	}
}

static float *gradient_of(const struct executor *ex, int i)
{
	const struct value *value = &ex->graph->values[i];

	return value->kind == VALUE_PARAMETER && value->gradient >= 0 ? ex->values[value->gradient]
								      : NULL;
}

/* In blocks, as in every library: a float loses the small ones of 400,000 squares. */
static float squares_of(const struct executor *ex, int i)
{
	const float *g = gradient_of(ex, i);
	int64_t count = shape_elements(&ex->graph->values[i].shape);
	float sum = 0, part = 0;

	for (int64_t k = 0; g && k < count; k++) {
		part += g[k] * g[k];
		if (k % 256 == 255) {
			sum += part;
			part = 0;
		}
	}
	return sum + part;
}

/* Clips all gradients as the recipe says, or wrongly as the settings say. */
static void clip(struct executor *ex)
{
	float limit = (float)ex->recipe->clip_norm, squares = 0;

	for (int i = 0; i < ex->graph->value_count; i++)
		squares += squares_of(ex, i);
	for (int i = 0; i < ex->graph->value_count; i++) {
		float *g = gradient_of(ex, i);
		float norm = sqrtf(ex->settings.clips_each ? squares_of(ex, i) : squares);
		float factor = fminf(1, limit / (norm + 1e-6f));

		for (int64_t k = 0; g && k < shape_elements(&ex->graph->values[i].shape); k++)
			g[k] = ex->settings.clips_values ? fmaxf(-limit, fminf(g[k], limit))
							 : g[k] * factor;
	}
}

static void freeze(struct executor *ex)
{
	for (int i = 0; i < ex->graph->value_count; i++) {
		const struct value *value = &ex->graph->values[i];
		float *g = gradient_of(ex, i);

		if (g && (begins(value->name, ex->settings.frozen) ||
			  (ex->settings.frozen_biases && value->shape.rank == 1)))
			memset(g, 0, (size_t)shape_elements(&value->shape) * sizeof(*g));
	}
}

static void finish_training(struct executor *ex)
{
	const struct graph *graph = ex->graph;

	for (int i = 0; i < graph->forward_count; i++)
		if (graph->nodes[i].op == OP_BATCH_NORM)
			follow(ex, &graph->nodes[i]);
	if (ex->reduce)
		ex->reduce(ex->reduce_context);
	freeze(ex);
	if (ex->recipe->stage != STAGE_TRAIN)
		return;
	if (ex->recipe->clip_norm > 0)
		clip(ex);
	for (int i = 0; i < graph->value_count; i++)
		if (gradient_of(ex, i))
			update(ex, &graph->values[i], ex->values[i], ex->moments[i]);
}

void executor_step(struct executor *ex, const struct recipe *recipe, const struct tensor *input,
		   const struct tensor *labels)
{
	const struct graph *graph = ex->graph;
	bool training = recipe->stage != STAGE_FORWARD;
	int end = training ? graph->node_count : graph->forward_count;

	ex->recipe = recipe;
	ex->values[graph_input(graph, 0)] =
		input->data; /* the input has no gradient, so nothing writes to it */
	ex->labels = training && labels ? labels->data : NULL;
	if (ex->ran)
		ex->ran(ex->context, -1);
	for (int i = 0; i < end; i++) {
		struct call call = {ex, &graph->nodes[i], &graph->nodes[i].attributes, training};

		executor_find(call.node->op)(&call);
		if (ex->ran)
			ex->ran(ex->context, i);
	}
	if (training)
		finish_training(ex);
	if (ex->ran)
		ex->ran(ex->context, graph->node_count);
	ex->step++;
}
