#include "unit_test.h"

#include <math.h>

#include "base/files.h"
#include "base/memory.h"

enum { TESTS_MAX = 512 };

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;

/* Of the running test. */
static struct kept {
	struct kept *before;
	void *memory;
	struct strbuf text;
} * kept_last;
static char *folder;

void *test_keep(void *memory)
{
	struct kept *kept = memory_alloc(sizeof(*kept));

	*kept = (struct kept){.before = kept_last, .memory = memory};
	kept_last = kept;
	return memory;
}

struct strbuf *test_strbuf(void)
{
	struct kept *kept;

	test_keep(NULL);
	kept = kept_last;
	strbuf_init(&kept->text, 0);
	return &kept->text;
}

char *test_text(const char *format, ...)
{
	va_list arguments;
	char *text = NULL;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		abort();
	va_end(arguments);
	return test_keep(text);
}

const char *test_folder(void)
{
	if (!folder)
		assert_int_equal(directory_make_temporary("prony-test-", &folder, NULL), PRONY_OK);
	return folder;
}

char *test_path(const char *name)
{
	return test_keep(path_join(test_folder(), name));
}

char *test_file(const char *name, const char *text)
{
	char *path = test_path(name);

	assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), PRONY_OK);
	return path;
}

int test_folder_setup(void **state)
{
	*state = (void *)(uintptr_t)test_folder();
	return 0;
}

int unit_test_end(void **state, CMFixtureFunction teardown)
{
	int failed = teardown ? teardown(state) : 0;

	while (kept_last) {
		struct kept *kept = kept_last;

		kept_last = kept->before;
		free(kept->memory);
		strbuf_release(&kept->text);
		free(kept);
	}
	if (folder && directory_remove(folder, NULL) != PRONY_OK)
		failed = -1;
	free(folder);
	folder = NULL;
	return failed;
}

void check(enum prony_status status, const struct error *err)
{
	if (status != PRONY_OK)
		fail_msg("%s", err->text);
}

void expect_error(enum prony_status found, enum prony_status expected, struct error *err,
		  const char *part)
{
	if (found != expected || !strstr(err->text, part))
		fail_msg("expected '%s' (%d), found %d: %s", part, expected, found, err->text);
	error_clear(err);
}

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
	/* Frameworks and data sets that this machine shares are not seen. */
	setenv("XDG_DATA_DIRS", "/nowhere", 1);
	return _cmocka_run_group_tests("tests", tests, count, setup, teardown);
}

__attribute__((weak)) int main(void)
{
	return unit_tests_run(NULL, NULL);
}
