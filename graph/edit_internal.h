/* Private to graph/: appends to a graph, and the limits of every graph. */
#ifndef PRONY_GRAPH_EDIT_INTERNAL_H
#define PRONY_GRAPH_EDIT_INTERNAL_H

#include "graph/graph.h"

/* Limits far above any real network; they bound the memory and time that hostile files can take. */
#define GRAPH_MAX_VALUES 32768
#define GRAPH_MAX_NODES 8192
#define GRAPH_MAX_DIM INT32_MAX /* frameworks count dimensions in int */
#define GRAPH_MAX_NAME_BYTES 255

/*
 * Appends a value and returns its index. The name is copied; whether it is unique is not checked.
 */
int graph_add_value(struct graph *graph, const char *name, enum value_kind kind, enum dtype dtype,
		    const struct shape *shape);
int graph_add_node(struct graph *graph, const struct node *node);

int graph_find_node(const struct graph *graph, const char *name);

/* PRONY_BAD_INPUT unless the name is 1 to 255 bytes of UTF-8 without control characters. `what` is
 * for the message: "value". */
enum prony_status graph_check_name(const char *what, const char *name, struct error *err);

/* PRONY_BAD_INPUT unless all dimensions are 1 to GRAPH_MAX_DIM and the bytes fit into an int64. */
enum prony_status graph_check_shape(const char *name, enum dtype dtype, const struct shape *shape,
				    struct error *err);

/* PRONY_BAD_INPUT unless number and presence of inputs and outputs match the operator's row, and
 * numbers are finite. */
enum prony_status graph_check_row(const struct node *node, struct error *err);

#endif
