/* The store: writing and reading back, resuming, choosing a run, a full disk, older schemas. */
#include "store/sql_internal.h"
#include "store/store.h"
#include "tests/unit/store_fixture.h"
#include "unit_test.h"

STORE_TEST(opens_and_closes)
{
	char *deep = test_keep(path_join(f->folder, "a/b/c.db"));
	struct error err = ERROR_INIT;
	struct store *store = NULL;

	check(store_open(deep, false, &store, &err), &err);
	assert_true(file_exists(deep));
	store_close(store);
	store_close(NULL);
	/* The last connection that closes leaves only the store's file. */
	char *log = memory_printf("%s-wal", deep);
	assert_false(file_exists(log));
	free(log);
	check(store_open(deep, false, &store, &err), &err);
	store_close(store);
}

STORE_TEST(the_default_is_in_the_data_folder)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	char *expected = test_keep(path_join(f->folder, "prony/prony.db"));

	setenv("XDG_DATA_HOME", f->folder, 1);
	check(store_open(NULL, false, &store, &err), &err);
	assert_true(file_exists(expected));
	store_close(store);
	unsetenv("XDG_DATA_HOME");
}

static void same_text(const char *a, const char *b)
{
	assert_string_equal(a ? a : "", b ? b : "");
}

static void same_record(const struct process_record *a, const struct process_record *b)
{
	for (size_t i = 0; i < process_field_count; i++) {
		const char *x = (const char *)a + process_fields[i].offset;
		const char *y = (const char *)b + process_fields[i].offset;
		double p, q;
		switch (process_fields[i].type) {
		case FIELD_TYPE_TEXT:
			assert_string_equal(x, y);
			break;
		case FIELD_TYPE_REAL:
			memcpy(&p, x, sizeof p);
			memcpy(&q, y, sizeof q);
			assert_true(p == q || (isnan(p) && isnan(q)));
			break;
		case FIELD_TYPE_INT:
			assert_memory_equal(x, y, sizeof(int64_t));
			break;
		}
	}
	same_text(a->log, b->log);
	assert_int_equal(a->interval_count, b->interval_count);
	if (a->interval_count)
		assert_memory_equal(a->intervals, b->intervals,
				    a->interval_count * sizeof *a->intervals);
	same_series(a, b);
}

static void same_run(const struct stored_run *run, const struct run_meta *meta,
		     const json_t *details, const json_t *evidence,
		     const struct process_record *records)
{
	assert_int_equal(run->meta.id, meta->id);
	assert_string_equal(run->meta.uid, meta->uid);
	assert_true(run->meta.seed == INT64_MIN);
	assert_int_equal(run->meta.finished_wall_ns, 77);
	assert_string_equal(run->meta.spec, meta->spec);
	assert_string_equal(run->meta.command, meta->command);
	assert_string_equal(run->meta.environment, meta->environment);
	assert_string_equal(run->meta.host, meta->host);
	assert_int_equal(run->cell_count, 1);
	const struct stored_cell *back = &run->cells[0];
	char key[CELL_KEY_BYTES];
	cell_key(&back->cell, key);
	assert_string_equal(key, back->key);
	assert_string_equal(back->cell.options, "channels_last");
	assert_string_equal(back->cell.environment, "1.13");
	assert_int_equal(back->status, CELL_OK);
	assert_int_equal(back->flags, CELL_FLAG_SCREENING | CELL_FLAG_NOT_STEADY);
	assert_string_equal(back->reason, "because");
	assert_string_equal(back->gate_log, "gate's log\n");
	assert_int_equal(back->gate, CELL_OK);
	assert_true(json_equal(back->framework, details));
	assert_true(json_equal(back->evidence, evidence));
	assert_int_equal(back->process_count, 3);
	for (int i = 0; i < 3; i++)
		same_record(&back->processes[i], &records[i]);
}

