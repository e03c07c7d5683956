/* The fuzz target, so that a unit test can run its seed corpus. */
#ifndef PRONY_TESTS_FUZZ_SAFETENSORS_H
#define PRONY_TESTS_FUZZ_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

/* Always 0; aborts when an image that was read does not survive being written. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
