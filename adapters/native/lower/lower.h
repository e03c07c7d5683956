/* Turns a graph into a program: chooses layouts, fuses nodes, and orders the commands. */
#ifndef PRONY_ADAPTERS_NATIVE_LOWER_LOWER_H
#define PRONY_ADAPTERS_NATIVE_LOWER_LOWER_H

#include "adapters/native/backend.h"

/*
 * PRONY_UNSUPPORTED names every operator, attribute and setting that the backend does not support.
 */
enum prony_status lower_supports(const struct backend *backend, const struct graph *graph,
				 const struct recipe *recipe, struct error *why);

/* Fills `program` with the recipe's step. `graph` includes its backward pass if the stage trains.
 * PRONY_UNSUPPORTED if the recipe asks for bf16 and nothing uses it. `weights`: those that are
 * loaded first; scales and masks of attention are states, which later ones must not change.
 * explicit_attention: attention is its separate operators. Call lower_release in any case; the
 * caller keeps the program. */
enum prony_status lower_graph(struct lowering *l, struct program *program,
			      const struct graph *graph, const struct recipe *recipe,
			      const struct tensor_set *weights, bool explicit_attention,
			      struct error *err);
void lower_release(struct lowering *l);

/* Index of a value among the arrays of a batch (program_feed): inputs and labels, in the order of
 * the graph's values. */
int lower_input_index(const struct graph *graph, int value);

/* All notes, those on types first; whole entries only. */
void lower_notes(const struct lowering *l, char *out, size_t out_bytes);

/* Updates the lasting copies of a parameter after it was loaded; call it only between steps. */
enum prony_status lower_refresh_copies(const struct lowering *l, const struct parameter *parameter,
				       struct error *err);

#endif
