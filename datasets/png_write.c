/* PNG files with CNTK's map file (ImageDeserializer: a path and a label in each line) and mean file
 * (as its CifarConverter.py writes it, OpenCV's XML). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "datasets/append_file.h"
#include "datasets/image.h"
#include "datasets/png_map.h"
#include "datasets/writer.h"

enum { PER_FOLDER = 1000 };

/* What the state begins with; the sums of all pixels follow. */
struct png_state {
	int64_t map_bytes, sums_bytes;
	int64_t dims[3];
};

struct png_sink {
	struct data_sink base;
	struct append_file map, sums;
	struct png_state state;
	uint64_t *totals; /* of each value of a picture, planes; NULL before the first */
};

static size_t values_of(const struct png_state *state)
{
	return (size_t)(state->dims[0] * state->dims[1] * state->dims[2]);
}

static void close_sink(struct data_sink *base)
{
	struct png_sink *sink = (struct png_sink *)base;

	append_file_close(&sink->map);
	append_file_close(&sink->sums);
	free(sink->totals);
}

/* The state is our own, and was written whole. */
static void take_state(struct png_sink *sink, const struct byte_buffer *state)
{
	if (!state || state->length < sizeof(sink->state))
		return;
	memcpy(&sink->state, state->bytes, sizeof(sink->state));
	size_t bytes = values_of(&sink->state) * sizeof(*sink->totals);
	if (bytes == 0 || state->length != sizeof(sink->state) + bytes)
		return;
	sink->totals = memory_alloc(bytes);
	memcpy(sink->totals, state->bytes + sizeof(sink->state), bytes);
}

static enum prony_status open_sink(struct data_sink *base, const struct byte_buffer *state,
				   struct error *err)
{
	struct png_sink *sink = (struct png_sink *)base;

	take_state(sink, state);
	enum prony_status status = append_file_open(base->folder, PNG_MAP_FILE,
						    sink->state.map_bytes, &sink->map, err);
	if (status == PRONY_OK)
		status = append_file_open(base->folder, WRITER_SUMS, sink->state.sums_bytes,
					  &sink->sums, err);
	return status;
}

/* A file that a kill leaves half written is written again. */
static enum prony_status write_file(const char *path, const uint8_t *bytes, size_t length,
				    struct error *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0664);
	bool good = fd >= 0 && file_write_all(fd, bytes, length);

	if (!good)
		error_errno(err, PRONY_IO, errno, "cannot write %s", path);
	if (fd >= 0)
		close(fd);
	return good ? PRONY_OK : PRONY_IO;
}

static enum prony_status add_to_mean(struct png_sink *sink, const struct data_record *record,
				     struct error *err)
{
	struct image image = {0};
	size_t channels = (size_t)record->dims[0], values;

	if (!sink->totals) {
		memcpy(sink->state.dims, record->dims, sizeof(sink->state.dims));
		sink->totals = memory_alloc(values_of(&sink->state) * sizeof(*sink->totals));
		memset(sink->totals, 0, values_of(&sink->state) * sizeof(*sink->totals));
	}
	if (memcmp(sink->state.dims, record->dims, sizeof(sink->state.dims)) != 0)
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: its size differs from that of the images before; use --size N",
			record->where);
	enum prony_status status =
		image_decode_whole(record->where, record->bytes, record->length, &image, err);
	if (status != PRONY_OK)
		return status;
	values = values_of(&sink->state);
	size_t plane = values / channels;
	for (size_t i = 0; i < values; i++)
		sink->totals[i] += image.pixels[i % plane * IMAGE_CHANNELS + i / plane];
	image_release(&image);
	return PRONY_OK;
}

static enum prony_status put(struct data_sink *base, const struct data_record *record,
			     struct error *err)
{
	struct png_sink *sink = (struct png_sink *)base;
	char name[64], hex[DIGEST_HEX_BYTES], line[256];
	enum prony_status status = add_to_mean(sink, record, err);

