/* Tests the registry, where frameworks are found, locks, and the files extracted from wheels. */
#include <glob.h>

#include "frameworks/folders_internal.h"
#include "frameworks/lock.h"
#include "frameworks/wheel.h"
#include "install_fixture.h"
#include "unit_test.h"
#include "wheel_fixture.h"

static struct registry registry;

static const struct framework *find(const char *name)
{
	return framework_find(&registry, name, NULL);
}

/* Makes an empty folder, which is also the data home. */
static int make_home(void **state)
{
	unsetenv("PRONY_MXNET_LIBRARY");
	unsetenv("PRONY_PYTORCH_PYTHON");
	unsetenv("VIRTUAL_ENV");
	unsetenv("CONDA_PREFIX");
	setenv("XDG_DATA_HOME", test_folder(), 1);
	return test_folder_setup(state);
}

#define IN_HOME(name) TEST_WITH(name, make_home, NULL)

IN_HOME(registry_is_consistent)
{
	for (size_t i = 0; i < registry.count; i++) {
		const struct framework *framework = &registry.rows[i];
		assert_ptr_equal(framework_find(&registry, framework->name, framework->backend),
				 framework);
		assert_true(framework->stages != 0 && framework->precisions != 0);
		assert_non_null(framework->summary);
		assert_non_null(framework->adapter);
		if (framework->kind == FRAMEWORK_LIBRARY)
			assert_non_null(framework->library_pattern);
		if (framework->kind == FRAMEWORK_PYTHON)
			assert_true(framework->modules.count && *framework->distribution &&
				    framework->pythons.count);
		assert_int_equal(framework->kind == FRAMEWORK_BUILTIN, framework->harness_only);
	}
	assert_string_equal(registry.rows[0].name, "native");
	assert_null(find("nothing"));
	assert_null(find(NULL));
	assert_null(framework_find(&registry, "native", "jax"));
	assert_string_equal(framework_nearest(&registry, "mxnt"), "mxnet");
	assert_null(framework_nearest(&registry, "zzzzzzzzzz"));
}

IN_HOME(environments_have_plain_names)
{
	static const char *const good[] = {"", "1.13", "a", "A-b_c.9"};
	static const char *const bad[] = {
		".",	    "..",
		".x",	    "a/b",
		"a b",	    "a@b",
		"\xc3\xa4", "0123456789012345678901234567890123456789012345678901234567890"};

	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(framework_environment_valid(good[i]));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(framework_environment_valid(bad[i]));
}

static void locate(const char *name, const char *environment, struct arena *arena,
		   struct framework_location *place)
{
	struct error err = ERROR_INIT;

	check(framework_locate(find(name), environment, arena, place, &err), &err);
}

IN_HOME(missing_has_reason_and_remedy)
{
	struct framework_location place;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	locate("mxnet", NULL, &arena, &place);
	assert_int_equal(place.origin, ORIGIN_NONE);
	assert_has(place.searched, *state);
	assert_has(place.reason, "prony framework install mxnet");
	assert_has(place.searched, "PRONY_MXNET_LIBRARY");
	locate("mxnet", "old", &arena, &place);
	assert_has(place.searched, "PRONY_MXNET_OLD_LIBRARY");
	assert_has(place.reason, "install mxnet@old");

	/* A wrong path is reported, not ignored. */
	setenv("PRONY_MXNET_LIBRARY", "/nowhere/libmxnet.so", 1);
	locate("mxnet", NULL, &arena, &place);
	assert_int_equal(place.origin, ORIGIN_NONE);
	assert_has(place.reason, "/nowhere/libmxnet.so");
	unsetenv("PRONY_MXNET_LIBRARY");

	struct error err = ERROR_INIT;
	assert_int_equal(framework_locate(find("mxnet"), "../x", &arena, &place, &err),
			 PRONY_USAGE);
}

