/* Tests files and folders, JSON access, shared libraries. */
#include <dirent.h>

#include "base/loader.h"
#include "unit_test.h"

static size_t count_entries(const char *folder)
{
	size_t count = 0;
	DIR *directory = opendir(folder);

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2; /* "." and ".." */
}

IN_FOLDER(write_and_read)
{
	char *path = test_path("data.bin"), *text;
	struct error err = ERROR_INIT;
	size_t length;

	check(file_write_atomic(path, "old", 3, &err), &err);
	check(file_write_atomic(path, "a\0new", 5, &err), &err);
	assert_int_equal(count_entries(*state), 1);
	check(file_read(path, 5, &text, &length, &err), &err);
	assert_int_equal(length, 5);
	assert_memory_equal(text, "a\0new", 6);
	free(text);
	text = NULL;
	expect_error(file_read(path, 4, &text, &length, &err), PRONY_BAD_INPUT, &err,
		     "limit of 4 bytes");
	assert_null(text);
	assert_int_equal(file_write_atomic(path, "", 0, NULL), PRONY_OK);
	assert_int_equal(file_read(path, 0, &text, &length, NULL), PRONY_OK);
	assert_int_equal(length, 0);
	assert_string_equal(text, "");
	free(text);
}

IN_FOLDER(failed_write_leaves_the_old_file)
{
	struct error err = ERROR_INIT;
	char *folder = test_path("taken");
	char *nowhere = test_path("no/such/folder");

	/* A rename onto a folder fails after all data have been written. */
	assert_int_equal(directory_make(folder, NULL), PRONY_OK);
	expect_error(file_write_atomic(folder, "x", 1, &err), PRONY_IO, &err, "taken");
	assert_int_equal(count_entries(*state), 1);
	assert_int_equal(file_write_atomic(nowhere, "x", 1, NULL), PRONY_IO);
}

static mode_t mode_of(const char *path)
{
	struct stat info;

	assert_int_equal(lstat(path, &info), 0);
	return info.st_mode;
}

/*
 * A link is followed, a pipe is written to, a file keeps its permissions; no other file is created.
 */
