#include "datasets/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"
#include "base/random.h"
#include "datasets/byte_stream.h"
#include "datasets/format.h"

#define TEXT_MAX_BYTES (INT64_C(1) << 30)
#define NAME_DIGITS 8
#define NAME_MAX_BYTES 40

bool dataset_is_text(const struct dataset *dataset)
{
	return dataset->format && strcmp(dataset->format, "text") == 0;
}

static bool recognises(const char *path, const uint8_t *head, size_t length)
{
	size_t name = strlen(path);

	return length > 0 && !memchr(head, 0, length) && name > 4 &&
	       (strcmp(path + name - 4, ".txt") == 0 ||
		(name > 8 && strcmp(path + name - 8, ".dict.dz") == 0));
}

static enum prony_status verify(const char *path, int64_t *bytes, struct error *err)
{
	struct byte_stream *stream = NULL;
	enum prony_status status = byte_stream_open(path, &stream, err);

	if (status == PRONY_OK)
		status = byte_stream_length(stream, bytes, err);
	byte_stream_close(stream);
	return status;
}

/* What is common to other formats, samples of one size with a class each, text does not have. */
static enum prony_status open_source(const struct data_shard *shard, struct data_source **out,
				     struct error *err)
{
	(void)out;
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: text has no samples of one size; only `prony run` reads it, for "
			 "language models over bytes",
			 shard->paths[0]);
}

const struct data_format text_format = {
	.name = "text",
	.summary = "a file NAME.txt, whose bytes are tokens, plain or gzip",
	.shard_files = 1,
	.recognises = recognises,
	.verify = verify,
	.open = open_source,
};

enum prony_status text_dataset(const char *path, struct arena *arena, const struct dataset **out,
			       struct error *err)
{
	const char *slash = strrchr(path, '/');
	struct dataset *dataset;
	char digest[DIGEST_HEX_BYTES], *name;
	int64_t bytes;
	enum prony_status status = verify(path, &bytes, err);

	if (status == PRONY_OK)
		status = digest_file(path, digest, err);
	if (status != PRONY_OK)
		return status;
	/* Names are words of keys, as those of model files (zoo/source.c). */
	name = arena_printf(arena, "%.*s@%.*s", NAME_MAX_BYTES, slash ? slash + 1 : path,
			    NAME_DIGITS, digest);
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(".-_@", *c))
			*c = '_';
	dataset = arena_alloc(arena, sizeof(*dataset));
	*dataset = (struct dataset){
		.name = name,
		.summary = "a text file",
		.format = text_format.name,
		.rank = 1,
		.classes = TEXT_CLASSES,
		.folder = !slash	  ? "."
			  : slash == path ? "/"
					  : arena_printf(arena, "%.*s", (int)(slash - path), path),
		.files = {{.name = arena_strdup(arena, slash ? slash + 1 : path)}},
	};
	*out = dataset;
	return PRONY_OK;
}

/* The text, which the caller frees. */
static enum prony_status read_text(const char *path, uint8_t **out, int64_t *length,
				   struct error *err)
{
	struct byte_stream *stream = NULL;
	enum prony_status status = byte_stream_open(path, &stream, err);

	if (status == PRONY_OK)
		status = byte_stream_length(stream, length, err);
	if (status == PRONY_OK && *length > TEXT_MAX_BYTES)
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: %" PRId64 " bytes; at most %" PRId64
				   " are supported: use a part of the file",
				   path, *length, TEXT_MAX_BYTES);
	if (status == PRONY_OK) {
		*out = memory_alloc((size_t)*length + 1);
		status = byte_stream_read(stream, 0, *out, (size_t)*length, "the text", err);
	}
	byte_stream_close(stream);
	return status;
}

static void fill_batch(const struct batch_request *request, int64_t n, const uint8_t *text,
		       int64_t bytes, int64_t *tokens, int64_t *labels)
{
	int64_t length = request->dims[0];
	char stream[48];
	struct random random;

	snprintf(stream, sizeof(stream), "text/%" PRId64, n);
	random_init_named(&random, request->seed, stream);
	for (int64_t i = 0; i < request->batch; i++) {
		int64_t sequences = (bytes - 1) / length;
		int64_t start = (n * request->batch + i) % sequences * length;

		if (request->training)
			start = (int64_t)random_below(&random, (uint64_t)(bytes - length));
		for (int64_t t = 0; t < length; t++) {
			tokens[i * length + t] = text[start + t];
			labels[i * length + t] = text[start + t + 1];
		}
	}
}

enum prony_status text_batches(const struct dataset *dataset, const char *folder,
			       const struct batch_request *request, int count, int64_t *tokens,
			       int64_t *labels, struct error *err)
{
	char *path = dataset_file_path(&dataset->files[0], folder);
	int64_t length = request->dims[0], all = 0, first, bytes;
	uint8_t *text = NULL;
	enum prony_status status = read_text(path, &text, &all, err);

	first = request->training ? 0 : all / 10 * 9;
	bytes = request->training ? all / 10 * 9 : all - first;
	if (status == PRONY_OK && bytes <= length)
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: its %s part has %" PRId64 " bytes, but a sequence takes "
				   "%" PRId64 " and one more; use a longer text or a shorter "
				   "--sequence",
				   path, dataset_part(request->training), bytes, length);
	for (int i = 0; status == PRONY_OK && i < count; i++) {
		int64_t at = i * request->batch * length;

		fill_batch(request, request->first + i, text + first, bytes, tokens + at,
			   labels + at);
	}
	free(text);
	free(path);
	return status;
}
