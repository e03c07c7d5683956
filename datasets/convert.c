#include "datasets/convert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "datasets/records.h"
#include "datasets/writer.h"

/* After this many samples everything is synced to disk and the journal is updated. */
enum { CHUNK = 256 };

#define JOURNAL_LIMIT_BYTES ((size_t)256 << 20)

struct conversion {
	const struct convert_request *request;
	struct convert_result result;
	char *identity; /* lines that describe source and format */
	struct byte_buffer state;
	struct data_sink *sink;
	int64_t position; /* of the next sample */
	int lock;	  /* lock on the folder */
	struct data_record records[CHUNK];
	struct error errors[CHUNK];
};

static char *make_identity(const struct convert_request *request)
{
	char size[64] = "as it is";

	if (request->size > 0)
		snprintf(size, sizeof(size), "%d x %d", request->size, request->size);
	return memory_printf("source: %s, %" PRId64 " samples\nformat: %s\nsize: %s\n",
			     request->source, samples_count(request->samples),
			     request->format->name, size);
}

static enum prony_status write_journal(struct conversion *c, struct error *err)
{
	char *path = path_join(c->request->folder, CONVERT_JOURNAL), head[128];
	struct byte_buffer text = {0};

	byte_buffer_add(&text, c->identity, strlen(c->identity));
	snprintf(head, sizeof(head), "at %" PRId64 " written %" PRId64 " broken %" PRId64 "\n",
		 c->position, c->result.written, c->result.broken);
	byte_buffer_add(&text, head, strlen(head));
	byte_buffer_add(&text, c->state.bytes, c->state.length);
	enum prony_status status = file_write_atomic(path, text.bytes, text.length, err);
	byte_buffer_release(&text);
	free(path);
	return status;
}

static enum prony_status other_conversion(const struct conversion *c, const char *what,
					  struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: it contains %s; choose another folder, or remove this one",
			 c->request->folder, what);
}

/* Resumes from the journal of an earlier call. */
static enum prony_status read_journal(struct conversion *c, const char *path, struct error *err)
{
	size_t identity = strlen(c->identity), length;
	char *text, *line;
	enum prony_status status = file_read(path, JOURNAL_LIMIT_BYTES, &text, &length, err);

	if (status != PRONY_OK)
		return status;
	line = text + identity;
	if (length < identity || memcmp(text, c->identity, identity) != 0)
		status = other_conversion(c, "an unfinished conversion of other data", err);
	else if (sscanf(line, "at %" SCNd64 " written %" SCNd64 " broken %" SCNd64, &c->position,
			&c->result.written, &c->result.broken) != 3 ||
		 c->position < 0 || c->position > samples_count(c->request->samples) ||
		 c->result.written + c->result.broken != c->position)
		status = other_conversion(c, "a broken " CONVERT_JOURNAL, err);
	else {
		char *state = strchr(line, '\n');

		state = state ? state + 1 : text + length;
		byte_buffer_add(&c->state, state, (size_t)(text + length - state));
		c->result.resumed_at = c->position;
	}
	free(text);
	return status;
}

/* Temporary files left behind by a killed conversion. */
static bool is_torn(const char *name)
{
	static const char *const whole[] = {CONVERT_JOURNAL ".", CONVERT_WHOLE ".", WRITER_SUMS ".",
					    "mean.xml."};
	size_t length = strlen(name);
	bool ours = false;

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		ours |= strncmp(name, whole[i], strlen(whole[i])) == 0;
	return ours && length > 4 && strcmp(name + length - 4, ".tmp") == 0;
}

static void remove_torn(const char *folder)
{
	DIR *stream = opendir(folder);
	const struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		if (is_torn(entry->d_name))
			unlinkat(dirfd(stream), entry->d_name, 0);
	if (stream)
		closedir(stream);
}

/* Two conversions at the same time would write into the same files. */
static enum prony_status lock_folder(struct conversion *c, struct error *err)
{
	const char *folder = c->request->folder;

	c->lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->lock < 0)
		return error_errno(err, PRONY_IO, errno, "cannot open %s", folder);
	if (flock(c->lock, LOCK_EX | LOCK_NB) != 0)
		return error_set(err, PRONY_IO, "%s: another conversion is writing to this folder",
				 folder);
	return PRONY_OK;
}

static bool is_empty(const char *folder)
{
	DIR *stream = opendir(folder);
	const struct dirent *entry;
	bool empty = true;

	while (stream && empty && (entry = readdir(stream)))
		/* A conversion killed while writing its first journal leaves this file. */
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			(strncmp(entry->d_name, CONVERT_JOURNAL, strlen(CONVERT_JOURNAL)) == 0 &&
			 is_torn(entry->d_name));
	if (stream)
		closedir(stream);
	return empty;
}

/* Whether the folder holds this conversion, completely. */
static enum prony_status check_whole(struct conversion *c, const char *path, struct error *err)
{
	size_t identity = strlen(c->identity), length;
	char *text;
	enum prony_status status = file_read(path, JOURNAL_LIMIT_BYTES, &text, &length, err);

