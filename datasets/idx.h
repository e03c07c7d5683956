/* IDX files, plain or gzip (http://yann.lecun.com/exdb/mnist): magic, dimensions, bytes. */
#ifndef PRONY_DATASETS_IDX_H
#define PRONY_DATASETS_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define IDX_MAX_RANK 4

struct idx {
	int rank;
	int64_t dims[IDX_MAX_RANK];
	uint8_t *data; /* owned; product of dims bytes */
};

/* Reads an IDX file of unsigned bytes. Truncated, oversized or corrupt files get a message with
 * file, offset and remedy. limit_bytes bounds the decompressed data. */
enum prony_status idx_read(const char *path, size_t limit_bytes, struct idx *out,
			   struct error *err);
void idx_release(struct idx *idx);

/* The same from memory, which is borrowed; `where` stands for the path in messages. */
enum prony_status idx_parse(const void *bytes, size_t length, const char *where, size_t limit_bytes,
			    struct idx *out, struct error *err);

/* Writes one (tests, data make), gzip when the name ends in .gz. */
enum prony_status idx_write(const char *path, const struct idx *idx, struct error *err);

#endif
