/* Networks that hold every operator of a forward graph, for the tests of adapters. */
#ifndef PRONY_TESTS_UNIT_EXERCISE_NETWORKS_H
#define PRONY_TESTS_UNIT_EXERCISE_NETWORKS_H

#include "zoo/zoo.h"

enum { EXERCISE_OPERATORS = 27 };

extern const struct network exercise_operators[EXERCISE_OPERATORS];

/* Parts of these networks: a 3x3 convolution that keeps the size; and a last convolution with five
 * logits, so that every operator has weights before it (otherwise its gradient's layout is not
 * tested). */
int exercise_conv(struct builder *b, const char *name, int x, int64_t channels, bool bias);
int exercise_finish(struct builder *b, int x);

/* Depthwise and pointwise convolutions, with a function before each. */
int exercise_separable(struct builder *b, int x,
		       int (*function)(struct builder *b, const char *name, int x));

#endif
