/* An append-only file that can be truncated to its last safe length when a conversion resumes. */
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
	int64_t bytes; /* bytes written, bytes buffered */
};

/*
 * Opens or creates the file and truncates it to `keep` bytes; PRONY_BAD_INPUT when it is shorter.
 */
enum prony_status append_file_open(const char *folder, const char *name, int64_t keep,
				   struct append_file *out, struct error *err);
enum prony_status append_file_write(struct append_file *file, const void *bytes, size_t length,
				    struct error *err);
/* Writes everything to the disk. */
enum prony_status append_file_sync(struct append_file *file, struct error *err);
void append_file_close(struct append_file *file);

#endif
