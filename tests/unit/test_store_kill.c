/* A writer that is killed at any instant: all results reported as stored are in the store, none is
 * stored partially, and the store is writable at once. Several simultaneous writers lose nothing,
 * either. */
#include <signal.h>
#include <sys/wait.h>

#include "store/sql_internal.h"
#include "store/store.h"
#include "tests/unit/store_fixture.h"
#include "unit_test.h"

enum { KILLS = 25, WRITERS = 3, EACH = 20 };

/* Stores replicates from `first` on and reports each through the pipe, until it is killed. */
static _Noreturn void write_until_killed(const char *path, int64_t cell, int first, int report)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;

	if (store_open(path, false, &store, &err) != PRONY_OK)
		_exit(2);
	for (int i = first;; i++) {
		struct process_record record;
		fixture_record(&record, i);
		if (store_process(store, cell, &record, &err) != PRONY_OK)
			_exit(3);
		process_record_release(&record);
		if (write(report, &i, sizeof i) != (ssize_t)sizeof i)
			_exit(4);
	}
}

/* Kills a writer some time after its `reports`th report; returns the last replicate that it
 * reported. */
static int kill_a_writer(const char *path, int64_t cell, int before, int reports, int64_t after_ns)
{
	int ends[2], status, number, last = before;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		write_until_killed(path, cell, before + 1, ends[1]);
	}
	close(ends[1]);
	while (reports-- > 0 && read(ends[0], &number, sizeof number) == (ssize_t)sizeof number)
		last = number;
	clock_sleep_until_ns(clock_monotonic_ns() + after_ns);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status))
		fail_msg("the writer ended by itself with %d", status);
	while (read(ends[0], &number, sizeof number) == (ssize_t)sizeof number)
		last = number;
	close(ends[0]);
	return last;
}

static void check_integrity(struct store *store)
{
	struct error err = ERROR_INIT;
	int64_t sound = 0, orphans = -1;

	check(sql_int(store, "SELECT integrity_check = 'ok' FROM pragma_integrity_check", "test", 0,
		      &sound, &err, ""),
	      &err);
	assert_int_equal(sound, 1);
	check(sql_int(store,
		      "SELECT count(*) FROM process WHERE id NOT IN (SELECT process FROM "
		      "process_log)"
		      " OR id NOT IN (SELECT process FROM process_intervals)",
		      "test", -1, &orphans, &err, ""),
	      &err);
	assert_int_equal(orphans, 0);
}

STORE_TEST(results_survive_a_kill)
{
	struct error err = ERROR_INIT;
	struct random random;
	int64_t cell = fixture_cell_of(f->store, "native", 1);
	char path[512];
	int last = -1, reported = 0;

	snprintf(path, sizeof path, "%s", f->path);
	store_close(f->store);
	f->store = NULL;
	random_init(&random, 3);
	for (int i = 0; i < KILLS; i++) {
		int64_t after_ns = (int64_t)random_below(&random, 10000000);
		int told = kill_a_writer(path, cell, last, i % 4, after_ns);
		reported += told - last;
		check(store_open(path, false, &f->store, &err), &err);
		int64_t stored = fixture_count(f->store, "process");
		/* The kill may happen between a commit and its report, so there may be one more. */
		assert_true(stored == told + 1 || stored == told + 2);
		check_integrity(f->store);
		last = (int)stored - 1;
		store_close(f->store);
		f->store = NULL;
	}
	assert_true(reported > KILLS);
	check(store_open(path, false, &f->store, &err), &err);
}

STORE_TEST(writers_take_turns)
{
	pid_t children[WRITERS];
	char path[512];

	snprintf(path, sizeof path, "%s", f->path);
	/* SQLite connections must not be used across a fork. */
	store_close(f->store);
	f->store = NULL;
	for (int w = 0; w < WRITERS; w++) {
		children[w] = fork();
		if (children[w] != 0)
			continue;
		struct error err = ERROR_INIT;
		struct run_meta meta = fixture_meta(w);
		struct cell cell = fixture_cell("native", 1);
		int64_t id = 0;
		struct store *store = NULL;
		enum prony_status status = store_open(path, false, &store, &err);
		if (status == PRONY_OK)
			status = store_run_begin(store, &meta, &err);
		if (status == PRONY_OK)
			status = store_cell(store, meta.id, &cell, &id, &err);
		for (int i = 0; i < EACH && status == PRONY_OK; i++) {
			SCOPED(process_record) record;
			fixture_record(&record, i);
			status = store_process(store, id, &record, &err);
		}
		store_close(store);
		if (status != PRONY_OK)
			fprintf(stderr, "# %s\n", err.text);
		_exit(status == PRONY_OK ? 0 : 1);
	}
	for (int w = 0; w < WRITERS; w++) {
		int status = -1;
		assert_int_equal(waitpid(children[w], &status, 0), children[w]);
		assert_int_equal(status, 0);
	}
	struct error err = ERROR_INIT;
	check(store_open(path, false, &f->store, &err), &err);
	assert_int_equal(fixture_count(f->store, "run"), WRITERS);
	assert_int_equal(fixture_count(f->store, "process"), WRITERS * EACH);
	check_integrity(f->store);
}

/* Many processes open a store that does not exist yet at the same time. */
STORE_TEST(all_may_make_it)
{
	pid_t children[8];
	char path[512];

	snprintf(path, sizeof path, "%s/new.db", f->folder);
	store_close(f->store);
	f->store = NULL;
	for (size_t i = 0; i < 8; i++) {
		children[i] = fork();
		if (children[i] != 0)
			continue;
		struct error err = ERROR_INIT;
		struct run_meta meta = fixture_meta(1);
		struct store *store = NULL;
		enum prony_status status = store_open(path, false, &store, &err);
		if (status == PRONY_OK)
			status = store_run_begin(store, &meta, &err);
		if (status != PRONY_OK)
			fprintf(stderr, "# %s\n", err.text);
		store_close(store);
		_exit(status == PRONY_OK ? 0 : 1);
	}
	for (size_t i = 0; i < 8; i++) {
		int status = -1;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	struct error err = ERROR_INIT;
	check(store_open(path, false, &f->store, &err), &err);
	assert_int_equal(fixture_count(f->store, "run"), 8);
}
