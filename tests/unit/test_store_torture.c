/* The store on a disk that fails at each write of a run in turn, and a store that is removed during
 * a run. No result reported as stored is lost, and the message says what to do. */
#include "store/sql_internal.h"
#include "store/store.h"
#include "tests/unit/fault_vfs.h"
#include "tests/unit/store_fixture.h"
#include "unit_test.h"

enum { CELLS = 2, PROCESSES = 2 };

/* The progress of a run, as reported by the store. */
struct done {
	int runs, cells, gates, processes, finished;
};

static enum prony_status store_one_cell(struct store *store, int64_t run, int c, struct done *done,
					struct error *err)
{
	struct cell cell = fixture_cell("native", 1 + c);
	json_auto_t *details = json_pack("{s:s}", "version", "1");
	int64_t id = 0;
	enum prony_status status = store_cell(store, run, &cell, &id, err);

	done->cells += status == PRONY_OK;
	if (status == PRONY_OK)
		status = store_gate(store, id, CELL_OK, details, "log", err);
	done->gates += status == PRONY_OK;
	if (status == PRONY_OK)
		status = store_cell_framework(store, id, details, err);
	for (int p = 0; p < PROCESSES && status == PRONY_OK; p++) {
		SCOPED(process_record) record;
		fixture_record(&record, p);
		status = store_process(store, id, &record, err);
		done->processes += status == PRONY_OK;
	}
	if (status == PRONY_OK)
		status = store_cell_status(store, id, CELL_OK, 0, "", err);
	return status;
}

static enum prony_status one_run(const char *path, struct done *done, struct error *err)
{
	struct run_meta meta = fixture_meta(1);
	struct store *store = NULL;
	enum prony_status status = store_open(path, false, &store, err);

	*done = (struct done){0};
	if (status == PRONY_OK)
		status = store_run_begin(store, &meta, err);
	done->runs += status == PRONY_OK;
	for (int c = 0; c < CELLS && status == PRONY_OK; c++)
		status = store_one_cell(store, meta.id, c, done, err);
	if (status == PRONY_OK)
		status = store_run_finish(store, meta.id, 2, err);
	done->finished += status == PRONY_OK;
	store_close(store);
	return status;
}

/* Everything reported as stored is there and complete, with at most one more item: the one being
 * stored. */
static void check_stored(const char *path, const struct done *done, const char *what)
{
	static const char *const tables[] = {"run", "cell", "cell WHERE gate = 'ok'", "process",
					     "run WHERE finished_wall_ns = 2"};
	const int least[] = {done->runs, done->cells, done->gates, done->processes, done->finished};
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	int64_t sound = 0, halves = -1;

	if (store_open(path, false, &store, &err) != PRONY_OK)
		fail_msg("%s: the store cannot be opened again: %s", what, err.text);
	for (size_t i = 0; i < COUNT(tables); i++) {
		int64_t stored = fixture_count(store, tables[i]);
		if (stored < least[i] || stored > least[i] + 1)
			fail_msg("%s: %lld rows of %s, %d were said to be there", what,
				 (long long)stored, tables[i], least[i]);
	}
	check(sql_int(store, "SELECT integrity_check = 'ok' FROM pragma_integrity_check", "test", 0,
		      &sound, &err, ""),
	      &err);
	assert_int_equal(sound, 1);
	check(sql_int(store,
		      "SELECT count(*) FROM process WHERE id NOT IN (SELECT process FROM "
		      "process_log) OR id NOT IN (SELECT process FROM process_intervals)",
		      "test", -1, &halves, &err, ""),
	      &err);
	assert_int_equal(halves, 0);
	store_close(store);
}

/* An empty store with its tables, so that their creation is tested only once. */
struct blank {
	char *bytes;
	size_t length;
};

static void make_blank(const char *folder, struct blank *blank)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	char *path = test_keep(path_join(folder, "blank.db"));

	check(store_open(path, false, &store, &err), &err);
	store_close(store);
	check(file_read(path, 1 << 24, &blank->bytes, &blank->length, &err), &err);
}

