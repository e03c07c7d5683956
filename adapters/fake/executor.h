/*
 * A float32 executor of a graph and its backward pass: plain loops on one thread, products as
 * matrix products over unfolded images, in any order of summation, with operands rounded or not,
 * and wrong where it is asked to be. The adapter fake runs it, and the tests of the parity gate do.
 * It shares nothing with the native executor or the reference.
 */
#ifndef PRONY_ADAPTERS_FAKE_EXECUTOR_H
#define PRONY_ADAPTERS_FAKE_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "bundle/recipe.h"
#include "graph/graph.h"
#include "graph/tensor.h"

/* How to compute; may be set until the first step. Zero but for operand_bits and rate_factor is
 * right. */
struct executor_settings {
	int operand_bits;    /* significant bits of what is multiplied: 24, 11 (tf32), 8 (bf16) */
	uint64_t order_seed; /* 0: sums run in sequence; else in an order drawn from it */
	int64_t chunk;	     /* partial sums of so many products are summed; 0: one sum */
	bool epsilon_inside; /* RMSprop */
	const char *frozen;  /* parameters whose names start with this get no gradient; or NULL */
	bool frozen_biases;  /* nor does any parameter of rank 1 */
	double norm_epsilon, norm_momentum; /* of batch normalisations; 0: the graph's */
	bool unbiased;			    /* the running variance follows that of n - 1 */
	bool each_maximum;		    /* of several equal ones has a pool's gradient */
	double rate_factor;		    /* of the learning rate */
	const char *rate_spares;	    /* parameters whose names start with this keep theirs */
};

struct executor {
	struct arena arena;
	const struct graph *graph; /* borrowed; with its backward pass where steps train */
	float **values, **moments; /* by value index; that of the input is the step's */
	struct executor_settings settings;
	/* Of the step that runs. */
	const struct recipe *recipe;
	const int64_t *labels; /* NULL without */
	int64_t step;	       /* so far */
	/* Hears that a step begins (-1), that a node has run, and with the number of nodes that the
	 * update has. NULL: nobody listens. */
	void (*ran)(void *context, int node);
	void *context;
	/* For products, made once. */
	float *unfolded, *packed, *partial;
	size_t *order;
};

/* Whether every forward operator of the graph can be run; names all that cannot. */
enum prony_status executor_supports(const struct graph *graph, struct error *why);

/* Allocates everything that a step needs and copies the weights. PRONY_UNSUPPORTED where it lacks
 * an operator, PRONY_BAD_INPUT where a weight is missing. Release it also after an error. */
enum prony_status executor_init(struct executor *executor, const struct graph *graph,
				const struct tensor_set *weights, struct error *err);
void executor_release(struct executor *executor);

/* One step on a batch: F32 input, I64 labels in range or NULL without a loss, both borrowed during
 * the call. Dropout follows the recipe's seed, where it is on. */
void executor_step(struct executor *executor, const struct recipe *recipe,
		   const struct tensor *input, const struct tensor *labels);

#endif
