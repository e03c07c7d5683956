/* Fuzz target: tar files. */
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "datasets/image_list.h"
#include "tests/fuzz/data_input.h"

enum { CLASSES = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	const char *path = input_file(bytes, length);
	struct image_list *list = NULL;
	struct error err = ERROR_INIT;
	uint8_t *file = NULL;
	size_t capacity = 0, got;

	if (!input_was_read(image_list_open(path, CLASSES, &list, &err), &err))
		return 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct image_entry *entry = &list->entries[i];

		/* Every member lies within the file and has a class. */
		if (entry->offset < 0 || entry->length < 0 ||
		    entry->offset + entry->length > (int64_t)length || entry->label < 0 ||
		    entry->label >= CLASSES || !entry->class_name)
			abort();
		if (image_list_read(list, i, false, &file, &capacity, &got, &err) != PRONY_OK ||
		    (int64_t)got != entry->length)
			abort();
	}
	free(file);
	image_list_close(list);
	return 0;
}
