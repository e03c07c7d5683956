/* Small graphs for tests, one for each use of an operator. */
#ifndef PRONY_TESTS_UNIT_OPERATOR_CASES_H
#define PRONY_TESTS_UNIT_OPERATOR_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"

struct operator_case {
	const char *what;
	int rank;
	int64_t dims[3];			 /* the input's, without the batch */
	int (*layers)(struct builder *b, int x); /* NULL: the elementwise function `op` */
	enum op op;
};

/* Returns case i; the listed cases are followed by one for each function of the operator table.
 * NULL: the end. */
const struct operator_case *operator_case_at(size_t i);

/* Appends function `op` of x with its default attributes. Its arguments lie in its domain and reach
 * all its pieces: the sigmoid of x, or three times x. */
int operator_case_function(struct builder *b, enum op op, const char *name, int x);

/* Returns the case of that name; the case must exist. */
const struct operator_case *operator_case_find(const char *what);

/* Builds the graph of a case for three samples. The tested operator lies between a parameter "p",
 * which is added to the input ("sum"), and a linear layer. The caller releases the graph. */
enum prony_status operator_case_build(const struct operator_case *c, bool half_squares,
				      struct graph *graph, struct error *err);

#endif
