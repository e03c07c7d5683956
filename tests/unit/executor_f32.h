/*
 * A framework in miniature for the tests of the gate: runs a graph with its backward pass in
 * float32, with products as matrix products over unfolded images, in any order of summation, with
 * operands rounded or not. It shares no arithmetic with the reference interpreter.
 */
#ifndef PRONY_TESTS_UNIT_EXECUTOR_F32_H
#define PRONY_TESTS_UNIT_EXECUTOR_F32_H

#include <stdbool.h>
#include <stdint.h>

#include "bundle/recipe.h"
#include "graph/graph.h"

struct executor_f32 {
	struct arena arena;
	const struct graph *graph; /* with backward pass; borrowed */
	float **values, **moments; /* by value index; labels are kept as numbers */
	/* How to compute; set after executor_init. */
	int operand_bits;    /* significant bits of what is multiplied: 24, 11 (tf32), 8 (bf16) */
	uint64_t order_seed; /* 0: sums run in sequence; else in an order drawn from it */
	int64_t chunk;	     /* partial sums of so many products are summed; 0: one sum */
	bool epsilon_inside; /* RMSprop */
	const char *frozen;  /* parameters whose names start with this get no gradient; or NULL */
	double norm_epsilon, norm_momentum; /* of batch normalisations; 0: the graph's */
	bool unbiased;			    /* the running variance follows that of n - 1 */
	double rate_factor;		    /* of the learning rate; 0: 1 */
	const char *rate_spares;	    /* parameters whose names start with this keep theirs */
};

/* Dies through cmocka's fail() when the graph holds something that it cannot do. */
void executor_init(struct executor_f32 *executor, const struct graph *graph,
		   const struct tensor_set *weights);
void executor_release(struct executor_f32 *executor);

/* One step; labels may be NULL for STAGE_FORWARD. Dropout is the identity. */
void executor_step(struct executor_f32 *executor, const struct recipe *recipe,
		   const struct tensor *x, const struct tensor *y);

/* A view of a value. */
struct tensor executor_tensor(const struct executor_f32 *executor, int value);

#endif
