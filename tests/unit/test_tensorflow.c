/* TensorFlow's adapter against the float64 reference. Skipped where it is not installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/tensorflow/tensorflow.h"
#include "exercise_networks.h"
#include "framework_exercise.h"

static const struct adapter *adapter;
static const char *library;

static bool run(const char *network, int64_t batch, exercise_body *body)
{
	return exercise_run(adapter, library, zoo_find(network, NULL), batch, body);
}

static void test_forward(void **state)
{
	(void)state;
	assert_true(run("lenet", 8, exercise_forward));
	assert_true(exercise_run(adapter, library, &exercise_network_odd, 4, exercise_forward));
}

static void test_gradients(void **state)
{
	(void)state;
	assert_true(run("lenet", 8, exercise_gradients));
	assert_true(exercise_run(adapter, library, &exercise_network_odd, 4, exercise_gradients));
}

/* All of them, so that one failure does not hide the next. */
static void run_operators(exercise_body *body)
{
	const char *only = getenv("PRONY_TEST_ONLY");
	int failed = 0;

	for (int i = 0; i < EXERCISE_OPERATORS; i++) {
		const struct network *network = &exercise_operators[i];

		if (!only || strcmp(only, network->name) == 0)
			failed += !exercise_run(adapter, library, network, 4, body);
	}
	assert_int_equal(failed, 0);
}

static enum prony_status update_operators(struct exercise *e, struct error *err)
{
	e->recipe.optimiser = OPTIMISER_SGD;
	e->recipe.learning_rate = 0.01;
	return exercise_updates(e, false, err);
}

static void test_operators_forward(void **state)
{
	(void)state;
	run_operators(exercise_forward);
}

static void test_operators_gradients(void **state)
{
	(void)state;
	run_operators(exercise_gradients);
}

static void test_operators_updates(void **state)
{
	(void)state;
	run_operators(update_operators);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_operators_forward),
		cmocka_unit_test(test_operators_gradients),
		cmocka_unit_test(test_operators_updates),
	};
	bool first = strstr(PRONY_TEST_ADAPTER, "1") != NULL;

	adapter = first ? &adapter_tensorflow1 : &adapter_tensorflow;
	library = first ? exercise_library("PRONY_TENSORFLOW1_LIBRARY",
					   "tensorflow1/tensorflow_core/python/"
					   "_pywrap_tensorflow_internal.so")
			: exercise_library("PRONY_TENSORFLOW_LIBRARY",
					   "tensorflow/tensorflow/libtensorflow_cc.so.2");
	if (getenv("PRONY_TEST_FILTER"))
		cmocka_set_test_filter(getenv("PRONY_TEST_FILTER"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
