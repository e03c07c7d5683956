/*
 * A graph as one StableHLO function for a stage of a recipe: forward, backward and update. What
 * changes from step to step comes in as arguments that the results overwrite (donation).
 */
#ifndef PRONY_ADAPTERS_XLA_EMIT_H
#define PRONY_ADAPTERS_XLA_EMIT_H

#include "adapters/xla/hlo.h"
#include "base/arena.h"
#include "bundle/recipe.h"
#include "graph/layout.h"

enum role {
	ROLE_PARAMETER,
	ROLE_MOMENT, /* of the optimiser, of that parameter; zero at first */
	ROLE_STATE,
	ROLE_RANDOM,   /* two U64: where the random numbers of dropout have come to */
	ROLE_INPUT,    /* F32 or I32 */
	ROLE_LABELS,   /* I32 */
	ROLE_GRADIENT, /* of that parameter */
	ROLE_LOSS,
	ROLE_LOGITS
};

/* An argument or a result of the function. */
struct port {
	enum role role;
	int value;		  /* of the graph, or VALUE_NONE */
	struct arrangement order; /* in which it lies: channels last, as JAX has them */
	struct hlo hlo;		  /* its type, and its shape in memory */
};

struct program {
	char *text;
	size_t bytes;
	struct port *arguments, *results; /* in the arena */
	int argument_count, result_count;
	/* The last arguments are a batch: the inputs and, where it trains, the labels. */
	int kept; /* result i is argument i of the next step, for i < kept; it takes its memory */
	int64_t macs; /* of the forward pass, counted on what was written */
};

/* Appends the backward pass to the graph where the stage has one. `exact` as in hlo.h. The caller
 * frees out->text. */
enum prony_status emit_program(struct graph *graph, const struct recipe *recipe, bool exact,
			       struct arena *arena, struct program *out, struct error *err);

/* Whether there is a form for the operator. */
bool emit_knows(enum op op);

#endif
