#include "datasets/records.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parallel.h"

/* Records of a chunk are all read before broken ones are reported. */
enum { CHUNK = 1024 };

enum prony_status record_decode(const struct data_record *record, const struct image_view *view,
				uint8_t *planes, struct error *err)
{
	if (record->encoded)
		return image_decode(record->where, record->bytes, record->length, view, planes,
				    err);
	if (record->dims[0] != IMAGE_CHANNELS)
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: it has %lld channels; an image must have %d; convert the data "
			"first (prony data convert)",
			record->where, (long long)record->dims[0], IMAGE_CHANNELS);
	image_view_pixels(record->bytes, (int)record->dims[1], (int)record->dims[2], true, view,
			  planes);
	return PRONY_OK;
}

struct each {
	enum prony_status (*work)(void *context, int64_t item, struct data_record *record,
				  struct error *err);
	void *context;
	pthread_mutex_t lock; /* protects what follows */
	int64_t first;	      /* the first that failed; -1: none */
	struct error err;
};

static void note_failure(struct each *each, int64_t item, const struct error *err)
{
	pthread_mutex_lock(&each->lock);
	if (each->first < 0 || item < each->first) {
		each->first = item;
		each->err = *err;
	}
	pthread_mutex_unlock(&each->lock);
}

static void take_items(void *context, struct parallel_items *items)
{
	struct each *each = context;
	struct data_record record = {0};

	for (int64_t i = parallel_next(items); i >= 0; i = parallel_next(items)) {
		struct error err = ERROR_INIT;

		if (each->work(each->context, i, &record, &err) != PRONY_OK)
			note_failure(each, i, &err);
	}
	data_record_release(&record);
}

enum prony_status records_each(int64_t count,
			       enum prony_status (*work)(void *context, int64_t item,
							 struct data_record *record,
							 struct error *err),
			       void *context, struct error *err)
{
	struct each each = {.work = work, .context = context, .first = -1, .err = ERROR_INIT};

	pthread_mutex_init(&each.lock, NULL);
	parallel_run(count, parallel_cores(), take_items, &each);
	pthread_mutex_destroy(&each.lock);
	if (each.first < 0)
		return PRONY_OK;
	return error_set(err, each.err.code, "%s", each.err.text);
}

/* A chunk of records being verified. */
struct checked {
	const struct data_format *format;
	struct data_source *source;
	int64_t first;
	struct error errors[CHUNK];
	int64_t bytes[CHUNK];
};

static enum prony_status check_one(void *context, int64_t item, struct data_record *record,
				   struct error *err)
{
	struct checked *chunk = context;
	struct image image = {0};
	enum prony_status status =
		chunk->format->record(chunk->source, chunk->first + item, record, err);

	if (status == PRONY_OK && record->encoded)
		status = image_decode_whole(record->where, record->bytes, record->length, &image,
					    err);
	image_release(&image);
	chunk->bytes[item] = (int64_t)record->length;
	chunk->errors[item] = *err;
	return status;
}

static void tell(struct data_findings *findings, const struct checked *chunk, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		if (chunk->errors[i].code == PRONY_OK)
			continue;
		findings->count++;
		if (findings->broken)
			findings->broken(findings->context, chunk->errors[i].text);
	}
}

/* Check all samples, even after the first error. */
static enum prony_status check_all(const struct data_format *format, struct data_source *source,
				   struct data_findings *findings, int64_t *bytes,
				   struct error *err)
{
	struct checked *chunk = memory_alloc(sizeof(*chunk));
	struct data_findings own = {0};
	enum prony_status worst = PRONY_OK;

	if (!findings)
		findings = &own;
	*bytes = 0;
	*chunk = (struct checked){.format = format, .source = source};
	for (; chunk->first < source->count; chunk->first += CHUNK) {
		int64_t left = source->count - chunk->first, count = left < CHUNK ? left : CHUNK;
		enum prony_status status = records_each(count, check_one, chunk, err);

		worst = worst == PRONY_OK ? status : worst;
		for (int64_t i = 0; i < count; i++)
			*bytes += chunk->bytes[i];
		tell(findings, chunk, count);
		findings->samples += count;
	}
	free(chunk);
	return worst;
}

enum prony_status data_format_verify(const struct data_format *format, const char *path,
				     int64_t classes, struct data_findings *findings,
				     int64_t *bytes, struct error *err)
{
	const struct data_shard shard = {.paths = &path,
					 .classes = classes > 0 ? classes : INT32_MAX};
	struct data_source *source;

	if (format->verify)
		return format->verify(path, bytes, err);
	enum prony_status status = format->open(&shard, &source, err);
	if (status != PRONY_OK)
		return status;
	status = check_all(format, source, findings, bytes, err);
	format->close(source);
	return status;
}
