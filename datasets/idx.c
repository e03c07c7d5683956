#include "datasets/idx.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/files.h"
#include "base/strbuf.h"

enum { TYPE_UNSIGNED_BYTE = 0x08, GZIP_WINDOW = 16 + MAX_WBITS };

/* Deflate cannot pack more than 1,032 bytes into one (zlib's technical page). */
#define DEFLATE_RATIO 1032

#define REMEDY                                                                                     \
	"replace it by a fresh copy (prony data fetch), or see what is broken (prony data verify)"

/* Bytes of the file as the IDX reader sees them: decompressed when they were compressed. */
struct source {
	const uint8_t *bytes;
	size_t length;
	size_t used;   /* of `bytes` */
	size_t offset; /* in the decompressed data */
	bool gzip, ended;
	z_stream stream;
	const char *where;
};

static enum prony_status source_init(struct source *source, const void *bytes, size_t length,
				     const char *where, struct error *err)
{
	*source = (struct source){.bytes = bytes, .length = length, .where = where};
	if (length < 2 || source->bytes[0] != 0x1f || source->bytes[1] != 0x8b)
		return PRONY_OK;
	if (inflateInit2(&source->stream, GZIP_WINDOW) != Z_OK)
		return error_set(err, PRONY_NOMEM, "%s: no memory to decompress", where);
	source->gzip = true;
	return PRONY_OK;
}

static void source_release(struct source *source)
{
	if (source->gzip)
		inflateEnd(&source->stream);
}

/* A gzip file may hold several members one after the other (RFC 1952, section 2.2). */
static bool next_member(struct source *source)
{
	const uint8_t *at = source->bytes + source->used;

	if (source->length - source->used < 2 || at[0] != 0x1f || at[1] != 0x8b)
		return false;
	return inflateReset(&source->stream) == Z_OK;
}

/* One call of inflate, its input and output cut to what zlib's 32-bit counters hold. */
static int inflate_some(struct source *source, uint8_t *out, size_t wanted, size_t *got)
{
	size_t in = source->length - source->used;
	uInt in_piece = in > UINT_MAX ? UINT_MAX : (uInt)in;
	uInt out_piece = wanted > UINT_MAX ? UINT_MAX : (uInt)wanted;
	z_stream *stream = &source->stream;

	/* zlib does not write to its input, but its interface came before const (ZLIB_CONST). */
	stream->next_in = (Bytef *)(uintptr_t)(source->bytes + source->used);
	stream->avail_in = in_piece;
	stream->next_out = out;
	stream->avail_out = out_piece;
	int result = inflate(stream, Z_NO_FLUSH);
	source->used += in_piece - stream->avail_in;
	*got = out_piece - stream->avail_out;
	return result;
}

static enum prony_status inflate_all(struct source *source, uint8_t *out, size_t wanted,
				     size_t *got, struct error *err)
{
	while (*got < wanted && !source->ended) {
		size_t piece;
		int result = inflate_some(source, out + *got, wanted - *got, &piece);

		*got += piece;
		source->offset += piece;
		if (result == Z_STREAM_END) {
			source->ended = !next_member(source);
		} else if (result == Z_BUF_ERROR) {
			/* No progress is possible: the compressed data stops in the middle. */
			return error_set(
				err, PRONY_BAD_INPUT,
				"%s: truncated: the compressed data ends at byte %zu without "
				"its end mark; " REMEDY,
				source->where, source->used);
		} else if (result == Z_MEM_ERROR) {
			return error_set(err, PRONY_NOMEM, "%s: no memory to decompress",
					 source->where);
		} else if (result != Z_OK) {
			return error_set(
				err, PRONY_BAD_INPUT,
				"%s: corrupt compressed data before byte %zu (%s); " REMEDY,
				source->where, source->used,
				source->stream.msg ? source->stream.msg : "bad data");
		}
	}
	return PRONY_OK;
}

/* Reads at most `wanted` bytes; *got is less only at the end of the data. */
static enum prony_status source_read(struct source *source, uint8_t *out, size_t wanted,
				     size_t *got, struct error *err)
{
	*got = 0;
	if (source->gzip)
		return inflate_all(source, out, wanted, got, err);
	*got = source->length - source->used < wanted ? source->length - source->used : wanted;
	memcpy(out, source->bytes + source->used, *got);
	source->used += *got;
	source->offset += *got;
	return PRONY_OK;
}