IN_FOLDER(outputs_that_are_no_files)
{
	struct error err = ERROR_INIT;
	char *file = test_path("file"), *link = test_path("link"), *text = NULL;
	char *fifo = test_path("fifo"), *loose = test_path("loose");
	char *made = test_path("made"), got[8] = "";
	size_t length = 0;

	check(file_write_atomic(file, "old", 3, &err), &err);
	assert_int_equal(chmod(file, 0640), 0);
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(symlink("made", loose), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	int reader = open(fifo, O_RDONLY | O_NONBLOCK);
	const char *const outputs[] = {file, link, fifo, loose};
	for (size_t i = 0; i < COUNT(outputs); i++) {
		mode_t before = mode_of(outputs[i]);
		check(file_check_output(outputs[i], &err), &err);
		check(file_write_atomic(outputs[i], "new", 3, &err), &err);
		assert_int_equal(mode_of(outputs[i]), before);
	}
	assert_int_equal(read(reader, got, sizeof got), 3);
	assert_string_equal(got, "new");
	for (int i = 0; i < 2; i++) {
		check(file_read(i ? made : file, 100, &text, &length, &err), &err);
		assert_string_equal(text, "new");
		free(text);
	}
	assert_int_equal(count_entries(*state), 5);
	close(reader);
}

IN_FOLDER(outputs_that_cannot_be)
{
	static const char *const names[] = {"no/where", "folder", "file/below",
					    "folder/",	"circle", "nowhere"};
	struct error err = ERROR_INIT;
	char *folder = test_path("folder"), *file = test_path("file");
	char *circle = test_path("circle"), *nowhere = test_path("nowhere");

	assert_int_equal(mkdir(folder, 0700), 0);
	check(file_write_atomic(file, "x", 1, &err), &err);
	assert_int_equal(symlink("circle", circle), 0);
	assert_int_equal(symlink("gone/file", nowhere), 0);
	for (size_t i = 0; i < COUNT(names); i++) {
		char *path = test_path(names[i]);
		expect_error(file_check_output(path, &err), PRONY_IO, &err, *state);
		assert_int_equal(file_write_atomic(path, "x", 1, &err), PRONY_IO);
		error_clear(&err);
	}
	assert_int_equal(count_entries(*state), 4);
	assert_int_equal(file_check_output("", &err), PRONY_BAD_INPUT);
	assert_true(file_is_same(file, file));
	assert_false(file_is_same(file, folder));
}

IN_FOLDER(unreadable_files)
{
	char *text, *path = test_path("absent.yaml");
	size_t length;
	struct error err = ERROR_INIT;

	expect_error(file_read(path, 10, &text, &length, &err), PRONY_BAD_INPUT, &err,
		     "absent.yaml: No such file");
	expect_error(file_read(*state, 10, &text, &length, &err), PRONY_BAD_INPUT, &err,
		     "is a directory");
	/* The size is not known beforehand; the limit still holds. */
	assert_int_equal(file_read("/proc/self/status", 1 << 20, &text, &length, NULL), PRONY_OK);
	assert_true(length > 100 && strlen(text) == length);
	free(text);
	assert_int_equal(file_read("/dev/zero", 100000, &text, &length, NULL), PRONY_BAD_INPUT);
	assert_int_equal(file_read("/proc/self/status", 10, &text, &length, NULL), PRONY_BAD_INPUT);
}

IN_FOLDER(folders)
{
	char *deep = test_path("a/b//c/");
	char *file = test_path("a/file");
	char *below_file = test_path("a/file/x");
	char *top = test_path("a");
	struct error err = ERROR_INIT;

	assert_false(file_is_directory(deep));
	assert_int_equal(directory_make(deep, NULL), PRONY_OK);
	assert_int_equal(directory_make(deep, NULL), PRONY_OK);
	assert_true(file_is_directory(deep));
	assert_int_equal(file_write_atomic(file, "", 0, NULL), PRONY_OK);
	assert_true(file_exists(file) && !file_is_directory(file));
	expect_error(directory_make(below_file, &err), PRONY_IO, &err, "a/file");
	assert_int_equal(directory_make("", NULL), PRONY_BAD_INPUT);
	assert_int_equal(directory_make("/", NULL), PRONY_OK);
	assert_int_equal(directory_remove(top, NULL), PRONY_OK);
	assert_false(file_exists(top));
	assert_int_equal(directory_remove(top, NULL), PRONY_OK);
}

IN_FOLDER(removing_follows_no_links)
{
	static const char *const refused[] = {"", "/", ".", ".."};
	char *kept = test_path("kept"), *file = test_keep(path_join(kept, "file"));
	char *victim = test_path("victim"), *link = test_keep(path_join(victim, "link"));
	char *direct = test_path("direct");

	assert_int_equal(directory_make(kept, NULL), PRONY_OK);
	assert_int_equal(directory_make(victim, NULL), PRONY_OK);
	assert_int_equal(file_write_atomic(file, "x", 1, NULL), PRONY_OK);
	assert_int_equal(symlink(kept, link), 0);
	assert_int_equal(symlink(kept, direct), 0);
	assert_int_equal(directory_remove(victim, NULL), PRONY_OK);
	assert_int_equal(directory_remove(direct, NULL), PRONY_OK);
	assert_false(file_exists(victim) || file_exists(direct));
	assert_true(file_exists(file));
	for (size_t i = 0; i < COUNT(refused); i++)
		assert_int_equal(directory_remove(refused[i], NULL), PRONY_BAD_INPUT);
}

IN_FOLDER(temporary_folder_is_private)
{
	struct error err = ERROR_INIT;
	struct stat info;
	char *before = test_keep(getenv("TMPDIR") ? memory_strdup(getenv("TMPDIR")) : NULL);
	char *made = NULL;

	setenv("TMPDIR", *state, 1);
	assert_int_equal(directory_make_temporary("x-", &made, NULL), PRONY_OK);
	assert_int_equal(strncmp(made, *state, strlen(*state)), 0);
	assert_int_equal(stat(made, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0700);
	free(made);
	made = NULL;
	setenv("TMPDIR", "/no/such/folder", 1);
	expect_error(directory_make_temporary("x-", &made, &err), PRONY_IO, &err,
		     "/no/such/folder");
	assert_null(made);
	if (before)
		setenv("TMPDIR", before, 1);
	else
		unsetenv("TMPDIR");
}

TEST(joined_paths)
{
	static const struct {
		const char *a, *b, *joined;
	} rows[] = {
		{"a", "b", "a/b"}, {"a/", "b", "a/b"},	 {"a", "/b", "a/b"},
		{"", "b", "b"},	   {"/", "b/c", "/b/c"}, {"a/", "//b", "a/b"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *joined = test_keep(path_join(rows[i].a, rows[i].b));
		assert_string_equal(joined, rows[i].joined);
	}
}

static void assert_data_home(const char *expected)
{
	char *path = test_keep(path_data_home());

	assert_string_equal(path, expected);
}

TEST(data_home)
{
	char *home = test_keep(getenv("HOME") ? memory_strdup(getenv("HOME")) : NULL);

	setenv("HOME", "/home/x", 1);
	setenv("XDG_DATA_HOME", "/data", 1);
	assert_data_home("/data/prony");
	setenv("XDG_DATA_HOME", "relative", 1);
	assert_data_home("/home/x/.local/share/prony");
	unsetenv("XDG_DATA_HOME");
	assert_data_home("/home/x/.local/share/prony");
	if (home)
		setenv("HOME", home, 1);
}

TEST(own_places)
{
	char *self = test_keep(path_self());
	assert_true(self[0] == '/' && access(self, X_OK) == 0);

	setenv("PRONY_SHARE", "/some/where", 1);
	char *share = path_share();
	assert_string_equal(share, "/some/where");
	free(share);
	unsetenv("PRONY_SHARE");
	/* Meson's test environment names the source tree; the build tree must lead to it. */
	const char *source = getenv("PRONY_SOURCE");
	if (!source)
		return;
	share = path_share();
	assert_non_null(share);
	assert_string_equal(share, source);
	free(share);
}

TEST(json_errors_have_line_and_column)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"{\"a\": 1,\n \"b\": }", "case.json: line 2, column 7: "},
		{"", "case.json: line 1, column 0: "},
		{"[1, 2", "case.json: line 1, column 5: "},
		{"{\"a\": 1, \"a\": 2}", "duplicate object key"},
		{"{} {}", "end of file expected"},
		{"\"text\"", "'[' or '{' expected"},
		{"{\"a\": NaN}", "case.json: line 1, column 9: "},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		json_t *document = NULL;
		expect_error(json_parse(rows[i].text, strlen(rows[i].text), "case.json", &document,
					&err),
			     PRONY_BAD_INPUT, &err, rows[i].message);
		assert_null(document);
	}
}

