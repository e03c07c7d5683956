#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/strbuf.h"
#include "datasets/dataset.h"
#include "datasets/records.h"
#include "datasets/samples.h"
#include "datasets/text.h"

static void shape_text(const int64_t *dims, int rank, struct strbuf *out)
{
	for (int i = 0; i < rank; i++)
		strbuf_printf(out, "%s%" PRId64, i > 0 ? "x" : "", dims[i]);
}

/* Copies the dimensions other than 1. Returns their number, with their product in *product. */
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

/* Pictures are resized to what the network takes. */
static bool has_any_size(const struct dataset *dataset)
{
	return dataset->rank == 3 && dataset->dims[1] == 0;
}

/* Whether both shapes have the same bytes in the same order: equal apart from ones (1x28x28 and
 * 28x28), or flat (784, 784x1). */
static bool shapes_fit(const struct dataset *dataset, const struct batch_request *request)
{
	int64_t have[4], want[4], have_product, want_product;

	if (has_any_size(dataset))
		return request->rank == 3 && request->dims[0] == dataset->dims[0] &&
		       request->dims[1] <= IMAGE_SIDE_MAX && request->dims[2] <= IMAGE_SIDE_MAX;
	int have_count = squeeze(dataset->dims, dataset->rank, have, &have_product);
	int want_count = squeeze(request->dims, request->rank, want, &want_product);

	if (have_product != want_product)
		return false;
	return want_count <= 1 || (want_count == have_count &&
				   memcmp(have, want, sizeof(have[0]) * (size_t)want_count) == 0);
}

void dataset_shape_text(const struct dataset *dataset, char *out, size_t bytes)
{
	struct strbuf text;

	strbuf_init(&text, 256);
	if (dataset_is_text(dataset))
		strbuf_puts(&text, "T");
	else if (has_any_size(dataset))
		strbuf_printf(&text, "%" PRId64 "xHxW", dataset->dims[0]);
	else
		shape_text(dataset->dims, dataset->rank, &text);
	snprintf(out, bytes, "%s", dataset->rank ? strbuf_text(&text) : "any");
	strbuf_release(&text);
}

enum prony_status dataset_check_fit(const struct dataset *dataset,
				    const struct batch_request *request, struct error *err)
{
	struct strbuf want;
	char have[64];

	if (dataset->rank == 0 ||
	    (shapes_fit(dataset, request) && request->classes == dataset->classes))
		return PRONY_OK;
	strbuf_init(&want, 256);
	dataset_shape_text(dataset, have, sizeof(have));
	shape_text(request->dims, request->rank, &want);
	error_set(err, PRONY_BAD_INPUT,
		  "data set %s has samples of %s in %" PRId64
		  " classes, but the network needs %s in %" PRId64
		  "; choose another network or data set, or `-d synthetic`",
		  dataset->name, have, dataset->classes, strbuf_text(&want), request->classes);
	strbuf_release(&want);
	return PRONY_BAD_INPUT;
}

struct batch_stream {
	const struct dataset *dataset;
	struct batch_request request;
	size_t elements;	 /* of a sample */
	int64_t at;		 /* number of the next batch */
	struct samples *samples; /* NULL for synthetic */
	size_t *order;		 /* sample order in `epoch`; training only */
	int64_t epoch;		 /* -1: none yet */
	void *raw;		 /* a sample as stored in the file; NULL for records */
	uint8_t *held;		 /* all samples as stored in the files; NULL: read when needed */
	int64_t *held_labels;
	_Atomic int64_t storage_ns, decode_ns;
	float (*scaled)[256]; /* per channel: the value of each byte */
};

static enum prony_status measure_request(const struct batch_request *request, size_t *elements,
					 struct error *err)
{
	int64_t product = 1, values;

