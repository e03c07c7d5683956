#include "datasets/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/strbuf.h"
#include "datasets/idx.h"

/* A published IDX file decompresses to less; a hostile one must not take the machine's memory. */
#define FILE_LIMIT_BYTES ((size_t)256 * 1024 * 1024)

static void shape_text(const int64_t *dims, int rank, struct strbuf *out)
{
	for (int i = 0; i < rank; i++)
		strbuf_printf(out, "%s%" PRId64, i > 0 ? "x" : "", dims[i]);
}

/* Copies the dimensions that are not 1; returns how many, and their product in *product. */
static int squeeze(const int64_t *dims, int rank, int64_t *out, int64_t *product)
{
	int count = 0;

	*product = 1;
	for (int i = 0; i < rank; i++) {
		*product *= dims[i];
		if (dims[i] != 1)
			out[count++] = dims[i];
	}
	return count;
}

/* Same bytes in the same order: equal but for ones (1x28x28 and 28x28), or flat (784, 784x1). */
static bool shapes_fit(const struct dataset *dataset, const struct batch_request *request)
{
	int64_t have[4], want[4], have_product, want_product;
	int have_count = squeeze(dataset->dims, dataset->rank, have, &have_product);
	int want_count = squeeze(request->dims, request->rank, want, &want_product);

	if (have_product != want_product)
		return false;
	return want_count <= 1 || (want_count == have_count &&
				   memcmp(have, want, sizeof(have[0]) * (size_t)want_count) == 0);
}

enum prony_status dataset_check_fit(const struct dataset *dataset,
				    const struct batch_request *request, struct error *err)
{
	struct strbuf have, want;

	if (dataset->rank == 0 ||
	    (shapes_fit(dataset, request) && request->classes == dataset->classes))
		return PRONY_OK;
	strbuf_init(&have, 256);
	strbuf_init(&want, 256);
	shape_text(dataset->dims, dataset->rank, &have);
	shape_text(request->dims, request->rank, &want);
	error_set(err, PRONY_BAD_INPUT,
		  "data set %s has samples of %s in %" PRId64 " classes, the network takes %s in "
		  "%" PRId64 "; choose a network or a data set that fits, or `-d synthetic`",
		  dataset->name, strbuf_text(&have), dataset->classes, strbuf_text(&want),
		  request->classes);
	strbuf_release(&have);
	strbuf_release(&want);
	return PRONY_BAD_INPUT;
}

/* Sizes of what is asked for, overflow checked. */
struct extent {
	size_t elements; /* of a sample */
	size_t samples;
};

static enum prony_status measure_request(const struct batch_request *request, struct extent *extent,
					 struct error *err)
{
	int64_t elements = 1, samples;

	if (request->batch < 1 || request->count < 1 || request->first < 0 ||
	    request->classes < 1 || request->rank < 1 || request->rank > 4)
		return error_set(
			err, PRONY_BAD_INPUT,
			"batches need a batch, a count, classes and 1 to 4 dimensions of at "
			"least 1");
	for (int i = 0; i < request->rank; i++)
		if (request->dims[i] < 1 ||
		    __builtin_mul_overflow(elements, request->dims[i], &elements))
			return error_set(err, PRONY_BAD_INPUT,
					 "dimension %d of a sample is %" PRId64 ": no such batch",
					 i, request->dims[i]);
	if (__builtin_mul_overflow(request->batch, (int64_t)request->count, &samples) ||
	    samples > INT64_MAX / 8 / elements)
		return error_set(err, PRONY_BAD_INPUT,
				 "%d batches of %" PRId64 " samples are too many for this machine",
				 request->count, request->batch);
	*extent = (struct extent){.elements = (size_t)elements, .samples = (size_t)samples};
	return PRONY_OK;
}

/* A stream for each batch, so that batch 7 is the same whether or not 0 to 6 were asked for. */
static void fill_synthetic(const struct batch_request *request, const struct extent *extent,
			   float *x, int64_t *y)
{
	size_t values = extent->elements * (size_t)request->batch;

	for (int b = 0; b < request->count; b++) {
		struct random random;
		char name[64];

		snprintf(name, sizeof(name), "synthetic/%s/%" PRIu64,
			 request->training ? "train" : "evaluation",
			 (uint64_t)request->first + (uint64_t)b);
		random_init_named(&random, request->seed, name);
		for (size_t i = 0; i < values; i++) {
			float value = (float)random_normal(&random);

			/* Zeros would let sparse shortcuts and denormals into the measurement. */
			while (value == 0.0f)
				value = (float)random_normal(&random);
			*x++ = value;
		}
		for (int64_t i = 0; i < request->batch; i++)
			*y++ = (int64_t)random_below(&random, (uint64_t)request->classes);
	}
}

/* One pair of files: images and their labels. */
struct pair {
	struct idx images, labels;
	int64_t offset, count; /* the samples of the pair that are of the kind asked for */
};

static void pair_release(struct pair *pair)
{
	idx_release(&pair->images);
	idx_release(&pair->labels);
}

static enum prony_status check_labels(const struct dataset *dataset, const struct idx *labels,
				      const char *path, struct error *err)
{
	for (int64_t i = 0; i < labels->dims[0]; i++)
		if (labels->data[i] >= dataset->classes)
			return error_set(
				err, PRONY_BAD_INPUT,
				"%s: offset %" PRId64 ": label %d, but there are %" PRId64
				" classes; replace the file by a fresh copy (prony data fetch)",
				path, 8 + i, labels->data[i], dataset->classes);
	return PRONY_OK;
}

