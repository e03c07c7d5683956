/* Tests the table of data sets: where they are looked for, checks of their files, downloads. */
#include "base/digest.h"
#include "datasets/dataset.h"
#include "datasets/format.h"
#include "unit_test.h"

/* Makes a folder for each test and sets it as the data home, so that the user's data sets are not
 * seen. */
static int make_folder(void **state)
{
	setenv("XDG_DATA_HOME", test_folder(), 1);
	unsetenv("PRONY_DATA");
	setenv("PRONY_SHARE", test_path("share"), 1);
	setenv("PRONY_SHARED", test_path("shared"), 1);
	return test_folder_setup(state);
}

/* Returns PRONY_OK if every file of a data set is intact; otherwise the message names the first
 * broken one. */
static enum prony_status verify_all(const struct dataset *dataset, const char *folder,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; status == PRONY_OK && dataset->files[i].name; i++)
		status = dataset_verify_file(dataset, &dataset->files[i], folder, NULL, err);
	return status;
}

#define AT_HOME(name) TEST_WITH(name, make_folder, NULL)

static void put_file(const char *folder, const char *name, const char *text)
{
	char *path = test_keep(path_join(folder, name));

	assert_int_equal(directory_make(folder, NULL), PRONY_OK);
	assert_int_equal(file_write_atomic(path, text, strlen(text), NULL), PRONY_OK);
}

/* Makes all files of a data set; only their names are right. */
static void put_dataset(const char *folder, const struct dataset *dataset)
{
	for (const struct dataset_file *file = dataset->files; file->name; file++)
		put_file(folder, file->name, "x");
}

static char *shipped_folder(void)
{
	const char *source = getenv("PRONY_SOURCE");

	assert_non_null(source);
	return test_text("%s/datasets/mnist-3000", source);
}

TEST(table_is_sound)
{
	for (size_t i = 0; i < dataset_count; i++) {
		const struct dataset *row = &dataset_table[i];

		assert_ptr_equal(dataset_find(row->name), row);
		for (int c = 0; row->format && c < (int)row->dims[0]; c++)
			assert_true(row->scale > 0 && row->deviation[c] > 0);
		assert_true(!row->format || data_format_find(row->format));
		if (row->sample)
			assert_non_null(dataset_find(row->sample));
		for (const struct dataset_file *file = row->files; file->name; file++) {
			assert_true(file->bytes > 0 || file->tar_bytes > 0 ||
				    file->part == PART_NAMES);
			assert_true(!file->sha256 ||
				    strspn(file->sha256, "0123456789abcdef") == 64);
			assert_true(!file->url || strncmp(file->url, "https://", 8) == 0);
		}
	}
	assert_null(dataset_find("mnis"));
	assert_string_equal(dataset_nearest("mnis"), "mnist");
	assert_null(dataset_nearest("zzzzzzzzzzz"));
}

AT_HOME(places_in_order)
{
	const struct dataset *mnist = dataset_find("mnist");
	const char *root = *state;
	const struct {
		const char *place, *variable;
	} places[] = {
		/* From the last place that is searched to the first. */
		{"share/datasets/mnist", NULL}, {"shared/data/mnist", NULL},
		{"prony/data/mnist", NULL},	{"variable/mnist", "variable"},
		{"option/mnist", "variable"},
	};
	struct error err = ERROR_INIT;
	char *option = test_keep(path_join(root, "option")), *folder = NULL;

	assert_int_equal(dataset_locate(mnist, option, &folder, &err), PRONY_MISSING);
	assert_null(folder);
	assert_has(err.text, "option/mnist");
	assert_has(err.text, "prony/data/mnist");
	assert_has(err.text, "prony data fetch mnist");
	assert_has(err.text, "mnist-3000");
	for (size_t i = 0; i < COUNT(places); i++) {
		char *place = test_keep(path_join(root, places[i].place));

		if (places[i].variable) {
			char *variable = test_keep(path_join(root, places[i].variable));
			setenv("PRONY_DATA", variable, 1);
		}
		put_dataset(place, mnist);
		assert_int_equal(dataset_locate(mnist, option, &folder, NULL), PRONY_OK);
		assert_string_equal(folder, place);
		free(folder);
	}
	/* A folder without one of the files is skipped. */
	char *file = test_text("%s/option/mnist/%s", root, mnist->files[3].name);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(dataset_locate(mnist, option, &folder, NULL), PRONY_OK);
	assert_has(folder, "/variable/mnist");
	free(folder);
}

