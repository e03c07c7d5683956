/* Private to datasets/: builds a list of pictures. */
#ifndef PRONY_DATASETS_IMAGE_LIST_INTERNAL_H
#define PRONY_DATASETS_IMAGE_LIST_INTERNAL_H

#include "base/memory.h"
#include "datasets/image_list.h"

#define LIST_REMEDY                                                                                \
	"docs/datasets.md describes the folders; prony data verify finds what is damaged"

/* Adds a copy of `entry`, whose names are in the list's arena. */
static inline void image_list_add(struct image_list *list, const struct image_entry *entry)
{
	list->entries =
		memory_grow(list->entries, list->count, &list->capacity, sizeof(*list->entries));
	list->entries[list->count++] = *entry;
}

/* Adds the pictures of a tar file. Members that are tar files are classes named after them, and so
 * are folders inside it. In a tar file with only pictures, `class_name` is the class of all; NULL
 * if the label file has it. */
enum prony_status image_list_add_tar(struct image_list *list, const char *path,
				     const char *class_name, struct error *err);

/* Sets the labels of the entries, sorted by name, from the label file beside the folder. */
enum prony_status image_list_label(struct image_list *list, int64_t classes, struct error *err);

#endif
