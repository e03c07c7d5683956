/* A file that several threads read at given offsets. */
#ifndef PRONY_DATASETS_PLAIN_FILE_H
#define PRONY_DATASETS_PLAIN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct plain_file {
	char *path;
	int fd;
	int64_t bytes;
};

/* PRONY_BAD_INPUT when it does not exist or is not a regular file. */
enum prony_status plain_file_open(const char *path, struct plain_file *out, struct error *err);
void plain_file_close(struct plain_file *file);

/* PRONY_BAD_INPUT, "truncated: `what` need ...", where the file ends before. */
enum prony_status plain_file_read(const struct plain_file *file, int64_t offset, void *out,
				  size_t bytes, const char *what, struct error *err);

/* The error of something broken at an offset: "FILE: offset N: what". */
enum prony_status plain_file_broken(const struct plain_file *file, int64_t offset, const char *what,
				    struct error *err);

#endif
