#include "datasets/samples.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "datasets/byte_stream.h"
#include "datasets/image.h"

struct samples {
	const struct dataset *dataset;
	const struct data_format *format;
	struct data_source *sources[DATASET_FILES_MAX]; /* one for each shard */
	int source_count;
	int64_t shard_samples; /* in each */
	int64_t offset, count; /* the samples of the requested kind among all in the shards */
};

/*
 * Writes a shape without ones, because 1x28x28 and 28x28 have the same bytes. "?" means any size.
 */
static void shape_text(const int64_t *dims, int rank, struct strbuf *out)
{
	const char *times = "";

	for (int i = 0; i < rank; i++) {
		if (dims[i] == 1)
			continue;
		if (dims[i] == 0)
			strbuf_printf(out, "%s?", times);
		else
			strbuf_printf(out, "%s%" PRId64, times, dims[i]);
		times = "x";
	}
}

static enum prony_status check_source(const struct samples *samples,
				      const struct data_source *source, const char *path,
				      struct error *err)
{
	const struct dataset *dataset = samples->dataset;
	enum prony_status status = PRONY_OK;
	struct strbuf have, want;

	strbuf_init(&have, 256);
	strbuf_init(&want, 256);
	shape_text(source->dims, source->rank, &have);
	shape_text(dataset->dims, dataset->rank, &want);
	if (source->count != samples->shard_samples ||
	    strcmp(strbuf_text(&have), strbuf_text(&want)) != 0)
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: it contains %" PRId64
				   " samples of %s, but data set %s has %" PRId64
				   " of %s; " DATA_REMEDY,
				   path, source->count, strbuf_text(&have), dataset->name,
				   samples->shard_samples, strbuf_text(&want));
	strbuf_release(&have);
	strbuf_release(&want);
	return status;
}

/* Opens the shard that begins with `file`. */
static enum prony_status open_shard(struct samples *samples, const char *folder,
				    const struct dataset_file *file, struct error *err)
{
	const struct data_format *format = samples->format;
	char *paths[DATASET_FILES_MAX];
	struct data_shard shard = {.paths = (const char *const *)paths,
				   .classes = samples->dataset->classes};
	struct data_source *source = NULL;

	for (int i = 0; i < format->shard_files; i++)
		paths[i] = dataset_file_path(&file[i], folder);
	enum prony_status status = format->open(&shard, &source, err);
	if (status == PRONY_OK) {
		samples->sources[samples->source_count++] = source;
		status = check_source(samples, source, paths[0], err);
	}
	for (int i = 0; i < format->shard_files; i++)
		free(paths[i]);
	return status;
}

/* False for the end of the list and for class names, which come last. */
static bool holds_samples(const struct dataset_file *file)
{
	return file->name && file->part != PART_NAMES;
}

static bool is_asked_for(enum dataset_part part, bool training)
{
	return part == PART_BOTH || part == (training ? PART_TRAIN : PART_EVALUATION);
}

static enum prony_status open_shards(struct samples *samples, const char *folder, bool training,
				     struct error *err)
{
	const struct dataset *dataset = samples->dataset;
	int step = samples->format->shard_files, shards = 0;
	int64_t total = training ? dataset->train_count : dataset->evaluation_count;
	enum prony_status status = PRONY_OK;

	samples->count = total;
	if (dataset->files[0].part == PART_BOTH) {
		samples->offset = training ? 0 : dataset->train_count;
		total = dataset->train_count + dataset->evaluation_count;
	}
	for (const struct dataset_file *file = dataset->files; holds_samples(file); file += step)
		shards += is_asked_for(file->part, training);
	assert(shards > 0 && total % shards == 0);
	samples->shard_samples = total / shards;
	for (const struct dataset_file *file = dataset->files;
	     status == PRONY_OK && holds_samples(file); file += step)
		if (is_asked_for(file->part, training))
			status = open_shard(samples, folder, file, err);
	return status;
}

enum prony_status samples_open(const struct dataset *dataset, const char *folder, bool training,
			       struct samples **out, struct error *err)
{
	struct samples *samples = memory_alloc(sizeof(*samples));

	*samples =
		(struct samples){.dataset = dataset, .format = data_format_find(dataset->format)};
	assert(samples->format);
	enum prony_status status = open_shards(samples, folder, training, err);
	if (status == PRONY_OK)
		*out = samples;
	else
		samples_close(samples);
	return status;
}

enum prony_status samples_open_path(const struct data_format *format, const char *path,
				    struct samples **out, struct error *err)
{
	const struct data_shard shard = {.paths = &path, .classes = INT32_MAX};
	struct samples *samples = memory_alloc(sizeof(*samples));

	*samples = (struct samples){.format = format};
	if (format->shard_files > 1) {
		free(samples);
		return error_set(err, PRONY_USAGE,
				 "%s: format %s has samples and labels in two files; give the name "
				 "of a data set (prony data list)",
				 path, format->name);
	}
	enum prony_status status = format->open(&shard, &samples->sources[0], err);
	if (status != PRONY_OK) {
		free(samples);
		return status;
	}
	samples->source_count = 1;
	samples->count = samples->shard_samples = samples->sources[0]->count;
	*out = samples;
	return PRONY_OK;
}

void samples_close(struct samples *samples)
{
	if (!samples)
		return;
	for (int i = 0; i < samples->source_count; i++)
		samples->format->close(samples->sources[i]);
	free(samples);
}

int64_t samples_count(const struct samples *samples)
{
	return samples->count;
}

enum data_element samples_element(const struct samples *samples)
{
	return samples->sources[0]->element;
}

enum prony_status samples_read(struct samples *samples, int64_t at, void *values, int64_t *label,
			       struct error *err)
{
	int64_t number = samples->offset + at;
	struct data_source *source = samples->sources[number / samples->shard_samples];

	source->position = number % samples->shard_samples;
	return samples->format->next(source, values, label, err);
}

bool samples_are_records(const struct samples *samples)
{
	return samples->format->record != NULL;
}

enum prony_status samples_record(struct samples *samples, int64_t at, struct data_record *record,
				 struct error *err)
{
	int64_t number = samples->offset + at;
	struct data_source *source = samples->sources[number / samples->shard_samples];
	int leading = IMAGE_CHANNELS - source->rank;
	size_t bytes = 1;

	if (samples->format->record)
		return samples->format->record(source, number % samples->shard_samples, record,
					       err);
	for (int i = 0; i < IMAGE_CHANNELS; i++) {
		record->dims[i] = i < leading ? 1 : source->dims[i - leading];
		bytes *= (size_t)record->dims[i];
	}
	data_record_reserve(record, bytes);
	record->length = bytes;
	record->encoded = false;
	record->name[0] = '\0';
	snprintf(record->where, sizeof(record->where), "sample %" PRId64, at);
	return samples_read(samples, at, record->bytes, &record->label, err);
}
