/* The seed corpus of the fuzz target that a unit test links. Everything asserts. */
#ifndef PRONY_TESTS_FUZZ_SEED_CORPUS_H
#define PRONY_TESTS_FUZZ_SEED_CORPUS_H

#include "tests/fuzz/target.h"

/* tests/fuzz/corpus/CORPUS/NAME below $PRONY_SOURCE; the folder with name "". The caller frees. */
char *corpus_path(const char *corpus, const char *name);

/*
 * Every file goes through the target, then through `more` (NULL: none), which may change the bytes
 * and gives them to the target as often as it likes. Returns how many files there were.
 */
typedef void corpus_more(const char *name, uint8_t *bytes, size_t length);
size_t corpus_run(const char *corpus, corpus_more *more);

#endif
