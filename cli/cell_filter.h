/* Words that select cells: `prony log mxnet train`. */
#ifndef PRONY_CLI_CELL_FILTER_H
#define PRONY_CLI_CELL_FILTER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether every word matches the cell: a prefix of its hash (at least four digits), a word or
 * axis=word of its key, or the whole key in one argument. The bare word "native" means the
 * framework; the input of that name is "input=native". */
bool cell_filter_match(const char *key, const char *hash, const char *const *words, size_t count);

/* All words in one line; the caller frees it. */
char *cell_filter_text(const char *const *words, size_t count);

#endif
