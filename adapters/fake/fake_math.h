/*
 * Private to the fake adapter: a small float32 executor of the graph, plain loops on one thread,
 * that can be made wrong on purpose. It shares nothing with the native executor or the reference.
 */
#ifndef PRONY_ADAPTERS_FAKE_FAKE_MATH_H
#define PRONY_ADAPTERS_FAKE_FAKE_MATH_H

#include <stdbool.h>

#include "bundle/recipe.h"
#include "graph/graph.h"
#include "graph/tensor.h"

/* Mistakes that adapters really make; the parity gate must reject each of them. */
struct fake_mutants {
	bool no_momentum;      /* the velocity is forgotten */
	bool no_bias_gradient; /* biases keep their value */
	bool tf32;	       /* products of operands with 10 bits of mantissa */
	bool frozen_layer;     /* the first layer is not updated */
	bool swapped_channels; /* channels 0 and 1 of the first weight swapped, in and out */
	double lr_scale;       /* of the learning rate; 1 = correct */
};

struct fake_network {
	struct arena arena;
	const struct graph
		*graph; /* borrowed; with the backward pass unless the stage is forward */
	struct recipe recipe;
	struct fake_mutants mutants;
	float **values;	   /* per value; parameters and states are ours, the input is a batch's */
	float **moments;   /* per value; of trained parameters */
	float *scratch[2]; /* rounded operands */
	const int64_t *labels; /* of the batch in use; NULL without */
	int64_t step;	       /* so far */
	int frozen_to; /* parameters of values below this index are frozen by frozen_layer */
	int swapped;   /* value whose channels swapped_channels swaps, or VALUE_NONE */
	double loss;
};

/* Whether every forward operator of the graph can be run; names all that cannot. */
enum prony_status fake_network_supports(const struct graph *graph, struct error *why);

/* Allocates everything that a step needs and copies the weights. Adds the backward pass to the
 * graph when the stage needs it. Release it also after an error. */
enum prony_status fake_network_init(struct fake_network *net, struct graph *graph,
				    const struct recipe *recipe, const struct tensor_set *weights,
				    const struct fake_mutants *mutants, struct error *err);
void fake_network_release(struct fake_network *net);

/* One step on a batch (borrowed during the call; labels NULL without a loss). Labels out of range
 * are the caller's to refuse. */
void fake_network_step(struct fake_network *net, const float *input, const int64_t *labels);

/* Copies values out by name: F32. `gradients`: of the parameters so named, not the parameters. */
enum prony_status fake_network_read(const struct fake_network *net, bool gradients,
				    struct tensor_set *out, struct error *err);

/* Runs one node (fake_operators.c); NULL in the table: not one that fake knows. */
typedef void fake_operator(struct fake_network *net, const struct node *node);
fake_operator *fake_operator_find(enum op op);

#endif
