/* A float32 executor of a graph and its backward pass: plain loops on one thread, with products as
 * matrix products over unfolded images. The order of summation, the rounding of operands and
 * deliberate errors are settings. The adapter fake and the tests of the parity gate run it. It
 * shares no code with the native executor or the reference. */
#ifndef PRONY_ADAPTERS_FAKE_EXECUTOR_H
#define PRONY_ADAPTERS_FAKE_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "bundle/recipe.h"
#include "graph/graph.h"
#include "graph/tensor.h"

/* How to compute; may be set until the first step. Correct settings are all 0, except operand_bits
 * 24 and rate_factor 1. */
struct executor_settings {
	int operand_bits;    /* significant bits of operands: 24, 11 (tf32), 8 (bf16) */
	uint64_t order_seed; /* 0: sums run in sequence; else a random order from it */
	int64_t chunk;	     /* products per partial sum, which are then summed; 0: one sum */
	bool epsilon_inside; /* RMSprop */
	const char *frozen;  /* parameters with this name prefix get no gradient; or NULL */
	bool frozen_biases;  /* parameters of rank 1 get no gradient either */
	double norm_epsilon, norm_momentum; /* batch normalisations; 0: the graph's */
	bool unbiased;			    /* the running variance is that of n - 1 */
	bool each_maximum;		    /* all equal maxima get a pool's gradient */
	double rate_factor;		    /* multiplies the learning rate */
	const char *rate_spares;	    /* prefix of parameters whose rate is not multiplied */
	bool clips_each;   /* each tensor by its own norm instead of the norm of all */
	bool clips_values; /* each element to -clip_norm .. clip_norm instead */
};

struct executor {
	struct arena arena;
	const struct graph *graph; /* borrowed; with its backward pass if steps train */
	float **values, **moments; /* by value index; the input's array is the step's. Moments have
				    * twice the parameter's size: AdamW's squares are behind. */
	struct executor_settings settings;
	/* Of the current step. */
	const struct recipe *recipe;
	const int64_t *labels; /* NULL: no labels */
	int64_t step;	       /* steps so far */
	/* Called when a step begins (node -1), after each node, and after the update (node: the
	 * number of nodes). NULL: no calls. */
	void (*ran)(void *context, int node);
	void *context;
	/* Called in training before the update, to average gradients over ranks; may be NULL. */
	void (*reduce)(void *context);
	void *reduce_context;
	/* Scratch memory for products, allocated once. */
	float *unfolded, *packed, *partial;
	size_t *order;
};

/* Returns PRONY_OK if every forward operator of the graph is supported; else `why` names all that
 * are not. */
enum prony_status executor_supports(const struct graph *graph, struct error *why);

/* Allocates the memory of a step and copies the weights. PRONY_UNSUPPORTED if an operator is
 * missing, PRONY_BAD_INPUT if a weight is missing. Release it also after an error. */
enum prony_status executor_init(struct executor *executor, const struct graph *graph,
				const struct tensor_set *weights, struct error *err);
void executor_release(struct executor *executor);

/* Runs one step on a batch: F32 input, I64 labels in range or NULL without a loss, both borrowed
 * during the call. Dropout, if on, uses the recipe's seed. */
void executor_step(struct executor *executor, const struct recipe *recipe,
		   const struct tensor *input, const struct tensor *labels);

#endif
