#include "adapters/mxnet/mxnet_translate_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void mx_option(struct mx_options *options, const char *key, const char *format, ...)
{
	va_list arguments;
	uint32_t i = options->count++;

	assert(i < MX_OPTION_MAX);
	va_start(arguments, format);
	vsnprintf(options->text[i], sizeof(options->text[i]), format, arguments);
	va_end(arguments);
	options->keys[i] = key;
	options->values[i] = options->text[i];
}

void mx_option_list(struct mx_options *options, const char *key, const int64_t *items, int count)
{
	char text[MX_OPTION_BYTES];
	size_t used = 0;

	/* "(2,)": the comma makes a list of one number one. */
	for (int i = 0; i < count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%lld,",
					 (long long)items[i]);
	assert(used < sizeof(text) - 2);
	text[used] = '\0';
	mx_option(options, key, "(%s)", text);
}

void mx_option_pair(struct mx_options *options, const char *key, int64_t a, int64_t b)
{
	mx_option(options, key, "(%lld,%lld)", (long long)a, (long long)b);
}

void mx_input(struct mx_inputs *inputs, const char *key, struct mx_symbol *symbol)
{
	assert(inputs->count < NODE_MAX_INPUTS);
	inputs->keys[inputs->count] = key;
	inputs->symbols[inputs->count++] = symbol;
}

void mx_own(struct translation *t, struct mx_symbol *symbol)
{
	assert(t->owned_count < t->owned_capacity);
	t->owned[t->owned_count++] = symbol;
}

enum prony_status mx_make(struct translation *t, const char *operator, const char * name,
			  const struct mx_options *options, const struct mx_inputs *inputs,
			  struct mx_symbol **out, struct error *err)
{
	const struct mx_api *api = t->api;
	const struct mx_operator *handle = NULL;
	struct mx_symbol *symbol = NULL;
	enum prony_status status;

	status = mx_check(api, api->NNGetOpHandle(operator, & handle), operator, err);
	if (status != PRONY_OK)
		return status;
	status = mx_check(api,
			  api->MXSymbolCreateAtomicSymbol(
				  handle, options->count, (const char **)(uintptr_t)options->keys,
				  (const char **)(uintptr_t)options->values, &symbol),
			  name, err);
	if (status != PRONY_OK)
		return status;
	mx_own(t, symbol);
	status = mx_check(api,
			  api->NNSymbolCompose(symbol, name, inputs->count,
					       (const char **)(uintptr_t)inputs->keys,
					       (struct mx_symbol **)(uintptr_t)inputs->symbols),
			  name, err);
	if (status == PRONY_OK)
		*out = symbol;
	return status;
}

enum prony_status mx_emit(struct translation *t, const struct node *node, const char *operator,
			  const struct mx_options * options, const struct mx_inputs *inputs,
			  struct error *err)
{
	return mx_make(t, operator, node->name, options, inputs, &t->values[node->outputs[0]], err);
}

enum prony_status mx_make_part(struct translation *t, const struct node *node, const char *suffix,
			       const char *operator, const struct mx_options * options,
			       const struct mx_inputs *inputs, struct mx_symbol **out,
			       struct error *err)
{
	char name[160];

	snprintf(name, sizeof(name), "%s.%s", node->name, suffix);
	return mx_make(t, operator, name, options, inputs, out, err);
}

/* The symbol of a node's input. */
static enum prony_status get(struct translation *t, const struct node *node, int index,
			     struct mx_symbol **out, struct error *err)
{
	int value = node->inputs[index];
	struct mx_symbol *symbol = NULL;

	if (!t->values[value]) {
		const char *name = t->graph->values[value].name;
		enum prony_status status =
			mx_check(t->api, t->api->MXSymbolCreateVariable(name, &symbol), name, err);

		if (status != PRONY_OK)
			return status;
		mx_own(t, symbol);
		t->values[value] = symbol;
	}
	*out = t->values[value];
	return PRONY_OK;
}

enum prony_status mx_get_inputs(struct translation *t, const struct node *node,
				const char *const *keys, struct mx_inputs *inputs,
				struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < node->input_count; i++) {
		struct mx_symbol *symbol = NULL;

		if (node->inputs[i] == VALUE_NONE)
			continue;
		status = get(t, node, i, &symbol, err);
		if (status == PRONY_OK)
			mx_input(inputs, keys[i], symbol);
	}
	return status;
}

enum prony_status mx_get_data(struct translation *t, const struct node *node,
			      struct mx_inputs *inputs, struct error *err)
{
	static const char *const keys[] = {"data"};

	return mx_get_inputs(t, node, keys, inputs, err);
}

enum prony_status mx_pad(struct translation *t, const struct node *node, const int64_t pads[8],
			 double value, struct mx_inputs *inputs, struct error *err)
{
	struct mx_options options = {0};
	struct mx_inputs data = {0};
	int64_t width[8];

	for (int i = 0; i < 4; i++) {
		width[2 * i] = pads[i];
		width[2 * i + 1] = pads[4 + i];
	}
	mx_option(&options, "mode", "constant");
	mx_option(&options, "constant_value", "%.9g", value);
	mx_option_list(&options, "pad_width", width, 8);
	mx_input(&data, "data", inputs->symbols[0]);
	return mx_make_part(t, node, "pad", "Pad", &options, &data, &inputs->symbols[0], err);
}

const struct shape *mx_shape(const struct graph *graph, int value)
{
	return &graph->values[value].shape;
}

bool mx_has_bias(const struct node *node)
{
	return node->input_count > 2 && node->inputs[2] != VALUE_NONE;
}

void mx_refuse(struct strbuf *reasons, const struct node *node, const char *what)
{
	strbuf_printf(reasons, "%s%s %s: %s", reasons->length > 0 ? "; " : "",
		      operator_name(node->op), node->name, what);
}
