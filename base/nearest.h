/* "Did you mean": the known word that a typed one is nearest to. */
#ifndef PRONY_BASE_NEAREST_H
#define PRONY_BASE_NEAREST_H

#include <stddef.h>

/*
 * The word of `words` nearest to `word` (edit distance at most 3, at most a third of the
 * word's letters and less than all of them), for "did you mean"; where none is off by one letter
 * only, the first that begins or ends with it (resnet: resnet50). NULL when none is near.
 */
const char *word_nearest(const char *word, const char *const *words, size_t count);

#endif