IN_HOME(folder_filled_by_hand_counts)
{
	struct framework_location place;
	struct error err = ERROR_INIT;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	install_put_file(*state, "prony/frameworks/mxnet/mxnet/libmxnet.so", "not loaded here");
	locate("mxnet", NULL, &arena, &place);
	assert_int_equal(place.origin, ORIGIN_INSTALLED);
	assert_has(place.library, "mxnet/libmxnet.so");
	assert_string_equal(place.version, "");

	/* Folders that prony did not make are not removed. */
	expect_error(framework_remove(find("mxnet"), NULL, &err), PRONY_MISSING, &err,
		     "prony did not create the folder");
	assert_true(file_exists(place.library));
}

IN_HOME(manifest_names_version_and_library)
{
	const struct manifest manifest = {
		.lock = "mxnet.txt", .lock_sha256 = "00", .version = "9.9", .entry = "deep/lib.so"};
	struct framework_location place;
	struct error err = ERROR_INIT;
	SCOPED(arena) arena;
	char *folder = test_path("prony/frameworks/mxnet@test");

	arena_init(&arena, 0);
	install_put_file(folder, "deep/lib.so", "not loaded here");
	check(manifest_write(folder, "mxnet", &manifest, &err), &err);
	locate("mxnet", "test", &arena, &place);
	assert_int_equal(place.origin, ORIGIN_INSTALLED);
	assert_string_equal(place.version, "9.9");
	assert_has(place.library, "mxnet@test/deep/lib.so");

	const char *const *argv, *const *rows;
	check(framework_worker_command(&place, "/bin/prony", NULL, 2, &arena, &argv, &rows, &err),
	      &err);
	assert_string_equal(argv[0], "/bin/prony");
	assert_string_equal(argv[1], "worker");
	assert_string_equal(rows[0], "OMP_NUM_THREADS=2");

	assert_int_equal(unlink(place.library), 0);
	locate("mxnet", "test", &arena, &place);
	assert_int_equal(place.origin, ORIGIN_NONE);
	assert_has(place.reason, "is missing; install it again");

	/* A damaged manifest does not count as an installation; its folder can still be removed. */
	install_put_file(folder, MANIFEST_NAME, "{\"entry\": ");
	locate("mxnet", "test", &arena, &place);
	assert_int_equal(place.origin, ORIGIN_NONE);
	check(framework_remove(find("mxnet"), "test", &err), &err);
	assert_false(file_exists(folder));
	assert_int_equal(framework_remove(find("mxnet"), "test", &err), PRONY_MISSING);
}

static void put_installation(const char *folder)
{
	const struct manifest manifest = {
		.lock = "", .lock_sha256 = "00", .version = "9.9", .entry = "lib.so"};

	install_put_file(folder, "lib.so", "not loaded here");
	assert_int_equal(manifest_write(folder, "mxnet", &manifest, NULL), PRONY_OK);
}

/* The user's own folder comes first; one that others filled is only read. */
IN_HOME(shared_folders_come_second)
{
	const char *own = test_path("prony/frameworks/mxnet"), *const * names;
	const char *theirs = test_path("all/prony/frameworks/mxnet");
	struct framework_location place;
	struct error err = ERROR_INIT;
	struct arena arena;

	arena_init(&arena, 0);
	setenv("PRONY_SHARED", test_path("all/prony"), 1);
	put_installation(theirs);
	locate("mxnet", NULL, &arena, &place);
	assert_int_equal(place.origin, ORIGIN_INSTALLED);
	assert_string_equal(place.folder, theirs);
	assert_null(framework_fault(&place, &arena));
	assert_int_equal(framework_remove(find("mxnet"), NULL, &err), PRONY_MISSING);
	assert_has(err.text, "shared with other users");
	assert_has(err.text, theirs);
	assert_true(file_exists(place.library));

	put_installation(own);
	locate("mxnet", NULL, &arena, &place);
	assert_string_equal(place.folder, own);
	assert_int_equal(unlink(place.library), 0);
	locate("mxnet", NULL, &arena, &place);
	assert_string_equal(place.folder, theirs);

	install_put_file(test_path("prony/frameworks/mxnet@a"), "x", "");
	install_put_file(test_path("all/prony/frameworks/mxnet@a"), "x", "");
	install_put_file(test_path("all/prony/frameworks/mxnet@b"), "x", "");
	assert_int_equal(framework_environments(find("mxnet"), &arena, &names), 2);
	assert_string_equal(names[0], "a");
	assert_string_equal(names[1], "b");

	/* Without the variable: the folders of the XDG Base Directory Specification. */
	unsetenv("PRONY_SHARED");
	setenv("XDG_DATA_DIRS", test_text("relative:/nowhere:%s/all", test_folder()), 1);
	locate("mxnet", NULL, &arena, &place);
	assert_string_equal(place.folder, theirs);
	setenv("XDG_DATA_DIRS", "/nowhere", 1);
	arena_release(&arena);
}

