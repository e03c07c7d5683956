/* A cache folder for results that are expensive but can be computed again. Each entry is found by a
 * key that covers everything it depends on. An entry is either whole or absent. When the folder
 * grows past its limit, the entries that were not used for longest are deleted. A cache failure is
 * never fatal: a caller computes what is PRONY_MISSING and may ignore a failed write. */
#ifndef PRONY_BASE_CACHE_H
#define PRONY_BASE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/files.h"

/* Bytes of the header before the payload, in memory and in the file. The size keeps the payload
 * aligned. */
#define CACHE_HEAD_BYTES 192

struct cache {
	char *folder; /* NULL: a disabled cache that stores nothing and finds nothing */
	char *shared[PATH_DATA_HOMES_MAX]; /* folders that are only read, after it; NULL: no more */
	int64_t limit_bytes;
};

struct cache_entry {
	char *file; /* the caller frees it */
	const char *payload;
	size_t length;
};

/* Uses the folder $XDG_CACHE_HOME/prony/NAME. It is created by the first write. Also reads
 * cache/NAME of the folders that somebody filled for all users (path_data_homes). Close with
 * cache_close. */
void cache_open(const char *name, int64_t limit_bytes, struct cache *out);
void cache_close(struct cache *cache);

/* Reads an entry. Returns PRONY_MISSING when there is none, when it belongs to another user, is
 * damaged, or was stored under another key. Reading an entry marks it as recently used. */
enum prony_status cache_read(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
			     struct cache_entry *out, struct error *err);

/* Stores an entry. `file` holds CACHE_HEAD_BYTES (filled in here) followed by the payload.
 * Afterwards the entries that were not used for longest are deleted until the folder is within its
 * limit. An entry larger than half the limit is not stored; that is not an error. */
enum prony_status cache_write(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
			      char *file, size_t file_bytes, struct error *err);

#endif