static enum prony_status read_exactly(struct source *source, uint8_t *out, size_t wanted,
				      const char *what, struct error *err)
{
	size_t got, start = source->offset;
	enum prony_status status = source_read(source, out, wanted, &got, err);

	if (status != PRONY_OK || got == wanted)
		return status;
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: truncated: %s need %zu bytes from offset %zu, but the data ends at "
			 "%zu; " REMEDY,
			 source->where, what, wanted, start, start + got);
}

static enum prony_status read_magic(struct source *source, int *rank, struct error *err)
{
	uint8_t magic[4];
	enum prony_status status =
		read_exactly(source, magic, sizeof(magic), "the magic number", err);

	if (status != PRONY_OK)
		return status;
	if (magic[0] != 0 || magic[1] != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: no IDX file: offset 0 holds %02x %02x %02x %02x instead of "
				 "00 00 08 and the number of dimensions; " REMEDY,
				 source->where, magic[0], magic[1], magic[2], magic[3]);
	if (magic[2] != TYPE_UNSIGNED_BYTE)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: offset 2 names the element type 0x%02x; only unsigned bytes "
				 "(0x08) are read: convert the file",
				 source->where, magic[2]);
	if (magic[3] < 1 || magic[3] > IDX_MAX_RANK)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: offset 3 says %d dimensions; 1 to %d are read; " REMEDY,
				 source->where, magic[3], IDX_MAX_RANK);
	*rank = magic[3];
	return PRONY_OK;
}

/* Reads the dimensions; *bytes is their product, at most limit_bytes. */
static enum prony_status read_dims(struct source *source, size_t limit_bytes, struct idx *idx,
				   size_t *bytes, struct error *err)
{
	uint8_t raw[4 * IDX_MAX_RANK];
	enum prony_status status =
		read_exactly(source, raw, 4 * (size_t)idx->rank, "the dimensions", err);

	if (status != PRONY_OK)
		return status;
	*bytes = 1;
	for (int i = 0; i < idx->rank; i++) {
		const uint8_t *at = raw + 4 * i;
		uint32_t dim = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
			       (uint32_t)at[2] << 8 | at[3];

		if (dim == 0)
			return error_set(err, PRONY_BAD_INPUT,
					 "%s: dimension %d at offset %d is 0; " REMEDY,
					 source->where, i, 4 + 4 * i);
		if (*bytes > limit_bytes / dim)
			return error_set(
				err, PRONY_BAD_INPUT,
				"%s: too large: dimension %d at offset %d is %u, and the data "
				"would exceed the limit of %zu bytes; " REMEDY,
				source->where, i, 4 + 4 * i, dim, limit_bytes);
		*bytes *= dim;
		idx->dims[i] = dim;
	}
	return PRONY_OK;
}

/* So that a small file that promises much costs no memory. */
static enum prony_status check_possible(const struct source *source, size_t bytes,
					struct error *err)
{
	size_t left = source->length - source->used;
	bool possible = source->gzip ? bytes / DEFLATE_RATIO <= source->length : bytes <= left;

	if (possible)
		return PRONY_OK;
	return error_set(
		err, PRONY_BAD_INPUT,
		"%s: truncated: the dimensions promise %zu bytes from offset %zu, and the file "
		"has only %zu bytes in all; " REMEDY,
		source->where, bytes, source->offset, source->length);
}

static enum prony_status check_end(struct source *source, struct error *err)
{
	uint8_t extra;
	size_t got, end = source->offset;
	enum prony_status status = source_read(source, &extra, 1, &got, err);

	if (status != PRONY_OK)
		return status;
	if (got > 0)
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: trailing bytes: the dimensions end the data at offset %zu, but "
			"there is more; " REMEDY,
			source->where, end);
	if (source->used < source->length)
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: trailing bytes: %zu bytes follow the compressed data, from byte "
			"%zu; " REMEDY,
			source->where, source->length - source->used, source->used);
	return PRONY_OK;
}

enum prony_status idx_parse(const void *bytes, size_t length, const char *where, size_t limit_bytes,
			    struct idx *out, struct error *err)
{
	struct source source;
	struct idx idx = {0};
	size_t data_bytes;
	enum prony_status status = source_init(&source, bytes, length, where, err);

