/* The fuzz target, so that a unit test can run its seed corpus. */
#ifndef PRONY_TESTS_FUZZ_IDX_H
#define PRONY_TESTS_FUZZ_IDX_H

#include <stddef.h>
#include <stdint.h>

/* Always 0; aborts when a file that was read is not the same once written out again, when one that
 * is a byte shorter or longer is read too, or when a refusal says nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