/* An interpreter named by the user: not an interpreter, without torch, with torch. */
IN_HOME(named_interpreter)
{
	static const char script[] =
		"#!/bin/sh\n"
		"echo noise; echo 'prony-answer:{\"found\": %s, \"version\": \"7.7\", "
		"\"executable\": \"/opt/python\", \"path\": []}'\n";
	struct framework_location place;
	SCOPED(arena) arena;
	char *program = test_path("python");

	arena_init(&arena, 0);
	setenv("PRONY_PYTORCH_PYTHON", program, 1);
	locate("pytorch", NULL, &arena, &place);
	assert_has(place.reason, "is not a program");
	for (int found = 0; found < 2; found++) {
		char *text =
			arena_printf(&arena, "%.*s%s%s", (int)(strstr(script, "%s") - script),
				     script, found ? "true" : "false", strstr(script, "%s") + 2);
		install_put_file(*state, "python", text);
		assert_int_equal(chmod(program, 0755), 0);
		locate("pytorch", NULL, &arena, &place);
		assert_int_equal(place.origin, found ? ORIGIN_NAMED : ORIGIN_NONE);
		if (!found)
			assert_has(place.reason, "has no module torch");
	}
	assert_string_equal(place.interpreter, "/opt/python");
	assert_string_equal(place.version, "7.7");
	install_put_file(*state, "python", "#!/bin/sh\nexit 3\n");
	assert_int_equal(chmod(program, 0755), 0);
	locate("pytorch", NULL, &arena, &place);
	assert_has(place.reason, "is not a working Python interpreter");
	unsetenv("PRONY_PYTORCH_PYTHON");
}

/* Returns the row, of any backend, that a lock installs. */
static const struct framework *of_lock(const char *name, const char *python, const char *path,
				       struct arena *arena)
{
	const char *at = strrchr(path, '@'); /* NAME@ENV[=BACKEND][-X.Y].txt */
	size_t length = at ? strcspn(at + 1, "-=") : 0;

	if (at && at[1 + length] == '\0')
		length -= strlen(".txt");
	const char *environment = at ? arena_strndup(arena, at + 1, length) : "";
	for (size_t i = 0; i < registry.count; i++) {
		const struct framework *row = &registry.rows[i];
		const char *found = strcmp(row->name, name) == 0
					    ? lock_find(row, environment, python, arena)
					    : NULL;
		if (found && strcmp(found, path) == 0)
			return row;
	}
	return NULL;
}

/* A version that a descriptor offers must have a lock: otherwise it could not be installed. */
IN_HOME(offered_versions_have_locks)
{
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	for (size_t i = 0; i < registry.count; i++) {
		const struct framework *row = &registry.rows[i];

		for (size_t k = 0; k < row->pythons.count; k++)
			if (!lock_find(row, "", row->pythons.words[k], &arena))
				fail_msg("%s offers Python %s, and there is no lock %s-%s.txt",
					 row->file, row->pythons.words[k],
					 lock_stem(row, "", &arena), row->pythons.words[k]);
	}
	unsetenv("PRONY_SHARE");
}

