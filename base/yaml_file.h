/* Safe reading of YAML files: libyaml's document with line numbers, and checked access to its
 * nodes. The reader of the file (suites, framework descriptors) interprets the keys. */
#ifndef PRONY_BASE_YAML_FILE_H
#define PRONY_BASE_YAML_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/error.h"

/* Describes a kind of YAML file for messages. */
struct yaml_kind {
	const char *noun;    /* "suite" */
	const char *example; /* its smallest valid content: "networks: lenet" */
	const char *page;    /* the page with its grammar: "docs/suites.md" */
	const char *remedy;  /* what to do when the file cannot be read */
};

struct yaml_file {
	const char *path; /* borrowed, like kind and arena */
	const struct yaml_kind *kind;
	struct arena *arena; /* holds the texts that messages show */
	yaml_document_t document;
};

/* Reads the file (at most 64 KiB) and checks that it is a single document whose root is a mapping,
 * with scalar keys, no tags and no repeated keys. PRONY_BAD_INPUT names file and line. The caller
 * releases the document after success. */
enum prony_status yaml_file_load(struct yaml_file *file, struct error *err);
void yaml_file_release(struct yaml_file *file);

yaml_node_t *yaml_file_node(struct yaml_file *file, int index);
/* The text of a scalar; NULL for other nodes. */
const char *yaml_text(const yaml_node_t *node);
/* Whether the node is an unquoted scalar that means null in YAML: "", "~", "null". */
bool yaml_is_nothing(const yaml_node_t *node);
/* "a list", "a mapping", "nothing" or the scalar in quotes, shortened; text in the arena. */
const char *yaml_file_describe(struct yaml_file *file, const yaml_node_t *node);
/* "FILE:LINE: key", in the arena. */
const char *yaml_file_origin(struct yaml_file *file, const yaml_node_t *node, const char *key);

/* PRONY_BAD_INPUT with "FILE:LINE: " before the text. */
enum prony_status yaml_file_wrong(const struct yaml_file *file, const yaml_node_t *node,
				  struct error *err, const char *format, ...) PRONY_PRINTF(4, 5);

/* PRONY_BAD_INPUT for a key that is not in `names`; the message gives the nearest one and all of
 * them. `place` is the key of the mapping that contains it, NULL for the root. */
enum prony_status yaml_file_unknown_key(const struct yaml_file *file, const yaml_node_t *key,
					const char *place, const char *const *names, size_t count,
					struct error *err);

#endif
