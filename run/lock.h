/* The machine-wide lock: two measurements at once would both be wrong. */
#ifndef PRONY_RUN_LOCK_H
#define PRONY_RUN_LOCK_H

#include "base/error.h"

/* Takes an advisory lock on a file, which is created if missing. Calls `waiting` once if another
 * process holds it. The lock ends with the process; close *fd to release it earlier. */
enum prony_status lock_take(const char *path, const volatile int *stop,
			    void (*waiting)(void *context, const char *path), void *context,
			    int *fd, struct error *err);

/* Returns $PRONY_LOCK, or prony.lock in the machine's temporary folder; the caller frees it. */
char *lock_default_path(void);

#endif
