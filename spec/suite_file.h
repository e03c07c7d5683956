/* Private to spec/: a suite file as libyaml's document, and checked access to its nodes. */
#ifndef PRONY_SPEC_SUITE_FILE_H
#define PRONY_SPEC_SUITE_FILE_H

#include <yaml.h>

#include "spec/spec.h"

/* Bounds for hostile files. libyaml compares each anchor with all others, which is quadratic. */
#define SUITE_BYTES_MAX ((size_t)64 * 1024)
#define SUITE_WORDS_MAX ((size_t)1 << 15) /* aliases may repeat a list without a byte of text */
#define SUITE_RULES_MAX ((size_t)256)
#define SUITE_WORD_BYTES_MAX ((size_t)200)

struct suite_file {
	const char *path; /* borrowed */
	yaml_document_t document;
	struct spec *spec;
	size_t words; /* read so far */
};

/*
 * Reads the file and makes sure that it is one document whose root is a mapping, without tags or
 * repeated keys anywhere. The caller releases the document after success.
 */
enum prony_status suite_file_load(struct suite_file *file, struct error *err);
void suite_file_release(struct suite_file *file);

yaml_node_t *suite_node(struct suite_file *file, int index);
/* The text of a scalar; NULL for other nodes. */
const char *suite_scalar(const yaml_node_t *node);
/* An unquoted scalar that YAML means as nothing: "", "~", "null". */
bool suite_is_null(const yaml_node_t *node);
/* "a list", "a mapping", "nothing" or the scalar in quotes, shortened; text in the spec's arena. */
const char *suite_describe(struct suite_file *file, const yaml_node_t *node);

/* PRONY_BAD_INPUT with "FILE:LINE: " before the text. */
enum prony_status suite_wrong(const struct suite_file *file, const yaml_node_t *node,
			      struct error *err, const char *format, ...) PRONY_PRINTF(4, 5);

#endif
