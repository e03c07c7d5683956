/* Tests batches: the right samples in the right order, all scaled in the same way. */
#include <sys/resource.h>

#include "base/arena.h"
#include "datasets/dataset.h"
#include "datasets/idx.h"
#include "unit_test.h"

enum { TRAIN = 6, EVALUATION = 4, SAMPLES = TRAIN + EVALUATION, PIXELS = 4 };

/* Images of 2 x 2 whose first pixel is the sample's number; the label is the number modulo 3. */
static const struct dataset toy = {
	.name = "toy",
	.format = "idx",
	.rank = 3,
	.dims = {1, 2, 2},
	.classes = 3,
	.train_count = TRAIN,
	.evaluation_count = EVALUATION,
	.scale = 255,
	.mean = {0.25},
	.deviation = {0.5},
	.files = {{.name = "images", .bytes = 1}, {.name = "labels", .bytes = 1}},
};

/* Writes an IDX file: its magic's type and dimensions, then `bytes` bytes unchanged. */
static void write_idx(const char *folder, const char *name, int type, int rank, const int *dims,
		      const void *data, size_t bytes)
{
	uint8_t image[1024] = {0, 0, (uint8_t)type, (uint8_t)rank};
	size_t head = 4 + 4 * (size_t)rank;
	char *path = test_keep(path_join(folder, name));

	assert_true(head + bytes <= sizeof(image));
	for (int i = 0; i < rank; i++)
		image[7 + 4 * i] = (uint8_t)dims[i];
	memcpy(image + head, data, bytes);
	assert_int_equal(file_write_atomic(path, image, head + bytes, NULL), PRONY_OK);
}

static void write_toy(const char *folder, int samples, int labels_count, int worst_label)
{
	uint8_t pixels[SAMPLES * PIXELS], labels[SAMPLES];

	for (int i = 0; i < SAMPLES; i++) {
		labels[i] = (uint8_t)(i % 3);
		for (int pixel = 0; pixel < PIXELS; pixel++)
			pixels[i * PIXELS + pixel] = (uint8_t)(pixel == 0 ? i : 255 - pixel);
	}
	if (worst_label)
		labels[SAMPLES - 1] = (uint8_t)worst_label;
	write_idx(folder, "images", IDX_U8, 3, (const int[]){samples, 2, 2}, pixels,
		  (size_t)(samples * PIXELS));
	write_idx(folder, "labels", IDX_U8, 1, &labels_count, labels, (size_t)labels_count);
}

struct fixture {
	struct arena arena;
	char *folder;
};

