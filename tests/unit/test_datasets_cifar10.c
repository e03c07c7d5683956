/* Tests CIFAR-10's binary version: each kind of broken file has its message; each channel of a
 * sample is scaled in its own way. */
#include "datasets/dataset.h"
#include "datasets/format.h"
#include "tests/fuzz/seed_corpus.h"
#include "unit_test.h"

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS, PLANE = 32 * 32 };

/* Each file of the seed corpus, and the part of the message that names the fault. */
static const struct sample {
	const char *name, *message;
	int64_t bytes;
} samples[] = {
	{"one", NULL, RECORD},
	{"two", NULL, 2 * RECORD},
	{"two-gz", NULL, 2 * RECORD},
	{"empty", "empty: no sample at offset 0", 0},
	{"empty-gz", "empty: no sample at offset 0", 0},
	{"one-byte", "offset 0: truncated, or trailing bytes: 1 bytes where", 0},
	{"short", "offset 3073: truncated, or trailing bytes: 3072 bytes where", 0},
	{"short-head", "offset 0: truncated", 0},
	{"trailing", "offset 6146: truncated, or trailing bytes: 1 bytes where", 0},
	{"label-10", "offset 3073: label 10, but there are 10 classes", 0},
	{"label-10-gz", "offset 0: label 10, but there are 10 classes", 0},
	{"label-255", "offset 0: label 255", 0},
	{"short-gz", "truncated: the compressed data ends", 0},
	{"no-end-gz", "truncated: the compressed data ends", 0},
	{"bad-crc-gz", "corrupt compressed data", 0},
	{"trailing-gz", "trailing bytes: 1 bytes follow the compressed data", 0},
	{"odd-gz", "offset 3073: truncated, or trailing bytes: 3072 bytes where", 0},
};

TEST(each_sample)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		const struct sample *sample = &samples[i];
		char *path = corpus_path("cifar10", sample->name);
		struct error err = ERROR_INIT;
		int64_t bytes = 0;
		enum prony_status status = data_format_verify(data_format_find("cifar10"), path, 10,
							      NULL, &bytes, &err);

		if (status != (sample->message ? PRONY_BAD_INPUT : PRONY_OK) ||
		    bytes != sample->bytes)
			fail_msg("%s: status %d, %s", sample->name, status, err.text);
		/* File, fault, remedy. */
		if (sample->message &&
		    (strncmp(err.text, path, strlen(path)) != 0 ||
		     !strstr(err.text, sample->message) || !strstr(err.text, "prony data fetch")))
			fail_msg("%s: %s", sample->name, err.text);
	}
}

/* Cuts the file at every length; for a plain file, cuts at some lengths are enough. */
static void cut_it(const char *name, uint8_t *bytes, size_t length)
{
	(void)name;
	for (size_t cut = 0; cut<length; cut += length> 2048 ? 1024 : 1)
		assert_int_equal(LLVMFuzzerTestOneInput(bytes, cut), 0);
}

TEST(the_seed_corpus_runs)
{
	assert_int_equal(corpus_run("cifar10", cut_it), COUNT(samples));
}

/* Three training files of two samples and one evaluation file. The first red pixel of a sample is
 * its number, the first blue one is 255. */
static const struct dataset toy = {
	.name = "toy",
	.format = "cifar10",
	.rank = 3,
	.dims = {3, 32, 32},
	.classes = 10,
	.train_count = 6,
	.evaluation_count = 2,
	.scale = 255,
	.mean = {0, 0.25, 0.5},
	.deviation = {1, 0.5, 2},
	.files = {{.part = PART_TRAIN, .name = "1.bin"},
		  {.part = PART_TRAIN, .name = "2.bin"},
		  {.part = PART_TRAIN, .name = "3.bin"},
		  {.part = PART_EVALUATION, .name = "test.bin"},
		  {.part = PART_NAMES, .name = "names"}},
};

static void write_toy(const char *folder, int per_file)
{
	for (int file = 0; file < 4; file++) {
		uint8_t records[3 * RECORD] = {0};
		char *path = test_keep(path_join(folder, toy.files[file].name));

		for (int i = 0; i < per_file; i++) {
			records[i * RECORD] = (uint8_t)((file * 2 + i) % 10);
			records[i * RECORD + 1] = (uint8_t)(file * 2 + i);
			records[i * RECORD + 1 + 2 * PLANE] = 255;
		}
		assert_int_equal(
			file_write_atomic(path, records, (size_t)(per_file * RECORD), NULL),
			PRONY_OK);
	}
}