/* Every shipped lock can be read, belongs to a framework, and is found by its name. */
IN_HOME(shipped_locks)
{
	char *pattern = test_keep(path_join(getenv("PRONY_SOURCE"), "frameworks/locks/*.txt"));
	SCOPED(arena) arena;
	glob_t files;

	arena_init(&arena, 0);
	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 5);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct error err = ERROR_INIT;
		struct lock lock;
		check(lock_read(files.gl_pathv[i], &arena, &lock, &err), &err);
		const char *python = lock.kind == LOCK_VENV ? lock.python : NULL;
		const struct framework *framework =
			of_lock(lock.framework, python, files.gl_pathv[i], &arena);
		if (!framework)
			fail_msg("no framework %s takes %s", lock.framework, files.gl_pathv[i]);
		assert_int_equal(lock.kind == LOCK_VENV, framework->kind == FRAMEWORK_PYTHON);
		assert_true(lock.download_mb > 0 && lock.disk_mb > 0);
		if (lock.kind == LOCK_VENV)
			assert_has(words_joined(&framework->pythons, &arena), lock.python);
	}
	unsetenv("PRONY_SHARE");
	globfree(&files);
}

IN_HOME(bad_locks_are_named)
{
#define GOOD "# framework: mxnet\n# kind: unpack\n# version: 1\n# library: a.so\n# keep: *\n"
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"", "framework is missing"},
		{"mxnet==1 --hash=sha256:0\n# framework: mxnet\n", "framework is missing"},
		{"# framework: mxnet\n# kind: magic\n", "lock.txt:2: kind is 'magic'"},
		{"# framework: mxnet\n# version: 1\n# kind: venv\n", "python is missing"},
		{"# framework: mxnet\n# version: 1\n# kind: unpack\n", "library is missing"},
		{"# framework: mxnet\n# version: 1\n# kind: unpack\n# library: a\n",
		 "keep is missing"},
		{GOOD "# disk-mb: many\n", "lock.txt:6: disk-mb is 'many'"},
		{GOOD "# download-mb: -1\n", "lock.txt:6: download-mb"},
		{GOOD "# pip: 21.3.1\n", "pip is '21.3.1'; it must be a version, a space"},
		{GOOD "# pip: 21 --index-url=x\n", "it must be a version, a space and the SHA-256"},
		{GOOD "# library: ../../a.so\n", "path inside the wheel"},
		{GOOD "# library: /usr/lib/a.so\n", "path inside the wheel"},
		{GOOD "# pip-arguments: 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5\n",
		 "pip-arguments has more than"},
	};
	char *path = test_path("lock.txt");
	SCOPED(arena) arena;
	struct lock lock;

	arena_init(&arena, 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		install_put_file(*state, "lock.txt", rows[i].text);
		expect_error(lock_read(path, &arena, &lock, &err), PRONY_BAD_INPUT, &err,
			     rows[i].message);
	}
	install_put_file(*state, "lock.txt",
			 GOOD "#\n# unknown: kept out\n# needs: libz.so.1\r\nx==1\n");
	assert_int_equal(lock_read(path, &arena, &lock, NULL), PRONY_OK);
	assert_string_equal(lock.needs.words[0], "libz.so.1");
}

static enum prony_status extract(const char *home, const char *bytes, size_t length,
				 size_t *extracted, struct error *err)
{
	static const char *const patterns[] = {"keep/*"};
	char *wheel = test_keep(path_join(home, "test.whl")),
	     *folder = test_keep(path_join(home, "out"));

	directory_remove(folder, NULL);
	assert_int_equal(file_write_atomic(wheel, bytes, length, NULL), PRONY_OK);
	enum prony_status status = wheel_extract(wheel, patterns, 1, folder, extracted, err);
	return status;
}

IN_HOME(wheel_gives_what_is_wanted)
{
	const struct wheel_file files[] = {
		{.name = "keep/stored.txt", .text = "as it is"},
		{.name = "keep/a/b/deflated.txt",
		 .text = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 .deflate = true},
		{.name = "keep/empty", .text = "", .deflate = true},
		{.name = "keep/folder/", .text = ""},
		{.name = "other.txt", .text = "stays in"},
	};
	struct error err = ERROR_INIT;
	struct strbuf *wheel = test_strbuf();
	size_t extracted = 0, length;
	char *text;

	wheel_make(files, COUNT(files), wheel);
	check(extract(*state, strbuf_text(wheel), wheel->length, &extracted, &err), &err);
	assert_int_equal(extracted, 3);
	char *path = path_join(*state, "out/keep/a/b/deflated.txt");
	assert_int_equal(file_read(path, 1024, &text, &length, NULL), PRONY_OK);
	assert_string_equal(text, files[1].text);
	free(text);
	free(path);
	path = path_join(*state, "out/other.txt");
	assert_false(file_exists(path));
	free(path);

	/* A comment may follow the central directory. */
	strbuf_puts(wheel, "a comment at the end");
	assert_int_equal(extract(*state, strbuf_text(wheel), wheel->length, &extracted, NULL),
			 PRONY_OK);
}

