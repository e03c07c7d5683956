/* The graph as JSON, as it stands in case.json; the schema is docs/schemas/case.schema.json. */
#ifndef PRONY_GRAPH_GRAPH_JSON_H
#define PRONY_GRAPH_GRAPH_JSON_H

#include <jansson.h>

#include "graph/graph.h"

/*
 * {"name", "schema": 1, "input": NAME, "label": NAME|null, "logits": NAME, "loss": NAME|null,
 *  "values": [{"name", "kind", "dtype", "shape"}...],
 *  "nodes": [{"name", "op", "inputs": [NAME|null...], "outputs": [...], "attributes": {...}}...]}
 * Only forward nodes are written: frameworks that differentiate themselves need no more, and our
 * own workers rebuild the backward pass. New reference.
 */
json_t *graph_to_json(const struct graph *graph);

/*
 * Initialises *out (graph_release it); on error *out is untouched. Everything is checked: hostile
 * files get a clear error. The fills are not in the file: graph_initial_weights refuses such a
 * graph, whose weights come with it.
 */
enum prony_status graph_from_json(const json_t *json, struct graph *out, struct error *err);

#endif