/* A folder with the name of the whole data set may hold the sample; this is recognised by the file
 * sizes. */
AT_HOME(a_sample_under_the_name_of_the_whole)
{
	const struct dataset *sample = dataset_find("mnist-sample");
	char *place = test_path("option/mnist"), *option = test_path("option");
	char *folder = NULL;
	struct error err = ERROR_INIT;

	put_dataset(place, sample);
	assert_int_equal(dataset_locate(sample, option, &folder, &err), PRONY_MISSING);
	assert_has(err.text, sample->files[0].name);
	assert_has(err.text, "bytes instead of");
	assert_has(err.text, "truncated");
	for (const struct dataset_file *file = sample->files; file->name; file++) {
		char *path = test_keep(path_join(place, file->name));

		assert_int_equal(truncate(path, file->bytes), 0);
	}
	assert_int_equal(dataset_locate(sample, option, &folder, NULL), PRONY_OK);
	assert_string_equal(folder, place);
	assert_int_equal(dataset_locate(dataset_find("mnist"), option, &folder, NULL),
			 PRONY_MISSING);
	free(folder);
}

AT_HOME(synthetic_has_no_folder)
{
	char *folder = (char *)"unset";

	assert_int_equal(dataset_locate(dataset_find("synthetic"), NULL, &folder, NULL), PRONY_OK);
	assert_null(folder);
}

TEST(shipped_sample_is_whole)
{
	char *folder = shipped_folder();
	struct error err = ERROR_INIT;

	check(verify_all(dataset_find("mnist-3000"), folder, &err), &err);
}

/* Copies the shipped labels and changes them. */
AT_HOME(broken_file_is_named)
{
	const struct dataset *sample = dataset_find("mnist-3000");
	const struct dataset_file *labels = &sample->files[1];
	char *shipped = shipped_folder(), *from = test_keep(path_join(shipped, labels->name));
	char *to = test_path(labels->name), *bytes;
	size_t length;
	struct error err = ERROR_INIT;

	assert_int_equal(file_read(from, 1 << 20, &bytes, &length, NULL), PRONY_OK);
	assert_int_equal(dataset_verify_file(sample, labels, *state, NULL, &err), PRONY_MISSING);
	error_clear(&err);
	assert_int_equal(file_write_atomic(to, bytes, length, NULL), PRONY_OK);
	check(dataset_verify_file(sample, labels, *state, NULL, &err), &err);
	assert_int_equal(file_write_atomic(to, bytes, length - 1, NULL), PRONY_OK);
	assert_int_equal(dataset_verify_file(sample, labels, *state, NULL, &err), PRONY_BAD_INPUT);
	assert_has(err.text, to);
	assert_has(err.text, test_text("%zu bytes instead of %zu", length - 1, length));
	error_clear(&err);
	bytes[length / 2] ^= 1;
	assert_int_equal(file_write_atomic(to, bytes, length, NULL), PRONY_OK);
	assert_int_equal(dataset_verify_file(sample, labels, *state, NULL, &err), PRONY_BAD_INPUT);
	assert_has(err.text, to);
	assert_has(err.text, "SHA-256");
	assert_has(err.text, "install the program again");
	free(bytes);
}

struct said {
	int lines;
	char last[128];
};

static void listen(void *context, const char *text)
{
	struct said *said = context;

	said->lines++;
	snprintf(said->last, sizeof(said->last), "%s", text);
}

/* Puts a program on PATH in place of curl; the word after --output names the file. */
static void fake_program(const char *root, const char *name, const char *body)
{
	char *folder = test_keep(path_join(root, "bin")),
	     *path = test_keep(path_join(folder, name));
	char *script = test_text("#!/bin/sh\nurl=; out=\nwhile [ $# -gt 0 ]; do\n"
				 "case $1 in --output) out=$2; shift;; https:*) url=$1;; esac\n"
				 "shift; done\n%s\n",
				 body);

	put_file(folder, name, script);
	assert_int_equal(chmod(path, 0755), 0);
	char *search = test_text("%s:/usr/bin:/bin", folder);
	setenv("PATH", search, 1);
}

static void fake_curl(const char *root, const char *body)
{
	fake_program(root, "curl", body);
}