	if (status != PRONY_OK)
		return status;
	c->result.was_whole = length > identity && memcmp(text, c->identity, identity) == 0 &&
			      sscanf(text + identity, "written: %" SCNd64 "\nleft out: %" SCNd64,
				     &c->result.written, &c->result.broken) == 2;
	free(text);
	return c->result.was_whole ? PRONY_OK
				   : other_conversion(c, "a conversion of other data", err);
}

/* Checks the folder's content: nothing, part of this conversion, or all of it. */
static enum prony_status look_at_folder(struct conversion *c, struct error *err)
{
	const char *folder = c->request->folder;
	char *journal = path_join(folder, CONVERT_JOURNAL),
	     *whole = path_join(folder, CONVERT_WHOLE);
	enum prony_status status = directory_make(folder, err);

	if (status == PRONY_OK)
		status = lock_folder(c, err);
	if (status == PRONY_OK && file_exists(whole)) {
		status = check_whole(c, whole, err);
		if (status == PRONY_OK)
			unlink(journal);
	} else if (status == PRONY_OK && file_exists(journal)) {
		status = read_journal(c, journal, err);
	} else if (status == PRONY_OK) {
		status = is_empty(folder) ? write_journal(c, err)
					  : other_conversion(c, "other files", err);
	}
	/* Only in a folder that belongs to this conversion. */
	if (status == PRONY_OK)
		remove_torn(folder);
	free(whole);
	free(journal);
	return status;
}

static void to_png(struct data_record *record)
{
	int channels = (int)record->dims[0], height = (int)record->dims[1],
	    width = (int)record->dims[2];
	size_t plane = (size_t)height * (size_t)width;
	uint8_t *pixels = memory_alloc(record->length), *png;
	size_t length;

	for (size_t i = 0; i < record->length; i++)
		pixels[i % plane * (size_t)channels + i / plane] = record->bytes[i];
	image_encode_png(pixels, height, width, channels, &png, &length);
	free(pixels);
	data_record_reserve(record, length);
	memcpy(record->bytes, png, length);
	free(png);
	record->length = length;
	record->encoded = true;
}

/* Decodes a picture to the pixels of the view. */
static enum prony_status to_pixels(struct data_record *record, const struct image_view *view,
				   int height, int width, struct error *err)
{
	size_t length = IMAGE_CHANNELS * (size_t)height * (size_t)width, plane = record->length;
	uint8_t *planes = memory_alloc(length);

	if (!record->encoded && record->dims[0] == 1) {
		/* A grey picture has the same values in each channel. */
		data_record_reserve(record, IMAGE_CHANNELS * plane);
		for (size_t i = 1; i < IMAGE_CHANNELS; i++)
			memcpy(record->bytes + i * plane, record->bytes, plane);
		record->length = IMAGE_CHANNELS * plane;
		record->dims[0] = IMAGE_CHANNELS;
	}
	enum prony_status status = record_decode(record, view, planes, err);

	if (status == PRONY_OK) {
		data_record_reserve(record, length);
		memcpy(record->bytes, planes, length);
		record->length = length;
		record->encoded = false;
		record->dims[0] = IMAGE_CHANNELS;
		record->dims[1] = height;
		record->dims[2] = width;
	}
	free(planes);
	return status;
}

/* A picture that is copied unchanged must be intact. */
static enum prony_status check_picture(const struct data_record *record, struct error *err)
{
	struct image image = {0};
	enum prony_status status =
		image_decode_whole(record->where, record->bytes, record->length, &image, err);

	image_release(&image);
	return status;
}

static enum prony_status prepare(const struct convert_request *request, struct data_record *record,
				 struct error *err)
{
	struct image_view view = {.height = request->size, .width = request->size};
	enum prony_status status = PRONY_OK;
	int height = request->size, width = request->size;

	if (record->encoded) {
		status = image_measure(record->where, record->bytes, record->length, &height,
				       &width, err);
		if (status != PRONY_OK)
			return status;
		record->dims[0] = IMAGE_CHANNELS;
		record->dims[1] = height;
		record->dims[2] = width;
		if (request->size > 0)
			height = width = request->size;
		else if (!request->format->writer->only_png ||
			 image_kind_of(record->bytes, record->length) == IMAGE_PNG)
			return check_picture(record, err);
		status = to_pixels(record, &view, height, width, err);
	} else if (request->size > 0 && (record->dims[1] != height || record->dims[2] != width)) {
		status = to_pixels(record, &view, height, width, err);
	}
	if (status == PRONY_OK && !record->encoded && !request->format->writer->raw)
		to_png(record);
	return status;
}

static enum prony_status prepare_one(void *context, int64_t item, struct data_record *unused,
				     struct error *err)
{
	struct conversion *c = context;
	const struct convert_request *request = c->request;
	struct data_record *record = &c->records[item];
	enum prony_status status = PRONY_OK;

	(void)unused;
	if (samples_are_records(request->samples))
		status = samples_record(request->samples, c->position + item, record, err);
	if (status == PRONY_OK)
		status = prepare(request, record, err);
	c->errors[item] = *err;
	/* A broken sample is skipped; a read error ends the conversion. */
	return status == PRONY_BAD_INPUT ? PRONY_OK : status;
}

