/* IDX files: every way in which one can be broken has its message; what is written is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/idx.h"
#include "tests/fuzz/fuzz_idx.h"

#define LIMIT_BYTES ((size_t)1 << 20)

/* Each file of the seed corpus: the part of the message that tells what is broken, or its shape. */
static const struct sample {
	const char *name, *message;
	int rank;
	int64_t dims[IDX_MAX_RANK];
} samples[] = {
	{"labels", NULL, 1, {5}},
	{"images", NULL, 3, {2, 3, 4}},
	{"rank-4", NULL, 4, {2, 1, 2, 2}},
	{"images-gz", NULL, 3, {2, 3, 4}},
	{"named-gz", NULL, 3, {2, 3, 4}},
	{"two-members-gz", NULL, 3, {2, 3, 4}},
	{"bomb-gz", NULL, 1, {1048576}},
	{"empty", "truncated: the magic number need 4 bytes from offset 0", 0, {0}},
	{"one-byte", "truncated: the magic number", 0, {0}},
	{"magic-only", "truncated: the dimensions need 4 bytes from offset 4", 0, {0}},
	{"bad-magic", "no IDX file: offset 0 holds 47 49 46 38", 0, {0}},
	{"floats", "offset 2 names the element type 0x0d", 0, {0}},
	{"rank-0", "offset 3 says 0 dimensions", 0, {0}},
	{"rank-5", "offset 3 says 5 dimensions", 0, {0}},
	{"dim-0", "dimension 1 at offset 8 is 0", 0, {0}},
	{"dims-short", "truncated: the dimensions need 12 bytes from offset 4", 0, {0}},
	{"data-short", "truncated: the dimensions promise 24 bytes from offset 16", 0, {0}},
	{"trailing", "trailing bytes: the dimensions end the data at offset 40", 0, {0}},
	{"huge", "too large: dimension 0 at offset 4 is 4294967295", 0, {0}},
	{"promises-more", "promise 1000000 bytes from offset 12", 0, {0}},
	{"promises-more-gz", "promise 524288 bytes from offset 12", 0, {0}},
	{"short-gz", "truncated: ", 0, {0}},
	{"no-end-gz", "truncated: ", 0, {0}},
	{"head-only-gz", "truncated: ", 0, {0}},
	{"bad-crc-gz", "corrupt compressed data", 0, {0}},
	{"corrupt-gz", "", 0, {0}},
	{"trailing-gz", "trailing bytes: 1 bytes follow the compressed data", 0, {0}},
	{"gz-in-gz", "no IDX file: offset 0 holds 1f 8b", 0, {0}},
	{"empty-gz", "truncated: the magic number", 0, {0}},
};

static char *corpus_path(const char *name)
{
	const char *source = getenv("PRONY_SOURCE");

	assert_non_null(source);
	return memory_printf("%s/tests/fuzz/corpus/idx%s%s", source, *name ? "/" : "", name);
}

static void check_sample(const struct sample *sample)
{
	struct error err = ERROR_INIT;
	struct idx idx = {0};
	char *path = corpus_path(sample->name);
	enum prony_status status = idx_read(path, LIMIT_BYTES, &idx, &err);

	if (status != (sample->message ? PRONY_BAD_INPUT : PRONY_OK))
		fail_msg("%s: status %d, %s", sample->name, status, err.text);
	if (sample->message) {
		/* File, what is broken, remedy. */
		if (strncmp(err.text, path, strlen(path)) != 0 ||
		    !strstr(err.text, sample->message) ||
		    !(strstr(err.text, "prony data fetch") || strstr(err.text, "convert")))
			fail_msg("%s: %s", sample->name, err.text);
		assert_null(idx.data);
	} else {
		assert_int_equal(idx.rank, sample->rank);
		for (int i = 0; i < idx.rank; i++)
			assert_int_equal(idx.dims[i], sample->dims[i]);
	}
	idx_release(&idx);
	free(path);
}

static void each_sample(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		check_sample(&samples[i]);
}

