/* Wheels made in memory: a few small files in a ZIP archive, whole or damaged on purpose. */
#ifndef PRONY_TESTS_WHEEL_FIXTURE_H
#define PRONY_TESTS_WHEEL_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct wheel_file {
	const char *name, *text;
	bool deflate;
	/* Values in the directory that replace the true ones; 0 = the true value. */
	uint32_t crc, bytes, packed_bytes, offset, method, flags;
};

/* Appends the archive to `out`, which the caller has initialised. */
void wheel_make(const struct wheel_file *files, size_t count, struct strbuf *out);

/* Writes FOLDER/NAME-VERSION-py3-none-any.whl, which pip accepts, with one file `path` of contents
 * `text` beside its metadata. */
void wheel_write(const char *folder, const char *name, const char *version, const char *path,
		 const char *text, char sha256[65]);

#endif
