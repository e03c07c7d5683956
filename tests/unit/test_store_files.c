/* The store's file: odd names, files that are not stores, missing permissions, damage. */
#include <sys/wait.h>

#include "store/sql_internal.h"
#include "store/store.h"
#include "tests/unit/store_fixture.h"
#include "unit_test.h"

#define NOBODY 65534

/* Names with a special meaning for SQLite or in a URI are ordinary files here. */
STORE_TEST(odd_names_are_files)
{
	static const char *const names[] = {":memory:", "100% ?mode=memory#x.db",
					    "\xc3\xbc ber.db"};
	struct error err = ERROR_INIT;

	assert_int_equal(chdir(f->folder), 0);
	for (size_t i = 0; i < COUNT(names); i++) {
		struct store *store = NULL;
		check(store_open(names[i], false, &store, &err), &err);
		store_close(store);
		assert_true(file_exists(names[i]));
	}
	assert_int_equal(chdir("/"), 0);
}

/* Opens a file that is not a store, for reading and for writing; the messages name the file and the
 * remedy. */
static void refused(const char *path, enum prony_status status, const char *part)
{
	for (int read_only = 0; read_only < 2; read_only++) {
		struct error err = ERROR_INIT;
		struct store *store = NULL;
		enum prony_status got = store_open(path, read_only, &store, &err);
		if (got != status || !strstr(err.text, part) || !strstr(err.text, path))
			fail_msg("expected '%s' (%d), got %d: %s", part, status, got, err.text);
		assert_null(store);
	}
}

STORE_TEST(other_files_are_refused)
{
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(f->folder, "other.db"));
	struct store *store = NULL;
	char text[4096];

	memset(text, 'x', sizeof text);
	check(file_write_atomic(path, text, sizeof text, &err), &err);
	refused(path, PRONY_STORE, "not an SQLite file");
	refused(f->folder, PRONY_STORE, "is a folder");
	unlink(path);
	check(store_open(path, false, &store, &err), &err);
	check(sql_run(store, "PRAGMA user_version = 2", "test", &err), &err);
	store_close(store);
	refused(path, PRONY_STORE, "newer prony (schema 2; this version reads up to 1)");
	check(file_write_atomic(path, "", 0, &err), &err);
	expect_error(store_open(path, true, &store, &err), PRONY_BAD_INPUT, &err,
		     "contains no runs yet");
	check(store_open(path, false, &store, &err), &err); /* an empty file becomes a store */
	check(sql_run(store, "PRAGMA application_id = 7", "test", &err), &err);
	store_close(store);
	refused(path, PRONY_STORE, "SQLite file of another program");
	unlink(path);
	expect_error(store_open(path, true, &store, &err), PRONY_BAD_INPUT, &err, "no such store");
	assert_false(file_exists(path));
}

/* Runs a function as a user without write permission; returns whether it could. */
static bool as_nobody(void (*body)(const char *), const char *path)
{
	int status = -1;
	pid_t child;

	if (geteuid() != 0)
		return false;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		if (setgid(NOBODY) || setuid(NOBODY))
			_exit(3);
		body(path);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("the part without rights ended with %d", status);
	return true;
}

/* Without cmocka, which cannot be used in a child. */
static void demand(bool truth, const char *what)
{
	if (!truth) {
		fprintf(stderr, "not true: %s\n", what);
		_exit(1);
	}
}

static void write_is_refused(const char *path)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;

	demand(store_open(path, false, &store, &err) == PRONY_STORE, "refused to write");
	fprintf(stderr, "# %s\n", err.text);
	demand(strstr(err.text, path) && strstr(err.text, "--store FILE"), err.text);
}

static void read_works(const char *path)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	struct stored_run run;

	demand(store_open(path, true, &store, &err) == PRONY_OK, err.text);
	demand(store_load_run(store, "", STORE_ALL, &run, &err) == PRONY_OK, err.text);
	demand(run.cell_count == 1, "one cell");
	stored_run_release(&run);
	store_close(store);
	write_is_refused(path);
}

STORE_TEST(without_rights_it_reads_but_says_why_it_cannot_write)
{
	char *none = test_keep(path_join(f->folder, "deep/none.db"));

	fixture_cell_of(f->store, "native", 1);
	/* The folders on the path must be accessible. */
	assert_int_equal(chmod(f->folder, 0755), 0);
	bool could = as_nobody(write_is_refused, none);
	/* While the writer still has it open, with results in the log beside it. */
	if (could)
		as_nobody(read_works, f->path);
	char *path = test_keep(memory_strdup(f->path));
	store_close(f->store);
	f->store = NULL;
	if (could)
		as_nobody(read_works, path);
	chmod(path, 0666); /* the file is writable, its folder is not */
	if (could)
		as_nobody(read_works, path);
	if (!could)
		skip();
}

/* Random bytes anywhere in the file: it is read, or refused with a message. */
STORE_TEST(damaged_files_do_no_harm)
{
	struct error err = ERROR_INIT;
	struct process_record record;
	struct random random;
	char *path = test_keep(memory_strdup(f->path)), *bytes = NULL, *copy;
	int64_t id = fixture_cell_of(f->store, "native", 1);
	json_t *details = json_pack("{s:s}", "version", "1");
	size_t length = 0;
	int refused_count = 0;

	for (int i = 0; i < 5; i++) {
		fixture_record(&record, i);
		check(store_process(f->store, id, &record, &err), &err);
		process_record_release(&record);
	}
	check(store_gate(f->store, id, CELL_OK, details, "log", &err), &err);
	json_decref(details);
	store_close(f->store);
	f->store = NULL;
	check(file_read(path, 1 << 24, &bytes, &length, &err), &err);
	copy = test_keep(memory_alloc(length));
	random_init(&random, 5);
	for (int i = 0; i < 300; i++) {
		struct store *store = NULL;
		struct stored_run run;
		memcpy(copy, bytes, length);
		/* Every second copy is damaged in the first page, which has the header and the
		 * schema. */
		for (int k = 0; k < 1 + i % 20; k++)
			copy[random_below(&random, i % 2 ? length : 4096)] =
				(char)random_below(&random, 256);
		check(file_write_atomic(path, copy, length, &err), &err);
		enum prony_status status = store_open(path, i % 3 == 0, &store, &err);
		if (status == PRONY_OK)
			status = store_load_run(store, "", STORE_ALL, &run, &err);
		if (status == PRONY_OK)
			stored_run_release(&run);
		else
			assert_has(err.text, path);
		refused_count += status != PRONY_OK;
		error_clear(&err);
		store_close(store);
	}
	assert_true(refused_count > 50);
	free(bytes);
}
