/* Records of samples, and the error of a label that no class has. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "datasets/byte_stream.h"
#include "datasets/format.h"

enum prony_status data_label_error(const char *path, int64_t offset, int64_t label, int64_t classes,
				   struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT,
			 "%s: offset %" PRId64 ": label %" PRId64 ", but there are %" PRId64
			 " classes; " DATA_REMEDY,
			 path, offset, label, classes);
}

void data_record_reserve(struct data_record *record, size_t bytes)
{
	if (bytes <= record->capacity)
		return;
	record->capacity = bytes + bytes / 2;
	record->bytes = memory_realloc(record->bytes, record->capacity);
}

void data_record_release(struct data_record *record)
{
	free(record->bytes);
	*record = (struct data_record){0};
}