	if (status != PRONY_OK)
		return status;
	snprintf(name, sizeof(name), "images/%05d/%08" PRId64 ".png",
		 (int)(base->written / PER_FOLDER), base->written);
	char *path = path_join(base->folder, name);
	if (base->written % PER_FOLDER == 0) {
		char *folder = memory_printf("%.*s", (int)(strrchr(path, '/') - path), path);

		status = directory_make(folder, err);
		free(folder);
	}
	if (status == PRONY_OK)
		status = write_file(path, record->bytes, record->length, err);
	free(path);
	digest_bytes(record->bytes, record->length, hex);
	int length = snprintf(line, sizeof(line), "%s\t%" PRId64 "\n", name, record->label);
	if (status == PRONY_OK)
		status = append_file_write(&sink->map, line, (size_t)length, err);
	length = snprintf(line, sizeof(line), "%s  %s\n", hex, name);
	if (status == PRONY_OK)
		status = append_file_write(&sink->sums, line, (size_t)length, err);
	return status;
}

static enum prony_status commit(struct data_sink *base, struct byte_buffer *state,
				struct error *err)
{
	struct png_sink *sink = (struct png_sink *)base;
	enum prony_status status = append_file_sync(&sink->map, err);

	if (status == PRONY_OK)
		status = append_file_sync(&sink->sums, err);
	if (status == PRONY_OK && syncfs(sink->map.fd) != 0)
		status = error_errno(err, PRONY_IO, errno, "cannot write %s", base->folder);
	sink->state.map_bytes = sink->map.bytes;
	sink->state.sums_bytes = sink->sums.bytes;
	byte_buffer_add(state, &sink->state, sizeof(sink->state));
	if (sink->totals)
		byte_buffer_add(state, sink->totals,
				values_of(&sink->state) * sizeof(*sink->totals));
	return status;
}

static enum prony_status write_mean(const struct png_sink *sink, struct error *err)
{
	const struct png_state *state = &sink->state;
	size_t values = values_of(state);
	char *path = path_join(sink->base.folder, PNG_MEAN_FILE);
	struct strbuf text;

	/* The mean of large pictures is long. */
	strbuf_init(&text, SIZE_MAX / 4);
	strbuf_printf(
		&text,
		"<?xml version=\"1.0\"?>\n<opencv_storage>\n<Channel>%" PRId64
		"</Channel>\n<Row>%" PRId64 "</Row>\n<Col>%" PRId64
		"</Col>\n<MeanImg type_id=\"opencv-matrix\">\n<rows>1</rows>\n<cols>%zu</cols>\n"
		"<dt>f</dt>\n<data>",
		state->dims[0], state->dims[1], state->dims[2], values);
	for (size_t i = 0; i < values; i++)
		strbuf_printf(&text, "%s%e", i > 0 ? " " : "",
			      (double)sink->totals[i] / (double)sink->base.written);
	strbuf_puts(&text, "</data>\n</MeanImg>\n</opencv_storage>\n");
	enum prony_status status = file_write_atomic(path, strbuf_text(&text), text.length, err);
	strbuf_release(&text);
	free(path);
	return status;
}

static enum prony_status finish(struct data_sink *base, struct error *err)
{
	static const char *const names[] = {PNG_MAP_FILE, PNG_MEAN_FILE};
	struct png_sink *sink = (struct png_sink *)base;
	struct byte_buffer sums = {0};
	enum prony_status status = append_file_sync(&sink->map, err);

	if (status == PRONY_OK)
		status = write_mean(sink, err);
	if (status == PRONY_OK)
		status = writer_sum_files(base->folder, names, 2, &sums, err);
	if (status == PRONY_OK)
		status = append_file_write(&sink->sums, sums.bytes, sums.length, err);
	if (status == PRONY_OK)
		status = append_file_sync(&sink->sums, err);
	byte_buffer_release(&sums);
	return status;
}

const struct data_writer png_writer = {
	.sink_bytes = sizeof(struct png_sink),
	.one_size = true,
	.only_png = true,
	.open = open_sink,
	.put = put,
	.commit = commit,
	.finish = finish,
	.close = close_sink,
};
