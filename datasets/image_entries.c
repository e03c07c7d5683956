#include "base/memory.h"
#include "datasets/image_list_internal.h"

void image_list_add(struct image_list *list, const struct image_entry *entry)
{
	if (list->count == list->capacity) {
		list->capacity = list->capacity ? 2 * list->capacity : 1024;
		list->entries =
			memory_realloc(list->entries, list->capacity * sizeof(*list->entries));
	}
	list->entries[list->count++] = *entry;
}