	if (request->batch < 1 || request->first < 0 || request->classes < 1 || request->rank < 1 ||
	    request->rank > 4)
		return error_set(err, PRONY_BAD_INPUT,
				 "the batch, the classes and each of the 1 to 4 dimensions must be "
				 "at least 1");
	for (int i = 0; i < request->rank; i++)
		if (request->dims[i] < 1 ||
		    __builtin_mul_overflow(product, request->dims[i], &product))
			return error_set(err, PRONY_BAD_INPUT,
					 "dimension %d of a sample is %" PRId64
					 ", which is too small or too large",
					 i, request->dims[i]);
	/* Leave room for a hundred years of further batches. */
	if (__builtin_mul_overflow(product, request->batch, &values) ||
	    values > INT64_MAX / (int64_t)sizeof(float) ||
	    request->first > (INT64_MAX >> 1) / request->batch)
		return error_set(err, PRONY_BAD_INPUT,
				 "batches of %" PRId64 " samples, from batch %" PRId64
				 " on, are too large for this machine",
				 request->batch, request->first);
	*elements = (size_t)product;
	return PRONY_OK;
}

/* Each batch has its own random stream, so that batch 7 does not depend on batches 0 to 6. */
static void fill_synthetic(struct batch_stream *stream, int count, float *const *xs,
			   int64_t *const *ys)
{
	const struct batch_request *request = &stream->request;
	size_t values = stream->elements * (size_t)request->batch;

	for (int b = 0; b < count; b++) {
		float *x = xs[b];
		int64_t *y = ys[b];
		struct random random;
		char name[64];

		snprintf(name, sizeof(name), "synthetic/%s/%" PRId64,
			 dataset_part(request->training), stream->at + b);
		random_init_named(&random, request->seed, name);
		for (size_t i = 0; i < values; i++) {
			float value = (float)random_normal(&random);

			/* Zeros would allow sparse shortcuts and denormals. */
			while (value == 0.0f)
				value = (float)random_normal(&random);
			*x++ = value;
		}
		for (int64_t i = 0; i < request->batch; i++)
			*y++ = (int64_t)random_below(&random, (uint64_t)request->classes);
	}
}

static int channels_of(const struct dataset *dataset)
{
	return dataset->rank == 3 ? (int)dataset->dims[0] : 1;
}

static double scale(const struct dataset *dataset, int channel, double value)
{
	return (value / dataset->scale - dataset->mean[channel]) / dataset->deviation[channel];
}

enum prony_status batch_stream_open(const struct dataset *dataset, const char *folder,
				    const struct batch_request *request, struct batch_stream **out,
				    struct error *err)
{
	struct batch_stream *stream = memory_alloc(sizeof(*stream));
	int channels = channels_of(dataset);

	assert(channels <= DATASET_CHANNELS_MAX);
	*stream = (struct batch_stream){
		.dataset = dataset, .request = *request, .at = request->first, .epoch = -1};
	enum prony_status status = measure_request(request, &stream->elements, err);
	if (status == PRONY_OK)
		status = dataset_check_fit(dataset, request, err);
	if (status == PRONY_OK && dataset->format)
		status = samples_open(dataset, folder, request->training, &stream->samples, err);
	if (status != PRONY_OK) {
		batch_stream_close(stream);
		return status;
	}
	if (stream->samples) {
		if (!samples_are_records(stream->samples))
			stream->raw =
				memory_alloc(stream->elements *
					     data_element_bytes(samples_element(stream->samples)));
		stream->scaled = memory_alloc((size_t)channels * sizeof(*stream->scaled));
		for (int i = 0; i < channels * 256; i++)
			stream->scaled[i / 256][i % 256] =
				(float)scale(dataset, i / 256, (double)(i % 256));
	}
	*out = stream;
	return PRONY_OK;
}

void batch_stream_close(struct batch_stream *stream)
{
	if (!stream)
		return;
	samples_close(stream->samples);
	free(stream->order);
	free(stream->raw);
	free(stream->held);
	free(stream->held_labels);
	free(stream->scaled);
	free(stream);
}

/* The first epoch keeps the order of earlier versions, which had only one. */
static void make_order(struct batch_stream *stream, int64_t epoch)
{
	size_t count = (size_t)samples_count(stream->samples);
	struct random random;
	char name[32] = "order";

	if (!stream->order)
		stream->order = memory_alloc(count * sizeof(*stream->order));
	for (size_t i = 0; i < count; i++)
		stream->order[i] = i;
	if (epoch > 0)
		snprintf(name, sizeof(name), "order/%" PRId64, epoch);
	random_init_named(&random, stream->request.seed, name);
	random_shuffle(&random, stream->order, count);
	stream->epoch = epoch;
}

