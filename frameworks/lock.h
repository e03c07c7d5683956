/*
 * Reads lock files: what to download, by hash, and how to install it (frameworks/locks/README.md).
 */
#ifndef PRONY_FRAMEWORKS_LOCK_H
#define PRONY_FRAMEWORKS_LOCK_H

#include <stdint.h>

#include "base/arena.h"
#include "base/digest.h"
#include "frameworks/registry.h"

#define LOCK_WORDS_MAX 24

enum lock_kind { LOCK_UNPACK, LOCK_VENV };

struct lock_words {
	const char *words[LOCK_WORDS_MAX];
	size_t count;
};

/* Strings in the arena. */
struct lock {
	const char *path, *name; /* name: the file's name */
	char sha256[DIGEST_HEX_BYTES];
	enum lock_kind kind;
	const char *framework, *version;
	const char *python;  /* "3.12"; "" for unpack */
	const char *pip;     /* "VERSION SHA256" of the pip to use; "" = the environment's own */
	const char *library; /* "" for venv */
	int64_t download_mb, disk_mb;
	struct lock_words pip_arguments, keep, needs;
};

/* Reads and checks one lock; PRONY_BAD_INPUT names file, line, key and remedy. */
enum prony_status lock_read(const char *path, struct arena *arena, struct lock *out,
			    struct error *err);

/* Finds STEM[-PYTHON].txt: first in DATA/locks, where users can put their own, then among prony's
 * own locks. An environment without its own lock uses the framework's default lock if its name is
 * that lock's version or a prefix of it ("0.10"). NULL when there is none; `python` may be NULL. */
const char *lock_find(const struct framework *framework, const char *environment,
		      const char *python, struct arena *arena);

/* The megabytes that the framework's lock states; 0 without a lock. */
int64_t lock_download_mb(const struct framework *framework, const char *environment,
			 struct arena *arena);
/* "171 MB", "3.0 GB"; in the arena. */
const char *lock_megabytes_text(int64_t mb, struct arena *arena);

/* NAME[@ENV][=BACKEND], or the name in the descriptor with @ENV. */
const char *lock_stem(const struct framework *framework, const char *environment,
		      struct arena *arena);

#endif
