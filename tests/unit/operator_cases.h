/* Small graphs, one for each way of using an operator of larger networks. */
#ifndef PRONY_TESTS_UNIT_OPERATOR_CASES_H
#define PRONY_TESTS_UNIT_OPERATOR_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"

struct operator_case {
	const char *what;
	int rank;
	int64_t dims[3]; /* of the input without the batch */
	int (*layers)(struct builder *b, int x);
};

extern const struct operator_case operator_cases[];
extern const size_t operator_case_count;

/* The case of that name, which must be there. */
const struct operator_case *operator_case_find(const char *what);

/*
 * What is tested stands between a parameter "p" that is added to the input ("sum"), and a linear
 * layer; three samples. The caller releases the graph.
 */
enum prony_status operator_case_build(const struct operator_case *c, bool half_squares,
				      struct graph *graph, struct error *err);

#endif
