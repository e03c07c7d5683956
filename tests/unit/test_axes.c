/* Tests every row of cell/axes.h from the suite's key to the export, and stores from before all
 * rows existed. */
#include <sqlite3.h>

#include "frameworks/registry.h"
#include "plan/plan.h"
#include "report/export.h"
#include "spec/spec.h"
#include "tests/unit/store_fixture.h"
#include "unit_test.h"

static struct registry registry;

static int setup(void **state)
{
	(void)state;
	setenv("PRONY_SHARE", getenv("PRONY_SOURCE"), 1);
	return registry_load(&registry, NULL) == PRONY_OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	registry_release(&registry);
	return 0;
}

/* Returns a word of the axis that is not its default. */
static const char *other_word(const struct axis *axis)
{
	switch (axis->type) {
	case AXIS_FRAMEWORK_TYPE:
		return "fake+crash-at=build";
	case AXIS_WORD:
		for (int i = 0; i < axis->vocabulary->count; i++)
			if (strcmp(axis->vocabulary->words[i], axis->initial) != 0 &&
			    strcmp(axis->vocabulary->words[i], "forward") != 0)
				return axis->vocabulary->words[i];
		return "?";
	case AXIS_INT:
		return "7";
	case AXIS_REAL:
		return "0.123456789012345";
	case AXIS_SWITCH:
		return "off";
	case AXIS_TEXT:
		break;
	}
	return axis == &axes[AXIS_NETWORK]   ? "mlp"
	       : axis == &axes[AXIS_DATASET] ? "synthetic"
					     : "cpu:1";
}

/* Makes the one cell of a suite that names only one axis, by its plural or its singular key. */
static void cell_of_suite(const struct axis *axis, const char *key, const char *word,
			  const char *folder, struct plan_cell *out)
{
	char *path = test_keep(path_join(folder, "one.yaml")), text[256];
	struct plan_settings settings = {
		.registry = &registry, .self = "/usr/bin/prony", .cores = 2};
	struct error err = ERROR_INIT;
	SCOPED(spec) spec;
	SCOPED(plan) plan;

	snprintf(text, sizeof text, "%s: %s\n%s%s", key, word,
		 axis == &axes[AXIS_FRAMEWORK] ? "" : "frameworks: fake\n",
		 axis == &axes[AXIS_SEQUENCE] ? "networks: gpt2-bytes\n" : "");
	check(file_write_atomic(path, text, strlen(text), &err), &err);
	spec_init(&spec);
	check(spec_read_file(&spec, path, &err), &err);
	spec_complete(&spec);
	check(plan_expand(&spec, &settings, &plan, &err), &err);
	assert_int_equal(plan.count, 1);
	*out = plan.cells[0];
}

/* Copies the value of the column from the only row of the CSV. */
static void csv_value(const char *csv, const char *column, char *out, size_t bytes)
{
	const char *name = csv, *value = strchr(csv, '\n') + 1;

	while (strncmp(name, column, strlen(column)) != 0 || name[strlen(column)] != ',') {
		name = strchr(name, ',') + 1;
		value = strchr(value, ',') + 1;
	}
	snprintf(out, bytes, "%.*s", (int)strcspn(value, ","), value);
}

static void stored_and_exported(struct store *store, const struct axis *axis,
				const struct plan_cell *cell, const char *word)
{
	struct run_meta meta = fixture_meta(1);
	struct error err = ERROR_INIT;
	SCOPED(stored_run) run;
	SCOPED(summary) summary;
	struct strbuf *csv = test_strbuf();
	char text[CELL_WORD_BYTES];
	int64_t id = 0;

	check(store_run_begin(store, &meta, &err), &err);
	check(store_cell(store, meta.id, &cell->cell, &id, &err), &err);
	check(store_load_run(store, meta.uid, 0, &run, &err), &err);
	const struct cell *back = &run.cells[0].cell;
	for (int i = 0; i < AXIS_COUNT; i++)
		assert_true(axis_equal(&axes[i], back, &cell->cell));
	assert_string_equal(run.cells[0].key, cell->key);
	assert_string_equal(run.cells[0].hash, cell->hash);
	axis_text(axis, axis_value(axis, back), text);
	assert_string_equal(text, word);
	summary_init(&summary, &run);
	check(export_csv_long(&summary, csv, &err), &err);
	csv_value(strbuf_text(csv), axis->name, text, sizeof text);
	assert_string_equal(text, word);
	json_t *object = json_object(), *expected = axis_to_json(axis, axis_value(axis, back));
	cell_axes_to_json(back, object);
	assert_true(json_equal(json_object_get(object, axis->name), expected));
	json_decref(object);
	json_decref(expected);
}

