/* A framework's descriptor file, read: docs/descriptors.md has its grammar. */
#ifndef PRONY_FRAMEWORKS_DESCRIPTOR_H
#define PRONY_FRAMEWORKS_DESCRIPTOR_H

#include "frameworks/registry.h"

#define DESCRIPTOR_BACKENDS_MAX 16

/* What commands and variables may hold in braces, replaced when a worker is started. */
#define PLACEHOLDERS(X)                                                                            \
	X(HERE, "here")	      /* the descriptor's folder */                                        \
	X(FOLDER, "folder")   /* the environment's folder, "" when it is not prony's own */        \
	X(CACHE, "cache")     /* a folder below the data folder that stays between runs */         \
	X(THREADS, "threads") /* of the cell */

enum placeholder {
#define X(id, name) PLACEHOLDER_##id,
	PLACEHOLDERS(X)
#undef X
		PLACEHOLDER_COUNT
};

/*
 * Reads one file into `rows` (room for DESCRIPTOR_BACKENDS_MAX): one row for each backend, one
 * where there are none. Strings are in the arena. PRONY_BAD_INPUT names file, line, key and remedy;
 * unknown keys suggest the nearest. The framework is called like its file; with `of_user` keys that
 * are prony's own business are refused.
 */
enum prony_status descriptor_read(const char *path, bool of_user, struct arena *arena,
				  struct framework *rows, size_t *count, struct error *err);

extern const char *const placeholder_names[PLACEHOLDER_COUNT];
/* The placeholder that begins at an opening brace, with its length; PLACEHOLDER_COUNT for none. */
enum placeholder placeholder_at(const char *text, size_t *length);

/* Replaces {here}, {threads}...; values[] by enum placeholder. In the arena. */
const char *placeholders_replace(const char *text, const char *const values[PLACEHOLDER_COUNT],
				 struct arena *arena);

#endif