STORE_TEST(everything_comes_back)
{
	struct error err = ERROR_INIT;
	struct run_meta meta = fixture_meta(5);
	struct cell cell = fixture_cell("pytorch@1.13+channels_last", 64);
	int64_t id;
	struct stored_run run;
	struct process_record records[3];
	json_auto_t *details =
		json_pack("{s:s, s:{s:f}}", "version", "1.13", "x", "pi", 3.14159265358979);
	json_auto_t *evidence = json_pack("{s:b, s:n}", "passed", 1, "worst");

	meta.seed = INT64_MIN; /* a user's seed 2^63 */
	check(store_run_begin(f->store, &meta, &err), &err);
	assert_int_equal(strlen(meta.uid), 32);
	check(store_cell(f->store, meta.id, &cell, &id, &err), &err);
	check(store_cell_framework(f->store, id, details, &err), &err);
	check(store_gate(f->store, id, CELL_OK, evidence, "gate's log\n", &err), &err);
	for (int i = 0; i < 3; i++) {
		fixture_record(&records[i], i);
		check(store_process(f->store, id, &records[i], &err), &err);
	}
	check(store_cell_status(f->store, id, CELL_OK, CELL_FLAG_SCREENING | CELL_FLAG_NOT_STEADY,
				"because", &err),
	      &err);
	check(store_run_finish(f->store, meta.id, 77, &err), &err);

	check(store_load_run(f->store, "", STORE_ALL, &run, &err), &err);
	same_run(&run, &meta, details, evidence, records);
	stored_run_release(&run);

	check(store_load_run(f->store, "", 0, &run, &err), &err);
	assert_null(run.cells[0].processes[0].intervals);
	assert_null(run.cells[0].processes[0].log);
	assert_string_equal(run.cells[0].gate_log, "");
	stored_run_release(&run);
	stored_run_release(NULL);
	for (int i = 0; i < 3; i++)
		process_record_release(&records[i]);
}

STORE_TEST(what_is_not_measured_is_null)
{
	struct error err = ERROR_INIT;
	struct process_record record;
	SCOPED(stored_run) run;
	int64_t id = fixture_cell_of(f->store, "native", 1), nulls = 0;

	process_record_init(&record);
	record.replicate = 0;
	check(store_process(f->store, id, &record, &err), &err);
	check(sql_int(f->store,
		      "SELECT count(*) FROM process WHERE steps IS NULL AND loss_last IS NULL"
		      " AND error IS NULL AND mxcsr IS NULL",
		      "test", 0, &nulls, &err, ""),
	      &err);
	assert_int_equal(nulls, 1);
	check(store_load_run(f->store, "", STORE_ALL, &run, &err), &err);
	same_record(&run.cells[0].processes[0], &record);
	assert_int_equal(run.cells[0].gate, CELL_PENDING);
	assert_null(run.cells[0].framework);
	assert_null(run.cells[0].evidence);
}

STORE_TEST(a_run_is_resumed)
{
	struct error err = ERROR_INIT, none = ERROR_INIT;
	struct run_meta old = fixture_meta(1), new = fixture_meta(2), done = fixture_meta(3);
	struct cell cell = fixture_cell("native", 64), other = fixture_cell("native", 65);
	int64_t id, again;
	SCOPED(process_record) record;
	int64_t found = -1;

	assert_int_equal(store_run_unfinished(f->store, old.spec, "env", &found, &none),
			 PRONY_MISSING);
	assert_int_equal(found, -1);
	check(store_run_begin(f->store, &new, &err), &err);
	check(store_run_begin(f->store, &old, &err), &err);
	check(store_run_begin(f->store, &done, &err), &err);
	check(store_run_finish(f->store, done.id, 4, &err), &err);
	check(store_run_unfinished(f->store, new.spec, new.environment_hash, &found, &err), &err);
	assert_int_equal(found, new.id); /* the newest by time, not by id */
	error_clear(&none);
	assert_int_equal(store_run_unfinished(f->store, new.spec, "other", &found, &none),
			 PRONY_MISSING);
	error_clear(&none);
	assert_int_equal(
		store_run_unfinished(f->store, "other", new.environment_hash, &found, &none),
		PRONY_MISSING);

	check(store_cell(f->store, new.id, &cell, &id, &err), &err);
	check(store_gate(f->store, id, CELL_MISMATCH, NULL, NULL, &err), &err);
	fixture_record(&record, 0);
	check(store_process(f->store, id, &record, &err), &err);
	check(store_cell_status(f->store, id, CELL_MISMATCH, 0, "why", &err), &err);
	check(store_cell(f->store, new.id, &cell, &again, &err), &err);
	assert_int_equal(again, id);
	check(store_cell(f->store, new.id, &other, &again, &err), &err);
	assert_int_not_equal(again, id);
	check(store_cell(f->store, old.id, &cell, &again, &err), &err);
	assert_int_not_equal(again, id);
}

