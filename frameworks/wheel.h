/* Extracts files from a wheel, which is a ZIP archive (PEP 427). */
#ifndef PRONY_FRAMEWORKS_WHEEL_H
#define PRONY_FRAMEWORKS_WHEEL_H

#include <stddef.h>

#include "base/error.h"

/* Extracts the files whose path matches one of the patterns (fnmatch(3) without flags) below
 * `folder`, keeping their paths, and checks their CRC-32. *extracted (may be NULL) counts them.
 * PRONY_BAD_INPUT names the archive and what is wrong with it; paths that leave the folder are
 * refused before anything is written. After an error files may be half-written: the caller removes
 * the folder. */
enum prony_status wheel_extract(const char *path, const char *const *patterns, size_t pattern_count,
				const char *folder, size_t *extracted, struct error *err);

#endif
