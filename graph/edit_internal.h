/* Private to graph/: appending to a graph, and the bounds that every graph keeps. */
#ifndef PRONY_GRAPH_EDIT_INTERNAL_H
#define PRONY_GRAPH_EDIT_INTERNAL_H

#include "graph/graph.h"

/* Far above any real network; they keep hostile files from costing memory and time. */
#define GRAPH_MAX_VALUES 32768
#define GRAPH_MAX_NODES 8192
#define GRAPH_MAX_DIM INT32_MAX /* frameworks count dimensions in int */
#define GRAPH_MAX_NAME_BYTES 255

/* Appends; the name is copied, its uniqueness not checked. Returns the index. */
int graph_add_value(struct graph *graph, const char *name, enum value_kind kind, enum dtype dtype,
		    const struct shape *shape);
int graph_add_node(struct graph *graph, const struct node *node);

int graph_find_node(const struct graph *graph, const char *name);

/* PRONY_BAD_INPUT unless the name is 1 to 255 bytes of UTF-8 without control characters. `what` is
 * "value".
 */
enum prony_status graph_check_name(const char *what, const char *name, struct error *err);

/* PRONY_BAD_INPUT unless all dimensions are 1 to GRAPH_MAX_DIM and the bytes fit an int64. */
enum prony_status graph_check_shape(const char *name, enum dtype dtype, const struct shape *shape,
				    struct error *err);

/* Number and presence of inputs and outputs as the operator's row asks; numbers are finite. */
enum prony_status graph_check_row(const struct node *node, struct error *err);

#endif