STORE_TEST(every_row_goes_round)
{
	struct plan_cell plain, cell;

	cell_of_suite(&axes[AXIS_BATCH], "batches", axes[AXIS_BATCH].initial, f->folder, &plain);
	for (int id = 0; id < AXIS_COUNT; id++) {
		const struct axis *axis = &axes[id];
		const char *word = other_word(axis);
		char said[2 * CELL_WORD_BYTES];

		cell_of_suite(axis, axis->plural, word, f->folder, &cell);
		snprintf(said, sizeof said, "%s=%s", axis->name, word);
		assert_has(cell.key, said);
		assert_string_not_equal(cell.hash, plain.hash);
		/* Axes that were added later do not appear at their default. */
		snprintf(said, sizeof said, " %s=", axis->name);
		if (axis->texts != AXIS_IN_KEY_AND_SPEC)
			assert_lacks(plain.key, said);
		else if (id > 0)
			assert_has(plain.key, said);
		stored_and_exported(f->store, axis, &cell, word);
		if (!axis->settable)
			continue;
		struct plan_cell same;
		cell_of_suite(axis, axis->singular, word, f->folder, &same);
		assert_string_equal(same.hash, cell.hash);
	}
}

/* The recipe sent to a worker has the values of the cell. */
STORE_TEST(recipes_have_what_cells_have)
{
	for (int id = 0; id < AXIS_COUNT; id++) {
		const struct axis *axis = &axes[id];
		struct plan_cell cell;

		cell_of_suite(axis, axis->plural, other_word(axis), f->folder, &cell);
		json_auto_t *recipe = recipe_to_json(&cell.recipe);
		json_t *told = json_object_get(recipe, axis->name);
		json_auto_t *expected = axis_to_json(axis, axis_value(axis, &cell.cell));
		if (axis->type != AXIS_TEXT && id != AXIS_SYNC && told)
			assert_true(json_equal(told, expected));
		else
			assert_true(axis->type == AXIS_TEXT || !told);
	}
}

/* The orders are places: each occurs once, and the axes of titles are in the order of titles. */
TEST(orders_are_distinct)
{
	for (int place = 0; place < AXIS_COUNT; place++)
		assert_true(axis_in_order(place) < AXIS_COUNT);
	assert_int_equal(axis_in_order(0), AXIS_NETWORK);
	assert_int_equal(axis_in_order(AXIS_COUNT - 1), AXIS_FRAMEWORK);
}

STORE_TEST(unknown_keys_suggest_the_nearest)
{
	char *path = test_keep(path_join(f->folder, "one.yaml"));

	for (int id = 0; id < AXIS_COUNT; id++) {
		const char *keys[] = {axes[id].plural,
				      axes[id].settable ? axes[id].singular : NULL};

		for (int k = 0; k < 2 && keys[k]; k++) {
			char text[128], meant[128];
			struct error err = ERROR_INIT;
			SCOPED(spec) spec;

			/* Removes one letter in the middle of the key. */
			snprintf(text, sizeof text, "%.*s%s: 1\n", (int)strlen(keys[k]) / 2,
				 keys[k], keys[k] + strlen(keys[k]) / 2 + 1);
			snprintf(meant, sizeof meant, "did you mean %s?", keys[k]);
			check(file_write_atomic(path, text, strlen(text), &err), &err);
			spec_init(&spec);
			expect_error(spec_read_file(&spec, path, &err), PRONY_BAD_INPUT, &err,
				     meant);
		}
	}
}

