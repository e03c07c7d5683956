#include "unit_test.h"

#include <math.h>

enum { TESTS_MAX = 512 };

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;

void unit_test_has(const char *text, const char *part, bool wanted, const char *file, int line)
{
	if ((text && strstr(text, part)) == wanted)
		return;
	print_error("\"%s\" is %s: %s\n", part, wanted ? "not in" : "in", text ? text : "(null)");
	_fail(file, line);
}

void unit_test_near(double found, double expected, double tolerance, const char *file, int line)
{
	if (fabs(found - expected) <= tolerance)
		return;
	print_error("found %.17g, expected %.17g within %g\n", found, expected, tolerance);
	_fail(file, line);
}

void unit_test_add(struct CMUnitTest test)
{
	if (count == TESTS_MAX)
		abort();
	tests[count++] = test;
}

int unit_tests_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	return _cmocka_run_group_tests("tests", tests, count, setup, teardown);
}

__attribute__((weak)) int main(void)
{
	return unit_tests_run(NULL, NULL);
}
