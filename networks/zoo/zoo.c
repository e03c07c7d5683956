#include "networks/zoo/zoo.h"

#include <string.h>

#include "base/words.h"
#include "networks/zoo/networks.h"

const struct network *const zoo_networks[] = {&zoo_mlp, &zoo_lenet};
const size_t zoo_network_count = sizeof(zoo_networks) / sizeof(zoo_networks[0]);

const struct network *zoo_find(const char *name, const char **nearest)
{
	const char *names[sizeof(zoo_networks) / sizeof(zoo_networks[0])];

	for (size_t i = 0; i < zoo_network_count; i++) {
		if (strcmp(zoo_networks[i]->name, name) == 0)
			return zoo_networks[i];
		names[i] = zoo_networks[i]->name;
	}
	if (nearest != NULL)
		*nearest = word_nearest(name, names, zoo_network_count);
	return NULL;
}

enum prony_status zoo_build(const struct network *network, int64_t batch, struct graph *out,
			    struct error *err)
{
	struct graph graph;
	struct builder builder = {.graph = &graph, .error = ERROR_INIT};
	enum prony_status status;
	int input;

	graph_init(&graph, network->name);
	input = build_input(&builder, batch, network->input_rank, network->input_dims);
	status = build_finish(&builder, network->layers(&builder, input), err);
	if (status != PRONY_OK) {
		graph_release(&graph);
		return status;
	}
	*out = graph;
	return PRONY_OK;
}
