/*
 * A folder of things that were expensive and can be computed again. An entry is whole or not there,
 * found by a key that says all that it depends on, and goes when the folder grows beyond its limit.
 * Nobody fails for want of it: callers compute what is PRONY_MISSING, and may ignore a write that
 * failed.
 */
#ifndef PRONY_BASE_CACHE_H
#define PRONY_BASE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

/* What stands before the payload in memory and in the file: data after it stays aligned. */
#define CACHE_HEAD_BYTES 192

struct cache {
	char *folder; /* NULL: keeps and finds nothing */
	int64_t limit_bytes;
};

struct cache_entry {
	char *file; /* the caller frees it */
	const char *payload;
	size_t length;
};

/* $XDG_CACHE_HOME/prony/NAME; nothing is made there yet. cache_close it. */
void cache_open(const char *name, int64_t limit_bytes, struct cache *out);
void cache_close(struct cache *cache);

/*
 * PRONY_MISSING where there is none: also one of another user, one that is damaged, and one that
 * was stored under another key. An entry that is found counts as new for what goes first.
 */
enum prony_status cache_read(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
			     struct cache_entry *out, struct error *err);

/*
 * Stores an entry: `file` is CACHE_HEAD_BYTES that are written here and then the payload. Then the
 * entries that were not used for longest go until all together are within the limit. One larger
 * than half of the limit is not kept; that is no error.
 */
enum prony_status cache_write(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
			      char *file, size_t file_bytes, struct error *err);

#endif