STORE_TEST(nothing_is_stored_twice)
{
	struct error err = ERROR_INIT;
	SCOPED(process_record) record;
	int64_t id = fixture_cell_of(f->store, "native", 1);

	fixture_record(&record, 0);
	check(store_process(f->store, id, &record, &err), &err);
	expect_error(store_process(f->store, id, &record, &err), PRONY_STORE, &err,
		     "process 0 of cell");
	/* An unknown cell leaves no partial result, and the store remains usable. */
	record.replicate = 1;
	expect_error(store_process(f->store, id + 9, &record, &err), PRONY_STORE, &err,
		     "cannot store a result");
	check(store_process(f->store, id, &record, &err), &err);
	assert_int_equal(fixture_count(f->store, "process"), 2);
	assert_int_equal(fixture_count(f->store, "process_log"), 2);
	assert_int_equal(fixture_count(f->store, "process_intervals"), 2);
	assert_int_equal(fixture_count(f->store, "process_series"), 4);
	expect_error(store_run_finish(f->store, 99, 1, &err), PRONY_STORE, &err, "run 99");
}

STORE_TEST(runs_are_found_and_listed)
{
	struct error err = ERROR_INIT;
	struct stored_run run;

	expect_error(store_load_run(f->store, "", 0, &run, &err), PRONY_BAD_INPUT, &err,
		     "contains no runs yet");
	for (int64_t i = 1; i <= 20; i++) {
		struct run_meta meta = fixture_meta(100 - i);
		check(store_run_begin(f->store, &meta, &err), &err);
		assert_int_equal(meta.id, i);
	}
	/* Identifiers are random, so one of them may begin with a prefix that is looked up; these
	 * are fixed. */
	check(sql_run(f->store,
		      "UPDATE run SET uid = 'e' || id;"
		      "UPDATE run SET uid = 'abc1' WHERE id = 3;"
		      "UPDATE run SET uid = 'abc2' WHERE id = 4;"
		      "UPDATE run SET uid = '7fff' WHERE id = 5",
		      "test", &err),
	      &err);
	static const struct {
		const char *which;
		int64_t id;
	} rows[] = {{"", 1}, {"17", 17}, {"7", 7}, {"7fff", 5}, {"abc1", 3}, {"abc2", 4}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		check(store_load_run(f->store, rows[i].which, 0, &run, &err), &err);
		assert_int_equal(run.meta.id, rows[i].id);
		stored_run_release(&run);
	}
	expect_error(store_load_run(f->store, "%", 0, &run, &err), PRONY_BAD_INPUT, &err,
		     "no run '%'");
	expect_error(store_load_run(f->store, "4242424242", 0, &run, &err), PRONY_BAD_INPUT, &err,
		     "no run '4242424242'");
}

STORE_TEST(a_full_disk_is_said_and_loses_nothing)
{
	struct error err = ERROR_INIT;
	struct process_record record;
	int64_t id = fixture_cell_of(f->store, "native", 1), stored = 0;
	enum prony_status status = PRONY_OK;

	check(sql_run(f->store, "PRAGMA max_page_count = 60", "test", &err), &err);
	while (status == PRONY_OK && stored < 1000) {
		fixture_record(&record, (int)stored);
		status = store_process(f->store, id, &record, &err);
		process_record_release(&record);
		stored += status == PRONY_OK;
	}
	expect_error(status, PRONY_STORE, &err, "its disk is full");
	assert_true(stored > 0);
	assert_int_equal(fixture_count(f->store, "process"), stored);
	check(sql_run(f->store, "PRAGMA max_page_count = 100000", "test", &err), &err);
	fixture_record(&record, (int)stored);
	check(store_process(f->store, id, &record, &err), &err);
	process_record_release(&record);
}

/* The table of fields only grows: an older store lacks the last columns. */
STORE_TEST(missing_columns_are_added)
{
	struct error err = ERROR_INIT;
	struct process_record record;
	struct stored_run run;
	struct store *reader = NULL;
	int64_t id = fixture_cell_of(f->store, "native", 1);

	fixture_record(&record, 0);
	check(store_process(f->store, id, &record, &err), &err);
	process_record_release(&record);
	if (sqlite3_libversion_number() < 3035000)
		skip(); /* no DROP COLUMN */
	check(sql_run(f->store, "ALTER TABLE process DROP COLUMN mxcsr; DROP TABLE process_series",
		      "test", &err),
	      &err);
	check(store_open(f->path, true, &reader, &err), &err);
	check(store_load_run(reader, "", STORE_ALL, &run, &err), &err);
	assert_int_equal(run.cells[0].processes[0].series_count, 0);
	assert_true(run.cells[0].processes[0].mxcsr == RECORD_NONE);
	assert_true(run.cells[0].processes[0].steps != RECORD_NONE);
	stored_run_release(&run);
	store_close(reader);

	char *path = test_keep(memory_strdup(f->path));
	store_close(f->store);
	check(store_open(path, false, &f->store, &err), &err);
	fixture_record(&record, 1);
	check(store_process(f->store, id, &record, &err), &err);
	check(store_load_run(f->store, "", STORE_SERIES, &run, &err), &err);
	assert_true(run.cells[0].processes[0].mxcsr == RECORD_NONE);
	assert_true(run.cells[0].processes[1].mxcsr == record.mxcsr);
	same_series(&run.cells[0].processes[1], &record);
	stored_run_release(&run);
	process_record_release(&record);
}

