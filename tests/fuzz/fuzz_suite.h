/* The fuzz target, so that a unit test can run its seed corpus. */
#ifndef PRONY_TESTS_FUZZ_SUITE_H
#define PRONY_TESTS_FUZZ_SUITE_H

#include <stddef.h>
#include <stdint.h>

/* Always 0; aborts when a suite that is refused has no proper message or leaves something behind.
 */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
