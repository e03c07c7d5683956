/* "Did you mean": finds the known word closest to a typed one. */
#ifndef PRONY_BASE_NEAREST_H
#define PRONY_BASE_NEAREST_H

#include <stddef.h>

/* The word of `words` closest to `word`: edit distance at most 3, at most a third of the letters,
 * and less than all of them. If no word is within one letter, the first word that begins or ends
 * with `word` is preferred (resnet: resnet50). NULL when nothing is close. */
const char *word_nearest(const char *word, const char *const *words, size_t count);

#endif
