/* The small files that sensors read again and again. Nothing here allocates. */
#ifndef PRONY_SENSORS_FILES_H
#define PRONY_SENSORS_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An open file from its begin into a terminated buffer; the length, or -1 (of descriptor -1, too).
 */
ssize_t file_reread(int fd, char *buffer, size_t bytes);

/* The whole number with which an open file begins; -1: none, or below 0. */
int64_t file_number(int fd);

/* The number of the line "KEY 123" or "KEY: 123" of a text; -1: there is none, or below 0. */
int64_t text_number(const char *text, const char *key);

#endif
