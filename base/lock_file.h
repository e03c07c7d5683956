/* Files that are locked (flock): opened so that nothing that somebody put in their place does harm.
 */
#ifndef PRONY_BASE_LOCK_FILE_H
#define PRONY_BASE_LOCK_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Opens the file for flock, and makes it with exactly this mode where it is not there; the mode of
 * one that is there stays. Read-only, which is enough to lock, so that a file of another user
 * serves as well. Only a regular file with one name will do: PRONY_BAD_INPUT for a pipe, a link, a
 * device, a folder, PRONY_IO where it cannot be opened. *fd: the caller closes it, which ends the
 * lock.
 */
enum prony_status lock_file_open(const char *path, mode_t mode, int *fd, struct error *err);

/* Whether an open lock is still the file of that name: who removed it let others lock a new one. */
bool lock_file_stands(const char *path, int fd);

#endif
