/* Lists pictures and their classes from any source: one folder per class, one folder with a label
 * file, or ImageNet's published tar files, read in place. The order is by class name, then file
 * name, so that a batch is the same from every source. */
#ifndef PRONY_DATASETS_IMAGE_LIST_H
#define PRONY_DATASETS_IMAGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct image_entry {
	const char *name;	/* path below the list's path: "n01440764/n01440764_10026.JPEG" */
	const char *class_name; /* NULL: the label file has it */
	int64_t offset, length; /* position in the tar file; offset -1: a separate file */
	int32_t tar;		/* index of the tar file in the list */
	int32_t label;
};

enum { IMAGE_TARS_MAX = 1024 };

struct image_list {
	char *path; /* folder or tar file */
	struct arena arena;
	struct image_entry *entries;
	size_t count, capacity;
	const char **classes; /* class names in order; NULL when labels are numbers */
	size_t class_count;
	const char *labels_path; /* NULL: the folders are the classes */
	int tars[IMAGE_TARS_MAX];
	const char *tar_paths[IMAGE_TARS_MAX];
	int tar_count;
};

/*
 * Lists the pictures below `path`; of tar files only the headers are read. Labels are 0 to classes
 * - 1. PRONY_BAD_INPUT with file, offset or line, and remedy, when something is broken, no picture
 * is found or a label is out of range.
 */
enum prony_status image_list_open(const char *path, int64_t classes, struct image_list **out,
				  struct error *err);
void image_list_close(struct image_list *list);

/* Reads the file of an entry; *bytes (malloc) grows to *capacity. Several threads may call it.
 * `cold`: its pages are dropped from this machine's page cache before (posix_fadvise, DONTNEED),
 * unless they are not written yet or mapped elsewhere, so that it comes from storage. */
enum prony_status image_list_read(const struct image_list *list, size_t at, bool cold,
				  uint8_t **bytes, size_t *capacity, size_t *length,
				  struct error *err);

/* The total size of all files in a folder, and the SHA-256 (DIGEST_HEX_BYTES) of their paths and
 * contents in path order. */
enum prony_status image_folder_digest(const char *path, int64_t *bytes, char hex[],
				      struct error *err);
/* The total size only; stops above the limit. */
int64_t image_folder_bytes(const char *path, int64_t limit_bytes);

/* The name of an entry in messages: "FOLDER/NAME", "TAR: NAME"; the caller frees it. */
char *image_list_name(const struct image_list *list, size_t at);

#endif