/* The sample at `row` of batch `number`. */
static int64_t sample_at(struct batch_stream *stream, int64_t number, int64_t row)
{
	int64_t count = samples_count(stream->samples), batch = stream->request.batch;
	int64_t full = count / batch;

	if (stream->request.training) {
		int64_t position = number * batch + row;

		if (position / count != stream->epoch)
			make_order(stream, position / count);
		return (int64_t)stream->order[position % count];
	}
	return full > 0 ? number % full * batch + row : (number * batch + row) % count;
}

struct pick {
	int64_t sample;
	size_t place; /* position in the batches */
};

static int compare_picks(const void *left, const void *right)
{
	const struct pick *a = left, *b = right;

	if (a->sample != b->sample)
		return a->sample < b->sample ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

/* Lists the samples that the batches need, in file order. */
static struct pick *make_picks(struct batch_stream *stream, int count)
{
	int64_t batch = stream->request.batch;
	size_t total = (size_t)count * (size_t)batch;
	struct pick *picks = memory_alloc(total * sizeof(*picks));

	for (size_t i = 0; i < total; i++)
		picks[i] =
			(struct pick){.sample = sample_at(stream, stream->at + (int64_t)i / batch,
							  (int64_t)i % batch),
				      .place = i};
	qsort(picks, total, sizeof(*picks), compare_picks);
	return picks;
}

/* Scales a raw sample by channel. */
static void convert(const struct batch_stream *stream, const void *raw, float *x)
{
	int channels = channels_of(stream->dataset);
	size_t plane = stream->elements / (size_t)channels;
	const uint8_t *bytes = raw;
	const float *floats = raw;

	for (int channel = 0; channel < channels; channel++)
		for (size_t i = 0; i < plane; i++)
			if (samples_element(stream->samples) == DATA_U8)
				*x++ = stream->scaled[channel][*bytes++];
			else
				*x++ = (float)scale(stream->dataset, channel, (double)*floats++);
}

/* Batches that all cores fill together. */
struct filling {
	struct batch_stream *stream;
	const struct pick *picks;
	float *const *x;
	int64_t *const *y;
};

static float *place_of(const struct batch_stream *stream, float *const *x, size_t place)
{
	size_t batch = (size_t)stream->request.batch;

	return x[place / batch] + place % batch * stream->elements;
}

static int64_t *label_of(const struct batch_stream *stream, int64_t *const *y, size_t place)
{
	size_t batch = (size_t)stream->request.batch;

	return y[place / batch] + place % batch;
}

static size_t raw_bytes(const struct batch_stream *stream)
{
	return stream->elements * data_element_bytes(samples_element(stream->samples));
}

/* Each position of each batch gets its own random crop. */
static uint64_t draw_of(const struct batch_stream *stream, size_t place)
{
	struct random random;
	char name[64];

	snprintf(name, sizeof(name), "part/%" PRId64,
		 stream->at * stream->request.batch + (int64_t)place);
	random_init_named(&random, stream->request.seed, name);
	return random_next(&random);
}

/* A sample in memory only needs scaling. */
static enum prony_status fill_held(void *context, int64_t item, struct data_record *record,
				   struct error *err)
{
	const struct filling *filling = context;
	struct batch_stream *stream = filling->stream;
	const struct pick *pick = &filling->picks[item];
	int64_t begin_ns = clock_monotonic_ns();

	(void)record, (void)err;
	convert(stream, stream->held + (size_t)pick->sample * raw_bytes(stream),
		place_of(stream, filling->x, pick->place));
	*label_of(stream, filling->y, pick->place) = stream->held_labels[pick->sample];
	atomic_fetch_add(&stream->decode_ns, clock_monotonic_ns() - begin_ns);
	return PRONY_OK;
}

static enum prony_status fill_picture(void *context, int64_t item, struct data_record *record,
				      struct error *err)
{
	const struct filling *filling = context;
	struct batch_stream *stream = filling->stream;
	const struct pick *pick = &filling->picks[item];
	const struct image_view view = {
		.height = (int)stream->request.dims[1],
		.width = (int)stream->request.dims[2],
		.random = stream->request.training,
		.draw = draw_of(stream, pick->place),
	};
	int64_t begin_ns = clock_monotonic_ns(), read_ns = begin_ns;
	uint8_t *planes = memory_alloc(stream->elements);
	record->cold = stream->request.cold;
	enum prony_status status = samples_record(stream->samples, pick->sample, record, err);

	if (status == PRONY_OK) {
		read_ns = clock_monotonic_ns();
		status = record_decode(record, &view, planes, err);
	}
	if (status == PRONY_OK) {
		convert(stream, planes, place_of(stream, filling->x, pick->place));
		*label_of(stream, filling->y, pick->place) = record->label;
		atomic_fetch_add(&stream->storage_ns, read_ns - begin_ns);
		atomic_fetch_add(&stream->decode_ns, clock_monotonic_ns() - read_ns);
	}
	free(planes);
	return status;
}

/* Reads samples one by one, in file order. */
static enum prony_status fill_in_order(struct filling *filling, size_t total, struct error *err)
{
	struct batch_stream *stream = filling->stream;
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < total && status == PRONY_OK; i++) {
		const struct pick *pick = &filling->picks[i];
		int64_t begin_ns = clock_monotonic_ns();

		status = samples_read(stream->samples, pick->sample, stream->raw,
				      label_of(stream, filling->y, pick->place), err);
		int64_t read_ns = clock_monotonic_ns();
		if (status == PRONY_OK)
			convert(stream, stream->raw, place_of(stream, filling->x, pick->place));
		stream->storage_ns += read_ns - begin_ns;
		stream->decode_ns += clock_monotonic_ns() - read_ns;
	}
	return status;
}

