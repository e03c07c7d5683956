/* A run in parts: begun, continued, finished, joined by import. */
#include "store/sql_internal.h"
#include "store/store.h"
#include "tests/unit/store_fixture.h"
#include "unit_test.h"

#define UID "0123456789abcdef0123456789abcdef"

static enum prony_status begin(struct store *store, int64_t part, const char *machine, bool resume,
			       int64_t *run, enum part_begun *begun, struct error *err)
{
	struct run_meta meta = fixture_meta(1000 + part);
	const struct run_part of = {.part = part, .parts = 3, .cells = 6};

	snprintf(meta.uid, sizeof meta.uid, UID);
	snprintf(meta.environment_hash, sizeof meta.environment_hash, "%s", machine);
	snprintf(meta.host, sizeof meta.host, "node%lld", (long long)part);
	enum prony_status status = store_part_begin(store, &meta, &of, resume, begun, err);
	*run = meta.id;
	return status;
}

#define MACHINE_A "aaaaaaaaaaaaaaaa"
#define MACHINE_B "bbbbbbbbbbbbbbbb"

/* Stores two cells of a part, and so many processes of each. */
static int64_t store_part(struct store *store, int64_t part, int processes)
{
	struct error err = ERROR_INIT;
	enum part_begun begun;
	int64_t run = 0;

	check(begin(store, part, MACHINE_A, true, &run, &begun, &err), &err);
	for (int c = 0; c < 2; c++) {
		struct cell cell = fixture_cell(c ? "mxnet" : "native", 8 * part);
		int64_t id = 0;
		check(store_cell(store, run, &cell, &id, &err), &err);
		for (int p = 0; p < processes; p++) {
			SCOPED(process_record) record;
			fixture_record(&record, p);
			record.steps = 100 * part + 10 * c + p;
			check(store_process(store, id, &record, &err), &err);
		}
	}
	check(store_part_cells(store, run, part, &err), &err);
	return run;
}

/* A store of one part; the path is test_keep's. */
static char *make_part(const struct store_folder *f, int64_t part, int processes, bool finished)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	char name[40];

	snprintf(name, sizeof name, "part%lld-%d.db", (long long)part, processes);
	char *path = test_keep(path_join(f->folder, name));
	check(store_open(path, false, &store, &err), &err);
	int64_t run = store_part(store, part, processes);
	if (finished)
		check(store_part_finish(store, run, part, 5000 + part, &err), &err);
	store_close(store);
	return path;
}

static struct store_imported import(struct store *store, const char *path)
{
	struct store_imported imported = {.runs = -1};
	struct error err = ERROR_INIT;

	check(store_import(store, path, &imported, &err), &err);
	return imported;
}

STORE_TEST(a_part_begins_continues_and_restarts)
{
	struct error err = ERROR_INIT;
	enum part_begun begun;
	int64_t run = 0;

	check(begin(f->store, 2, MACHINE_A, true, &run, &begun, &err), &err);
	assert_int_equal(begun, PART_BEGINS);
	store_part(f->store, 2, 1);
	expect_error(begin(f->store, 2, MACHINE_A, false, &run, &begun, &err), PRONY_USAGE, &err,
		     "part 2/3 of this run is here, unfinished; add --resume");
	error_clear(&err);
	check(begin(f->store, 2, MACHINE_A, true, &run, &begun, &err), &err);
	assert_int_equal(begun, PART_CONTINUES);
	assert_int_equal(fixture_count(f->store, "process"), 2);
	/* Its contenders would be of two machines. */
	check(begin(f->store, 2, MACHINE_B, true, &run, &begun, &err), &err);
	assert_int_equal(begun, PART_RESTARTS);
	assert_int_equal(fixture_count(f->store, "cell"), 0);
	check(store_part_finish(f->store, run, 2, 7000, &err), &err);
	/* A finished part stays, wherever it is called again. */
	check(begin(f->store, 2, MACHINE_A, true, &run, &begun, &err), &err);
	assert_int_equal(begun, PART_CONTINUES);
	assert_int_equal(fixture_count(f->store, "run"), 1);
	/* The run itself is not what --resume continues without --part. */
	expect_error(store_run_unfinished(f->store, fixture_meta(0).spec, MACHINE_B, &run, &err),
		     PRONY_MISSING, &err, "no unfinished run");
}

STORE_TEST(parts_are_joined_in_any_order_and_twice)
{
	struct error err = ERROR_INIT;
	char *first = make_part(f, 1, 2, true), *third = make_part(f, 3, 2, true);
	char *begun = make_part(f, 2, 1, false), *second = make_part(f, 2, 2, true);

	assert_int_equal(import(f->store, third).runs, 1);
	assert_int_equal(import(f->store, begun).cells, 2);
	assert_int_equal(import(f->store, first).cells, 2);
	assert_int_equal(import(f->store, second).cells, 2);
	assert_int_equal(import(f->store, f->path).runs, 0);
	struct store_imported again = import(f->store, begun);
	assert_int_equal(again.cells, 0);
	assert_int_equal(again.present, 2);
	again = import(f->store, second);
	assert_int_equal(again.cells + again.runs, 0);
	assert_int_equal(again.present, 2);

	SCOPED(stored_run) run;
	check(store_load_run(f->store, UID, STORE_ALL, &run, &err), &err);
	assert_int_equal(run.meta.part_count, 3);
	assert_int_equal(run.meta.finished_wall_ns, 5003);
	assert_string_equal(run.meta.host, "node1");
	assert_string_equal(run.meta.parts[2].host, "node3");
	assert_int_equal(run.cell_count, 6);
	for (size_t i = 0; i < run.cell_count; i++) {
		const struct stored_cell *cell = &run.cells[i];
		assert_int_equal(cell->cell.batch, 8 * cell->part);
		assert_int_equal(cell->process_count, 2);
		bool other = !strcmp(cell->cell.framework, "mxnet");
		assert_int_equal(cell->processes[1].steps, 100 * cell->part + 10 * other + 1);
		assert_int_equal(cell->processes[1].series_count, 2);
	}
	/* A joined store joins another. */
	char *path = test_keep(path_join(f->folder, "other.db"));
	struct store *other = NULL;
	check(store_open(path, false, &other, &err), &err);
	assert_int_equal(import(other, begun).runs, 1);
	assert_int_equal(import(other, f->path).cells, 6);
	assert_int_equal(fixture_count(other, "process"), 12);
	store_close(other);
}

STORE_TEST(parts_of_another_plan_are_refused)
{
	struct error err = ERROR_INIT;
	char *first = make_part(f, 1, 1, true), *second = make_part(f, 2, 1, true);
	struct store_imported imported = {.runs = 0};
	struct store *store = NULL;

	check(store_open(second, false, &store, &err), &err);
	check(sql_run(store, "UPDATE run_part SET parts = 4", "test", &err), &err);
	store_close(store);
	import(f->store, first);
	expect_error(store_import(f->store, second, &imported, &err), PRONY_BAD_INPUT, &err,
		     "its parts are not of the run with the same uid here");
	assert_int_equal(fixture_count(f->store, "cell"), 2);
	error_clear(&err);
	check(store_open(second, false, &store, &err), &err);
	check(sql_run(store, "UPDATE run_part SET parts = 3, environment = '[]'", "test", &err),
	      &err);
	store_close(store);
	expect_error(store_import(f->store, second, &imported, &err), PRONY_BAD_INPUT, &err,
		     "`environment` of table `run_part`");
	assert_int_equal(fixture_count(f->store, "cell"), 2);
}
