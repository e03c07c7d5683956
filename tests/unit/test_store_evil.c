/* Stores made to do harm: prony's names for objects that are not tables, unknown versions, columns
 * with values that prony never writes. They are refused; accepted ones harm no command. */
#include "report/export.h"
#include "report/html.h"
#include "report/summary.h"
#include "store/sql_internal.h"
#include "store/store.h"
#include "tests/unit/store_fixture.h"
#include "unit_test.h"

/* Changes a store like another program: without prony's constraints, and without waiting for the
 * disk. */
static int by_hand(const char *path, const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_close(db);
	return code;
}

/* A store with one run of two cells, and its bytes. */
struct sample {
	char *path, *bytes;
	size_t length;
};

static void make_sample(const struct store_folder *f, struct sample *sample)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	struct run_meta meta = fixture_meta(1000);

	snprintf(meta.name, sizeof meta.name, "sample");
	sample->path = path_join(f->folder, "other.db");
	check(store_open(sample->path, false, &store, &err), &err);
	check(store_run_begin(store, &meta, &err), &err);
	for (int c = 0; c < 2; c++) {
		struct cell cell = fixture_cell(c ? "mxnet" : "native", 8);
		SCOPED(process_record) record;
		int64_t id = 0;
		json_auto_t *details = json_pack("{s:s}", "version", "1");
		json_auto_t *evidence = json_pack("{s:b, s:i, s:i, s:i}", "passed", 1, "parameters",
						  7, "macs", 9, "gate_batch", 8);
		check(store_cell(store, meta.id, &cell, &id, &err), &err);
		check(store_cell_framework(store, id, details, &err), &err);
		check(store_gate(store, id, CELL_OK, evidence, "log", &err), &err);
		fixture_record(&record, 0);
		check(store_process(store, id, &record, &err), &err);
		check(store_cell_status(store, id, CELL_OK, CELL_FLAG_SCREENING, "", &err), &err);
	}
	check(store_run_tag(store, meta.id, "nightly", &err), &err);
	check(store_run_finish(store, meta.id, 2000, &err), &err);
	store_close(store);
	assert_int_equal(by_hand(sample->path, "SELECT 1"), SQLITE_OK); /* no log beside it */
	check(file_read(sample->path, 1 << 24, &sample->bytes, &sample->length, &err), &err);
}

static void restore(const struct sample *sample)
{
	/* Overwriting a file may have to wait for the disk, so it is removed first. */
	remove(sample->path);
	FILE *file = fopen(sample->path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(sample->bytes, 1, sample->length, file), sample->length);
	assert_int_equal(fclose(file), 0);
}

static void release_sample(struct sample *sample)
{
	free(sample->bytes);
	free(sample->path);
}

/* Refused for reading, for writing and for import into another store. */
static void refused(struct store *mine, const char *path, const char *part)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	struct store_imported imported = {.runs = 0};

	for (int read_only = 0; read_only < 2; read_only++) {
		expect_error(store_open(path, read_only, &store, &err), PRONY_STORE, &err, part);
		assert_null(store);
	}
	expect_error(store_import(mine, path, &imported, &err), PRONY_STORE, &err, part);
	assert_int_equal(imported.runs, 0);
	assert_int_equal(fixture_count(mine, "run"), 0);
}

