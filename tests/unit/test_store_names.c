/* References to runs: names, tags, numbers, prefixes of uids; the runs of a cell. */
#include "store/sql_internal.h"
#include "store/store.h"
#include "tests/unit/store_fixture.h"
#include "unit_test.h"

static int64_t begin(struct store *store, int64_t started, const char *name)
{
	struct run_meta meta = fixture_meta(started);
	struct error err = ERROR_INIT;

	snprintf(meta.name, sizeof meta.name, "%s", name);
	check(store_run_begin(store, &meta, &err), &err);
	return meta.id;
}

/* A run of the year 2100 was made with a wrong clock: the newest is one of today. */
STORE_TEST(a_run_of_the_future_is_not_the_newest)
{
	struct error err = ERROR_INIT;
	struct run_extent *runs = NULL, found;
	SCOPED(arena) arena;
	size_t count = 0;

	begin(f->store, INT64_C(4102444800000000000), "");
	begin(f->store, INT64_C(1795800000000000000), "");
	begin(f->store, INT64_C(1795700000000000000), "");
	check(store_find_run(f->store, "latest", &found, &err), &err);
	assert_int_equal(found.meta.id, 2);
	arena_init(&arena, 0);
	check(store_list_runs(f->store, NULL, &arena, &runs, &count, &err), &err);
	assert_int_equal(count, 3);
	assert_int_equal(runs[2].meta.id, 1);
}

STORE_TEST(a_word_means_one_run)
{
	static const struct {
		const char *which;
		int64_t id; /* 0: not found */
	} rows[] = {
		{"", 3},	{"latest", 3},	 {"latest~0", 3}, {"latest~2", 1}, {"latest~3", 0},
		{"latest~", 0}, {"latest~x", 0}, {"main", 2},	  {"2", 2},	   {"02", 0},
		{"6", 0},	{"66", 0},	 {"6666", 0},	  {"66661111", 1}, {"666611112", 0},
		{"aaaa", 2},	{"aaa", 0},	 {"a", 0},	  {"%", 0},	   {"Main", 0},
	};
	struct error err = ERROR_INIT;
	struct stored_run run;

	begin(f->store, 100, "");
	begin(f->store, 200, "main");
	begin(f->store, 300, "");
	/* Identifiers are random, so they are set here. Run number 6 is looked up, and there is
	 * none. */
	check(sql_run(f->store,
		      "UPDATE run SET uid = '66661111f' || substr(uid, 10) WHERE id = 1;"
		      "UPDATE run SET uid = 'aaaab' || substr(uid, 6) WHERE id = 2;"
		      "UPDATE run SET uid = 'ffff' || substr(uid, 5) WHERE id = 3",
		      "test", &err),
	      &err);
	for (size_t i = 0; i < COUNT(rows); i++) {
		enum prony_status status = store_load_run(f->store, rows[i].which, 0, &run, &err);
		if (rows[i].id == 0) {
			assert_int_equal(status, PRONY_BAD_INPUT);
			error_clear(&err);
			continue;
		}
		check(status, &err);
		if (run.meta.id != rows[i].id)
			fail_msg("'%s' is run %lld", rows[i].which, (long long)run.meta.id);
		stored_run_release(&run);
	}
	check(sql_run(f->store, "UPDATE run SET uid = 'aaaac' || substr(uid, 6) WHERE id = 3",
		      "test", &err),
	      &err);
	expect_error(store_load_run(f->store, "aaaa", 0, &run, &err), PRONY_BAD_INPUT, &err,
		     "'aaaa' matches run 2 (aaaab");
}

STORE_TEST(what_is_changed_is_named)
{
	struct error err = ERROR_INIT;
	struct run_extent found;

	begin(f->store, 100, "main");
	begin(f->store, 200, "");
	expect_error(store_find_run(f->store, "", &found, &err), PRONY_BAD_INPUT, &err,
		     "no run ''");
	check(store_find_run(f->store, "main", &found, &err), &err);
	assert_int_equal(found.meta.id, 1);
	assert_string_equal(found.meta.name, "main");
	check(store_find_run(f->store, "latest", &found, &err), &err);
	assert_int_equal(found.meta.id, 2);
	/* The reference matches one run by its number and another by its uid. */
	check(sql_run(f->store,
		      "UPDATE run SET id = 1234 WHERE id = 2;"
		      "UPDATE run SET uid = '1234' || substr(uid, 5) WHERE id = 1",
		      "test", &err),
	      &err);
	expect_error(store_find_run(f->store, "1234", &found, &err), PRONY_BAD_INPUT, &err,
		     "'1234' matches run 1 (1234");
}