IN_HOME(hostile_wheels_are_refused)
{
	static const struct {
		struct wheel_file file;
		const char *message;
	} rows[] = {
		{{.name = "keep/../../out.txt", .text = "x"}, "is outside its folder"},
		{{.name = "/keep/x", .text = "x"}, "is outside its folder"},
		{{.name = "keep\\..\\x", .text = "x"}, "is outside its folder"},
		{{.name = "keep//x", .text = "x"}, "is outside its folder"},
		{{.name = "..", .text = "x"}, "is outside its folder"},
		{{.name = "keep/x", .text = "abc", .crc = 1}, "CRC-32"},
		{{.name = "keep/x", .text = "abc", .deflate = true, .bytes = 2}, "damaged"},
		{{.name = "keep/x", .text = "abc", .deflate = true, .bytes = 4}, "damaged"},
		{{.name = "keep/x", .text = "not deflated", .method = 8}, "damaged"},
		{{.name = "keep/x", .text = "abc", .bytes = 1000000}, "beyond its end"},
		{{.name = "keep/x", .text = "abc", .packed_bytes = 1000000}, "beyond its end"},
		{{.name = "keep/x", .text = "abc", .offset = 0xfffffff0u}, "beyond its end"},
		{{.name = "keep/x", .text = "abc", .offset = 1}, "beyond its end"},
		{{.name = "keep/x", .text = "abc", .bytes = 0xffffffffu}, "4 GiB"},
		{{.name = "keep/x", .text = "abc", .method = 12},
		 "a compression other than deflate"},
		{{.name = "keep/x", .text = "abc", .flags = 1}, "a compression other than deflate"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		struct strbuf *wheel = test_strbuf();
		wheel_make(&rows[i].file, 1, wheel);
		assert_int_equal(extract(*state, strbuf_text(wheel), wheel->length, NULL, &err),
				 PRONY_BAD_INPUT);
		assert_has(err.text, rows[i].message);
		assert_has(err.text, "test.whl");
	}
}

/* A wheel cut anywhere, or with any byte changed, is refused or gives the same bytes; it never
 * causes a crash. */
IN_HOME(damaged_wheels_do_no_harm)
{
	const struct wheel_file files[] = {
		{.name = "keep/a", .text = "first file"},
		{.name = "keep/b", .text = "second one", .deflate = true}};
	struct strbuf wheel;

	strbuf_init(&wheel, 0);
	wheel_make(files, COUNT(files), &wheel);
	size_t length = wheel.length;
	char *bytes = test_keep(strbuf_take(&wheel));
	for (size_t cut = 0; cut < length; cut++)
		assert_int_equal(extract(*state, bytes, cut, NULL, NULL), PRONY_BAD_INPUT);
	for (size_t i = 0; i < length; i++) {
		size_t extracted = 0;
		bytes[i] = (char)(bytes[i] ^ 0x55);
		enum prony_status status = extract(*state, bytes, length, &extracted, NULL);
		assert_true(status == PRONY_BAD_INPUT || status == PRONY_IO ||
			    (status == PRONY_OK && extracted <= COUNT(files)));
		bytes[i] = (char)(bytes[i] ^ 0x55);
	}
}

static int load_registry(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
	return registry_load(&registry, &err) == PRONY_OK ? 0 : -1;
}

static int release_registry(void **state)
{
	(void)state;
	registry_release(&registry);
	return 0;
}

int main(void)
{
	return unit_tests_run(load_registry, release_registry);
}
