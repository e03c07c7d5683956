/* Functions that create the symbols of a translation. */
#include "adapters/mxnet/mxnet_translate_internal.h"
#include "adapters/reasons.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS_MAX 10
#define NAME_BYTES 320

const char *mx_text(struct translation *t, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(t->text, sizeof(t->text), format, arguments);
	va_end(arguments);
	assert(length < (int)sizeof(t->text));
	(void)length;
	return t->text;
}

/* The trailing comma makes a list of a single number. */
struct mx_list mx_list(const int64_t *items, int count)
{
	struct mx_list list = {"("};
	size_t used = 1;

	for (int i = 0; i < count; i++)
		used += (size_t)snprintf(list.text + used, sizeof(list.text) - used, "%lld,",
					 (long long)items[i]);
	assert(used < sizeof(list.text) - 1);
	memcpy(list.text + used, ")", 2);
	return list;
}

struct mx_list mx_pair(const int64_t two[2])
{
	struct mx_list list;

	snprintf(list.text, sizeof(list.text), "(%lld,%lld)", (long long)two[0], (long long)two[1]);
	return list;
}

const char *mx_bool(bool value)
{
	return value ? "True" : "False";
}

/* Takes ownership of the symbol that a call created: it is freed with the translation. */
static struct mx_symbol *take(struct translation *t, int result, struct mx_symbol *const *symbol,
			      const char *what)
{
	if (mx_check(t->api, result, what, &t->error) != PRONY_OK)
		return NULL;
	assert(t->owned_count < t->owned_capacity);
	return t->owned[t->owned_count++] = *symbol;
}

static struct mx_symbol *create(struct translation *t, const char *type, char *options,
				const char *what)
{
	const char *keys[OPTIONS_MAX], *values[OPTIONS_MAX];
	const struct mx_operator *handle = NULL;
	struct mx_symbol *symbol = NULL;
	uint32_t count = 0;
	char *rest = NULL;

	for (char *word = strtok_r(options, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *equals = strchr(word, '=');

		assert(equals && count < OPTIONS_MAX);
		*equals = '\0';
		keys[count] = word;
		values[count++] = equals + 1;
	}
	if (mx_check(t->api, t->api->NNGetOpHandle(type, &handle), type, &t->error) != PRONY_OK)
		return NULL;
	return take(t, t->api->MXSymbolCreateAtomicSymbol(handle, count, keys, values, &symbol),
		    &symbol, what);
}

struct mx_symbol *mx_op(struct translation *t, const char *suffix, const char *type,
			struct mx_symbol *const *inputs, int count, const char *options)
{
	char name[NAME_BYTES], text[MX_OPTIONS_BYTES];
	struct mx_symbol *symbol;

	if (t->error.code != PRONY_OK)
		return NULL;
	snprintf(name, sizeof(name), "%s%s%s", t->node->name, *suffix ? "." : "", suffix);
	snprintf(text, sizeof(text), "%s", options ? options : "");
	symbol = create(t, type, text, name);
	if (symbol)
		mx_check(t->api,
			 t->api->NNSymbolCompose(symbol, name, (uint32_t)count, NULL,
						 (struct mx_symbol **)(uintptr_t)inputs),
			 name, &t->error);
	return symbol;
}

struct mx_symbol *mx_unary(struct translation *t, const char *type, const char *options)
{
	return mx_op(t, "", type, MX_IN(mx_in(t, 0)), options);
}

struct mx_symbol *mx_scalar(struct translation *t, const char *suffix, const char *type,
			    struct mx_symbol *x, double scalar)
{
	return mx_op(t, suffix, type, &x, 1, mx_text(t, "scalar=%.17g", scalar));
}

struct mx_symbol *mx_pad_image(struct translation *t, struct mx_symbol *x, const int64_t begins[2],
			       const int64_t ends[2], double value)
{
	const int64_t width[8] = {0, 0, 0, 0, begins[0], ends[0], begins[1], ends[1]};

	return mx_op(t, "pad", "Pad", &x, 1,
		     mx_text(t, "mode=constant constant_value=%.9g pad_width=%s", value,
			     mx_list(width, 8).text));
}

struct mx_symbol *mx_variable(struct translation *t, const char *name)
{
	struct mx_symbol *symbol = NULL;

	if (t->error.code != PRONY_OK)
		return NULL;
	return take(t, t->api->MXSymbolCreateVariable(name, &symbol), &symbol, name);
}

struct mx_symbol *mx_output(struct translation *t, struct mx_symbol *symbol, uint32_t index)
{
	struct mx_symbol *output = NULL;

	if (t->error.code != PRONY_OK)
		return NULL;
	return take(t, t->api->MXSymbolGetOutput(symbol, index, &output), &output, t->node->name);
}

struct mx_symbol *mx_in(struct translation *t, int i)
{
	int value = t->node->inputs[i];

	if (!t->values[value])
		t->values[value] = mx_variable(t, t->graph->values[value].name);
	return t->values[value];
}

int mx_all_in(struct translation *t, struct mx_symbol **out)
{
	int count = 0;

	for (int i = 0; i < t->node->input_count; i++)
		if (t->node->inputs[i] != VALUE_NONE)
			out[count++] = mx_in(t, i);
	return count;
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
	reasons_add_node(reasons, node, what);
}
