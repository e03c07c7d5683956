/* Fuzz target: graphs as JSON. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "graph/graph_json.h"

/* Checks that an accepted graph can be written and read back with the same meaning; it may be
 * differentiated. */
static void exercise(struct graph *graph)
{
	struct error err = ERROR_INIT;
	char digest[65], again[65];
	json_t *json = graph_to_json(graph);
	struct graph copy;

	if (json == NULL || graph_from_json(json, &copy, &err) != PRONY_OK)
		abort();
	if (graph_digest(graph, digest, &err) != PRONY_OK ||
	    graph_digest(&copy, again, &err) != PRONY_OK || strcmp(digest, again) != 0)
		abort();
	if (graph_memory_estimate(graph, true) < 0 || graph_memory_estimate(graph, false) < 0 ||
	    graph_macs(graph) < 0 || graph_parameter_count(graph) < 0)
		abort();
	/* A refused backward pass must leave the graph unchanged. */
	graph_add_backward(&copy, &err);
	error_clear(&err);
	if (graph_check(&copy, &err) != PRONY_OK)
		abort();
	graph_release(&copy);
	json_decref(json);
}

/* Returns 0. Aborts if an accepted graph is not the same after being written. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct error err = ERROR_INIT;
	json_t *json = NULL;
	struct graph graph;

	if (json_parse((const char *)bytes, length, "input", &json, &err) != PRONY_OK)
		return 0;
	if (graph_from_json(json, &graph, &err) == PRONY_OK) {
		exercise(&graph);
		graph_release(&graph);
	}
	json_decref(json);
	return 0;
}
