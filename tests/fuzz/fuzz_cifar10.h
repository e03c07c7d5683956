/* The fuzz target, so that a unit test can run its seed corpus. */
#ifndef PRONY_TESTS_FUZZ_CIFAR10_H
#define PRONY_TESTS_FUZZ_CIFAR10_H

#include <stddef.h>
#include <stdint.h>

/* Always 0; aborts when the samples that were read are not the file's bytes, when a file that is a
 * byte shorter or longer is read too, or when a refusal says nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