STORE_TEST(names_that_are_no_tables_are_refused)
{
	static const struct {
		const char *sql, *part;
	} rows[] = {
		/* A new run at each query. */
		{"PRAGMA legacy_alter_table = ON; ALTER TABLE run RENAME TO kept;"
		 "CREATE VIEW run AS SELECT id, lower(hex(randomblob(16))) AS uid, suite, version,"
		 " effort, seed, started_wall_ns, finished_wall_ns, statistic, spec, command,"
		 " environment, environment_hash, host FROM kept",
		 "'run' is not prony's table: it is not a table"},
		/* Endless rows. */
		{"PRAGMA legacy_alter_table = ON; ALTER TABLE cell RENAME TO kept;"
		 "CREATE VIEW cell AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM "
		 "n)"
		 " SELECT i AS id, k.run, 'h' || i AS hash, k.key, k.framework, k.status, k.flags,"
		 " k.reason, k.gate, k.details, k.evidence, k.batch FROM n, kept AS k",
		 "'cell' is not prony's table: it is not a table"},
		{"DROP TABLE process_series; CREATE VIEW Process_Series AS SELECT 1 AS process",
		 "'process_series' is not prony's table"},
		{"DROP TABLE process_log;"
		 "CREATE VIRTUAL TABLE process_log USING fts4(process, log)",
		 "'process_log' is not prony's table"},
		{"CREATE TRIGGER t AFTER INSERT ON process BEGIN DELETE FROM run; END",
		 "it has a trigger"},
		{"CREATE INDEX i ON cell(abs(batch) + 1)", "it has an index on an expression"},
		{"CREATE INDEX i ON cell(batch) WHERE key LIKE '%a%b%c%'",
		 "has an index on an expression"},
		/* The schema's own texts. */
		{"PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql ="
		 " replace(sql, 'suite TEXT NOT NULL', 'suite TEXT AS (host || host)')"
		 " WHERE name = 'run'",
		 "'run'"},
		{"PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql ="
		 " replace(sql, 'uid TEXT NOT NULL', 'uid TEXT CHECK (uid LIKE ''%a%a%'')')"
		 " WHERE name = 'run'",
		 "its definition differs from prony's"},
		{"PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql ="
		 " replace(sql, 'id INTEGER PRIMARY KEY', 'id TEXT') WHERE name = 'cell'",
		 "'cell'"},
		{"DROP TABLE process_intervals", "table 'process_intervals' is missing"},
	};
	struct sample sample;

	make_sample(f, &sample);
	for (size_t i = 0; i < COUNT(rows); i++) {
		restore(&sample);
		int code = by_hand(sample.path, rows[i].sql);
		if (code != SQLITE_OK && strstr(rows[i].sql, "fts4"))
			continue; /* this SQLite does not have fts4 */
		assert_int_equal(code, SQLITE_OK);
		refused(f->store, sample.path, rows[i].part);
	}
	/* Objects of other names beside prony's are the user's own and are allowed. */
	restore(&sample);
	by_hand(sample.path, "CREATE TABLE notes (text); CREATE VIEW v AS SELECT * FROM run;"
			     "CREATE INDEX i ON process(step_mean_ns)");
	struct error err = ERROR_INIT;
	struct store_imported imported = {.runs = 0};
	check(store_import(f->store, sample.path, &imported, &err), &err);
	assert_int_equal(imported.runs, 1);
	release_sample(&sample);
}

static void put_number(unsigned char *at, unsigned value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, value >>= 8)
		at[i] = (unsigned char)value;
}

/* Writes an inner page of a table (sqlite.org/fileformat2.html, 1.6) whose children are all the
 * same page. */
static void inner_page(unsigned char *page, size_t page_bytes, unsigned child)
{
	enum { CHILDREN = 100, CELL_BYTES = 5 };
	unsigned at = (unsigned)page_bytes - CHILDREN * CELL_BYTES;

	memset(page, 0, page_bytes);
	page[0] = 5;
	put_number(page + 3, CHILDREN, 2);
	put_number(page + 5, at, 2);
	put_number(page + 8, child, 4);
	for (unsigned i = 0; i < CHILDREN; i++, at += CELL_BYTES) {
		put_number(page + 12 + 2 * i, at, 2);
		put_number(page + at, child, 4);
		page[at + 4] = (unsigned char)(i + 1);
	}
}

/*
 * Pages that each point a hundred times to the next: a small file with more rows than can be read.
 */
STORE_TEST(pages_that_are_read_again_and_again)
{
	enum { LEVELS = 12 };
	struct error err = ERROR_INIT;
	struct sample sample;
	struct store *store = NULL;
	struct stored_run run;
	int64_t root = 0;
	struct store_imported imported = {.runs = 0};

	make_sample(f, &sample);
	check(store_open(sample.path, true, &store, &err), &err);
	check(sql_int(store, "SELECT rootpage FROM sqlite_master WHERE name = 'run'", "test", 0,
		      &root, &err, ""),
	      &err);
	store_close(store);
	unsigned char *bytes = (unsigned char *)sample.bytes;
	size_t size = (size_t)(bytes[16] << 8 | bytes[17]), pages = sample.length / size;
	bytes = memory_realloc(bytes, (pages + LEVELS) * size);
	/* The leaf that was the root moves after the chain. */
	memcpy(bytes + (pages + LEVELS - 1) * size, bytes + ((size_t)root - 1) * size, size);
	inner_page(bytes + ((size_t)root - 1) * size, size, (unsigned)pages + 1);
	for (size_t i = 0; i + 1 < LEVELS; i++)
		inner_page(bytes + (pages + i) * size, size, (unsigned)(pages + i + 2));
	put_number(bytes + 28, (unsigned)(pages + LEVELS), 4);
	sample.bytes = (char *)bytes;
	sample.length = (pages + LEVELS) * size;
	restore(&sample);
	expect_error(store_import(f->store, sample.path, &imported, &err), PRONY_STORE, &err,
		     "is damaged: ");
	check(store_open(sample.path, true, &store, &err), &err);
	expect_error(store_load_run(store, "", 0, &run, &err), PRONY_STORE, &err,
		     "too many steps for its size");
	store_close(store);
	release_sample(&sample);
}

