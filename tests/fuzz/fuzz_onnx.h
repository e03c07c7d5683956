/* The fuzz target, so that a unit test can run its seed corpus. */
#ifndef PRONY_TESTS_FUZZ_ONNX_H
#define PRONY_TESTS_FUZZ_ONNX_H

#include <stddef.h>
#include <stdint.h>

/* Always 0; aborts when a model that was accepted does not hold together. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
