/* Tests data sets in the formats of frameworks' own loaders: where they are found, and what workers
 * receive about them. */
#include "bundle/loader_data.h"
#include "datasets/convert.h"
#include "datasets/describe.h"
#include "unit_test.h"

#define SET "mnist-3000"

enum { EVALUATION = 600, TRAIN = 2400 };

static char *sources(void)
{
	const char *source = getenv("PRONY_SOURCE");

	return test_text("%s/datasets/" SET, source ? source : ".");
}

/* Makes a separate home, so that the user's data sets are not seen. */
static int make_home(void **state)
{
	setenv("XDG_DATA_HOME", test_folder(), 1);
	setenv("PRONY_SHARE", test_folder(), 1);
	unsetenv("PRONY_DATA");
	return test_folder_setup(state);
}

static void convert(const char *folder, const char *source, const char *format)
{
	struct convert_request request = {
		.source = source, .folder = folder, .format = data_format_find(format)};
	struct convert_result result;
	char *files = sources();

	assert_int_equal(samples_open(dataset_find(SET), files, false, &request.samples, NULL),
			 PRONY_OK);
	assert_int_equal(data_convert(&request, &result, NULL), PRONY_OK);
	samples_close(request.samples);
}

static enum prony_status locate(bool training, const char *option, struct converted *out,
				struct error *err)
{
	return dataset_locate_converted(dataset_find(SET), "recordio", training, option, out, err);
}

/* Photographs must be resized to one size if the format's reader requires it; otherwise they may
 * be. */
TEST_WITH(test_size_is_named, make_home, NULL)
{
	static const struct {
		const char *set, *format, *says;
	} rows[] = {
		{"imagenet-sample", "lmdb", "--to lmdb --size 256 -o "},
		{"imagenet-sample", "recordio", "--to recordio [--size N] -o "},
		{SET, "lmdb", "--to lmdb -o "},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct converted found;
		struct error err = ERROR_INIT;

		expect_error(dataset_locate_converted(dataset_find(rows[i].set), rows[i].format,
						      true, NULL, &found, &err),
			     PRONY_MISSING, &err, rows[i].says);
	}
}

TEST_WITH(test_locate, make_home, NULL)
{
	char *folder = test_text("%s/prony/data/" SET "-recordio/evaluation", (char *)*state);
	struct converted found = {.format = NULL};
	struct error err = ERROR_INIT;

	expect_error(locate(false, NULL, &found, &err), PRONY_MISSING, &err,
		     "prony data convert " SET " --to recordio -o ");
	assert_null(found.format);
	convert(folder, SET ", evaluation", "recordio");
	assert_int_equal(locate(false, NULL, &found, NULL), PRONY_OK);
	assert_string_equal(found.folder, folder);
	assert_string_equal(found.format, "recordio");
	assert_int_equal(found.samples, EVALUATION);
	assert_int_equal(found.size, 0);
	free(found.folder);
	/* The other part was not converted, and this one only by half. */
	assert_int_equal(locate(true, NULL, &found, NULL), PRONY_MISSING);
	char *whole = test_keep(path_join(folder, CONVERT_WHOLE));
	remove(whole);
	err = (struct error)ERROR_INIT;
	expect_error(locate(false, NULL, &found, &err), PRONY_MISSING, &err, "completely");
}

/* The folder with the name must contain this data set. */
TEST_WITH(test_another, make_home, NULL)
{
	char *option = test_text("%s/other", (char *)*state);
	char *folder = test_text("%s/" SET "-recordio/evaluation", option);
	struct converted found = {.format = NULL};
	struct error err = ERROR_INIT;

	convert(folder, "cifar10, evaluation", "recordio");
	expect_error(locate(false, option, &found, &err), PRONY_BAD_INPUT, &err,
		     CONVERT_WHOLE " is not about " SET ", evaluation");
	assert_int_equal(directory_remove(folder, NULL), PRONY_OK);
	convert(folder, SET ", evaluation", "lmdb");
	assert_int_equal(locate(false, option, &found, NULL), PRONY_BAD_INPUT);
}

