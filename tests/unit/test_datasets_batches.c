/* Batches: the right samples in the right order, scaled alike for all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/dataset.h"
#include "datasets/idx.h"

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
	.mean = 0.25,
	.deviation = 0.5,
	.files = {{.name = "images", .bytes = 1}, {.name = "labels", .bytes = 1}},
};

static void write_toy(const char *folder, int samples, int labels_count, int worst_label)
{
	uint8_t pixels[SAMPLES * PIXELS], labels[SAMPLES];
	struct idx images_file = {.rank = 3, .dims = {samples, 2, 2}, .data = pixels};
	struct idx labels_file = {.rank = 1, .dims = {labels_count}, .data = labels};
	char *images_path = path_join(folder, "images"), *labels_path = path_join(folder, "labels");

	for (int i = 0; i < SAMPLES; i++) {
		labels[i] = (uint8_t)(i % 3);
		for (int pixel = 0; pixel < PIXELS; pixel++)
			pixels[i * PIXELS + pixel] = (uint8_t)(pixel == 0 ? i : 255 - pixel);
	}
	if (worst_label)
		labels[SAMPLES - 1] = (uint8_t)worst_label;
	assert_int_equal(idx_write(images_path, &images_file, NULL), PRONY_OK);
	assert_int_equal(idx_write(labels_path, &labels_file, NULL), PRONY_OK);
	free(images_path);
	free(labels_path);
}

struct fixture {
	struct arena arena;
	char *folder;
};

static int setup(void **state)
{
	struct fixture *f = memory_alloc(sizeof(*f));

	arena_init(&f->arena, (size_t)16 << 20);
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

static struct batch_request request_of(int64_t batch, int count, bool training)
{
	return (struct batch_request){.batch = batch,
				      .count = count,
				      .rank = 3,
				      .dims = {1, 2, 2},
				      .classes = 3,
				      .training = training,
				      .seed = 7};
}

static void take(struct fixture *f, const struct dataset *dataset,
		 const struct batch_request *request, float **x, int64_t **y)
{
	struct error err = ERROR_INIT;

	if (dataset_batches(dataset, f->folder, request, &f->arena, x, y, &err) != PRONY_OK)
		fail_msg("%s", err.text);
}

/* The number of the sample that these pixels are. */
static int sample_of(const float *x)
{
	return (int)lround((x[0] * toy.deviation + toy.mean) * 255);
}

static void evaluation_in_file_order(void **state)
{
	struct batch_request request = request_of(3, 2, false);
	float *x;
	int64_t *y;

	take(*state, &toy, &request, &x, &y);
	for (int i = 0; i < 6; i++) {
		int expected = TRAIN + i % EVALUATION;

		assert_int_equal(sample_of(x + i * PIXELS), expected);
		assert_int_equal(y[i], expected % 3);
		for (int pixel = 1; pixel < PIXELS; pixel++) {
			double value = ((255 - pixel) / 255.0 - toy.mean) / toy.deviation;
			assert_true(x[i * PIXELS + pixel] == (float)value);
		}
	}
}

static void training_is_shuffled_and_wraps(void **state)
{
	struct batch_request request = request_of(TRAIN, 2, true);
	float *x, *other;
	int64_t *y, *z;
	int seen[SAMPLES] = {0}, moved = 0;

	take(*state, &toy, &request, &x, &y);
	for (int i = 0; i < TRAIN; i++) {
		int sample = sample_of(x + i * PIXELS);

		assert_in_range(sample, 0, TRAIN - 1);
		seen[sample]++;
		moved += sample != i;
		assert_int_equal(y[i], sample % 3);
		/* The second round is as the first. */
		assert_int_equal(sample_of(x + (TRAIN + i) * PIXELS), sample);
	}
	for (int i = 0; i < TRAIN; i++)
		assert_int_equal(seen[i], 1);
	assert_true(moved > 0);
	take(*state, &toy, &request, &other, &z);
	assert_memory_equal(x, other, sizeof(*x) * 2 * TRAIN * PIXELS);
	request.seed = 8;
	take(*state, &toy, &request, &other, &z);
	assert_memory_not_equal(x, other, sizeof(*x) * 2 * TRAIN * PIXELS);
}

/* Batch n is the same whether or not those before it were asked for. */
static void skipped_batches(void **state)
{
	struct batch_request all = request_of(4, 5, true), later = request_of(4, 2, true);
	float *x, *tail;
	int64_t *y, *z;

	take(*state, &toy, &all, &x, &y);
	later.first = 3;
	take(*state, &toy, &later, &tail, &z);
	assert_memory_equal(x + 3 * 4 * PIXELS, tail, sizeof(*x) * 2 * 4 * PIXELS);
	assert_memory_equal(y + 3 * 4, z, sizeof(*y) * 2 * 4);
	/* The product of first and batch overflows; its remainder does not: 2^62 - 1 is 3 modulo 6.
	 */
	later.first = (INT64_C(1) << 62) - 1;
	take(*state, &toy, &later, &tail, &z);
	assert_memory_equal(x + 3 * 4 * PIXELS, tail, sizeof(*x) * 2 * 4 * PIXELS);
}

