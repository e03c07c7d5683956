/* The fuzz target, which the unit test runs on its seed corpus. */
#ifndef PRONY_TESTS_FUZZ_RECORDS_H
#define PRONY_TESTS_FUZZ_RECORDS_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