/* Makes the store of tests/golden/store/schema-1.sql in the folder; the caller frees its path. */
static char *make_old_store(const char *folder)
{
	char *path = path_join(folder, "old.db"), *sql = NULL;
	char *source =
		test_keep(path_join(getenv("PRONY_SOURCE"), "tests/golden/store/schema-1.sql"));
	struct error err = ERROR_INIT;
	size_t length = 0;
	sqlite3 *db = NULL;

	check(file_read(source, 1 << 20, &sql, &length, &err), &err);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	free(sql);
	return path;
}

static void expect_old_run(struct store *store, const char *which, bool dropout)
{
	struct error err = ERROR_INIT;
	SCOPED(stored_run) run;
	char key[CELL_KEY_BYTES], hash[CELL_HASH_BYTES];

	check(store_load_run(store, which, 0, &run, &err), &err);
	assert_int_equal(run.cell_count, 4);
	for (size_t i = 0; i < run.cell_count; i++) {
		const struct stored_cell *cell = &run.cells[i];

		cell_key(&cell->cell, key);
		cell_hash(&cell->cell, hash);
		assert_string_equal(cell->key, key);
		assert_string_equal(cell->hash, hash);
		assert_int_equal(cell->cell.dropout, dropout);
		assert_true(cell->cell.learning_rate == 0.001);
		assert_true(cell->process_count > 0);
	}
}

/* Reads the old store unchanged, then upgraded; a cell of the new program is found by its hash. */
STORE_TEST(old_stores_are_read_and_resumed)
{
	char *path = test_keep(make_old_store(f->folder));
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	struct stored_run run;
	int64_t found = 0, id = 0;

	check(store_open(path, true, &store, &err), &err);
	expect_old_run(store, "1", true);
	expect_old_run(store, "2", false);
	store_close(store);
	check(store_open(path, false, &store, &err), &err);
	expect_old_run(store, "2", false);
	check(store_load_run(store, "2", 0, &run, &err), &err);
	check(store_run_unfinished(store, run.meta.spec, "0123456789abcdef", &found, &err), &err);
	assert_int_equal(found, 2);
	for (size_t i = 0; i < run.cell_count; i++) {
		check(store_cell(store, 2, &run.cells[i].cell, &id, &err), &err);
		assert_int_equal(id, run.cells[i].id);
	}
	stored_run_release(&run);
	store_close(store);
	/* Also imports it into a current store. */
	struct store_imported imported = {.runs = 0};
	check(store_import(f->store, path, &imported, &err), &err);
	assert_int_equal(imported.runs, 2);
	expect_old_run(f->store, "2", false);
}

/* A current request has the same spec text as then; otherwise --resume would not find the run. */
STORE_TEST(old_specs_are_found)
{
	char *path = test_keep(make_old_store(f->folder));
	static const struct {
		enum axis_id axis;
		const char *words;
	} asked[] = {{AXIS_FRAMEWORK, "null,fake"}, {AXIS_NETWORK, "mlp"},
		     {AXIS_DATASET, "synthetic"},   {AXIS_BATCH, "4"},
		     {AXIS_STAGE, "forward,train"}, {AXIS_OPTIMISER, "sgd"},
		     {AXIS_DROPOUT, "off"}};
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	SCOPED(stored_run) run;
	SCOPED(spec) spec;

	spec_init(&spec);
	for (size_t i = 0; i < COUNT(asked); i++)
		check(spec_set_axis(&spec, asked[i].axis, &asked[i].words, 1, "-x", &err), &err);
	spec.effort = EFFORT_QUICK;
	spec_fix_steps(&spec, 3);
	spec_fix_warm_up(&spec, 1);
	spec_complete(&spec);
	char *text = test_keep(spec_canonical(&spec));
	check(store_open(path, true, &store, &err), &err);
	check(store_load_run(store, "2", 0, &run, &err), &err);
	assert_string_equal(run.meta.spec, text);
	store_close(store);
}

int main(void)
{
	return unit_tests_run(setup, teardown);
}
