/* SHA-256 of bytes and files. */
#ifndef PRONY_BASE_DIGEST_H
#define PRONY_BASE_DIGEST_H

#include <sha256.h>
#include <stddef.h>

#include "base/error.h"

#define DIGEST_HEX_BYTES 65 /* 64 hexadecimal digits and the terminator */

/* A digest over several pieces. The boundaries count: "ab", "c" differs from "a", "bc". */
struct digest {
	SHA256_CTX context;
};

void digest_begin(struct digest *digest);
void digest_add(struct digest *digest, const void *bytes, size_t length);
void digest_add_text(struct digest *digest, const char *text); /* NULL differs from "" */
/* Adds a file without reading it: its real path, size and modification time. For a folder, adds all
 * files below it except Python's caches. A path that does not exist gives a digest of its own. */
void digest_add_tree(struct digest *digest, const char *path);
void digest_end(struct digest *digest, char hex[DIGEST_HEX_BYTES]);

void digest_bytes(const void *bytes, size_t length, char hex[DIGEST_HEX_BYTES]);
enum prony_status digest_file(const char *path, char hex[DIGEST_HEX_BYTES], struct error *err);

#endif
