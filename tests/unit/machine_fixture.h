/* Recorded machines for tests: a folder with the few files of /proc and /sys that the program
 * reads. */
#ifndef PRONY_TESTS_MACHINE_FIXTURE_H
#define PRONY_TESTS_MACHINE_FIXTURE_H

#include <jansson.h>

#include "unit_test.h"

/* cmocka fixtures: *state is the root, a folder of its own. */
int machine_setup(void **state);
int machine_teardown(void **state);
#define MACHINE_TEST(name) TEST_ON(name, machine_setup, machine_teardown, const char *root)

/* Writes root + path, and creates all folders above it. */
void machine_file(const char *root, const char *path, const char *text);

/* Writes /proc/cpuinfo, online processors and the topology: packages of `cores` cores of `threads`
 * threads, numbered as Linux does on x86: all first threads, then all second ones. */
void machine_processors(const char *root, int packages, int cores, int threads, const char *flags);

/* Writes a server without faults: two packages, performance governor, boost off, readable RAPL. */
void machine_good_server(const char *root);

#endif
