/* Fuzz target: record files of frameworks. */
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "datasets/format.h"
#include "datasets/records.h"
#include "tests/fuzz/data_input.h"

enum { CLASSES = 10, SIDE = 32 };

/* Reads every record in every format that accepts the file: each has a class or is refused. */
static void read_as(const char *name, const char *path)
{
	const struct data_format *format = data_format_find(name);
	const struct data_shard shard = {.paths = &path, .classes = CLASSES};
	const struct image_view view = {.height = SIDE, .width = SIDE};
	uint8_t planes[IMAGE_CHANNELS * SIDE * SIDE];
	struct data_source *source = NULL;
	struct data_record record = {0};
	struct error err = ERROR_INIT;

	if (!input_was_read(format->open(&shard, &source, &err), &err))
		return;
	if (source->count < 1)
		abort();
	for (int64_t i = 0; i < source->count; i++) {
		struct error wrong = ERROR_INIT;

		if (!input_was_read(format->record(source, i, &record, &wrong), &wrong))
			continue;
		if (record.label < 0 || record.label >= CLASSES || record.length == 0)
			abort();
		/* Decodes pixels; pictures have their own target. */
		if (!record.encoded)
			input_was_read(record_decode(&record, &view, planes, &wrong), &wrong);
	}
	data_record_release(&record);
	format->close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	const char *path = input_file(bytes, length);

	read_as("lmdb", path);
	read_as("recordio", path);
	read_as("tfrecord", path);
	return 0;
}
