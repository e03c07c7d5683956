/* Runs the seed corpus of the fuzz target that a unit test links. All functions fail the test on an
 * error. */
#ifndef PRONY_TESTS_FUZZ_SEED_CORPUS_H
#define PRONY_TESTS_FUZZ_SEED_CORPUS_H

#include "tests/fuzz/target.h"

/* Returns tests/fuzz/corpus/CORPUS/NAME below $PRONY_SOURCE; the folder if name is "". It
 * belongs to the running test. */
char *corpus_path(const char *corpus, const char *name);

/* Runs every file through the target, then through `more` (NULL: none), which may change the bytes
 * and pass them to the target any number of times. Returns the number of files. */
typedef void corpus_more(const char *name, uint8_t *bytes, size_t length);
size_t corpus_run(const char *corpus, corpus_more *more);

#endif
