/*
 * Tests IDX files: each kind of broken file has its message; the contents of good files are read.
 */
#include "datasets/idx.h"
#include "tests/fuzz/data_input.h"
#include "tests/fuzz/seed_corpus.h"
#include "unit_test.h"

/* Each file of the seed corpus: the part of the message that names the fault, or its shape. */
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
	{"empty", "truncated: reading the magic number needs 4 bytes from offset 0", 0, {0}},
	{"one-byte", "truncated: reading the magic number", 0, {0}},
	{"magic-only", "truncated: reading the dimensions needs 4 bytes from offset 4", 0, {0}},
	{"bad-magic", "not an IDX file: it begins with 47 49 46 38", 0, {0}},
	{"floats", NULL, 1, {1}},
	{"doubles", "offset 2: element type 0x0e", 0, {0}},
	{"rank-0", "offset 3: 0 dimensions", 0, {0}},
	{"rank-5", "offset 3: 5 dimensions", 0, {0}},
	{"dim-0", "dimension 1 at offset 8 is 0", 0, {0}},
	{"dims-short", "truncated: reading the dimensions needs 12 bytes from offset 4", 0, {0}},
	{"data-short",
	 "truncated: the data should end at offset 40, but the data has only 39 bytes",
	 0,
	 {0}},
	{"trailing", "trailing bytes: the data should end at offset 40", 0, {0}},
	{"huge", "dimension 1 at offset 8 is 4294967295, which is not possible", 0, {0}},
	{"promises-more", "should end at offset 1000012, but the data has only 22 bytes", 0, {0}},
	{"promises-more-gz",
	 "should end at offset 524300, but the compressed file has only",
	 0,
	 {0}},
	{"short-gz", "truncated: ", 0, {0}},
	{"no-end-gz", "truncated: ", 0, {0}},
	{"head-only-gz", "truncated: ", 0, {0}},
	{"bad-crc-gz", "corrupt compressed data", 0, {0}},
	{"corrupt-gz", "", 0, {0}},
	{"trailing-gz", "trailing bytes: 1 bytes follow the compressed data", 0, {0}},
	{"gz-in-gz", "not an IDX file: it begins with 1f 8b", 0, {0}},
	{"empty-gz", "truncated: reading the magic number", 0, {0}},
};

static void check_sample(const struct sample *sample)
{
	struct error err = ERROR_INIT;
	struct idx idx = {0};
	char *path = corpus_path("idx", sample->name);
	enum prony_status status = idx_open(path, &idx, &err);

	if (status != (sample->message ? PRONY_BAD_INPUT : PRONY_OK))
		fail_msg("%s: status %d, %s", sample->name, status, err.text);
	if (sample->message) {
		/* File, fault, remedy. */
		if (strncmp(err.text, path, strlen(path)) != 0 ||
		    !strstr(err.text, sample->message) ||
		    !(strstr(err.text, "prony data fetch") || strstr(err.text, "convert")))
			fail_msg("%s: %s", sample->name, err.text);
		assert_null(idx.bytes);
	} else {
		assert_int_equal(idx.rank, sample->rank);
		for (int i = 0; i < idx.rank; i++)
			assert_int_equal(idx.dims[i], sample->dims[i]);
	}
	idx_close(&idx);
}

TEST(each_sample)
{
	for (size_t i = 0; i < COUNT(samples); i++)
		check_sample(&samples[i]);
}

/* Also reads each file cut at every length and with every bit of its first bytes flipped. */
static void abuse(const char *name, uint8_t *bytes, size_t length)
{
	if (strcmp(name, "bomb-gz") == 0) /* megabytes for every cut */
		return;
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

TEST(the_seed_corpus_runs)
{
	assert_true(corpus_run("idx", abuse) >= COUNT(samples));
}

TEST(absent_file)
{
	struct error err = ERROR_INIT;
	struct idx idx = {0};

	expect_error(idx_open("/nowhere/labels", &idx, &err), PRONY_BAD_INPUT, &err,
		     "/nowhere/labels");
	assert_int_equal(idx_open("/", &idx, NULL), PRONY_BAD_INPUT);
}

/*
 * Reads rows in any order from a plain and a compressed file: rows that were passed are read again.
 */
TEST(rows_in_any_order)
{
	static const char *const names[] = {"images", "images-gz", "two-members-gz"};
	static const int order[] = {1, 0, 0, 1};

	for (size_t n = 0; n < COUNT(names); n++) {
		char *path = corpus_path("idx", names[n]);
		struct idx idx = {0};
		uint8_t values[12];

		assert_int_equal(idx_open(path, &idx, NULL), PRONY_OK);
		assert_int_equal(idx.row, 12);
		for (size_t i = 0; i < COUNT(order); i++) {
			assert_int_equal(idx_read_row(&idx, order[i], values, NULL), PRONY_OK);
			for (int v = 0; v < 12; v++)
				assert_int_equal(values[v], order[i] * 12 + v);
		}
		idx_close(&idx);
	}
}

/* The other element types are converted to this machine's byte order. */
TEST(integers_and_floats)
{
	static const struct {
		uint8_t bytes[16];
		enum idx_type type;
		int32_t integers[2];
		float floats[2];
	} rows[] = {
		{{0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 0x03, 0xe7, 0xff, 0xff, 0xff, 0xff},
		 IDX_I32,
		 {999, -1},
		 {0}},
		{{0, 0, 0x0d, 1, 0, 0, 0, 2, 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0},
		 IDX_F32,
		 {0},
		 {1.0f, -2.5f}},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct idx idx = {0};

		assert_int_equal(idx_open(input_file(rows[i].bytes, 16), &idx, NULL), PRONY_OK);
		assert_int_equal(idx.type, rows[i].type);
		for (int at = 0; at < 2; at++) {
			union {
				int32_t integer;
				float number;
			} value;

			assert_int_equal(idx_read_row(&idx, at, &value, NULL), PRONY_OK);
			if (idx.type == IDX_I32)
				assert_int_equal(value.integer, rows[i].integers[at]);
			else
				assert_true(value.number == rows[i].floats[at]);
		}
		idx_close(&idx);
	}
}
