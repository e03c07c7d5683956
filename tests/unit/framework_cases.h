/* A table of exercises of an adapter: each row, and each operator network of a row, is a test. */
#ifndef PRONY_TESTS_UNIT_FRAMEWORK_CASES_H
#define PRONY_TESTS_UNIT_FRAMEWORK_CASES_H

#include "framework_exercise.h"
#include "unit_test.h"

struct framework_case {
	/* A network of the zoo; "odd" or "wide" (framework_exercise.h); "operator:NAME", one of
	 * exercise_operators; or OPERATORS, all of them but `except`. */
	const char *network;
	int64_t batch;
	exercise_body *body;
	const char *what; /* in the name of the test */
	const char *except[2];
};
#define OPERATORS "operators"
#define CASE(network, batch, body)                                                                 \
	{                                                                                          \
		network, batch, body, #body,                                                       \
		{                                                                                  \
			NULL                                                                       \
		}                                                                                  \
	}

/* A graph or recipe that an adapter refuses. `network` as above; `change` (may be NULL) changes the
 * graph; the reason contains each of `says`. */
struct refusal {
	const char *network;
	enum stage stage;
	enum precision precision;
	void (*change)(struct graph *graph);
	const char *says[3];
};
void even_lrn(struct graph *graph); /* a window of four channels */
void dilated_pools(struct graph *graph);
void dilated_convs(struct graph *graph);
void shared_gates(struct graph *graph);	 /* a recurrent layer uses the same weights twice */
void constant_bias(struct graph *graph); /* the RNN's bias is no parameter */

/* Fails unless the adapter refuses each row. */
void framework_refuses(const struct adapter *adapter, const struct refusal *rows, size_t row_count);

/* Runs the other tests of the program, then the cases. `filter` is a cmocka pattern (NULL: all).
 * Returns the exit status of main. */
int framework_cases_run(const struct adapter *adapter, const char *library,
			const struct framework_case *cases, size_t case_count, const char *filter);
#define FRAMEWORK_CASES_RUN(adapter, library, cases, filter)                                       \
	framework_cases_run(adapter, library, cases, COUNT(cases), filter)

#endif
