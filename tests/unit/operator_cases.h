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
	int64_t dims[3];			 /* of the input without the batch */
	int (*layers)(struct builder *b, int x); /* NULL: the function `op` of each element */
	enum op op;
};

/* Case i; behind those that are listed, one for each function of the operator table. NULL: the end.
 */
const struct operator_case *operator_case_at(size_t i);

/* Appends function `op` of x with its default attributes, of numbers that it
 * takes and that meet all its pieces: the sigmoid of x, or three times x. */
int operator_case_function(struct builder *b, enum op op, const char *name, int x);

/* The case of that name, which must be there. */
const struct operator_case *operator_case_find(const char *what);

/*
 * What is tested stands between a parameter "p" that is added to the input ("sum"), and a linear
 * layer; three samples. The caller releases the graph.
 */
enum prony_status operator_case_build(const struct operator_case *c, bool half_squares,
				      struct graph *graph, struct error *err);

#endif