/* Also each file cut at every length and with every bit of its first bytes turned. */
static void abuse(const uint8_t *bytes, size_t length)
{
	for (size_t cut = 0; cut < length; cut++) {
		uint8_t *copy = memory_alloc(cut);

		memcpy(copy, bytes, cut);
		assert_int_equal(LLVMFuzzerTestOneInput(copy, cut), 0);
		free(copy);
	}
	uint8_t *copy = memory_alloc(length);
	memcpy(copy, bytes, length);
	for (size_t bit = 0; bit < 8 * length && bit < 1024; bit++) {
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(LLVMFuzzerTestOneInput(copy, length), 0);
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	free(copy);
}

static void the_seed_corpus_runs(void **state)
{
	char *folder = corpus_path("");
	DIR *stream = opendir(folder);
	struct dirent *entry;
	size_t files = 0;

	(void)state;
	assert_non_null(stream);
	while ((entry = readdir(stream))) {
		size_t length;
		char *bytes;

		if (entry->d_name[0] == '.')
			continue;
		char *path = path_join(folder, entry->d_name);
		assert_int_equal(file_read(path, LIMIT_BYTES, &bytes, &length, NULL), PRONY_OK);
		assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)bytes, length), 0);
		if (strcmp(entry->d_name, "bomb-gz") != 0)
			abuse((const uint8_t *)bytes, length);
		free(bytes);
		free(path);
		files++;
	}
	closedir(stream);
	free(folder);
	assert_true(files >= sizeof(samples) / sizeof(samples[0]));
}

static void limit_holds(void **state)
{
	struct error err = ERROR_INIT;
	struct idx idx = {0};
	char *path = corpus_path("bomb-gz");

	(void)state;
	assert_int_equal(idx_read(path, LIMIT_BYTES - 1, &idx, &err), PRONY_BAD_INPUT);
	assert_non_null(strstr(err.text, "exceed the limit of 1048575 bytes"));
	free(path);
}

static void absent_file(void **state)
{
	struct error err = ERROR_INIT;
	struct idx idx = {0};

	(void)state;
	assert_int_equal(idx_read("/nowhere/labels", LIMIT_BYTES, &idx, &err), PRONY_BAD_INPUT);
	assert_non_null(strstr(err.text, "/nowhere/labels"));
	assert_int_equal(idx_read("/", LIMIT_BYTES, &idx, NULL), PRONY_BAD_INPUT);
}

static void written_and_read(void **state)
{
	static const char *const names[] = {"plain", "packed.gz"};
	uint8_t data[300];
	char *folder;
	struct idx idx = {.rank = 3, .dims = {3, 10, 10}, .data = data}, again;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	assert_int_equal(directory_make_temporary("prony-test-", &folder, NULL), PRONY_OK);
	for (size_t i = 0; i < 2; i++) {
		char *path = path_join(folder, names[i]);
		size_t length;
		char *bytes;

		assert_int_equal(idx_write(path, &idx, NULL), PRONY_OK);
		assert_int_equal(file_read(path, LIMIT_BYTES, &bytes, &length, NULL), PRONY_OK);
		assert_int_equal((uint8_t)bytes[0] == 0x1f, i == 1);
		free(bytes);
		assert_int_equal(idx_read(path, sizeof(data), &again, NULL), PRONY_OK);
		assert_int_equal(again.rank, 3);
		assert_memory_equal(again.dims, idx.dims, sizeof(idx.dims[0]) * 3);
		assert_memory_equal(again.data, data, sizeof(data));
		idx_release(&again);
		free(path);
	}
	assert_int_equal(directory_remove(folder, NULL), PRONY_OK);
	free(folder);
}

static void unsound_is_not_written(void **state)
{
	uint8_t data[4] = {0};
	const struct idx rows[] = {
		{.rank = 0, .data = data},
		{.rank = 5, .dims = {1, 1, 1, 1}, .data = data},
		{.rank = 1, .dims = {0}, .data = data},
		{.rank = 1, .dims = {-1}, .data = data},
		{.rank = 4, .dims = {1 << 30, 1 << 30, 1 << 30, 1 << 30}, .data = data},
		{.rank = 1, .dims = {4}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = ERROR_INIT;

		assert_int_equal(idx_write("/nowhere/x", &rows[i], &err), PRONY_BAD_INPUT);
		assert_non_null(strstr(err.text, "/nowhere/x"));
	}
	idx_release(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample),	    cmocka_unit_test(the_seed_corpus_runs),
		cmocka_unit_test(limit_holds),	    cmocka_unit_test(absent_file),
		cmocka_unit_test(written_and_read), cmocka_unit_test(unsound_is_not_written),
	};
	return cmocka_run_group_tests_name("datasets_idx", tests, NULL, NULL);
}
