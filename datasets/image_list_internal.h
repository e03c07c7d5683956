/* Private to datasets/: how a list of pictures comes to be. */
#ifndef PRONY_DATASETS_IMAGE_LIST_INTERNAL_H
#define PRONY_DATASETS_IMAGE_LIST_INTERNAL_H

#include "datasets/image_list.h"

#define LIST_REMEDY                                                                                \
	"docs/datasets.md says how pictures lie; see what is broken with prony data verify"

/* A copy of `entry`, whose names are in the list's arena. */
void image_list_add(struct image_list *list, const struct image_entry *entry);

/*
 * Adds the pictures of a tar file. Members that are tar files themselves are classes, named
 * after them, and so are folders in it; in a tar file of pictures alone `class_name` is that of
 * all, NULL if the labels say.
 */
enum prony_status image_list_add_tar(struct image_list *list, const char *path,
				     const char *class_name, struct error *err);

/* Gives the entries, in the order of their names, the labels of the file that lies beside. */
enum prony_status image_list_label(struct image_list *list, int64_t classes, struct error *err);

#endif
