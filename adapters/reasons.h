/* Collects all reasons why an adapter cannot run something, so that users see them at once. */
#ifndef PRONY_ADAPTERS_REASONS_H
#define PRONY_ADAPTERS_REASONS_H

#include "base/error.h"
#include "base/strbuf.h"
#include "bundle/recipe.h"
#include "graph/graph.h"

/* Appends a reason, separated by "; ". */
void reasons_add(struct strbuf *reasons, const char *format, ...) PRONY_PRINTF(2, 3);

/* Adds what an adapter with these `precisions` (bits) and without data loader cannot do: precision,
 * input, threads. */
void reasons_add_recipe(struct strbuf *reasons, const struct recipe *recipe, unsigned precisions);

/* The same for an adapter with all stages except load and all optimisers; also what the graph lacks
 * for training. */
void reasons_add_training(struct strbuf *reasons, const struct graph *graph,
			  const struct recipe *recipe, unsigned precisions);

/* For adapters that translate one F32 input and a class per sample: adds anything else in the
 * graph. */
void reasons_add_inputs(struct strbuf *reasons, const struct graph *graph);

/* For adapters with inputs of F32, I64 and I32 that reorder values of four dimensions: adds
 * anything else in the graph. */
void reasons_add_types(struct strbuf *reasons, const struct graph *graph);

/* Adds "OPERATOR NAME: what" for the first node of an operator of which that is said. */
void reasons_add_node(struct strbuf *reasons, const struct node *node, const char *what);
/* Adds that an operator is not supported, for the first node that has it. */
void reasons_add_operator(struct strbuf *reasons, const struct node *node);

/* Adds a recurrent layer with more than its last state, time from first to last, and ReLU in an
 * RNN. */
void reasons_add_recurrent(struct strbuf *reasons, const struct node *node);

/* PRONY_OK without reasons, otherwise PRONY_UNSUPPORTED with all of them. Releases the buffer. */
enum prony_status reasons_finish(struct strbuf *reasons, struct error *why);

#endif