STORE_TEST(damage_is_said)
{
	static const char *const damages[] = {
		"UPDATE cell SET stage = 'nonsense'",
		"UPDATE cell SET stage = 'train', details = '{broken'",
		"UPDATE cell SET details = NULL, status = 'odd'",
		"UPDATE cell SET status = 'ok'; UPDATE process_intervals SET intervals = x'0102'",
		"DELETE FROM process_intervals; UPDATE process_series SET samples = x'01'",
		"UPDATE process_series SET samples = x'', kind = 'odd'",
		"UPDATE process_series SET kind = 'gauge', channels = 'a  b'",
		/* Times that decrease. */
		"UPDATE process_series SET channels = '', samples = zeroblob(8)",
		("UPDATE process_series SET channels = 'a', samples ="
		 " x'01000000000000000000000000000000' || zeroblob(16)"),
	};
	struct error err = ERROR_INIT;
	struct process_record record;
	struct stored_run run;
	int64_t id = fixture_cell_of(f->store, "native", 1);

	fixture_record(&record, 0);
	check(store_process(f->store, id, &record, &err), &err);
	process_record_release(&record);
	for (size_t i = 0; i < COUNT(damages); i++) {
		check(sql_run(f->store, damages[i], "test", &err), &err);
		expect_error(store_load_run(f->store, "", STORE_ALL, &run, &err), PRONY_STORE, &err,
			     f->path);
	}
}

/* One damaged interval does not hide the other results of its run. */
STORE_TEST(damaged_intervals_are_left_out)
{
	static const char *const damages[] = {
		"UPDATE process_intervals SET intervals = x'0102' WHERE process = 1",
		/* It ends before it begins. */
		"UPDATE process_intervals SET intervals = x'0900000000000000' || zeroblob(8)"
		" WHERE process = 1",
		"DELETE FROM process_intervals WHERE process = 1;"
		"UPDATE process_series SET samples = x'01' WHERE process = 1",
	};
	struct error err = ERROR_INIT;
	struct process_record record;
	struct stored_run run;
	int64_t id = fixture_cell_of(f->store, "native", 1);

	for (int i = 0; i < 2; i++) {
		fixture_record(&record, i);
		snprintf(record.status, sizeof record.status, "ok");
		check(store_process(f->store, id, &record, &err), &err);
		process_record_release(&record);
	}
	for (size_t i = 0; i < COUNT(damages); i++) {
		check(sql_run(f->store, damages[i], "test", &err), &err);
		check(store_load_run(f->store, "", STORE_ALL | STORE_FORGIVES, &run, &err), &err);
		assert_int_equal(run.damaged, 1);
		assert_int_equal(run.cells[0].processes[0].interval_count, 0);
		assert_true(run.cells[0].processes[1].interval_count > 0);
		stored_run_release(&run);
	}
}

/* docs/store.md names every table and column. */
STORE_TEST(the_schema_is_documented)
{
	const char *source = getenv("PRONY_SOURCE");
	struct error err = ERROR_INIT;
	sqlite3_stmt *statement = NULL;
	char *text = NULL;
	size_t length = 0;
	bool row = true;
	int columns = 0;

	if (!source)
		skip();
	char *path = test_keep(path_join(source, "docs/store.md"));
	check(file_read(path, 1 << 20, &text, &length, &err), &err);
	check(sql_prepare(f->store,
			  "SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name)"
			  " AS c WHERE t.type = 'table'",
			  "test", &statement, &err, ""),
	      &err);
	for (;;) {
		check(sql_step(f->store, statement, "test", &row, &err), &err);
		if (!row)
			break;
		for (int i = 0; i < 2; i++) {
			char *word = test_text("`%s`", sql_text(statement, i));
			if (!strstr(text, word))
				fail_msg("docs/store.md does not name %s", word);
		}
		columns++;
	}
	assert_true(columns > 60);
	sqlite3_finalize(statement);
	free(text);
}
