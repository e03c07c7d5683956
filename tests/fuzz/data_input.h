/* Gives a fuzz input as a file, for readers that take a path. */
#ifndef PRONY_TESTS_FUZZ_DATA_INPUT_H
#define PRONY_TESTS_FUZZ_DATA_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Returns the path of a file in memory that holds the bytes until the next call. */
const char *input_file(const uint8_t *bytes, size_t length);

/* Returns whether the file was read; aborts unless a refusal is one line of PRONY_BAD_INPUT that
 * begins with the file. */
bool input_was_read(enum prony_status status, const struct error *err);

#endif
