/* Included by every unit test: cmocka with the headers it needs, and a list of tests that each
 * definition of a test extends. */
#ifndef PRONY_TESTS_UNIT_UNIT_TEST_H
#define PRONY_TESTS_UNIT_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* TEST(name) { ... } defines a test; TEST_WITH gives it a set-up and a tear-down of its own. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, setup, teardown)                                                           \
	static void name(void **state);                                                            \
	static __attribute__((constructor)) void add_##name(void)                                  \
	{                                                                                          \
		unit_test_add((struct CMUnitTest){#name, name, setup, teardown, NULL});            \
	}                                                                                          \
	static void name(__attribute__((unused)) void **state)

/* A text contains a part, or does not. */
#define assert_has(text, part) unit_test_has(text, part, true, __FILE__, __LINE__)
#define assert_lacks(text, part) unit_test_has(text, part, false, __FILE__, __LINE__)

/* Fails, with both numbers, unless |found - expected| <= tolerance. */
#define near(found, expected, tolerance)                                                           \
	unit_test_near(found, expected, tolerance, __FILE__, __LINE__)

void unit_test_near(double found, double expected, double tolerance, const char *file, int line);
void unit_test_has(const char *text, const char *part, bool wanted, const char *file, int line);
void unit_test_add(struct CMUnitTest test);

/* Runs the tests in the order in which they were added. Returns the exit status of main. A program
 * without a main of its own has one that calls it with NULL, NULL. */
int unit_tests_run(CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
