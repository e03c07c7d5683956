#include "cli/form.h"

#include <inttypes.h>

#include "zoo/zoo.h"

/* TensorFlow's tutorial prints convolutions and pools; its ReLU is part of the convolution. */
static bool is_shown(enum op op)
{
	return op == OP_CONV || op == OP_MAX_POOL || op == OP_AVERAGE_POOL;
}

/* Prints shapes as TensorFlow has them, channels last. */
static void write_layers(void *context, const struct cell *cell, struct strbuf *out)
{
	const struct network *network = zoo_find(cell->network, NULL);
	struct error ignored = ERROR_INIT;
	struct graph graph;

	(void)context;
	if (!network || zoo_build(network, cell->batch, &graph, &ignored) != PRONY_OK)
		return;
	for (int i = 0; i < graph.forward_count; i++) {
		const struct node *node = &graph.nodes[i];
		const struct shape *shape = &graph.values[node->outputs[0]].shape;

		if (!is_shown(node->op) || shape->rank != 4)
			continue;
		strbuf_printf(out, "%s   [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]\n",
			      node->name, shape->dims[0], shape->dims[2], shape->dims[3],
			      shape->dims[1]);
	}
	graph_release(&graph);
}

void form_text(const struct stored_run *run, enum form form, struct strbuf *out)
{
	const struct form_layers layers = {.write = write_layers};

	form_write(run, form, &layers, out);
}
