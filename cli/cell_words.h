/* Words that tell a cell: `prony log mxnet train`. */
#ifndef PRONY_CLI_CELL_WORDS_H
#define PRONY_CLI_CELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Does each word tell the cell: the beginning of its hash (four digits or more), a word or
 * axis=word of its key, or the whole key in one argument? The bare word "native" is the framework;
 * the input of that name is "input=native". */
bool cell_words_match(const char *key, const char *hash, const char *const *words, size_t count);

/* All of them in one line; the caller frees. */
char *cell_words_joined(const char *const *words, size_t count);

#endif
