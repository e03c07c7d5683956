/* Private to spec/: a suite file on its way into a spec. */
#ifndef PRONY_SPEC_SUITE_FILE_INTERNAL_H
#define PRONY_SPEC_SUITE_FILE_INTERNAL_H

#include "base/yaml_file.h"
#include "spec/spec.h"

/* Bounds for hostile files. */
#define SUITE_WORDS_MAX ((size_t)1 << 15) /* aliases may repeat a list without a byte of text */
#define SUITE_RULES_MAX ((size_t)256)
#define SUITE_WORD_BYTES_MAX ((size_t)200)

struct suite_file {
	struct yaml_file yaml;
	struct spec *spec;
	size_t words; /* read so far */
};

#endif
