/* A table of exercises of an adapter: each row, and each operator network of a row, is a test. */
#ifndef PRONY_TESTS_UNIT_FRAMEWORK_CASES_H
#define PRONY_TESTS_UNIT_FRAMEWORK_CASES_H

#include "framework_exercise.h"

struct framework_case {
	/* A network of the zoo; "odd" or "wide" (framework_exercise.h); "operator:NAME", one of
	 * exercise_operators; or OPERATORS, all of them but `except`. */
	const char *network;
	int64_t batch;
	exercise_body *body;
	const char *what; /* in the name of the test */
	const char *except;
};
#define OPERATORS "operators"
#define CASE(network, batch, body)                                                                 \
	{                                                                                          \
		network, batch, body, #body, NULL                                                  \
	}

struct CMUnitTest;

/* Runs the cases, then `others`. `filter` is a cmocka pattern (NULL: all). Returns the exit status
 * of main. */
int framework_cases_run(const struct adapter *adapter, const char *library,
			const struct framework_case *cases, size_t case_count,
			const struct CMUnitTest *others, size_t other_count, const char *filter);
#define FRAMEWORK_CASES_RUN(adapter, library, cases, others, filter)                               \
	framework_cases_run(adapter, library, cases, sizeof(cases) / sizeof(cases[0]), others,     \
			    sizeof(others) / sizeof(others[0]), filter)

#endif
