/* Prepares and issues the calls that update the parameters. */
#include "adapters/mxnet/mxnet_model.h"

#include <assert.h>
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

/* Sets an option to the same number for each weight of a group: "(0.01,0.01,)". */
static void option_each(struct mx_call *update, const char *key, double number)
{
	int i = update->option_count;
	size_t used = 1;

	option(update, key, "(");
	for (int weight = 0; weight < update->output_count; weight++)
		used += (size_t)snprintf(update->text[i] + used, sizeof(update->text[i]) - used,
					 "%.9g,", number);
	snprintf(update->text[i] + used, sizeof(update->text[i]) - used, ")");
}

static void add_arrays(struct mx_call *update, const struct mx_parameter *parameter)
{
	update->inputs[update->input_count++] = parameter->weight;
	update->inputs[update->input_count++] = parameter->gradient;
	if (parameter->state)
		update->inputs[update->input_count++] = parameter->state;
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
	default:
		return NULL;
	}
}

static void set_options(struct mx_call *update, const struct recipe *recipe)
{
	if (recipe->optimiser == OPTIMISER_RMSPROP) {
		option(update, "lr", "%.9g", recipe->learning_rate);
		option(update, "wd", "%.9g", recipe->weight_decay);
		option(update, "gamma1", "%.9g", recipe->rho);
		option(update, "epsilon", "%.9g", recipe->epsilon);
		return;
	}
	option_each(update, "lrs", recipe->learning_rate);
	option_each(update, "wds", recipe->weight_decay);
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

	if (!name)
		return error_set(err, PRONY_UNSUPPORTED, "optimiser %s",
				 optimiser_name(recipe->optimiser));
	status = mx_check(model->api, model->api->NNGetOpHandle(name, &operator), name, err);
	if (status != PRONY_OK)
		return status;
	model->updates = arena_array(&model->arena, (size_t)(model->parameter_count / group + 1),
				     sizeof(model->updates[0]));
	for (int first = 0; first < model->parameter_count; first += group) {
		struct mx_call *update = &model->updates[model->update_count++];

		update->operator= operator;
		for (int i = first; i < first + group && i < model->parameter_count; i++)
			add_arrays(update, &model->parameters[i]);
		set_options(update, recipe);
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

	for (int i = 0; status == PRONY_OK && i < model->update_count; i++)
		status = mx_call_run(model->api, &model->updates[i], err);
	return status;
}
