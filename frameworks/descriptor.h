/* Reads a framework's descriptor file; docs/descriptors.md has its grammar. */
#ifndef PRONY_FRAMEWORKS_DESCRIPTOR_H
#define PRONY_FRAMEWORKS_DESCRIPTOR_H

#include "frameworks/registry.h"

#define DESCRIPTOR_BACKENDS_MAX 16

/* Placeholders in braces in commands and variables, replaced when a worker is started. */
#define PLACEHOLDERS(X)                                                                            \
	X(HERE, "here")	      /* the descriptor's folder */                                        \
	X(FOLDER, "folder")   /* the environment's folder; "" if prony did not install it */       \
	X(CACHE, "cache")     /* a folder below the data folder that persists between runs */      \
	X(THREADS, "threads") /* of the cell */

enum placeholder {
#define X(id, name) PLACEHOLDER_##id,
	PLACEHOLDERS(X)
#undef X
		PLACEHOLDER_COUNT
};

/* Reads one file into `rows` (room for DESCRIPTOR_BACKENDS_MAX): one row per backend, or one row
 * without backends. Strings are in the arena. PRONY_BAD_INPUT names file, line, key and remedy; for
 * unknown keys it suggests the nearest. The framework is named after its file. With `of_user`, keys
 * that only prony itself may use are refused. */
enum prony_status descriptor_read(const char *path, bool of_user, struct arena *arena,
				  struct framework *rows, size_t *count, struct error *err);

extern const char *const placeholder_names[PLACEHOLDER_COUNT];
/* The placeholder at an opening brace, with its length; PLACEHOLDER_COUNT if there is none. */
enum placeholder placeholder_at(const char *text, size_t *length);

/* Replaces {here}, {threads}... by values[], indexed by enum placeholder. The result is in the
 * arena. */
const char *placeholders_replace(const char *text, const char *const values[PLACEHOLDER_COUNT],
				 struct arena *arena);

#endif
