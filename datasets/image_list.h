/*
 * Pictures and their classes, in whatever they lie in: a folder for each class, one folder and a
 * file of labels, or the tar files in which ImageNet is published, read where they are. The order
 * is that of the names, by class first, so that a batch is the same out of all of them.
 */
#ifndef PRONY_DATASETS_IMAGE_LIST_H
#define PRONY_DATASETS_IMAGE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct image_entry {
	const char *name;	/* below the list's path: "n01440764/n01440764_10026.JPEG" */
	const char *class_name; /* NULL: the file of labels says */
	int64_t offset, length; /* in the tar file; offset -1: a file of its own */
	int32_t tar;		/* which of the list's */
	int32_t label;
};

enum { IMAGE_TARS_MAX = 1024 };

struct image_list {
	char *path; /* folder or tar file */
	struct arena arena;
	struct image_entry *entries;
	size_t count, capacity;
	const char **classes; /* their names in order; NULL where labels are numbers */
	size_t class_count;
	const char *labels_path; /* NULL: the folders are the classes */
	int tars[IMAGE_TARS_MAX];
	const char *tar_paths[IMAGE_TARS_MAX];
	int tar_count;
};

/*
 * Lists what is below `path`: of tar files only the heads are read. Labels are 0 to classes - 1.
 * PRONY_BAD_INPUT with file, offset or line, and remedy where something is broken, no picture is
 * there or a label is no class.
 */
enum prony_status image_list_open(const char *path, int64_t classes, struct image_list **out,
				  struct error *err);
void image_list_close(struct image_list *list);

/* Reads the file of an entry; *bytes (malloc) grows to *capacity. Several threads may. */
enum prony_status image_list_read(const struct image_list *list, size_t at, uint8_t **bytes,
				  size_t *capacity, size_t *length, struct error *err);

/* The size of all files in a folder, and the SHA-256 (DIGEST_HEX_BYTES) of their paths and contents
 * in the order of the paths. */
enum prony_status image_folder_digest(const char *path, int64_t *bytes, char hex[],
				      struct error *err);
/* The size alone, or something larger than the limit. */
int64_t image_folder_bytes(const char *path, int64_t limit_bytes);

/* What an entry is called in messages: "FOLDER/NAME", "TAR: NAME"; caller frees. */
char *image_list_name(const struct image_list *list, size_t at);

#endif
