/* A file that only grows, and may be cut back to where it was when a conversion was last safe. */
#ifndef PRONY_DATASETS_APPEND_FILE_H
#define PRONY_DATASETS_APPEND_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct append_file {
	char *path;
	int fd; /* -1: closed */
	uint8_t *buffer;
	size_t held;
	int64_t bytes; /* written and held */
};

/* Opens or makes it and cuts it to `keep` bytes; PRONY_BAD_INPUT where it has fewer. */
enum prony_status append_file_open(const char *folder, const char *name, int64_t keep,
				   struct append_file *out, struct error *err);
enum prony_status append_file_write(struct append_file *file, const void *bytes, size_t length,
				    struct error *err);
/* What was written is on the disk afterwards. */
enum prony_status append_file_sync(struct append_file *file, struct error *err);
void append_file_close(struct append_file *file);

#endif