STORE_TEST(names_are_one_runs_only)
{
	struct error err = ERROR_INIT;
	struct run_meta meta = fixture_meta(300);
	struct run_extent found;

	begin(f->store, 100, "main");
	int64_t second = begin(f->store, 200, "");
	snprintf(meta.name, sizeof meta.name, "main");
	expect_error(store_run_begin(f->store, &meta, &err), PRONY_USAGE, &err,
		     "run 1 already has the name 'main'");
	assert_int_equal(fixture_count(f->store, "run"), 2);
	expect_error(store_run_name(f->store, second, "main", false, &err), PRONY_USAGE, &err,
		     "prony tag 1 --name");
	check(store_run_name(f->store, second, "main", true, &err), &err);
	check(store_find_run(f->store, "main", &found, &err), &err);
	assert_int_equal(found.meta.id, second);
	/* Its own name again, another name, no name. */
	check(store_run_name(f->store, second, "main", false, &err), &err);
	check(store_run_name(f->store, second, "v2.1_rc+1-x", false, &err), &err);
	assert_int_equal(fixture_count(f->store, "run_name"), 1);
	check(store_run_name(f->store, second, "", false, &err), &err);
	assert_int_equal(fixture_count(f->store, "run_name"), 0);
	check(store_run_name(f->store, second, "main", false, &err), &err);
	check(store_delete_runs(f->store, &second, 1, &err), &err);
	assert_int_equal(fixture_count(f->store, "run_name"), 0);
}

TEST(some_words_are_no_names)
{
	static const char *const names[] = {
		"",	    "7up",
		"-x",	    "a b",
		"a:b",	    "a~1",
		"latest",   "cafe",
		"deadbeef", "\xc3\xa4",
		"a\n",	    "a,b",
		"a/b",	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaz"};
	static const char *const good[] = {"main", "bad", "v1.2", "A", "cafes"};
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < COUNT(names); i++)
		expect_error(run_name_check(names[i], &err), PRONY_USAGE, &err, "cannot be a name");
	for (size_t i = 0; i < COUNT(good); i++)
		check(run_name_check(good[i], &err), &err);
	check(run_tag_check("2026", &err), &err);
	check(run_tag_check("cafe", &err), &err);
	expect_error(run_tag_check("a,b", &err), PRONY_USAGE, &err, "cannot be a tag");
	expect_error(run_tag_check(".a", &err), PRONY_USAGE, &err, "cannot be a tag");
}

STORE_TEST(runs_bear_tags)
{
	struct error err = ERROR_INIT;
	struct run_extent *runs;
	SCOPED(arena) arena;
	size_t count = 0;

	arena_init(&arena, 0);
	int64_t a = begin(f->store, 100, "main"), b = begin(f->store, 200, "");
	check(store_run_tag(f->store, a, "nightly", &err), &err);
	check(store_run_tag(f->store, a, "nightly", &err), &err);
	check(store_run_tag(f->store, a, "gcc", &err), &err);
	check(store_run_tag(f->store, b, "nightly", &err), &err);
	check(store_list_runs(f->store, NULL, &arena, &runs, &count, &err), &err);
	assert_int_equal(count, 2);
	assert_int_equal(runs[0].meta.id, b);
	assert_string_equal(runs[1].meta.tags, "gcc,nightly");
	assert_string_equal(runs[1].meta.name, "main");
	check(store_list_runs(f->store, "gcc", &arena, &runs, &count, &err), &err);
	assert_int_equal(count, 1);
	check(store_list_runs(f->store, "none", &arena, &runs, &count, &err), &err);
	assert_int_equal(count, 0);
	check(store_run_untag(f->store, a, "gcc", &err), &err);
	expect_error(store_run_untag(f->store, a, "gcc", &err), PRONY_BAD_INPUT, &err,
		     "has no tag 'gcc'");
}

/* An older store lacks these tables, and may be read-only. */
STORE_TEST(an_older_store_has_no_names)
{
	struct error err = ERROR_INIT;
	struct store *reader = NULL;
	struct stored_run run;

	begin(f->store, 100, "main");
	check(sql_run(f->store, "DROP TABLE run_name; DROP TABLE run_tag", "test", &err), &err);
	check(store_open(f->path, true, &reader, &err), &err);
	check(store_load_run(reader, "1", 0, &run, &err), &err);
	assert_string_equal(run.meta.name, "");
	assert_string_equal(run.meta.tags, "");
	stored_run_release(&run);
	expect_error(store_load_run(reader, "main", 0, &run, &err), PRONY_BAD_INPUT, &err,
		     "no run 'main'");
	store_close(reader);
}

STORE_TEST(names_are_imported)
{
	struct error err = ERROR_INIT;
	struct store *other = NULL;
	struct stored_run run;
	char *path = test_keep(path_join(f->folder, "other.db"));
	struct store_imported imported = {.runs = 0};

	begin(f->store, 50, "main");
	check(store_open(path, false, &other, &err), &err);
	int64_t id = begin(other, 100, "main");
	check(store_run_tag(other, id, "there", &err), &err);
	begin(other, 200, "feature");
	store_close(other);
	check(store_import(f->store, path, &imported, &err), &err);
	assert_int_equal(imported.runs, 2);
	check(store_load_run(f->store, "main", 0, &run, &err), &err);
	assert_int_equal(run.meta.id, 1);
	stored_run_release(&run);
	/* The name belongs to another run here. */
	check(store_load_run(f->store, "2", 0, &run, &err), &err);
	assert_string_equal(run.meta.name, "");
	assert_string_equal(run.meta.tags, "main,there");
	stored_run_release(&run);
	check(store_load_run(f->store, "feature", 0, &run, &err), &err);
	assert_int_equal(run.meta.id, 3);
	stored_run_release(&run);
}