static void flat_shapes_fit(void **state)
{
	static const struct {
		int rank;
		int64_t dims[4];
	} shapes[] = {{1, {4}}, {2, {2, 2}}, {2, {4, 1}}, {4, {1, 1, 2, 2}}, {3, {2, 1, 2}}};
	struct batch_request request = request_of(2, 1, false);
	float *x, *y;
	int64_t *labels;

	take(*state, &toy, &request, &x, &labels);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		request.rank = shapes[i].rank;
		memcpy(request.dims, shapes[i].dims, sizeof(request.dims));
		take(*state, &toy, &request, &y, &labels);
		assert_memory_equal(x, y, sizeof(*x) * 2 * PIXELS);
	}
}

static void expect_refusal(struct fixture *f, const struct dataset *dataset,
			   const struct batch_request *request, const char *part)
{
	struct error err = ERROR_INIT;
	float *x = NULL;
	int64_t *y = NULL;
	enum prony_status status =
		dataset_batches(dataset, f->folder, request, &f->arena, &x, &y, &err);

	if (status != PRONY_BAD_INPUT || !strstr(err.text, part))
		fail_msg("status %d, '%s' instead of '%s'", status, err.text, part);
	assert_null(x);
	assert_null(y);
}

static void what_does_not_fit(void **state)
{
	struct batch_request request = request_of(2, 1, false);

	request.dims[0] = 3;
	expect_refusal(*state, &toy, &request,
		       "samples of 1x2x2 in 3 classes, the network takes 3x2x2");
	request = request_of(2, 1, false);
	request.classes = 10;
	expect_refusal(*state, &toy, &request, "in 10; choose a network or a data set that fits");
	request = request_of(0, 1, false);
	expect_refusal(*state, &toy, &request, "at least 1");
	request = request_of(1, 1, false);
	request.dims[1] = 0;
	expect_refusal(*state, &toy, &request, "dimension 1 of a sample is 0");
	request = request_of(INT64_MAX / 2, 4, false);
	expect_refusal(*state, &toy, &request, "too many for this machine");
	request = request_of(1, 1, false);
	request.dims[0] = request.dims[1] = INT64_C(1) << 40;
	expect_refusal(*state, &toy, &request, "no such batch");
}

static void broken_files(void **state)
{
	struct batch_request request = request_of(2, 1, false);
	struct fixture *f = *state;

	write_toy(f->folder, SAMPLES - 1, SAMPLES, 0);
	expect_refusal(f, &toy, &request, "images: offset 4: the file holds 9x2x2");
	write_toy(f->folder, SAMPLES, SAMPLES - 1, 0);
	expect_refusal(f, &toy, &request, "labels: offset 4");
	write_toy(f->folder, SAMPLES, SAMPLES, 3);
	expect_refusal(f, &toy, &request, "labels: offset 17: label 3, but there are 3 classes");
}

static void synthetic_values(void **state)
{
	const struct dataset *synthetic = dataset_find("synthetic");
	struct batch_request request = request_of(64, 3, true), last;
	float *x, *again;
	int64_t *y, *z;
	double sum = 0, squares = 0;
	int classes[3] = {0};
	const int values = 3 * 64 * 3 * 8 * 8;

	request.dims[0] = 3;
	request.dims[1] = request.dims[2] = 8;
	take(*state, synthetic, &request, &x, &y);
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
	last.count = 1;
	take(*state, synthetic, &last, &again, &z);
	assert_memory_equal(x + 2 * values / 3, again, sizeof(*x) * (size_t)values / 3);
	assert_memory_equal(y + 2 * 64, z, sizeof(*y) * 64);
	last.training = false;
	take(*state, synthetic, &last, &again, &z);
	assert_memory_not_equal(x + 2 * values / 3, again, sizeof(*x) * (size_t)values / 3);
}

static void shipped_sample(void **state)
{
	struct fixture *f = *state;
	const char *source = getenv("PRONY_SOURCE");
	const struct dataset *sample = dataset_find("mnist-sample");
	struct batch_request request = {
		.batch = 4, .count = 1, .rank = 1, .dims = {784}, .classes = 10};
	struct error err = ERROR_INIT;
	float *x;
	int64_t *y;

	assert_non_null(source);
	char *folder = memory_printf("%s/datasets/mnist-sample", source);
	if (dataset_batches(sample, folder, &request, &f->arena, &x, &y, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	/* Labels 8000 to 8003 of t10k-labels-idx1-ubyte, read by another program. */
	const int64_t expected[] = {4, 9, 9, 7};
	assert_memory_equal(y, expected, sizeof(expected));
	/* A corner of a digit is black. */
	assert_true(x[0] == (float)(-sample->mean / sample->deviation));
	free(folder);
}

#define WITH_TOY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TOY(evaluation_in_file_order), WITH_TOY(training_is_shuffled_and_wraps),
		WITH_TOY(skipped_batches),	    WITH_TOY(flat_shapes_fit),
		WITH_TOY(what_does_not_fit),	    WITH_TOY(broken_files),
		WITH_TOY(synthetic_values),	    WITH_TOY(shipped_sample),
	};
	return cmocka_run_group_tests_name("datasets_batches", tests, NULL, NULL);
}
