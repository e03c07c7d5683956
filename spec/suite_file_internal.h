/* Private to spec/: the state of reading a suite file. */
#ifndef PRONY_SPEC_SUITE_FILE_INTERNAL_H
#define PRONY_SPEC_SUITE_FILE_INTERNAL_H

#include "base/yaml_file.h"
#include "spec/spec.h"

/* Bounds for hostile files. */
#define SUITE_WORDS_MAX                                                                            \
	((size_t)1 << 15) /* aliases can repeat a list without taking space in the file */
#define SUITE_RULES_MAX ((size_t)256)
#define SUITE_WORD_BYTES_MAX ((size_t)200)

struct suite_file {
	struct yaml_file yaml;
	struct spec *spec;
	size_t words; /* read so far */
};

#endif
