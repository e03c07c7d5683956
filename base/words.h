/* Splits a command line into words as a shell does; no shell runs. */
#ifndef PRONY_BASE_WORDS_H
#define PRONY_BASE_WORDS_H

#include <stdbool.h>

#include "base/arena.h"

/* Returns the next word of *text, in the arena, and moves *text behind it; NULL at the end. Quotes
 * and backslashes count as in a shell. *wrong: a quote is not closed. */
const char *words_next(const char **text, struct arena *arena, bool *wrong);

#endif
