/* Why an adapter cannot run something: all reasons at once, so that nobody meets them one by one.
 */
#ifndef PRONY_ADAPTERS_REASONS_H
#define PRONY_ADAPTERS_REASONS_H

#include "base/error.h"
#include "base/strbuf.h"
#include "bundle/recipe.h"
#include "graph/graph.h"

/* Appends a reason, after "; " when it is not the first. */
void reasons_add(struct strbuf *reasons, const char *format, ...) PRONY_PRINTF(2, 3);

/*
 * What a recipe may not ask of an adapter that computes in `precisions` (bits) and has no data
 * loader: precision, input, threads.
 */
void reasons_add_recipe(struct strbuf *reasons, const struct recipe *recipe, unsigned precisions);

/* The same of one that has all stages but load, and all optimisers: and what the graph lacks for
 * it. */
void reasons_add_training(struct strbuf *reasons, const struct graph *graph,
			  const struct recipe *recipe, unsigned precisions);

/* Of adapters that translate one F32 input and a class for each sample: what else the graph has. */
void reasons_add_inputs(struct strbuf *reasons, const struct graph *graph);

/* Of adapters that take inputs of F32, I64 and I32 and keep values of four dimensions in an order
 * of their own: what else the graph has. */
void reasons_add_types(struct strbuf *reasons, const struct graph *graph);

/* PRONY_OK without reasons, else PRONY_UNSUPPORTED with all of them. Releases the buffer. */
enum prony_status reasons_finish(struct strbuf *reasons, struct error *why);

#endif