static enum prony_status fill_from_files(struct batch_stream *stream, int count, float *const *x,
					 int64_t *const *y, struct error *err)
{
	struct pick *picks = make_picks(stream, count);
	struct filling filling = {.stream = stream, .picks = picks, .x = x, .y = y};
	size_t total = (size_t)count * (size_t)stream->request.batch;
	enum prony_status status;

	if (stream->held)
		status = records_each((int64_t)total, fill_held, &filling, err);
	else if (samples_are_records(stream->samples))
		status = records_each((int64_t)total, fill_picture, &filling, err);
	else
		status = fill_in_order(&filling, total, err);
	free(picks);
	return status;
}

enum prony_status batch_stream_hold(struct batch_stream *stream, int64_t limit_bytes,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;
	size_t bytes, all;

	if (!stream->samples || samples_are_records(stream->samples) || stream->held)
		return PRONY_OK;
	size_t count = (size_t)samples_count(stream->samples);
	bytes = raw_bytes(stream);
	if (__builtin_mul_overflow(bytes, count, &all) || all > (size_t)limit_bytes)
		return PRONY_OK;
	uint8_t *held = memory_alloc(all);
	int64_t *labels = memory_alloc(count * sizeof(*labels));
	for (size_t i = 0; i < count && status == PRONY_OK; i++)
		status = samples_read(stream->samples, (int64_t)i, held + i * bytes, &labels[i],
				      err);
	if (status != PRONY_OK) {
		free(held);
		free(labels);
		return status;
	}
	stream->held = held;
	stream->held_labels = labels;
	return PRONY_OK;
}

enum prony_status batch_stream_fill(struct batch_stream *stream, int count, float *const *x,
				    int64_t *const *y, struct error *err)
{
	enum prony_status status = PRONY_OK;

	if (stream->samples)
		status = fill_from_files(stream, count, x, y, err);
	else
		fill_synthetic(stream, count, x, y);
	if (status == PRONY_OK)
		stream->at += count;
	return status;
}

enum prony_status batch_stream_next(struct batch_stream *stream, int count, float *x, int64_t *y,
				    struct error *err)
{
	size_t batch = (size_t)stream->request.batch;
	float **xs = memory_alloc(((size_t)count + 1) * sizeof(*xs));
	int64_t **ys = memory_alloc(((size_t)count + 1) * sizeof(*ys));

	for (size_t i = 0; i < (size_t)count; i++) {
		xs[i] = x + i * batch * stream->elements;
		ys[i] = y + i * batch;
	}
	enum prony_status status = batch_stream_fill(stream, count, xs, ys, err);
	free(xs);
	free(ys);
	return status;
}

struct batch_times batch_stream_times(const struct batch_stream *stream)
{
	return (struct batch_times){.storage_ns = stream->storage_ns,
				    .decode_ns = stream->decode_ns};
}
