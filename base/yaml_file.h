/* YAML without trusting it: a file as libyaml's document with line marks, and checked access to its
 * nodes. What keys mean is its reader's part (suites, framework descriptors). */
#ifndef PRONY_BASE_YAML_FILE_H
#define PRONY_BASE_YAML_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/error.h"

/* What such a file is, for messages. */
struct yaml_kind {
	const char *noun;    /* "suite" */
	const char *example; /* of its least content: "networks: lenet" */
	const char *page;    /* that has the grammar: "docs/suites.md" */
	const char *remedy;  /* where the file cannot be read */
};

struct yaml_file {
	const char *path; /* borrowed, as kind and arena are */
	const struct yaml_kind *kind;
	struct arena *arena; /* for texts that messages show */
	yaml_document_t document;
};

/*
 * Reads the file (64 KiB at most) and makes sure that it is one document whose root is a mapping,
 * without tags or repeated keys anywhere, keys being scalars. PRONY_BAD_INPUT names file and line.
 * The caller releases the document after success.
 */
enum prony_status yaml_file_load(struct yaml_file *file, struct error *err);
void yaml_file_release(struct yaml_file *file);

yaml_node_t *yaml_file_node(struct yaml_file *file, int index);
/* The text of a scalar; NULL for other nodes. */
const char *yaml_text(const yaml_node_t *node);
/* An unquoted scalar that YAML means as nothing: "", "~", "null". */
bool yaml_is_nothing(const yaml_node_t *node);
/* "a list", "a mapping", "nothing" or the scalar in quotes, shortened; text in the arena. */
const char *yaml_file_describe(struct yaml_file *file, const yaml_node_t *node);
/* "FILE:LINE: key", in the arena. */
const char *yaml_file_origin(struct yaml_file *file, const yaml_node_t *node, const char *key);

/* PRONY_BAD_INPUT with "FILE:LINE: " before the text. */
enum prony_status yaml_file_wrong(const struct yaml_file *file, const yaml_node_t *node,
				  struct error *err, const char *format, ...) PRONY_PRINTF(4, 5);

/* PRONY_BAD_INPUT for a key that is none of `names`: the nearest of them, and all. `place` is the
 * key whose mapping it stands in, NULL for the root. */
enum prony_status yaml_file_unknown_key(const struct yaml_file *file, const yaml_node_t *key,
					const char *place, const char *const *names, size_t count,
					struct error *err);

#endif
