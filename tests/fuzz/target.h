/* libFuzzer's entry, that each target defines. */
#ifndef PRONY_TESTS_FUZZ_TARGET_H
#define PRONY_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Always 0; aborts on what the target's own comment says. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