STORE_TEST(versions_that_nobody_wrote_are_refused)
{
	static const char *const versions[] = {"-5", "-1", "0", "-2147483648"};
	struct sample sample;

	make_sample(f, &sample);
	for (size_t i = 0; i < COUNT(versions); i++) {
		char sql[64], part[64];
		snprintf(sql, sizeof sql, "PRAGMA user_version = %s", versions[i]);
		snprintf(part, sizeof part, "unknown schema %s", versions[i]);
		assert_int_equal(by_hand(sample.path, sql), SQLITE_OK);
		refused(f->store, sample.path, part);
	}
	release_sample(&sample);
}

/* All ways to view a stored run. */
static void show_everything(struct store *store, const char *what)
{
	static enum prony_status (*const writers[])(const struct summary *, struct strbuf *,
						    struct error *) = {
		export_csv_long, export_csv_cells, export_csv_wide, export_csv_ms,
		export_json,	 export_jsonl,	   export_markdown,
	};
	struct error err = ERROR_INIT;
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	struct strbuf *out = test_strbuf();

	if (store_load_run(store, "", STORE_ALL, &run, &err) != PRONY_OK)
		fail_msg("accepted, and cannot be read with %s: %s", what, err.text);
	summary_init(&summary, &run);
	const struct summary *summaries[] = {&summary};
	summary_render(&summary, true, 100, out);
	for (size_t i = 0; i < COUNT(writers); i++)
		if (writers[i](&summary, out, &err) != PRONY_OK)
			fail_msg("accepted, and cannot be exported with %s: %s", what, err.text);
	if (html_report(summaries, 1, NULL, 0, out, &err) != PRONY_OK)
		fail_msg("accepted, and cannot be reported with %s: %s", what, err.text);
}

/* Returns whether an import leaves out a store in which every row has this value in this column. */
static bool is_refused(struct store *mine, const struct sample *sample, const char *table,
		       const char *column, const char *value)
{
	struct error err = ERROR_INIT;
	struct stored_run run;
	struct store_imported imported = {.runs = 0};
	char *sql = test_text("UPDATE %s SET %s = %s", table, column, value);

	restore(sample);
	int code = by_hand(sample->path, sql);
	/* SQLite keeps NULL out of some columns. */
	bool taken =
		code == SQLITE_OK && store_import(mine, sample->path, &imported, &err) == PRONY_OK;
	if (code == SQLITE_OK && !taken && !strstr(err.text, "run 1 was not imported: "))
		fail_msg("'%s': %s", sql, err.text);
	if (taken) {
		assert_int_equal(imported.runs, 1);
		show_everything(mine, sql);
		check(store_load_run(mine, "", 0, &run, &err), &err);
		check(store_delete_runs(mine, &run.meta.id, 1, &err), &err);
		stored_run_release(&run);
	}
	assert_int_equal(fixture_count(mine, "run"), 0);
	assert_int_equal(fixture_count(mine, "process_series"), 0);
	return !taken;
}

/* The first values are also tried in the many fields of `process`. */
enum { FOR_ALL = 5 };
static const char *const evil[] = {
	"9223372036854775807",
	"-9223372036854775807 - 1",
	"1e999",
	"'nonsense'",
	"zeroblob(100000)",
	"NULL",
	"-1",
	"'a' || char(0) || 'b'",
	"printf('%.100000c', 'x')",
	"'{\"parameters\": -9223372036854775808, \"macs\": -1}'",
	"'[]'",
	"''",
};

enum { NAMES_MAX = 128 };

static int columns_of(struct store *store, const char *table, char names[NAMES_MAX][64])
{
	struct error err = ERROR_INIT;
	sqlite3_stmt *statement = NULL;
	bool row = true;
	int count = 0;

	check(sql_prepare(store, "SELECT name FROM pragma_table_info(?1)", "test", &statement, &err,
			  "t", table),
	      &err);
	for (;; count++) {
		check(sql_step(store, statement, "test", &row, &err), &err);
		if (!row)
			break;
		assert_true(count < NAMES_MAX);
		sql_copy(statement, 0, names[count], sizeof names[count]);
	}
	sqlite3_finalize(statement);
	return count;
}

