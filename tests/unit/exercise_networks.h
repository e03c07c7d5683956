/* Networks that hold every operator of a forward graph, for the tests of adapters. */
#ifndef PRONY_TESTS_UNIT_EXERCISE_NETWORKS_H
#define PRONY_TESTS_UNIT_EXERCISE_NETWORKS_H

#include "zoo/zoo.h"

enum { EXERCISE_OPERATORS = 24 };

extern const struct network exercise_operators[EXERCISE_OPERATORS];

/* Their parts: a 3x3 convolution of the same size; a last convolution, so that every operator has
 * weights behind it (else nothing asks for its gradient's layout), and five logits. */
int exercise_conv(struct builder *b, const char *name, int x, int64_t channels, bool bias);
int exercise_finish(struct builder *b, int x);

#endif
