/* Stores of several machines are merged into one. */
#include "store/sql_internal.h"
#include "store/store.h"
#include "tests/unit/store_fixture.h"
#include "unit_test.h"

/* Makes a store with runs of two cells each and two results in every cell. */
static struct store *make_other(const char *path, int runs)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;

	check(store_open(path, false, &store, &err), &err);
	for (int r = 0; r < runs; r++) {
		struct run_meta meta = fixture_meta(1000 - r);
		check(store_run_begin(store, &meta, &err), &err);
		for (int c = 0; c < 2; c++) {
			struct cell cell = fixture_cell(c ? "mxnet" : "native", 8);
			int64_t id = 0;
			json_t *details = json_pack("{s:i}", "run", r);
			check(store_cell(store, meta.id, &cell, &id, &err), &err);
			check(store_cell_framework(store, id, details, &err), &err);
			check(store_gate(store, id, CELL_OK, details, "log of the gate", &err),
			      &err);
			check(store_cell_status(store, id, CELL_OK, CELL_FLAG_SCREENING, "", &err),
			      &err);
			json_decref(details);
			for (int p = 0; p < 2; p++) {
				SCOPED(process_record) record;
				fixture_record(&record, p);
				record.steps = 100 * r + 10 * c + p;
				check(store_process(store, id, &record, &err), &err);
			}
		}
		check(store_run_finish(store, meta.id, 2000, &err), &err);
	}
	return store;
}

static void same_run(struct store *mine, struct store *other, const char *uid, int64_t number)
{
	struct error err = ERROR_INIT;
	SCOPED(stored_run) a, b;

	check(store_load_run(mine, uid, STORE_ALL, &a, &err), &err);
	check(store_load_run(other, uid, STORE_ALL, &b, &err), &err);
	assert_int_equal(a.cell_count, 2);
	assert_int_equal(b.cell_count, 2);
	assert_string_equal(a.meta.spec, b.meta.spec);
	assert_int_equal(a.meta.finished_wall_ns, b.meta.finished_wall_ns);
	for (size_t c = 0; c < 2; c++) {
		const struct stored_cell *x = &a.cells[c], *y = &b.cells[c];
		assert_string_equal(x->key, y->key);
		assert_string_equal(x->hash, y->hash);
		assert_int_equal(x->status, CELL_OK);
		assert_int_equal(x->flags, CELL_FLAG_SCREENING);
		assert_true(json_equal(x->framework, y->framework));
		assert_string_equal(x->gate_log, "log of the gate");
		assert_int_equal(x->process_count, 2);
		for (size_t p = 0; p < 2; p++) {
			const struct process_record *r = &x->processes[p], *s = &y->processes[p];
			assert_int_equal(r->steps, 100 * number + 10 * (int64_t)c + (int64_t)p);
			assert_true(r->step_mean_ns == s->step_mean_ns);
			assert_string_equal(r->log, s->log);
			assert_int_equal(r->interval_count, 5);
			assert_memory_equal(r->intervals, s->intervals, 5 * sizeof *r->intervals);
			assert_int_equal(r->series_count, 2);
			same_series(r, s);
		}
	}
}

STORE_TEST(runs_are_copied_once)
{
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(f->folder, "o'ther ?.db"));
	struct store *other = make_other(path, 3);
	struct store_imported imported = {.runs = -1};

	fixture_cell_of(f->store, "native", 1); /* ids differ between the stores */
	/* Once while its writer still has it open, and once after. */
	check(store_import(f->store, path, &imported, &err), &err);
	assert_int_equal(imported.runs, 3);
	for (int i = 0; i < 3; i++) {
		char id[4];
		SCOPED(stored_run) run;
		snprintf(id, sizeof id, "%d", i + 1);
		check(store_load_run(other, id, 0, &run, &err), &err);
		same_run(f->store, other, run.meta.uid, i);
	}
	store_close(other);
	check(store_import(f->store, path, &imported, &err), &err);
	assert_int_equal(imported.runs, 0);
	assert_int_equal(fixture_count(f->store, "run"), 4);
	assert_int_equal(fixture_count(f->store, "process"), 12);
	/* Importing a store into itself adds nothing. */
	check(store_import(f->store, f->path, &imported, &err), &err);
	assert_int_equal(imported.runs, 0);
}

