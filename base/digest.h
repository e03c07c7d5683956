/* SHA-256 of bytes and files. */
#ifndef PRONY_BASE_DIGEST_H
#define PRONY_BASE_DIGEST_H

#include <stddef.h>

#include "base/error.h"

#define DIGEST_HEX_BYTES 65 /* 64 hexadecimal digits and the terminator */

void digest_bytes(const void *bytes, size_t length, char hex[DIGEST_HEX_BYTES]);
enum prony_status digest_file(const char *path, char hex[DIGEST_HEX_BYTES], struct error *err);

#endif
