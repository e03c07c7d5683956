/* Runs a table of exercises over an adapter. */
#include "framework_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exercise_networks.h"

enum { TESTS_MAX = 512, NAME_BYTES = 96 };

struct one {
	const struct adapter *adapter;
	const char *library;
	const struct network *network;
	const struct framework_case *row;
	char name[NAME_BYTES];
};

static struct one ones[TESTS_MAX];
static struct CMUnitTest tests[TESTS_MAX];
static size_t count;

static void run_one(void **state)
{
	const struct one *one = *state;

	assert_true(exercise_run(one->adapter, one->library, one->network, one->row->batch,
				 one->row->body));
}

static const struct network *find(const char *name)
{
	static const char prefix[] = "operator:";

	if (strcmp(name, "odd") == 0)
		return &exercise_network_odd;
	if (strcmp(name, "wide") == 0)
		return &exercise_network_wide;
	if (strncmp(name, prefix, strlen(prefix)) == 0)
		return exercise_find(name + strlen(prefix));
	return zoo_find(name, NULL);
}

static void add(const struct adapter *adapter, const char *library,
		const struct framework_case *row, const struct network *network)
{
	struct one *one = &ones[count];

	if (!network || count == TESTS_MAX)
		abort();
	*one = (struct one){adapter, library, network, row, ""};
	snprintf(one->name, sizeof one->name, "%s %s %d", row->what, network->name,
		 (int)row->batch);
	tests[count++] =
		(struct CMUnitTest){.name = one->name, .test_func = run_one, .initial_state = one};
}

int framework_cases_run(const struct adapter *adapter, const char *library,
			const struct framework_case *cases, size_t case_count,
			const struct CMUnitTest *others, size_t other_count, const char *filter)
{
	for (size_t i = 0; i < case_count; i++) {
		const struct framework_case *row = &cases[i];

		if (strcmp(row->network, OPERATORS) != 0) {
			add(adapter, library, row, find(row->network));
			continue;
		}
		for (int k = 0; k < EXERCISE_OPERATORS; k++)
			if (!row->except || strcmp(row->except, exercise_operators[k].name) != 0)
				add(adapter, library, row, &exercise_operators[k]);
	}
	for (size_t i = 0; i < other_count && count < TESTS_MAX; i++)
		tests[count++] = others[i];
	if (filter)
		cmocka_set_test_filter(filter);
	return _cmocka_run_group_tests("framework", tests, count, NULL, NULL);
}
