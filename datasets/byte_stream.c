#include "datasets/byte_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/files.h"
#include "base/memory.h"

/* Deflate compresses at most 1,032 bytes into one (zlib's technical page). */
#define DEFLATE_RATIO 1032

enum { GZIP_WINDOW = 16 + MAX_WBITS, BUFFER_BYTES = 1 << 16 };

struct byte_stream {
	char *path;
	int fd;
	int64_t size; /* of the file */
	bool gzip, ended;
	/* For a compressed file: the position in the decompressed data, and how much of the file
	 * was read into `packed`. */
	int64_t position, taken;
	z_stream inflate;
	uint8_t *packed;
};

static enum prony_status cannot_read(const struct byte_stream *stream, struct error *err)
{
	return error_errno(err, PRONY_IO, errno, "%s: cannot be read", stream->path);
}

static enum prony_status open_file(struct byte_stream *stream, struct error *err)
{
	struct stat info;
	uint8_t head[2];

	/* O_NONBLOCK: opening a pipe would block. */
	stream->fd = open(stream->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (stream->fd < 0 || fstat(stream->fd, &info) != 0)
		return error_errno(err, PRONY_BAD_INPUT, errno, "cannot open %s", stream->path);
	if (!S_ISREG(info.st_mode))
		return error_set(err, PRONY_BAD_INPUT, "%s: not a regular file", stream->path);
	stream->size = info.st_size;
	ssize_t got = file_read_at(stream->fd, 0, head, sizeof(head));
	if (got < 0)
		return cannot_read(stream, err);
	if (got < 2 || head[0] != 0x1f || head[1] != 0x8b)
		return PRONY_OK;
	if (inflateInit2(&stream->inflate, GZIP_WINDOW) != Z_OK)
		return error_set(err, PRONY_NOMEM, "%s: no memory to decompress", stream->path);
	stream->gzip = true;
	stream->packed = memory_alloc(BUFFER_BYTES);
	return PRONY_OK;
}

enum prony_status byte_stream_open(const char *path, struct byte_stream **out, struct error *err)
{
	struct byte_stream *stream = memory_alloc(sizeof(*stream));

	*stream = (struct byte_stream){.path = memory_strdup(path), .fd = -1};
	enum prony_status status = open_file(stream, err);
	if (status == PRONY_OK)
		*out = stream;
	else
		byte_stream_close(stream);
	return status;
}

void byte_stream_close(struct byte_stream *stream)
{
	if (!stream)
		return;
	if (stream->gzip)
		inflateEnd(&stream->inflate);
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream->packed);
	free(stream->path);
	free(stream);
}

const char *byte_stream_path(const struct byte_stream *stream)
{
	return stream->path;
}

static void begin_again(struct byte_stream *stream)
{
	inflateReset(&stream->inflate);
	stream->inflate.avail_in = 0;
	stream->position = stream->taken = 0;
	stream->ended = false;
}

/* File offset of the next compressed byte. */
static int64_t packed_at(const struct byte_stream *stream)
{
	return stream->taken - stream->inflate.avail_in;
}

/* Makes at least `wanted` compressed bytes available, fewer only at the end of the file. */
static enum prony_status refill(struct byte_stream *stream, size_t wanted, struct error *err)
{
	z_stream *z = &stream->inflate;

	if (z->avail_in >= wanted)
		return PRONY_OK;
	if (z->avail_in > 0)
		memmove(stream->packed, z->next_in, z->avail_in);
	ssize_t got = file_read_at(stream->fd, stream->taken, stream->packed + z->avail_in,
				   BUFFER_BYTES - z->avail_in);
	if (got < 0)
		return cannot_read(stream, err);
	z->next_in = stream->packed;
	z->avail_in += (uInt)got;
	stream->taken += got;
	return PRONY_OK;
}

/* A gzip file may consist of several members (RFC 1952, section 2.2). */
static enum prony_status next_member(struct byte_stream *stream, struct error *err)
{
	const z_stream *z = &stream->inflate;
	enum prony_status status = refill(stream, 2, err);

	if (status != PRONY_OK)
		return status;
	stream->ended = z->avail_in < 2 || z->next_in[0] != 0x1f || z->next_in[1] != 0x8b ||
			inflateReset(&stream->inflate) != Z_OK;
	return PRONY_OK;
}