TEST(json_depth_is_bounded)
{
	struct error err = ERROR_INIT;
	json_t *document = NULL;
	char text[300];

	for (size_t depth = 64; depth <= 65; depth++) {
		text[0] = '\n';
		memset(text + 1, '[', depth);
		memset(text + 1 + depth, ']', depth);
		enum prony_status status = json_parse(text, 1 + 2 * depth, "x", &document, &err);
		assert_int_equal(status, depth == 64 ? PRONY_OK : PRONY_BAD_INPUT);
	}
	assert_string_equal(err.text, "x: line 2, column 65: nested more than 64 deep");
	json_decref(document);

	/* Brackets inside strings do not count. */
	memset(text, '[', sizeof(text));
	memcpy(text, "[\"\\\"", 4);
	memcpy(text + 200, "\"]", 2);
	assert_int_equal(json_parse(text, 202, "x", &document, NULL), PRONY_OK);
	json_decref(document);
}

static const char members[] = "{\"s\": \"text\", \"i\": 7, \"r\": 0.5, \"b\": true, \"a\": [1], "
			      "\"o\": {}, \"n\": null, \"z\": \"a\\u0001\"}";

TEST(json_members)
{
	json_t *document, *inner;
	const char *string;
	int64_t integer;
	double real;
	bool boolean;

	assert_int_equal(json_parse(members, strlen(members), "x", &document, NULL), PRONY_OK);
	assert_int_equal(json_get_string(document, "s", &string, NULL), PRONY_OK);
	assert_string_equal(string, "text");
	assert_int_equal(json_get_int(document, "i", &integer, NULL), PRONY_OK);
	assert_int_equal(integer, 7);
	assert_int_equal(json_get_real(document, "r", &real, NULL), PRONY_OK);
	assert_true(real == 0.5);
	assert_int_equal(json_get_real(document, "i", &real, NULL), PRONY_OK);
	assert_true(real == 7);
	assert_int_equal(json_get_bool(document, "b", &boolean, NULL), PRONY_OK);
	assert_true(boolean);
	assert_int_equal(json_get_array(document, "a", &inner, NULL), PRONY_OK);
	assert_int_equal(json_array_size(inner), 1);
	assert_int_equal(json_get_object(document, "o", &inner, NULL), PRONY_OK);

	assert_string_equal(json_string_or(document, "s", "d"), "text");
	assert_string_equal(json_string_or(document, "n", "d"), "d");
	assert_null(json_string_or(document, "absent", NULL));
	assert_int_equal(json_int_or(document, "i", 1), 7);
	assert_int_equal(json_int_or(document, "absent", 1), 1);
	assert_true(json_real_or(document, "i", 1) == 7);
	assert_true(json_real_or(document, "n", 1.5) == 1.5);
	assert_true(json_bool_or(document, "b", false));
	assert_true(json_bool_or(NULL, "b", true));
	json_decref(document);
}

