/* Prepares and issues the calls that update the parameters. */
#include "adapters/mxnet/mxnet_ranks.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static void option(struct mx_call *update, const char *key, const char *format, ...)
	PRONY_PRINTF(3, 4);
static void option(struct mx_call *update, const char *key, const char *format, ...)
{
	int i = update->option_count++;
	va_list arguments;

	assert(i < MX_UPDATE_OPTIONS);
	va_start(arguments, format);
	vsnprintf(update->text[i], sizeof(update->text[i]), format, arguments);
	va_end(arguments);
	update->keys[i] = key;
	update->values[i] = update->text[i];
}

/* Writes a list with a number for each weight of a group: "(0.01,0.01,)". */
static void write_list(const struct mx_call *update, char *text, const double *numbers)
{
	size_t used = 1, size = sizeof(update->text[0]);

	text[0] = '(';
	for (int weight = 0; weight < update->output_count; weight++)
		used += (size_t)snprintf(text + used, size - used, "%.9g,", numbers[weight]);
	snprintf(text + used, size - used, ")");
}

static void option_list(struct mx_call *update, const char *key, const double *numbers)
{
	option(update, key, "(");
	write_list(update, update->text[update->option_count - 1], numbers);
}

static void add_arrays(struct mx_call *update, const struct mx_parameter *parameter)
{
	update->inputs[update->input_count++] = parameter->weight;
	update->inputs[update->input_count++] = parameter->gradient;
	if (parameter->state)
		update->inputs[update->input_count++] = parameter->state;
	if (parameter->square)
		update->inputs[update->input_count++] = parameter->square;
	update->outputs[update->output_count++] = parameter->weight; /* in place */
}

static const char *operator_of(enum optimiser optimiser)
{
	switch (optimiser) {
	case OPTIMISER_SGD:
		return "multi_sgd_update";
	case OPTIMISER_MOMENTUM:
		return "multi_sgd_mom_update";
	case OPTIMISER_RMSPROP:
		return "rmsprop_update";
	case OPTIMISER_ADAMW:
		return "_multi_adamw_update";
	default:
		return NULL;
	}
}

/* The places of AdamW's options that change from step to step. */
enum { ADAMW_RATES, ADAMW_EPSILON };

/* The operator computes w -= eta (lr m / (sqrt(v) + epsilon) + wd w). It corrects no bias, so that
 * lr and epsilon do it. */
static void correct_adamw(struct mx_model *model)
{
	double updates = (double)++model->adamw_updates, rates[MX_UPDATE_GROUP];
	double root = sqrt(1 - pow(model->beta2, updates));

	for (int i = 0; i < MX_UPDATE_GROUP; i++)
		rates[i] = root / (1 - pow(model->beta1, updates));
	for (int i = 0; i < model->update_count; i++) {
		struct mx_call *update = &model->updates[i];

		write_list(update, update->text[ADAMW_RATES], rates);
		snprintf(update->text[ADAMW_EPSILON], sizeof(update->text[0]), "%.9g",
			 model->epsilon * root);
	}
}

static void set_adamw(struct mx_call *update, const struct recipe *recipe, const double *rates,
		      const struct mx_parameter *parameters)
{
	double decays[MX_UPDATE_GROUP] = {0};

	for (int i = 0; i < update->output_count; i++)
		if (parameters[i].value->shape.rank >= 2)
			decays[i] = recipe->weight_decay;
	option_list(update, "lrs", rates);
	option(update, "epsilon", "%.9g", recipe->epsilon);
	option_list(update, "etas", rates);
	option_list(update, "wds", decays);
	option(update, "beta1", "%.9g", recipe->beta1);
	option(update, "beta2", "%.9g", recipe->beta2);
	option(update, "num_weights", "%d", update->output_count);
}

/* Sets the options of the update of these parameters. */
static void set_options(struct mx_call *update, const struct recipe *recipe,
			const struct mx_parameter *parameters, int ranks)
{
	double rates[MX_UPDATE_GROUP], decays[MX_UPDATE_GROUP];

	for (int i = 0; i < MX_UPDATE_GROUP; i++) {
		rates[i] = recipe->learning_rate;
		decays[i] = recipe->weight_decay;
	}
	if (recipe->optimiser == OPTIMISER_ADAMW) {
		set_adamw(update, recipe, rates, parameters);
		return;
	}
	if (ranks > 1)
		option(update, "rescale_grad", "%.9g", 1.0 / ranks);
	if (recipe->optimiser == OPTIMISER_RMSPROP) {
		option(update, "lr", "%.9g", recipe->learning_rate);
		option(update, "wd", "%.9g", recipe->weight_decay);
		option(update, "gamma1", "%.9g", recipe->rho);
		option(update, "epsilon", "%.9g", recipe->epsilon);
		return;
	}
	option_list(update, "lrs", rates);
	option_list(update, "wds", decays);
	option(update, "num_weights", "%d", update->output_count);
	if (recipe->optimiser == OPTIMISER_MOMENTUM)
		option(update, "momentum", "%.9g", recipe->momentum);
}

enum prony_status mx_updates_init(struct mx_model *model, const struct recipe *recipe,
				  struct error *err)
{
	const char *name = operator_of(recipe->optimiser);
	int group = recipe->optimiser == OPTIMISER_RMSPROP ? 1 : MX_UPDATE_GROUP;
	const struct mx_operator *operator= NULL;
	enum prony_status status;
	int ranks = model->ranks ? model->ranks->count : 1; /* whose gradients are summed */

	if (!name)
		return error_set(err, PRONY_UNSUPPORTED, "optimiser %s",
				 optimiser_name(recipe->optimiser));
	status = mx_check(model->api, model->api->NNGetOpHandle(name, &operator), name, err);
	if (status != PRONY_OK)
		return status;
	if (recipe->optimiser == OPTIMISER_ADAMW) {
		model->beta1 = recipe->beta1;
		model->beta2 = recipe->beta2;
		model->epsilon = recipe->epsilon;
		status = mx_array_new(model->api, &(struct shape){.rank = 1, .dims = {1}},
				      &(const float){1.0F / (float)ranks}, &model->scale, err);
	}
	if (status != PRONY_OK)
		return status;
	model->updates = arena_array(&model->arena, (size_t)(model->parameter_count / group + 1),
				     sizeof(model->updates[0]));
	for (int first = 0; first < model->parameter_count; first += group) {
		struct mx_call *update = &model->updates[model->update_count++];

		update->operator= operator;
		for (int i = first; i < first + group && i < model->parameter_count; i++)
			add_arrays(update, &model->parameters[i]);
		if (model->scale)
			update->inputs[update->input_count++] = model->scale;
		set_options(update, recipe, &model->parameters[first], ranks);
	}
	return PRONY_OK;
}

enum prony_status mx_call_run(const struct mx_api *api, struct mx_call *call, struct error *err)
{
	struct mx_ndarray **outputs = call->outputs;
	int output_count = call->output_count;
	const int *storage = NULL;
	int result = api->MXImperativeInvokeEx(call->operator, call->input_count, call->inputs,
					       &output_count, &outputs, call->option_count,
					       call->keys, call->values, &storage);

	return result == 0 ? PRONY_OK : mx_check(api, result, "call an operator", err);
}

enum prony_status mx_updates_run(struct mx_model *model, struct error *err)
{
	enum prony_status status = PRONY_OK;

	if (model->scale)
		correct_adamw(model);
	for (int i = 0; status == PRONY_OK && i < model->update_count; i++)
		status = mx_call_run(model->api, &model->updates[i], err);
	return status;
}