static enum prony_status inflate_failed(const struct byte_stream *stream, int result,
					struct error *err)
{
	if (result == Z_MEM_ERROR)
		return error_set(err, PRONY_NOMEM, "%s: no memory to decompress", stream->path);
	/* The compressed data is truncated. */
	if (result == Z_BUF_ERROR)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: truncated: the compressed data ends at byte %" PRId64
				 " without an end marker; " DATA_REMEDY,
				 stream->path, packed_at(stream));
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: corrupt compressed data before byte %" PRId64 " (%s); " DATA_REMEDY,
			 stream->path, packed_at(stream),
			 stream->inflate.msg ? stream->inflate.msg : "bad data");
}

/* Decompresses up to `wanted` bytes; *got is less only at the end of the data. */
static enum prony_status inflate_some(struct byte_stream *stream, uint8_t *out, size_t wanted,
				      size_t *got, struct error *err)
{
	z_stream *z = &stream->inflate;

	*got = 0;
	while (*got < wanted && !stream->ended) {
		size_t left = wanted - *got;
		uInt piece = left > UINT_MAX ? UINT_MAX : (uInt)left;
		enum prony_status status = refill(stream, 1, err);

		if (status != PRONY_OK)
			return status;
		z->next_out = out + *got;
		z->avail_out = piece;
		int result = inflate(z, Z_NO_FLUSH);
		*got += piece - z->avail_out;
		stream->position += piece - z->avail_out;
		if (result == Z_STREAM_END)
			status = next_member(stream, err);
		else if (result != Z_OK)
			status = inflate_failed(stream, result, err);
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

/* Decompresses and discards data up to `position` or the end. */
static enum prony_status skip_to(struct byte_stream *stream, int64_t position, struct error *err)
{
	uint8_t scratch[BUFFER_BYTES];

	while (stream->position < position && !stream->ended) {
		int64_t left = position - stream->position;
		size_t got, piece = left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES;
		enum prony_status status = inflate_some(stream, scratch, piece, &got, err);

		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

enum prony_status byte_stream_read(struct byte_stream *stream, int64_t offset, void *out,
				   size_t bytes, const char *what, struct error *err)
{
	size_t got = 0;
	enum prony_status status = PRONY_OK;

	if (stream->gzip) {
		if (offset < stream->position)
			begin_again(stream);
		status = skip_to(stream, offset, err);
		if (status == PRONY_OK && stream->position == offset)
			status = inflate_some(stream, out, bytes, &got, err);
	} else {
		ssize_t piece = file_read_at(stream->fd, offset, out, bytes);

		if (piece < 0)
			return cannot_read(stream, err);
		got = (size_t)piece;
	}
	if (status != PRONY_OK || got == bytes)
		return status;
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: truncated: reading %s needs %zu bytes from offset %" PRId64
			 ", but the data ends at %" PRId64 "; " DATA_REMEDY,
			 stream->path, what, bytes, offset,
			 stream->gzip ? stream->position : stream->size);
}

/* The length of the data, or any length above `most`. */
static enum prony_status measure(struct byte_stream *stream, int64_t most, int64_t *length,
				 struct error *err)
{
	*length = stream->size;
	if (!stream->gzip)
		return PRONY_OK;
	enum prony_status status = skip_to(stream, most < INT64_MAX ? most + 1 : most, err);
	if (status != PRONY_OK)
		return status;
	*length = stream->position;
	if (!stream->ended || packed_at(stream) == stream->size)
		return PRONY_OK;
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: trailing bytes: %" PRId64
			 " bytes follow the compressed data, from byte %" PRId64 "; " DATA_REMEDY,
			 stream->path, stream->size - packed_at(stream), packed_at(stream));
}

enum prony_status byte_stream_length(struct byte_stream *stream, int64_t *length, struct error *err)
{
	return measure(stream, INT64_MAX, length, err);
}

enum prony_status byte_stream_expect(struct byte_stream *stream, int64_t length, struct error *err)
{
	int64_t found = stream->size;

	if (!stream->gzip || length / DEFLATE_RATIO <= stream->size) {
		enum prony_status status = measure(stream, length, &found, err);

		if (status != PRONY_OK)
			return status;
	}
	if (found > length)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: trailing bytes: the data should end at offset %" PRId64
				 ", but there is more; " DATA_REMEDY,
				 stream->path, length);
	if (found < length)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: truncated: the data should end at offset %" PRId64
				 ", but the %s%" PRId64 " bytes; " DATA_REMEDY,
				 stream->path, length,
				 stream->gzip && length / DEFLATE_RATIO > stream->size
					 ? "compressed file has only "
					 : "data has only ",
				 found);
	return PRONY_OK;
}
