/* IDX files, plain or gzip (http://yann.lecun.com/exdb/mnist): magic, dimensions, values. */
#ifndef PRONY_DATASETS_IDX_H
#define PRONY_DATASETS_IDX_H

#include "datasets/byte_stream.h"

#define IDX_MAX_RANK 4

/* The element types that are read; the numbers are those of the format. */
enum idx_type { IDX_U8 = 0x08, IDX_I32 = 0x0c, IDX_F32 = 0x0d };

struct idx {
	struct byte_stream *bytes;
	enum idx_type type;
	int rank;
	int64_t dims[IDX_MAX_RANK];
	int64_t row; /* values below one index of the first dimension */
};

/* Reads the head and checks that the file is as long as it says. PRONY_BAD_INPUT with file, offset
 * and remedy where it is broken. */
enum prony_status idx_open(const char *path, struct idx *out, struct error *err);
void idx_close(struct idx *idx);

/* The values below index `at` of the first dimension, in this machine's byte order. */
enum prony_status idx_read_row(const struct idx *idx, int64_t at, void *out, struct error *err);

size_t idx_value_bytes(enum idx_type type);
int64_t idx_offset(const struct idx *idx, int64_t at); /* of that row, in bytes */

#endif
