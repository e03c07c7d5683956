/* Reads IDX files, plain or gzip (http://yann.lecun.com/exdb/mnist): magic, dimensions, values. */
#ifndef PRONY_DATASETS_IDX_H
#define PRONY_DATASETS_IDX_H

#include "datasets/byte_stream.h"

#define IDX_MAX_RANK 4

/* Supported element types, with the numbers of the format. */
enum idx_type { IDX_U8 = 0x08, IDX_I32 = 0x0c, IDX_F32 = 0x0d };

struct idx {
	struct byte_stream *bytes;
	enum idx_type type;
	int rank;
	int64_t dims[IDX_MAX_RANK];
	int64_t row; /* number of values per index of the first dimension */
};

/* Reads the header and checks that the file has the length it states. PRONY_BAD_INPUT with file,
 * offset and remedy when it is broken. */
enum prony_status idx_open(const char *path, struct idx *out, struct error *err);
void idx_close(struct idx *idx);

/* Reads the values at index `at` of the first dimension, in this machine's byte order. */
enum prony_status idx_read_row(const struct idx *idx, int64_t at, void *out, struct error *err);

size_t idx_value_bytes(enum idx_type type);
int64_t idx_offset(const struct idx *idx, int64_t at); /* of that row, in bytes */

#endif
