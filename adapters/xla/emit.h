/* Writes a graph as one StableHLO function for a stage of a recipe: forward, backward and update.
 * Values that change between steps are arguments that the results overwrite (donation). */
#ifndef PRONY_ADAPTERS_XLA_EMIT_H
#define PRONY_ADAPTERS_XLA_EMIT_H

#include "adapters/xla/hlo.h"
#include "base/arena.h"
#include "bundle/recipe.h"
#include "graph/layout.h"

enum role {
	ROLE_PARAMETER,
	ROLE_MOMENT,  /* optimiser state of a parameter; initially zero */
	ROLE_SQUARE,  /* AdamW's second state of a parameter; initially zero */
	ROLE_UPDATES, /* F32: AdamW's updates so far */
	ROLE_STATE,
	ROLE_RANDOM,   /* two U64: state of dropout's random numbers */
	ROLE_INPUT,    /* F32 or I32 */
	ROLE_LABELS,   /* I32 */
	ROLE_GRADIENT, /* of a parameter */
	ROLE_LOSS,
	ROLE_LOGITS
};

/* An argument or a result of the function. */
struct port {
	enum role role;
	int value;		  /* in the graph, or VALUE_NONE */
	struct arrangement order; /* memory layout: channels last, as in JAX */
	struct hlo hlo;		  /* type, and shape in memory */
};

struct program {
	char *text;
	size_t bytes;
	struct port *arguments, *results; /* in the arena */
	int argument_count, result_count;
	/* The last arguments are a batch: the inputs and, for training, the labels. For i < kept,
	 * result i takes the memory of argument i and is argument i of the next step. */
	int kept;
	int64_t macs; /* of the forward pass, counted while writing */
};

/* Appends the backward pass to the graph if the stage needs it, and writes the program. `exact` as
 * in hlo.h. The caller frees out->text. */
enum prony_status emit_program(struct graph *graph, const struct recipe *recipe, bool exact,
			       struct arena *arena, struct program *out, struct error *err);

/* Whether the operator can be written. */
bool emit_knows(enum op op);

#endif
