/* The fuzz target, so that a unit test can run its seed corpus. */
#ifndef PRONY_TESTS_FUZZ_GRAPH_JSON_H
#define PRONY_TESTS_FUZZ_GRAPH_JSON_H

#include <stddef.h>
#include <stdint.h>

/* Always 0; aborts when a graph that was read does not survive being written. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
