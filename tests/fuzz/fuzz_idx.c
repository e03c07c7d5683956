/* Fuzz target: IDX files. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "datasets/idx.h"
#include "tests/fuzz/data_input.h"

enum { ROWS_MOST = 4096 };

/* Opens a file; checks that a refused one leaves the output unchanged. */
static bool reads(const uint8_t *bytes, size_t length, struct idx *out)
{
	struct error err = ERROR_INIT;
	struct idx before = *out;
	const char *path = input_file(bytes, length);
	bool was_read = input_was_read(idx_open(path, out, &err), &err);

	if (!was_read && (before.rank != out->rank || before.bytes != out->bytes))
		abort();
	return was_read;
}

/* Returns whether a file can be opened; closes it. */
static bool can_be_read(const uint8_t *bytes, size_t length)
{
	struct idx idx = {0};

	if (!reads(bytes, length, &idx))
		return false;
	idx_close(&idx);
	return true;
}

/* Returns the plain file of an opened one, one byte longer than its header says. */
static uint8_t *encode(const struct idx *idx, size_t *length)
{
	size_t width = idx_value_bytes(idx->type), row = (size_t)idx->row * width;
	uint8_t *bytes = calloc(1, (size_t)idx_offset(idx, idx->dims[0]) + 1);
	struct error err = ERROR_INIT;

	if (!bytes)
		abort();
	bytes[2] = (uint8_t)idx->type;
	bytes[3] = (uint8_t)idx->rank;
	for (int i = 0; i < idx->rank; i++)
		for (int byte = 0; byte < 4; byte++)
			bytes[4 + 4 * i + byte] = (uint8_t)(idx->dims[i] >> (24 - 8 * byte));
	for (int64_t at = 0; at < idx->dims[0]; at++) {
		uint8_t *out = bytes + idx_offset(idx, at);

		if (idx_read_row(idx, at, out, &err) != PRONY_OK)
			abort();
		/* Back to big-endian. */
		for (size_t i = 0; width == 4 && i < row; i += width) {
			uint8_t value[4] = {out[i + 3], out[i + 2], out[i + 1], out[i]};
			memcpy(out + i, value, sizeof(value));
		}
	}
	*length = (size_t)idx_offset(idx, idx->dims[0]);
	return bytes;
}

/* Checks that an opened file, written as a plain file, is the same, and is refused if a byte
 * shorter or longer. */
static void exercise(const struct idx *idx)
{
	struct idx again = {0};
	size_t length, again_length;
	uint8_t *bytes = encode(idx, &length);

	if (idx->rank < 1 || idx->rank > IDX_MAX_RANK || !reads(bytes, length, &again) ||
	    again.rank != idx->rank || again.type != idx->type)
		abort();
	uint8_t *again_bytes = encode(&again, &again_length);
	if (again_length != length || memcmp(bytes, again_bytes, length) != 0)
		abort();
	free(again_bytes);
	idx_close(&again);
	if (can_be_read(bytes, length - 1) || can_be_read(bytes, length + 1))
		abort();
	free(bytes);
}

/* Returns 0. Aborts if an accepted file is not the same after being written, if one that is a byte
 * shorter or longer is also read, or if a refusal has no message. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct idx idx = {0};

	if (!reads(bytes, length, &idx))
		return 0;
	/* Rows are read one by one; for a decompression bomb that takes seconds. */
	if (idx.dims[0] <= ROWS_MOST)
		exercise(&idx);
	idx_close(&idx);
	/* The same file without its last byte, which gzip's end mark must detect too. */
	if (can_be_read(bytes, length - 1))
		abort();
	return 0;
}