static bool is_empty(const char *folder)
{
	const char *command = "test -z \"$(ls -A '%s')\"";
	char *line = test_text(command, folder);
	bool empty = system(line) == 0;

	return empty;
}

AT_HOME(failed_downloads_leave_nothing)
{
	static const struct {
		const char *body, *message;
		enum prony_status status;
	} rows[] = {
		{"echo 'curl: (6) Could not resolve host' >&2; exit 6", "Could not resolve host",
		 PRONY_IO},
		{"echo part > \"$out\"; kill -9 $$", "killed by signal 9", PRONY_IO},
		{"echo '<html>login</html>' > \"$out\"", "is not the published one",
		 PRONY_BAD_INPUT},
		{"exit 0", "is not the published one", PRONY_MISSING},
	};
	const struct dataset *mnist = dataset_find("mnist");
	char *folder = test_path("target");

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		struct said said = {0};

		fake_curl(*state, rows[i].body);
		enum prony_status status = dataset_fetch(mnist, folder, listen, &said, &err);
		if (status != rows[i].status || !strstr(err.text, rows[i].message) ||
		    !strstr(err.text, mnist->files[0].url))
			fail_msg("row %zu: status %d, %s", i, status, err.text);
		assert_string_equal(said.last, "train-images-idx3-ubyte.gz: downloading");
		assert_true(is_empty(folder));
	}
}

/* Intact files stay. Only the others are fetched; a file gets its name once it is complete. */
AT_HOME(only_what_lacks_is_fetched)
{
	char *shipped = shipped_folder(), *folder = test_path("target");
	char *body = test_text("cp '%s'/$(basename $url) \"$out\" && echo $url >> '%s/urls'",
			       shipped, (char *)*state);
	/* A data set whose files are all available. */
	struct dataset small = *dataset_find("mnist-3000");
	struct error err = ERROR_INIT;
	struct said said = {0};

	small.shipped = false;
	small.files[0].url = "https://nowhere/images-idx3-ubyte.gz";
	small.files[1].url = "https://nowhere/labels-idx1-ubyte.gz";
	fake_curl(*state, body);
	check(dataset_fetch(&small, folder, listen, &said, &err), &err);
	check(verify_all(&small, folder, &err), &err);
	put_file(folder, small.files[1].name, "broken");
	check(dataset_fetch(&small, folder, NULL, NULL, &err), &err);
	check(verify_all(&small, folder, &err), &err);
	said.lines = 0;
	check(dataset_fetch(&small, folder, listen, &said, &err), &err);
	assert_int_equal(said.lines, 2);
	assert_string_equal(said.last, "labels-idx1-ubyte.gz: already there");
	char *log = test_path("urls"), *urls;
	size_t length, lines = 0;
	assert_int_equal(file_read(log, 1 << 16, &urls, &length, NULL), PRONY_OK);
	for (size_t i = 0; i < length; i++)
		lines += urls[i] == '\n';
	assert_int_equal(lines, 3);
	free(urls);

	/* Nothing is fetched, and nothing written, if a shared folder has it. */
	const char *shared = test_path("shared/data/mnist-3000");
	assert_int_equal(directory_make(test_path("shared/data"), NULL), PRONY_OK);
	assert_int_equal(rename(folder, shared), 0);
	assert_int_equal(dataset_fetch(&small, NULL, listen, &said, &err), PRONY_OK);
	assert_string_equal(said.last, test_text("%s: already there", shared));
	assert_false(file_exists(test_path("prony")));
}

