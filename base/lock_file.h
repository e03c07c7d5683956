/* Lock files (flock), opened safely even when another user controls the folder. */
#ifndef PRONY_BASE_LOCK_FILE_H
#define PRONY_BASE_LOCK_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* Opens the file for flock. Creates it with exactly this mode if it does not exist; an existing
 * file keeps its mode. A file of another user that may only be read works too. Only a regular file
 * with one hard link is accepted: PRONY_BAD_INPUT for a pipe, a link, a device or a folder;
 * PRONY_IO when it cannot be opened. The caller closes *fd, which releases the lock. */
enum prony_status lock_file_open(const char *path, mode_t mode, int *fd, struct error *err);

/* Whether the locked descriptor is still the file of that name. If somebody removed it, others can
 * lock a new file of the same name. */
bool lock_file_stands(const char *path, int fd);

#endif