STORE_TEST(a_cell_has_a_history)
{
	struct error err = ERROR_INIT;
	struct stored_run *runs = NULL;
	struct cell_name *cells = NULL;
	SCOPED(arena) arena;
	size_t count = 0;
	char hash[CELL_HASH_BYTES];

	arena_init(&arena, 0);
	struct cell native = fixture_cell("native", 8), mxnet = fixture_cell("mxnet", 8);
	for (int i = 0; i < 4; i++) {
		/* Times in another order than the run numbers. */
		int64_t run = begin(f->store, i == 0 ? 900 : 100 * i, ""), id = 0;
		struct process_record record;
		check(store_cell(f->store, run, &mxnet, &id, &err), &err);
		if (i == 2)
			continue;
		check(store_cell(f->store, run, &native, &id, &err), &err);
		fixture_record(&record, 0);
		check(store_process(f->store, id, &record, &err), &err);
		process_record_release(&record);
	}
	check(store_list_cells(f->store, &arena, &cells, &count, &err), &err);
	assert_int_equal(count, 2);
	cell_hash(&native, hash);
	assert_int_equal(cells[0].runs + cells[1].runs, 7);
	check(store_load_history(f->store,
				 &(struct history_request){.hash = hash, .until = 0, .most = 100},
				 &runs, &count, &err),
	      &err);
	assert_int_equal(count, 3);
	const int64_t order[] = {2, 4, 1};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(runs[i].meta.id, order[i]);
		assert_int_equal(runs[i].cell_count, 1);
		assert_string_equal(runs[i].cells[0].hash, hash);
		assert_int_equal(runs[i].cells[0].process_count, 1);
		stored_run_release(&runs[i]);
	}
	free(runs);
	check(store_load_history(f->store,
				 &(struct history_request){.hash = hash, .until = 0, .most = 2},
				 &runs, &count, &err),
	      &err);
	assert_int_equal(count, 2);
	assert_int_equal(runs[0].meta.id, 4);
	for (size_t i = 0; i < count; i++)
		stored_run_release(&runs[i]);
	free(runs);
	/* Up to a given run, however many came after it. */
	check(store_load_history(f->store,
				 &(struct history_request){.hash = hash, .until = 4, .most = 1},
				 &runs, &count, &err),
	      &err);
	assert_int_equal(count, 1);
	assert_int_equal(runs[0].meta.id, 4);
	stored_run_release(&runs[0]);
	free(runs);
}

/* Runs of jobs have a node, others may have their host as a place. */
STORE_TEST(a_cell_has_a_history_on_each_node)
{
	static const char *const nodes[] = {"n2", NULL, "n1", "n2"};
	static const char *const hosts[] = {"a", "b", "c", "d"};
	struct error err = ERROR_INIT;
	struct stored_run *runs = NULL;
	struct cell cell = fixture_cell("native", 8);
	const char **places = NULL;
	char hash[CELL_HASH_BYTES], environment[80];
	size_t count = 0;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	cell_hash(&cell, hash);
	for (int i = 0; i < 4; i++) {
		struct run_meta meta = fixture_meta(100 + i);
		int64_t id = 0;
		snprintf(environment, sizeof environment,
			 nodes[i] ? "{\"informational\":{\"node\":\"%s\"}}" : "not JSON", nodes[i]);
		snprintf(meta.host, sizeof meta.host, "%s", hosts[i]);
		meta.environment = environment;
		check(store_run_begin(f->store, &meta, &err), &err);
		check(store_cell(f->store, meta.id, &cell, &id, &err), &err);
	}
	check(store_list_places(f->store, hash, false, &arena, &places, &count, &err), &err);
	assert_int_equal(count, 3);
	assert_string_equal(places[0], "");
	assert_string_equal(places[2], "n2");
	check(store_list_places(f->store, hash, true, &arena, &places, &count, &err), &err);
	assert_int_equal(count, 3);
	assert_string_equal(places[0], "b");
	const struct history_request request = {.hash = hash, .place = "n2", .most = 9};
	check(store_load_history(f->store, &request, &runs, &count, &err), &err);
	assert_int_equal(count, 2);
	assert_int_equal(runs[1].meta.id, 4);
	assert_string_equal(runs[1].meta.node, "n2");
	for (size_t i = 0; i < count; i++)
		stored_run_release(&runs[i]);
	free(runs);
}
