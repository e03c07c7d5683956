#include <stdlib.h>

#include "base/memory.h"
#include "datasets/format.h"

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