static enum prony_status take(const struct dataset *dataset, const char *folder, bool training,
			      int64_t batch, float *x, int64_t *y, struct error *err)
{
	struct batch_request request = {.batch = batch,
					.rank = 3,
					.dims = {3, 32, 32},
					.classes = 10,
					.training = training,
					.seed = 3};
	struct batch_stream *stream = NULL;
	enum prony_status status = batch_stream_open(dataset, folder, &request, &stream, err);

	if (status == PRONY_OK)
		status = batch_stream_next(stream, 1, x, y, err);
	batch_stream_close(stream);
	return status;
}

TEST(files_in_a_row_and_channels_apart)
{
	float *x = test_keep(memory_alloc(sizeof(*x) * 6 * PIXELS));
	struct error err = ERROR_INIT;
	int64_t y[6];
	int seen[6] = {0};
	char *folder;

	assert_int_equal(directory_make_temporary("prony-test-", &folder, NULL), PRONY_OK);
	write_toy(folder, 2);
	check(take(&toy, folder, true, 6, x, y, &err), &err);
	for (int i = 0; i < 6; i++) {
		seen[y[i]]++;
		assert_true(x[i * PIXELS] == (float)((double)y[i] / 255.0));
		assert_true(x[i * PIXELS + 1] == 0.0f);
		assert_true(x[i * PIXELS + PLANE] == -0.5f);
		assert_true(x[i * PIXELS + 2 * PLANE] == 0.25f);
		assert_true(x[i * PIXELS + 2 * PLANE + 1] == -0.25f);
	}
	for (int i = 0; i < 6; i++)
		assert_int_equal(seen[i], 1);
	check(take(&toy, folder, false, 2, x, y, &err), &err);
	assert_int_equal(y[0], 6);
	assert_int_equal(y[1], 7);
	write_toy(folder, 3);
	expect_error(take(&toy, folder, false, 2, x, y, &err), PRONY_BAD_INPUT, &err,
		     "test.bin: it contains 3 samples of 3x32x32, but");
	assert_int_equal(directory_remove(folder, NULL), PRONY_OK);
	free(folder);
}

/* Tests the real files if they are beside the checkout. */
TEST(the_real_sample)
{
	enum { COUNT = 10000 };
	char *place = memory_printf("%s/../shared/data", getenv("PRONY_SOURCE")), *folder = NULL;
	const struct dataset *sample = dataset_find("cifar10-sample");
	struct error err = ERROR_INIT;
	const char **names = NULL;
	SCOPED(arena) arena;

	if (dataset_locate(sample, place, &folder, NULL) != PRONY_OK) {
		free(place);
		skip();
	}
	arena_init(&arena, 0);
	float *x = test_keep(memory_alloc(sizeof(*x) * COUNT * PIXELS));
	int64_t *y = test_keep(memory_alloc(sizeof(*y) * COUNT));
	for (size_t i = 0; sample->files[i].name; i++)
		check(dataset_verify_file(sample, &sample->files[i], folder, NULL, &err), &err);
	if (dataset_class_names(sample, folder, &arena, &names, &err) != PRONY_OK ||
	    take(sample, folder, true, COUNT, x, y, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	assert_string_equal(names[0], "airplane");
	assert_string_equal(names[9], "truck");
	/* The samples are scaled by the whole data set's constants; a fifth of the data set nearly
	 * has the same constants. */
	for (int channel = 0; channel < 3; channel++) {
		double sum = 0, squares = 0;

		for (int i = 0; i < COUNT * PLANE; i++) {
			double value = (double)x[i / PLANE * PIXELS + channel * PLANE + i % PLANE];

			sum += value;
			squares += value * value;
		}
		double mean = sum / COUNT / PLANE;
		assert_true(fabs(mean) < 0.05);
		assert_true(fabs(sqrt(squares / COUNT / PLANE - mean * mean) - 1) < 0.05);
	}
	int of_class[10] = {0};
	for (int i = 0; i < COUNT; i++)
		of_class[y[i]]++;
	for (int i = 0; i < 10; i++)
		assert_in_range(of_class[i], 850, 1150);
	free(folder);
	free(place);
}