TEST(json_member_errors)
{
	json_t *document, *inner = NULL, *array = json_array();
	const char *string = "kept";
	int64_t integer = 5;
	struct error err = ERROR_INIT;

	assert_int_equal(json_parse(members, strlen(members), "x", &document, NULL), PRONY_OK);
	assert_int_equal(json_get_string(document, "i", &string, &err), PRONY_BAD_INPUT);
	assert_string_equal(err.text, "the key 'i' must be a string, not an integer");
	assert_string_equal(string, "kept");
	error_clear(&err);
	assert_int_equal(json_get_int(document, "absent", &integer, &err), PRONY_BAD_INPUT);
	assert_string_equal(err.text, "the key 'absent' (an integer) is missing");
	error_clear(&err);
	assert_int_equal(json_get_int(document, "r", &integer, &err), PRONY_BAD_INPUT);
	assert_string_equal(err.text,
			    "the key 'r' must be an integer, not a number with a fraction");
	assert_int_equal(integer, 5);
	error_clear(&err);
	assert_int_equal(json_get_object(document, "n", &inner, &err), PRONY_BAD_INPUT);
	assert_string_equal(err.text, "the key 'n' must be an object, not null");
	assert_null(inner);
	error_clear(&err);
	assert_int_equal(json_get_string(array, "s", &string, &err), PRONY_BAD_INPUT);
	assert_string_equal(err.text, "expected an object with the key 's', found an array");
	assert_int_equal(json_get_string(NULL, "s", &string, NULL), PRONY_BAD_INPUT);
	json_decref(array);
	json_decref(document);
}

TEST(json_numbers)
{
	json_t *number = json_number(0.1);

	assert_true(json_real_value(number) == 0.1);
	json_decref(number);
	number = json_number((double)NAN);
	assert_true(json_is_null(number));
	json_decref(number);
	number = json_number(-(double)INFINITY);
	assert_true(json_is_null(number));
	json_decref(number);
}

IN_FOLDER(json_files)
{
	char *path = test_path("case.json");
	struct error err = ERROR_INIT;
	json_auto_t *document;

	assert_int_equal(file_write_atomic(path, "{\"a\":\n1x}", 9, NULL), PRONY_OK);
	expect_error(json_read_file(path, 100, &document, &err), PRONY_BAD_INPUT, &err,
		     "case.json: line 2, column");
	assert_int_equal(file_write_atomic(path, "{\"a\": 1}", 8, NULL), PRONY_OK);
	assert_int_equal(json_read_file(path, 7, &document, NULL), PRONY_BAD_INPUT);
	assert_int_equal(json_read_file(path, 8, &document, NULL), PRONY_OK);
}

static double (*cosine)(double);
static double (*renamed)(double);
static int (*absent)(void);

TEST(libraries)
{
	void *handle = NULL;
	struct error err = ERROR_INIT;
	const struct loader_symbol found[] = {
		LOADER_SYMBOL(cosine, "cos"),
		{.slot = (void **)&renamed, .names = {"sine_of_old", "sin"}},
		LOADER_OPTIONAL(absent, "no_such_function"),
	};
	const struct loader_symbol lacking[] = {
		LOADER_SYMBOL(cosine, "sin"),
		LOADER_SYMBOL(absent, "no_such_function"),
	};

	expect_error(loader_open("/no/such/library.so", &handle, &err), PRONY_MISSING, &err,
		     "/no/such/library.so");
	assert_null(handle);
	check(loader_open("libm.so.6", &handle, &err), &err);
	check(loader_resolve(handle, "libm.so.6", found, COUNT(found), &err), &err);
	assert_true(cosine(0.0) == 1.0);
	assert_true(renamed(0.0) == 0.0);
	assert_true(absent == NULL);
	expect_error(loader_resolve(handle, "libm.so.6", lacking, COUNT(lacking), &err),
		     PRONY_MISSING, &err, "libm.so.6 has no function no_such_function");
	assert_true(cosine(0.0) == 1.0);
}

/* A truncated program: the loader itself would crash on it. */
IN_FOLDER(a_library_that_is_cut_off_is_refused)
{
	struct error err = ERROR_INIT;
	void *handle = NULL;
	char *bytes = NULL, *path = test_path("half.so");
	size_t length = 0;

	check(file_read("/proc/self/exe", (size_t)1 << 30, &bytes, &length, &err), &err);
	check(file_write_atomic(path, bytes, length / 2, &err), &err);
	expect_error(loader_open(path, &handle, &err), PRONY_MISSING, &err,
		     "half.so: the file is truncated");
	free(bytes);
}
