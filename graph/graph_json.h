/* The graph as JSON, as in case.json; the schema is docs/schemas/case.schema.json. */
#ifndef PRONY_GRAPH_GRAPH_JSON_H
#define PRONY_GRAPH_GRAPH_JSON_H

#include <jansson.h>

#include "graph/graph.h"

/*
 * {"name", "schema": 1, "input": NAME, "label": NAME|null, "logits": NAME, "loss": NAME|null,
 *  "values": [{"name", "kind", "dtype", "shape"}...],
 *  "nodes": [{"name", "op", "inputs": [NAME|null...], "outputs": [...], "attributes": {...}}...]}
 * Returns a new reference. Only forward nodes are written: frameworks with their own
 * differentiation need no more, and prony's own workers build the backward pass again.
 */
json_t *graph_to_json(const struct graph *graph);

/* Initialises *out; the caller frees it with graph_release. On error *out is unchanged. Everything
 * is checked, so that hostile files give a clear error. The fills are not in the file: the weights
 * come with such a graph, and graph_initial_weights refuses it. */
enum prony_status graph_from_json(const json_t *json, struct graph *out, struct error *err);

#endif
