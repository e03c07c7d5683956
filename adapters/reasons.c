#include "adapters/reasons.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void reasons_add(struct strbuf *reasons, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (reasons->length > 0)
		strbuf_puts(reasons, "; ");
	strbuf_puts(reasons, text);
}

/* Whether a reason that starts with `start` ends with `end`. */
static bool is_said(const struct strbuf *reasons, const char *start, const char *end)
{
	const char *at = strbuf_text(reasons);

	while (at && *at) {
		const char *next = strstr(at, "; ");
		size_t length = next ? (size_t)(next - at) : strlen(at);

		if (length >= strlen(end) && strncmp(at, start, strlen(start)) == 0 &&
		    strncmp(at + length - strlen(end), end, strlen(end)) == 0)
			return true;
		at = next ? next + 2 : NULL;
	}
	return false;
}

void reasons_add_node(struct strbuf *reasons, const struct node *node, const char *what)
{
	char start[64], end[256];

	snprintf(start, sizeof(start), "%s ", operator_name(node->op));
	snprintf(end, sizeof(end), ": %s", what);
	if (!is_said(reasons, start, end))
		reasons_add(reasons, "%s%s%s", start, node->name, end);
}

void reasons_add_operator(struct strbuf *reasons, const struct node *node)
{
	char start[64];

	snprintf(start, sizeof(start), "operator %s (", operator_name(node->op));
	if (!is_said(reasons, start, ") is not supported"))
		reasons_add(reasons, "%s%s) is not supported", start, node->name);
}

static void add_precision(struct strbuf *reasons, enum precision asked, unsigned precisions)
{
	char known[64] = "";
	size_t length = 0;

	if (precisions & 1u << asked)
		return;
	for (int i = 0; i < PRECISION_ASKED && length < sizeof(known); i++) {
		if (precisions & 1u << i)
			length += (size_t)snprintf(known + length, sizeof(known) - length, "%s%s",
						   length > 0 ? ", " : "",
						   precision_name((enum precision)i));
	}
	reasons_add(reasons, "precision %s: only %s", precision_name(asked), known);
}

void reasons_add_recipe(struct strbuf *reasons, const struct recipe *recipe, unsigned precisions)
{
	add_precision(reasons, recipe->precision, precisions);
	if (recipe->threads < 1 || recipe->slots < 1)
		reasons_add(reasons, "%d threads and %d slots: there must be at least one of each",
			    recipe->threads, recipe->slots);
}

void reasons_add_training(struct strbuf *reasons, const struct graph *graph,
			  const struct recipe *recipe, unsigned precisions)
{
	if (recipe->stage == STAGE_LOAD || recipe->stage >= STAGE_COUNT)
		reasons_add(reasons, "stage %s", stage_name(recipe->stage));
	if (recipe->optimiser >= OPTIMISER_COUNT)
		reasons_add(reasons, "unknown optimiser");
	if (recipe->stage != STAGE_FORWARD && graph->loss == VALUE_NONE)
		reasons_add(reasons, "network %s has no loss", graph->name);
	reasons_add_recipe(reasons, recipe, precisions);
}

void reasons_add_inputs(struct strbuf *reasons, const struct graph *graph)
{
	const struct value *input = &graph->values[graph_input(graph, 0)];
	int inputs = graph_inputs(graph, NULL, 0), label = graph_label(graph, 0);

	if (inputs != 1 || input->dtype != DTYPE_F32)
		reasons_add(reasons,
			    "%d inputs, the first of type %s: only networks with one F32 input",
			    inputs, dtype_name(input->dtype));
	if (label != VALUE_NONE && graph->values[label].shape.rank != 1)
		reasons_add(reasons, "labels of %d dimensions: only one label per sample",
			    graph->values[label].shape.rank);
}

void reasons_add_types(struct strbuf *reasons, const struct graph *graph)
{
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];
		bool whole = value->dtype == DTYPE_I64 || value->dtype == DTYPE_I32;

		if (value->kind != VALUE_INPUT && value->kind != VALUE_LABEL)
			continue;
		if (!whole && value->dtype != DTYPE_F32)
			reasons_add(reasons, "%s: type %s is not supported", value->name,
				    dtype_name(value->dtype));
		if (whole && value->shape.rank == 4)
			reasons_add(reasons, "%s: integers of 4 dimensions are not supported",
				    value->name);
	}
	for (int i = 0; i < graph->forward_count; i++) {
		const struct node *node = &graph->nodes[i];

		if (node->op == OP_GATHER && graph->values[node->inputs[0]].shape.rank == 4)
			reasons_add(reasons, "Gather %s: a table of 4 dimensions is not supported",
				    node->name);
	}
}

void reasons_add_recurrent(struct strbuf *reasons, const struct node *node)
{
	const struct attributes *a = &node->attributes;

	if (node->op != OP_LSTM && node->op != OP_RNN)
		return;
	if (a->sequence || a->reverse || a->activation)
		reasons_add(reasons, "%s %s: %s is not supported", operator_name(node->op),
			    node->name,
			    a->sequence	 ? "the state of every time"
			    : a->reverse ? "reading the last time first"
					 : "an activation other than ReLU");
}

enum prony_status reasons_finish(struct strbuf *reasons, struct error *why)
{
	enum prony_status status = PRONY_OK;

	if (reasons->length > 0)
		status = error_set(why, PRONY_UNSUPPORTED, "%s", strbuf_text(reasons));
	strbuf_release(reasons);
	return status;
}
