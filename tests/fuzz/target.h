/* libFuzzer's entry point, which each target defines. */
#ifndef PRONY_TESTS_FUZZ_TARGET_H
#define PRONY_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0; aborts under the conditions in the target's own comment. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
