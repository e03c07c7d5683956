#include "datasets/format.h"

#include <string.h>

#include "base/files.h"
#include "base/strbuf.h"
#include "datasets/byte_stream.h"

extern const struct data_format cifar10_format, idx_format, images_format, lmdb_format, png_format,
	recordio_format, text_format, tfrecord_format;

static const struct data_format *const data_formats[] = {
	&idx_format, &cifar10_format, &lmdb_format,   &recordio_format, &tfrecord_format,
	&png_format, &text_format,    &images_format, /* accepts any folder, so it must be last
						       */
};

static const size_t data_format_count = sizeof(data_formats) / sizeof(data_formats[0]);

const struct data_format *data_format_find(const char *name)
{
	for (size_t i = 0; i < data_format_count; i++)
		if (strcmp(data_formats[i]->name, name) == 0)
			return data_formats[i];
	return NULL;
}

const struct data_format *data_format_written(size_t number)
{
	for (size_t i = 0; i < data_format_count; i++)
		if (data_formats[i]->writer && number-- == 0)
			return data_formats[i];
	return NULL;
}

size_t data_element_bytes(enum data_element element)
{
	return element == DATA_F32 ? sizeof(float) : 1;
}

static enum prony_status unknown_format(const char *path, const uint8_t *head, size_t length,
					struct error *err)
{
	struct strbuf text;

	strbuf_init(&text, 256);
	strbuf_printf(&text, length > 0 ? "it begins with bytes" : "a folder without images");
	for (size_t i = 0; i < length && i < 4; i++)
		strbuf_printf(&text, " %02x", head[i]);
	for (size_t i = 0; i < data_format_count; i++)
		strbuf_printf(&text, "%s %s (%s)", i > 0 ? "," : "; known formats are",
			      data_formats[i]->name, data_formats[i]->summary);
	error_set(err, PRONY_BAD_INPUT, "%s: unknown data format: %s; " DATA_REMEDY, path,
		  strbuf_text(&text));
	strbuf_release(&text);
	return PRONY_BAD_INPUT;
}

/* The first bytes of a file, decompressed, up to DATA_HEAD_BYTES; none for a folder. */
static enum prony_status read_head(const char *path, uint8_t *head, size_t *length,
				   struct error *err)
{
	struct byte_stream *stream = NULL;

	*length = 0;
	if (file_is_directory(path))
		return PRONY_OK;
	enum prony_status status = byte_stream_open(path, &stream, err);

	if (status != PRONY_OK)
		return status;
	/* Read byte by byte, because the file may be shorter; the format itself reports a broken
	 * file. */
	status = byte_stream_read(stream, 0, head, 1, "the first bytes", err);
	while (status == PRONY_OK && ++*length < DATA_HEAD_BYTES)
		if (byte_stream_read(stream, (int64_t)*length, head + *length, 1, "", NULL) !=
		    PRONY_OK)
			break;
	byte_stream_close(stream);
	return status;
}

enum prony_status data_format_recognise(const char *path, const struct data_format **out,
					struct error *err)
{
	uint8_t head[DATA_HEAD_BYTES];
	size_t length;
	enum prony_status status = read_head(path, head, &length, err);

	if (status != PRONY_OK)
		return status;
	for (size_t i = 0; i < data_format_count; i++)
		if (data_formats[i]->recognises(path, head, length)) {
			*out = data_formats[i];
			return PRONY_OK;
		}
	return unknown_format(path, head, length, err);
}