static int setup(void **state)
{
	struct fixture *f = memory_alloc(sizeof(*f));

	arena_init(&f->arena, (size_t)64 << 20);
	if (directory_make_temporary("prony-test-", &f->folder, NULL) != PRONY_OK)
		return -1;
	write_toy(f->folder, SAMPLES, SAMPLES, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	enum prony_status status = directory_remove(f->folder, NULL);

	arena_release(&f->arena);
	free(f->folder);
	free(f);
	return status == PRONY_OK ? 0 : -1;
}

#define WITH_TOY(name) TEST_ON(name, setup, teardown, struct fixture *f)

/* Returns a request for toy samples for training or evaluation. */
static struct batch_request request_of(int64_t batch, bool training)
{
	return (struct batch_request){.batch = batch,
				      .rank = 3,
				      .dims = {1, 2, 2},
				      .classes = 3,
				      .training = training,
				      .seed = 7};
}

static size_t elements_of(const struct batch_request *request)
{
	size_t elements = 1;

	for (int i = 0; i < request->rank; i++)
		elements *= (size_t)request->dims[i];
	return elements;
}

/* Takes `count` batches from a new stream, `at_once` per call. */
static void take_by(struct fixture *f, const struct dataset *dataset,
		    const struct batch_request *request, int count, int at_once, float **x,
		    int64_t **y)
{
	size_t samples = (size_t)request->batch * (size_t)count, elements = elements_of(request);
	struct error err = ERROR_INIT;
	struct batch_stream *stream = NULL;

	*x = arena_array(&f->arena, samples * elements, sizeof(**x));
	*y = arena_array(&f->arena, samples, sizeof(**y));
	check(batch_stream_open(dataset, f->folder, request, &stream, &err), &err);
	for (int at = 0; at < count; at += at_once) {
		size_t before = (size_t)(at * request->batch);

		check(batch_stream_next(stream, at_once, *x + before * elements, *y + before, &err),
		      &err);
	}
	batch_stream_close(stream);
}

static void take(struct fixture *f, const struct dataset *dataset,
		 const struct batch_request *request, int count, float **x, int64_t **y)
{
	take_by(f, dataset, request, count, count, x, y);
}

/* Returns the number of the sample with these pixels. */
static int sample_of(const float *x)
{
	return (int)lround((x[0] * toy.deviation[0] + toy.mean[0]) * 255);
}

WITH_TOY(evaluation_in_file_order)
{
	struct batch_request request = request_of(2, false);
	float *x;
	int64_t *y;

	take(f, &toy, &request, 3, &x, &y);
	for (int i = 0; i < 6; i++) {
		int expected = TRAIN + i % EVALUATION;

		assert_int_equal(sample_of(x + i * PIXELS), expected);
		assert_int_equal(y[i], expected % 3);
		for (int pixel = 1; pixel < PIXELS; pixel++) {
			double value = ((255 - pixel) / 255.0 - toy.mean[0]) / toy.deviation[0];
			assert_true(x[i * PIXELS + pixel] == (float)value);
		}
	}
}

/* Four samples in batches of three: one batch, repeated. A batch of six repeats the samples. */
WITH_TOY(evaluation_drops_the_last_partial_batch)
{
	static const struct {
		int batch, count;
		int expected[12];
	} rows[] = {
		{3, 2, {6, 7, 8, 6, 7, 8}},
		{4, 2, {6, 7, 8, 9, 6, 7, 8, 9}},
		{6, 2, {6, 7, 8, 9, 6, 7, 8, 9, 6, 7, 8, 9}},
	};

	for (size_t r = 0; r < COUNT(rows); r++) {
		struct batch_request request = request_of(rows[r].batch, false);
		float *x;
		int64_t *y;

		take(f, &toy, &request, rows[r].count, &x, &y);
		for (int i = 0; i < rows[r].batch * rows[r].count; i++)
			assert_int_equal(sample_of(x + i * PIXELS), rows[r].expected[i]);
	}
}

/* Checks that an epoch has each sample once; returns how many are at another position than in
 * `other` (NULL: in the file). */
static int check_epoch(const float *x, const int64_t *y, const float *other)
{
	int seen[SAMPLES] = {0}, moved = 0;

	for (int i = 0; i < TRAIN; i++) {
		int sample = sample_of(x + i * PIXELS);

		assert_in_range(sample, 0, TRAIN - 1);
		seen[sample]++;
		moved += sample != (other ? sample_of(other + i * PIXELS) : i);
		assert_int_equal(y[i], sample % 3);
	}
	for (int i = 0; i < TRAIN; i++)
		assert_int_equal(seen[i], 1);
	return moved;
}

WITH_TOY(training_is_shuffled_anew_in_each_epoch)
{
	struct batch_request request = request_of(4, true);
	const size_t bytes = sizeof(float) * 3 * TRAIN * PIXELS;
	float *x, *other;
	int64_t *y, *z;

	/* Nine batches of four are six epochs of six: a batch may reach into the next epoch. */
	take(f, &toy, &request, 9, &x, &y);
	for (int epoch = 0; epoch < 6; epoch++) {
		const float *at = x + epoch * TRAIN * PIXELS;
		int moved = check_epoch(at, y + epoch * TRAIN, epoch > 0 ? x : NULL);

		assert_true(moved > 0);
	}
	take(f, &toy, &request, 9, &other, &z);
	assert_memory_equal(x, other, bytes);
	request.seed = 8;
	take(f, &toy, &request, 9, &other, &z);
	assert_memory_not_equal(x, other, bytes);
}

/* Batch n is the same whether or not earlier batches were requested, alone or with others. */
WITH_TOY(skipped_batches)
{
	struct batch_request all = request_of(4, true), later = request_of(4, true);
	float *x, *other;
	int64_t *y, *z;

	take(f, &toy, &all, 6, &x, &y);
	take_by(f, &toy, &all, 6, 1, &other, &z);
	assert_memory_equal(x, other, sizeof(*x) * 6 * 4 * PIXELS);
	assert_memory_equal(y, z, sizeof(*y) * 6 * 4);
	later.first = 3;
	take(f, &toy, &later, 3, &other, &z);
	assert_memory_equal(x + 3 * 4 * PIXELS, other, sizeof(*x) * 3 * 4 * PIXELS);
	assert_memory_equal(y + 3 * 4, z, sizeof(*y) * 3 * 4);
}

/* Two channels of floats, each with its own mean and deviation; class numbers above 255. */
WITH_TOY(channels_floats_and_many_classes)
{
	const struct dataset floats = {
		.name = "floats",
		.format = "idx",
		.rank = 3,
		.dims = {2, 1, 2},
		.classes = 1000,
		.train_count = 1,
		.evaluation_count = 1,
		.scale = 2,
		.mean = {1, -1},
		.deviation = {0.5, 4},
		.files = {{.name = "f"}, {.name = "l"}},
	};
	/* Big-endian: samples 0 0 0 0 and 2 4 -2 6; labels 1 and 999. */
	static const uint8_t values[32] = {[16] = 0x40, [17] = 0x00, [20] = 0x40, [21] = 0x80,
					   [24] = 0xc0, [25] = 0x00, [28] = 0x40, [29] = 0xc0};
	static const uint8_t labels[8] = {[3] = 1, [6] = 0x03, [7] = 0xe7};
	static const float expected[] = {0, 2, 0, 1};
	struct batch_request request = {.batch = 1, .rank = 3, .dims = {2, 1, 2}, .classes = 1000};
	float *x;
	int64_t *y;

	write_idx(f->folder, "f", IDX_F32, 4, (const int[]){2, 2, 1, 2}, values, sizeof(values));
	write_idx(f->folder, "l", IDX_I32, 1, (const int[]){2}, labels, sizeof(labels));
	take(f, &floats, &request, 1, &x, &y);
	assert_int_equal(y[0], 999);
	assert_memory_equal(x, expected, sizeof(expected));
}

/* Images of one MiB, twice the machine's memory in total, as holes in a file: a batch needs memory
 * only for its own samples. */
WITH_TOY(larger_than_memory)
{
	enum { SIDE = 1024, BATCH = 4, MOST_KIB = 64 * 1024 };
	int64_t samples =
		2 * (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / SIDE / SIDE;
	const struct dataset large = {
		.name = "large",
		.format = "idx",
		.rank = 3,
		.dims = {1, SIDE, SIDE},
		.classes = 3,
		.train_count = samples,
		.scale = 255,
		.deviation = {1},
		.files = {{.name = "images"}, {.name = "labels"}},
	};
	struct batch_request request = {
		.batch = BATCH, .rank = 2, .dims = {SIDE, SIDE}, .classes = 3, .training = true};
	char *images = test_keep(path_join(f->folder, "images")),
	     *labels = test_keep(path_join(f->folder, "labels"));
	struct rusage before, after;
	float *x;
	int64_t *y;

	for (int file = 0; file < 2; file++) {
		uint8_t head[16] = {0, 0, IDX_U8, file == 0 ? 3 : 1};
		const int64_t dims[] = {samples, SIDE, SIDE};
		int rank = head[3];

		for (int i = 0; i < 4 * rank; i++)
			head[4 + i] = (uint8_t)(dims[i / 4] >> (24 - i % 4 * 8));
		assert_int_equal(file_write_atomic(file == 0 ? images : labels, head,
						   4 + 4 * (size_t)rank, NULL),
				 PRONY_OK);
	}
	assert_int_equal(truncate(labels, 8 + samples), 0);
	if (truncate(images, 16 + samples * SIDE * SIDE) != 0)
		skip(); /* the file system does not support files of this size */
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	take(f, &large, &request, 1, &x, &y);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_true(x[BATCH * SIDE * SIDE - 1] == 0.0f && y[BATCH - 1] == 0);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, MOST_KIB);
}

WITH_TOY(flat_shapes_fit)
{
	static const struct {
		int rank;
		int64_t dims[4];
	} shapes[] = {{1, {4}}, {2, {2, 2}}, {2, {4, 1}}, {4, {1, 1, 2, 2}}, {3, {2, 1, 2}}};
	struct batch_request request = request_of(2, false);
	float *x, *y;
	int64_t *labels;

	take(f, &toy, &request, 1, &x, &labels);
	for (size_t i = 0; i < COUNT(shapes); i++) {
		request.rank = shapes[i].rank;
		memcpy(request.dims, shapes[i].dims, sizeof(request.dims));
		take(f, &toy, &request, 1, &y, &labels);
		assert_memory_equal(x, y, sizeof(*x) * 2 * PIXELS);
	}
}

static void expect_refusal(struct fixture *f, const struct dataset *dataset,
			   const struct batch_request *request, const char *part)
{
	struct error err = ERROR_INIT;
	struct batch_stream *stream = NULL;
	float x[64];
	int64_t y[8];
	enum prony_status status = batch_stream_open(dataset, f->folder, request, &stream, &err);

	if (status == PRONY_OK)
		status = batch_stream_next(stream, 1, x, y, &err);
	if (status != PRONY_BAD_INPUT || !strstr(err.text, part))
		fail_msg("status %d, '%s' instead of '%s'", status, err.text, part);
	batch_stream_close(stream);
}

WITH_TOY(what_does_not_fit)
{
	struct batch_request request = request_of(2, false);

	request.dims[0] = 3;
	expect_refusal(f, &toy, &request,
		       "samples of 1x2x2 in 3 classes, but the network needs 3x2x2");
	request = request_of(2, false);
	request.classes = 10;
	expect_refusal(f, &toy, &request, "in 10; choose another network or data set");
	request = request_of(0, false);
	expect_refusal(f, &toy, &request, "at least 1");
	request = request_of(1, false);
	request.dims[1] = 0;
	expect_refusal(f, &toy, &request, "dimension 1 of a sample is 0");
	request = request_of(INT64_MAX / 2, false);
	expect_refusal(f, &toy, &request, "too large for this machine");
	request = request_of(4, false);
	request.first = INT64_MAX / 4;
	expect_refusal(f, &toy, &request, "too large for this machine");
	request = request_of(1, false);
	request.dims[0] = request.dims[1] = INT64_C(1) << 40;
	expect_refusal(f, &toy, &request, "too small or too large");
}

WITH_TOY(broken_files)
{
	struct batch_request request = request_of(4, false);

	write_toy(f->folder, SAMPLES - 1, SAMPLES, 0);
	expect_refusal(f, &toy, &request, "labels: offset 4: 10 labels, but ");
	write_toy(f->folder, SAMPLES, SAMPLES - 1, 0);
	expect_refusal(f, &toy, &request, "labels: offset 4: 9 labels, but ");
	write_toy(f->folder, SAMPLES - 1, SAMPLES - 1, 0);
	expect_refusal(f, &toy, &request,
		       "images: it contains 9 samples of 2x2, but data set toy has 10 of 2x2");
	write_toy(f->folder, SAMPLES, SAMPLES, 3);
	expect_refusal(f, &toy, &request, "labels: offset 17: label 3, but there are 3 classes");
}

WITH_TOY(synthetic_values)
{
	const struct dataset *synthetic = dataset_find("synthetic");
	struct batch_request request = request_of(64, true), last;
	float *x, *again;
	int64_t *y, *z;
	double sum = 0, squares = 0;
	int classes[3] = {0};
	const int values = 3 * 64 * 3 * 8 * 8;

	request.dims[0] = 3;
	request.dims[1] = request.dims[2] = 8;
	take(f, synthetic, &request, 3, &x, &y);
	for (int i = 0; i < values; i++) {
		assert_true(isfinite(x[i]) && x[i] != 0.0f);
		sum += (double)x[i];
		squares += (double)x[i] * (double)x[i];
	}
	/* Five standard errors of the mean and of the variance. */
	assert_true(fabs(sum / values) < 5 / sqrt(values));
	assert_true(fabs(squares / values - 1) < 5 * sqrt(2.0 / values));
	for (int i = 0; i < 3 * 64; i++) {
		assert_in_range(y[i], 0, 2);
		classes[y[i]]++;
	}
	for (int i = 0; i < 3; i++)
		assert_in_range(classes[i], 32, 96);
	last = request;
	last.first = 2;
	take(f, synthetic, &last, 1, &again, &z);
	assert_memory_equal(x + 2 * values / 3, again, sizeof(*x) * (size_t)values / 3);
	assert_memory_equal(y + 2 * 64, z, sizeof(*y) * 64);
	last.training = false;
	take(f, synthetic, &last, 1, &again, &z);
	assert_memory_not_equal(x + 2 * values / 3, again, sizeof(*x) * (size_t)values / 3);
}

WITH_TOY(shipped_sample)
{
	const char *source = getenv("PRONY_SOURCE");
	const struct dataset *sample = dataset_find("mnist-3000");
	struct batch_request request = {.batch = 4, .rank = 1, .dims = {784}, .classes = 10};
	struct fixture shipped = {.arena = f->arena};
	float *x;
	int64_t *y;

	assert_non_null(source);
	shipped.folder = memory_printf("%s/datasets/mnist-3000", source);
	take(&shipped, sample, &request, 1, &x, &y);
	f->arena = shipped.arena;
	free(shipped.folder);
	/* Labels 2400 to 2403 of t10k-labels-idx1-ubyte, read with another program. */
	const int64_t expected[] = {5, 4, 4, 0};
	assert_memory_equal(y, expected, sizeof(expected));
	/* The corner of a digit's image is black. */
	assert_true(x[0] == (float)(-sample->mean[0] / sample->deviation[0]));
}