STORE_TEST(every_column_is_looked_at)
{
	static const char *const tables[] = {"run",
					     "cell",
					     "process",
					     "process_log",
					     "process_intervals",
					     "process_series",
					     "process_rank",
					     "run_name",
					     "run_tag"};
	/* A copy assigns row numbers anew, and takes the part from `run_part`
	 * (test_store_parts.c). */
	static const char *const keys[] = {"id", "run", "cell", "process", "part"};
	struct error err = ERROR_INIT;
	struct sample sample;
	int columns = 0, refusals = 0, values = 0;

	make_sample(f, &sample);
	check(sql_run(f->store, "PRAGMA synchronous = OFF", "test", &err), &err);
	for (size_t t = 0; t < COUNT(tables); t++) {
		char names[NAMES_MAX][64];
		int count = columns_of(f->store, tables[t], names);
		for (int n = 0; n < count; n++) {
			const char *name = names[n];
			int here = 0;
			bool key = false;
			for (size_t k = 0; k < COUNT(keys); k++)
				key = key || !strcmp(name, keys[k]);
			size_t tries = strcmp(tables[t], "process") ? COUNT(evil) : FOR_ALL;
			for (size_t i = 0; i < tries && !key; i++)
				here += is_refused(f->store, &sample, tables[t], name, evil[i]);
			/* At least a wrong type must be refused. */
			if (!key && here == 0)
				fail_msg("%s.%s takes nearly anything", tables[t], name);
			columns += !key;
			refusals += here;
			values += key ? 0 : (int)tries;
		}
	}
	printf("# %d columns, %d of %d values refused\n", columns, refusals, values);
	assert_true(columns > 85);
	release_sample(&sample);
}

STORE_TEST(these_are_refused_by_name)
{
	static const struct {
		const char *table, *column, *value;
	} rows[] = {
		{"run", "started_wall_ns", "9223372036854775807"},
		{"run", "uid", "'g' || substr(uid, 2)"},
		{"run", "environment", "'{broken'"},
		{"cell", "status", "'nonsense'"},
		{"cell", "flags", "'screening,nonsense'"},
		{"cell", "gate", "'nonsense'"},
		{"cell", "stage", "'nonsense'"},
		{"cell", "batch", "0"},
		{"cell", "batch", "16"}, /* contradicts its key */
		{"cell", "learning_rate", "-1.5"},
		{"cell", "name", "'pytorch'"},
		{"cell", "hash", "'0123456789abcdef' || id"},
		{"cell", "evidence", "'{\"parameters\": -9223372036854775808}'"},
		{"cell", "evidence", "'{\"macs\": 1.5}'"},
		{"process", "status", "'nonsense'"},
		{"process", "flags", "'nonsense'"},
		{"process", "replicate", "-1"},
		{"process", "steps", "9223372036854775807"},
		{"process_intervals", "intervals", "x'01'"},
		{"process_intervals", "intervals", "zeroblob(16) || x'ff'"},
		{"process_series", "kind", "'nonsense'"},
		{"process_series", "samples", "x'01'"},
		{"process_rank", "rank", "64"},
		{"process_rank", "length_ns", "-1"},
	};
	struct sample sample;

	make_sample(f, &sample);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (!is_refused(f->store, &sample, rows[i].table, rows[i].column, rows[i].value))
			fail_msg("%s.%s = %s is taken", rows[i].table, rows[i].column,
				 rows[i].value);
	release_sample(&sample);
}

/* One bad run does not prevent the import of the others. */
STORE_TEST(the_others_are_copied)
{
	struct error err = ERROR_INIT;
	struct sample sample;
	struct store_imported imported = {.runs = 0};

	make_sample(f, &sample);
	assert_int_equal(by_hand(sample.path,
				 "INSERT INTO run SELECT 2, 'ff' || substr(uid, 3), suite, version,"
				 " effort, seed, 10, finished_wall_ns, statistic, spec, command,"
				 " environment, environment_hash, host FROM run WHERE id = 1;"
				 "INSERT INTO run SELECT 3, 'ee' || substr(uid, 3), suite, version,"
				 " effort, seed, -10, finished_wall_ns, statistic, spec, command,"
				 " environment, environment_hash, host FROM run WHERE id = 1"),
			 SQLITE_OK);
	expect_error(store_import(f->store, sample.path, &imported, &err), PRONY_BAD_INPUT, &err,
		     "run 3 was not imported: `started_wall_ns` of table `run`");
	assert_int_equal(imported.runs, 2);
	assert_int_equal(fixture_count(f->store, "run"), 2);
	release_sample(&sample);
}

int main(void)
{
	/* Pages without the chart libraries, because there are hundreds of pages. */
	setenv("PRONY_SHARE", "/nonexistent", 1);
	return unit_tests_run(NULL, NULL);
}
