/* Turns a graph into a program: picks layouts and implementations, fuses, orders the commands. */
#ifndef PRONY_ADAPTERS_NATIVE_LOWER_LOWER_H
#define PRONY_ADAPTERS_NATIVE_LOWER_LOWER_H

#include "adapters/native/lower/lowering.h"

/* Names in `why` every operator, attribute and wish that cannot be lowered; else PRONY_OK. */
enum prony_status lower_supports(const struct graph *graph, const struct recipe *recipe,
				 struct error *why);

/*
 * Fills l->program with the recipe's step. `graph` has its backward pass where the stage trains.
 * lower_release in any case; the program stays with its owner.
 */
enum prony_status lower_graph(struct lowering *l, const struct onednn *dnn, struct program *program,
			      const struct graph *graph, const struct recipe *recipe,
			      struct error *err);
void lower_release(struct lowering *l);

/*
 * Reads back from the primitives in what type each product (convolution, matrix product, recurrent
 * layer) multiplies, forward and backward, for the notes. PRONY_UNSUPPORTED where bf16 was asked
 * for and none does.
 */
enum prony_status lower_check_types(struct lowering *l, struct error *err);
/* All notes, those on types first; whole entries only. */
void lower_notes(const struct lowering *l, char *out, size_t out_bytes);

/* Brings the lasting copies of a parameter up to date with what was written into it; between steps
 * only. */
enum prony_status lower_refresh_copies(const struct lowering *l, const struct parameter *parameter,
				       struct error *err);
/* Elements of all parameters, without their padding. */
int64_t lower_parameter_elements(const struct lowering *l);

#endif