static void put(const struct blank *blank, const char *path)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(blank->bytes, 1, blank->length, file), blank->length);
	assert_int_equal(fclose(file), 0);
}

/* Returns the number of writes of a run that fails at write `at`; *told counts the runs that got
 * the error. */
static long fail_at(const char *folder, const struct blank *blank, long at, int code, bool stays,
		    int *told)
{
	char what[64];
	struct error err = ERROR_INIT;
	struct done done;
	char *path = test_keep(path_join(folder, "torn.db"));

	snprintf(what, sizeof what, "write %ld, code %d%s", at, code, stays ? ", for good" : "");
	if (blank)
		put(blank, path);
	fault_vfs_set(at, code, stays);
	enum prony_status status = one_run(path, &done, &err);
	long writes = fault_vfs_count();
	fault_vfs_set(0, 0, false);
	/* Data in the journal may be moved into the file later. */
	if (status == PRONY_OK && (!done.finished || done.processes != CELLS * PROCESSES))
		fail_msg("%s: it was not said", what);
	*told += status != PRONY_OK;
	if (status != PRONY_OK &&
	    (status != PRONY_STORE || !strstr(err.text, path) || !strstr(err.text, "(")))
		fail_msg("%s: %d: %s", what, status, err.text);
	bool full = strstr(err.text, "its disk is full"),
	     broken = strstr(err.text, "its disk reports an error");
	if (status != PRONY_OK && !full && !broken && !strstr(err.text, "must be writable"))
		fail_msg("%s: no remedy: %s", what, err.text);
	check_stored(path, &done, what);
	static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
	for (size_t i = 0; i < COUNT(ends); i++) {
		char *file = test_text("%s%s", path, ends[i]);
		unlink(file);
	}
	return writes;
}

STORE_TEST(every_write_may_fail)
{
	static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC};
	struct blank blank;
	long tried = 0;
	int told = 0, nothing = 0;

	make_blank(f->folder, &blank);

	for (size_t c = 0; c < COUNT(codes); c++) {
		for (int stays = 0; stays < 2; stays++) {
			const struct blank *from = c == 0 && stays ? NULL : &blank;
			long writes = fail_at(f->folder, from, 0, 0, false, &nothing);
			for (long at = 1; at <= writes; at++, tried++)
				fail_at(f->folder, from, at, codes[c], stays, &told);
		}
	}
	printf("# %ld failures, %d of them said to the run\n", tried, told);
	free(blank.bytes);
	assert_int_equal(nothing, 0);
	assert_true(tried > 300 && told > tried / 2);
}

/* Begins a run of one cell and one result in a store that stays open; returns the cell. */
static int64_t begin(struct store_folder *f, struct run_meta *meta)
{
	struct error err = ERROR_INIT;
	struct cell cell = fixture_cell("native", 1);
	SCOPED(process_record) record;
	int64_t id = 0;

	*meta = fixture_meta(1);
	check(store_run_begin(f->store, meta, &err), &err);
	check(store_cell(f->store, meta->id, &cell, &id, &err), &err);
	fixture_record(&record, 0);
	check(store_process(f->store, id, &record, &err), &err);
	return id;
}

/* The next result gives an error that names the file with the result and the problem. */
static void store_and_find(struct store_folder *f, int64_t cell, const char *rescued)
{
	struct error err = ERROR_INIT;
	struct process_record record;
	struct store *store = NULL;
	SCOPED(stored_run) run;

	fixture_record(&record, 1);
	expect_error(store_process(f->store, cell, &record, &err), PRONY_STORE, &err, rescued);
	/* Every later result does so, too: the run must not end successfully. */
	record.replicate = 2;
	expect_error(store_process(f->store, cell, &record, &err), PRONY_STORE, &err, rescued);
	process_record_release(&record);
	store_close(f->store);
	f->store = NULL;
	check(store_open(rescued, true, &store, &err), &err);
	check(store_load_run(store, "", STORE_ALL, &run, &err), &err);
	assert_int_equal(run.cells[0].process_count, 3);
	assert_int_equal(run.cells[0].processes[1].interval_count, 5);
	assert_true(run.meta.finished_wall_ns == RECORD_NONE);
	store_close(store);
}

