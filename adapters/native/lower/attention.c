/* Attention as one command: which nodes it replaces, forward and backward. */
#include <stdio.h>

#include "adapters/native/lower/lower_internal.h"

/* More than the nodes of an attention's gradients. */
#define GRADIENT_NODES 20

/* The nodes that compute an attention's gradients. */
struct node_set {
	int nodes[GRADIENT_NODES], count;
	bool fits;
};

static bool contains(const struct node_set *set, int node)
{
	for (int i = 0; i < set->count; i++) {
		if (set->nodes[i] == node)
			return true;
	}
	return false;
}

/* Adds the nodes from `value` up to dy; values of the forward pass end the way, too. */
static void add_ancestors(const struct lowering *l, struct node_set *set, int value, int dy)
{
	int n = value == VALUE_NONE ? -1 : l->graph->values[value].producer;
	const struct node *node = &l->graph->nodes[n < 0 ? 0 : n];

	if (value == dy || n < l->graph->forward_count || contains(set, n))
		return;
	if (set->count == GRADIENT_NODES) {
		set->fits = false;
		return;
	}
	set->nodes[set->count++] = n;
	for (int k = 0; set->fits && k < node->input_count; k++)
		add_ancestors(l, set, node->inputs[k], dy);
}

/* Whether other nodes read only results among what the set's nodes compute. */
static bool is_closed(const struct lowering *l, const struct node_set *set, const int results[3])
{
	for (int n = l->graph->forward_count; n < l->graph->node_count; n++) {
		const struct node *node = &l->graph->nodes[n];

		for (int k = 0; !contains(set, n) && k < node->input_count; k++) {
			int value = node->inputs[k];

			if (value != VALUE_NONE && value != results[0] && value != results[1] &&
			    value != results[2] && contains(set, l->graph->values[value].producer))
				return false;
		}
	}
	return true;
}

/* Finds the nodes that compute the gradients of q, k and v; false if they do other work, too. */
static bool find_gradients(const struct lowering *l, struct fused_attention *a,
			   struct node_set *set)
{
	const struct value *values = l->graph->values;
	int results[3] = {values[a->found.q].gradient, values[a->found.k].gradient,
			  values[a->found.v].gradient};

	*set = (struct node_set){.fits = true};
	a->dy = values[a->found.output].gradient;
	for (int i = 0; i < 3; i++) {
		if (results[i] < 0 || a->dy < 0 || results[i] == results[(i + 1) % 3])
			return false;
		add_ancestors(l, set, results[i], a->dy);
	}
	a->dq = results[0];
	a->dk = results[1];
	a->dv = results[2];
	a->gradient = set->count > 0 ? set->nodes[0] : -1;
	for (int i = 1; i < set->count; i++)
		a->gradient = set->nodes[i] < a->gradient ? set->nodes[i] : a->gradient;
	return set->fits && a->gradient >= 0 && is_closed(l, set, results);
}

/* Whether q, k and v have the data that a command reads: a mask is one matrix for all heads. */
static bool is_plain(const struct lowering *l, const struct attention *a)
{
	const struct shape *q = &l->graph->values[a->q].shape, *k = &l->graph->values[a->k].shape,
			   *v = &l->graph->values[a->v].shape;

	return v->dims[3] == q->dims[3] && v->dims[2] == k->dims[a->key_order[2]] &&
	       (a->mask == VALUE_NONE ||
		shape_elements(&l->graph->values[a->mask].shape) == q->dims[2] * v->dims[2]);
}

/* The node that computes the gradient of what `node` scales, if it only scales, too; else -1. */
static int scaled_gradient(const struct lowering *l, const struct node *node, int state)
{
	const struct value *values = l->graph->values;
	int n = values[node->inputs[1 - state]].gradient;
	const struct node *gradient;

	n = n < 0 ? -1 : values[n].producer;
	if (n < l->graph->forward_count)
		return -1;
	gradient = &l->graph->nodes[n];
	return gradient->op == node->op && gradient->input_count == 2 &&
			       gradient->inputs[0] == values[node->outputs[0]].gradient &&
			       gradient->inputs[1] == node->inputs[state]
		       ? n
		       : -1;
}

/* Lets the nodes that scale q or k above the attention pass their operand on. Those that cannot
 * keep their work. */
static void take_scales(struct lowering *l, struct attention *a)
{
	int count = a->inner_scales;

	for (int i = a->inner_scales; i < a->scale_count; i++) {
		int n = a->scales[i], state = attention_scale_operand(l->graph, n);
		const struct node *node = &l->graph->nodes[n];
		int gradient = l->training ? scaled_gradient(l, node, state) : -1;

		if (l->training && gradient < 0)
			continue;
		l->nodes[n].passes_on = true;
		l->nodes[n].passed = 1 - state;
		if (gradient >= 0)
			l->nodes[gradient].passes_on = true;
		a->scales[count++] = n;
	}
	a->scale_count = count;
}

static void take(struct lowering *l, const struct fused_attention *a, const struct node_set *set)
{
	struct fused_attention *kept = &l->attentions[l->attention_count++];

	*kept = *a;
	take_scales(l, &kept->found);
	for (int i = 0; i < kept->found.node_count; i++)
		l->nodes[kept->found.nodes[i]].absorbed = true;
	for (int i = 0; i < set->count; i++)
		l->nodes[set->nodes[i]].absorbed = true;
	l->nodes[a->forward].absorbed = false;
	l->nodes[a->forward].attention = kept;
	if (a->gradient < 0)
		return;
	l->nodes[a->gradient].absorbed = false;
	l->nodes[a->gradient].attention = kept;
}

void lower_find_attentions(struct lowering *l)
{
	const struct backend *backend = l->program->backend;
	const char *why = NULL;
	int found = 0;

	l->attentions = arena_array(&l->program->arena, (size_t)l->graph->node_count + 1,
				    sizeof(*l->attentions));
	for (int n = 0; n < l->graph->forward_count; n++) {
		struct fused_attention a = {.gradient = -1};
		struct node_set set = {.count = 0};

		if (!l->nodes[n].needed || !graph_attention(l->graph, n, &a.found))
			continue;
		found++;
		a.forward = a.found.nodes[a.found.node_count - 1];
		if (l->explicit_attention)
			why = "explicit";
		else if (is_plain(l, &a.found) && (!l->training || find_gradients(l, &a, &set)) &&
			 (!backend->takes_attention || backend->takes_attention(l, &a, &why)))
			take(l, &a, &set);
	}
	if (found > 0)
		l->notes_length += (size_t)snprintf(
			l->notes + l->notes_length, sizeof(l->notes) - l->notes_length,
			"attention: fused %d of %d%s%s%s; ", l->attention_count, found,
			why ? " (" : "", why ? why : "", why ? ")" : "");
}
