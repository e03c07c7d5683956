/* The fuzz target, so that a unit test can run its seed corpus. */
#ifndef PRONY_TESTS_FUZZ_DESCRIPTOR_H
#define PRONY_TESTS_FUZZ_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>

/* Always 0; aborts when a descriptor that is refused has no proper message, or one that is taken
 * cannot be used. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