/* Only notes as the program writes them count as a conversion. */
TEST_WITH(test_notes, make_home, NULL)
{
	static const char *const broken[] = {
		"",
		"source: mnist, train, 5 samples",
		"of: mnist, train, 5 samples\nformat: lmdb\nsize: as it is\nwritten: 5\n",
		"source: mnist\nformat: lmdb\nsize: as it is\nwritten: 5\n",
		"source: mnist, train, 5 samples\nformat: none\nsize: as it is\nwritten: 5\n",
		"source: mnist, train, 5 samples\nformat: lmdb\nsize: -1 x -1\nwritten: 5\n",
		"source: mnist, train, 5 samples\nformat: lmdb\nsize: 8 x 8\nwritten: 0\n",
		"source: mnist, train, 5 samples\nformat: lmdb\nsize: 8 x 8",
		"source: mnist, train, 5 samples\nformat: lmdb\nwritten: 5\n",
	};
	static const char good[] = "source: a, b, train, 5 samples\nformat: lmdb\nsize: 8 x 8\n"
				   "written: 4\nleft out: 1\n";
	char *path = test_path(CONVERT_WHOLE);
	struct conversion_note note;

	for (size_t i = 0; i < COUNT(broken); i++) {
		struct error err = ERROR_INIT;

		assert_int_equal(file_write_atomic(path, broken[i], strlen(broken[i]), NULL),
				 PRONY_OK);
		if (conversion_note_read(*state, &note, &err) != PRONY_BAD_INPUT ||
		    !strstr(err.text, path) || !strstr(err.text, "convert again"))
			fail_msg("%s: %s", broken[i], err.text);
	}
	assert_int_equal(file_write_atomic(path, good, strlen(good), NULL), PRONY_OK);
	assert_int_equal(conversion_note_read(*state, &note, NULL), PRONY_OK);
	assert_string_equal(note.source, "a, b, train");
	assert_ptr_equal(note.format, data_format_find("lmdb"));
	assert_int_equal(note.size, 8);
	assert_int_equal(note.samples, 4);
	free(note.source);
	assert_int_equal(remove(path), 0);
}

TEST(test_described)
{
	struct converted converted = {
		.format = "lmdb", .folder = memory_strdup("/d/train"), .samples = 7, .size = 64};
	struct converted none = {.format = NULL};
	const struct dataset *dataset = dataset_find("imagenet-sample");
	struct loader_data data;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	json_t *json = dataset_to_json(dataset, "/x", true, &converted);
	assert_int_equal(loader_data_from_json(json, &arena, &data, NULL), PRONY_OK);
	assert_string_equal(data.format, "lmdb");
	assert_int_equal(data.path_count, 1);
	assert_string_equal(data.paths[0], "/d/train");
	assert_int_equal(data.first, 0);
	assert_int_equal(data.count, 7);
	assert_int_equal(data.channels, 3);
	assert_int_equal(data.height, 64);
	assert_int_equal(data.width, 64);
	assert_true(data.training);
	assert_true(data.mean[2] == dataset->mean[2]);
	json_decref(json);
	/* The published form: two files in a shard, and the position in them at which the part
	 * begins. */
	json = dataset_to_json(dataset_find(SET), "/m", false, &none);
	assert_int_equal(loader_data_from_json(json, &arena, &data, NULL), PRONY_OK);
	assert_string_equal(data.format, "idx");
	assert_int_equal(data.path_count, 2);
	assert_int_equal(data.first, TRAIN);
	assert_int_equal(data.count, EVALUATION);
	json_decref(json);
	free(converted.folder);
}

TEST(test_broken_descriptions)
{
	static const struct {
		const char *key, *value, *says;
	} rows[] = {
		{"name", "3", "'name'"},
		{"format", "[]", "'format'"},
		{"shards", "[]", "must contain arrays of paths"},
		{"shards", "[[]]", "must contain arrays of paths"},
		{"shards", "[[3]]", "every path must be a string"},
		{"first", "-1", "must be 0 or more"},
		{"count", "0", "1 or more"},
		{"shape", "[3, 2]", "must be three integers"},
		{"shape", "[5, 2, 2]", "must be three integers"},
		{"shape", "[0, 2, 2]", "must be three integers"},
		{"shape", "[1, -2, 2]", "must be three integers"},
		{"mean", "[1, 2]", "\"mean\" has 2 numbers; it needs one"},
		{"deviation", "[\"x\"]", "\"deviation\" must contain only numbers"},
		{"deviation", "[0]", "must be greater than 0"},
		{"scale", "0", "must be greater than 0"},
		{"training", "1", "'training'"},
	};
	struct converted none = {.format = NULL};

	for (size_t i = 0; i < COUNT(rows); i++) {
		json_auto_t *json = dataset_to_json(dataset_find(SET), "/m", false, &none);
		struct loader_data data;
		SCOPED(arena) arena;
		struct error err = ERROR_INIT;

		arena_init(&arena, 0);
		json_object_set_new(json, rows[i].key,
				    json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
		expect_error(loader_data_from_json(json, &arena, &data, &err), PRONY_BAD_INPUT,
			     &err, rows[i].says);
	}
}