static enum prony_status check_pair(const struct dataset *dataset, const struct pair *pair,
				    int64_t samples, const char *images_path,
				    const char *labels_path, struct error *err)
{
	const struct idx *images = &pair->images, *labels = &pair->labels;

	if (images->rank != 3 || images->dims[1] != dataset->dims[1] ||
	    images->dims[2] != dataset->dims[2] || images->dims[0] != samples) {
		struct strbuf found;

		strbuf_init(&found, 256);
		shape_text(images->dims, images->rank, &found);
		error_set(err, PRONY_BAD_INPUT,
			  "%s: offset 4: the file holds %s, data set %s has %" PRId64 "x%" PRId64
			  "x%" PRId64 "; replace the file by a fresh copy (prony data fetch)",
			  images_path, strbuf_text(&found), dataset->name, samples,
			  dataset->dims[1], dataset->dims[2]);
		strbuf_release(&found);
		return PRONY_BAD_INPUT;
	}
	if (labels->rank != 1 || labels->dims[0] != samples)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: offset 4: the file holds %d dimensions, the first %" PRId64
				 ", instead of %" PRId64
				 " labels; replace the file by a fresh copy (prony data fetch)",
				 labels_path, labels->rank, labels->dims[0], samples);
	return check_labels(dataset, labels, labels_path, err);
}

/* The files come in pairs, images before labels: the training pair and the evaluation pair, or one
 * pair for both. */
static enum prony_status pair_read(const struct dataset *dataset, const char *folder, bool training,
				   struct pair *pair, struct error *err)
{
	bool shared = !dataset->files[2].name;
	const struct dataset_file *files = dataset->files + (shared || training ? 0 : 2);
	int64_t train = dataset->train_count, evaluation = dataset->evaluation_count;
	int64_t samples = shared ? train + evaluation : (training ? train : evaluation);
	char *images_path = path_join(folder, files[0].name);
	char *labels_path = path_join(folder, files[1].name);

	*pair = (struct pair){
		.offset = shared && !training ? train : 0,
		.count = training ? train : evaluation,
	};
	enum prony_status status = idx_read(images_path, FILE_LIMIT_BYTES, &pair->images, err);
	if (status == PRONY_OK)
		status = idx_read(labels_path, FILE_LIMIT_BYTES, &pair->labels, err);
	if (status == PRONY_OK)
		status = check_pair(dataset, pair, samples, images_path, labels_path, err);
	free(images_path);
	free(labels_path);
	return status;
}

/* Sample numbers in the order in which batches take them. */
static size_t *make_order(const struct pair *pair, const struct batch_request *request)
{
	size_t count = (size_t)pair->count;
	size_t *order = memory_alloc(count * sizeof(*order));
	struct random random;

	for (size_t i = 0; i < count; i++)
		order[i] = (size_t)pair->offset + i;
	if (request->training) {
		random_init_named(&random, request->seed, "order");
		random_shuffle(&random, order, count);
	}
	return order;
}

static void fill_idx(const struct dataset *dataset, const struct pair *pair,
		     const struct batch_request *request, const struct extent *extent, float *x,
		     int64_t *y)
{
	float scaled[256];
	size_t *order = make_order(pair, request);
	size_t count = (size_t)pair->count;
	/* The product may overflow, its remainder cannot. */
	size_t at = (size_t)request->first % count * ((size_t)request->batch % count) % count;

	for (int pixel = 0; pixel < 256; pixel++)
		scaled[pixel] = (float)((pixel / 255.0 - dataset->mean) / dataset->deviation);
	for (size_t sample = 0; sample < extent->samples; sample++) {
		const uint8_t *pixels = pair->images.data + order[at] * extent->elements;

		for (size_t i = 0; i < extent->elements; i++)
			*x++ = scaled[pixels[i]];
		*y++ = pair->labels.data[order[at]];
		at = at + 1 < count ? at + 1 : 0;
	}
	free(order);
}

enum prony_status dataset_batches(const struct dataset *dataset, const char *folder,
				  const struct batch_request *request, struct arena *arena,
				  float **x, int64_t **y, struct error *err)
{
	struct pair pair = {0};
	struct extent extent = {0};
	bool synthetic = dataset->rank == 0;
	enum prony_status status = measure_request(request, &extent, err);

	if (status == PRONY_OK)
		status = dataset_check_fit(dataset, request, err);
	if (status == PRONY_OK && !synthetic)
		status = pair_read(dataset, folder, request->training, &pair, err);
	if (status != PRONY_OK)
		goto out;
	float *values =
		arena_try_array(arena, extent.samples * extent.elements, sizeof(*values), err);
	int64_t *classes = arena_try_array(arena, extent.samples, sizeof(*classes), err);
	if (!values || !classes) {
		status = PRONY_NOMEM;
		goto out;
	}
	if (synthetic)
		fill_synthetic(request, &extent, values, classes);
	else
		fill_idx(dataset, &pair, request, &extent, values, classes);
	*x = values;
	*y = classes;
out:
	pair_release(&pair);
	return status;
}
