/* Included by every unit test: cmocka, the headers that most tests need, and a list of tests that
 * each definition of a test extends. */
#ifndef PRONY_TESTS_UNIT_UNIT_TEST_H
#define PRONY_TESTS_UNIT_UNIT_TEST_H

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/strbuf.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* TEST(name) { ... } defines a test; TEST_WITH gives it a set-up and a tear-down of its own. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, setup, teardown)                                                           \
	static void name(void **state);                                                            \
	static int name##_end(void **state)                                                        \
	{                                                                                          \
		return unit_test_end(state, teardown);                                             \
	}                                                                                          \
	static __attribute__((constructor)) void add_##name(void)                                  \
	{                                                                                          \
		unit_test_add((struct CMUnitTest){#name, name, setup, name##_end, NULL});          \
	}                                                                                          \
	static void name(__attribute__((unused)) void **state)

/* TEST_ON's body has the fixture that the set-up made, declared as `parameter`. */
#define TEST_ON(name, setup, teardown, parameter)                                                  \
	static void name##_on(__attribute__((unused)) parameter);                                  \
	TEST_WITH(name, setup, teardown)                                                           \
	{                                                                                          \
		name##_on(*state);                                                                 \
	}                                                                                          \
	static void name##_on(__attribute__((unused)) parameter)

/* What these return belongs to the running test and goes with it, also if it fails: memory that was
 * allocated elsewhere, a formatted text, an empty folder of its own, and a path in it. */
void *test_keep(void *memory);
char *test_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct strbuf *test_strbuf(void); /* empty */
const char *test_folder(void);
char *test_path(const char *name);
/* Writes the text into a file of the folder and returns its path. */
char *test_file(const char *name, const char *text);
/* The fixture of a test that works in its folder: *state. */
int test_folder_setup(void **state);
#define IN_FOLDER(name) TEST_WITH(name, test_folder_setup, NULL)

/* SCOPED(graph) graph; releases it with graph_release(&graph) where its block ends. */
#define SCOPED(type) __attribute__((cleanup(type##_release))) struct type

/* Fails with the error's text unless the status is PRONY_OK. */
void check(enum prony_status status, const struct error *err);

/* Fails unless this status was expected and the message has the part; clears the error. */
void expect_error(enum prony_status found, enum prony_status expected, struct error *err,
		  const char *part);

/* A text contains a part, or does not. */
#define assert_has(text, part) unit_test_has(text, part, true, __FILE__, __LINE__)
#define assert_lacks(text, part) unit_test_has(text, part, false, __FILE__, __LINE__)

/* Fails, with both numbers, unless |found - expected| <= tolerance. */
#define near(found, expected, tolerance)                                                           \
	unit_test_near(found, expected, tolerance, __FILE__, __LINE__)

void unit_test_near(double found, double expected, double tolerance, const char *file, int line);
void unit_test_has(const char *text, const char *part, bool wanted, const char *file, int line);
void unit_test_add(struct CMUnitTest test);
int unit_test_end(void **state, CMFixtureFunction teardown);

/* Runs the tests in the order in which they were added. Returns the exit status of main. A program
 * without a main of its own has one that calls it with NULL, NULL. */
int unit_tests_run(CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