STORE_TEST(an_older_store_is_copied)
{
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(f->folder, "old.db"));
	struct store *other = make_other(path, 1);
	SCOPED(stored_run) run;
	struct store_imported imported = {.runs = -1};

	if (sqlite3_libversion_number() < 3035000)
		skip(); /* no DROP COLUMN */
	check(sql_run(other, "ALTER TABLE process DROP COLUMN threads; DROP TABLE process_series",
		      "test", &err),
	      &err);
	store_close(other);
	check(store_import(f->store, path, &imported, &err), &err);
	assert_int_equal(imported.runs, 1);
	check(store_load_run(f->store, "", STORE_ALL, &run, &err), &err);
	assert_true(run.cells[1].processes[1].threads == RECORD_NONE);
	assert_int_equal(run.cells[1].processes[1].steps, 11);
	assert_int_equal(run.cells[1].processes[1].series_count, 0);
}

STORE_TEST(bad_stores_are_refused_whole)
{
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(f->folder, "bad.db"));
	struct store_imported imported = {.runs = 77};

	expect_error(store_import(f->store, path, &imported, &err), PRONY_BAD_INPUT, &err, path);
	check(file_write_atomic(path, "no database at all", 18, &err), &err);
	expect_error(store_import(f->store, path, &imported, &err), PRONY_STORE, &err, path);
	unlink(path);
	struct store *other = make_other(path, 1);
	check(sql_run(other, "PRAGMA user_version = 99", "test", &err), &err);
	store_close(other);
	expect_error(store_import(f->store, path, &imported, &err), PRONY_STORE, &err, "newer");
	assert_int_equal(imported.runs, 77);
	assert_int_equal(fixture_count(f->store, "run"), 0);
	/* The store remains usable, and the next import finds nothing attached. */
	fixture_cell_of(f->store, "native", 1);
}

STORE_TEST(a_process_has_few_series)
{
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(f->folder, "many.db"));
	struct store *other = make_other(path, 1);
	struct store_imported imported = {.runs = 77};

	check(sql_run(other,
		      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
		      "300)"
		      " INSERT INTO process_series (process, sensor, kind, unit, rate_unit, absent,"
		      " channels, samples) SELECT 1, 's' || i, 'gauge', '', '', '', '', x'' FROM n",
		      "test", &err),
	      &err);
	store_close(other);
	expect_error(store_import(f->store, path, &imported, &err), PRONY_BAD_INPUT, &err,
		     "series of sensors; at most 256 are read");
}

/* A run whose copy fails half-way is not in the store at all. */
STORE_TEST(a_copy_is_all_or_nothing)
{
	struct error err = ERROR_INIT;
	char *path = test_keep(path_join(f->folder, "other.db"));
	struct store *other = make_other(path, 1);
	struct store_imported imported = {.runs = 77};

	store_close(other);
	check(sql_run(f->store,
		      "CREATE TRIGGER no_logs BEFORE INSERT ON process_log BEGIN"
		      " SELECT RAISE(ABORT, 'the test says no'); END",
		      "test", &err),
	      &err);
	expect_error(store_import(f->store, path, &imported, &err), PRONY_STORE, &err,
		     "the test says no");
	assert_int_equal(fixture_count(f->store, "run"), 0);
	assert_int_equal(fixture_count(f->store, "cell"), 0);
	assert_int_equal(fixture_count(f->store, "process"), 0);
	check(sql_run(f->store, "DROP TRIGGER no_logs", "test", &err), &err);
	check(store_import(f->store, path, &imported, &err), &err);
	assert_int_equal(imported.runs, 1);
}