/* A data set published as one archive: only the required files are extracted from it. */
AT_HOME(an_archive_is_unpacked)
{
	char *shipped = shipped_folder(), *folder = test_path("target");
	char *archive = test_path("a.tar.gz"), *names = test_path("tree/in/names");
	char *line =
		test_text("mkdir -p '%s/tree/in' && cp '%s'/* '%s/tree/in' && "
			  "printf 'a\\nb\\n\\n' > '%s' && tar -czf '%s' -C '%s/tree' in",
			  (char *)*state, shipped, (char *)*state, names, archive, (char *)*state);
	char *body = test_text("cp '%s' \"$out\"", archive), hex[DIGEST_HEX_BYTES];
	struct dataset small = *dataset_find("mnist-3000");
	struct error err = ERROR_INIT;
	struct said said = {0};
	struct stat info;

	assert_int_equal(system(line), 0);
	assert_int_equal(digest_file(archive, hex, NULL), PRONY_OK);
	assert_int_equal(stat(archive, &info), 0);
	small.shipped = false;
	small.classes = 2;
	small.files[2] = (struct dataset_file){.part = PART_NAMES, .name = "names"};
	small.archive = (struct dataset_archive){.file = {.name = "a.tar.gz",
							  .sha256 = hex,
							  .bytes = info.st_size,
							  .url = "https://nowhere/a.tar.gz"},
						 .folder = "in"};
	fake_curl(*state, body);
	for (int i = 0; i < 2; i++) {
		check(dataset_fetch(&small, folder, listen, &said, &err), &err);
		check(verify_all(&small, folder, &err), &err);
		assert_string_equal(said.last,
				    i == 0 ? "a.tar.gz: downloading" : "names: already there");
	}
	/* Only the files remain. */
	char *count = test_text("test $(ls -A '%s' | wc -l) = 3", folder);
	assert_int_equal(system(count), 0);
	hex[0] ^= 1;
	char *other = test_path("other");
	expect_error(dataset_fetch(&small, other, NULL, NULL, &err), PRONY_BAD_INPUT, &err,
		     "the file from https://nowhere/a.tar.gz is not");
	assert_true(is_empty(other));
}

/* A file out of a package of Debian, by the system's own programs. */
AT_HOME(a_package_is_unpacked)
{
	struct dataset small = *dataset_find("mnist-3000");
	char *folder = test_path("target");
	char *copy = test_text("mkdir -p in && cp '%s'/* in", shipped_folder());
	struct error err = ERROR_INIT;

	small.shipped = false;
	small.archive =
		(struct dataset_archive){.file = {.name = "p"}, .folder = "in", .is_package = true};
	fake_program(*state, "dpkg-deb", copy);
	fake_program(*state, "apt-get", "echo no network >&2; exit 100");
	expect_error(dataset_fetch(&small, folder, NULL, NULL, &err), PRONY_IO, &err,
		     "no network; take its file in/images-idx3-ubyte.gz elsewhere");
	assert_true(is_empty(folder));
	fake_program(*state, "apt-get", ": > p_1.deb");
	check(dataset_fetch(&small, folder, NULL, NULL, &err), &err);
	check(verify_all(&small, folder, &err), &err);
}

AT_HOME(names_of_classes)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"cat\ndog\n", NULL},
		{"cat\r\ndog\r\n\n", NULL},
		{"cat\ndog", NULL},
		{"cat\n", "line 2: class name 2 of 2 is missing"},
		{"", "line 1: class name 1"},
		{"cat\n\ndog\n", "line 3: unexpected name after 1 of 2 class names"},
		{"a\nb\nc\n", "line 3"},
	};
	const struct dataset toy = {.name = "toy",
				    .format = "idx",
				    .classes = 2,
				    .files = {{.part = PART_NAMES, .name = "names"}}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		const char **names = NULL;
		SCOPED(arena) arena;

		arena_init(&arena, 0);
		put_file(*state, "names", rows[i].text);
		enum prony_status status = dataset_class_names(&toy, *state, &arena, &names, &err);
		assert_int_equal(status, rows[i].message ? PRONY_BAD_INPUT : PRONY_OK);
		assert_int_equal(verify_all(&toy, *state, NULL), status);
		if (rows[i].message && (!strstr(err.text, rows[i].message) || names))
			fail_msg("row %zu: %s", i, err.text);
		if (!rows[i].message)
			assert_string_equal(names[1], "dog");
	}
}

AT_HOME(nothing_to_fetch)
{
	static const char *const names[] = {"synthetic", "mnist-3000"};

	for (size_t i = 0; i < 2; i++) {
		struct error err = ERROR_INIT;

		expect_error(dataset_fetch(dataset_find(names[i]), *state, NULL, NULL, &err),
			     PRONY_BAD_INPUT, &err, "nothing to fetch");
	}
}

AT_HOME(no_downloader)
{
	struct error err = ERROR_INIT;

	setenv("PATH", *state, 1);
	expect_error(dataset_fetch(dataset_find("mnist"), *state, NULL, NULL, &err), PRONY_MISSING,
		     &err, "neither curl nor wget");
	setenv("PATH", "/usr/bin:/bin", 1);
}
