#include "tests/fuzz/fuzz_idx.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/idx.h"

#define LIMIT_BYTES ((size_t)1 << 20)

static size_t data_bytes(const struct idx *idx)
{
	size_t bytes = 1;

	for (int i = 0; i < idx->rank; i++)
		bytes *= (size_t)idx->dims[i];
	return bytes;
}

/* A refused file gives one line that names it, and leaves the output alone. */
static bool reads(const uint8_t *bytes, size_t length, struct idx *out)
{
	struct error err = ERROR_INIT;
	struct idx before = *out;
	enum prony_status status = idx_parse(bytes, length, "input", LIMIT_BYTES, out, &err);

	if (status == PRONY_OK)
		return true;
	if (status != PRONY_BAD_INPUT || err.code != status ||
	    strncmp(err.text, "input: ", 7) != 0 || strchr(err.text, '\n') != NULL ||
	    before.rank != out->rank || before.data != out->data)
		abort();
	return false;
}

/* The plain file of what was read. */
static uint8_t *encode(const struct idx *idx, size_t *length)
{
	size_t head = 4 + 4 * (size_t)idx->rank, data = data_bytes(idx);
	uint8_t *bytes = calloc(1, head + data + 1);

	if (!bytes)
		abort();
	bytes[2] = 8;
	bytes[3] = (uint8_t)idx->rank;
	for (int i = 0; i < idx->rank; i++)
		for (int byte = 0; byte < 4; byte++)
			bytes[4 + 4 * i + byte] = (uint8_t)(idx->dims[i] >> (24 - 8 * byte));
	memcpy(bytes + head, idx->data, data);
	*length = head + data;
	return bytes;
}

static void exercise(const struct idx *idx)
{
	struct idx again = {0};
	size_t length;

	if (idx->rank < 1 || idx->rank > IDX_MAX_RANK || data_bytes(idx) > LIMIT_BYTES)
		abort();
	uint8_t *bytes = encode(idx, &length);
	if (!reads(bytes, length, &again) || again.rank != idx->rank ||
	    memcmp(again.dims, idx->dims, sizeof(again.dims[0]) * (size_t)idx->rank) != 0 ||
	    memcmp(again.data, idx->data, data_bytes(idx)) != 0)
		abort();
	idx_release(&again);
	if (reads(bytes, length - 1, &again) || reads(bytes, length + 1, &again))
		abort();
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct idx idx = {0};

	if (reads(bytes, length, &idx)) {
		exercise(&idx);
		/* The same file cut short by a byte, which gzip's end mark must show too. */
		struct idx cut = {0};
		if (reads(bytes, length - 1, &cut))
			abort();
	}
	idx_release(&idx);
	return 0;
}
