/* Networks that hold every operator of a forward graph, for the tests of adapters. */
#ifndef PRONY_TESTS_UNIT_EXERCISE_NETWORKS_H
#define PRONY_TESTS_UNIT_EXERCISE_NETWORKS_H

#include "networks/zoo/zoo.h"

enum { EXERCISE_OPERATORS = 19 };

extern const struct network exercise_operators[EXERCISE_OPERATORS];

#endif
