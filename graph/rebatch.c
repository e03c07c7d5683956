/* Changes the batch size of a graph, and finds out whether samples are computed independently. */
#include "graph/rebatch.h"

#include "graph/edit_internal.h"
#include "graph/node_internal.h"
#include "graph/samples.h"

static bool has_samples(const struct samples *s, const struct node *node)
{
	for (int i = 0; i < node->input_count; i++) {
		if (node->inputs[i] != VALUE_NONE && s->places[node->inputs[i]].axis >= 0)
			return true;
	}
	return false;
}

/* Sets the place of the samples in the node's first output; call it for the nodes in order. */
static void follow(struct samples *s, const struct node *node)
{
	const struct operator_row *row = operator_row(node->op);
	bool any = row->samples_from == SAMPLES_FROM_ANY;
	const struct samples_axis *x =
		any ? &samples_nowhere : &s->places[node->inputs[row->samples_from]];

	if (!any && !has_samples(s, node))
		return;
	s->places[node->outputs[0]] =
		row->samples && (x->axis >= 0 || any) ? row->samples(s, node, x) : samples_nowhere;
}

static void samples_init(struct samples *s, const struct graph *graph)
{
	*s = (struct samples){.graph = graph, .batch = graph_batch(graph)};
	arena_init(&s->arena, 0);
	s->places = arena_array(&s->arena, (size_t)graph->value_count + 1, sizeof(*s->places));
	for (int i = 0; i < graph->value_count; i++) {
		enum value_kind kind = graph->values[i].kind;

		s->places[i] = kind == VALUE_INPUT || kind == VALUE_LABEL
				       ? samples_on(s, &graph->values[i].shape, 0, 1)
				       : samples_nowhere;
	}
}

enum prony_status graph_samples_apart(const struct graph *graph, struct error *err)
{
	enum prony_status status = PRONY_OK;
	const struct samples_axis *logits;
	struct samples s;

	samples_init(&s, graph);
	for (int i = 0; i < graph->forward_count && status == PRONY_OK; i++) {
		const struct node *node = &graph->nodes[i];

		if (operator_row(node->op)->is_loss)
			break;
		follow(&s, node);
		if (has_samples(&s, node) && s.places[node->outputs[0]].axis < 0)
			status = error_set(
				err, PRONY_UNSUPPORTED,
				"node '%.100s' (%s) does not compute each sample separately",
				node->name, operator_name(node->op));
	}
	logits = &s.places[graph->logits];
	if (status == PRONY_OK && (logits->axis != 0 || logits->outer != 1))
		status = error_set(err, PRONY_UNSUPPORTED,
				   "the rows of its output are not one sample each, in order");
	arena_release(&s.arena);
	return status;
}

/* Changes the attributes of a node that depend on the batch. */
static void adapt(const struct samples *s, int64_t batch, struct node *node)
{
	const struct operator_row *row = operator_row(node->op);
	const struct samples_axis *x = &s->places[node->inputs[0]];
	const struct samples_axis *y = &s->places[node->outputs[0]];

	if (row->rebatch && y->axis >= 0)
		row->rebatch(s, x, y, batch, &node->attributes);
}

/* Infers the shapes of all outputs from those of the inputs and labels. */
static enum prony_status infer_again(struct samples *s, int64_t batch, struct graph *out,
				     struct error *err)
{
	enum prony_status status = PRONY_OK;
	struct error why = ERROR_INIT;

	for (int i = 0; i < out->node_count && status == PRONY_OK; i++) {
		if (!operator_row(out->nodes[i].op)->is_loss)
			follow(s, &s->graph->nodes[i]);
		adapt(s, batch, &out->nodes[i]);
		if (operator_row(out->nodes[i].op)->infer(out, &out->nodes[i], &why) != PRONY_OK)
			status = error_set(err, PRONY_UNSUPPORTED,
					   "the batch cannot be changed from %lld to %lld: %s",
					   (long long)s->batch, (long long)batch, why.text);
	}
	return status;
}

enum prony_status graph_rebatch(const struct graph *graph, int64_t batch, struct graph *out,
				struct error *err)
{
	enum prony_status status = PRONY_OK;
	struct samples s;
	struct graph copy;

	samples_init(&s, graph);
	graph_copy_forward(graph, &copy);
	for (int i = 0; i < copy.value_count && status == PRONY_OK; i++) {
		struct value *value = &copy.values[i];

		if (value->kind != VALUE_INPUT && value->kind != VALUE_LABEL)
			continue;
		value->shape.dims[0] = batch;
		status = graph_check_shape(value->name, value->dtype, &value->shape, err);
	}
	if (status == PRONY_OK)
		status = infer_again(&s, batch, &copy, err);
	if (status == PRONY_OK)
		*out = copy;
	else
		graph_release(&copy);
	arena_release(&s.arena);
	return status;
}