	if (status != PRONY_OK)
		return status;
	status = read_magic(&source, &idx.rank, err);
	if (status == PRONY_OK)
		status = read_dims(&source, limit_bytes, &idx, &data_bytes, err);
	if (status == PRONY_OK)
		status = check_possible(&source, data_bytes, err);
	if (status != PRONY_OK)
		goto out;
	idx.data = malloc(data_bytes);
	if (!idx.data) {
		status = error_set(err, PRONY_NOMEM, "%s: no memory for %zu bytes", where,
				   data_bytes);
		goto out;
	}
	status = read_exactly(&source, idx.data, data_bytes, "the data", err);
	if (status == PRONY_OK)
		status = check_end(&source, err);
out:
	source_release(&source);
	if (status == PRONY_OK)
		*out = idx;
	else
		idx_release(&idx);
	return status;
}

enum prony_status idx_read(const char *path, size_t limit_bytes, struct idx *out, struct error *err)
{
	char *bytes;
	size_t length;
	/* Stored blocks make gzip a little longer than its content. */
	size_t slack = limit_bytes / 1000 + 65536;
	size_t file_limit = limit_bytes > SIZE_MAX - slack ? SIZE_MAX : limit_bytes + slack;
	enum prony_status status = file_read(path, file_limit, &bytes, &length, err);

	if (status != PRONY_OK)
		return status;
	status = idx_parse(bytes, length, path, limit_bytes, out, err);
	free(bytes);
	return status;
}

void idx_release(struct idx *idx)
{
	if (!idx)
		return;
	free(idx->data);
	*idx = (struct idx){0};
}

/* The file's content before compression. False when the dimensions are not sound. */
static bool make_image(const struct idx *idx, struct strbuf *image)
{
	size_t bytes = 1;
	char head[4] = {0, 0, TYPE_UNSIGNED_BYTE, (char)idx->rank};

	if (idx->rank < 1 || idx->rank > IDX_MAX_RANK || !idx->data)
		return false;
	strbuf_add(image, head, sizeof(head));
	for (int i = 0; i < idx->rank; i++) {
		int64_t dim = idx->dims[i];
		char raw[4] = {(char)(dim >> 24 & 255), (char)(dim >> 16 & 255),
			       (char)(dim >> 8 & 255), (char)(dim & 255)};

		if (dim < 1 || dim > UINT32_MAX || bytes > SIZE_MAX / 2 / (size_t)dim)
			return false;
		bytes *= (size_t)dim;
		strbuf_add(image, raw, sizeof(raw));
	}
	strbuf_add(image, (const char *)idx->data, bytes);
	return !image->truncated;
}

static enum prony_status write_gzip(const char *path, const struct strbuf *image, struct error *err)
{
	z_stream stream = {0};
	enum prony_status status;

	if (image->length > UINT_MAX / 2 ||
	    deflateInit2(&stream, 9, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return error_set(err, PRONY_NOMEM, "%s: cannot compress %zu bytes", path,
				 image->length);
	uLong bound = deflateBound(&stream, (uLong)image->length);
	uint8_t *packed = malloc(bound);
	if (!packed) {
		status = error_set(err, PRONY_NOMEM, "%s: no memory for %lu bytes", path, bound);
		goto out;
	}
	stream.next_in = (Bytef *)image->text;
	stream.avail_in = (uInt)image->length;
	stream.next_out = packed;
	stream.avail_out = (uInt)bound;
	/* The bound holds all of it, so one call must finish. */
	if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
		status = error_set(err, PRONY_INTERNAL, "%s: zlib did not finish", path);
	else
		status = file_write_atomic(path, packed, stream.total_out, err);
out:
	deflateEnd(&stream);
	free(packed);
	return status;
}

enum prony_status idx_write(const char *path, const struct idx *idx, struct error *err)
{
	struct strbuf image;
	size_t length = strlen(path);
	enum prony_status status;

	strbuf_init(&image, (size_t)1 << 30);
	if (!make_image(idx, &image))
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: 1 to %d dimensions of at least 1 and at most 1 GiB can be "
				   "written",
				   path, IDX_MAX_RANK);
	else if (length > 3 && strcmp(path + length - 3, ".gz") == 0)
		status = write_gzip(path, &image, err);
	else
		status = file_write_atomic(path, image.text, image.length, err);
	strbuf_release(&image);
	return status;
}
