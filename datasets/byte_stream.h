/* Reads a file, decompressed if it is gzip (RFC 1952), without holding it in memory. */
#ifndef PRONY_DATASETS_BYTE_STREAM_H
#define PRONY_DATASETS_BYTE_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The end of every message about a broken file. */
#define DATA_REMEDY                                                                                \
	"replace the file (prony data fetch), or find what is damaged (prony data verify)"

struct byte_stream;

/* PRONY_BAD_INPUT when the file does not exist, cannot be opened or is not a regular file. */
enum prony_status byte_stream_open(const char *path, struct byte_stream **out, struct error *err);
void byte_stream_close(struct byte_stream *stream);
const char *byte_stream_path(const struct byte_stream *stream);

/* Reads `bytes` bytes at `offset` of the decompressed data. A compressed file is read forward:
 * ascending offsets cost one pass; an earlier offset starts again. PRONY_BAD_INPUT, "truncated:
 * `what` need ...", when the data ends earlier. */
enum prony_status byte_stream_read(struct byte_stream *stream, int64_t offset, void *out,
				   size_t bytes, const char *what, struct error *err);

/* Checks that the decompressed data ends exactly at `length`: truncated and trailing bytes are
 * PRONY_BAD_INPUT. A compressed file is read to its end, which also checks its checksums. A length
 * that a file of this size cannot hold is refused at once. */
enum prony_status byte_stream_expect(struct byte_stream *stream, int64_t length, struct error *err);

/* The length of the decompressed data. Reads a compressed file to its end and refuses it when it is
 * broken. */
enum prony_status byte_stream_length(struct byte_stream *stream, int64_t *length,
				     struct error *err);

#endif