static void remove_store(const char *path)
{
	static const char *const ends[] = {"", "-wal", "-shm"};

	for (size_t i = 0; i < 3; i++) {
		char *file = test_keep(memory_printf("%s%s", path, ends[i]));
		unlink(file);
	}
}

STORE_TEST(a_removed_store_is_written_beside)
{
	struct error err = ERROR_INIT;
	struct run_meta meta;
	struct store *mine = NULL;
	struct store_imported imported = {.runs = 0};
	int64_t cell = begin(f, &meta);
	char *rescued = test_keep(memory_printf("%s.rescued-2", f->path));
	char *taken = test_keep(memory_printf("%s.rescued", f->path));

	check(file_write_atomic(taken, "mine", 4, &err), &err);
	remove_store(f->path);
	store_and_find(f, cell, rescued);
	assert_false(file_exists(f->path));
	/* As the message instructs. */
	check(store_open(f->path, false, &mine, &err), &err);
	check(store_import(mine, rescued, &imported, &err), &err);
	assert_int_equal(imported.runs, 1);
	int64_t run = 0;
	check(store_run_unfinished(mine, meta.spec, meta.environment_hash, &run, &err), &err);
	store_close(mine);
}

/* Another store at the same path, with results still in its log, is not changed. */
STORE_TEST(a_replaced_store_is_written_beside)
{
	struct error err = ERROR_INIT;
	struct run_meta meta;
	struct store *other = NULL;
	int64_t cell = begin(f, &meta);
	char *rescued = test_keep(memory_printf("%s.rescued", f->path));

	remove_store(f->path);
	check(store_open(f->path, false, &other, &err), &err);
	fixture_cell_of(other, "mxnet", 3);
	store_and_find(f, cell, rescued);
	char *log = test_keep(memory_printf("%s-wal", f->path));
	assert_true(file_exists(log));
	store_close(other);
	check(store_open(f->path, true, &other, &err), &err);
	assert_int_equal(fixture_count(other, "cell WHERE framework = 'mxnet'"), 1);
	assert_int_equal(fixture_count(other, "run"), 1);
	store_close(other);
}

STORE_TEST(its_folder_may_be_gone)
{
	struct error err = ERROR_INIT;
	struct run_meta meta;
	char *deep = test_keep(path_join(f->folder, "deep/er")),
	     *path = test_keep(path_join(deep, "s.db"));
	char *rescued = test_text("%s.rescued", path);

	store_close(f->store);
	check(store_open(path, false, &f->store, &err), &err);
	int64_t cell = begin(f, &meta);
	check(directory_remove(deep, &err), &err);
	store_and_find(f, cell, rescued);
	/* Nothing can be created at its path, either. */
	check(store_open(path, false, &f->store, &err), &err);
	cell = begin(f, &meta);
	check(directory_remove(deep, &err), &err);
	check(file_write_atomic(deep, "a file", 6, &err), &err);
	setenv("TMPDIR", f->folder, 1);
	struct process_record record;
	fixture_record(&record, 1);
	expect_error(store_process(f->store, cell, &record, &err), PRONY_STORE, &err,
		     "/prony-rescued-");
	process_record_release(&record);
	unsetenv("TMPDIR");
}

/* A failure of a run's last write is reported as well. */
STORE_TEST(the_end_of_a_run_is_told_too)
{
	struct error err = ERROR_INIT;
	struct run_meta meta;

	begin(f, &meta);
	remove_store(f->path);
	expect_error(store_run_finish(f->store, meta.id, 2, &err), PRONY_STORE, &err,
		     "removed or replaced");
}

int main(void)
{
	fault_vfs_install();
	return unit_tests_run(NULL, NULL);
}
