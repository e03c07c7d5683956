/* Reads the small files that sensors poll. Nothing here allocates. */
#ifndef PRONY_SENSORS_FILES_H
#define PRONY_SENSORS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads an open file from its beginning into a 0-terminated buffer. Returns the length, or -1 (also
 * for descriptor -1). */
ssize_t file_reread(int fd, char *buffer, size_t bytes);

/* Whether a file was opened (fd >= 0); closes it. */
bool file_opens(int fd);

/* The integer at the beginning of an open file; -1 when there is none or it is negative. */
int64_t file_number(int fd);

/* The number in the line "KEY 123" or "KEY: 123" of a text; -1 when there is none or it is
 * negative. */
int64_t text_number(const char *text, const char *key);

#endif