/* Pixel files are read one sample after the other. */
static enum prony_status read_pixels(struct conversion *c, int64_t count, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int64_t i = 0; i < count && status == PRONY_OK; i++)
		status = samples_record(c->request->samples, c->position + i, &c->records[i], err);
	return status;
}

static enum prony_status put_chunk(struct conversion *c, int64_t count, struct error *err)
{
	const struct convert_request *request = c->request;
	enum prony_status status = PRONY_OK;

	for (int64_t i = 0; i < count && status == PRONY_OK; i++) {
		if (c->errors[i].code != PRONY_OK) {
			c->result.broken++;
			if (request->broken)
				request->broken(request->context, c->errors[i].text);
			continue;
		}
		status = request->format->writer->put(c->sink, &c->records[i], err);
		c->sink->written = ++c->result.written;
	}
	c->state.length = 0;
	if (status == PRONY_OK)
		status = request->format->writer->commit(c->sink, &c->state, err);
	return status;
}

static enum prony_status convert_chunk(struct conversion *c, int64_t count, struct error *err)
{
	const struct convert_request *request = c->request;
	enum prony_status status = PRONY_OK;

	if (!samples_are_records(request->samples))
		status = read_pixels(c, count, err);
	if (status == PRONY_OK)
		status = records_each(count, prepare_one, c, err);
	if (status == PRONY_OK)
		status = put_chunk(c, count, err);
	if (status != PRONY_OK)
		return status;
	c->position += count;
	status = write_journal(c, err);
	if (status == PRONY_OK && request->progress)
		request->progress(request->context, c->position, samples_count(request->samples));
	return status;
}

/* The description of the folder is written last; it marks the conversion as complete. */
static enum prony_status end(struct conversion *c, struct error *err)
{
	const char *folder = c->request->folder;
	char *whole = path_join(folder, CONVERT_WHOLE),
	     *journal = path_join(folder, CONVERT_JOURNAL);
	char *text = memory_printf("%swritten: %" PRId64 "\nleft out: %" PRId64 "\n", c->identity,
				   c->result.written, c->result.broken);
	enum prony_status status = c->request->format->writer->finish(c->sink, err);

	if (status == PRONY_OK)
		status = file_write_atomic(whole, text, strlen(text), err);
	if (status == PRONY_OK)
		unlink(journal);
	free(text);
	free(journal);
	free(whole);
	return status;
}

static enum prony_status convert_all(struct conversion *c, struct error *err)
{
	const struct convert_request *request = c->request;
	int64_t total = samples_count(request->samples);
	const struct byte_buffer *state = c->state.length > 0 ? &c->state : NULL;
	const struct data_writer *writer = request->format->writer;

	c->sink = memory_alloc(writer->sink_bytes);
	memset(c->sink, 0, writer->sink_bytes);
	c->sink->folder = request->folder;
	enum prony_status status = writer->open(c->sink, state, err);
	c->sink->written = c->result.written;
	while (status == PRONY_OK && c->position < total) {
		int64_t left = total - c->position;

		status = convert_chunk(c, left < CHUNK ? left : CHUNK, err);
	}
	if (status == PRONY_OK)
		status = end(c, err);
	writer->close(c->sink);
	free(c->sink);
	return status;
}

static enum prony_status check_request(const struct convert_request *request, struct error *err)
{
	const char *word = request->format->name;

	if (request->format->writer->one_size && request->size == 0 &&
	    samples_are_records(request->samples))
		return error_set(err, PRONY_USAGE,
				 "--to %s computes a mean image, so all images must have the same "
				 "size; add --size N, for example --size 224",
				 word);
	if (request->size > 0 && !samples_are_records(request->samples))
		return error_set(err, PRONY_USAGE,
				 "--size is only for photographs; all samples of %s already have "
				 "the same size",
				 request->source);
	if (!samples_are_records(request->samples) && samples_element(request->samples) != DATA_U8)
		return error_set(err, PRONY_UNSUPPORTED,
				 "%s: it contains floats; only data sets of bytes can be converted",
				 request->source);
	return PRONY_OK;
}

enum prony_status data_convert(const struct convert_request *request, struct convert_result *out,
			       struct error *err)
{
	enum prony_status status = check_request(request, err);

	if (status != PRONY_OK)
		return status;
	struct conversion *c = memory_alloc(sizeof(*c));
	memset(c, 0, sizeof(*c));
	c->request = request;
	c->lock = -1;
	c->identity = make_identity(request);
	status = look_at_folder(c, err);
	if (status == PRONY_OK && !c->result.was_whole)
		status = convert_all(c, err);
	if (status == PRONY_OK)
		*out = c->result;
	if (c->lock >= 0)
		close(c->lock);
	for (int i = 0; i < CHUNK; i++)
		data_record_release(&c->records[i]);
	byte_buffer_release(&c->state);
	free(c->identity);
	free(c);
	return status;
}
